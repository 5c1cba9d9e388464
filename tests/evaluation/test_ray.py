from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.plan import check_engine, planned
from evaltrack.evaluation.ray_workers import RowWorker, environment_of
from evaltrack.evaluation.settings import Command, EvaluationConfig
from evaltrack.records import Row
from evaltrack.tracking.rows import read_table
from evaltrack.tracking.store import connect
from tests.conftest import REPO
from tests.mlflow_server import free_port
from tests.openai_server import OpenAIServer

NEEDS_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
TARGET = """
import hashlib

def ask(question, k):
    with open("asked", "ab", buffering=0) as file:
        file.write(question.encode() + b"\\n")
    number = int(hashlib.sha256(question.encode()).hexdigest(), 16)
    if number % 3 == 0:
        raise ValueError("three")
    text = "\\u2028 x\\r\\n"
    sources = [{"chunk_id": f"00{number % n}", "text": text * n, "score": number % 97 / 7} for n in (2, 3, 5)]
    return {"answer": f"It is {number % 1000}.", "sources": sources}
"""
OF_THE_RUN = ("seconds", "started_at", "trace_id", "root_span_id")
ON_RAY = ("--set", "engine=ray", "--set", "engine_workers=2")
PATIENCE = 180


class Project:
    """A folder with a golden set of 60 questions and a target that notes what it is asked; 20 or so are errors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "mine.py").write_text(TARGET)
        lines = [
            {"id": f"{number:03}", "question": f"What is number {number}?", "expected_chunks": [f"00{number % 5}"]}
            for number in range(60)
        ]
        (folder / "golden.jsonl").write_text("\n".join(map(json.dumps, lines)))

    def asked(self) -> list[str]:
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def start(self, *options: str, uri: str, command: str = "run golden.jsonl") -> subprocess.Popen[str]:
        words = [*command.split(), *(("-t", "python:mine:ask", "--output", "json") if "golden" in command else ())]
        return subprocess.Popen(
            [sys.executable, "-m", "evaltrack", *words, *options],
            cwd=self.folder,
            env=os.environ | {"MLFLOW_TRACKING_URI": uri, "PYTHONPATH": str(REPO)},
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str, uri: str, code: int = 0) -> Any:
        with self.start(*options, uri=uri) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, err
        return err if code else json.loads(out)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def artifacts_of(uri: str, run_id: str, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    path = Path(connect(uri).client.download_artifacts(run_id, "", str(folder)))
    shown = json.loads((path / "per_question.json").read_text())
    kept = [place for place, name in enumerate(shown["columns"]) if name not in OF_THE_RUN]
    tables = {str(each.relative_to(path)): read_table(each) for each in path.rglob("*.parquet")}
    rows = {name: [{**row, **dict.fromkeys(OF_THE_RUN)} for row in table] for name, table in tables.items()}
    table = [[line[place] for place in kept] for line in shown["data"]]
    return {"names": sorted(str(each.relative_to(path)) for each in path.rglob("*")), "table": table, **rows}


def timeless(result: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in result.items() if name not in ("run_id", "target_seconds")}
    own["settings"] = {name: value for name, value in own["settings"].items() if not name.startswith("engine")}
    own["rows"] = [{**row, **dict.fromkeys(OF_THE_RUN)} for row in own["rows"]]
    return own


def assert_as_local(project: Project, uri: str, folder: Path, *own: str) -> None:
    one, two = (project.run("--judge", "none", "--trials", "2", *options, uri=uri) for options in ((), own))
    assert timeless(two) == timeless(one)
    assert {row["error"] is None for row in two["rows"]} == {True, False}
    assert artifacts_of(uri, two["run_id"], folder / "two") == artifacts_of(uri, one["run_id"], folder / "one")
    assert len(project.asked()) == 4 * 60


@NEEDS_RAY
def test_rows_metrics_and_artifacts_are_those_of_one_process(
    project: Project, store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-a-key-that-only-this-test-has"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with TemporaryDirectory(prefix="ray") as short:  # names of its sockets have at most 107 bytes
        monkeypatch.setenv("RAY_TMPDIR", short)
        assert_as_local(project, store_uri, tmp_path, *ON_RAY)
        files = [path for path in Path(short).rglob("*") if path.is_file() and not path.is_symlink()]
        assert files
        assert [path for path in files if key.encode() in path.read_bytes()] == []


@pytest.mark.long
@NEEDS_RAY
@pytest.mark.skipif(find_spec("grpc") is None, reason="ray[client] is not installed")
def test_a_ray_client_address(project: Project, store_uri: str, tmp_path: Path) -> None:
    ports = [free_port() for _ in range(2)]
    command = ["start", "--head", "--block", f"--port={ports[0]}", f"--ray-client-server-port={ports[1]}"]
    command += ["--include-dashboard=false", "--num-cpus=2", "--node-ip-address=127.0.0.1", "--disable-usage-stats"]
    with (
        TemporaryDirectory(prefix="ray") as short,
        subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", *command, f"--temp-dir={short}"],
            env=os.environ | {"RAY_AUTH_MODE": "disabled"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process,
    ):
        try:
            end = time.monotonic() + PATIENCE
            while not listens(ports[1]) and process.poll() is None and time.monotonic() < end:
                time.sleep(0.2)
            own = ("--set", "engine=ray", "--set", f"engine_address=ray://127.0.0.1:{ports[1]}")
            assert_as_local(project, store_uri, tmp_path, *own)
        finally:
            process.terminate()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.long
@NEEDS_RAY
def test_kills_of_workers_and_drivers_lose_no_row() -> None:
    command = [sys.executable, str(REPO / "scripts" / "kill_engine.py"), "--kills", "2", "--questions", "150"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"2 kills \(1 of workers, 1 of drivers\).*a problem 0", ended.stdout), ended.stdout


@NEEDS_RAY
def test_ctrl_c_ends_the_run_with_what_was_done(project: Project, store_uri: str) -> None:
    target = project.folder / "mine.py"
    target.write_text(target.read_text().replace("    number", "    __import__('time').sleep(0.5)\n    number", 1))
    with project.start("--judge", "none", "--concurrency", "4", *ON_RAY, uri=store_uri) as process:
        asked, end = project.folder / "asked", time.monotonic() + PATIENCE
        while process.poll() is None and not asked.exists() and time.monotonic() < end:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "finishing questions in flight" in err
    client = connect(store_uri).client
    (run,) = client.search_runs(["0"])
    done = len(project.asked())
    assert (run.info.status, run.data.metrics["num_questions"]) == ("KILLED", done)
    assert done < 60
    with project.start(run.info.run_id, uri=store_uri, command="resume") as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    run = client.get_run(run.info.run_id)
    assert (run.info.status, run.data.params["engine"]) == ("FINISHED", "ray")
    assert run.data.metrics["num_questions"] == 60
    assert done + len(project.asked()) == 60


@NEEDS_RAY
def test_an_error_that_ends_the_run_in_a_worker_ends_it(
    project: Project, store_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer(api_key="another") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "wrong")
        local, there = (
            project.run("--judge", "openai:gpt-4o-mini", *own, uri=store_uri, code=2) for own in ((), ON_RAY)
        )
    assert there.splitlines()[-1] == local.splitlines()[-1]
    assert there.splitlines()[-1].startswith("Error: ")


@NEEDS_RAY
def test_a_cluster_that_is_not_there_is_an_error_before_anything_is_asked(project: Project, store_uri: str) -> None:
    said = project.run("--set", "engine=ray", "--set", "engine_address=127.0.0.1:1", uri=store_uri, code=2)
    assert "--set engine_address=127.0.0.1:1: Ray cannot be reached" in said
    assert "RAY_AUTH_MODE=token" in said
    assert project.asked() == []
    assert not list((project.folder / "state").glob("*.sqlite"))
    assert connect(store_uri).client.search_runs(["0"]) == []


@pytest.fixture
def command(project: Project, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(project.folder)
    settings = EvaluationConfig.of(judge="none", scores="exact_match", concurrency=2)
    return Command(golden="golden.jsonl", target="python:mine:ask", settings=settings, folder=str(project.folder))


def test_a_worker_makes_the_rows_that_a_local_run_makes(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALTRACK_OF_A_WORKER", "")
    local = list[Row]()
    with planned(command.golden, command.settings, command.target) as plan:
        plan.ask(local.append)
        questions = list(plan.golden)

    async def rows() -> list[Row]:
        worker = RowWorker(command, {"EVALTRACK_OF_A_WORKER": "yes"})
        made = [await worker.row(position, question, 1) for position, question in enumerate(questions)]
        for each in worker._opened:
            await each.aclose()
        return made

    there = asyncio.run(rows())
    assert os.environ["EVALTRACK_OF_A_WORKER"] == "yes"
    clock = {"started_at": 0.0, "seconds": 0.0}
    local.sort(key=lambda row: row.position)
    assert [row.model_copy(update=clock) for row in there] == [row.model_copy(update=clock) for row in local]


def test_a_worker_of_another_version_is_refused(command: Command) -> None:
    with pytest.raises(UsageError, match=r"is installed on the worker .*, and 9\.9 where the run was started"):
        asyncio.run(RowWorker(command, {}).open("9.9"))


def test_workers_are_given_the_variables_that_they_need(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "APP_TOKEN", "OTHER_TOKEN"):
        monkeypatch.setenv(name, f"value of {name}")
    settings = command.settings.with_(target_options={"header.Authorization": "Bearer APP_TOKEN"})
    given = environment_of(command.model_copy(update={"settings": settings}))
    assert given["OPENAI_API_KEY"] == "value of OPENAI_API_KEY"
    assert given["APP_TOKEN"] == "value of APP_TOKEN"
    assert "OTHER_TOKEN" not in given


def refusal(target: Any = "python:m:f", functions: Any = None, **settings: Any) -> str:
    with pytest.raises(UsageError) as error:
        check_engine(EvaluationConfig.of(**settings), target, functions or {})
    return str(error.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"judge_prompt": "prompts:/p/1"}, "is read from MLflow"),
        ({"in_process": True}, "is for a debugger"),
        ({"engine_workers": 32}, "`engine_workers=32` share `concurrency=16`, and each needs 1; set `concurrency=32`"),
        ({"target": "traces:exp"}, "a traces: target asks MLflow"),
        ({"target": "models:/m/1"}, "take `engine=local`"),
        ({"target": print}, "name it as python:package.module:function"),
        ({"functions": {"m:judge": print}}, "`m:judge` is given as an object"),
    ],
)
def test_what_cannot_hold_on_ray_is_refused(settings: dict[str, Any], words: str) -> None:
    said = refusal(engine="ray", **settings)
    assert said.startswith("`engine=ray`: ")
    assert words in said


def test_all_problems_a_missing_package_and_settings_of_ray_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(refusal(engine="ray", in_process=True, judge_prompt="prompts:/p/1").splitlines()) == 2
    monkeypatch.setattr("evaltrack.evaluation.plan.find_spec", lambda _: None)
    assert "pip install 'ray>=2.40', here and on workers" in refusal(engine="ray")
    assert "are for `engine=ray`" in refusal(engine_address="auto", engine_workers=2)
    check_engine(EvaluationConfig.of(), "python:m:f", {})


def test_what_holds_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltrack.evaluation.plan.find_spec", lambda _: object())
    config = EvaluationConfig.of(engine="ray", engine_workers=16, trials=3, redact="x", scores="exact_match")
    check_engine(config, "python:m:f", {})
    check_engine(config, None, {})
