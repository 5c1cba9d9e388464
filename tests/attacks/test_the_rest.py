"""Ways in that need no store: a page that calls itself `10.evil.com`, words of a project, a settings file in /tmp."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mlflow.projects.utils
import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.settings_sources import read_settings
from tests.cli.test_ui import lines_until_ready
from tests.conftest import REPO, evaltrack
from tests.files import put
from tests.mlflow_server import free_port

PAGES = ("/", "/evaltrack/", "/api/2.0/mlflow/experiments/get?experiment_id=0")


@contextmanager
def served(folder: Path, database: Path) -> Iterator[int]:
    shutil.copy(database, folder / "mlflow.db")
    port = free_port()
    command = [sys.executable, "-m", "evaltrack", "ui", "--port", str(port)]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        lines = lines_until_ready(process)
        assert "Uvicorn running" in lines[-1], "".join(lines)
        yield port
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def status(port: int, path: str, host: str, body: str | None = None, origin: str = "") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Host": host, "Content-Type": "application/json"} | ({"Origin": origin} if origin else {})
    connection.request("POST" if body else "GET", path, body, headers)
    code = connection.getresponse().status
    connection.close()
    return code


def test_a_page_under_another_name_reaches_nothing(tmp_path: Path, empty_database: Path) -> None:
    search, body = "/ajax-api/2.0/mlflow/runs/search", '{"experiment_ids": ["0"]}'
    with served(tmp_path, empty_database) as port:
        for path in PAGES:
            for host in ("10.evil.com", f"10.evil.com:{port}", "192.168.evil.com"):
                assert status(port, path, host) == 403, (path, host)
            for host in ("localhost", "127.0.0.1"):
                assert status(port, path, f"{host}:{port}") == 200, (path, host)
            assert status(port, path, f"localhost:{port + 1}") == 403
        own = f"127.0.0.1:{port}"
        assert status(port, search, own, body, f"http://{own}") == 200
        assert status(port, search, own, body, "http://10.evil.com") == 403


def project(**parameters: str) -> subprocess.CompletedProcess[str]:
    loaded = mlflow.projects.utils.load_project(str(REPO))
    command = loaded.get_entry_point("main").compute_command(parameters, None)
    scripts = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PATH": f"{scripts}{os.pathsep}/usr/bin{os.pathsep}/bin", "PYTHONPATH": str(REPO)}
        env["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/none/mlflow.db"  # nothing may get as far as this
        return subprocess.run(["bash", "-c", command], cwd=REPO, env=env, capture_output=True, text=True, timeout=60)


NAMES = ("target", "k", "judge", "experiment", "trials", "require", "run_name", "rubric")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        *(({"golden": each}, f"Error: {each}: no such file") for each in ("--help", "--set", "-k", "--set=k=3")),
        *(({"golden": "none.jsonl", name: "--help"}, "") for name in NAMES),
        ({"golden": "none.jsonl", "nonsense": "x"}, "there is no setting `nonsense`"),
    ],
)
def test_no_value_becomes_an_option(parameters: dict[str, str], said: str) -> None:
    ended = project(**parameters)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


def test_values_are_no_shell(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    for value in (f"$(touch {mark})", f"`touch {mark}`", f"x; touch {mark}", f"'; touch {mark} #", f"x\ntouch {mark}"):
        ended = project(golden=value, target=value, **{f"x; touch {mark};": value})
        assert ended.returncode == 2, ended.stderr
    assert not mark.exists()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    if os.geteuid():
        pytest.skip("only root can give a file to another user")
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


STRANGER = 12345


@pytest.mark.parametrize(("name", "table"), [("evaltrack.toml", "[run]"), ("pyproject.toml", "[tool.evaltrack.run]")])
def test_settings_that_somebody_else_left_are_not_followed(shared: Path, name: str, table: str) -> None:
    mark = shared / "executed"
    put(shared / "set.jsonl", [{"id": 1, "question": "Why?", "expected_chunks": ["a"]}])
    (shared / name).write_text(f'{table}\ntarget = "command:touch {mark} {{question}}"\n')
    os.chown(shared / name, STRANGER, STRANGER)

    ended = evaltrack("run", "set.jsonl", cwd=shared, env={"MLFLOW_TRACKING_URI": f"sqlite:///{shared}/mlflow.db"})

    assert not mark.exists()
    assert ended.returncode == 2, ended.stderr
    assert f"{name}: belongs to another user, who does not own the folder either" in ended.stderr


def test_links_and_folders_of_somebody_else(shared: Path, tmp_path: Path) -> None:
    """A link is not followed; a folder is taken as a whole, with its files."""
    link = shared / "evaltrack.toml"
    link.symlink_to(put(tmp_path / "mine.toml", "[run]\nk = 3\n"))
    assert read_settings(shared) == {"run": {"k": 3}}
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(UsageError, match="belongs to another user"):
        read_settings(shared)
    for path in (shared, tmp_path / "mine.toml"):
        os.chown(path, STRANGER, STRANGER)
    assert read_settings(shared) == {"run": {"k": 3}}


def test_settings_of_a_folder_above_are_not_looked_for(tmp_path: Path) -> None:
    put(tmp_path / "evaltrack.toml", "this is no TOML\n")
    (below := tmp_path / "below").mkdir()
    assert "no such file" in evaltrack("golden", "lint", "none.jsonl", cwd=below).stderr
