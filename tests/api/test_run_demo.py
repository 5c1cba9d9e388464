from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import evaltrack
from evaltrack import get_baseline, set_baseline
from evaltrack.api.run_several import demo_golden, run_demo
from evaltrack.cli import _run
from evaltrack.errors import UsageError
from tests.conftest import REPO, few_questions


def test_two_commands_show_a_regression(store_uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["run", "--demo"]) == 0
    shown = capsys.readouterr()
    assert "Before, chunks by heading; this run is the baseline:" in shown.out
    assert "See what the change broke: evaltrack compare\n" in shown.err
    assert _run(["compare"]) == 1
    assert "Regression: 1 question broke, 0 were fixed." in capsys.readouterr().out


def test_in_an_experiment_of_its_own(store_uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert _run(["run", "--demo", "--experiment", "a look", "--sample", "5", "--output", "json"]) == 0
    shown = capsys.readouterr()
    assert "evaltrack compare --experiment 'a look'" in shown.err
    assert get_baseline("travel", experiment="a look").reason == "evaltrack run --demo"
    assert _run(["run", "golden.jsonl", "--demo"]) == 2
    assert _run(["run", "--demo", "-t", "bm25:docs"]) == 2


def test_a_baseline_of_ones_own_stays(store_uri: str, tmp_path: Path) -> None:
    own = evaltrack.run_eval(few_questions(tmp_path, 3)).run_id
    set_baseline(own)
    with pytest.raises(UsageError, match="is not of the showcase; name another experiment with `experiment=demo`"):
        run_demo()
    assert get_baseline("travel").run_id == own
    whole = evaltrack.run_eval(demo_golden(), target=f"bm25:{demo_golden().parent / 'corpus/travel'}").run_id
    set_baseline(whole)
    with pytest.raises(UsageError, match="is not of the showcase"):
        run_demo()
    assert get_baseline("travel").run_id == whole


def test_the_wheel_brings_it(tmp_path: Path) -> None:
    build = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-c", build, str(tmp_path)]
    made = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    with zipfile.ZipFile(tmp_path / made.stdout.split()[-1]) as wheel:
        wheel.extractall(tmp_path / "site")
    site = tmp_path / "site/evaltrack"
    assert {path.name for path in (site / "showcase").iterdir()} == {"travel.jsonl", "corpus"}
    pages = {path.name: path.read_bytes() for path in (REPO / "golden/corpus/travel").iterdir()}
    assert {path.name: path.read_bytes() for path in (site / "showcase/corpus/travel").iterdir()} == pages
    assert (site / "api/project/sample/sample.jsonl").is_file()
    code = "from evaltrack.api.run_several import demo_golden; print(demo_golden())"
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert found.stdout.strip() == str(site / "showcase/travel.jsonl"), found.stderr
