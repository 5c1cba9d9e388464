"""Give one input to one reader, and see what comes of it: an error, the time it takes, the memory it takes."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.fuzzing.reader import REPO, Reader

SLOW, STUCK = 5.0, 30.0
"""Seconds of computing that one input may take, and seconds by the clock: a busy machine is no finding."""

DEAD = 60
"""Seconds by the clock after which the process of a reader in C, which no exception of ours can stop, is ended."""

PEAK = 500
"""MB of memory that a process may ever hold."""

ROOM = 3 << 30
"""Bytes of address space beyond what is taken at the start: an input that wants more gets an error, not the machine."""


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


def bound_memory() -> None:
    """Let no input take the machine's memory."""
    status = Path("/proc/self/status")
    if status.exists():
        (taken,) = (line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmSize"))
        resource.setrlimit(resource.RLIMIT_AS, ((int(taken) << 10) + ROOM, resource.RLIM_INFINITY))


@dataclass(frozen=True)
class Outcome:
    """The outcome of an input: an error that the reader does not document, where, seconds computed, MB held at most."""

    error: str = ""
    message: str = ""
    where: tuple[str, ...] = ()
    seconds: float = 0.0
    peak: int = 0


def feed(reader: Reader, folder: Path, raw: bytes) -> Outcome:
    """Give one input to a reader."""
    return _fed_in_child(reader, folder, raw) if reader.native else _fed(reader, folder, raw)


def _fed(reader: Reader, folder: Path, raw: bytes) -> Outcome:
    start, error = time.process_time(), None
    try:
        with deadline():
            reader.read(folder, raw)
    except reader.documented:
        pass
    except (Exception, SlowError, SystemExit) as unexpected:  # noqa: BLE001 - the finding
        error = unexpected
    told = (type(error).__name__, str(error)[:300], _own_frames(error)) if error else ("", "", ())
    return Outcome(*told, time.process_time() - start, _peak())


def _own_frames(error: BaseException) -> tuple[str, ...]:
    """The last lines of ours that an error went through, innermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(f.filename).relative_to(REPO)}:{f.lineno}" for f in frames if f.filename.startswith(str(REPO))]
    return tuple(own[:-4:-1])


def _fed_in_child(reader: Reader, folder: Path, raw: bytes) -> Outcome:
    """The same in a process of its own, which the input may bring down."""
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.close(readable)
        try:
            faulthandler.dump_traceback_later(DEAD, exit=True)
            os.write(writable, json.dumps(asdict(_fed(reader, folder, raw))).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        told = pipe.read()
    _, status, usage = os.wait4(child, 0)
    if told:
        found = json.loads(told)
        return Outcome(**{**found, "where": tuple(found["where"])})
    code = os.waitstatus_to_exitcode(status)
    ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"did not end in {DEAD} s"
    return Outcome("Crash", f"the process {ended}", (), usage.ru_utime, _megabytes(usage))


def _peak() -> int:
    """The most memory that this process held; the usage that the system tells starts at that of who started it."""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) >> 10
    return _megabytes(resource.getrusage(resource.RUSAGE_SELF))


def _megabytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss >> 20 if sys.platform == "darwin" else usage.ru_maxrss >> 10
