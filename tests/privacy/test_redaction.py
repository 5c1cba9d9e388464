"""Secrets in what targets return: taken out before anything keeps or shows it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.privacy.redaction import MARK, Redactor
from evaltrack.records import Response, Source, ToolCall
from tests.api.test_evaluate import golden

EXAMPLES = {
    "openai": "sk-proj-" + "a1" * 12,
    "aws": "AKIA" + "A1B2" * 4,
    "aws temporary": "ASIA" + "A1B2" * 4,
    "github": "ghp_" + "a1" * 18,
    "github fine-grained": "github_pat_" + "a1" * 32,
    "gitlab": "glpat-" + "a1" * 11,
    "slack": "xoxb-" + "123-" * 4,
    "google": "AIza" + "a" * 35,
    "hugging face": "hf_" + "a1" * 17,
    "json web token": "eyJ" + "a" * 10 + ".eyJ" + "b" * 10 + "." + "c" * 10,
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("key", EXAMPLES.values(), ids=EXAMPLES)
def test_a_key_is_known_by_its_form(key: str) -> None:
    assert Redactor().text(f"use {key} for it") == f"use {MARK} for it"


def test_a_password_in_a_url_is_taken_out() -> None:
    """The server stays, so that the answer can still be judged."""
    assert Redactor().text("at https://bob:hunter2@db.example/x?y") == f"at https://{MARK}@db.example/x?y"


@pytest.mark.parametrize(
    "text",
    ["sk-learn and task-based work", "mail bob@example.org", "https://example.org/@user", "AKIA", "risk-free " * 9, ""],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_patterns_of_ones_own_are_added() -> None:
    redactor = Redactor([r"CUST-\d+", "(?i)acme"])
    assert redactor.text("Acme is CUST-77, key " + EXAMPLES["aws"]) == f"{MARK} is {MARK}, key {MARK}"


@pytest.mark.parametrize(("pattern", "said"), [("(", "is no regular expression"), ("x*", "matches the empty text")])
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Redactor([pattern])


def test_every_text_of_a_response_is_redacted() -> None:
    """Answer, sources and arguments of tools; a response without a secret is the same object."""
    key = EXAMPLES["github"]
    clean = Response(answer="fine", sources=(Source(chunk_id="a", text="fine"),))
    dirty = Response(
        answer=key,
        sources=(Source(chunk_id="a", title=key, url=f"https://x/{key}", text=key),),
        tool_calls=(ToolCall(name="t", arguments={"deep": [{"k": key}]}),),
    )
    redactor = Redactor()
    assert redactor.response(clean) is clean
    assert key not in redactor.response(dirty).model_dump_json()
    assert redactor.response(dirty).tool_calls[0].arguments == {"deep": [{"k": MARK}]}


def test_a_secret_is_written_nowhere(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, own = EXAMPLES["aws"], "CUST-4711"
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(tmp_path / "state"))

    def target(question: str, k: int) -> Response:
        if "b" in question:
            raise OSError(f"cannot log in with {key}")
        return Response(answer=f"{own} uses {key}", sources=(Source(chunk_id="a", text=key),))

    result = run_eval(golden(tmp_path), target=target, redact=[r"CUST-\d+"], tracking_uri=store_uri)

    assert MARK in str(result.rows)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        held = path.read_bytes()
        assert key.encode() not in held, path
        assert own.encode() not in held, path
    with sqlite3.connect(tmp_path / "store" / "mlflow.db") as database:
        assert not any(key in line for line in database.iterdump())


@pytest.mark.parametrize("pattern", ["text", ".", "[a-z]+"])
def test_a_pattern_that_hits_everything_breaks_nothing(pattern: str) -> None:
    """Names of fields stay, and so do the ids that are scored."""
    response = Response(answer="text", sources=(Source(chunk_id="text", text="text", title="t", score=0.5),))
    redacted = Redactor([pattern]).response(response)
    assert redacted.sources is not None
    assert (redacted.sources[0].chunk_id, redacted.sources[0].score) == ("text", 0.5)
    assert redacted.answer is not None
    assert MARK in redacted.answer
