"""`evaltrack golden import` and `export`, as a user meets them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from evaltrack.cli import _run
from tests.conftest import REPO
from tests.files import put

TRAVEL = str(REPO / "golden/travel.jsonl")


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "large.csv", "-o", "{disk}/mine.jsonl"],
        *(
            ["export", "large.jsonl", "--to", form, "-o", f"{{disk}}/{name}"]
            for form, name in (
                ("ragas", "mine.jsonl"),
                ("ragas", "mine.csv"),
                ("ragas", "mine.parquet"),
                ("ragas", "mine.xlsx"),
                ("promptfoo", "mine.yaml"),
                ("beir", "beir"),
                ("trec", "trec"),
            )
        ),
    ],
    ids=lambda each: " ".join(each[2:]),
)
def test_a_full_disk_is_no_wrong_use(
    arguments: list[str],
    there: bool,
    small_disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 3; nothing half-written is left, and an older file is as it was."""
    monkeypatch.chdir(tmp_path)
    texts = [random.Random(place).randbytes(600).hex() for place in range(600)]
    lines = [{"id": str(place), "question": f"{text}?", "expected_chunks": [text]} for place, text in enumerate(texts)]
    Path("large.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = "".join(f"{line['id']},{line['question']},{line['expected_chunks'][0]}\n" for line in lines)
    Path("large.csv").write_text("id,question,expected_chunks\n" + rows)
    output = Path(arguments[-1].format(disk=small_disk))
    if there and output.suffix:
        output.write_text("precious")
    ended = _run(["golden", *arguments[:-1], str(output), *["--force"] * there])
    shown = capsys.readouterr().err
    assert ended == 3, shown
    assert "cannot be written: No space left on device; name another file" in " ".join(shown.split())
    left = [path for path in small_disk.rglob("*") if path.is_file()]
    assert [path.read_text() for path in left] == ["precious"] * (there and bool(output.suffix))


def test_a_table_becomes_a_golden_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The result is on stdout, what was left out on stderr."""
    path = put(tmp_path / "mine.csv", "Query,doc_ids,tags\na?,x|y,t\n")
    columns = ["--column", "question=Query", "--column", "expected-chunks=doc_ids", "--separator", "|"]
    assert _run(["golden", "import", str(path), "-o", str(tmp_path / "out.jsonl"), *columns]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/out.jsonl (table): 1 question, 0 negatives, 0 that expect nothing of retrieval\n"
    assert printed.err == f"  `tags` is no field of a golden set: kept in `metadata`: 1 ({path}:2)\n"
    assert _run(["golden", "lint", str(tmp_path / "out.jsonl")]) == 0


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--output json` says it to machines."""
    folder = str(tmp_path / "trec")
    assert _run(["golden", "export", TRAVEL, "--to", "trec", "-o", folder, "--output", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["paths"], made["questions"]) == ([f"{folder}/topics.tsv", f"{folder}/qrels.txt"], 63)
    out = str(tmp_path / "out.jsonl")
    assert _run(["golden", "import", *made["paths"], "--from", "trec", "-o", out, "--output", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert {name: made[name] for name in ("path", "form", "questions", "negatives")} == {
        "path": out,
        "form": "trec",
        "questions": 60,
        "negatives": 0,
    }
    assert made["notes"][0].startswith("queries without judgements: left out: 3")


def test_an_export_names_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With counts."""
    assert _run(["golden", "export", TRAVEL, "--to", "ragas", "-o", str(tmp_path / "r.jsonl")]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/r.jsonl: 63 questions\n"
    assert "`category` has no place there: left out: 63" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["import", "a.csv", "-o", "there.jsonl"],
            "there.jsonl: is there already; name another file, or replace it with --force",
        ),
        (["import", "a.csv", "-o", "out.jsonl", "--column", "question"], "--column question: write FIELD=COLUMN"),
        (["import", "a.csv", "-o", "out.jsonl"], "its content does not show its format; name it with --from: trec"),
        (
            ["import", "a.csv", "-o", "out.jsonl", "--from", "table"],
            "say which holds the question: --column question=NAME",
        ),
        (["import", "a.csv", "-o", "out.jsonl", "--from", "csv"], "'csv' is not one of 'auto', 'trec'"),
        (["import", "-o", "out.jsonl"], "Missing argument 'FILES...'"),
        (["export", "a.csv", "--to", "trec", "-o", "x"], "a golden set is a .jsonl file"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message names the option."""
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "there.jsonl", "precious\n")
    put(tmp_path / "a.csv", "q\nx\n")
    assert _run(["golden", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "there.jsonl"]
