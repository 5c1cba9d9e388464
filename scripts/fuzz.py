#!/usr/bin/env python3
"""Feed every reader of foreign data with damaged, hostile and made-up input, and find what it does not expect.

Inputs are mutated from seeds (the project's own golden and recorded files, and small ones of each kind) or written from
the names that a reader knows; both get nasty tokens: NUL, halves of surrogate pairs, 1e999, integers of thousands of
digits, 100,000 levels of nesting, byte-order marks, CRLF, duplicate keys, invalid UTF-8, bidi marks, words of 1 MB.

A finding is an exception that the reader does not document, an input that takes more than 5 s of computing, a
traceback or an internal error on the command line, or something that was read and cannot be kept and given back. Each
is printed once, with the file that its input is kept in; that file alone shows it again: `--replay FILE`.

    python scripts/fuzz.py --seconds 600 --seed 0

Exits 1 on a finding; prints inputs and bytes fed by reader.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))
os.environ["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"  # nothing is asked; a judge wants an address

from evaltrack.cli import COMMANDS, cli, main  # noqa: E402 - found through the path above
from evaltrack.cli.settings import check_settings, in_lists, read_settings  # noqa: E402
from evaltrack.compare.engine import compare  # noqa: E402
from evaltrack.corpus import read_corpus  # noqa: E402
from evaltrack.errors import EvaltrackError  # noqa: E402
from evaltrack.golden import open_golden  # noqa: E402
from evaltrack.journal import TABLES, Journal, read_command  # noqa: E402
from evaltrack.judges.answer import AnswerReply, NegativeReply  # noqa: E402
from evaltrack.judges.llm_judge import read_reply  # noqa: E402
from evaltrack.judges.reasoning import ReasoningJudge  # noqa: E402
from evaltrack.judges.recorded import NotJudgedError, RecordedJudge  # noqa: E402
from evaltrack.llm import LLM, AnswerError  # noqa: E402
from evaltrack.llm.replies import read_answer  # noqa: E402
from evaltrack.records import Question, Response, Row, Source, Verdict  # noqa: E402
from evaltrack.redaction import Redactor  # noqa: E402
from evaltrack.report.comparison_machine import comparison_json  # noqa: E402
from evaltrack.report.comparison_markdown import comparison_markdown  # noqa: E402
from evaltrack.report.machine import RUN_SCHEMA, machine_row  # noqa: E402
from evaltrack.sides import side_of_file  # noqa: E402
from evaltrack.table import flatten  # noqa: E402
from evaltrack.targets.mapping import ResponseReader, compile_expression  # noqa: E402
from evaltrack.targets.recorded import NotRecordedError, open_recorded  # noqa: E402
from evaltrack.targets.responses import InvalidResponseError, as_response  # noqa: E402

SLOW, STUCK = 5.0, 30.0
"""Seconds of computing that one input may take, and seconds by the clock: a busy machine is no finding."""

LARGE = 0.004
"""Share of inputs that get a token of 100 KB to 1 MB."""

PLACE = "a huge token stands here"
"""Put in place of a value, and replaced once the rest is JSON."""

QUESTION = Question(id="1", question="Why?", domain="d", expected_chunks=("a",))
REDACTOR = Redactor()
JUDGE = ReasoningJudge(LLM("gpt-4o-mini"), "openai:gpt-4o-mini")

NASTY: list[bytes] = [
    *(
        b"\0",
        b"\\u0000",
        b"\\ud800",
        b"\\udfff",
        b"\xed\xa0\x80",
        b"\xff\xfe",
        b"\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
    ),
    *(b"1e999", b"-1e999", b"1e-999", b"NaN", b"Infinity", b"-0", b"00", b"1.", b".5", b"0x10", b"1_000", b"true"),
    *(b"9" * 400, b"9" * 5000, b"-9223372036854775809", b"18446744073709551616", b"null", b"[]", b"{}", b'""', b"[[]]"),
    *(b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n\n", b"\x85", "\u2028".encode(), "\u202e\u2066".encode(), b"\x1b[31m\x07"),
    *(
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"{{",
        b"}}",
        b"#",
        b"# ",
        b"## ",
        b"---\n",
        b"```",
        b"=\n",
    ),
    *(b"../../etc/passwd", b"<think>", b"</think>", b"<answer>", b"%s", b"\t", b" ", "ﬁ İ ß 🏳️‍🌈".encode(), b"a" * 300),
    *(b'{"id": 1, "id": 2}', b'"__proto__"', b"!!python/object", b"[tool.evaltrack", b"[run]", b"0 Q0 d 1 nan t"),
]
NESTS = [(b"[", b"]"), (b'{"a":', b"}")]
HUGE: list[bytes] = [
    *(b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000, b"x" * 1_000_000, b" " * 1_000_000),
    *(b"> " * 50_000, b"<think>" * 50_000, b"\n" * 200_000, b"1" * 200_000, b"*a_ `" * 50_000, b'"\\u0041' * 50_000),
    *(
        b"a = {b = " * 50_000,
        b"{" * 200_000,
        b"a." * 100_000,
        "\u0301".encode() * 200_000,
        b"sk-" * 200_000,
        b"\\" * 200_000,
    ),
]
HUGE += [opened * depth + closed * depth for depth in (105, 150, 196, 250, 1100) for opened, closed in NESTS]
VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        5,
        10**18,
        2**63,
        2**64,
        10**400,
        0.5,
        -0.0,
        1e308,
        float("inf"),
        float("nan"),
        "",
        " ",
    ),
    *(
        "x",
        "\0",
        "\ud800",
        "\u202eabc",
        "a\r\nb",
        "1",
        "1e999",
        "NaN",
        "HF1",
        "x" * 5000,
        [],
        {},
        [[]],
        [None],
        {"": None},
    ),
    *(
        [1, "a"],
        {"a": {"b": [1]}},
        ["a", "a"],
        "90% sure",
        "none",
        [{}],
        [""],
        [{"chunk_id": 1}],
        {"name": "t"},
        "\ufeff",
    ),
]


class SlowError(BaseException):
    """One input took too long."""


def _stop(*_: object) -> None:
    raise SlowError


@contextmanager
def deadline() -> Iterator[None]:
    """Raise `SlowError` where the body takes longer than `SLOW` or `STUCK`."""
    timers = {signal.ITIMER_PROF: (signal.SIGPROF, SLOW), signal.ITIMER_REAL: (signal.SIGALRM, STUCK)}
    for timer, (sent, seconds) in timers.items():
        signal.signal(sent, _stop)
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)


# The readers: each is given a folder for its files and the input


def kept(response: Response | None = None, verdicts: tuple[Verdict, ...] = (), question: Question = QUESTION) -> None:
    """What was read must go into the journal and come back from it, and into the table."""
    response = REDACTOR.response(response) if response else None
    row = Row(position=0, question=question, response=response, verdicts=verdicts, started_at=0, seconds=0)
    if Row.model_validate_json(row.model_dump_json(exclude_defaults=True)) != row:
        raise AssertionError("a row does not come back from the journal as it was")
    json.dumps(flatten(row, 5), allow_nan=False).encode()


def golden(name: str) -> Callable[[Path, bytes], None]:
    """A golden set called `name`, read to its end."""

    def read(folder: Path, raw: bytes) -> None:
        path = folder / name
        path.write_bytes(raw)
        for question in open_golden(path):
            kept(question=question)

    return read


def recorded_target(folder: Path, raw: bytes) -> None:
    """Responses gathered earlier, as JSON Lines or as a TREC run; a few of them asked for."""
    (folder / "recorded").write_bytes(raw)
    target = open_recorded(str(folder / "recorded"), {})
    for key in ("1", "2", "q1", "biz-client-discount"):
        question = QUESTION.model_copy(update={"id": key})
        try:
            kept(asyncio.run(_asked(target, question)))
        except NotRecordedError:
            continue


async def _asked(target: Any, question: Question) -> Response:
    response: Response = await target(question, 5)
    return response


def recorded_judge(folder: Path, raw: bytes) -> None:
    """Verdicts given earlier, on answers and on reasoning."""
    (folder / "verdicts").write_bytes(raw)
    judge = RecordedJudge(folder / "verdicts")
    for key, verdict in judge.verdicts.items():
        kept(verdicts=(verdict,))
        asyncio.run(_judged(judge, QUESTION.model_copy(update={"id": key})))


async def _judged(judge: RecordedJudge, question: Question) -> None:
    try:
        await judge(question, Response(answer="x"))
    except NotJudgedError:
        return


def journal(folder: Path, raw: bytes) -> None:
    """A row, and what was asked for, in a journal whose file is whole."""
    path = folder / "journal.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript("pragma synchronous=off; pragma journal_mode=memory;" + TABLES)
        line = ("1", QUESTION.digest, 1, 0, raw, crc32(raw))
        database.execute("insert into rows values (?, ?, ?, ?, ?, ?)", line)
        database.execute("insert into command values (1, ?)", [raw])
        database.commit()
    read_command(path)
    opened = Journal(path, {})
    try:
        opened.recall(QUESTION, 1)
    finally:
        opened.close()


def baseline(folder: Path, raw: bytes) -> None:
    """A saved run, compared with a good one."""
    path = folder / "baseline.json"
    path.write_bytes(raw)
    side = side_of_file(path)
    made = compare(side, good_side(folder))
    comparison_markdown(made)
    json.dumps(comparison_json(made)).encode()


def good_side(folder: Path) -> Any:
    """The other side, read anew."""
    path = folder / "good.json"
    if not path.exists():
        path.write_bytes(saved_run())
    return side_of_file(path)


def settings(folder: Path, raw: bytes) -> None:
    """Settings files of both names."""
    own, project = folder / "evaltrack.toml", folder / "pyproject.toml"
    for path in (own, project):
        path.write_bytes(raw)
        try:
            found = read_settings(folder)
            for name in COMMANDS:
                command = cli.get_command(None, name)  # type: ignore[arg-type]
                if command is not None:
                    check_settings(found, COMMANDS, command)
                    in_lists(found.get(name, {}), command)
        except EvaltrackError:
            continue
        finally:
            path.unlink()


def command_line_settings(folder: Path, raw: bytes) -> None:
    """Settings files as the command line reads them: options of a command that then finds no golden set."""
    (folder / "evaltrack.toml").write_bytes(raw)
    try:
        with chdir(folder):
            for command in (["run", "missing.jsonl"], ["golden", "lint", "missing.jsonl"]):
                called(command)
    finally:
        (folder / "evaltrack.toml").unlink()


def corpus(folder: Path, raw: bytes) -> None:
    """A page of a corpus."""
    pages = folder / "pages"
    pages.mkdir(exist_ok=True)
    (pages / "page.md").write_bytes(raw)
    read_corpus(pages)


def completion(_folder: Path, raw: bytes) -> None:
    """What a server answered with status 200."""
    answer = read_answer(raw)
    kept(Response(answer=answer.text, usage=answer.usage))


def replies(_folder: Path, raw: bytes) -> None:
    """What a model wrote as a verdict, in each of the three forms."""
    text = raw.decode("utf-8", "replace")
    response = Response(answer="I am 90% sure. Perhaps it is the index; on the other hand the crux is the cache.")
    for form in (AnswerReply, NegativeReply):
        _unless_refused(lambda form=form: read_reply(text, form).model_dump())
    _unless_refused(lambda: JUDGE.read(text, QUESTION, response))


def _unless_refused(read: Callable[[], dict[str, Any]]) -> None:
    try:
        verdict = Verdict(judge="j", **read())
    except ValueError:
        return
    kept(verdicts=(verdict,))


READERS_OF_JSON = (
    ResponseReader(),
    ResponseReader([compile_expression("http", "answer", "choices[0].message.content || answer")]),
    ResponseReader(
        compile_expression("http", name, text)
        for name, text in {
            "sources": "docs || sources || `[]`",
            "chunk_id": "meta.key || id || chunk_id || @",
            "text": "join(' ', lines || `[]`)",
            "score": "to_number(score)",
            "prompt_tokens": "stats.in || `0`",
            "completion_tokens": "length(keys(@))",
        }.items()
    ),
)


def response(_folder: Path, raw: bytes) -> None:
    """What an http: or command: target wrote, without and with a mapping."""
    for reader in READERS_OF_JSON:
        try:
            found = reader.from_json(raw)
        except InvalidResponseError:
            continue
        kept(found)


def expression(_folder: Path, raw: bytes) -> None:
    """A JMESPath expression from a setting, and what it finds."""
    found = compile_expression("http", "url", raw.decode("utf-8", "replace"))
    found.find({"a": [1, "x", None, {"b": 2}], "answer": "x", "docs": [{"id": 1}]})


def python_object(_folder: Path, raw: bytes) -> None:
    """What a function returned: objects that no JSON could hold, made of the input."""
    chance = Random(raw)  # noqa: S311 - no secret
    kept(as_response(made_object(chance)))


def made_object(chance: Random, depth: int = 0) -> Any:
    """A value of Python, often one in the form of a response."""
    names = ("answer", "sources", "usage", "tool_calls", "abstained", "chunk_id", "id", "text", "score", "title")
    more = ("name", "arguments", "function", "prompt_tokens", "completion_tokens", "total_tokens", "x")
    odd = [
        b"\xff",
        {1, 2},
        object(),
        10**5000,
        2**70,
        (1, float("nan")),
        1j,
        range(3),
        Source(title="t"),
        dict,
        Path("a"),
    ]
    kind = chance.random()
    if not depth and kind < 0.4:  # arguments are the one place that holds anything
        return {"tool_calls": [{"name": "t", "arguments": {"x": made_object(chance, 3)}}]}
    if depth > 4 or kind < 0.25:
        return chance.choice([*VALUES, *odd])
    if kind < 0.3:
        value: Any = "deep"
        for _ in range(chance.choice([50, 120, 250, 5000])):
            value = [value] if kind < 0.28 else {"a": value}
        return value
    if kind < 0.5:
        return [made_object(chance, depth + 1) for _ in range(chance.randrange(4))]
    chosen = chance.sample([*names, *more], chance.randrange(1, 5)) if depth else chance.sample(names[:5], 2)
    return {name: made_object(chance, depth + 1) for name in chosen}


def lint(folder: Path, raw: bytes) -> None:
    """The command line, in this process: an exit code that is documented, and no traceback."""
    path = folder / ("lint.json" if raw[:1] == b"[" else "lint.jsonl")
    path.write_bytes(raw)
    called(["golden", "lint", str(path)])


def called(arguments: list[str]) -> None:
    """Call the command line; what it may not do is an `AssertionError`."""
    said, code = io.StringIO(), None
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            main(arguments)
    except SystemExit as end:
        code = end.code
    if code not in {0, 2} or "Traceback" in said.getvalue() or "internal" in said.getvalue()[:40]:
        raise AssertionError(f"exit code {code}: {said.getvalue()[:500]}")


@dataclass(frozen=True)
class Reader:
    """A reader, the errors it documents, what it is started from, and how often it is chosen beside the others."""

    read: Callable[[Path, bytes], None]
    documented: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]
    weight: int = 4


def saved_run() -> bytes:
    """A small saved run."""
    rows = [
        Row(
            position=n,
            question=Question(
                id=str(n), question=f"Question {n}?", domain="d", difficulty="easy", expected_chunks=("a",)
            ),
            response=Response(answer="x", sources=(Source(chunk_id="a", text="t"),)),
            scores={"recall_at_k": 1.0, "reciprocal_rank": n / 3, "hit": 1.0},
            passed=n != 1,
            started_at=0,
            seconds=1,
        )
        for n in range(4)
    ]
    signature = {"golden": "g", "golden_digest": "d", "k": 5, "target": "t"}
    head = {"schema": RUN_SCHEMA, "signature": signature, "totals": {"num_questions": 4, "num_errors": 0}}
    return json.dumps({**head, "rows": [machine_row(flatten(row, 5)) for row in rows]}).encode()


def _first(path: str, size: int = 6000) -> bytes:
    """Whole lines from the start of a file of the project's own."""
    raw = (REPO / "golden" / path).read_bytes()
    return raw if len(raw) <= size else raw[: raw.rfind(b"\n", 0, size) + 1]


