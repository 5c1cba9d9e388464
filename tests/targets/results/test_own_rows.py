"""Rows of an earlier run, evaluated again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.records import Usage
from evaltrack.report.run.json_form import run_json
from tests.conftest import REPO
from tests.files import put

from .recordings import ask, ids, opened, texts, why_not


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Ten questions of the travel set, as `evaltrack run --output json` prints them, and their table."""
    folder = tmp_path_factory.mktemp("saved")
    lines = (REPO / "golden/travel.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    golden = put(folder / "travel.jsonl", "".join(lines[14:24]))
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    corpus = f"bm25:{REPO / 'golden/corpus/travel'}"
    made = run_eval(golden, target=corpus, judge="none", tracking_uri=uri, traces="off")
    return {"golden": golden, "uri": uri, "text": "".join(run_json(made)), "metrics": made.metrics, "folder": folder}


@pytest.mark.parametrize("form", ["whole.json", "rows.jsonl", "part.jsonl"])
def test_rows_of_a_run_score_as_they_did(saved: dict[str, Any], form: str) -> None:
    """The whole output, its rows one a line, and such lines with id, answer and sources alone."""
    rows = json.loads(saved["text"])["rows"]
    part = [{name: row[name] for name in ("id", "answer", "sources")} for row in rows]
    content = {"whole.json": saved["text"], "rows.jsonl": rows, "part.jsonl": part}[form]
    path = put(saved["folder"] / form, content)
    made = run_eval(saved["golden"], target=f"recorded:{path}", judge="none", tracking_uri=saved["uri"], traces="off")
    metrics = {name: value for name, value in saved["metrics"].items() if "seconds" not in name}
    assert {name: made.metrics[name] for name in metrics} == metrics
    assert any("rows without the whole texts" in note for note in made.notes) == (form != "part.jsonl")


def test_the_table_of_a_run_is_taken(saved: dict[str, Any]) -> None:
    """`per_question.parquet`, as it lies in the run's artifacts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from evaltrack.rows.arrow_schema import schema

    rows = json.loads(saved["text"])["rows"]
    shown = [{name: row.get(name) for name in schema().names} for row in rows]
    columns = [{name: None if isinstance(item, dict) else item for name, item in row.items()} for row in shown]
    pq.write_table(pa.Table.from_pylist(columns, schema=schema()), saved["folder"] / "per_question.parquet")
    target = opened(saved["folder"] / "per_question.parquet")
    row = rows[0]
    response = ask(target, row["id"], row["question"])
    assert response.answer == row["answer"]
    assert ids(response) == [source["chunk_id"] for source in row["sources"]]


def row(**more: Any) -> dict[str, Any]:
    """A row as `--output json` has it, as far as it is read."""
    return {"id": "1", "question": "q", "answer": "a", "retrieval_digest": None, "position": 0, **more}


def test_a_failed_row_fails_again_and_a_failed_judge_does_not(tmp_path: Path) -> None:
    """The target answered there."""
    failed = row(error="target_timeout: no response within 60 s", answer=None)
    target = opened(put(tmp_path / "r.json", {"rows": [failed]}))
    assert why_not(target, "1", "q").endswith("rows recorded: target_timeout: no response within 60 s")
    judged = row(error="judge_error: unreadable", abstained=False, prompt_tokens=1, completion_tokens=2, model="m")
    response = ask(opened(put(tmp_path / "r.json", {"rows": [judged]})), "1", "q")
    assert (response.answer, response.usage) == ("a", Usage(prompt_tokens=1, completion_tokens=2))
    assert response.model == "m"


def test_rows_of_trials(tmp_path: Path) -> None:
    """One trial is chosen."""
    rows = [row(trial=trial, answer=str(trial)) for trial in (1, 2)]
    path = put(tmp_path / "r.jsonl", rows)
    assert ask(opened(path, "trial=2"), "1", "q").answer == "2"


def test_what_only_rows_know_of_a_source_is_left_out(tmp_path: Path) -> None:
    """`finds` and the digest of the text; any other field is named as not read."""
    source = {"chunk_id": "c", "title": None, "text": "t", "text_digest": "x", "finds": ["p"]}
    lines = put(tmp_path / "lines.jsonl", [{"id": 1, "answer": "a", "sources": [source, "d"]}])
    response = ask(opened(lines), "1", "q")
    assert (ids(response), texts(response), response.unread) == (["c", "d"], ["t", None], ())
    more = put(tmp_path / "lines.jsonl", [{"id": 1, "answer": "a", "sources": [{**source, "rank": 1}]}])
    assert ask(opened(more), "1", "q").unread == ("sources.rank",)
