"""A process with all that it starts: a process group, or where there are none what `taskkill` ends as a tree."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import Any, NoReturn

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