def readers() -> dict[str, Reader]:
    """All readers by name."""
    lines = [_first(f"{name}.jsonl", 3000) for name in ("food", "travel", "cdc", "reasoning")]
    arrays = [_first("wikipedia.json", 1 << 20)[:4000].rpartition(b"},")[0] + b"}]", b'[{"question": "Why?"}]']
    verdicts = [_first(f"reasoning_responses/{name}.verdicts.jsonl", 4000) for name in ("strong", "flawed")]
    recorded = [
        _first("reasoning_responses/strong.jsonl", 5000),
        b'{"id": 1, "answer": "x", "sources": ["a", {"id": 2, "score": 0.5}], "usage": {"prompt_tokens": 1, '
        b'"completion_tokens": 2}, "tool_calls": [{"name": "t", "arguments": {"a": [1]}}]}\n{"id": "q1"}\n',
    ]
    trec = b"1 Q0 doc-a 1 12.5 run\n1 Q0 doc-b 2 11.0 run\n2 Q0 doc-a 0 3 run\n"
    answers = (
        b'{"id": 1, "accuracy": 1, "completeness": 0.5, "relevance": 1.0, "overall_score": 0.9, "reasoning": "r"}\n'
    )
    chat = {
        "choices": [{"message": {"content": "x", "refusal": None}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}},
    }
    dimensions = json.loads(verdicts[0].splitlines()[0])["dimensions"]
    seen = {
        "hypotheses": ["the index"], "num_hypotheses": 1, "shifts": ["on the other hand"], "num_shifts": 1,
        "crux_treatment": "stated", "crux_quotes": ["the crux"], "uncertainty_treatment": "limits",
        "confidence_quotes": ["90% sure"], "hard_fails": [{"code": "HF1", "quotes": ["the cache"]}], "mode": "hybrid",
        "reasoning": "r", "dimensions": dimensions,
    }  # fmt: skip
    numbers = {"reasoning": "r", "accuracy": 1, "completeness": 1.0, "relevance": 0.5, "overall_score": 0.75}
    said = [json.dumps(each).encode() for each in (seen, numbers, {"reasoning": "r", "declined": True})]
    foreign = (
        b'{"choices": [{"message": {"content": "x"}}], "docs": [{"meta": {"key": 7}, "lines": ["a"], "score": "1"}]}'
    )
    row = Row(position=0, question=QUESTION, response=Response(answer="x"), started_at=0, seconds=0).model_dump_json()
    plain = recorded[1].splitlines()[0].replace(b'"id": 1, ', b"")
    path = b"docs[?id > `1`].{a: id, b: to_number(x)} | [0]"
    toml = b'[run]\nk = 5\ntarget = "bm25:docs"\njudge = ["none"]\n[golden.lint]\nstrict = true\n'
    tables = [
        b"[tool.evaltrack.run]\nk = 5\n", b"[tool]\nevaltrack = 5  # [tool.evaltrack", b"tool = 1  # [tool.evaltrack",
        b"[golden]\nlint = 5\n", b'[run]\nk = [[1]]\njudge = {a = 1}\n[run.target]\nx = 1979-05-27T07:32:00Z\n',
        b'[golden.lint]\nstrict = "maybe"\ncorpus = 5\n[compare]\nmax-drop = "mrr=1%"\n',
        b"[run]\nalpha = nan\nk = 1e5\n",
        b'[run]\ntimeout = -inf\nrequire = ["x"]\nredact = "("\ntarget-option = "a"\nconcurrency = 0\ntrials = 1\n',
    ]  # fmt: skip
    page = (REPO / "golden" / "corpus" / "food" / "allergens.md").read_bytes()[:3000]
    own = (EvaltrackError,)
    return {
        "golden set, .jsonl": Reader(golden("set.jsonl"), own, (*lines, *arrays[1:])),
        "golden set, .json": Reader(golden("set.json"), own, tuple(arrays)),
        "recorded target": Reader(recorded_target, (*own, InvalidResponseError), tuple(recorded)),
        "TREC run": Reader(recorded_target, (*own, InvalidResponseError), (trec,), 2),
        "recorded judge, answer": Reader(recorded_judge, own, (answers,)),
        "recorded judge, reasoning": Reader(recorded_judge, own, tuple(verdicts)),
        "journal": Reader(journal, own, (row.encode(), b'{"run_id": "r", "finished": false}'), 2),
        "saved baseline": Reader(baseline, own, (saved_run(),), 3),
        "settings file": Reader(settings, own, (toml, b"[tool]\nx = 1\n" + toml, *tables), 2),
        "settings, command line": Reader(command_line_settings, (), (toml, *tables), 2),
        "corpus page": Reader(corpus, own, (page, b"---\ntitle: x\n---\n# A\n## B\ntext\n## B!\nmore\n"), 1),
        "completion": Reader(completion, (AnswerError,), (json.dumps(chat).encode(),)),
        "judge's reply": Reader(replies, (), (*said, b"<think>{}</think> ```json\n" + said[1] + b"\n```")),
        "response": Reader(response, (), (plain, foreign, b'["a", 2]')),
        "expression": Reader(expression, (*own, InvalidResponseError), (path,), 1),
        "Python object": Reader(python_object, (InvalidResponseError,), (b"0",), 2),
        "golden lint": Reader(lint, (), (*lines, *arrays), 1),
    }  # fmt: skip


