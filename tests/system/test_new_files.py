"""New files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.system.new_files import new_files
from tests.files import put


def overtaken(path: Path) -> None:
    """Write a file that another process makes before it is whole."""
    with new_files(force=False) as files, files.open(path) as file:
        file.write("new\n")
        put(path, "other\n")


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is there already"):
        overtaken(tmp_path / "a.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
    assert (tmp_path / "a.jsonl").read_text() == "other\n"


def test_file_systems_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file is renamed; one that is there is kept."""

    def refused(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with new_files(force=False) as files, files.open(tmp_path / "a") as file:
        file.write("new\n")
    assert (tmp_path / "a").read_text() == "new\n"
    with pytest.raises(UsageError, match="is there already"):
        overtaken(tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
