"""Making a golden set: what the corpus holds, what the target returns, and a question more."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaltrack import open_golden
from evaltrack.api.add_question import add_question
from evaltrack.cli import _run
from evaltrack.errors import GoldenError, UsageError
from tests.conftest import REPO

OVERSTAY = "What happens if I overstay my 90 days in the Schengen area?"
TRAVEL = f"{REPO}/golden/corpus/travel"


def test_the_steps_of_making_a_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Index, ask, add, lint: the ids of one are those of the next."""
    golden = tmp_path / "new" / "mine.jsonl"
    assert _run(["index", TRAVEL, "--project", "trips", "--output", "json"]) == 0
    index = json.loads(capsys.readouterr().out)
    ids = {chunk["chunk_id"] for page in index["documents"] for chunk in page["chunks"]}
    assert (index["project"], len(ids)) == ("trips", index["num_chunks"])
    assert _run(["ask", OVERSTAY, "-t", f"bm25:{TRAVEL}", "--output", "json"]) == 0
    first = json.loads(capsys.readouterr().out)["sources"][0]["chunk_id"]
    assert first in ids
    options = ["--answer", "No.", "--difficulty", "easy", "--category", "usage", "--notes", "n", "--domain", "travel"]
    assert _run(["golden", "add", str(golden), "--question", OVERSTAY, "--expect", first, *options]) == 0
    assert _run(["golden", "add", str(golden), "--question", "Who won in 1954?", "--negative", "--draft"]) == 0
    assert _run(["golden", "add", str(golden), "--question", "And?", "--quote", "90 days", "--source", "Visas"]) == 0
    one, two, three = open_golden(golden, drafts=True)
    assert (one.id, one.expected, one.expected_answer, one.domain) == ("1", (first,), "No.", "travel")
    assert (two.id, two.negative, two.draft, three.expected_sources) == ("2", True, True, ("Visas",))
    assert len(open_golden(golden)) == 2


def test_a_question_that_expects_nothing_is_not_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = tmp_path / "mine.jsonl"
    assert _run(["golden", "add", str(golden), "--question", "Who?"]) == 2
    assert "nothing says what the question expects; give --expect" in capsys.readouterr().err
    assert not golden.exists()
    assert _run(["golden", "add", str(golden), "--question", "Who?", "--answer", "You."]) == 0
    assert _run(["golden", "add", str(golden), "--question", "Why?", "--draft"]) == 0


def test_the_index_is_shown_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["index", TRAVEL]) == 0
    out = capsys.readouterr().out
    assert "schengen-visa.md  Schengen visas\n  schengen-visa  (" in out
    assert "travel: 19 pages, 85 chunks; ask with -t 'bm25:" in out
    assert _run(["index", TRAVEL, "--chunk", "words:200:40"]) == 0
    assert "?chunk=words:200:40'" in capsys.readouterr().out
    assert _run(["index", "nowhere"]) == 2
    assert _run(["index", TRAVEL, "--chunk", "letters"]) == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question": "a?", "id": 1}, "has a question `1`"),
        ({"question": " FIRST?"}, "question `1` of .* asks the same"),
        ({"question": ""}, "`question` is empty"),
        ({"question": "b?", "difficulty": "odd"}, "difficulty"),
        ({"question": "b?", "colour": "red"}, "unknown field `colour`"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(tmp_path: Path, fields: dict[str, str], message: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": 1, "question": "First?"}')
    with pytest.raises(UsageError, match=message):
        add_question(path, **fields)
    assert path.read_text() == '{"id": 1, "question": "First?"}'


def test_a_set_with_bad_lines_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("nope\n")
    with pytest.raises(GoldenError, match="is not JSON"):
        add_question(tmp_path / "mine.jsonl", question="a?")
    with pytest.raises(UsageError, match="a golden set is a"):
        add_question(tmp_path / "mine.txt", question="a?")
    (tmp_path / "file").touch()
    with pytest.raises(GoldenError, match="cannot be written"):
        add_question(tmp_path / "file" / "mine.jsonl", question="a?")


def test_two_who_add_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda number: add_question(path, question=f"Question {number}?"), range(24)))
    assert sorted(int(each.id) for each in made) == list(range(1, 25))
    assert {each.question for each in open_golden(path)} == {f"Question {number}?" for number in range(24)}


@pytest.mark.parametrize("content", ["", "[]", "\n"])
def test_an_empty_file_becomes_a_set(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(content)
    add_question(path, question="a?")
    add_question(path, question="b?")
    assert [(each.id, each.question) for each in open_golden(path)] == [("1", "a?"), ("2", "b?")]


def test_a_question_is_named_and_a_negative_expects_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["golden", "add", str(tmp_path / "mine.jsonl")]) == 2
    assert "Missing option '--question'" in capsys.readouterr().err
    assert _run(["golden", "add", "x.jsonl", "--question", "a?", "--negative", "--expect", "b"]) == 2
    assert not (tmp_path / "mine.jsonl").exists()
