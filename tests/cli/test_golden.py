"""`evaltrack golden` on the command line: what is printed where, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack.cli import main
from evaltrack.cli.golden import FINDINGS_SHOWN
from evaltrack.errors import Guide

MANY = {"question": "How long may a guest stay?", "expected_chunks": ["visa"]}


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    with pytest.raises(SystemExit) as ended:
        main(["golden", *map(str, arguments)])
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


def written(folder: Path, *questions: dict[str, Any]) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps({"id": n, **each}) + "\n" for n, each in enumerate(questions)))
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs/visa.md").write_text("# Visa\n\nGuests stay.\n")
    return path


def test_findings_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One list on stdout, all of every file; the exit code is that of the worst."""
    path = written(tmp_path, {"question": "a?", "expected_chunks": ["Visa", "no such page"]}, *[MANY] * 30)
    code, out, _ = called(capsys, "lint", path, "--corpus", tmp_path / "docs", "--output", "json")
    findings = json.loads(out)
    assert code == 2
    assert findings[0] == {
        "file": str(path),
        "line": 1,
        "id": "0",
        "code": "other-form-id",
        "message": f"`Visa` is not in {tmp_path}/docs, `visa` is",
        "cure": "write `visa`",
        "severity": "error",
    }
    assert sum(finding["code"] == "near-duplicate" for finding in findings) == 29


def test_a_set_without_a_corpus_is_held_against_that_of_the_settings_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, {"question": "a?", "expected_chunks": ["rail"]}, *[MANY] * 30)
    codes = {}
    for target in ("bm25:docs", "python:app:ask"):
        (tmp_path / "evaltrack.toml").write_text(f"[run]\ntarget = '{target}'\n")
        codes[target] = {each["code"] for each in json.loads(called(capsys, "lint", path, "--output", "json")[1])}
    assert "missing-id" in codes["bm25:docs"] - codes["python:app:ask"]
    assert "no-corpus" in codes["python:app:ask"] - codes["bm25:docs"]


def test_what_an_error_leaves_out_is_listed_by_the_command_it_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, *[{"questoin": "a"}] * 31)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(path)])
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-2]
    command = f"golden lint {path} --output json"
    assert last == f"... and 42 more problems; `evaltrack {command}` lists all"
    code, out, _ = called(capsys, *command.split()[1:])
    assert (code, len(json.loads(out))) == (2, 62)


def test_findings_for_people_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, *[MANY] * 30)
    code, out, err = called(capsys, "lint", path)
    assert (code, out) == (0, "1 golden set checked, all lines are good\n")
    assert err.count("[near-duplicate]") == FINDINGS_SHOWN + 1
    assert f"{path}: ... and 9 more [near-duplicate]; --output json lists all" in err
    assert f"{path}: note: there is no corpus beside the file" in err
    assert "name the folder of its pages (--corpus) [no-corpus]" in err
    assert called(capsys, "lint", path, "--strict")[0] == 1
    ignored = ("--ignore", "near-duplicate", "--ignore", "thin-domain")
    assert called(capsys, "lint", path, "--strict", *ignored)[0] == 0
    code, _, err = called(capsys, "lint", path, "--ignore", "near-dup")
    assert (code, err) == (2, "Error: --ignore near-dup: no such code; did you mean `near-duplicate`?\n")


def test_hostile_texts_reach_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, {"question": "a?\x1b[2J ", "expected_chunks": ["\x1b]0;x\x07", "http://me:pw@host/a"]})
    _, _, err = called(capsys, "lint", path, "--corpus", tmp_path / "docs")
    assert "\x1b" not in err
    assert ("pw@" in err, "http://host/a" in err) == (False, True)


def test_an_empty_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b"")
    code, _, err = called(capsys, "lint", path)
    message = f"{path}: holds no questions; write one JSON object a line, with `id` and `question` [bad-line]"
    assert (code, err.splitlines()) == (2, [message, Guide.LINT.reference])
