from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

GOLDEN = Path(__file__).resolve().parent.parent / "golden/travel.jsonl"

WITHOUT = """
import sys
for name in {modules!r}:
    sys.modules[name] = None
from evaltrack.cli import main
main(sys.argv[1:])
"""


def needs(package: str, seen: set[str] | None = None) -> set[str]:
    seen = set() if seen is None else seen
    seen.add(package)
    for each in map(Requirement, requires(package) or ()):
        name = canonicalize_name(each.name)
        if name not in seen and (each.marker is None or each.marker.evaluate({"extra": ""})):
            needs(name, seen)
    return seen


def absent() -> list[str]:
    own = {
        canonicalize_name(Requirement(each).name) for each in requires("mlflow-evaltrack") or () if "extra" not in each
    }
    light = set().union(*map(needs, {"mlflow-skinny", *own} - {"mlflow"}))
    heavy = needs("mlflow") - light
    modules = packages_distributions().items()
    return sorted(name for name, packages in modules if {canonicalize_name(each) for each in packages} <= heavy)


def command(*words: str, cwd: Path, store: str) -> subprocess.CompletedProcess[str]:
    """Run evaltrack in a process that can import none of these modules."""
    variables = {**os.environ, "MLFLOW_TRACKING_URI": store}
    code = [sys.executable, "-c", WITHOUT.format(modules=absent()), *words]
    return subprocess.run(code, cwd=cwd, env=variables, capture_output=True, text=True, timeout=120)


def test_a_job_evaluates_and_compares_on_a_server(server: str, tmp_path: Path) -> None:
    assert {"sqlalchemy", "sklearn", "matplotlib"} <= set(absent())
    set_of_three = GOLDEN.read_text(encoding="utf-8").splitlines()[:3]
    (tmp_path / "small.jsonl").write_text("\n".join(set_of_three), encoding="utf-8")
    for words in (["run", "small.jsonl", "-t", f"bm25:{GOLDEN.parent}/corpus/travel"], ["baseline", "set"]):
        done = command(*words, cwd=tmp_path, store=server)
        assert done.returncode == 0, done.stderr
    again = command("run", "small.jsonl", "-t", f"bm25:{GOLDEN.parent}/corpus/travel", cwd=tmp_path, store=server)
    assert again.returncode == 0, again.stderr
    compared = command("compare", "--output", "json", cwd=tmp_path, store=server)
    assert compared.stdout, compared.stderr
    assert json.loads(compared.stdout)["exit_code"] == compared.returncode


@pytest.mark.parametrize("words", [["doctor"], ["ui", "--port", "5999"], ["compare"]])
def test_a_database_needs_the_whole_of_mlflow(words: list[str], tmp_path: Path) -> None:
    done = command(*words, cwd=tmp_path, store=f"sqlite:///{tmp_path}/mlflow.db")
    assert done.returncode == 3
    assert "mlflow-skinny cannot open a database; pip install mlflow, or set MLFLOW_TRACKING_URI" in (
        done.stdout + done.stderr
    )
