from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .conftest import REPO

PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]


def pinned() -> dict[str, str]:
    lines = (REPO / "scripts/constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def audit(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(REPO / "scripts" / "audit"), *arguments],
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_every_dependency_has_a_tested_version() -> None:
    versions = pinned()
    for needed in map(Requirement, PROJECT["dependencies"]):
        assert needed.specifier.contains(versions[canonicalize_name(needed.name)]), needed


def test_every_dependency_has_an_upper_bound() -> None:
    free = {each.name for each in map(Requirement, PROJECT["dependencies"]) if "<" not in str(each.specifier)}
    assert free == {"pyarrow"}


@pytest.mark.parametrize("arguments", [("--offline",), ()])
def test_an_audit_that_is_skipped_says_so(arguments: tuple[str, ...]) -> None:
    ended = audit(*arguments, EVALTRACK_AUDIT="" if arguments else "offline")
    assert (ended.returncode, ended.stdout) == (
        0,
        "pip-audit: SKIPPED (offline); known vulnerabilities were not looked up\n",
    )


def test_an_audit_without_an_answer_fails() -> None:
    nowhere = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    ended = audit(**nowhere, NO_PROXY="", no_proxy="")
    assert ended.returncode == 1
    assert "pip-audit: FAILED: a package is vulnerable, or the advisory service could not be asked" in ended.stderr
    assert ended.stderr.endswith("Without a network: scripts/check --offline\n")
