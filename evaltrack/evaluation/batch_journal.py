"""What batch judging keeps on disk beside a run's rows: answers without verdicts, calls, batches and their replies.

An answer is there before it is judged, a call before its file goes up, the token of a batch before it is begun, its id
before anything else happens, and a reply before its row is made. So after a kill nothing is asked for twice.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

from evaltrack.errors import InconclusiveError
from evaltrack.evaluation.journal_lines import any_row_in, line_of, row_in
from evaltrack.llm import BatchCall, BatchReply
from evaltrack.records import Question, Row, Usage

TABLES = """
create table if not exists answers (
    number integer primary key, id text not null, digest text not null, trial integer not null,
    current integer not null, row text not null, checksum integer not null, unique (id, digest, trial)
);
create table if not exists parts (
    number integer primary key, token text not null, model text not null, tried integer not null default 0,
    file text, batch text, status text not null default 'open'
);
create table if not exists calls (
    number integer primary key, key text not null unique, owner text not null, model text not null, line text,
    size integer not null, part integer, text text, usage text, problem text
);
create index if not exists calls_by_part on calls (part);
"""
PAGE = 100
"""Answers read at a time."""

NOTES = {
    "token": "update parts set token = ? where number = ?",
    "tried": "update parts set tried = ? where number = ?",
    "file": "update parts set file = ? where number = ?",
    "batch": "update parts set batch = ? where number = ?",
    "status": "update parts set status = ? where number = ?",
}
"""What is kept of a batch, by its column."""


@dataclass(frozen=True)
class Part:
    """The calls of one batch. `tried`: its file may have gone up, and the batch may have begun.

    `status` is `open` until its replies are on disk, then `read` until its files are deleted, then `done`.
    """

    number: int
    token: str
    tried: bool
    file: str | None
    batch: str | None
    status: str

    @property
    def file_name(self) -> str:
        """The name of its file on the server."""
        return f"evaltrack-{self.token}.jsonl"


class BatchJournal:
    """The answers, calls and batches of one evaluation, in the file of its journal.

    All methods raise:
        InconclusiveError: the file cannot be read or written any more.
    """

    def __init__(self, database: sqlite3.Connection, lock: threading.Lock, path: Path) -> None:
        self._database, self._lock, self._path = database, lock, path
        self.folder = path.parent
        with self._safely():
            database.executescript(TABLES)
            database.execute("update answers set current = 0")

    @contextmanager
    def _safely(self, *, durably: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction, all of it or nothing; `durably` so that it outlives a power cut, with all before it."""
        try:
            with self._lock:
                self._database.execute(f"pragma synchronous={'full' if durably else 'normal'}")
                with self._database:
                    yield self._database
        except sqlite3.Error as error:
            why = f"{self._path}: {error}; batches go on at the server"
            raise InconclusiveError(f"{why}: make room, and go on with `evaltrack resume`") from None

    def _all(self, select: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        with self._safely() as database:
            return database.execute(select, values).fetchall()

    def _number(self, select: str, values: Sequence[object] = ()) -> int:
        found = self._all(select, values)[0][0]
        return found if isinstance(found, int) else 0

    def keep_answer(self, row: Row) -> None:
        """Keep a row that has its answer and no verdict."""
        key, digest, trial, _, text, checksum = line_of(row)
        with self._safely() as database:
            database.execute("begin")
            database.execute(
                "insert into answers (id, digest, trial, current, row, checksum) values (?, ?, ?, 1, ?, ?)"
                " on conflict do update set current = 1, row = excluded.row, checksum = excluded.checksum",
                [key, digest, trial, text, checksum],
            )

    def answer(self, question: Question, trial: int) -> Row | None:
        """The answer of a question that waits for its verdicts; None where it is to be asked."""
        values = [question.id, question.digest, trial]
        found = self._all("select row, checksum from answers where id = ? and digest = ? and trial = ?", values)
        return row_in(found[0][0], found[0][1], question, trial) if found else None

    def is_current(self, row: Row) -> bool:
        """Whether an answer is kept as one of this evaluation."""
        values = [row.question.id, row.question.digest, row.trial]
        select = "select 1 from answers where current = 1 and id = ? and digest = ? and trial = ?"
        return bool(self._all(select, values))

    def drop_answers(self, rows: Iterable[Row]) -> None:
        """Remove the answers of rows that are finished."""
        keys = [(row.question.id, row.question.digest, row.trial) for row in rows]
        with self._safely() as database:
            database.execute("begin")
            database.executemany("delete from answers where id = ? and digest = ? and trial = ?", keys)

    def answers(self) -> Iterator[Row]:
        """The answers of this evaluation's questions, in the order they came, a page in memory."""
        last = 0
        select = "select number, row, checksum from answers where current = 1 and number > ? order by number limit ?"
        while page := self._all(select, [last, PAGE]):
            for number, text, checksum in page:
                assert isinstance(number, int)
                last = number
                if (row := any_row_in(text, checksum)) is not None:
                    yield row

    @property
    def num_under_way(self) -> int:
        """How many batches are at the server, with replies that are not here yet."""
        return self._number("select count(*) from parts where batch is not null and status = 'open'")

    def has_call(self, key: str) -> bool:
        """Whether a verdict is asked for already, in a batch or in one to come."""
        return bool(self._all("select 1 from calls where key = ?", [key]))

    def add_calls(self, calls: Iterable[tuple[str, BatchCall]]) -> None:
        """Keep calls, each with the question it is for; one with the same key is asked once."""
        with self._safely() as database:
            database.execute("begin")
            for owner, call in calls:
                line = call.line
                database.execute(
                    "insert or ignore into calls (key, owner, model, line, size) values (?, ?, ?, ?, ?)",
                    [call.key, owner, call.model, line.decode(), len(line)],
                )

    def make_parts(self, max_lines: int, max_bytes: int) -> None:
        """Put the calls that are in no batch into new ones, each for one model and within the limits of a file."""
        waiting = "from calls where part is null and line is not null"
        with self._safely() as database:
            database.execute("begin")
            database.execute(
                "update calls set line = null, problem = 'too long for a batch' where part is null and size > ?",
                [max_bytes],
            )
            for (model,) in database.execute(f"select distinct model {waiting}").fetchall():
                part, lines, room = 0, 0, 0
                select = f"select number, size {waiting} and model = ? order by number"
                for number, size in database.execute(select, [_text(model)]).fetchall():
                    if not part or lines == max_lines or size > room:
                        part, lines, room = _new_part(database, model), 0, max_bytes
                    database.execute("update calls set part = ? where number = ?", [part, number])
                    lines, room = lines + 1, room - size

    def split(self, part: Part) -> bool:
        """Make two batches of one that is too large for the account; False where it holds a single call."""
        with self._safely() as database:
            database.execute("begin")
            numbers = [each for (each,) in database.execute("select number from calls where part = ?", [part.number])]
            if len(numbers) < 2:
                return False
            (model,) = database.execute("select model from parts where number = ?", [part.number]).fetchone()
            other = _new_part(database, model)
            half = [(other, number) for number in numbers[len(numbers) // 2 :]]
            database.executemany("update calls set part = ? where number = ?", half)
        return True

    def parts(self) -> list[Part]:
        """The batches that are not done."""
        select = "select number, token, tried, file, batch, status from parts where status != 'done' order by number"
        return [
            Part(number, _text(token), bool(tried), _text(file) or None, _text(batch) or None, _text(status))
            for number, token, tried, file, batch, status in self._all(select)
            if isinstance(number, int)
        ]

    def renew(self, part: Part) -> None:
        """Make a batch that was refused one that has not begun."""
        self.note(part, token=uuid4().hex, tried=0, file=None, batch=None)

    def note(self, part: Part, **values: str | int | None) -> None:
        """Keep what became of a batch."""
        with self._safely(durably=True) as database:
            database.execute("begin")
            for name, value in values.items():
                database.execute(NOTES[name], [value, part.number])

    def lines(self, part: Part) -> Iterator[bytes]:
        """The lines of its file, a page in memory."""
        last = 0
        select = "select number, line from calls where part = ? and line is not null and number > ? order by number"
        while page := self._all(f"{select} limit {PAGE}", [part.number, last]):
            for number, line in page:
                assert isinstance(number, int)
                assert isinstance(line, bytes)
                last = number
                yield line

    def num_calls(self, part: Part | None = None) -> int:
        """How many calls a batch holds, or all of them."""
        if part is None:
            return self._number("select count(*) from calls where part is not null")
        return self._number("select count(*) from calls where part = ?", [part.number])

    def keep_replies(self, part: Part, replies: Iterable[BatchReply]) -> None:
        """Keep the replies to calls of a batch; of a call that has one already the first counts."""
        with self._safely() as database:
            database.execute("begin")
            for reply in replies:
                usage = reply.usage.model_dump_json() if reply.usage else None
                text = None if reply.text is None else reply.text.replace("\0", "\N{REPLACEMENT CHARACTER}")
                database.execute(
                    "update calls set line = null, text = ?, usage = ?, problem = ?"
                    " where key = ? and part = ? and text is null",
                    [text, usage, reply.problem, reply.key, part.number],
                )

    def close_part(self, part: Part, why: str) -> tuple[int, str]:
        """Its calls without a reply have failed, as `why` says; how many have, and what the first of them says."""
        with self._safely(durably=True) as database:
            database.execute("begin")
            database.execute(
                "update calls set line = null, problem = ? where part = ? and text is null and problem is null",
                [why, part.number],
            )
            database.execute("update parts set status = 'read' where number = ?", [part.number])
        failed = self._all("select problem from calls where part = ? and text is null", [part.number])
        return len(failed), _text(failed[0][0]) if failed else ""

    def reply(self, key: str) -> BatchReply | None:
        """What came of the call for a verdict; None where none was made in a batch."""
        found = self._all("select text, usage, problem, owner from calls where key = ? and line is null", [key])
        if not found:
            return None
        text, usage, problem, owner = found[0]
        try:
            spent = Usage.model_validate_json(usage) if isinstance(usage, bytes) else None
        except ValidationError:
            spent = None
        return BatchReply(key, None if text is None else _text(text), spent, _text(problem), _text(owner))


def _new_part(database: sqlite3.Connection, model: object) -> int:
    number = database.execute("insert into parts (token, model) values (?, ?)", [uuid4().hex, _text(model)]).lastrowid
    assert number is not None
    return number


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