# The inputs


class Writer:
    """Makes inputs for one reader out of its seeds."""

    def __init__(self, seeds: tuple[bytes, ...], chance: Random) -> None:
        self._seeds, self._chance = seeds, chance
        self._values = [value for seed in seeds for value in _values_in(seed)]
        self._names = sorted({name for value in self._values for name in _names_in(value)}) or ["id"]

    def input(self) -> bytes:
        """One input: made up, or a seed, with some damage."""
        chance = self._chance
        way = chance.random()
        if way < 0.15:
            raw = b"\n".join(self._dumped(self._made()) for _ in range(chance.randrange(1, 4)))
        elif way < 0.6 and self._values:
            raw = b"\n".join(
                self._dumped(self._damaged(chance.choice(self._values))) for _ in range(chance.randrange(1, 3))
            )
            raw = b"[" + raw.replace(b"\n", b",") + b"]" if chance.random() < 0.2 else raw
        else:
            raw = chance.choice(self._seeds)
        if chance.random() < 0.7:
            for _ in range(chance.choice([1, 1, 2, 5])):
                raw = self._mutated(raw)
        if chance.random() < LARGE:
            at = chance.randrange(len(raw) + 1)
            raw = chance.choice([raw[:at], b"", b"a = "]) + chance.choice(HUGE) + chance.choice([raw[at:], b""])
        return raw

    def _mutated(self, raw: bytes) -> bytes:
        chance = self._chance
        at, to = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
        to = min(to, at + chance.choice([1, 8, 100, 10_000]))
        way = chance.randrange(7)
        if way < 3:
            return raw[:at] + chance.choice(NASTY) + raw[at if way else to :]
        if way == 3:
            return raw[:at] + raw[to:]
        if way == 4:
            return raw[:to] + raw[at:to] * chance.choice([1, 1, 3]) + raw[to:]
        if way == 5:
            return raw[:at]
        return raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]

    def _made(self, depth: int = 0) -> Any:
        chance = self._chance
        kind = chance.random()
        if depth > 3 or (depth and kind < 0.5):
            return chance.choice(VALUES)
        if kind < 0.65:
            return [self._made(depth + 1) for _ in range(chance.randrange(4))]
        return {self._name(): self._made(depth + 1) for _ in range(chance.randrange(6))}

    def _name(self) -> str:
        return self._chance.choice(self._names) if self._chance.random() < 0.9 else str(self._chance.choice(VALUES))

    def _damaged(self, value: Any) -> Any:
        """The value with one place of it replaced, removed, renamed or added to."""
        chance = self._chance
        if isinstance(value, list) and value and chance.random() < 0.8:
            at = chance.randrange(len(value))
            return [*value[:at], self._damaged(value[at]), *value[at + 1 :]]
        if isinstance(value, dict) and value and chance.random() < 0.9:
            name, way = chance.choice(list(value)), chance.random()
            if way < 0.7:
                return {**value, name: self._damaged(value[name])}
            rest = {other: item for other, item in value.items() if other != name}
            return rest if way < 0.85 else {**rest, self._name(): value[name]}
        if chance.random() < LARGE:
            return PLACE
        return self._made(2) if chance.random() < 0.3 else chance.choice(VALUES)

    def _dumped(self, value: Any) -> bytes:
        plain = self._chance.random() < 0.5
        raw = json.dumps(value, ensure_ascii=plain).encode("utf-8", "surrogatepass")
        place = f'"{PLACE}"'.encode()
        return raw.replace(place, self._chance.choice(HUGE)) if place in raw else raw


