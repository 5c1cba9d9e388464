"""Python programs in processes that are forked from one that has imported what they need already.

A process of its own costs seconds of imports. Forked from a warm one it costs little, and is a process all the same:
its own environment, working directory, streams, signals and exit code. What needs other variables of Python itself is
started with `subprocess`. The other half, the process that forks, is `warm_process.py`.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

SHARED = "WARM_PROCESS"
"""The variable with the address of the warm process of all workers. Without it each starts one at its first command."""
SHIM = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as door:
    door.connect({door!r})
    order = {{"command": ["-m", "evaltrack", *sys.argv[1:]], "cwd": os.getcwd(), "env": dict(os.environ)}}
    text = json.dumps(order).encode()
    sent = socket.send_fds(door, [len(text).to_bytes(4, "big")], [0, 1, 2])
    door.sendall(text)
    lines = door.makefile().readlines()
sys.exit(int(lines[1]) if int(lines[1]) >= 0 else 128 - int(lines[1]))
"""


class WarmProcess:
    """Has the interface of `subprocess.Popen` for `python` with these arguments, forked.

    Args:
        arguments: What follows `python`: `-m MODULE ...`, `-c CODE ...` or `SCRIPT ...`.
        cwd: Its working directory.
        env: All of its environment.
        output: Where both streams go; by default they are kept apart for `communicate`.
        new_session: Whether it leads a session and a process group of its own.
    """

    def __init__(
        self,
        arguments: tuple[str, ...],
        cwd: Path,
        env: Mapping[str, str],
        output: IO[bytes] | None = None,
        *,
        new_session: bool = False,
    ) -> None:
        self.args = arguments
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - read at the end
        order = {"command": arguments, "cwd": str(cwd), "env": dict(env), "new_session": new_session}
        text = json.dumps(order).encode()
        with socket.socket(socket.AF_UNIX) as door, Path(os.devnull).open("rb") as nothing:
            door.connect(_door())
            streams = [output or self._out, output or self._err]
            socket.send_fds(door, [len(text).to_bytes(4, "big")], [file.fileno() for file in (nothing, *streams)])
            door.sendall(text)
            self._status = os.fdopen(os.dup(door.fileno()), "rb")
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            os.set_blocking(self._status.fileno(), False)
            if line := self._status.readline():
                self.returncode = int(line)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        limit = 120 if timeout is None else timeout
        deadline = time.monotonic() + limit
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, limit)
            time.sleep(0.005)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        return _text(self._out), _text(self._err)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(30)
        self.close()

    def close(self) -> None:
        for file in (self._out, self._err, self._status):
            file.close()


def run(arguments: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `python` with these arguments to its end."""
    with WarmProcess(arguments, cwd, env) as process:
        try:
            out, err = process.communicate(120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(["python", *arguments], process.wait(), out, err)


def put_command(folder: Path) -> None:
    (folder / "evaltrack").write_text(SHIM.format(python=sys.executable, door=_door()))
    (folder / "evaltrack").chmod(0o755)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


@cache
def _door() -> str:
    return os.environ.get(SHARED) or start()


def start() -> str:
    """Start the warm process, which ends with this one; returns its address."""
    folder = tempfile.mkdtemp(prefix="warm-")
    ours, theirs = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{folder}/door")
        door.listen(16)
        script = str(Path(__file__).with_name("warm_process.py"))
        descriptors = (door.fileno(), theirs.fileno())
        process = subprocess.Popen([sys.executable, script, *map(str, descriptors)], pass_fds=descriptors)
    theirs.close()
    atexit.register(_close, ours, process, folder)
    return f"{folder}/door"


def _close(life: socket.socket, process: subprocess.Popen[Any], folder: str) -> None:
    life.close()
    process.wait(10)
    shutil.rmtree(folder, ignore_errors=True)
