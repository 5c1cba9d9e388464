"""Locks and writes of files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.system.files import (
    check_result_file,
    locked_folder,
    user_name,
    write_new_files,
    write_result_file,
)
from tests.files import put

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


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", "old\n")
    with pytest.raises(UsageError, match="already exists"):
        write_new_files({tmp_path / "b.jsonl": ["new"], path: ["new\n"]}, force=False)
    assert [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]
    write_new_files({path: ["new\n"]}, force=True)
    assert path.read_text() == "new\n"


def names(folder: Path) -> set[str]:
    """What is in a folder."""
    return {each.name for each in folder.iterdir()}


def test_folders_are_made_and_an_older_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new/folder/result.md"
    check_result_file(path)
    assert names(tmp_path) == set(), "to check makes nothing"
    write_result_file(path, ["old"])
    path.chmod(0o640)
    write_result_file(path, ["né", "w\n"])
    assert path.read_bytes() == "néw\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert names(path.parent) == {"result.md"}


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.md"
    link.symlink_to("folder/result.md")
    for text in ("first", "second"):
        check_result_file(link)
        write_result_file(link, [text])
        assert (link.is_symlink(), (tmp_path / "folder/result.md").read_text()) == (True, text)
    assert names(tmp_path / "folder") == {"result.md"}


def test_text_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "x" * 100_000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_result_file(tmp_path / "result.json", pieces())
    assert names(tmp_path) == set()


def test_a_file_in_a_folder_that_cannot_be_written_to_is_written_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    path.write_text("what was there before")
    number = path.stat().st_ino
    monkeypatch.setattr(os, "access", lambda path, mode: path.is_file())
    check_result_file(path)
    write_result_file(path, ["new"])
    assert (path.read_text(), path.stat().st_ino) == ("new", number)


def test_a_device_and_a_pipe_stay_what_they_are(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_result_file(pipe, ["te", "xt"])
    assert (os.read(reader, 10), pipe.is_fifo()) == (b"text", True)
    os.close(reader)
    if Path("/dev/full").exists():
        with pytest.raises(InconclusiveError, match="/dev/full: cannot be written: No space left"):
            write_result_file(Path("/dev/full"), ["text"])


def test_what_can_never_be_written_is_found_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path, "Is a directory"),
        (tmp_path / "file/x.md", "Not a directory"),
        (tmp_path / ("x" * 300 + ".md"), "File name too long"),
    ):
        with pytest.raises(UsageError) as raised:
            check_result_file(path)
        assert str(raised.value) == f"{path}: cannot be written: {reason}; name another file"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for name in ("file", "new", "none/new"):
        with pytest.raises(UsageError, match="Permission denied"):
            check_result_file(tmp_path / name)
    with pytest.raises(UsageError, match=r"^`evaluation_json=.*new`: cannot be written: "):
        check_result_file(tmp_path / "new", "evaluation_json")


@pytest.mark.parametrize(("error", "has_number"), [(ImportError, False), (KeyError, True), (OSError, True)])
def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch, error: type[Exception], has_number: bool) -> None:
    def fail() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", fail)
    if not has_number:
        monkeypatch.delattr("os.getuid")
    assert user_name() == (f"uid {os.geteuid()}" if has_number else "unknown")
