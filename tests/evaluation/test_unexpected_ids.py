"""Whether what is expected ever comes back: said during a run, and in its notes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltrack import run_eval
from evaltrack.cli.progress import BarProgress, PlainProgress
from evaltrack.evaluation.unexpected_ids import ENOUGH, Returned
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Failure, Passage, Question, Response, Row, Source

WARNING = "no expected source of 10 questions ever came back: expected v2/a#1, returned e.g. a#1"


def row(position: int, *found: str, expected: tuple[str, ...] = ("v2/a#1",)) -> Row:
    """The row of a question for which these chunks came back."""
    asked = Question(id=str(position), question="?", domain="d", expected_chunks=expected)
    given = Response(sources=tuple(Source(chunk_id=key) for key in found))
    made = measure(asked, given, Rules(2))
    scored = {"scores": made.scores, "unmeasured": made.unmeasured, "passed": made.passed}
    return Row(position=position, question=asked, response=given, started_at=0.0, seconds=0.1, **scored)


def after(*rows: Row) -> tuple[list[str], str | None]:
    """What was said on the way, and at the end."""
    said: list[str] = []
    looked = Returned(said.append)
    for each in rows:
        looked.add(each)
        looked.warn_once()
    return said, looked.note


def test_ids_of_another_form_are_said_once() -> None:
    """After ten answerable questions, with one that was expected and one that came back."""
    said, note = after(*(row(number, "a#1", "b#1") for number in range(25)))
    assert len(said) == 1
    assert said[0].startswith(WARNING)
    assert note is not None
    assert note.startswith("no expected source of 25 questions ever came back: expected v2/a#1, returned e.g. a#1")
    assert after(*(row(number, "a#1") for number in range(ENOUGH - 1))) == ([], None)


def test_one_that_came_back_settles_it() -> None:
    """Beyond the first k, too; one that comes later leaves nothing in the notes."""
    misses = [row(number, "a#1") for number in range(ENOUGH)]
    assert after(row(99, "x", "y", "z", "v2/a#1"), *misses) == ([], None)
    said, note = after(*misses, row(99, "v2/a#1"))
    assert (len(said), note) == (1, None)


def quoted_row(position: int, quote: str, text: str) -> Row:
    """The row of a question that expects a quotation, and got one source with this text."""
    asked = Question(id=str(position), question="?", domain="d", expected_passages=(Passage(quote=quote),))
    given = Response(sources=(Source(chunk_id="a#1", text=text),))
    made = measure(asked, given, Rules(2))
    scored = {"scores": made.scores, "unmeasured": made.unmeasured, "passed": made.passed, "finds": made.finds}
    return Row(position=position, question=asked, response=given, started_at=0.0, seconds=0.1, **scored)


def test_quotations_are_no_ids() -> None:
    """What is expected and what came back is shown as text, whole or with an ellipsis, and ids are not blamed."""
    quote = "Cash of 10,000 euros or more per person must be declared to customs on entering or leaving the Union."
    said, note = after(*(quoted_row(number, quote, "A visa\nis " + "long " * 30) for number in range(12)))
    assert len(said) == 1
    assert note is not None
    assert note.startswith("no source held an expected quotation in any of 12 questions: expected “Cash of 10,000")
    assert "…”, returned e.g. “A visa is long long" in note
    assert note.count("“") == note.count("”") == 2
    assert "ids" not in note
    assert after(*(quoted_row(number, quote, quote) for number in range(12))) == ([], None)


def test_an_id_that_is_cut_ends_with_an_ellipsis() -> None:
    """So that it is not taken for the whole one."""
    _, note = after(*(row(number, "x" * 70) for number in range(12)))
    assert note is not None
    assert f"returned e.g. {'x' * 59}…; are the ids" in note


def test_what_was_not_measured_says_nothing() -> None:
    """Negatives, failures, and a target that returns nothing at all."""
    asked = Question(id="1", question="?", domain="d", expected_chunks=("a",))
    failure = Failure(kind="target_error", message="no route")
    failed = Row(position=0, question=asked, failure=failure, started_at=0.0, seconds=0.1)
    assert after(*(row(number, "a#1", expected=()) for number in range(20))) == ([], None)
    assert after(*[failed] * 20) == ([], None)
    assert after(*(row(number) for number in range(20))) == ([], None)


@pytest.mark.parametrize("kind", [PlainProgress, BarProgress])
def test_a_run_says_it_on_stderr_and_in_its_notes(
    kind: type[PlainProgress | BarProgress], store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """While there is time to stop, and for whoever reads the run later."""
    path = tmp_path / "mine.jsonl"
    lines = [{"id": n, "question": f"number {n}?", "expected_chunks": ["v2/a#1"]} for n in range(12)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with kind() as progress:
        made = run_eval(path, target=lambda question: ["a#1"], tracking_uri=store_uri, traces="off", progress=progress)
    assert f"Warning: {WARNING}" in capsys.readouterr().err.replace("\n", " ")
    assert [note for note in made.notes if "no expected source of 12 questions ever came back" in note]
