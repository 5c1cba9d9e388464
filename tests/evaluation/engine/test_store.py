"""Parts in an object store: the rows of one process, whatever is broken off meanwhile, on a real S3 server."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.engine import checks
from evaltrack.evaluation.engine import part_journal as part_journals
from evaltrack.evaluation.engine.asking import asking_of
from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.engine.orders import Order
from evaltrack.evaluation.engine.part_journal import SentJournal, part_journal
from evaltrack.evaluation.journal import Journal, delete_journal
from evaltrack.evaluation.loop import Watch
from evaltrack.evaluation.plan import planned
from evaltrack.llm.shared_throttle import SharedThrottle
from evaltrack.records import Row
from evaltrack.system import object_store
from evaltrack.system.object_store import StoreFiles
from tests.faulty_proxy import proxy_process
from tests.s3_server import BUCKET, KEYS, NEEDS_S3, s3_server

from .in_process import InProcess, Project, question_of, timeless

pytestmark = NEEDS_S3
NAME = "0" * 32


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 server."""
    with s3_server(tmp_path_factory.mktemp("s3")) as address:
        yield address


@pytest.fixture
def store(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of a prefix of its own; key and server are in the environment."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    return f"s3://{BUCKET}/{uuid4().hex}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A folder that is the working directory; its module is imported anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return Project(tmp_path)


def folder_in(store: str) -> WorkFolder:
    """The shared folder of the run."""
    return WorkFolder.of_run(NAME, store)


def wait_until(holds: Callable[[], object]) -> None:
    """Wait for what comes soon."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def some_rows(project: Project) -> list[Row]:
    """Rows of the project."""
    rows = list(project.ask(name="1" * 32))
    project.asked()
    return rows


@pytest.mark.parametrize("trials", [1, 2])
def test_the_rows_are_those_of_one_process(project: Project, store: str, trials: int) -> None:
    """To the last bit, in the order of the set; nothing is left in the store, on this disk or of the folder default."""
    project.write([question_of(7, question="7\u2028?"), *(question_of(n) for n in range(20, 40))])
    local = timeless(project.ask(name="1" * 32, trials=trials))
    rows = project.ask(InProcess(), engine_folder=store, trials=trials)
    assert [row.model_dump_json() for row in timeless(rows)] == [row.model_dump_json() for row in local]
    assert [(row.position, row.trial) for row in rows] == sorted((row.position, row.trial) for row in rows)
    assert not (project.folder / "state" / "engine").exists()
    folder, other = folder_in(store), StoreFiles(f"{store}/{NAME}")
    assert {"parts.json", "questions.jsonl", "part-000000.json", "part-000000.parquet"} <= folder.names()
    other.write("mine.txt", b"mine")
    delete_journal(project.journal.path)
    assert folder.names() == {"mine.txt"}
    other.delete(["mine.txt"])
    assert StoreFiles(store).names() == set()


def test_a_killed_worker_costs_what_it_had_not_sent(project: Project, store: str) -> None:
    """The next one, which does not see its disk, begins with the chunks in the store."""
    project.write(40)
    path = project.folder / "mine.py"
    path.write_text(path.read_text().replace("    number", "    __import__('time').sleep(0.1)\n    number", 1))
    local = timeless(project.ask(name="1" * 32, concurrency=40))
    project.asked()
    folder = folder_in(store)
    program = "import sys; from evaltrack.evaluation.engine.part import run_part; run_part(sys.argv[1], {})"
    before: list[int] = []

    def kill(order: Order) -> None:
        if before:
            return
        with subprocess.Popen([sys.executable, "-c", program, order.model_dump_json()]) as process:
            wait_until(lambda: order.part.number in folder.begun())
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        with closing(part_journal(folder, order.part.number)) as journal:
            before.extend([journal.reuse.num_rows, len((project.folder / "asked").read_text().splitlines())])

    engine = InProcess(num_cpus=1, before=kill)
    rows = project.ask(engine, engine_folder=store, concurrency=2)
    sent, at_kill = before
    asked = project.asked()
    assert timeless(rows) == local
    assert len(set(asked)) == 40
    assert 0 < sent <= at_kill < 40
    assert len(asked) == 40 + at_kill - sent


def test_a_run_that_was_broken_off_goes_on_from_the_store(project: Project, store: str) -> None:
    """With the receipts and chunks that are there; also in one process, which then removes them."""
    local = timeless(project.ask(name="1" * 32))
    project.asked()
    engine = InProcess()
    project.stop = lambda: len(engine.orders) >= 2
    done = len(project.ask(engine, engine_folder=store))
    assert 0 < done < 20
    project.stop = lambda: False
    engine = InProcess()
    engine.before = lambda _: folder_in(store).ask_to_stop() if len(engine.orders) == 1 else None
    project.ask(engine, engine_folder=store)
    asked = project.asked()
    config = EvaluationConfig.of(judge="none", in_process=True)
    rows: list[Row] = []
    with (
        closing(Journal(project.folder / "state" / f"{NAME}.sqlite", {})) as journal,
        planned(str(project.golden), config, "python:mine:ask") as plan,
        asking_of(plan, journal) as ask,
    ):
        ask(rows.append, Watch())
    assert timeless(rows) == local
    assert len(asked + project.asked()) == 20
    assert folder_in(store).names() == set()


def test_failed_questions_are_asked_again_where_that_is_wanted(project: Project, store: str) -> None:
    """Those alone: what is laid into new parts is in the store."""
    failed = [row.question.question for row in project.ask(InProcess(), engine_folder=store) if row.failure]
    project.asked()
    project.ask(InProcess(), engine_folder=store, retry_errors=True)
    assert sorted(project.asked()) == sorted(failed) != []


def test_a_worker_sees_that_another_has_its_part(project: Project, store: str) -> None:
    """A worker that was given up, and lives, stops; what both sent counts."""
    one, *others = some_rows(project)
    folder = folder_in(store)
    first = part_journal(folder, 3)
    first.keep([one])
    first.share()
    assert folder.begun() == {3}
    with closing(part_journal(folder, 3)) as second:
        assert (first.is_taken_over, second.is_taken_over) == (True, False)
        assert second.recall(one.question, one.trial or 1) == one
        second.keep(others)
    first.close()
    with closing(part_journal(folder, 3)) as third:
        assert third.reuse.num_rows == 20


def test_rows_wait_for_a_store_that_is_out_of_reach(
    project: Project, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a while, in which nothing is lost; then the worker stops, and the error says why."""
    rows, folder = some_rows(project), folder_in(store)
    journal = part_journal(folder, 0)
    assert isinstance(journal, SentJournal)
    journal.keep(rows)
    put = StoreFiles.put
    with monkeypatch.context() as broken:
        broken.setattr(StoreFiles, "put", lambda *_: (_ for _ in ()).throw(OSError("AWS Error NETWORK_CONNECTION")))
        journal.share()
        assert journal.fault is None
        broken.setattr(part_journals, "OUT_OF_REACH_SECONDS", -1.0)
        journal.share()
        assert "takes no rows: AWS Error NETWORK_CONNECTION" in str(journal.fault)
        with pytest.raises(InconclusiveError, match="does not take 20 rows"):
            journal.share_rest()
    assert StoreFiles.put is put
    journal.close()
    with closing(part_journal(folder, 0)) as other:
        assert other.reuse.num_rows == 20


@pytest.mark.long
def test_a_store_that_fails_now_and_then(
    project: Project, server: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that it refuses, and replies that are lost, change nothing."""
    local = timeless(project.ask(name="1" * 32))
    port = int(server.rpartition(":")[2])
    with proxy_process(port, ("503", "dropped", "lost", "doubled"), 0.2, 1) as (address, faults):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        object_store._store_of.cache_clear()
        assert timeless(project.ask(InProcess(), engine_folder=store)) == local
        assert sum(faults().values()) - faults()["requests"] > 5


def test_a_request_that_fails_is_made_again(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few times; a missing object is no failure."""
    monkeypatch.setattr(object_store, "PAUSES", (0.0, 0.0))
    files, tries = StoreFiles(store), list[int]()
    opened = files._opened

    def failing() -> object:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("AWS Error SLOW_DOWN")
        return opened()

    monkeypatch.setattr(files, "_opened", failing)
    with pytest.raises(FileNotFoundError):
        files.read("none")
    assert len(tries) == 3
    monkeypatch.setattr(files, "_opened", lambda: (_ for _ in ()).throw(OSError("AWS Error ACCESS_DENIED")))
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        files.names()


def test_the_server_may_stand_in_the_uri(server: str, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has its own prefix below; what stands in the query is not shown."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    place = server.removeprefix("http://")
    folder = folder_in(f"{store}/?scheme=http&endpoint_override={place}&region=us-east-1")
    folder.make()
    folder.ask_to_stop()
    assert folder.is_to_stop
    assert (folder.files.name, str(folder)) == (
        NAME,
        f"{store}/{NAME}?scheme=***&endpoint_override=***&region=***",
    )
    folder.remove()
    assert folder.names() == set()


def test_a_bucket_that_is_not_there_is_refused(store: str) -> None:
    """The error names the setting and the bucket."""
    with pytest.raises(UsageError, match=r"`engine_folder=`: s3://no-such/x/0+ cannot be made: there is no bucket"):
        WorkFolder.of_run(NAME, "s3://no-such/x").make()


def test_a_store_out_of_reach_is_an_error_before_there_is_a_run(
    project: Project, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left of it, and no cluster was connected."""
    monkeypatch.setattr(checks, "find_spec", lambda _: object())
    config = EvaluationConfig.of(judge="none", engine="ray", engine_folder="s3://no-such/x")
    with (
        planned(str(project.golden), config, "python:mine:ask") as plan,
        closing(Journal(project.folder / "state" / f"{NAME}.sqlite", {})) as journal,
        pytest.raises(UsageError, match="there is no bucket no-such"),
        asking_of(plan, journal),
    ):
        pass
    assert not journal.path.exists()


def test_pauses_reach_other_workers_by_a_store(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon, and once; nobody waits for the store."""
    monkeypatch.setattr(object_store, "LOOK_SECONDS", 0.1)
    boards = [StoreFiles(store).board() for _ in range(2)]
    mine, other = (SharedThrottle(8, board, "pause-x.json") for board in boards)
    assert other.pause_reason is None
    mine.pushed_back(time.monotonic())
    mine.hold(60, "status 429")
    wait_until(lambda: other.pause_reason)
    assert other.pause_reason == "status 429"
    assert other.limit == 4
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        assert mine.pause_reason == "status 429"
        time.sleep(0.02)
    assert mine.limit == 4
