"""The warm process of `warm.py`: imports what programs import by and by, then forks for each order.

A fork ends as Python does, except that it does not take down the modules it shares: that takes a second.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

MODULES = (Path(__file__).parent / "data/warm_modules.txt").read_text().split()
"""No module of MLflow's server: they read the environment when they are imported."""


def main(door: socket.socket, life: socket.socket) -> None:
    """Fork for each order, until the sender is gone."""
    _warm_up()
    signal.signal(signal.SIGCHLD, _reap)
    with selectors.DefaultSelector() as selector:
        for source in (door, life):
            selector.register(source, selectors.EVENT_READ)
        while not any(key.fileobj is life for key, _ in selector.select()):
            client, _ = door.accept()
            if os.fork() == 0:
                break
            client.close()
        else:
            return
    door.close()
    life.close()
    _watch(client)


def _reap(*_: object) -> None:
    """Take note of forks that have ended, so that their time is part of this process's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _warm_up() -> None:
    for module in MODULES:
        importlib.import_module(module)
    import sqlalchemy.orm
    from mlflow.store.db import utils

    from evaltrack.metrics.tokens import count_tokens
    from evaltrack.privacy.redaction import rules

    utils._get_latest_schema_revision = cache(utils._get_latest_schema_revision)  # type: ignore[assignment]
    utils._get_latest_schema_revision()  # it executes all migration scripts
    rules()
    count_tokens("", None)
    sqlalchemy.orm.configure_mappers()
    gc.collect()
    gc.freeze()  # collections in the forks leave alone what is shared


def _watch(client: socket.socket) -> None:
    """Fork the program itself; tell its process id and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(client, 4, 3)
    order = json.loads(_received(client, int.from_bytes(head, "big")))
    child = os.fork()
    if child == 0:
        client.close()
        _become(order, streams)
    with suppress(OSError):  # the sender may be gone
        client.sendall(b"%d\n" % child)
    for stream in streams:
        os.close(stream)
    _, ended = os.waitpid(child, 0)
    with suppress(OSError):
        client.sendall(b"%d\n" % os.waitstatus_to_exitcode(ended))
    os._exit(0)


def _received(client: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        parts += client.recv(size - len(parts))
    return bytes(parts)


def _become(order: dict[str, Any], streams: list[int]) -> None:
    """Be `python` with these arguments."""
    if order.get("new_session"):
        os.setsid()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    sys.path[0] = order["cwd"]
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path and path not in sys.path]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    command = order["command"]
    if command[:3] == ["-m", "mlflow", "server"]:
        _prepare_worker()
    _end(_code_of(lambda: _run(*command)))


def _run(first: str, *words: str) -> None:
    if first == "-m":
        sys.argv = list(words)
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *words[1:]]
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[0], "<string>", "exec"), module.__dict__)
    else:
        sys.argv, sys.path[0] = [first, *words], os.path.dirname(os.path.abspath(first))  # noqa: PTH100, PTH120
        runpy.run_path(first, run_name="__main__")


def _code_of(work: Callable[[], object]) -> int:
    """The exit code by Python's rules."""
    try:
        work()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - as Python itself
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(code: int) -> None:
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None where the program closed it
        try:
            stream.flush()
        except OSError:
            code = 120
        except ValueError:
            pass
    os._exit(code & 0xFF)


class _Worker:
    """Has the interface of `subprocess.Popen` for the process that serves: forked before MLflow's server was
    imported, which reads the environment then, and told what to be once that is known.
    """

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self.pid, self._code = os.fork(), None
        if self.pid == 0:
            os.close(self._writing)
            with os.fdopen(reading) as orders:
                text = orders.read()
            if not text:
                os._exit(0)
            command, env = json.loads(text)
            os.environ.update(env)
            _end(_code_of(lambda: _run(*command[1:])))
        os.close(reading)

    def start(self, command: list[str], *, extra_env: dict[str, str], **_: object) -> _Worker:
        os.write(self._writing, json.dumps([command, extra_env]).encode())
        os.close(self._writing)
        return self

    def poll(self, options: int = os.WNOHANG) -> int | None:
        if self._code is None:
            ended, status = os.waitpid(self.pid, options)
            self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code

    def wait(self) -> int | None:
        return self.poll(0)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def _prepare_worker() -> None:
    from mlflow.utils import process

    process._exec_cmd = _Worker().start


if __name__ == "__main__":
    main(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
