"""`evaltrack golden push` and `pull`: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import pytest

from evaltrack.cli import _run
from evaltrack.cli.golden_sync import SHOWN


@pytest.fixture
def golden(store_uri: str, tmp_path: Path) -> Path:
    """A set of more questions than are printed, and an empty store."""
    assert store_uri
    path = tmp_path / "mine.jsonl"
    lines = [json.dumps({"id": n, "question": f"question {n}?", "expected_answer": "a"}) for n in range(SHOWN + 1)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_people_see_what_changes(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each question with what was done and where; a conflict is exit code 1, and says how it is settled."""
    assert _run(["golden", "push", str(golden), "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert ("0  added\n" in out, "... and 1 more; --output json lists all" in out) == (True, True)
    assert err == f"dataset mine: would be {SHOWN + 1} added, 0 changed, 0 removed; 0 the same\n"
    assert _run(["golden", "push", str(golden)]) == 0
    edited = {"inputs": {"question": "question 1?"}, "expectations": {"expected_response": "b"}}
    hostile = {"inputs": {"question": "::error::x\nnext"}, "tags": {"id": "\x1b[31m\n::add-mask::x"}}
    mlflow.genai.datasets.get_dataset(name="mine").merge_records([edited, hostile])
    golden.write_text(golden.read_text().replace('1?", "expected_answer": "a"', '1?", "expected_answer": "c"'))
    capsys.readouterr()
    assert _run(["golden", "push", str(golden)]) == 1
    out, err = capsys.readouterr()
    assert "1  conflict: changed in the file and in the dataset: expected_answer\n" in out
    assert "added in the dataset; `golden pull` brings it" in out
    assert ("\x1b" in out, "\n::" in out) == (False, False)
    assert err.endswith(
        f"; {SHOWN} the same, 1 left, 1 in conflict (--force: the file decides)\n".replace("20 the", "19 the")
    )
    assert _run(["golden", "pull", "mine", str(golden), "--force"]) == 0
    out, err = capsys.readouterr()
    assert ("conflict, the dataset decides" in out, "mine.jsonl: 1 added, 1 changed" in err) == (True, True)


def test_a_pull_that_leaves_a_record_exits_1(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is no valid question is named; the others are carried over."""
    assert _run(["golden", "push", str(golden)]) == 0
    bad = {"inputs": {"question": "question 1?"}, "expectations": {"expected_chunks": "not-a-list"}}
    edited = {"inputs": {"question": "question 2?"}, "expectations": {"expected_response": "b"}}
    mlflow.genai.datasets.get_dataset(name="mine").merge_records([bad, edited])
    capsys.readouterr()
    assert _run(["golden", "pull", "mine", str(golden)]) == 1
    out, err = capsys.readouterr()
    assert out == "2  changed: expected_answer\n"
    assert "holds no question: " in err
    assert _run(["golden", "pull", "mine", str(golden), "--output", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["invalid"] == ["1"]


def test_machines_get_all(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every question, with its fields; a removed question is named with the option that removes it."""
    assert _run(["golden", "push", str(golden), "--output", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (len(made["changes"]), made["dataset"], made["conflicts"]) == (SHOWN + 1, "mine", 0)
    assert made["changes"][0] == {"id": "0", "kind": "added", "side": "file", "fields": [], "is_done": True}
    golden.write_text("\n".join(golden.read_text().splitlines()[1:]) + "\n")
    assert _run(["golden", "push", str(golden)]) == 0
    assert "0  removed in the file; --prune removes it\n" in capsys.readouterr().out
    assert _run(["golden", "pull", "mime"]) == 2
    assert "did you mean `mine`?" in capsys.readouterr().err
