"""Processes: a group with all that it starts, their bounds and memory, command lines as people write them, signals.

Ctrl-C, SIGTERM, a closed terminal and what else ends a process stop a run, so that it ends as KILLED with its rows. The
first signal asks: the questions in flight are finished and no other is begun. A second one while they are raises
`KeyboardInterrupt`; one that follows the first within `ONE_STOP` seconds is the same stop (`mlflow run` passes Ctrl-C
on as a second signal), a third one never is. While results are being logged a signal never raises: a database can stay
locked where a transaction is broken off. SIGQUIT and what cannot be handled end the process at once.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import pyarrow as pa


TASKKILL_SECONDS = 10


def own_group() -> dict[str, Any]:
    """Arguments of `subprocess.Popen` that keep Ctrl-C, which is for the parent, from a process and its own."""
    if hasattr(os, "killpg"):
        return {"start_new_session": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def kill_group(pid: int) -> None:
    """End a process that was started with `own_group`, and those that it started, now; one that is gone is no error.

    Without process groups, those that it started are found while it runs only.
    """
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # all ended by themselves
            os.killpg(pid, signal.SIGKILL)
        return
    if (taskkill := shutil.which("taskkill")) is not None:
        command = [taskkill, "/T", "/F", "/PID", str(pid)]
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, check=False, timeout=TASKKILL_SECONDS)  # noqa: S603
            return
    with suppress(OSError):
        os.kill(pid, signal.SIGTERM)


def end_own_group() -> NoReturn:
    """End this process now, and those that it started where it was started with `own_group` itself."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def end_group(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Ask a process to end, which asks those it started, and after so many seconds end all that are left.

    Without process groups nothing can be asked to end, and all of them are ended at once.
    """
    if process.poll() is None and hasattr(os, "killpg"):
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    kill_group(process.pid)
    process.wait()


def can_limit() -> bool:
    """Whether this system has such bounds."""
    try:
        import resource  # noqa: F401
    except ImportError:
        return False
    return True


def limit_own_memory(size: int) -> None:
    """Refuse this process more than `size` bytes of its own: what asks for more gets a MemoryError."""
    import resource

    # on Linux the files that a process maps, such as libraries, are not counted
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    resource.setrlimit(kind, (size, size))


def release_free_memory() -> None:
    """Give back what Arrow and, on Linux, the C library hold for what comes next.

    Worth its milliseconds after large tables were read of which little is left: what comes next is of another size,
    and would stand beside what they left.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library that is not glibc
            ctypes.CDLL(None).malloc_trim(0)


def decoded_size(array: pa.Array) -> int:
    """Bytes of an array once each repeated text is written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        lengths = pc.cast(pc.binary_length(array.dictionary), pa.int64())
        return (pc.sum(lengths.take(array.indices)).as_py() or 0) + int(array.indices.nbytes)
    if pa.types.is_list(array.type):
        return decoded_size(array.flatten()) + int(array.offsets.nbytes)
    if pa.types.is_struct(array.type):
        return sum(map(decoded_size, array.flatten()))
    return int(array.nbytes)


def split_command(line: str) -> list[str]:
    r"""The words of a command line, with quotes as in a POSIX shell.

    Where paths are written with backslashes, as in ``C:\tools\ask.exe``, a backslash is one; else it quotes.

    Raises:
        ValueError: a quotation is not closed.
    """
    words = shlex.shlex(line, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = ""
    if _writes_backslashes():
        words.escape = ""
    return list(words)


def quoted(word: str) -> str:
    """A word as it is written in a shell of this system."""
    return subprocess.list2cmdline([word]) if _writes_backslashes() else shlex.quote(word)


def _writes_backslashes() -> bool:
    return os.sep == "\\"


ONE_STOP = 1.0
STOPS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Those that the system has: SIGBREAK is the Ctrl-Break of Windows."""

OTHERS = ("SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGVTALRM", "SIGPOLL", "SIGPWR")
"""Signals that end a process by default; a program that handles or ignores one itself keeps doing so."""


class Stop:
    """Whether the run was asked to stop. Handles signals inside `handled()`, in the main thread only."""

    def __init__(self) -> None:
        self.is_requested = False
        self._first, self._signals = 0.0, 0
        self._logging = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Take the signals over, and give them back at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._take) for number in stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it was not Python's

    def log_from_now_on(self) -> None:
        """From now on a signal only sets `is_requested`."""
        self._logging = True

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1
        if not self.is_requested:
            self.is_requested, self._first = True, time.monotonic()
        elif self._signals == 2 and time.monotonic() - self._first < ONE_STOP:
            return
        elif not self._logging:
            raise KeyboardInterrupt
        what = "what was done is logged" if self._logging else "questions in flight are finished; Ctrl-C again: now"
        with suppress(RuntimeError, OSError, ValueError):  # it came in the middle of a write, or nothing can be written
            print(f"Stopping: {what}", file=sys.stderr, flush=True)


def stop_signals() -> list[signal.Signals]:
    """The signals that stop a run; `nohup` ignores SIGHUP, and so does the run."""
    stops, others = ([getattr(signal, name) for name in names if hasattr(signal, name)] for names in (STOPS, OTHERS))
    heeded = [number for number in stops if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN]
    return heeded + [number for number in others if signal.getsignal(number) == signal.SIG_DFL]
