"""What an earlier version wrote is read as before: `tests/earlier` holds the files of one of its runs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evaltrack import RunResult, compare_runs, run_eval
from evaltrack.api.compare_sides import side_of_table
from evaltrack.api.saved_side import side_of_file
from evaltrack.compare.engine import compare
from evaltrack.report.run.stored_summary import read_summary

from .conftest import REPO

EARLIER = REPO / "tests" / "earlier"


@pytest.fixture
def now(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    """The same evaluation by this version."""
    shutil.copytree(EARLIER, tmp_path / "set")
    monkeypatch.chdir(tmp_path / "set")
    return run_eval("small.jsonl", k=2, target="bm25:corpus/small?floor=0", traces="off", tracking_uri=store_uri)


def test_a_saved_run_is_a_baseline(now: RunResult, store_uri: str) -> None:
    """Nothing differs but what the earlier version did not say: the model."""
    made = compare_runs(now.run_id, baseline_file=EARLIER / "run.json", tracking_uri=store_uri)
    assert (made.verdict, made.count("identical"), made.num_common) == ("ok", 3, 3)
    assert {metric.delta for metric in made.metrics} == {0}


def test_stored_rows_are_a_side() -> None:
    """Columns that the table did not have are empty; the scores are those of the saved run."""
    saved = side_of_file(EARLIER / "run.json")
    stored = side_of_table(replace(saved.info, run_id="earlier"), EARLIER / "per_question.parquet")
    assert compare(saved, stored).count("identical") == 3
    assert {row.model for row in stored.rows({"1", "2", "3"}).values()} == {None}


def test_a_stored_summary_is_read() -> None:
    """As `evaltrack report` does."""
    summary = read_summary(EARLIER / "summary.json", "earlier")
    assert (summary.status, summary.signature.model) == ("FINISHED", "")
