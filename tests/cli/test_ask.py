"""`evaltrack ask`: one question, and the ids that a golden set expects."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from evaltrack.cli import _run
from tests.conftest import REPO
from tests.files import data

TRAVEL = f"bm25:{REPO}/golden/corpus/travel"
QUESTION = "What happens if I overstay my 90 days in the Schengen area?"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def reply(text: str) -> str:
    """A target that answers with this text."""
    Path("reply.json").write_text(text)
    return "command:sh -c 'cat reply.json' {question}"


def test_the_sources_are_ranked_with_their_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["ask", QUESTION, "-t", TRAVEL, "-k", "3", "--output", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [source["rank"] for source in printed["sources"]] == [1, 2, 3]
    assert "schengen-visa#overstay" in [source["chunk_id"] for source in printed["sources"][:2]]
    assert all(source["text"] and source["score"] > 0 for source in printed["sources"])
    assert (printed["question"], printed["target"], printed["error"]) == (QUESTION, TRAVEL, None)


def test_for_people_each_source_is_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["ask", QUESTION, "-t", TRAVEL]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  [12]  schengen-visa#overstay  Schengen visas  \(\d", out, re.MULTILINE)
    assert "and 15 more beyond k" in out
    assert "\x1b" not in out


def test_a_target_that_fails_exits_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["ask", "x", "-t", "command:false {question}", "--output", "json"]) == 3
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"].startswith("target_error: ")
    assert json.loads(printed.out)["sources"] is None
    assert "Error: the target failed: " in printed.err


@pytest.mark.parametrize(("history", "arguments", "message"), data("cli.json")["wrong_questions_exit_2"])
def test_wrong_usage_exits_2(
    capsys: pytest.CaptureFixture[str], history: str | None, arguments: list[str], message: str
) -> None:
    if history is not None:
        Path("turns.json").write_text(history.replace("DEEP", "[" * 100_000))
    assert _run(["ask", *(TRAVEL if each == "TRAVEL" else each for each in arguments)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("text", "line"), data("cli.json")["foreign_text_is_shown_as_text"])
def test_foreign_text_is_shown_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    """It commands nothing, and secrets of the environment are taken out."""
    monkeypatch.setenv("MY_API_KEY", "sk-a-very-secret-key-123")
    assert _run(["ask", "x", "-t", reply(text)]) == 0
    out = capsys.readouterr().out
    assert any(each.startswith(line.rstrip("*")) for each in out.splitlines())
    assert ("\x1b" in out, "very-secret" in out) == (False, False)
    assert not any(each.startswith("::") for each in out.splitlines())


def test_turns_before_the_question_come_from_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    turns = [{"role": "user", "content": "Long stays?"}, {"role": "assistant", "content": "In summer."}]
    Path("turns.json").write_text(json.dumps(turns))
    show = "import json, sys; print(json.dumps({'answer': sys.argv[1]}))".replace("{", "{{").replace("}", "}}")
    target = f'command:{sys.executable} -c "{show}" {{messages}}'
    assert _run(["ask", "In winter?", "-t", target, "--history", "turns.json", "--output", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads(printed["answer"]) == [*turns, {"role": "user", "content": "In winter?"}]
