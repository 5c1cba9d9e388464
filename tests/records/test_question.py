"""Questions with turns before them, and in several wordings: what is refused, who they are, and how they are asked."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from pydantic import ValidationError

from evaltrack.records import Question
from evaltrack.records.question import MAX_TURNS, MAX_VARIANTS

TURNS = [{"role": "user", "content": "What does it cost?"}, {"role": "assistant", "content": "80 euros."}]


def question(**fields: Any) -> Question:
    """A question with these fields."""
    return Question.model_validate({"id": "1", "question": "And for children?", "domain": "d"} | fields)


def sha(*parts: object) -> str:
    """SHA-256 of JSON as digests are made of it."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()[:16]


def test_questions_without_history_keep_their_digests() -> None:
    """What was digested before there were conversations is all that is digested of a question without."""
    plain = question(expected_chunks=["a"], expected_answer="b", history=[], variants=[])
    assert plain.digest == sha("And for children?", ["a"], None, "b", [])
    assert plain.judged_digest == sha("And for children?", "b", False)


@pytest.mark.parametrize(
    "fields",
    [
        {"history": TURNS},
        {"history": TURNS[:1]},
        {"history": [TURNS[0] | {"role": "system"}]},
        {"variants": ["What about kids?"]},
        {"variants": ["And kids?", "What about kids?"]},
        {"variants": ["What about kids?", "And kids?"]},
        {"variants": ["user", "What does it cost?"]},
    ],
)
def test_each_history_is_another_question(fields: dict[str, Any]) -> None:
    """Turns, their roles, and variants in their order are part of what is asked, and of what is judged."""
    seen = {
        (question().digest, question().judged_digest),
        (question(**fields).digest, question(**fields).judged_digest),
    }
    assert len({one for one, _ in seen}) == len({other for _, other in seen}) == 2


def test_history_and_variants_are_told_apart() -> None:
    """The same texts as turns and as variants are two questions."""
    texts = ["a", "b"]
    turns = [{"role": "user", "content": text} for text in texts]
    digests = {question(variants=texts).digest, question(history=turns).digest}
    assert len(digests | {question(history=turns, variants=texts).digest}) == 3


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        (["And for children?"], "variant 1 has the words of `question`"),
        (["And\n for  children?"], "variant 1 has the words of `question`"),
        (["a", "b", "a "], "variant 3 has the words of variant 1"),
    ],
)
def test_two_wordings_are_not_the_same(variants: list[str], message: str) -> None:
    """A wording that differs from another in blanks alone is no variant of it."""
    with pytest.raises(ValidationError, match=message):
        question(variants=variants)


def test_another_case_is_another_wording() -> None:
    """Users write in capitals, too."""
    assert question(variants=["AND FOR CHILDREN?"]).wordings == ("And for children?", "AND FOR CHILDREN?")


def test_bounds() -> None:
    """As many turns and variants as the bounds say are taken, and no more."""
    question(history=TURNS[:1] * MAX_TURNS, variants=[str(n) for n in range(MAX_VARIANTS)])
    with pytest.raises(ValidationError, match="at most 1000 items"):
        question(history=TURNS[:1] * (MAX_TURNS + 1))
    with pytest.raises(ValidationError, match="at most 100 items"):
        question(variants=[str(n) for n in range(MAX_VARIANTS + 1)])


def test_messages_end_with_the_question() -> None:
    """The conversation is the turns in their order, and the question as the user's last message."""
    assert question().messages == [{"role": "user", "content": "And for children?"}]
    assert question(history=TURNS).messages == [*TURNS, {"role": "user", "content": "And for children?"}]


def test_each_round_asks_each_wording_once() -> None:
    """Trials are numbered without a gap over the rounds, and each round goes through all wordings."""
    asked = question(variants=["a", "b"])
    assert asked.trials_of(range(1, 3)) == [1, 2, 3, 4, 5, 6]
    assert [asked.wording_of(trial) for trial in asked.trials_of([1, 2])] == [0, 1, 2, 0, 1, 2]
    assert asked.trials_of([104]) == [310, 311, 312]
    assert question().trials_of(range(1, 4)) == [1, 2, 3]
    assert question().wording_of(3) == 0


def test_a_wording_by_itself_is_a_plain_question() -> None:
    """What a target is asked is the wording's text, with all that is expected, and without the other wordings."""
    asked = question(variants=["a", "b"], history=TURNS, expected_chunks=["c"])
    assert [asked.in_wording(place).question for place in range(3)] == ["And for children?", "a", "b"]
    assert asked.in_wording(2).model_dump() == asked.model_dump() | {"question": "b", "variants": ()}
    assert question().in_wording(0) == question()
