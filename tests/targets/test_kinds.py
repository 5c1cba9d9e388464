"""Targets by name: kinds, settings, the default, and what is imported for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.records import Question, Response
from evaltrack.targets import default_target, open_target
from evaltrack.targets.responses import as_response
from tests.files import data, put
from tests.targets.test_http import Server, server  # noqa: F401 - a fixture

QUESTION = Question(id="1", question="Do cats purr?", domain="d")


def write_corpus(folder: Path) -> Path:
    return put(folder / "cats.md", "# Cats\n\nCats purr.\n").parent


SECRET = "tok-9f8e7d6c5b4a"


@pytest.mark.parametrize(("name", "settings", "message"), data("targets.json")["not_opened"])
def test_names_and_settings_that_are_wrong_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, settings: dict[str, str], message: str
) -> None:
    """Before anything is read, sent or run; no message repeats a value that may be a secret."""
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    for variable, value in (("BLANK", " \n"), ("TWO_LINES", f"{SECRET}\r\nX: 1"), ("UMLAUT", f"{SECRET}ä")):
        monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError) as caught:
        open_target(name, settings)
    assert str(caught.value).startswith(message)
    assert SECRET not in str(caught.value)


def test_default_targets(tmp_path: Path) -> None:
    """The corpus of the golden set's name, else the folders of its domains, else its recorded responses."""
    travel = write_corpus(tmp_path / "corpus" / "travel")
    assert default_target(tmp_path / "travel.jsonl") == f"bm25:{travel}"
    corpus = write_corpus(tmp_path / "corpus" / "food").parent
    assert default_target(tmp_path / "all.jsonl", ["travel", "food"]) == f"bm25:{corpus}?by=domain"
    for domains in (["travel", "cdc"], [], [".."]):
        with pytest.raises(UsageError, match=f"there is no corpus at {corpus}/all; name one with -t, e.g. -t bm25:DIR"):
            default_target(tmp_path / "all.jsonl", domains)


def test_kinds_are_imported_when_named() -> None:
    program = "import sys, evaltrack.targets; print(*sorted(m for m in sys.modules if 'bm25' in m or '.targets.' in m))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.split() == []


DOWN = {"answer": "", "sources": [], "error": "vector store timeout"}
"""What an application returns that is down and says so."""


def down(_question: str) -> dict[str, object]:
    return DOWN


@pytest.mark.parametrize("kind", ["python", "in this process", "http", "mapped", "command", "recorded"])
def test_a_response_with_an_error_is_an_error_of_a_negative(
    kind: str,
    store_uri: str,
    tmp_path: Path,
    server: Server,  # noqa: F811
) -> None:
    golden = put(tmp_path / "small.jsonl", [{"id": "1", "question": QUESTION.question, "expected_chunks": []}])
    answers = put(tmp_path / "answers.jsonl", [{"id": "1", **DOWN}])
    server.answer = lambda handler: handler.reply(DOWN)
    target, options = {
        "python": (f"python:{__name__}:down", {}),
        "in this process": (f"python:{__name__}:down", {"in_process": "true"}),
        "http": (server.url, {}),
        "mapped": (server.url, {"answer": "answer", "sources": "sources"}),
        "command": (f"command:env Q={{question}} cat {answers}", {}),
        "recorded": (f"recorded:{answers}", {}),
    }[kind]
    made = run_eval(golden, target=target, target_options=options, tracking_uri=store_uri, traces="off")
    (row,) = made.rows
    assert row["error"].startswith("target_error: the ")
    assert row["error"].endswith("vector store timeout")
    assert (row["passed"], made.status, made.metrics.get("negative_pass_rate")) == (None, "FAILED", None)


@pytest.mark.parametrize("error", ["", " ", None, {}, [], False, 0])
def test_an_empty_error_is_none(error: object) -> None:
    assert as_response({"answer": "Yes.", "error": error}) == Response(answer="Yes.")
