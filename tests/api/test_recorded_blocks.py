"""A run of recorded responses, in blocks and one by one: the run in MLflow is the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import RunResult, run_eval
from evaltrack.evaluation import plan
from evaltrack.records import Row

SIZE = 300
OF_THE_CLOCK = ("started_at", "seconds", "trace_id", "root_span_id")


class Rows:
    """A progress of one's own, which takes the rows one by one."""

    def __init__(self) -> None:
        self.taken: list[Row] = []

    def start(self, total: int) -> None:
        """Nothing is done."""

    def note(self, phrase: str, done: int, total: int) -> None:
        """Nothing is said."""

    def warn(self, text: str) -> None:
        """Nothing is said."""

    def advance(self, row: Row) -> None:
        """Take one."""
        self.taken.append(row)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A golden set and recorded responses, of which one is missing and some are odd."""
    with (tmp_path / "set.jsonl").open("w") as golden, (tmp_path / "app.jsonl").open("w") as app:
        for number in range(SIZE):
            asked = {"id": f"{number:03}", "question": f"What is {number}?", "domain": f"d{number % 3}"}
            expected: dict[str, Any] = {"expected_chunks": [] if number % 50 == 0 else [f"c{number % 6}"]}
            print(json.dumps(asked | expected), file=golden)
            sources = [{"chunk_id": f"c{rank}", "title": f"T{rank}", "text": f"Text {rank}."} for rank in range(4)]
            answered = {"id": f"{number:03}", "answer": f"It is {number}.", "sources": sources if number % 40 else []}
            odd = {"error": "down", "id": f"{number:03}"} if number % 99 == 98 else answered
            if number != 77:
                print(json.dumps(odd), file=app)
    return tmp_path


def evaluated(folder: Path, uri: str, progress: Any = None) -> tuple[RunResult, dict[str, Any]]:
    """The run, and what of it must be the same."""
    target = f"recorded:{folder / 'app.jsonl'}"
    result = run_eval(folder / "set.jsonl", k=3, target=target, tracking_uri=uri, traces="off", progress=progress)
    rows = [{name: value for name, value in row.items() if name not in OF_THE_CLOCK} for row in result.rows]
    metrics = mlflow.MlflowClient(uri).get_run(result.run_id).data.metrics
    metrics = {name: value for name, value in metrics.items() if "seconds" not in name}
    shown = [(row.question.id, row.passed, row.scores) for row in (*result.errors, *result.missed)]
    same = {"rows": rows, "metrics": metrics, "shown": shown, "notes": result.notes, "groups": result.groups}
    return result, same | {"totals": result.totals, "counts": result.counts}


def test_the_run_is_the_same_in_blocks(folder: Path, store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row, metric, count and note."""
    result, in_blocks = evaluated(folder, store_uri)
    monkeypatch.setattr(plan, "makes_blocks", lambda _: False)
    assert evaluated(folder, store_uri)[1] == in_blocks
    assert (result.totals["num_questions"], result.totals["num_errors"]) == (SIZE, 4)


def test_a_progress_of_ones_own_has_each_row(folder: Path, store_uri: str) -> None:
    """Also where rows come in blocks."""
    progress = Rows()
    result, _ = evaluated(folder, store_uri, progress)
    assert [row.position for row in progress.taken] == list(range(SIZE))
    assert [row.question.id for row in progress.taken] == [row["id"] for row in result.rows]
    assert sum(row.failure is not None for row in progress.taken) == 4
