"""What a person sees in MLflow's own UI, in a real headless Chromium against a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from evaltrack import run_eval
from evaltrack.tracking.store import connect

from .conftest import few_questions

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")


def page(url: str, folder: Path) -> str:
    """The document after its scripts ran. With EVALTRACK_SCREENSHOTS unset nothing else is kept."""
    command = [
        str(CHROMIUM),
        "--headless",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=2400,1400",
        "--virtual-time-budget=20000",
        f"--user-data-dir={folder}",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        "--dump-dom",
        url,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=90).stdout


@needs_browser
def test_two_runs_stand_side_by_side_question_by_question(server: str, tmp_path: Path) -> None:
    """*Evaluation runs > Compare* pairs the questions of k=3 and k=5; the table opens in the artifact view."""
    few = few_questions(tmp_path, 26)  # as many as MLflow shows without scrolling
    first = run_eval(few, k=3, tracking_uri=server, experiment="browser")
    second = run_eval(few, k=5, tracking_uri=server, experiment="browser")

    compared = page(
        connect(server).compare_link(first.experiment_id, second.run_id, first.run_id), tmp_path / "compare"
    )
    table = page(f"{second.link}/artifacts/per_question.json", tmp_path / "table")

    assert "travel bm25 k=3" in compared
    assert "travel bm25 k=5" in compared
    assert "What does it cost to check in a surfboard?" in compared
    assert "26 of 26" in compared
    assert "recall_at_k" in compared
    assert "View as table" in table
    assert "retrieved" in table
