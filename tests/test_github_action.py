"""The composite action, its steps run by bash as GitHub's runner does; only the runner itself is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import REPO
from .test_evaluation import golden

STEPS: list[dict[str, Any]] = yaml.safe_load((REPO / "scripts/github/action.yml").read_text())["runs"]["steps"]

GH = """#!/bin/bash
echo "$*" >> calls
if [[ "$*" == *--paginate* ]]; then cat known 2>/dev/null || true; fi
"""


def step(name: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run one step in `folder`."""
    script = next(step["run"] for step in STEPS if step["name"] == name)
    paths = f"{folder}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outputs = {"GITHUB_STEP_SUMMARY": str(folder / "summary"), "GITHUB_OUTPUT": str(folder / "output")}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **outputs, "PATH": paths, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(("sources", "code"), [("a", 0), ("x", 1)])
def test_the_action_ends_with_the_gates_exit_code(store_uri: str, tmp_path: Path, sources: str, code: int) -> None:
    """Evaluate, compare with a saved baseline, job summary, annotations, exit code."""
    path = golden(tmp_path, [{"id": 1, "question": "q?", "expected_chunks": ["a"]}])
    uri = {"MLFLOW_TRACKING_URI": store_uri}
    for name, found in {"good": "a", "now": sources}.items():
        (tmp_path / f"{name}.jsonl").write_text(f'{{"id": 1, "sources": ["{found}"]}}\n')
    saved = step("Evaluate", tmp_path, GOLDEN=str(path), TARGET="recorded:good.jsonl", OPTIONS="--output json", **uri)
    (tmp_path / "baseline.json").write_text(saved.stdout)

    assert step("Evaluate", tmp_path, GOLDEN=str(path), TARGET="recorded:now.jsonl", OPTIONS="", **uri).returncode == 0
    compared = step("Compare", tmp_path, BASELINE="baseline.json", OPTIONS="--allow-flips 0", **uri)
    assert compared.returncode == 0, compared.stderr
    assert (tmp_path / "output").read_text() == f"code=0\ncode=0\ncode={code}\n"  # two evaluations, one comparison
    assert (tmp_path / "summary").read_text().startswith("<!-- evaltrack:small -->")
    assert ("::error" in compared.stdout + compared.stderr) == (code == 1)
    assert step("Gate", tmp_path, RUN="0", CODE=str(code)).returncode == code
    assert step("Gate", tmp_path, RUN="1", CODE="0").returncode == 1


@pytest.mark.parametrize(
    ("known", "call"),
    [("", "api repos/o/r/issues/7/comments -F"), ("42\n", "api -X PATCH repos/o/r/issues/comments/42 -F")],
)
def test_one_comment_is_kept_up_to_date(tmp_path: Path, known: str, call: str) -> None:
    """The first time it is written, later it is changed in place."""
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "known").write_text(known)
    (tmp_path / "evaltrack.md").write_text("<!-- evaltrack:small -->\nall is well\n")

    ended = step("Comment", tmp_path, NUMBER="7", GITHUB_REPOSITORY="o/r", GH_TOKEN="t")

    assert ended.returncode == 0, ended.stderr
    asked, wrote = (tmp_path / "calls").read_text().splitlines()
    assert "<!-- evaltrack:small -->" in asked
    assert wrote == f"{call} body=@evaltrack.md"
