"""Keys by their form: every common one is taken out, what is none stays, and no text takes long."""

from __future__ import annotations

import json
import random
import re
import time
import warnings
from base64 import b64encode
from itertools import chain
from uuid import UUID

import pytest

from evaltrack.privacy.redaction import MARK, Redactor, Rule, rules, secret_spans
from evaltrack.records import Response, ToolCall
from tests.conftest import REPO
from tests.key_forms import keys

HOSTILE = 100_000
SECONDS = 2.0
"""For 100 KB; what goes over a text again and again takes minutes."""

_RANDOM = random.Random(1)
HEX40 = f"{_RANDOM.getrandbits(160):040x}"
HEX64 = f"{_RANDOM.getrandbits(256):064x}"
ID = str(UUID(int=_RANDOM.getrandbits(128), version=4))
PICTURE = b64encode(_RANDOM.randbytes(3000) + bytes(300) + _RANDOM.randbytes(3000)).decode()

RANDOM = {"hex40": HEX40, "hex64": HEX64, "id": ID, "picture": PICTURE}
INNOCENTS = [text % RANDOM for text in json.loads((REPO / "tests/data/innocents.json").read_text(encoding="utf-8"))]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_common_keys_are_known_by_their_form(seed: int) -> None:
    for name, (text, secret) in keys(seed).items():
        redacted = Redactor().text(text)
        assert secret[-10:] not in redacted, name
        assert MARK in redacted, name
        assert redacted.startswith(text[:4]), name
        assert redacted.endswith(text[-3:]), name
        if text.startswith("Use "):  # known by its own form, whatever comes after it
            assert secret[-10:] not in Redactor().text(f"It is {secret}."), name
            glued = secret[-10:] not in Redactor().text(f"It is tool_{secret}.")
            assert glued or name in {"Azure client secret", "Azure DevOps token", "Discord bot", "Telegram bot"}, name
    assert Redactor().text(f"a word{keys(seed)['npm'][1]}.") == f"a word{MARK}."


@pytest.mark.parametrize("text", INNOCENTS, ids=range(len(INNOCENTS)))
def test_what_is_no_key_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_the_corpora_that_come_along_hold_no_key() -> None:
    pages = [
        *(REPO / "golden").rglob("*.md"),
        *(REPO / "golden").rglob("*.json*"),
        REPO / "README.md",
        *(REPO / "docs").rglob("*.md"),
    ]
    assert len(pages) > 20
    for page in pages:
        text = page.read_text("utf-8")
        assert not secret_spans(text), page


def test_a_key_in_the_arguments_of_a_tool_is_known_by_the_name_of_its_field() -> None:
    arguments = {"api_key": f"{HEX40[:16]}Zz{HEX40[16:30]}", "chunk_key": ID, "q": HEX40, "deep": [{"password": HEX64}]}
    response = Response(answer="a", tool_calls=(ToolCall(name="t", arguments=arguments),))
    assert Redactor().response(response).tool_calls[0].arguments == {
        "api_key": MARK,
        "chunk_key": ID,
        "q": HEX40,
        "deep": [{"password": MARK}],
    }


def test_a_key_in_the_name_of_an_unread_field_is_redacted() -> None:
    key = keys()["GitHub personal"][1]
    assert Redactor().response(Response(answer="a", unread=(f"sources.{key}",))).unread == (f"sources.{MARK}",)


def test_keys_without_a_break_between_them_are_all_found() -> None:
    token = keys()["GitHub personal"][1]
    for around in ("{},{}", "<b>{}</b><i>{}</i>", "`{}`|`{}`", "({})({})", "é{}\N{NO-BREAK SPACE}{}", "İ{} İ{}"):
        assert Redactor().text(around.format(token, token)) == around.format(MARK, MARK)


def _hostile(rule: Rule) -> list[str]:
    """Texts that begin like a key of this form again and again, or once and go on for ever."""
    literal = re.sub(r"\(\?[a-z-]*:?|\[[^\]]*\]|\{[^}]*\}|\\[a-zA-Z]|[()|*+?\\^$]", "", rule.regex)[:40]
    keyword = rule.keywords[0] if rule.keywords else literal
    starts = (literal, keyword.upper() + ' key = "a1')
    return [*((start * HOSTILE)[:HOSTILE] for start in starts if start), keyword + "A1" * (HOSTILE // 2)]


def test_no_form_takes_long_on_hostile_text() -> None:
    for _, rule in chain.from_iterable(rules().by_scope.values()):
        for text in _hostile(rule):
            start = time.process_time()
            list(rule.spans(text, 0, len(text)))
            assert time.process_time() - start < SECONDS, (rule.id, text[:40])


PIECES = ["a", "a-", "A1", "=", "://a:b", "eyJaaaaaaaa.", "-eyJaaaaaaaa", "sk-a1", "curl -u ", "é1", "\\n", "?token=a1"]
PIECES += ["-----BEGIN PRIVATE " + "KEY-----", "machine a login ", "Private-Lines: 1 ", "secret 1aaaaaaaaaaaaaaaa"]
PIECES += ['api_key="A1b2C3d4E5f6G7h8" ']


@pytest.mark.parametrize("piece", PIECES)
def test_no_text_takes_long(piece: str) -> None:
    text = (piece * HOSTILE)[:HOSTILE]
    start = time.process_time()
    Redactor().text(text)
    assert time.process_time() - start < SECONDS


def test_the_rules_are_what_they_should_be() -> None:
    every = {rule for _, rule in chain.from_iterable(rules().by_scope.values())}
    assert len(every) > 200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rule in every:
            re.compile(rule.regex, re.ASCII)
            assert all(keyword == keyword.lower() for keyword in rule.keywords), rule.id
            assert rule.keywords or rule.scope == "word", rule.id
    assert "MIT License" in (REPO / "evaltrack" / "privacy" / "rules" / "LICENSE.gitleaks").read_text()
