"""The command line in processes that are forked from one that has imported what it needs already.

A process of its own costs seconds of imports. Forked from a warm one it costs little, and is a process all the same:
its own environment, working directory, streams, signals and exit code. What needs other variables of Python itself is
started with `subprocess`.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

MODULES = (
    *("mlflow", "mlflow.store.tracking.sqlalchemy_store", "mlflow.tracing.client", "mlflow.data.dataset_source"),
    *("pandas", "pyarrow.parquet", "rich.console", "jinja2", "openai", "tiktoken", "numpy", "scipy.special"),
    *("evaltrack", "evaltrack.api", "evaltrack.comparing", "evaltrack.resuming", "evaltrack.reporting"),
    *("evaltrack.cli", "evaltrack.cli.run", "evaltrack.cli.compare", "evaltrack.cli.baseline", "evaltrack.evaluation"),
)
"""What the command line imports by and by."""


class WarmProcess:
    """What `subprocess.Popen` offers, of a command line that was forked."""

    def __init__(self, arguments: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> None:
        self.args = arguments
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - read at the end
        reading, writing = os.pipe()
        request = json.dumps({"arguments": arguments, "cwd": str(cwd), "env": dict(env)}).encode()
        door = _door()
        door.sendall(len(request).to_bytes(4, "big"))
        descriptors = array.array("i", [self._out.fileno(), self._err.fileno(), writing])
        sent = door.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        door.sendall(request[sent:])
        os.close(writing)
        self._status = os.fdopen(reading, "rb")
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, where it has ended."""
        if self.returncode is None:
            os.set_blocking(self._status.fileno(), False)
            if line := self._status.readline():
                self.returncode = int(line)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        deadline = time.monotonic() + (timeout or 120)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 120)
            time.sleep(0.005)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; what it wrote to both streams."""
        self.wait(timeout)
        return _text(self._out), _text(self._err)

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(30)
        for file in (self._out, self._err, self._status):
            file.close()


def run(arguments: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    with WarmProcess(arguments, cwd, env) as process:
        try:
            out, err = process.communicate(120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(["evaltrack", *arguments], process.wait(), out, err)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


@cache
def _door() -> socket.socket:
    """The way to the warm process, which is started at the first command and ends with this one."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, str(Path(__file__)), str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(lambda: (ours.close(), process.wait(10)))
    return ours


def _serve(door: socket.socket) -> None:
    """Fork for each request, until whoever sends them is gone."""
    import importlib

    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # collections in the forks leave what is shared alone
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while head := door.recv(4, socket.MSG_WAITALL):
        request, descriptors = _receive(door, int.from_bytes(head, "big"))
        if os.fork() == 0:
            door.close()
            _watch(request, descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)


def _receive(door: socket.socket, size: int) -> tuple[dict[str, Any], list[int]]:
    request, descriptors, _, _ = socket.recv_fds(door, size, 3)
    while len(request) < size:
        request += door.recv(size - len(request), socket.MSG_WAITALL)
    return json.loads(request), list(descriptors)


def _watch(request: dict[str, Any], descriptors: list[int]) -> None:
    """Fork the command itself; tell its process id and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    out, err, status = descriptors
    child = os.fork()
    if child == 0:
        os.close(status)
        _become(request, out, err)
        return
    os.write(status, b"%d\n" % child)
    _, ended = os.waitpid(child, 0)
    os.write(status, b"%d\n" % os.waitstatus_to_exitcode(ended))
    os._exit(0)


def _become(request: dict[str, Any], out: int, err: int) -> None:
    """Be `python -m evaltrack` with these arguments."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(descriptor, number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.path[0] = request["cwd"]
    sys.argv = ["evaltrack", *request["arguments"]]
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    _end(_code_of(lambda: runpy.run_module("evaltrack", run_name="__main__", alter_sys=True)))


def _code_of(work: Callable[[], object]) -> int:
    """What a program that was left this way ends with, by Python's rules."""
    try:
        work()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(code: int) -> None:
    """End as Python does, but for taking down the modules that were imported before the fork: that takes a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
