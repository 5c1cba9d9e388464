"""Renderings of a run: the words, the files, and foreign text as text."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evaltrack.evaluation.result import METRICS, RunResult
from evaltrack.judges.recorded import NotJudgedError, RecordedJudge
from evaltrack.metrics.criteria import Checked, Criterion
from evaltrack.records import Failure, Question, Response, Row, Signature, Source, Usage, Verdict
from evaltrack.records.row import question_of, response_of, row_of
from evaltrack.report import run_text
from evaltrack.report.comparison_files import SHOWN
from evaltrack.report.run_text import (
    NOTE_LIMIT,
    OUTCOME_COLUMNS,
    RESULT_COLUMNS,
    evaluation_json,
    outcomes_json,
    print_run,
    reasoning_page,
    run_json,
    run_note,
    verdict_lines,
)
from evaltrack.report.templates import say
from evaltrack.report.words import METRIC_TITLES, metric_title, number
from evaltrack.tracking.rows import TableWriter, columns_of, read_table, stored_rows
from evaltrack.tracking.writer import TABLE_ROWS
from tests.compared import measured
from tests.conftest import REPO
from tests.files import check_rendering, data
from tests.rows_file import rich_rows, written

CASES = data("report.json")


def row(position: int, text: str = "what?", **fields: Any) -> Row:
    question = Question.model_validate({"id": position, "question": text, "domain": "d", "expected_chunks": ["a#b"]})
    failure = fields.pop("failure", None)
    outcome = failure if failure and failure.kind != "judge_error" else fields.pop("response", Response())
    return row_of(question, outcome, 5, position=position, **{"error": str(failure) if failure else None, **fields})


def result(**fields: object) -> RunResult:
    made = RunResult(
        run_id="r",
        experiment_id="0",
        status="FINISHED",
        signature=Signature(golden="set", golden_digest="0", k=5, target="bm25:docs"),
        metrics={"recall_at_k": 0.5, "precision_at_k": 0.1, "precision_at_k.max": 0.2},
        counts={"recall_at_k": 4, "precision_at_k": 4, "precision_at_k.max": 4},
        totals={
            "num_questions": 5,
            "num_measured": 5,
            "num_errors": 0,
            "num_negatives": 1,
            "duplicates": 0,
            "total_tokens": 0,
            "num_judged": 0,
            "judge_errors": 0,
            "judge_tokens": 0,
            "cached_verdicts": 0,
        },
        groups={"d": {"recall_at_k": (0.5, 4)}, "easy": {"recall_at_k": (1.0, 1)}},
        seconds={"target_seconds.mean": 0.1, "target_seconds.p95": 0.2},
        by_judge={},
        cost_usd={},
        criteria=(),
        notes=(),
        errors=(),
        missed=(),
        link="http://127.0.0.1:5000/#/experiments/0/runs/r",
        serve_command="mlflow server --backend-store-uri sqlite:///mlflow.db",
        read_table=lambda: [],
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def judged_by(judge: str, **totals: int) -> RunResult:
    return result(
        signature=result().signature.model_copy(update={"judge": judge}), totals={**result().totals, **totals}
    )


def shown(of: RunResult) -> str:
    out = io.StringIO()
    print_run(of, Console(file=out, width=100))
    return out.getvalue()


def rich() -> RunResult:
    means = {"pass_rate": 0.75, "recall_at_k": 0.5, "precision_at_k": 0.1, "judge_score": 0.8, "combined_score": 0.4956}
    metrics = means | {"combined_score_best": 1.2, "precision_at_k.max": 0.2}
    failed = tuple(row(place, failure=Failure(kind="target_error", message="no route")) for place in (3, 4, 6))
    return replace(
        judged_by("openai:m", num_judged=5, judge_tokens=700, cached_verdicts=1, num_errors=3),
        metrics=metrics,
        counts=dict.fromkeys(metrics, 4),
        criteria=tuple(
            Checked(Criterion("recall_at_k", ">=", 0.8), value, met)
            for met, value in ((True, 0.9), (False, 0.5), (None, None))
        ),
        by_judge={"openai:m": (0.5, 4)},
        notes=("the server refused temperature",),
        cost_usd={"judge": 0.01},
        missed=(row(1, "Where?", passed=False, response=Response(sources=())),),
        errors=failed,
        read_table=lambda: [columns_of(each) for each in (row(1, "Où?", unmeasured={"hit": "é"}), failed[0])],
    )


def machine(of: RunResult) -> str:
    return json.dumps(json.loads("".join(run_json(of))), indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    ("render", "name"),
    [(shown, "run.txt"), (run_note, "run.md"), (machine, "run.json")],
)
def test_a_run_is_rendered_to_the_letter(render: Callable[[RunResult], str], name: str) -> None:
    check_rendering(name, render(rich()))


def rows_of(count: int, kind: str = "") -> tuple[Row, ...]:
    """Rows that failed in this way, or that did not pass."""
    texts = [f"number {letter}?" for letter in "abcdefghijk"[:count]]
    failures = [Failure(kind=kind, message=f"down {text}") if kind else None for text in texts]  # type: ignore[arg-type]
    return tuple(
        row(place, text, passed=None if kind else False, failure=failure)
        for place, (text, failure) in enumerate(zip(texts, failures, strict=True))
    )


def counting(fields: dict[str, Any] | None = None, **totals: int) -> RunResult:
    return result(**{**(fields or {}), "totals": {**result().totals, **totals}})


def low(target: str, **metrics: float) -> RunResult:
    means = {"recall_at_k": 0.8, "precision_at_k": 0.1, "precision_at_k.max": 0.2, "mrr": 0.71, **metrics}
    signature = result().signature.model_copy(update={"target": target})
    return result(metrics=means, counts=dict.fromkeys(means, 4), signature=signature)


def passing(share: float, count: int) -> RunResult:
    return result(metrics={"pass_rate": share}, counts={"pass_rate": count})


JUDGE_FAILED = {"errors": rows_of(1, "judge_error")}
DOMAINS = {f"d{place:02}": {"pass_rate": (1 - place / 100, 4)} for place in range(30)}
VARIANTS: dict[str, RunResult] = {
    "interrupted": result(status="KILLED"),
    "nothing measured": result(metrics={}, counts={}, groups={}, serve_command=None),
    "low recall of words": low("bm25:docs"),
    "low recall of embeddings": low("python:app:ask"),
    "half declined by words": low("bm25:docs", false_abstention_rate=0.5),
    "half declined by embeddings": low("python:app:ask", false_abstention_rate=0.5),
    "three of four passed": passing(0.75, 4),
    "one of five passed": passing(0.2, 5),
    "nobody judged yet": judged_by("openai:m"),
    "judged": judged_by("openai:m", num_judged=4, judge_tokens=12345),
    "judged in part": judged_by("openai:m", num_judged=4, cached_verdicts=3, judge_errors=1, judge_tokens=9),
    "the judge failed on one": counting(JUDGE_FAILED, num_errors=1, judge_errors=1),
    "the judge failed on all": counting(JUDGE_FAILED, num_errors=5, judge_errors=5),
    "the target failed on one and the judge on the rest": counting(JUDGE_FAILED, num_errors=5, judge_errors=4),
    "a group that measured something else": result(groups={"d": {"mrr": (0.5, 4)}, "e": {"recall_at_k": (1.0, 1)}}),
    "a group that measured nothing": result(groups={"d": {"pass_rate": (0.5, 4)}, "e": {"num_tokens": (1.0, 1)}}),
    "many domains": result(groups={**DOMAINS, "easy": {"pass_rate": (0.0, 1)}}),
    "eleven did not pass": counting({"missed": rows_of(11)}, num_questions=11),
    "eleven failed": counting({"errors": rows_of(11, "target_error")}, num_questions=11, num_errors=11),
    "some of many errors": counting({"errors": rows_of(2, "target_error")}, num_questions=70, num_errors=70),
    "too large for a table": counting({"missed": rows_of(SHOWN + 1)}, num_questions=TABLE_ROWS + 1),
}


def new_lines(render: Callable[[RunResult], str], made: RunResult) -> list[str]:
    """The lines by which a rendering differs from that of a plain run."""
    lines = unified_diff(render(result()).splitlines(), render(made).splitlines(), n=0, lineterm="")
    return [line.rstrip() for line in lines if not line.startswith(("@@", "---", "+++"))]


def test_what_runs_say_that_others_do_not_is_rendered_to_the_letter() -> None:
    parts = [f"# plain\n\n{shown(result())}\n{run_note(result())}"]
    for name, made in VARIANTS.items():
        parts.append("\n".join([f"\n# {name}\n", *new_lines(shown, made), "", *new_lines(run_note, made), ""]))
    check_rendering("run-variants.txt", "".join(parts))


def test_every_metric_has_a_name_for_people() -> None:
    assert set(METRIC_TITLES) == METRICS | {"combined_score_best"}
    assert [metric_title(name, 7) for name in ("recall_at_k", "mrr", "other")] == ["Recall@7", "MRR", "other"]


@pytest.mark.parametrize(("value", "words"), CASES["numbers_are_short"])
def test_numbers_are_short(value: float, words: str) -> None:
    assert number(value) == words


def test_many_rows_are_printed_in_pieces_that_make_one_object() -> None:
    rows = [columns_of(row(number)) for number in range(100)]
    text = "".join(run_json(result(read_table=lambda: rows)))
    assert [each["id"] for each in json.loads(text)["rows"]] == [each["id"] for each in rows]
    assert len(text.splitlines()) == 1 + len(rows)


# evaluation.json


SAMPLE = (REPO / "tests/data/evaluation.json").read_text()
"""The documented output format, with one of its results."""


def evaluation(made: RunResult, rows: Sequence[Row] = ()) -> dict[str, Any]:
    pieces = list(evaluation_json(made, "evals/ground_truth.json", [columns_of(each) for each in rows]))
    assert len(pieces) == 2 + len(rows)
    found: dict[str, Any] = json.loads("".join(pieces))
    return found


def test_evaluation_json_needs_few_columns(tmp_path: Path) -> None:
    path = written(rich_rows(), tmp_path / "rows.parquet")
    few, every = (
        json.loads("".join(evaluation_json(result(), "golden.jsonl", read_table(path, columns))))["results"]
        for columns in (RESULT_COLUMNS, None)
    )
    assert few == every
    assert (few[0]["num_tokens"], few[0]["judge_score"], few[4]["error"]) == (70, 0.75, "target_error: boom")


def test_outcomes_are_columns_without_scores_that_nobody_measured(tmp_path: Path) -> None:
    path = written(rich_rows(), tmp_path / "rows.parquet")
    held = json.loads(outcomes_json(read_table(path, OUTCOME_COLUMNS)))
    assert held["id"] == ["ids", "titles", "passages", "negative", "failed", "unmeasured", "trials"]
    assert held["digest"][0] == "0" * 12
    assert held["outcome"] == ["pass", "fail", "pass", "pass", "error", "not measured", "pass"]
    assert list(held["scores"]) == ["recall_at_k", "reciprocal_rank", "overall_score"]
    assert held["scores"]["recall_at_k"][3:5] == [None, None]
    few = [{"id": f"question-{n}", "digest": "0" * 64, "error": None, "passed": True} for n in range(10_000)]
    assert len(outcomes_json([each | {"recall_at_k": 1 / 3, "reciprocal_rank": 0.5} for each in few])) < 700_000


def sampled() -> tuple[RunResult, Row]:
    metrics = {
        "hit_rate": 0.95,
        "mrr": 0.88,
        "judge_score": 0.83,
        "combined_score": 1.35,
        "combined_score_best": 1.42,
        "num_tokens": 2500.0,
    }
    made = replace(
        judged_by("openai:gpt-4o", num_questions=20, total_tokens=50000),
        metrics=metrics,
        counts=dict.fromkeys(metrics, 20),
    )
    scores = {"hit": 1.0, "reciprocal_rank": 1.0, "overall_score": 0.85, "num_tokens": 2500, "combined_score": 1.42}
    return made, row(0, "What factors influence customer behavior?", scores=scores)


def test_evaluation_json_is_that_of_the_seed_field_for_field() -> None:
    made, question = sampled()
    sample, found = json.loads(SAMPLE), evaluation(made, [question])
    told = found["metadata"]
    assert (told.pop("target"), told.pop("mlflow_run_id")) == ("bm25:docs", "r")
    written = datetime.fromisoformat(found["timestamp"])
    assert abs(datetime.now(UTC) - written) < timedelta(minutes=1)
    sample["timestamp"] = found["timestamp"]
    assert found == sample
    assert json.dumps(found) == json.dumps(sample).replace(": 2500,", ": 2500.0,", 1)


def test_evaluation_json_has_nulls_where_nothing_was_measured() -> None:
    failed = row(1, "Why?", failure=Failure(kind="target_error", message="no route"))
    measured = result(metrics={"mrr": 0.0}, counts={"mrr": 1})
    found = evaluation(measured, [row(0, scores={"reciprocal_rank": 0.0}), failed])
    assert {name: value for name, value in found["summary"].items() if value is not None} == {
        "avg_mrr": 0.0,
        "total_tokens": 0,
    }
    assert len(found["summary"]) == 7
    assert evaluation(measured)["results"] == []
    nothing = {"hit_rate": None, "mrr": None, "judge_score": None, "num_tokens": None, "combined_score": None}
    assert found["metadata"]["judge_model"] is None
    assert found["results"] == [
        {"question": "what?", **nothing, "mrr": 0.0},
        {"question": "Why?", **nothing, "error": "target_error: no route"},
    ]


@pytest.mark.parametrize(("judge", "model"), CASES["the_judge_model_of_evaluation_json"])
def test_the_judge_model_of_evaluation_json(judge: str, model: str | None) -> None:
    assert evaluation(judged_by(judge))["metadata"]["judge_model"] == model


def test_evaluation_json_keeps_every_letter() -> None:
    made = row(0, 'Où "ça"?\n😀', scores={"num_tokens": 2500.0})
    text = "".join(evaluation_json(result(), "Prüfung.json", [columns_of(made)]))
    assert '"num_tokens":2500,' in text
    assert "Prüfung.json" in text
    assert json.loads(text)["results"][0]["question"] == 'Où "ça"?\n😀'


# What the judges said


def judged(
    key: str,
    *overall: float,
    negative: bool = False,
    declined: bool | None = None,
    text: str = "Because.",
    **fields: Any,
) -> Row:
    asked = Question(id=key, question=f"Question {key}?", domain="d", expected_chunks=() if negative else ("a",))
    used = Usage(prompt_tokens=30, completion_tokens=4)
    said: list[dict[str, Any]] = [
        {"overall_score": value, "accuracy": value, "completeness": 0.5, "relevance": 1, "declined": declined}
        for value in overall
    ] or [{"declined": declined}]
    verdicts = tuple(
        Verdict(judge=f"j{place}" if len(said) > 1 else "j", reasoning=text, usage=used, cached=True, **each)
        for place, each in enumerate(said)
    )
    answer = Response(answer="Paris.", sources=(Source(chunk_id="a"),))
    return measured(fields.pop("asked", asked), fields.pop("answer", answer), verdicts, **fields)


def stored(folder: Path, *rows: Row) -> list[Row]:
    writer = TableWriter(folder / "rows.parquet")
    for position, each in enumerate(rows):
        writer.add(each.model_copy(update={"position": position}))
    writer.close()
    return list(stored_rows(folder / "rows.parquet"))


def page(*rows: Row) -> str:
    return "".join(reasoning_page(rows))


def said() -> str:
    """Judge errors, then what did not pass, the worst first, then the rest; no question without a verdict."""
    error = Failure(kind="judge_error", message="no JSON; it wrote: 'I think'")
    asked = Question(id="good", question="Where?", domain="d", expected_chunks=("a",), expected_answer="In Paris.")
    return page(
        judged("good", 0.9, asked=asked),
        judged("fair", 0.8, answer=Response(sources=())),
        judged("poor", 0.7, 0.6),
        judged("declined", negative=True, declined=True),
        judged("bad", 0.1, declined=False),
        judged("answered", negative=True, declined=False),
        judged("broken", 0.9, error=str(error), passed=None, scores={}),
        row(7, "unreadable", failure=error).model_copy(update={"id": "silent", "question": "Question silent?"}),
        row(8, "not judged", response=Response(answer="x")),
        row(9, "no answer", failure=Failure(kind="target_error", message="gone")),
    )


def test_what_the_judges_said_is_rendered_to_the_letter() -> None:
    check_rendering("reasoning.md", said())


def test_verdicts_can_be_read_back(tmp_path: Path) -> None:
    """Numbers, words and judge are equal; the cost is left out, as reading costs nothing."""
    rows = [
        judged("1", 0.85, text='Là: “ça va”.\n"Next" line.'),
        judged("07", 0.0),
        judged("n", negative=True, declined=False),
        judged("m", negative=True, declined=True),
        row(5, response=Response(answer="Not judged.")),
        row(6, failure=Failure(kind="target_error", message="gone")),
    ]
    (tmp_path / "verdicts.jsonl").write_text("".join(verdict_lines(stored(tmp_path, *rows))))
    again = RecordedJudge(tmp_path / "verdicts.jsonl")
    assert again.name == "j"
    assert len((tmp_path / "verdicts.jsonl").read_text().splitlines()) == 4
    for each in rows[:4]:
        given = each.verdicts[0].model_copy(update={"usage": None, "cached": False})
        assert asyncio.run(again(question_of(each), response_of(each))) == given
        with pytest.raises(NotJudgedError, match="is for a different answer; judge this answer again"):
            asyncio.run(again(question_of(each), Response(answer="Other.")))


def test_each_judge_of_a_panel_can_be_read_back(tmp_path: Path) -> None:
    lines = list(verdict_lines(stored(tmp_path, judged("1", 0.5, 1.0), judged("2", 0.25, 0.75))))
    assert [(json.loads(line)["id"], json.loads(line)["judge"]) for line in lines] == [
        *(("1", "j0"), ("1", "j1"), ("2", "j0"), ("2", "j1"))
    ]
    path = tmp_path / "one.jsonl"
    path.write_text("".join(line for line in lines if json.loads(line)["judge"] == "j1"))
    second = judged("2", 1.0)
    assert asyncio.run(RecordedJudge(path)(question_of(second), response_of(second))).overall_score == 0.75


def test_a_long_page_is_cut() -> None:
    many = run_text.PAGE + 7
    text = page(*(judged(str(place), place / many) for place in range(many)))
    assert text.startswith(f"# What the judge said\n\n{many} questions, ")
    assert text.count("\n## ") == run_text.PAGE
    assert text.endswith("\n7 more in `verdicts.jsonl`.\n")
    assert "\n## 0: " in text
    assert f"\n## {many - 1}: " not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_fits_a_screen(terminal: bool) -> None:
    failed = tuple(row(place, failure=Failure(kind="target_error", message=f"{place} " * 90)) for place in range(12))
    missed = tuple(row(place, "Why? " * 60, passed=False, response=Response(sources=())) for place in range(12))
    means = dict.fromkeys(("pass_rate", "recall_at_k", "mrr", "hit_rate", "ndcg_at_k", "negative_pass_rate"), 0.5)
    made = result(
        metrics=means,
        counts=dict.fromkeys(means, 4),
        groups={f"d{place}": {"pass_rate": (0.5, 4)} for place in range(30)},
        notes=("one " * 60, "two"),
        missed=missed,
        errors=failed,
        totals={**result().totals, "num_errors": 12},
    )
    out = io.StringIO()
    print_run(made, Console(file=out, width=100, force_terminal=terminal, color_system=None))
    lines = out.getvalue().splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100
    assert "Failed questions (first 1; the run's per_question table has all):" in lines
    assert "… and 1 more note; the report holds them all" in lines


def test_a_result_tells_what_it_is() -> None:
    reads: list[int] = []
    made = result(read_table=lambda: reads.append(1) or [], totals={**result().totals, "num_errors": 1})
    assert [result(status=status).success for status in ("FINISHED", "FAILED", "KILLED")] == [True, False, False]
    assert (made.data["recall_at_k"], made.data["num_questions"]) == (0.5, 5)
    assert (made.coverage, result().coverage) == (0.8, 1)
    assert result(totals={**result().totals, "num_questions": 0}).coverage == 0
    assert made.rows is made.rows
    assert reads == [1]


@pytest.mark.parametrize(("errors", "by_judge", "why"), CASES["why_nothing_was_measured"])
def test_why_nothing_was_measured(errors: int, by_judge: int, why: str) -> None:
    totals = {**result().totals, "num_errors": errors, "judge_errors": by_judge}
    assert result(totals=totals).why_nothing == f"no question passed or failed: {why}"


@pytest.mark.parametrize(("gap", "points", "bands"), [(1, 10, "1 band"), (2, 25, "2 bands")])
def test_a_penalty_says_what_it_is_for(gap: int, points: int, bands: str) -> None:
    row = Row(id="a", scores={"reasoning_score": 49.0}, tier=1, coupling_gap=gap, penalty=points)
    words = f"−{points} points: it claims {bands} more confidence than it earned"
    assert say.failed(row, 5) == f"scored 49, Soft Fail: reject, revise; {words}"


# The description in MLflow


def test_a_note_fits_into_a_tag_of_mlflow() -> None:
    rows = tuple(
        row(place, "$" * 300, passed=False, failure=Failure(kind="target_error", message="&*" * 500))
        for place in range(SHOWN)
    )
    note = run_note(result(missed=rows, errors=rows, groups={"&" * 1_000_000: {"recall_at_k": (0.5, 4)}}))
    assert len(note) <= NOTE_LIMIT
    assert note.endswith("\n… more in the report\n")
    assert all(line.endswith(")") for line in note.splitlines() if line.startswith("- "))
