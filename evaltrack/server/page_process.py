"""Pages made in processes of their own, and those made last kept, so that no artifact can take the server with it."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import IO

from evaltrack.errors import EvaltrackError, InconclusiveError, TrackingError, UsageError
from evaltrack.server.page_jobs import Job
from evaltrack.server.page_worker import OUT_OF_MEMORY, REPORTED
from evaltrack.server.warm_worker import TIMED_OUT

STARTING = 30.0
"""Seconds that its imports may take on a busy machine, beside those of a page."""


class WarmProcess:
    """At most one such process. It needs Linux: elsewhere libraries are not made for being forked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None

    def start(self) -> None:
        """Have it import what pages need, in the background, if it does not live."""
        with self._lock:
            if sys.platform == "linux" and (self._process is None or self._process.poll() is not None):
                self._close()
                self._door, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with other:
                    self._process = subprocess.Popen(
                        [sys.executable, "-P", "-m", "evaltrack.server.warm_worker"],
                        stdin=other.fileno(),
                        stdout=subprocess.DEVNULL,
                        env=dict(self._environment),
                    )

    def make(self, arguments: list[str], seconds: int, files: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> int | None:
        """The exit code of a page's process with these arguments, input, output and error output; None without one.

        Raises:
            subprocess.TimeoutExpired: it was not ready in time.
        """
        self.start()
        with ExitStack() as stack:
            reading, writing = os.pipe()
            stack.callback(os.close, reading)
            try:
                self._send(arguments, [*(each.fileno() for each in files), writing])
            except OSError:
                return None
            finally:
                os.close(writing)
            ready, _, _ = select.select([reading], [], [], seconds + STARTING)
            answer = os.read(reading, 100).decode() if ready else TIMED_OUT
        if answer == TIMED_OUT:
            raise subprocess.TimeoutExpired(arguments, seconds)
        return int(answer) if answer else None

    def _send(self, arguments: list[str], descriptors: list[int]) -> None:
        with self._lock:
            if self._door is None:
                raise ConnectionError
            socket.send_fds(self._door, [" ".join(arguments).encode()], descriptors)

    def close(self) -> None:
        """End it."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._process = None


MEMORY_MB = 1536
"""Memory of a process that makes a page, in MiB; `EVALTRACK_PAGE_MEMORY_MB` sets another."""

SECONDS = 60
PAGE_BYTES = 64 << 20
CACHE_BYTES = 64 << 20

PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
"""Variables that the process sees; keys and passwords of the server are none of them."""

ONE_THREAD = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class PageCache:
    """The pages made last, by what they were made from, up to a number of bytes."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit, self._size = limit, 0
        self._pages: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """The page under a key, which is then the last to go."""
        with self._lock:
            if key in self._pages:
                self._pages.move_to_end(key)
            return self._pages.get(key)

    def put(self, key: str, page: bytes) -> None:
        """Store a page, and drop the least recently used ones."""
        with self._lock:
            self._size += len(page) - len(self._pages.pop(key, b""))
            self._pages[key] = page
            while self._size > self._limit:
                _, evicted = self._pages.popitem(last=False)
                self._size -= len(evicted)


_cache = PageCache()
_log = logging.getLogger(__name__)


def made_page(job: Job, end_times: tuple[int, ...], fetch: Callable[[Path], tuple[Path, ...]]) -> bytes:
    """The page of a job: the one made before from the same, or a new one.

    Args:
        job: What is shown.
        end_times: When the runs ended, in milliseconds since 1970: one that was resumed since has another page.
        fetch: Puts the files of the job into a folder.

    Raises:
        InconclusiveError: the runs are not comparable, or the page needs more memory or time than it may take.
        TrackingError: the artifacts are gone or damaged.
    """
    key = hashlib.sha256(repr((job, end_times)).encode("utf-8", "replace")).hexdigest()
    page = _cache.get(key)
    if page is None:
        page = new_page(job, fetch)
        _cache.put(key, page)
    return page


def new_page(job: Job, fetch: Callable[[Path], tuple[Path, ...]]) -> bytes:
    """The same, made anew and not kept."""
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        return _make(job, fetch(Path(folder)), Path(folder) / "page.html")


def prepare_pages() -> None:
    """Have the process that makes pages import what they need, in the background."""
    _warm().start()


@cache
def _warm() -> WarmProcess:
    return WarmProcess(_environment())


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | ONE_THREAD


def _make(job: Job, files: tuple[Path, ...], output: Path) -> bytes:
    memory = int(os.environ.get("EVALTRACK_PAGE_MEMORY_MB") or MEMORY_MB) << 20
    arguments = [str(memory), str(SECONDS), str(PAGE_BYTES)]
    task = output.with_suffix(".job")
    task.write_bytes(pickle.dumps((job, files)))
    with task.open("rb") as todo, output.open("wb") as file, output.with_suffix(".err").open("w+b") as problems:
        try:
            code = _warm().make(arguments, SECONDS, (todo, file, problems))
            if code is None:  # there is none
                code = _run_alone(arguments, (todo, file, problems))
        except subprocess.TimeoutExpired:
            raise InconclusiveError(f"the page was not ready after {SECONDS} s; {_CURE}") from None
        problems.seek(0)
        if code:
            raise _problem(code, problems.read(100_000))
    return output.read_bytes()


def _run_alone(arguments: list[str], files: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> int:
    """The exit code of a process of its own, which imports what it needs itself."""
    todo, file, problems = files
    return subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-P", "-m", "evaltrack.server.page_worker", *arguments],
        stdin=todo,
        stdout=file,
        stderr=problems,
        env=_environment(),
        timeout=SECONDS,
        check=False,
    ).returncode


_KINDS: dict[str, type[EvaltrackError]] = {
    "TrackingError": TrackingError,
    "RowsError": TrackingError,
    "UsageError": UsageError,
}
_CURE = "the pages that were logged with the run are among its artifacts in MLflow"


def _problem(code: int, output: bytes) -> EvaltrackError:
    """What ended the process, as an error; most likely its bounds."""
    if code == REPORTED:
        problem = json.loads(output)
        return _KINDS.get(problem["kind"], InconclusiveError)(problem["message"])
    if code == OUT_OF_MEMORY or code < 0:  # a signal: the kernel's, at a bound
        return InconclusiveError(f"the page needs more memory or time than the server gives it; {_CURE}")
    _log.warning("a page could not be made: %s", output.decode(errors="replace"))
    return TrackingError("the artifacts are damaged, or this is a fault of evaltrack; the server's log holds it")
