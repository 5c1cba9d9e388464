"""A golden file is replaced as a whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.golden.file import ChangedMeanwhileError, read_objects, write_objects
from evaltrack.system.files import content_digest

LINES = '{"id": 2, "question": "Zwölf?", "notes": null}\n{"question": "B?", "id": "1"}\n'
ARRAY = '[\n  {"question": "Zwölf?", "metadata": {"a": [1, 2.5]}},\n  {"question": "B?"}\n]\n'


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", LINES), ("a.json", ARRAY)])
def test_what_is_read_is_written_again(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    for content in (text, "\ufeff" + text.replace("\n", "\r\n\r\n")):
        path.write_bytes(content.encode())
        write_objects(path, read_objects(path), content_digest(path))
        assert path.read_bytes() == text.encode()


def test_a_file_that_was_changed_meanwhile_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(LINES)
    objects, digest = read_objects(path), content_digest(path)
    path.write_text(LINES + "{\n")
    for before in (digest, ""):
        with pytest.raises(ChangedMeanwhileError, match="was changed at the same time; try again"):
            write_objects(path, objects, before)
    with pytest.raises(ChangedMeanwhileError):
        read_objects(path)
    assert path.read_text() == LINES + "{\n"


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(LINES)

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InconclusiveError, match="cannot be written: No space left on device; the old file was kept"):
        write_objects(path, [], content_digest(path))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match="cannot be written: Permission denied; name another file"):
        write_objects(path, [], content_digest(path))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.jsonl", LINES)]
