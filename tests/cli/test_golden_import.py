"""`evaltrack golden import`, as a user meets it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evaltrack.cli import _run
from tests.conftest import REPO
from tests.files import put

TRAVEL = str(REPO / "golden/travel.jsonl")


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_is_no_wrong_use(
    there: bool,
    small_disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 3; nothing half-written is left, and an older file is as it was."""
    monkeypatch.chdir(tmp_path)
    texts = [random.Random(place).randbytes(600).hex() for place in range(600)]
    rows = "".join(f"{place},{text}?,{text}\n" for place, text in enumerate(texts))
    Path("large.csv").write_text("id,question,expected_chunks\n" + rows)
    output = small_disk / "mine.jsonl"
    if there:
        output.write_text("precious")
    ended = _run(["golden", "import", "large.csv", "-o", str(output), *["--force"] * there])
    shown = capsys.readouterr().err
    assert ended == 3, shown
    assert "cannot be written: No space left on device; name another file" in " ".join(shown.split())
    left = [path for path in small_disk.rglob("*") if path.is_file()]
    assert [path.read_text() for path in left] == ["precious"] * there


def test_a_table_becomes_a_golden_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path / "mine.csv", "Query,doc_ids,tags\na?,x|y,t\n")
    fields = ["--map", "question=Query", "--map", "expected-chunks=doc_ids", "--separator", "|"]
    assert _run(["golden", "import", str(path), "-o", str(tmp_path / "out.jsonl"), *fields]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/out.jsonl (table): 1 question, 0 negatives, 0 that expect nothing of retrieval\n"
    assert printed.err == f"  `tags` is no field of a golden set: kept in `metadata`: 1 ({path}:2)\n"
    assert _run(["golden", "lint", str(tmp_path / "out.jsonl")]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["import", "a.csv", "-o", "there.jsonl"],
            "there.jsonl: is there already; name another file, or replace it with --force",
        ),
        (["import", "a.csv", "-o", "out.jsonl", "--map", "question"], "--map question: write FIELD=PATH"),
        (["import", "a.csv", "-o", "out.jsonl"], "its content does not show its format; name it with --from: trec"),
        (
            ["import", "a.csv", "-o", "out.jsonl", "--from", "table"],
            "say which holds the question: --map question=NAME",
        ),
        (["import", "a.csv", "-o", "out.jsonl", "--from", "csv"], "'csv' is not one of 'auto', 'trec'"),
        (["import", "-o", "out.jsonl"], "Missing argument 'FILES...'"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "there.jsonl", "precious\n")
    put(tmp_path / "a.csv", "q\nx\n")
    assert _run(["golden", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "there.jsonl"]
