"""The command line in this process, where one of its own would show nothing more."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import mlflow
import pytest

from evaltrack.cli import main
from evaltrack.system.processes import stop_signals


def called(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None) -> CompletedProcess[str]:
    """Call the command line in a folder, with these variables too; returns the same as `tests.conftest.evaltrack`."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    words = list(map(str, arguments))
    with same_signals(), _same_store(env or {}), pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ended:
            main(words)
    told = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return CompletedProcess(["evaltrack", *words], int(ended.value.code or 0), *told)


@contextmanager
def same_signals() -> Iterator[None]:
    """A command that ends its process need not give back what signals did before."""
    before = {number: signal.getsignal(number) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _same_store(env: dict[str, str]) -> Iterator[None]:
    """MLflow takes the store of the variables, as in a new process, and afterwards the one of before."""
    before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
    variable = os.environ.get("MLFLOW_TRACKING_URI")
    mlflow.set_tracking_uri(env.get("MLFLOW_TRACKING_URI", variable))
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)
        if variable is None:
            os.environ.pop("MLFLOW_TRACKING_URI", None)
        else:
            os.environ["MLFLOW_TRACKING_URI"] = variable
