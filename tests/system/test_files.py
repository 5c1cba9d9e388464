"""Locks and renames, where the system has them and where it refuses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evaltrack.system import retries
from evaltrack.system.files import locked_folder, replace_file
from evaltrack.system.retries import Policy

IS_FREE = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def is_free(folder: Path) -> bool:
    """Whether another process gets the lock at once."""
    return subprocess.run([sys.executable, "-c", IS_FREE, str(folder)], stderr=subprocess.DEVNULL).returncode == 0


def test_a_locked_folder_is_locked_for_others(tmp_path: Path) -> None:
    with locked_folder(tmp_path):
        assert not is_free(tmp_path)
    assert is_free(tmp_path)


def test_without_locks_the_block_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with locked_folder(tmp_path):
        assert is_free(tmp_path)


def test_a_folder_that_is_not_there_is_the_matter_of_the_block(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked_folder(tmp_path / "none"):
        (tmp_path / "none/file").read_bytes()


class Refusals:
    """Counts renames and refuses the first of them, as Windows does while a file is open elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        self.tries, rename = 0, Path.replace

        def replace(part: Path, path: Path) -> Path:
            self.tries += 1
            if self.tries <= number:
                raise PermissionError(13, "Access is denied")
            return rename(part, path)

        monkeypatch.setattr(Path, "replace", replace)
        monkeypatch.setattr(retries, "FILE_IS_OPEN", Policy(0.0, 0.0, calls=21))


@pytest.mark.parametrize(("refused", "tries"), [(0, 1), (3, 4), (20, 21), (21, 21)])
def test_windows_is_given_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int, tries: int) -> None:
    part, path = tmp_path / "part", tmp_path / "path"
    part.write_text("new")
    path.write_text("old")
    refusals = Refusals(monkeypatch, refused)
    monkeypatch.setattr("os.sep", "\\")
    if refused > 20:
        with pytest.raises(PermissionError):
            replace_file(part, path)
    else:
        replace_file(part, path)
    monkeypatch.undo()
    assert refusals.tries == tries
    assert path.read_text() == ("old" if refused > 20 else "new")


def test_elsewhere_a_refusal_is_final(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part").touch()
    refusals = Refusals(monkeypatch, 1)
    with pytest.raises(PermissionError):
        replace_file(tmp_path / "part", tmp_path / "path")
    assert refusals.tries == 1
