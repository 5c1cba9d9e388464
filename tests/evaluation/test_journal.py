from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.journal import Journal, JournalBusyError, Reuse, delete_journal, read_command
from evaltrack.records import Failure, Question, Response, Row, Source, Verdict
from evaltrack.records.row import row_of
from evaltrack.system.files import state_folder
from tests.conftest import REPO

LONG = "An answer that takes some room. " * 30


def question(number: int, text: str = "") -> Question:
    return Question(id=str(number), question=text or f"What is number {number}?", expected_chunks=("a",), domain="d")


def row(number: int, *, trial: int = 1, answer: str = LONG, text: str = "", failed: bool = False) -> Row:
    timing = {"position": number, "trial": trial, "started_at": 1.5, "seconds": 0.1 + number / 3}
    if failed:
        return row_of(question(number, text), Failure(kind="target_error", message=answer), 5, **timing)
    response = Response(answer=f"{answer}{number}", sources=(Source(chunk_id="a", text="Là: “ça va”. 😀", score=0.1),))
    verdict = Verdict(judge="j", reasoning="Because.", overall_score=1 / 3)
    scores = {"hit": 1.0, "recall_at_k": 1 / 7 + number}
    measured = {"verdicts": (verdict,), "scores": scores, "passed": True}
    return row_of(question(number, text), response, 5, **timing, **measured)


Open = Callable[..., Journal]


@pytest.fixture
def path() -> Path:
    return state_folder() / f"{'0' * 32}.sqlite"


@pytest.fixture
def opened(path: Path) -> Iterator[Open]:
    journals: list[Journal] = []

    def open_journal(where: Path = path, *, retry_errors: bool = False) -> Journal:
        journals.append(Journal(where, {"command": "c"}, retry_errors=retry_errors))
        return journals[-1]

    yield open_journal
    for journal in journals:
        journal.close()


def kept(opened: Open, *rows: Row) -> None:
    journal = opened()
    for each in rows:
        journal.keep(each)
    assert journal.problem is None
    journal.close()


def recalled(opened: Open, *numbers: int) -> list[Row | None]:
    journal = opened()
    found = [journal.recall(question(number), 1) for number in numbers]
    journal.close()
    return found


def test_a_row_is_found_as_it_was_by_id_digest_and_trial(opened: Open) -> None:
    kept(opened, row(1), row(2, trial=2), row(3, failed=True))
    kept(opened, row(1, text="Edited?"))
    journal = opened()
    assert [journal.recall(question(number), trial) for number, trial in ((4, 1), (1, 2), (2, 1))] == [None] * 3
    relabelled = question(1).model_copy(update={"notes": "New notes.", "category": "c", "domain": "other"})
    assert journal.recall(relabelled, 1) == row(1)
    assert journal.recall(question(1, "Edited?"), 1) == row(1, text="Edited?")
    assert journal.recall(question(2), 2) == row(2, trial=2)
    assert journal.recall(question(3), 1) == row(3, failed=True)
    assert journal.reuse == Reuse(num_rows=3, reused=4, retried=0)


