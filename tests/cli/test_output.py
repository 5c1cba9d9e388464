"""Output that is not UTF-8, or not for people; in this process."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from evaltrack.cli import main
from evaltrack.cli.output import TEXT_ESCAPES, wants_json
from tests.api.test_evaluate import golden


def code(*arguments: str | Path) -> int:
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    found = ended.value.code
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_an_output_that_is_not_utf_8_lacks_characters_and_nothing_else(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    word = "Москва \N{GRINNING FACE} é"
    path = golden(tmp_path, [{"id": word, "question": f"{word}?", "expected_chunks": ["a"], "domain": word}])
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert code("run", path, "-t", "python:tests.small_targets:worse", "--output", "json") == 0
    printed = json.loads(written.getvalue().decode(encoding))
    assert printed["rows"][0]["id"] == word

    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert code("run", path, "-t", "python:tests.small_targets:nothing") == 0
    assert "?????? ?" in written.getvalue().decode(encoding)


def test_a_sign_that_cannot_be_written_is_one_of_ascii() -> None:
    assert "−0.053 → ≈ 0 ✕ Я".encode("ascii", TEXT_ESCAPES) == b"-0.053 -> ~ 0 x ?"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", TEXT_ESCAPES)


def test_json_by_default_is_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert [wants_json(output) for output in ("auto", "json", "table")] == [True, True, False]
