"""Verdicts from a file: which files can be used, and which verdict a question gets."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.judges.recorded import NotJudgedError, RecordedJudge
from evaltrack.records import Dimensions, Question, Response, Verdict
from tests.files import data

ANSWER = Response(answer="Paris.")

REPLIES = data("judge_replies.json")
GRADES = {"accuracy": 0.9, "completeness": 0.8, "relevance": 0.9, "overall_score": 0.85, "declined": False}
LINE = {"id": "1", **GRADES, "reasoning": "Brief explanation", "judge": "openai:gpt-4o"}


def question(key: str = "1", *, negative: bool = False) -> Question:
    return Question(id=key, question="What?", domain="d", expected_chunks=() if negative else ("a",))


def line(**fields: Any) -> str:
    return json.dumps({"id": "1", "overall_score": 0.5} | fields)


def recorded(folder: Path, text: str | bytes) -> RecordedJudge:
    path = folder / "verdicts.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return RecordedJudge(path)


def ask(judge: RecordedJudge, asked: Question) -> Verdict:
    return asyncio.run(judge(asked, ANSWER))


def refusal(folder: Path, text: str | bytes) -> str:
    """What is said of a file that is refused, without the place of the file."""
    with pytest.raises(UsageError) as raised:
        recorded(folder, text)
    return str(raised.value).replace(str(folder / "verdicts.jsonl"), "FILE")


def test_a_whole_line(tmp_path: Path) -> None:
    judge = recorded(tmp_path, json.dumps(LINE))
    assert ask(judge, question()) == Verdict(**{name: value for name, value in LINE.items() if name != "id"})
    assert (judge.name, judge.digest) == ("openai:gpt-4o", "")


OBSERVED = {
    **{"hypotheses": 3, "shifts": 1, "crux_treatment": "stated", "uncertainty_treatment": "limits", "mode": "hybrid"},
    "confidence": 70,
    "hard_fails": ["HF1"],
    "dimensions": dict.fromkeys(Dimensions.model_fields, 8),
}


def test_a_verdict_on_reasoning_is_read_as_strictly(tmp_path: Path) -> None:
    """Lists and whole numbers are what JSON has; a number in quotes is none, however deep it stands."""
    judge = recorded(tmp_path, json.dumps({"id": "1", **OBSERVED}))
    observed = judge.verdicts["1"].observed
    assert observed is not None
    assert (observed.hard_fails, observed.confidence, observed.dimensions.crux) == (("HF1",), 70.0, 8.0)
    for wrong in ({"hypotheses": "3"}, {"hypotheses": 3.5}, {"confidence": True}, {"hard_fails": "HF1"}):
        name = next(iter(wrong))
        said = refusal(tmp_path, json.dumps({"id": "1", **OBSERVED, **wrong}))
        assert said.startswith(f"FILE:1: `{name}` is ")


@pytest.mark.parametrize("written", ["7", '"7"'])
def test_ids_are_strings(written: str, tmp_path: Path) -> None:
    judge = recorded(tmp_path, f'{{"id": {written}, "overall_score": 0.5}}')
    assert ask(judge, question("7")).overall_score == 0.5
    with pytest.raises(NotJudgedError):
        ask(judge, question("07"))


def test_a_verdict_of_another_answer_judges_none(tmp_path: Path) -> None:
    """Where the line says which answer it is of; a digest that is none is a bad line."""
    digest = hashlib.sha256(b"Paris.").hexdigest()[:16]
    assert ask(recorded(tmp_path, line(answer_digest=digest)), question()).overall_score == 0.5
    other = recorded(tmp_path, line(answer_digest="0" * 16))
    with pytest.raises(NotJudgedError, match=r"^the verdict in .*verdicts\.jsonl is for a different answer; judge"):
        ask(other, question())
    with pytest.raises(NotJudgedError, match=r"^no verdict in .*verdicts\.jsonl$"):
        ask(other, question("2"))
    assert "FILE:1: `answer_digest` is not valid; write" in refusal(tmp_path, line(answer_digest="Paris."))


@pytest.mark.parametrize(
    ("fields", "negative", "lacks"),
    [
        ({"overall_score": None, "accuracy": 1.0}, False, "overall_score"),
        ({"overall_score": None, "declined": True}, False, "overall_score"),
        ({"overall_score": 0.5}, True, "declined"),
    ],
)
def test_a_verdict_of_the_other_kind(fields: dict[str, Any], negative: bool, lacks: str, tmp_path: Path) -> None:
    judge = recorded(tmp_path, line(**fields))
    with pytest.raises(NotJudgedError, match=rf"^the verdict in .*verdicts\.jsonl has no `{lacks}`$"):
        ask(judge, question(negative=negative))


@pytest.mark.parametrize("text", ["", "  \n\t", b"\xef\xbb\xbf"])
def test_an_empty_file(text: str | bytes, tmp_path: Path) -> None:
    assert refusal(tmp_path, text) == "recorded judge FILE: is empty; write one JSON object a line"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "missing", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(UsageError) as raised:
            RecordedJudge(path)
        assert str(raised.value) == f"recorded judge {path}: cannot be read: {why}"


NO_ID = "`id` is missing; name the question that was judged"
NO_OBJECT = "a verdict is a JSON object"
NOT_IN_UNIT = "is too large; write at most 1"


@pytest.mark.parametrize(("bad", "said"), REPLIES["bad_lines"])
def test_a_bad_line(bad: str, said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, f"{line(id='first')}\n\n{bad}\n{line(id='last')}") == f"FILE:3: {said}"


def test_a_file_of_another_encoding_has_one_fault(tmp_path: Path) -> None:
    assert refusal(tmp_path, line().encode("utf-16")).startswith("FILE:1: is not valid UTF-8 at byte 1; save the file")


def test_all_bad_lines_at_once(tmp_path: Path) -> None:
    assert refusal(tmp_path, f"{{}}\n{line()}\n7\n{line(accuracy=2)}") == (
        f"FILE:1: {NO_ID}\nFILE:3: is a number; {NO_OBJECT}\nFILE:4: `accuracy` {NOT_IN_UNIT}"
    )


@pytest.mark.parametrize("again", ["1", 1])
def test_a_question_that_was_judged_twice(again: str | int, tmp_path: Path) -> None:
    said = refusal(tmp_path, f"{line()}\n{line(id='2')}\n{line(id=again)}")
    assert said == "FILE:3: id `1` is judged on line 1 already; keep one of them"


def test_several_judges_on_one_question(tmp_path: Path) -> None:
    """As the verdicts of a panel stand in the file of its run: no line is one too many, a repeat of one judge's is."""
    panel = [line(judge=name, id=key) for key in "12" for name in ("amy", "zoe")]
    cure = "one file, one judge: write the lines of each to a file of its own, and name all of these in `judge=`"
    assert refusal(tmp_path, "\n".join(panel)) == f"recorded judge FILE: names several judges (amy, zoe); {cure}"
    assert "names several judges (recorded, zoe)" in refusal(tmp_path, f"{line(judge='zoe')}\n{line(id='3')}")
    twice = refusal(tmp_path, "\n".join([*panel, panel[1]])).split("\n")
    assert (len(twice), twice[1]) == (2, "FILE:5: id `1` is judged on line 2 already; keep one of them")