def test_only_a_success_replaces_an_error(opened: Open) -> None:
    kept(opened, row(1, failed=True, answer="first"), row(2))
    kept(opened, row(1, failed=True, answer="second"), row(2, failed=True, answer="late"))
    assert recalled(opened, 1, 2) == [row(1, failed=True, answer="first"), row(2)]
    kept(opened, row(1, answer="at last"))
    assert recalled(opened, 1, 2) == [row(1, answer="at last"), row(2)]


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"EVALTRACK_STATE_DIR": "/own", "XDG_STATE_HOME": "/xdg"}, "/own"),
        ({"XDG_STATE_HOME": "/xdg"}, "/xdg/evaltrack"),
        ({"EVALTRACK_STATE_DIR": "", "XDG_STATE_HOME": "/xdg"}, "/xdg/evaltrack"),
        ({}, "/home/user/.local/state/evaltrack"),
        ({"XDG_STATE_HOME": ""}, "/home/user/.local/state/evaltrack"),
    ],
)
def test_the_folder_of_the_user(variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    for name in ("EVALTRACK_STATE_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert state_folder() == Path(folder)


def test_only_the_owner_reads_it(opened: Open, path: Path) -> None:
    before = os.umask(0)
    try:
        journal = opened()
        journal.keep(row(1))
    finally:
        os.umask(before)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {path.name: 0o600, f"{path.name}-wal": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_it_says_of_its_run_is_kept_when_it_is_opened_again(opened: Open, path: Path) -> None:
    journal = opened()
    assert journal.name == path.stem
    journal.belongs_to("4488541a")
    journal.close()
    assert read_command(path) == {"command": "c", "run_id": "4488541a", "finished": False}
    journal = Journal(path, {"command": "new"})
    journal.close()
    assert read_command(path) == {"command": "new", "run_id": "4488541a", "finished": False}


def test_what_a_kill_left_is_removed_too(path: Path) -> None:
    path.parent.mkdir()
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).write_text("")
    delete_journal(path)
    delete_journal(path)
    assert list(path.parent.iterdir()) == []


WRITER = """
import sys
from pathlib import Path
from evaltrack.evaluation.journal import Journal
from tests.evaluation.test_journal import row

journal = Journal(Path(sys.argv[1]), {})
print("open", flush=True)
for number in range(int(sys.argv[2]), 10**9):
    journal.keep(row(number))
    assert journal.problem is None, journal.problem
    print(number + 1, flush=True)
"""


@contextmanager
def writing(path: Path, first: int = 0) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WRITER, str(path), str(first)]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


def acknowledged(process: subprocess.Popen[str], first: int) -> int:
    process.send_signal(signal.SIGKILL)
    assert process.stdout
    out = process.stdout.read()  # not `communicate`: it passes over what came with the first line
    process.wait(timeout=30)
    assert process.returncode == -signal.SIGKILL
    whole = [line for line in out.splitlines(keepends=True) if line.endswith("\n")]
    return int(whole[-1]) if whole else first


def test_ten_kills_lose_no_row_that_was_acknowledged(opened: Open, path: Path) -> None:
    chance, told = random.Random(7), 0
    for _ in range(10):
        with writing(path, told) as process:
            time.sleep(chance.uniform(0, 0.05))
            told = acknowledged(process, told)
        journal = opened()
        assert journal.reuse.num_rows - told in (0, 1)
        assert all(journal.recall(question(number), 1) == row(number) for number in range(journal.reuse.num_rows))
        told = journal.reuse.num_rows
        journal.close()
    assert told > 10, "the kills came before anything was kept"


def test_a_second_process_is_refused_until_the_first_is_gone(opened: Open, path: Path) -> None:
    with writing(path) as process:
        start = time.monotonic()
        with pytest.raises(JournalBusyError) as refused:
            opened()
        assert time.monotonic() - start < 10
        assert str(refused.value) == f"{path}: another process is evaluating this run; wait until it ends"
        with pytest.raises(JournalBusyError):
            read_command(path)
        told = acknowledged(process, 0)
    journal = opened()
    assert journal.reuse.num_rows >= told


def test_one_that_is_just_ending_is_waited_for(opened: Open, path: Path) -> None:
    kept(opened, row(1))
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")
    lets_go = threading.Timer(0.3, other.close)
    lets_go.start()
    assert recalled(opened, 1) == [row(1)]
    lets_go.join()


KEPT = 60


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a journal as a kill leaves them: half of its rows are in the log."""
    path = tmp_path_factory.mktemp("interrupted run") / "journal.sqlite"
    with closing(Journal(path, {"command": "c"})) as journal:
        for number in range(KEPT // 2):
            journal.keep(row(number))
    with closing(Journal(path, {"command": "c"})) as journal:
        for number in range(KEPT // 2, KEPT):
            journal.keep(row(number))
        return shutil.copytree(path.parent, tmp_path_factory.mktemp("killed") / "copy") / path.name


def damaged(path: Path, broken_off: Path, end: str, change: Callable[[bytes], bytes]) -> None:
    path.parent.mkdir(exist_ok=True)
    for each in ("", "-wal"):
        content = broken_off.with_name(broken_off.name + each).read_bytes()
        path.with_name(path.name + each).write_bytes(change(content) if each == end else content)


def usable_or_told(opened: Open, path: Path) -> int | None:
    """How many rows are found, each whole; None where the journal is refused with a message that says what to do."""
    refused = ""
    try:
        journal = opened()
    except UsageError as error:
        refused = str(error)
    if refused:
        assert re.fullmatch(
            rf"{path}: the journal cannot be used: .*; fix this, or remove it and evaluate again", refused
        )
        return None
    found = [journal.recall(question(number), 1) for number in range(KEPT)]
    assert all(each is None or each == row(number) for number, each in enumerate(found))
    journal.close()
    return sum(each is not None for each in found)


@pytest.mark.parametrize("end", ["", "-wal"], ids=["journal", "log"])
def test_a_journal_that_was_cut_gives_whole_rows_and_takes_the_others_again(
    opened: Open, path: Path, broken_off: Path, end: str
) -> None:
    for share in (0, 0.005, 0.35, 0.75, 1):
        damaged(path, broken_off, end, lambda content, share=share: content[: int(len(content) * share)])
        found = usable_or_told(opened, path)
        if share == 1:
            assert found == KEPT
        elif end:
            assert found is not None
            assert KEPT // 2 <= found < KEPT
        else:
            assert not found or share > 0.4, "the first pages hold what the others are found by"
        if found is not None:
            kept(opened, *map(row, range(KEPT)))
            assert recalled(opened, *range(KEPT)) == list(map(row, range(KEPT)))
        delete_journal(path)


@pytest.mark.parametrize(
    "content",
    [
        b"This is no journal.\n" * 200,
        b"SQLite format 3\0" + b"\xff" * 5000,
        b"\0" * 8192,
        "create table rows (one, two, three)",
        "create view rows as select 1 as id",
        "create table command (other text)",
    ],
    ids=["text", "broken head", "zeros", "other columns", "a view", "no command"],
)
def test_what_is_no_journal_is_refused(opened: Open, path: Path, content: bytes | str) -> None:
    path.parent.mkdir()
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_into(path, content)
    with pytest.raises(UsageError, match=rf"^{path}: the journal cannot be used: "):
        opened()
    if isinstance(content, bytes):
        assert path.read_bytes() == content
        with pytest.raises(UsageError, match="cannot be used"):
            read_command(path)


@pytest.mark.parametrize(
    "tables", [None, "pragma user_version", "create table command (number integer primary key, text text not null)"]
)
def test_one_that_was_killed_while_it_was_made_is_new(opened: Open, path: Path, tables: str | None) -> None:
    path.parent.mkdir()
    path.touch()
    if tables:
        write_into(path, "pragma journal_mode=wal")
        write_into(path, tables)
    assert read_command(path) == {}
    kept(opened, row(1))
    assert recalled(opened, 1) == [row(1)]


def write_into(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(statement, values)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        "[" * 100_000,
        row(1).model_dump_json().replace('"position"', '"of_a_later_version"'),
        row(1).model_dump_json().replace('"position":1', '"position":-1'),
        row(1).model_dump_json().replace('"seconds":0.', '"seconds":1e999,"x":0.'),
    ],
    ids=lambda text: str(text)[:20] if len(text) < 30 else "",
)
def test_content_that_is_no_row_is_asked_again(opened: Open, path: Path, text: str | bytes) -> None:
    kept(opened, row(1), row(3))
    raw = text.encode() if isinstance(text, str) else text
    write_into(path, "update rows set row = cast(? as text) where id = '1'", raw)
    journal = opened()
    assert [journal.recall(question(number), 1) for number in (1, 3)] == [None, row(3)]
    assert journal.reuse == Reuse(num_rows=2, reused=1, retried=0)
    journal.keep(row(1))
    journal.close()
    assert recalled(opened, 1, 3) == [row(1), row(3)]


def test_hostile_ids_are_data(opened: Open) -> None:
    names = ["'; drop table rows; --", "../../etc/passwd", "%", "\n", "😀"]
    asked = [question(number).model_copy(update={"id": name}) for number, name in enumerate(names)]
    rows = [row_of(each, Response(answer="so"), 5, trial=1) for each in asked]
    kept(opened, *rows)
    journal = opened()
    assert [journal.recall(each, 1) for each in asked] == rows


def test_a_disk_that_runs_full_loses_no_row_and_takes_rows_again(opened: Open, small_disk: Path) -> None:
    path = small_disk / "journal.sqlite"
    journal, told = opened(path), 0
    while journal.problem is None and told < 1000:
        journal.keep(row(told))
        told += journal.problem is None
    journal.belongs_to("4488541a")
    assert 10 < told < 1000
    assert journal.problem is not None
    assert "database or disk is full" in journal.problem
    assert journal.problem.endswith("later rows are not stored")
    journal.close()

    fill(small_disk / "filler")
    journal = opened(path)
    assert [journal.recall(question(number), 1) for number in range(told + 1)] == [*map(row, range(told)), None]
    journal.keep(row(told))
    assert journal.problem is not None
    journal.close()

    (small_disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=2m", small_disk], check=True)
    for _ in range(2):
        journal = opened(path)
        journal.keep(row(told))
        assert journal.problem is None
        assert [journal.recall(question(number), 1) for number in range(told)] == [*map(row, range(told))]
        journal.close()


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 512)


def test_rows_on_a_disk_that_became_read_only(opened: Open, small_disk: Path) -> None:
    path = small_disk / "journal.sqlite"
    journal = opened(path)
    journal.keep(row(1))
    journal.close()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(UsageError) as refused:
        opened(path)
    assert str(refused.value).startswith(f"{path}: the journal cannot be used: ")
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    journal = opened(path)
    assert journal.recall(question(1), 1) == row(1)
    journal.close()


def test_a_disk_that_goes_bad_meanwhile(opened: Open, path: Path, broken_off: Path) -> None:
    damaged(path, broken_off, "none", bytes)
    kept(opened, row(0))
    journal = opened()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    journal._database.execute("pragma shrink_memory")
    found = [journal.recall(question(number), 1) for number in range(KEPT)]
    assert all(each is None or each == row(number) for number, each in enumerate(found))
    assert None in found
    assert journal.problem == (f"{path}: cannot be read: database disk image is malformed; its questions are rerun")
