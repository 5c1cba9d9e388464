"""`evaltrack ask`: one question, and the ids that a golden set expects."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from evaltrack import ask_target
from evaltrack.cli import _run
from tests.conftest import REPO

TRAVEL = f"bm25:{REPO}/golden/corpus/travel"
QUESTION = "What happens if I overstay my 90 days in the Schengen area?"


def test_the_sources_are_ranked_with_their_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["ask", QUESTION, "-t", TRAVEL, "--output", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [source["rank"] for source in printed["sources"]] == [1, 2, 3, 4, 5]
    assert "schengen-visa#overstay" in [source["chunk_id"] for source in printed["sources"][:2]]
    assert all(source["text"] and source["score"] > 0 for source in printed["sources"])
    assert (printed["question"], printed["target"], printed["error"]) == (QUESTION, TRAVEL, None)


def test_a_question_below_the_floor_is_told_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["ask", QUESTION, "-t", f"{TRAVEL}?floor=99"]) == 0
    assert "the floor of bm25: may be too high for this corpus, try bm25:DIR?floor=0" in capsys.readouterr().err
    assert _run(["ask", "Zyzzyva?", "-t", TRAVEL]) == 0
    assert "floor" not in capsys.readouterr().err


def test_json_lists_k_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["ask", QUESTION, "-t", TRAVEL, "-k", "2", "--output", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["sources"]) == 2


def test_for_people_each_source_is_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["ask", QUESTION, "-t", TRAVEL]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  [12]  schengen-visa#overstay  Schengen visas  \(\d", out, re.MULTILINE)
    assert "and 15 more beyond k" in out
    assert "\x1b" not in out


def test_a_target_that_fails_exits_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["ask", "x", "-t", "command:false {question}", "--output", "json"]) == 3
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"].startswith("target_error: ")
    assert json.loads(printed.out)["sources"] is None
    assert "Error: the target failed: " in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "-t", "bm25:nowhere"], "no such directory"),
        (["  ", "-t", TRAVEL], "the question is empty"),
        (["x"], "no target is named; name one (--target bm25:docs)"),
        (["x", "-t", TRAVEL, "--target-option", "colour=red"], "unknown setting `colour`"),
    ],
)
def test_wrong_usage_exits_2(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert _run(["ask", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_foreign_text_commands_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reply = {
        "answer": "\x1b[31mred\n::error::x",
        "sources": [{"title": "a\x1b[2J", "text": "b\n\x1b]0;c"}, {"chunk_id": "d"}],
    }
    (tmp_path / "reply.json").write_text(json.dumps(reply))
    assert _run(["ask", "x", "-t", f"command:sh -c 'cat {tmp_path}/reply.json' {{question}}"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert not any(line.startswith("::") for line in out.splitlines())


@pytest.mark.parametrize(("sources", "words"), [("null", "the target returns no sources"), ("[]", "no sources")])
def test_no_sources_are_told_apart_from_none_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sources: str, words: str
) -> None:
    (tmp_path / "reply.json").write_text(f'{{"sources": {sources}, "answer": "x"}}')
    assert _run(["ask", "x", "-t", f"command:sh -c 'cat {tmp_path}/reply.json' {{question}}"]) == 0
    assert words in capsys.readouterr().out.splitlines()


def test_secrets_of_the_environment_are_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-a-very-secret-key-123")
    (tmp_path / "reply.json").write_text('{"answer": "the key is sk-a-very-secret-key-123"}')
    row = ask_target("x", f"command:sh -c 'cat {tmp_path}/reply.json' {{question}}")
    assert row.response is not None
    assert "very-secret" not in str(row.response.answer)


def test_turns_before_the_question_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [{"role": "user", "content": "Long stays?"}, {"role": "assistant", "content": "In summer."}]
    (tmp_path / "turns.json").write_text(json.dumps(turns))
    show = "import json, sys; print(json.dumps({'answer': sys.argv[1]}))".replace("{", "{{").replace("}", "}}")
    target = f'command:{sys.executable} -c "{show}" {{messages}}'
    assert _run(["ask", "In winter?", "-t", target, "--history", str(tmp_path / "turns.json"), "--output", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads(printed["answer"]) == [*turns, {"role": "user", "content": "In winter?"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"role": "bot", "content": "x"}]', "`history.0.role` is none of system, user, assistant, tool; write one"),
        ("[5]", "`history.0` is a number"),
        ("{}", "is no list of turns; write ["),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (None, "cannot be read: No such file"),
        ('[{"role": "user", "content": "x"}]', "takes the question alone; leave it out"),
    ],
)
def test_a_history_that_is_none_exits_2(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "turns.json"
    if content is not None:
        path.write_text(content)
    assert _run(["ask", "x", "-t", TRAVEL, "--history", str(path)]) == 2
    assert message in capsys.readouterr().err
