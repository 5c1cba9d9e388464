#!/usr/bin/env python3
"""Evaluate very many questions with a target that fails in every way, on an MLflow server that fails now and then.

The target is a function of this process. At the given rate it raises, hangs past its deadline, swallows the deadline
and answers late, returns rubbish, and returns answers and sources that are far too long; some good answers are slow.
MLflow is a real `mlflow server` (HTTP, SQLite), reached through a proxy that answers 503 or breaks off a connection,
at most twice in a row: MLflow's own retries have to cope. Each is a process of its own.

Which question meets which fault follows from the seed, so that the rows in MLflow can be held against it one by one:
every question once, with the failure it must have or with none.

    python scripts/soak.py --questions 100000 --faults 0.05 --seed 0

Exits 1 if a row is missing, doubled or another than it must be, or if the peak of memory grows by more than 100 MB
after the first tenth of the questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")

from evaltrack import run_eval  # noqa: E402 - found through the path above
from evaltrack.records import Question, Row  # noqa: E402
from evaltrack.targets.mapping import MAX_BYTES, MAX_ITEMS  # noqa: E402
from evaltrack.tracking.writer import TABLE_ROWS  # noqa: E402

CONCURRENCY = 64
TIMEOUT = 3.0
LATE = 0.2
"""Seconds a slow but good answer takes."""

MOST_GROWTH = 100
"""MB by which the peak of memory may grow after the first tenth of the questions."""

PATIENCE = 90.0
"""Seconds for the server to come up."""

UNITS = 1024 if sys.platform != "darwin" else 1024 * 1024
"""Of `ru_maxrss`, in a MB."""


class UntoldError(Exception):
    """An error whose own message cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


async def _raises(_text: str) -> object:
    raise ConnectionError("the index is gone: " + "\N{BELL}\0\ud800 " * 20_000)


async def _tells_nothing(_text: str) -> object:
    raise UntoldError


async def _exits(_text: str) -> object:
    raise SystemExit(3)


async def _cancels(_text: str) -> object:
    raise asyncio.CancelledError


async def _hangs(_text: str) -> object:
    await asyncio.sleep(3600)
    return None


async def _swallows(text: str) -> object:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(3600)
    return _good(text)


async def _number(_text: str) -> object:
    return 42


async def _wrong_types(_text: str) -> object:
    return {"answer": ["no", "text"], "sources": {"c": 1}}


async def _no_number(text: str) -> object:
    return {"answer": "x", "sources": [{"chunk_id": text, "score": float("nan")}]}


async def _half_a_letter(_text: str) -> object:
    return "half of a pair: \udc80"


async def _unknown_fields(_text: str) -> object:
    return {"anwser": "misspelt", "souces": []}


