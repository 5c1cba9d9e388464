"""Questions with turns before them: what is refused, who they are, and how they are asked."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from pydantic import ValidationError

from evaltrack.records import Question
from evaltrack.records.question import MAX_TURNS

TURNS = [{"role": "user", "content": "What does it cost?"}, {"role": "assistant", "content": "80 euros."}]


def question(**fields: Any) -> Question:
    return Question.model_validate({"id": "1", "question": "And for children?", "domain": "d"} | fields)


def sha(*parts: object) -> str:
    """SHA-256 of JSON as digests are made of it."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()[:16]


def test_questions_without_history_keep_their_digests() -> None:
    plain = question(expected_chunks=["a"], expected_answer="b", history=[])
    assert plain.digest == sha("And for children?", ["a"], None, "b", [])


@pytest.mark.parametrize(
    "fields", [{"history": TURNS}, {"history": TURNS[:1]}, {"history": [TURNS[0] | {"role": "system"}]}]
)
def test_each_history_is_another_question(fields: dict[str, Any]) -> None:
    assert question().digest != question(**fields).digest


def test_bounds() -> None:
    question(history=TURNS[:1] * MAX_TURNS)
    with pytest.raises(ValidationError, match="at most 1000 items"):
        question(history=TURNS[:1] * (MAX_TURNS + 1))


def test_messages_end_with_the_question() -> None:
    assert question().messages == [{"role": "user", "content": "And for children?"}]
    assert question(history=TURNS).messages == [*TURNS, {"role": "user", "content": "And for children?"}]