def _values_in(seed: bytes) -> Iterator[Any]:
    """The JSON values in a seed: the whole, or line by line."""
    for text in (seed, *seed.splitlines()):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        yield value
        if text is seed:
            return


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names_in(item)


# The loop


@dataclass
class Fuzz:
    """What was fed, and what came of it."""

    keep: Path
    fed: Counter[str] = field(default_factory=Counter)
    inputs: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    findings: dict[tuple[str, ...], int] = field(default_factory=dict)

    def feed(self, name: str, reader: Reader, folder: Path, raw: bytes) -> None:
        """Give one input to a reader."""
        self.fed[name] += len(raw)
        self.inputs[name] += 1
        start = time.process_time()
        try:
            with deadline():
                reader.read(folder, raw)
        except reader.documented:
            pass
        except (Exception, SlowError, SystemExit) as error:  # noqa: BLE001 - the finding
            self._found(name, error, raw)
        self.slowest[name] = max(self.slowest.get(name, 0.0), time.process_time() - start)

    def _found(self, name: str, error: BaseException, raw: bytes) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f"{Path(f.filename).relative_to(REPO)}:{f.lineno}" for f in frames if f.filename.startswith(str(REPO))]
        kind = (name, type(error).__name__, *own[-1:])
        self.findings[kind] = self.findings.get(kind, 0) + 1
        if self.findings[kind] > 1:
            return
        self.keep.mkdir(parents=True, exist_ok=True)
        path = self.keep / f"{len(self.findings):02} {name.replace('/', ' ')}"
        path.write_bytes(raw)
        print(
            f"FINDING: {name}: {type(error).__name__}: {str(error)[:300]!a}\n  at {' < '.join(own[:-4:-1])}\n  {path}"
        )

    def run(self, seconds: float, seed: int) -> None:
        """Feed all readers until the time is up."""
        chance = Random(seed)  # noqa: S311 - no secret
        all_readers = readers()
        writers = {name: Writer(reader.seeds, chance) for name, reader in all_readers.items()}
        names = list(all_readers)
        weights = [all_readers[name].weight for name in names]
        with tempfile.TemporaryDirectory(prefix="evaltrack-fuzz-") as folder:
            for name, reader in all_readers.items():
                for raw in reader.seeds:
                    self.feed(name, reader, Path(folder), raw)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                (name,) = chance.choices(names, weights)
                self.feed(name, all_readers[name], Path(folder), writers[name].input())

    def report(self) -> None:
        """Print the figures."""
        for name in sorted(self.fed):
            told = f"{self.inputs[name]:>8,} inputs  {self.fed[name]:>12,} bytes  slowest {self.slowest[name]:.2f} s"
            print(f"{name:28}{told}")
        print(f"{self.fed.total():,} bytes fed in {self.inputs.total():,} inputs: {len(self.findings)} findings")


def replay(path: Path) -> None:
    """Give an input that was kept to its reader again; whatever it raises is not caught."""
    name = path.name.partition(" ")[2]
    with tempfile.TemporaryDirectory(prefix="evaltrack-fuzz-") as folder:
        reader = readers()[name]
        try:
            reader.read(Path(folder), path.read_bytes())
        except reader.documented as error:
            print(f"{type(error).__name__}: {error}")


def command_line() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=600, help="how long; default: 600")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs; default: 0")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="folder; default: fuzz-findings")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="give an input that was kept to its reader again")
    chosen = parser.parse_args()
    os.environ["EVALTRACK_DEBUG"] = ""
    if chosen.replay:
        replay(chosen.replay)
        return 0
    fuzz = Fuzz(chosen.keep)
    fuzz.run(chosen.seconds, chosen.seed)
    fuzz.report()
    return int(bool(fuzz.findings))


if __name__ == "__main__":
    sys.exit(command_line())
