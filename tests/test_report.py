"""Renderings of a run: the words, and foreign text as text."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from evaltrack.records import Failure, Question, Response, Row, Signature, Source, ToolCall
from evaltrack.report.machine import run_json
from evaltrack.report.markdown import plain, run_note
from evaltrack.report.terminal import print_run
from evaltrack.report.words import low_metrics, missed_words, one_line
from evaltrack.result import RunResult

EVIL = "<script>alert(1)</script> [x](javascript:alert(1)) \x1b[31mred\u202egnp.exe | a `b` **c**\nnext"


def row(position: int, text: str = "what?", **fields: object) -> Row:
    """A row with defaults that matter to no test."""
    question = Question.model_validate({"id": position, "question": text, "domain": "d", "expected_chunks": ["a#b"]})
    return Row.model_validate({"position": position, "question": question, "started_at": 0, "seconds": 0, **fields})


def result(**fields: object) -> RunResult:
    """A result with two metrics and no rows."""
    made = RunResult(
        run_id="r",
        experiment_id="0",
        status="FINISHED",
        signature=Signature(golden="set", golden_digest="0", k=5, target="bm25:docs"),
        metrics={"recall_at_k": 0.5, "precision_at_k": 0.1, "precision_at_k.max": 0.2},
        counts={"recall_at_k": 4, "precision_at_k": 4, "precision_at_k.max": 4},
        totals={"num_questions": 5, "num_measured": 5, "num_errors": 0, "num_negatives": 1, "duplicates": 0},
        groups={"d": {"recall_at_k": (0.5, 4)}, "easy": {"recall_at_k": (1.0, 1)}},
        seconds={"target_seconds.mean": 0.1, "target_seconds.p95": 0.2},
        errors=(),
        missed=(),
        link="http://127.0.0.1:5000/#/experiments/0/runs/r",
        serve_command="mlflow server --backend-store-uri sqlite:///mlflow.db",
        read_rows=lambda: [],
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def shown(of: RunResult) -> str:
    """What a terminal without colours shows."""
    out = io.StringIO()
    print_run(of, Console(file=out, width=100))
    return out.getvalue()


def test_every_mean_stands_beside_its_count() -> None:
    """On the terminal and in the note, precision beside what it can reach."""
    assert "Recall@5              0.500          4" in shown(result())
    assert "0.100 of 0.200" in shown(result())
    assert "| Recall@5 | 0.500 | 4 |" in run_note(result())
    assert "| Precision@5 | 0.100 (at most 0.200) | 4 |" in run_note(result())


def test_groups_are_capped_in_the_metrics_and_whole_in_the_summary() -> None:
    """MLflow gets the largest groups, as many as fit; `summary.json` has all."""
    groups = {f"domain {i}": {"recall_at_k": (0.5, 4)} for i in range(100)}
    made = result(groups=groups)

    assert len(made.logged_metrics(limit=20)) <= 20
    assert made.logged_metrics()["recall_at_k.domain 0.n"] == 4
    assert len(json.loads("".join(run_json(made)))["groups"]) == 100


@pytest.mark.parametrize("render", [shown, run_note])
def test_failures_are_loud(render: object) -> None:
    """How many questions failed, and that they are in no mean, is said in words."""
    failed = row(3, failure=Failure(kind="target_error", message="no route"))
    made = result(errors=(failed,), totals={**result().totals, "num_errors": 1})
    text = render(made)  # type: ignore[operator]
    assert "failed and are in no mean" in text
    assert "no route" in text


def test_foreign_text_is_text() -> None:
    """Markup, links, escapes and marks that reorder text do nothing in terminal and Markdown."""
    made = result(missed=(row(1, EVIL, response=Response(sources=()), passed=False),))

    note, terminal = run_note(made), shown(made)
    for character in "\x1b\u202e":
        assert character not in note + terminal
    assert "<script" not in note
    assert "](javascript" not in note
    assert "`b`" not in note.replace("\\`", "")
    assert len(plain("word " * 1000)) <= 161
    assert plain("a|b_c") == r"a\|b\_c"


def test_one_word_of_a_megabyte_stays_short() -> None:
    """Long texts are cut with an ellipsis."""
    assert one_line("x" * 1_000_000) == "x" * 159 + "…"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (row(1, response=Response(sources=(Source(chunk_id="x"),))), "not in the first 5: a#b"),
        (row(1, response=Response(sources=())), "declined, but has an answer"),
    ],
)
def test_a_miss_is_explained(made: Row, words: str) -> None:
    """What was expected and what came instead."""
    assert missed_words(made, 5) == words


def test_a_negative_that_was_answered_and_a_tool_that_was_not_called_are_explained() -> None:
    """Both have words of their own."""
    negative = Question(id="n", question="?", domain="d", expected_chunks=())
    tools = Question(id="t", question="?", domain="d", expected_chunks=("a",), expected_tools=("search", "page"))
    called = Response(sources=(Source(chunk_id="a"),), tool_calls=(ToolCall(name="search"),))
    base = {"position": 0, "started_at": 0, "seconds": 0, "response": called}

    assert missed_words(Row.model_validate({**base, "question": negative}), 5) == "answered, but should have declined"
    assert (
        missed_words(Row.model_validate({**base, "question": tools, "scores": {"hit": 1.0}}), 5) == "not called: page"
    )


def test_hints_come_only_where_the_good_value_can_be_reached() -> None:
    """A precision that cannot exceed 0.2 is not called low."""
    low = {"recall_at_k": 0.8, "precision_at_k": 0.1, "precision_at_k.max": 0.2, "mrr": 0.71}
    assert [hint.partition(" ")[0] for hint in low_metrics(low, 5)] == ["Recall@5"]
