"""Kills process groups, limits this process's memory, splits command lines, and stops a run on Ctrl-C or SIGTERM.

Ctrl-C, SIGTERM, a closed terminal and other signals that end a process stop a run: it ends as KILLED with its rows. The
first signal asks: questions in flight are finished and no other is begun. A second signal raises `KeyboardInterrupt`.
One within `ONE_STOP` seconds of the first counts as the same (`mlflow run` passes Ctrl-C on as a second signal); a
third never does. While results are logged a signal never raises: a database can stay locked if a transaction is
interrupted. SIGQUIT and signals without a handler end the process at once.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn


def own_group() -> dict[str, Any]:
    """Return arguments of `subprocess.Popen` that keep the parent's Ctrl-C from a process and its children."""
    if hasattr(os, "killpg"):
        return {"start_new_session": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def kill_group(pid: int) -> None:
    """Kill a process started with `own_group`, and its children. A process that has ended is no error.

    Without process groups, children are found only while the process runs.
    """
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # all have ended
            os.killpg(pid, signal.SIGKILL)
        return
    with suppress(OSError):
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False)  # noqa: S603, S607


def end_own_group() -> NoReturn:
    """End this process now, and its children if it was itself started with `own_group`."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def end_group(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Ask a process and its children to end, and kill all that are left after `seconds`.

    Without process groups they are killed at once.
    """
    if process.poll() is None and hasattr(os, "killpg"):
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    kill_group(process.pid)
    process.wait()


def limit_own_memory(size: int) -> None:
    """Limit this process to `size` bytes of memory. Beyond it, allocations raise MemoryError."""
    import resource

    # on Linux mapped files, such as libraries, are not counted
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    resource.setrlimit(kind, (size, size))


def release_free_memory() -> None:
    """Release the free memory that Arrow and, on Linux, the C library keep.

    This takes milliseconds. It pays after large tables were read and dropped: later data is of another size and could
    not use that memory.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # the C library is not glibc
            ctypes.CDLL(None).malloc_trim(0)


def split_command(line: str) -> list[str]:
    r"""Return the words of a command line, with quotes as in a POSIX shell.

    On a system that writes paths with backslashes, as in ``C:\tools\ask.exe``, a backslash is a plain character;
    elsewhere it quotes.

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
    """Return a word quoted for a shell of this system."""
    return subprocess.list2cmdline([word]) if _writes_backslashes() else shlex.quote(word)


def _writes_backslashes() -> bool:
    return os.sep == "\\"


ONE_STOP = 1.0
STOPS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Names of signals that stop a run. SIGBREAK is Ctrl-Break on Windows."""

OTHERS = ("SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGVTALRM", "SIGPOLL", "SIGPWR")
"""Signals that end a process by default. A program that handles or ignores one keeps its own handler."""


class Stop:
    """The stop request of a run. Handles signals inside `handled()`, in the main thread only."""

    def __init__(self) -> None:
        self.is_requested = False
        self._first, self._signals = 0.0, 0
        self._logging = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals inside the block, and restore their handlers at its end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._take) for number in stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set by Python

    def log_from_now_on(self) -> None:
        """Let signals only set `is_requested` from now on."""
        self._logging = True

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1
        if not self.is_requested:
            self.is_requested, self._first = True, time.monotonic()
        elif self._signals == 2 and time.monotonic() - self._first < ONE_STOP:
            return
        elif not self._logging:
            raise KeyboardInterrupt
        what = "what was done is logged" if self._logging else "finishing questions in flight; Ctrl-C again stops now"
        with suppress(RuntimeError, OSError, ValueError):  # the signal interrupted a write, or stderr is closed
            print(f"Stopping: {what}", file=sys.stderr, flush=True)


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop a run. `nohup` ignores SIGHUP, and so does the run."""
    stops, others = ([getattr(signal, name) for name in names if hasattr(signal, name)] for names in (STOPS, OTHERS))
    heeded = [number for number in stops if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN]
    return heeded + [number for number in others if signal.getsignal(number) == signal.SIG_DFL]
