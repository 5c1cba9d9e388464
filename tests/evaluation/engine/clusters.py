"""Clusters of this machine that run before an evaluation does, each in a process group of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

PATIENCE = 90.0


@contextmanager
def ray_client_server(folder: Path) -> Iterator[str]:
    """The `ray://` address of a Ray of its own, without a token."""
    ports = [free_port() for _ in range(2)]
    command = ["ray", "start", "--head", "--block", f"--port={ports[0]}", f"--ray-client-server-port={ports[1]}"]
    command += ["--include-dashboard=false", "--num-cpus=2", "--node-ip-address=127.0.0.1", "--disable-usage-stats"]
    with TemporaryDirectory(prefix="ray") as short:  # names of its sockets have at most 107 bytes
        own = {"RAY_AUTH_MODE": "disabled"}
        with _process(folder, [*command, f"--temp-dir={short}"], own, ports[1]):
            yield f"ray://127.0.0.1:{ports[1]}"


@contextmanager
def spark_connect_server(folder: Path) -> Iterator[str]:
    """The `sc://` address of a Spark of its own with two cores."""
    import pyspark

    home, port = Path(pyspark.__file__).parent, free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    with _process(folder, [*command, "spark-internal"], own, port):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _process(folder: Path, command: list[str], variables: dict[str, str], port: int) -> Iterator[None]:
    """A process in the foreground, once it listens; all that it started ends with it."""
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | variables, stdout=out, stderr=out, start_new_session=True
        )
    try:
        end = time.monotonic() + PATIENCE
        while not _listens(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        for each in _of_session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.wait()


def _of_session(session: int) -> Iterator[int]:
    """The processes that a process and its children started, by the session that it began."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getsid(int(path.name)) == session:
                yield int(path.name)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
