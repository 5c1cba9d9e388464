"""What a run warns of while it is evaluated, and notes at its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaltrack import run_eval
from evaltrack.metrics.measure import Rules
from evaltrack.records import Failure, Question, Response, Row, Source
from evaltrack.records.row import row_of
from evaltrack.report.run_warnings import ENOUGH, RunWarnings
from tests.compared import measured, question
from tests.files import check_rendering, put


def row(expected: dict[str, Any], *sources: dict[str, str], **response: Any) -> Row:
    """The row of a question that expects this, and of a response with these sources."""
    asked = Question.model_validate({"id": "7", "question": "?", "domain": "d", **expected})
    found = {"sources": tuple(Source(**each) for each in sources)} if sources else {}
    return measured(asked, Response(**found, **response), rules=Rules(2))


def ids(*expected: str) -> dict[str, Any]:
    return {"expected_chunks": expected}


def quotes(*expected: str) -> dict[str, Any]:
    return {"expected_passages": [{"quote": quote} for quote in expected]}


def gap(**unmeasured: str) -> Row:
    return row({}).model_copy(update={"unmeasured": unmeasured})


ID, TEXT, QUOTE = {"chunk_id": "a#1"}, {"text": "Some page."}, "Ten words that a page of the set holds."
LONG_QUOTE = "Cash of 10,000 euros or more per person must be declared to customs on entering or leaving the Union."
FOUND = row(ids("a#1"), ID)
MISSED = row(ids("v2/a#1"), ID, {"chunk_id": "b#1"})
WORDS = {"chunk_id": "a#1", "text": "A visa\nis " + "long " * 30}
DOWN = row_of(question("7", expected_chunks=["v2/a#1"]), Failure(kind="target_error", message="no route"), 2)
ROWS: dict[str, list[Row]] = {
    "quotations without texts, and no sources": [
        *[row(quotes(QUOTE), ID)] * 14,
        *[row(ids("a#1"), answer="Yes.")] * 2,
        row(quotes(QUOTE), answer="Yes."),
        *[FOUND] * 13,
    ],
    "measured, negative or only judged": [
        *(row(quotes(QUOTE), ID | TEXT), FOUND, row(quotes(QUOTE), sources=()), row(ids("a#1"), abstained=True)),
        *(row(ids("a#1")), row(ids(), answer="Yes."), row({"expected_answer": "Yes."}, answer="Yes.")),
    ],
    "titles where ids are expected": [row(ids("p0"), {"title": "p0", "text": "x"})] * 12,
    "texts where ids are expected": [row(ids("p0"), TEXT)] * 12,
    "ids where titles are expected": [row({"expected_sources": ["Visas"]}, {"chunk_id": "visas", "text": "x"})] * 12,
    "texts after an id": [FOUND, *[row(ids("p0"), TEXT)] * 12],
    "an id with a space": [FOUND, row(ids("p1"), {"chunk_id": "p1 "})],
    "an id with a space that has no width": [FOUND, row(ids("p1"), {"chunk_id": "p\u200b1"})],
    "an id in another form": [FOUND, row(ids("p1"), {"chunk_id": "P01"})],
    "another id": [FOUND, row(ids("p1"), {"chunk_id": "p2"})],
    "no more expected than k": [row(ids("a", "b")), row(ids())],
    "one that expects more than k": [row(ids("a", "b", "c")), row(ids("a"))],
    "two that expect more than k": [row(ids("a", "b", "c")), row(ids("a", "b", "c", "d"))],
    "more passages than k": [row(ids("a", "b", "c") | quotes("x", "y", "z"))],
    "all ids missed": [MISSED] * 25,
    "all ids missed, and long": [row(ids("v2/a#1"), {"chunk_id": "x" * 70})] * 12,
    "few ids missed": [MISSED] * (ENOUGH - 1),
    "ids missed, and one that came back": [
        row(ids("v2/a#1"), *({"chunk_id": each} for each in ("x", "y", "z", "v2/a#1"))),
        *[MISSED] * ENOUGH,
    ],
    "ids missed, and one that came back later": [*[MISSED] * ENOUGH, row(ids("v2/a#1"), {"chunk_id": "v2/a#1"})],
    "nothing expected": [row(ids(), ID)] * 20,
    "nothing returned": [row(ids("v2/a#1"), sources=())] * 20,
    "the target failed": [DOWN] * 20,
    "all quotations missed": [row(quotes(LONG_QUOTE), WORDS)] * 12,
    "all quotations found": [row(quotes(LONG_QUOTE), {"chunk_id": "a#1", "text": LONG_QUOTE})] * 12,
    "own scores that were not measured": [gap(tone=why, recall_at_k="ours") for why in ("first", "often", "often")]
    + [gap()],
}


def said(rows: Sequence[Row]) -> list[str]:
    """The warnings while the rows come, and the notes at the end."""
    found: list[str] = []
    warnings = RunWarnings(2, ["tone", "other"], lambda text: found.append(f"warning: {text}"))
    for each in rows:
        warnings.add(each)
    return [*found, *(f"- {note}" for note in warnings.texts())]


def test_warnings_and_notes_are_rendered_to_the_letter() -> None:
    parts = ["\n".join([f"# {name}", *(said(rows) or ["nothing"]), ""]) for name, rows in ROWS.items()]
    check_rendering("run-warnings.txt", "\n".join(parts))


def test_a_judge_that_grades_from_one_upwards_is_noticed(tmp_path: Path, store_uri: str) -> None:
    """Its worst, a bare 1, reads as the best, while all its other grades are refused."""
    golden = tmp_path / "gold.jsonl"
    put(golden, [{"id": n, "question": f"{n}?", "expected_answer": "a", "expected_chunks": ["a"]} for n in range(4)])

    def notes(*grades: float) -> list[str]:
        def judge(question: Question, response: Response) -> dict[str, float]:
            return dict.fromkeys(["overall_score", "accuracy", "completeness", "relevance"], grades[int(question.id)])

        target = {"answer": "a", "sources": ["a"]}
        result = run_eval(golden, target=lambda _: target, judge=judge, tracking_uri=store_uri, concurrency=1)
        return [note for note in result.notes if "above 1" in note]

    (note,) = notes(1, 9, 7, 1)
    assert note.startswith("the judge gave 2 questions (1, 2) a score above 1, and 2 a 1; if it grades from 1 upwards")
    assert notes(1, 0.9, 0.7, 0) == notes(0.5, 9, 0.7, 0) == []


def test_half_of_a_surrogate_pair_costs_no_row(tmp_path: Path, store_uri: str) -> None:
    golden, recorded = tmp_path / "gold.jsonl", tmp_path / "answers.jsonl"
    golden.write_text('{"id": 1, "question": "a?", "expected_chunks": ["a"]}\n')
    recorded.write_text('{"id": 1, "answer": "so \\ud83d", "sources": [{"chunk_id": "a", "text": "\\udc00 t"}]}\n')
    result = run_eval(golden, target=f"recorded:{recorded}", tracking_uri=store_uri, progress=False)
    assert result.metrics["recall_at_k"] == 1
    assert next(iter(result.rows))["answer"] == "so \ufffd"
