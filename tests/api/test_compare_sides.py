from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from evaltrack.api.compare_sides import side_of_file, side_of_table
from evaltrack.errors import UsageError
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response, Signature, Source
from evaltrack.records.row import row_of
from evaltrack.records.run import Run
from evaltrack.report.html.question_parts import ScoreScope, numbers
from evaltrack.report.run_text import RUN_SCHEMA
from evaltrack.tracking.rows import TableWriter, columns_of
from tests.files import data


def saved(**other: Any) -> dict[str, Any]:
    """A saved run of two questions, with other fields where they are given."""
    rows = [
        row_of(
            Question(id=str(number), question="Why?", domain="d", expected_chunks=("a",)),
            Response(answer="x", sources=(Source(chunk_id="a"),)),
            5,
            position=number,
            scores={"recall_at_k": 1.0, "reciprocal_rank": 1.0, "hit": 1.0},
            passed=True,
            seconds=1,
        )
        for number in range(2)
    ]
    lines = "".join(f"{row.id}\t{row.digest}\n" for row in rows)
    signature = {"golden": "g", "golden_digest": sha256(lines.encode()).hexdigest(), "k": 5, "target": "t"}
    parts: dict[str, Any] = {name: {} for name in ("metrics", "counts", "groups", "by_judge", "cost_usd", "settings")}
    parts |= {"target_seconds": {}, "criteria": [], "notes": [], "aims": [], "status": "FINISHED"}
    parts |= {"run_id": "r", "experiment_id": "0", "totals": {"num_questions": 2, "num_errors": 0}}
    rows_of_it = list(map(columns_of, rows))
    return {"schema": RUN_SCHEMA, "signature": signature, "rows": rows_of_it, **parts, **other}


def write(folder: Path, content: object) -> Path:
    path = folder / "baseline.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_saved_run(tmp_path: Path) -> None:
    side = side_of_file(write(tmp_path, saved()), tmp_path)
    assert (side.info.num_questions, side.info.num_errors) == (2, 0)
    assert side.rows(["1", "7"], ()).keys() == {"1"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"totals": {"num_questions": 63, "num_errors": 0}},
            ".*it holds 2 rows, and the run says that it asked 63 questions",
        ),
        (
            {"rows": [saved()["rows"][0] | {"error": "target_error: down", "passed": None}, saved()["rows"][1]]},
            ".*1 row ended in errors, and the run counts 0",
        ),
        ({"metrics": {"recall_at_k": 0.123}}, ".*the mean of its rows is not the run's recall_at_k"),
        ({"status": "FAILED"}, "its run is FAILED, and only a FINISHED one is a baseline"),
        (
            {"rows": [*saved()["rows"], saved()["rows"][0]], "totals": {"num_questions": 3, "num_errors": 0}},
            ".*several rows have one id: `0`",
        ),
        (
            {"rows": saved()["rows"][1:], "totals": {"num_questions": 1, "num_errors": 0}},
            r"its questions are not those of the golden set that it names \(`golden_digest`\)",
        ),
    ],
)
def test_a_saved_run_whose_rows_are_others_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"is damaged(, or was not written by evaltrack)?: {message}.*; save it again"):
        side_of_file(write(tmp_path, saved(**changes)), tmp_path)


@pytest.mark.parametrize(("columns", "due"), data("api.json")["a_row_passes_as_its_scores_say"])
def test_a_row_passes_as_its_scores_say(tmp_path: Path, columns: dict[str, Any], due: bool | None) -> None:
    rows = [{**row, **columns, "passed": due} for row in saved()["rows"]]
    parts = {"totals": {"num_questions": 2, "num_errors": 2 * ("error" in columns)}, "settings": {"trials": "4"}}
    side_of_file(write(tmp_path, saved(rows=rows, **parts)), tmp_path)
    others = [{**row, "passed": not due} for row in rows]
    with pytest.raises(UsageError) as refused:
        side_of_file(write(tmp_path, saved(rows=others, **parts)), tmp_path)
    said = f"`passed` is {json.dumps(not due)}, and by its scores {json.dumps(due)}"
    assert f"is damaged: `0`: {said}\n`1`: {said}; save it again" in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        '{"a":' * 100_000,
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        {},
        {"schema": RUN_SCHEMA},
        saved(schema="evaltrack.run/2"),
        saved(rows=5),
        saved(rows={"id": 1}),
        saved(rows=[5]),
        saved(rows=[{}]),
        saved(rows=[{"id": []}]),
        saved(rows=[{"id": 10**400}]),
        saved(rows=[{"id": "1", "position": 10**400}]),
        saved(rows=[{"id": "1", "unmeasured": 5, "position": "x"}]),
        saved(totals=[]),
        saved(totals={"num_questions": "5"}),
        saved(totals={"num_errors": [1]}),
        saved(totals={"num_errors": -1}),
        saved(signature=[]),
        saved(metrics=[]),
    ],
    ids=lambda content: str(content)[:40],
)
def test_what_is_no_saved_run(tmp_path: Path, content: object) -> None:
    path = write(tmp_path, content)
    with pytest.raises(UsageError) as caught:
        side_of_file(path, tmp_path)
    assert str(caught.value).startswith(f"{path}: is ")


def test_a_file_of_several_sets_or_one_that_was_cut_off_says_so(tmp_path: Path) -> None:
    sets = write(tmp_path, {"schema": "evaltrack.runs/1", "sets": [saved(), saved()]})
    with pytest.raises(UsageError, match=r"holds the runs of several golden sets; save each set in its own file"):
        side_of_file(sets, tmp_path)
    cut = write(tmp_path, json.dumps(saved(), indent=2)[:-100])
    with pytest.raises(
        UsageError, match=r"is damaged or of another version: Invalid JSON: EOF while parsing .*; save it again"
    ):
        side_of_file(cut, tmp_path)


def test_an_identical_question_has_the_rank_of_the_passage_that_counted(tmp_path: Path) -> None:
    asked = Question.model_validate(
        {
            "id": "1",
            "question": "How long?",
            "domain": "d",
            "expected_passages": [{"any_of": ["a", "b"]}, {"quote": "thirty days"}],
        }
    )
    sources = (Source(chunk_id="x", text="other"), Source(chunk_id="b", text="b"), Source(chunk_id="c", text="b"))
    response = Response(answer="x", sources=sources)
    made = measure(asked, response, Rules(3), ())
    row = row_of(asked, response, 3, made.finds, scores=made.scores, passed=made.passed, duplicates=made.duplicates)
    writer = TableWriter(tmp_path / "rows.parquet")
    writer.add(row)
    writer.close()
    info = Run("r", "r", Signature(golden="g", golden_digest="0", k=3, target="t"), num_questions=1)
    side = side_of_table(info, tmp_path / "rows.parquet")
    brief = side.rows({"1"}, ())["1"]
    assert made.scores["hit"] == 1
    assert numbers(brief, brief, ScoreScope(3))["ranks"] == [2, 2]