async def _huge_answer(_text: str) -> object:
    return "word " * (MAX_BYTES // 5 + 1)


async def _too_many(_text: str) -> object:
    return [str(number) for number in range(MAX_ITEMS + 1)]


async def _long_sources(text: str) -> object:
    sources = [{"chunk_id": _chunk(text, n), "text": f"passage {n} " * 10_000} for n in range(5)]
    return {"answer": "long " * 2000, "sources": sources}


async def _slow(text: str) -> object:
    await asyncio.sleep(LATE)
    return _good(text)


Fault = Callable[[str], Any]
FAULTS: dict[str, tuple[Fault, str | None, int]] = {
    "raises": (_raises, "target_error", 10),
    "raises, untold": (_tells_nothing, "target_error", 5),
    "exits": (_exits, "target_error", 5),
    "cancels itself": (_cancels, "target_error", 5),
    "hangs": (_hangs, "target_timeout", 3),
    "swallows its deadline": (_swallows, "target_timeout", 1),
    "a number": (_number, "target_invalid", 10),
    "wrong types": (_wrong_types, "target_invalid", 10),
    "not a number": (_no_number, "target_invalid", 10),
    "half a letter": (_half_a_letter, "target_invalid", 10),
    "unknown fields": (_unknown_fields, "target_invalid", 10),
    "huge answer": (_huge_answer, "target_invalid", 4),
    "too many sources": (_too_many, "target_invalid", 4),
    "long sources": (_long_sources, None, 4),
    "slow": (_slow, None, 10),
}
"""What a fault does, the failure its row must have (None: none), and how often it comes beside the others."""


def _chunk(text: str, number: int) -> str:
    return f"{text.rpartition(' ')[2]}#{number}"


def _good(text: str) -> dict[str, Any]:
    sources = [{"chunk_id": _chunk(text, n), "text": f"Passage {n} says what is to be said."} for n in range(5)]
    return {"answer": f"That is the answer to: {text}", "sources": sources}


@dataclass
class Faults:
    """The fault of each question, by its number; most have none."""

    rate: float
    seed: int

    def of(self, number: int) -> str | None:
        """The name of a question's fault: always the same for a seed."""
        chance = Random(f"{self.seed}/{number}")  # noqa: S311 - no secret
        if chance.random() >= self.rate:
            return None
        weights = [weight for _, _, weight in FAULTS.values()]
        return chance.choices(list(FAULTS), weights)[0]

    async def ask(self, question: Question, _k: int) -> object:
        """The target."""
        name = self.of(int(question.id))
        return _good(question.question) if name is None else await FAULTS[name][0](question.question)


@dataclass
class Watch:
    """A `Progress` that notes the peak of memory, in MB, when so much of the questions is done."""

    total: int
    done: int = 0
    peaks: dict[str, float] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)

    def start(self, total: int) -> None:
        """Hear that it begins."""
        assert total == self.total

    def warn(self, text: str) -> None:
        """Say nothing."""

    def advance(self, row: Row) -> None:
        """Count one question."""
        self.done += 1
        if row.failure is not None:
            self.kinds[row.failure.kind] += 1
        for percent in (10, 50, 100):
            if self.done == max(1, self.total * percent // 100):
                self.peaks[f"{percent} %"] = peak()

    def note(self, phrase: str, done: int, total: int) -> None:
        """Say nothing."""


def peak() -> float:
    """The most memory this process has had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNITS


# The server and its proxy


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def mlflow_server(folder: Path) -> Iterator[int]:
    """A real server on an empty SQLite database; its port."""
    port = _free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"],
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(f"http://127.0.0.1:{port}/health"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the MLflow server did not come up: {(folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.2)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own server
            return True
    except OSError:
        return False


class Proxy:
    """Passes HTTP on to one port, one request a connection, and now and then does not.

    A request is answered with 503, or its connection is broken off before the server has seen it, or, where it only
    reads, half-way through the reply. At most two faults come in a row.
    """

    def __init__(self, upstream: int, rate: float, seed: int, counts: Any) -> None:
        self._upstream, self._rate, self._counts = upstream, rate, counts
        self._chance = Random(seed)  # noqa: S311 - no secret
        self._in_a_row = 0
        self._tasks = set[asyncio.Task[Any] | None]()  # asyncio itself would let go of them half-way

    async def serve(self, port: int) -> None:
        """Listen until the process is ended."""
        server = await asyncio.start_server(self._one, "127.0.0.1", port, limit=1 << 20)
        await server.serve_forever()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(task := asyncio.current_task())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self._counts[0] += 1
            fault = self._fault(reads=head.startswith((b"GET ", b"HEAD ")))
            if fault == "503":
                self._counts[1] += 1
                await _drain(reader, head)
                writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
            elif fault == "dropped":
                self._counts[2] += 1
                writer.transport.abort()
            else:
                self._counts[3] += fault == "cut"
                await self._pass_on(head, reader, writer, cut=fault == "cut")
        except (OSError, asyncio.IncompleteReadError):
            pass  # whoever asked has gone
        finally:
            self._tasks.discard(task)
            writer.close()

    def _fault(self, *, reads: bool) -> str | None:
        # the first question asked of a store has one retry only
        rate = 0 if self._in_a_row >= 2 or self._counts[0] <= 2 else self._rate if not self._in_a_row else 0.2
        if self._chance.random() >= rate:
            self._in_a_row = 0
            return None
        self._in_a_row += 1
        return self._chance.choice(["503", "dropped", "cut"] if reads else ["503", "dropped"])

    async def _pass_on(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, cut: bool
    ) -> None:
        above, below = await asyncio.open_connection("127.0.0.1", self._upstream)
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        below.write(b"\r\n".join([*lines[:1], b"Connection: close", *lines[1:]]))
        sending = asyncio.create_task(_copy(reader, below))
        try:
            if cut:
                reply = await above.read()
                writer.write(reply[: len(reply) // 2])
                await writer.drain()
                writer.transport.abort()
            else:
                await _copy(above, writer)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            below.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1 << 16):
        writer.write(piece)
        await writer.drain()


async def _drain(reader: asyncio.StreamReader, head: bytes) -> None:
    """Read the body, so that the answer is read before the connection ends."""
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    if lengths:
        await reader.readexactly(int(lengths[0]))


def _serve_proxy(port: int, upstream: int, rate: float, seed: int, counts: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(Proxy(upstream, rate, seed, counts).serve(port))


@contextmanager
def faulty_proxy(upstream: int, rate: float, seed: int) -> Iterator[tuple[int, Any]]:
    """The proxy in a process of its own: its port, and its counts of requests, 503s, dropped and cut connections."""
    context = multiprocessing.get_context("spawn")
    counts, port = context.Array("q", 4, lock=False), _free_port()
    process = context.Process(target=_serve_proxy, args=(port, upstream, rate, seed, counts), daemon=True)
    process.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(f"http://127.0.0.1:{port}/health"):
            if time.monotonic() > deadline:
                raise SystemExit("the proxy did not come up")
            time.sleep(0.1)
        yield port, counts
    finally:
        process.terminate()
        process.join(10)


# The soak


@dataclass
class Soak:
    """One evaluation and what is to be said of it."""

    questions: int
    faults: Faults
    folder: Path
    problems: list[str] = field(default_factory=list)
    lost: int = 0

    def run(self, port: int) -> tuple[Watch, Counter[str]]:
        """Evaluate, and hold the rows in MLflow against what they must be; peaks, and faults by name."""
        golden = self.folder / "soak.jsonl"
        with golden.open("w") as file:
            for number in range(self.questions):
                text = f"What is said under number {number}"
                line = {"id": number, "question": text, "expected_chunks": [_chunk(text, number % 5)]}
                file.write(json.dumps(line) + "\n")
        watch = Watch(self.questions)
        result = run_eval(
            golden,
            target=self.faults.ask,
            judge="none",
            concurrency=CONCURRENCY,
            timeout=TIMEOUT,
            traces="failed",  # some thousand requests to MLflow, for the proxy's sake
            tracking_uri=f"http://127.0.0.1:{port}",
            progress=watch,
        )
        watch.peaks["the end"] = peak()
        if result.status != "FINISHED":
            self.problems.append(f"the run is {result.status}")
        expected = self._check_rows(result.read_rows(["id", "error", "passed"]))
        self._check_memory(watch)
        return watch, expected

    def _check_rows(self, rows: Iterator[dict[str, Any]]) -> Counter[str]:
        """Compare each row with the fault of its question."""
        seen, wrong, met = bytearray(self.questions), [], Counter[str]()
        for row in rows:
            number = int(row["id"])
            seen[number] = min(seen[number] + 1, 2)
            name = self.faults.of(number)
            met[name or "none"] += 1
            kind = FAULTS[name][1] if name else None
            got = row["error"].partition(":")[0] if row["error"] else None
            if got != kind or (kind is None and row["passed"] is not True):
                wrong.append(f"question {number} ({name or 'no fault'}): {row['error'] or row['passed']}"[:200])
        for what, count in (("lost", seen.count(0)), ("doubled", seen.count(2))):
            if count:
                self.problems.append(f"{count:,} rows {what}")
        if wrong:
            self.problems.append(f"{len(wrong):,} rows are not what they must be, such as {wrong[0]}")
        self.lost = seen.count(0)
        del met["none"]
        return met

    def _check_memory(self, watch: Watch) -> None:
        shown = self.questions <= TABLE_ROWS  # then MLflow's own table of all rows is made at the end, in memory
        for place in ("50 %", "100 %", *(() if shown else ("the end",))):
            if (grown := watch.peaks[place] - watch.peaks["10 %"]) > MOST_GROWTH:
                self.problems.append(f"memory grew by {grown:.0f} MB from 10 % to {place}")


def report(soak: Soak, watch: Watch, met: Counter[str], counts: list[int], seconds: float) -> None:
    """Print the figures."""
    rows = ", ".join(f"{count:,} {kind}" for kind, count in sorted(watch.kinds.items()))
    print(f"questions           {soak.questions:>9,}")
    print(f"target's faults     {met.total():>9,}  ({', '.join(f'{n:,} {name}' for name, n in sorted(met.items()))})")
    requests, refused, dropped, cut = counts
    print(f"requests to MLflow  {requests:>9,}")
    print(f"MLflow's faults     {refused + dropped + cut:>9,}  ({refused} 503, {dropped} dropped, {cut} cut off)")
    print(f"error rows          {watch.kinds.total():>9,}  ({rows})")
    print(f"rows lost           {soak.lost:>9,}")
    print("peak memory         " + ", ".join(f"{place}: {mb:.0f} MB" for place, mb in watch.peaks.items()))
    print(f"time                {seconds:>9.0f} s")


def main() -> int:
    """Run the soak; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--questions", type=int, default=100_000, help="default: 100000")
    parser.add_argument("--faults", type=float, default=0.05, help="share of questions with a fault; default: 0.05")
    parser.add_argument("--mlflow-faults", type=float, default=0.03, help="share of MLflow's requests; default: 0.03")
    parser.add_argument("--seed", type=int, default=0, help="of all faults; default: 0")
    parser.add_argument("--server", type=int, metavar="PORT", help="an MLflow server of this machine; default: its own")
    chosen = parser.parse_args()
    if chosen.questions < 10 or not 0 <= chosen.faults <= 1 or not 0 <= chosen.mlflow_faults <= 0.5:
        parser.error("at least 10 questions; shares are from 0 to 1, of MLflow's requests to 0.5")
    folder = Path(tempfile.mkdtemp(prefix="evaltrack-soak-"))
    os.environ["EVALTRACK_STATE_DIR"] = str(folder / "state")
    soak = Soak(chosen.questions, Faults(chosen.faults, chosen.seed), folder)
    try:
        server = nullcontext(chosen.server) if chosen.server else mlflow_server(folder)
        with server as upstream, faulty_proxy(upstream, chosen.mlflow_faults, chosen.seed) as proxy:
            port, counts = proxy
            start = time.monotonic()
            watch, met = soak.run(port)
            report(soak, watch, met, list(counts), time.monotonic() - start)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for problem in soak.problems:
        print(f"PROBLEM: {problem}")
    return int(bool(soak.problems))


if __name__ == "__main__":
    sys.exit(main())
