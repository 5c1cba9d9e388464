"""Secrets in what targets return: taken out before anything keeps or shows it."""

from __future__ import annotations

import pytest

from evaltrack.errors import UsageError
from evaltrack.privacy.redaction import MARK, Redactor
from evaltrack.records import Response, Source, ToolCall
from tests.key_forms import keys

KEY = keys()["GitHub personal"][1]


def test_a_password_in_a_url_is_taken_out() -> None:
    assert Redactor().text("at https://bob:hunter2@db.example/x?y") == f"at https://{MARK}@db.example/x?y"


def test_patterns_of_ones_own_are_added() -> None:
    redactor = Redactor([r"CUST-\d+", "(?i)acme"])
    assert redactor.text(f"Acme is CUST-77, key {KEY}") == f"{MARK} is {MARK}, key {MARK}"


def test_of_a_text_on_which_a_pattern_does_not_end_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltrack.privacy.redaction.PATTERN_SECONDS", 0.2)
    redactor = Redactor(["(a|aa)+$"])
    assert redactor.text("a" * 50 + "!") == MARK
    assert redactor.text("so aa") == f"so {MARK}"


@pytest.mark.parametrize(("pattern", "said"), [("(", "is not a regular expression"), ("x*", "matches the empty text")])
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Redactor([pattern])


def test_every_text_of_a_response_is_redacted() -> None:
    clean = Response(answer="fine", sources=(Source(chunk_id="a", text="fine"),))
    dirty = Response(
        answer=KEY,
        sources=(Source(chunk_id="a", title=KEY, url=f"https://x/{KEY}", text=KEY),),
        tool_calls=(ToolCall(name="t", arguments={"deep": [{"k": KEY}]}),),
    )
    redactor = Redactor()
    assert redactor.response(clean) is clean
    assert KEY not in redactor.response(dirty).model_dump_json()
    assert redactor.response(dirty).tool_calls[0].arguments == {"deep": [{"k": MARK}]}


@pytest.mark.parametrize("pattern", ["text", ".", "[a-z]+"])
def test_a_pattern_that_hits_everything_breaks_nothing(pattern: str) -> None:
    response = Response(answer="text", sources=(Source(chunk_id="text", text="text", title="t", score=0.5),))
    redacted = Redactor([pattern]).response(response)
    assert redacted.sources is not None
    assert (redacted.sources[0].chunk_id, redacted.sources[0].score) == ("text", 0.5)
    assert redacted.answer is not None
    assert MARK in redacted.answer
