"""Real stores for the tests: a fresh SQLite database for each test that asks, and one MLflow server for all."""

from __future__ import annotations

import fcntl
import functools
import gc
import importlib
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from . import warm
from .mlflow_server import served_store
from .openai_behaviours import Behaviour, Reply, script
from .openai_server import OpenAIServer

if TYPE_CHECKING:
    from evaltrack.judges.cache import VerdictCache

Serve: TypeAlias = Callable[..., OpenAIServer]
OpenCache: TypeAlias = "Callable[[Path], VerdictCache]"
REPO = Path(__file__).parent.parent
MEMORY = Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # stores wait for no disk at each commit

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
for variable in [n for n in os.environ if n.startswith("EVALTRACK_") and not n.startswith("EVALTRACK_TEST_")]:
    del os.environ[variable]
for variable in (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "MLFLOW_RUN_ID",
    "MLFLOW_EXPERIMENT_ID",
    "MLFLOW_EXPERIMENT_NAME",
    "MLFLOW_TRACKING_URI",
):
    os.environ.pop(variable, None)

for number, handler in {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}.items():
    if signal.getsignal(number) is signal.SIG_IGN:  # background jobs of a shell and of nohup ignore it
        signal.signal(number, handler)


def few_questions(folder: Path, number: int, *, quoted: bool = True) -> Path:
    """A set in `folder` of the first questions of the travel set, next to the corpora; `quoted` or by ids."""
    lines = (REPO / "golden/travel.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    if not quoted:
        questions = map(json.loads, lines)
        lines = [json.dumps({k: v for k, v in each.items() if k != "expected_passages"}) + "\n" for each in questions]
    (folder / "corpus").symlink_to(REPO / "golden/corpus")
    golden = folder / "travel.jsonl"
    golden.write_text("".join(lines[:number]), encoding="utf-8")
    return golden


FIRST = ("browser", "test_resume", "test_rerun", "test_kill_loop", "server", "cli", "test_baselines")
"""The slowest rooms and files run first, so that no worker is left with a long one at the end."""
LONG = frozenset((REPO / "tests/long.txt").read_text(encoding="utf-8").splitlines())
"""Slow tests of code that quicker tests execute too; `scripts/choose_quick_tests` finds them."""
TESTS = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """One warm process serves all workers, and is ready when they are."""
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ[warm.SHARED] = warm.start()


def pytest_collection(session: pytest.Session) -> None:
    """Rewriting all files' assertions takes seconds: the second worker begins with the last files, and both share them.

    An import that fails here fails again when its file is collected.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker != "gw1" or session.config.args != session.config.getini("testpaths") or sys.dont_write_bytecode:
        return
    for path in sorted(Path(__file__).parent.rglob("test_*.py"), reverse=True):
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(REPO).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; `--dist=loadfile` has one worker run each, so that what its tests share is made once."""
    items.sort(key=lambda item: FIRST.index(group) if (group := _group(item)) in FIRST else len(FIRST))
    for item in items:
        if item.nodeid in LONG:
            item.add_marker("long")


def _group(item: pytest.Item) -> str:
    room = item.path.parent.name
    return room if room in FIRST else item.path.stem


def pytest_collection_finish() -> None:
    """All is imported: from now on collections of garbage leave alone what stays to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def own_cache(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test reads or writes the user's verdicts and journals. A plain folder is quicker to make than `tmp_path`."""
    if "tmp_path" in request.fixturenames:
        folder = request.getfixturevalue("tmp_path")
    else:
        folder = tmp_path_factory.getbasetemp() / f"own-{next(TESTS)}"
        folder.mkdir()
    monkeypatch.setenv("EVALTRACK_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(folder / "state"))


@pytest.fixture
def open_cache() -> Iterator[OpenCache]:
    from evaltrack.judges.cache import VerdictCache

    caches: list[VerdictCache] = []

    def opened(folder: Path) -> VerdictCache:
        caches.append(VerdictCache(folder))
        return caches[-1]

    yield opened
    for cache in caches:
        cache.close()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts the server that models are asked from: with a behaviour, or with replies of which the last one repeats."""
    with ExitStack() as running:

        def start(*replies: Any, behaviour: Behaviour | None = None, **settings: Any) -> OpenAIServer:
            made = [each if isinstance(each, Reply) or callable(each) else Reply(str(each)) for each in replies]
            given = behaviour or (made[0] if callable(made[0]) else script(*made))
            server = running.enter_context(OpenAIServer(given, **settings))
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            return server

        yield start


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", folder], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database with its tables and nothing in them; migrating one takes seconds, copying it does not."""
    import mlflow

    pytest.importorskip("sqlalchemy", reason="mlflow-skinny cannot open a database")
    from mlflow.store.db import utils

    # MLflow executes all migration scripts for each store.
    utils._get_latest_schema_revision = functools.cache(utils._get_latest_schema_revision)
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "database"
    folder.mkdir(exist_ok=True)
    with chdir(folder), Path("lock").open("w") as lock:  # where the artifacts of its default experiment will be
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not Path("made").exists():
            mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db").search_experiments()
            Path("made").touch()
    return folder / "mlflow.db"


@pytest.fixture
def store_uri(empty_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A fresh SQLite tracking store in the working directory of the test, which is also MLflow's own choice."""
    import mlflow

    folder = tmp_path / "store"
    folder.mkdir()
    shutil.copy(empty_database, folder / "mlflow.db")
    monkeypatch.chdir(folder)
    uri = f"sqlite:///{folder}/mlflow.db"
    mlflow.set_tracking_uri(uri)
    yield uri
    mlflow.set_tracking_uri(None)
    os.environ.pop("MLFLOW_TRACKING_URI", None)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[str]:
    """The address of a real MLflow server on its own SQLite database."""
    database = tmp_path_factory.mktemp("server") / "mlflow.db"
    shutil.copy(empty_database, database)
    with closing(sqlite3.connect(database)) as store, store:  # as in a database that the server made itself
        store.execute("update experiments set artifact_location = 'mlflow-artifacts:/0'")
    with served_store(database.parent / "store", database) as address:
        yield address


def evaltrack(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does, in a process of its own."""
    words = tuple(map(str, arguments))
    as_piped = {"EVALTRACK_RUN_OUTPUT": "table", "EVALTRACK_RESUME_OUTPUT": "table"}  # a warm process writes into files
    variables = {**as_piped, **os.environ, **(env or {})}
    if not any(name.startswith("PYTHON") and name != "PYTHONPATH" for name in env or {}):
        return warm.run(("-m", "evaltrack", *words), cwd, variables)
    command = [sys.executable, "-m", "evaltrack", *words]
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=120)
