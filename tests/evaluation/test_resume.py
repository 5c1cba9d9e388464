from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Run

from evaltrack import run_eval
from evaltrack.cli import _run
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.resume import KEPT_DAYS, journals, remove_old
from evaltrack.tracking.rows import read_table
from tests.conftest import REPO
from tests.in_process import same_signals
from tests.stores import copy_store
from tests.warm import WarmProcess

QUESTIONS, IN_FLIGHT = 16, 2
BASE = ["golden.jsonl", "-t", "python:mine:ask", "--experiment", "kept", "--concurrency", str(IN_FLIGHT)]
BASE += ["--judge", "none"]
PLAIN = [*BASE, "--traces", "off"]

MINE = """
import hashlib, os, time

def ask(question, k):
    with open("asked", "ab", buffering=0) as file:
        file.write(question.encode() + b"\\n")
    time.sleep(float(os.environ.get("TAKES", "0.01")))
    number = int(hashlib.sha256(question.encode()).hexdigest(), 16)
    if os.path.exists("broken") and number % 5 == 0:
        raise ValueError("broken")
    return {"answer": f"It is {number % 1000}.", "sources": [{"chunk_id": f"c{number % n}"} for n in (2, 3, 5, 7, 11)]}

def other(question, k):
    return ask(question, k)

def judge(question, response):
    number = int(hashlib.sha256(question.question.encode()).hexdigest(), 16)
    if os.path.exists("no judge") and number % 5 == 0:
        raise ValueError("no opinion")
    return {"overall_score": number % 100 / 100, "reasoning": "Counted."}
"""


def lines(numbers: Iterator[int] | range = range(QUESTIONS)) -> list[str]:
    return [
        json.dumps({"id": n, "question": f"What is number {n}?", "expected_chunks": [f"c{n % 5}"]}) + "\n"
        for n in numbers
    ]


@dataclass(frozen=True)
class Project:
    """A user's folder: golden set, target, MLflow store, journals, and the file in which the target counts."""

    folder: Path

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.folder}/mlflow.db"

    @property
    def client(self) -> mlflow.MlflowClient:
        return mlflow.MlflowClient(self.uri)

    @property
    def asked(self) -> Counter[str]:
        path = self.folder / "asked"
        return Counter(path.read_text().splitlines()) if path.exists() else Counter()

    @property
    def env(self) -> dict[str, str]:
        return {
            "MLFLOW_TRACKING_URI": self.uri,
            "EVALTRACK_STATE_DIR": str(self.folder / "state"),
            "PYTHONPATH": str(REPO),
        }

    def write(self, golden: list[str] | None = None) -> None:
        (self.folder / "mine.py").write_text(MINE)
        (self.folder / "golden.jsonl").write_text("".join(golden or lines()))

    def runs(self) -> list[Run]:
        return list(self.client.search_runs([each.experiment_id for each in self.client.search_experiments()]))

    def run(self) -> Run:
        (run,) = self.runs()
        return run

    def metrics(self, run_id: str) -> dict[str, float]:
        summary = json.loads(Path(self.client.download_artifacts(run_id, "summary.json")).read_text())
        counts = {f"n/{name}": number for name, number in summary["counts"].items()}
        return {**self.client.get_run(run_id).data.metrics, **summary["metrics"], **summary["totals"], **counts}

    def rows(self, run_id: str) -> list[dict[str, Any]]:
        return list(read_table(Path(self.client.download_artifacts(run_id, "per_question.parquet"))))

    def table(self, run_id: str) -> list[str]:
        content = json.loads(Path(self.client.download_artifacts(run_id, "per_question.json")).read_text())
        return [str(line[content["columns"].index("id")]) for line in content["data"]]

    def traced(self, run_id: str) -> list[str]:
        experiment = self.client.get_run(run_id).info.experiment_id
        traces = self.client.search_traces(
            locations=[experiment], filter_string=f"metadata.`mlflow.sourceRun` = '{run_id}'", max_results=500
        )
        return [trace.info.client_request_id or "" for trace in traces]

    def journals(self) -> list[Path]:
        return list((self.folder / "state").glob("*.sqlite"))

    def sql(self, path: Path, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(statement, values)

    @contextmanager
    def started(self, *arguments: str, takes: float = 0.05) -> Iterator[WarmProcess]:
        with WarmProcess(
            ("-m", "evaltrack", *arguments), self.folder, {**os.environ, **self.env, "TAKES": str(takes)}
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait_for(self, count: int, process: WarmProcess) -> None:
        deadline = time.monotonic() + 60
        while self.asked.total() < count:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.005)


def complaints(err: str) -> list[str]:
    usual = (
        r"[a-z][a-z ]+: [\d,]+/[\d,]+.*|MLflow run (\w{32})(; to resume after an interruption: evaltrack resume \1)?"
    )
    return [line for line in err.splitlines() if not re.fullmatch(usual, line)]


def killed_in(folder: Path, empty_database: Path, *arguments: str, after: int = 8) -> Project:
    shutil.copy(empty_database, folder / "mlflow.db")
    project = Project(folder)
    project.write()
    with project.started("run", *BASE, *arguments, takes=0.15) as process:
        project.wait_for(after, process)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert project.asked.total() < QUESTIONS
    return project


@pytest.fixture(scope="module")
def killed(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return killed_in(tmp_path_factory.mktemp("killed"), empty_database)


def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    for name, value in project.env.items():
        if name != "PYTHONPATH":
            monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(project.folder))
    sys.modules.pop("mine", None)


@pytest.fixture
def broken_off(killed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    copy = Project(tmp_path / "project")
    copy_store(killed.folder, copy.folder)
    for path in copy.journals():
        copy.sql(path, "update command set text = replace(text, ?, ?)", str(killed.folder), str(copy.folder))
    here(copy, monkeypatch)
    return copy


@pytest.fixture
def fresh(empty_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path / "project")
    project.folder.mkdir()
    shutil.copy(empty_database, project.folder / "mlflow.db")
    project.write()
    here(project, monkeypatch)
    return project


@pytest.fixture(scope="module")
def reference(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    project = Project(tmp_path_factory.mktemp("reference"))
    shutil.copy(empty_database, project.folder / "mlflow.db")
    project.write()
    with pytest.MonkeyPatch.context() as patch:
        here(project, patch)
        result = run_eval("golden.jsonl", target="python:mine:ask", judge="none", experiment="kept")
    assert result.totals["num_errors"] == 0
    return project.metrics(result.run_id)


CLI = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Iterator[CLI]:
    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = _run(list(arguments))
        out, err = capsys.readouterr()
        return code, " ".join(out.split()), err

    with same_signals():
        yield call


def check_whole(project: Project, run_id: str, metrics: dict[str, float]) -> None:
    (run,) = project.runs()
    assert (run.info.run_id, run.info.status) == (run_id, "FINISHED")
    assert project.metrics(run_id) == metrics
    ids = [str(number) for number in range(QUESTIONS)]
    assert [row["id"] for row in project.rows(run_id)] == ids
    assert sorted(project.traced(run_id), key=int) == ids
    assert project.journals() == []
    report = Path(project.client.download_artifacts(run_id, "report.html")).read_text()
    assert ("broken" in report, f"of {QUESTIONS} questions passed" in report) == (False, True)


@pytest.mark.parametrize("way", ["resume RUN", "resume RUN by its tag", "run --resume RUN", "API auto"])
def test_it_goes_on(way: str, broken_off: Project, cli: CLI, reference: dict[str, float]) -> None:
    """Each way: the same run, the same metrics to the last bit, and nothing asked twice but what was in flight."""
    run_id, before = broken_off.run().info.run_id, broken_off.asked
    if way == "resume RUN by its tag":
        (path,) = broken_off.journals()
        broken_off.sql(path, "update command set text = replace(text, 'run_id', 'nobody')")
    if way == "API auto":
        settings = {"judge": "none", "experiment": "kept", "tracking_uri": broken_off.uri}
        result = run_eval("golden.jsonl", target="python:mine:ask", resume="auto", **settings)
        assert (result.run_id, result.success) == (run_id, True)
        said = " ".join(result.notes)
    else:
        code, said, err = cli(*(("run", *BASE, "--resume") if way == "run --resume RUN" else ("resume",)), run_id)
        assert (code, complaints(err)) == (0, [])
    check_whole(broken_off, run_id, reference)
    twice = [question for question, times in broken_off.asked.items() if times > 1]
    reused = before.total() - len(twice)
    assert len(twice) <= IN_FLIGHT
    assert max(broken_off.asked.values()) <= 2
    assert f"resumed: {reused} of {reused} stored rows kept" in said
    code, _, err = cli("resume", run_id)
    assert (code, f"run {run_id} cannot be resumed: it is finished" in err) == (2, True)


def test_a_run_that_was_only_just_made(broken_off: Project, cli: CLI, reference: dict[str, float]) -> None:
    run_id, params = broken_off.run().info.run_id, broken_off.run().data.params
    (path,) = broken_off.journals()
    broken_off.sql(path, "delete from rows")
    broken_off.sql(path, "update command set text = replace(text, 'run_id', 'nobody')")
    broken_off.sql(broken_off.folder / "mlflow.db", "delete from params")
    broken_off.sql(broken_off.folder / "mlflow.db", "delete from tags where key != 'evaltrack.journal'")
    command = broken_off.folder / "state" / "commands" / f"{run_id}.json"
    command.unlink()
    assert params
    assert cli("run", *BASE, "--resume", "auto")[0] == 0
    check_whole(broken_off, run_id, reference)
    run = broken_off.run()
    assert run.data.params == params | {"model": "not stated"}  # which is known at the end
    assert run.data.tags["evaltrack.golden"] == "golden"
    assert json.loads(command.read_text())["golden"]


def test_trials_are_kept_one_by_one(
    empty_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CLI, reference: dict[str, float]
) -> None:
    project = killed_in(tmp_path, empty_database, "--trials", "3", after=11)
    here(project, monkeypatch)
    run_id = project.run().info.run_id
    assert cli("resume", run_id)[0] == 0
    found = project.metrics(run_id)
    for name in ("recall_at_k", "mrr", "pass_rate", "num_questions"):
        assert found[name] == reference[name], name
    assert (found["num_errors"], found["n/pass_at_n"]) == (0, QUESTIONS)
    assert project.run().info.status == "FINISHED"
    assert 3 * QUESTIONS <= project.asked.total() <= 3 * QUESTIONS + IN_FLIGHT
    trials = list(read_table(Path(project.client.download_artifacts(run_id, "trials.parquet"))))
    assert len(trials) == 3 * QUESTIONS
    assert sorted(project.traced(run_id), key=int) == [str(number) for number in range(QUESTIONS)]


def test_without_resume_it_is_pointed_out(broken_off: Project, cli: CLI) -> None:
    old, before = broken_off.run().info.run_id, broken_off.asked.total()
    code, out, _ = cli("run", *PLAIN)
    assert code == 0
    assert f"run {old} of the same command was interrupted; --resume auto resumes it" in out
    assert broken_off.asked.total() == before + QUESTIONS
    assert sorted(run.info.status for run in broken_off.runs()) == ["FINISHED", "RUNNING"]
    assert len(broken_off.journals()) == 1


def test_another_evaluation_is_refused(broken_off: Project, cli: CLI) -> None:
    run_id, before = broken_off.run().info.run_id, broken_off.asked.total()
    changed = ["-k", "3", "-t", "python:mine:other", "--judge", "mine:judge", "--pass-threshold", "0.5"]
    changed += ["--set", "alpha=1", "--trials", "2"]
    code, out, err = cli("run", "golden.jsonl", *changed, "--experiment", "kept", "--resume", run_id)
    assert (code, out) == (2, "")
    assert err.startswith(f"Error: run {run_id} is a different evaluation: ")
    assert err.endswith(". Start a new run\n")
    for difference in (
        "k is 5, not 3",
        "target is 'python:mine:ask', not 'python:mine:other'",
        "judge is 'none', not 'mine:judge'",
        "pass_threshold is 0.75, not 0.5",
        "weights is 'alpha=2,beta=0.5,gamma=1.5', not 'alpha=1,beta=0.5,gamma=1.5'",
        "trials is 1, not 2",
    ):
        assert difference in err
    assert broken_off.asked.total() == before
    assert broken_off.run().info.status == "RUNNING"


@pytest.mark.parametrize(
    ("changed", "ends", "resumes"),
    [
        ("-k 3", 0, False),
        ("--target-option a=b", 2, False),
        ("--concurrency 3 --timeout 9 --traces off --require mrr>0 --set verdict_cache=false", 0, True),
    ],
)
def test_auto_takes_a_run_whose_settings_of_rows_are_the_same(
    changed: str, ends: int, resumes: bool, broken_off: Project, cli: CLI
) -> None:
    code, out, _ = cli("run", *BASE, *changed.split(), "--resume", "auto")
    assert (code, "resumed: " in out, "was interrupted" in out) == (ends, resumes, False)
    oldest = broken_off.client.get_run(broken_off.runs()[-1].info.run_id)
    assert oldest.info.status == ("FINISHED" if resumes else "RUNNING")


def test_edited_added_and_removed_lines(broken_off: Project, cli: CLI) -> None:
    run_id = broken_off.run().info.run_id
    (path,) = broken_off.journals()
    with closing(sqlite3.connect(path)) as database:
        kept = {int(each[0]) for each in database.execute("select id from rows")}
    edited, removed = sorted(kept)[:2], sorted(kept)[2:5]
    golden = [line for number, line in enumerate(lines()) if number not in removed]
    golden = [line.replace("What is", "Which is") if json.loads(line)["id"] in edited else line for line in golden]
    broken_off.write([*golden, *lines(range(100, 104))])
    code, out, _ = cli("resume", run_id)
    assert code == 0
    assert (
        f"resumed: {len(kept) - 5} of {len(kept)} stored rows kept, "
        "5 dropped because their question was edited or is gone"
    ) in out
    rows = broken_off.rows(run_id)
    assert [int(row["id"]) for row in rows] == [
        *(number for number in range(QUESTIONS) if number not in removed),
        *range(100, 104),
    ]
    assert all(row["question"].startswith("Which") == (int(row["id"]) in edited) for row in rows)
    asked = broken_off.asked
    assert all(asked[f"Which is number {number}?"] == 1 for number in edited)
    assert sum(asked[f"What is number {number}?"] for number in kept) == len(kept)


def test_what_cannot_be_resumed_says_what_to_do(broken_off: Project, cli: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    named = broken_off.client.create_run("0", run_name="auto").info.run_id
    assert cli("resume", "auto")[2].startswith(
        f"Error: run {named} cannot be resumed: it ran on another machine (no journal in "
    )
    broken_off.client.delete_run(named)
    run_id, elsewhere = broken_off.run().info.run_id, broken_off.folder / "elsewhere"
    elsewhere.mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(elsewhere)
        said = f"Error: the run was started in {broken_off.folder}; change to that folder first\n"
        assert cli("resume", run_id)[::2] == (2, said)
    monkeypatch.setenv("MLFLOW_RUN_ID", run_id)
    code, _, err = cli("run", "golden.jsonl", "-t", "python:mine:ask", "--resume", "auto")
    assert (code, "`mlflow run` has opened a new run; resume with: evaltrack resume RUN" in err) == (2, True)


@pytest.mark.parametrize("tag", [None, "", "../../etc/passwd", "0" * 32, "/etc/passwd", "'"])
def test_a_run_of_which_nothing_is_kept(tag: str | None, broken_off: Project, cli: CLI) -> None:
    run_id = broken_off.client.create_run("0", tags={} if tag is None else {"evaltrack.journal": tag}).info.run_id
    code, _, err = cli("resume", run_id)
    state = broken_off.folder / "state"
    said = f"Error: run {run_id} cannot be resumed: it ran on another machine (no journal in {state})\n"
    assert (code, err) == (2, said)


def test_a_run_that_another_process_is_at(broken_off: Project, cli: CLI) -> None:
    run_id = broken_off.run().info.run_id
    (path,) = broken_off.journals()
    with closing(Journal(path, {})):
        code, _, err = cli("resume", run_id)
        assert (code, err) == (2, f"Error: {path}: another process is evaluating this run; wait until it ends\n")
        code, out, _ = cli("run", *PLAIN, "--resume", "auto")
    assert (code, "was interrupted" in out, len(broken_off.runs())) == (0, False, 2)


def test_a_damaged_journal_is_named(broken_off: Project, cli: CLI) -> None:
    run_id = broken_off.run().info.run_id
    (path,) = broken_off.journals()
    path.write_bytes(b"This is no journal.\n" * 200)
    said = f"{path}: the journal cannot be used: file is not a database; fix this, or remove it and evaluate again"
    code, _, err = cli("resume", run_id)
    assert (code, err) == (2, f"Error: {said}\n")
    settings = {"target": "python:mine:ask", "judge": "none", "traces": "off"}
    result = run_eval("golden.jsonl", resume="auto", tracking_uri=broken_off.uri, **settings)
    assert result.run_id != run_id


def test_journals_of_other_versions(broken_off: Project, cli: CLI) -> None:
    run_id = broken_off.run().info.run_id
    (path,) = broken_off.journals()
    kept: list[dict[str, Any]] = [{}, {"command": 7}, {"command": {}, "signature": [], "store": 1}]
    for number, each in enumerate(kept):
        broken_off.sql(path, "update command set text = ?", json.dumps({"run_id": run_id, **each}))
        for command in (["resume", run_id], ["run", *BASE, "--resume", run_id]):
            code, _, err = cli(*command)
            assert code == 2
            assert "was started by another version of evaltrack" in err
        same_experiment = {"run_id": run_id, "experiment": "kept", **each}
        Journal(path.with_name(f"{number}" * 32 + ".sqlite"), same_experiment).close()
    code, out, _ = cli("run", *PLAIN, "--resume", "auto")
    assert code == 0
    assert "resumed" not in out
    assert len(broken_off.journals()) == 1 + len(kept)


def test_the_newest_is_taken(broken_off: Project) -> None:
    (path,) = broken_off.journals()
    other = path.with_name("f" * 32 + ".sqlite")
    Journal(other, {"other": 1}).close()
    os.utime(other, (time.time() - 100,) * 2)
    os.utime(path, (time.time() - 200,) * 2)
    wal = path.with_name(f"{path.name}-wal")
    wal.write_bytes(b"rows")
    os.utime(wal, (time.time() - 50,) * 2)
    assert [found for found, _ in journals()] == [path, other]
    os.utime(wal, (time.time() - 150,) * 2)
    assert [found for found, _ in journals()] == [other, path]


def test_old_journals_are_removed_when_a_new_one_is_begun(fresh: Project, cli: CLI) -> None:
    state = fresh.folder / "state"
    made = {name: state / f"{name * 32}.sqlite" for name in "abc"}
    for path in made.values():
        Journal(path, {"command": "c"}).close()
    made["c"].write_bytes(b"This is no journal.\n" * 200)
    made["a"].with_name(made["a"].name + "-shm").write_text("")
    (state / "notes.sqlite").write_text("not ours")
    for path in (*state.iterdir(), state / "notes.sqlite"):
        os.utime(path, (time.time() - (KEPT_DAYS + 0.01) * 86_400,) * 2)
    os.utime(made["b"], (time.time() - (KEPT_DAYS - 0.01) * 86_400,) * 2)
    remove_old()
    left = {path.name for path in state.iterdir() if "-" not in path.name}
    assert left == {made["b"].name, "notes.sqlite"}
    assert cli("run", *PLAIN)[0] == 0
    assert set(fresh.journals()) == {made["b"], state / "notes.sqlite"}


def test_errors_are_asked_again_when_that_is_wanted(fresh: Project, cli: CLI, reference: dict[str, float]) -> None:
    (fresh.folder / "broken").touch()
    assert cli("run", *BASE)[0] == 0
    run = fresh.run()
    run_id, failed = run.info.run_id, int(run.data.metrics["num_errors"])
    assert (run.info.status, fresh.asked.total()) == ("FINISHED", QUESTIONS)
    assert 2 <= failed < QUESTIONS
    code, _, err = cli("resume", run_id)
    assert (code, err) == (
        2,
        f"Error: run {run_id} is finished; rerun its failed questions with --retry-errors\n",
    )
    assert cli("run", *BASE, "--resume", "auto", "--traces", "off")[0] == 0
    assert len(fresh.runs()) == 2, "auto takes one that is not finished"
    fresh.client.delete_run(next(each.info.run_id for each in fresh.runs() if each.info.run_id != run_id))
    before = fresh.asked.total()

    code, out, err = cli("resume", run_id, "--retry-errors")
    assert code == 0
    assert f"Warning: {failed} of {QUESTIONS} questions failed and are left out of the means" in err
    assert fresh.asked.total() == before + failed
    (fresh.folder / "broken").unlink()
    for path in fresh.journals():
        if path.stem != run.data.tags["evaltrack.journal"]:
            path.unlink()
    code, out, _ = cli("resume", run_id, "--retry-errors")
    assert code == 0
    kept = f"resumed: {QUESTIONS - failed} of {QUESTIONS} stored rows kept"
    assert f"{kept}, {failed} rerun because they had failed" in out
    assert fresh.asked.total() == before + 2 * failed
    check_whole(fresh, run_id, reference)


def test_errors_of_a_judge_are_gone_after_the_retry(fresh: Project, cli: CLI) -> None:
    base = [*BASE[:-2], "--judge", "mine:judge", "--traces", "off"]
    (fresh.folder / "no judge").touch()
    assert cli("run", *base)[0] == 0
    run_id = fresh.run().info.run_id
    assert fresh.metrics(run_id)["judge_errors"] > 0
    (fresh.folder / "no judge").unlink()
    assert cli("resume", run_id, "--retry-errors")[0] == 0
    found = fresh.metrics(run_id)
    assert (found["num_errors"], found["judge_errors"], found["n/judge_score"]) == (0, 0, QUESTIONS)


@pytest.mark.parametrize("change", ["", "# mended\n"])
def test_a_function_that_was_edited_is_said_to_be_another(broken_off: Project, cli: CLI, change: str) -> None:
    run_id = broken_off.run().info.run_id
    (broken_off.folder / "mine.py").write_text(MINE + change)
    code, out, err = cli("resume", run_id)
    words = "the code has changed since the run began; finished rows are kept, so evaluate again"
    assert (code, words in out, words in err) == (0, bool(change), bool(change))


def corpus_of(run: Run) -> str:
    return str(json.loads(run.data.tags["evaltrack.system"])["states"]["corpus"])


def test_a_run_of_two_states_of_the_pages_holds_both(fresh: Project, cli: CLI) -> None:
    pages = fresh.folder / "pages"
    pages.mkdir()
    (pages / "a.md").write_text("# Numbers\n\nAll about number 1.\n")
    base = ["golden.jsonl", "-t", "bm25:pages", "--experiment", "kept", "--traces", "off", "--judge", "mine:judge"]
    (fresh.folder / "no judge").touch()  # so that there is something to ask again
    assert cli("run", *base)[0] == 0
    run = fresh.run()
    (pages / "a.md").write_text("# Numbers\n\nAll about number 1, and 2.\n")
    words = "the corpus has changed since the run began; finished rows are kept, so"
    assert words in cli("resume", run.info.run_id, "--retry-errors")[1]
    was, now = corpus_of(run), corpus_of(fresh.run())
    assert now.startswith(f"{was} → 1 page, 1 chunk, ")
    assert words not in cli("resume", run.info.run_id, "--retry-errors")[1]
    assert corpus_of(fresh.run()) == now


@pytest.mark.parametrize(
    ("sign", "again"),
    [(signal.SIGINT, None), (signal.SIGTERM, None), (signal.SIGUSR1, None), (signal.SIGINT, 0.1), (signal.SIGINT, 0.7)],
)
def test_a_stop_finishes_what_is_in_flight_and_its_results_give_way(
    fresh: Project, cli: CLI, reference: dict[str, float], sign: signal.Signals, again: float | None
) -> None:
    """Rows in flight are logged, also where the signal comes again so soon; the hint says how to resume."""
    with fresh.started("run", *BASE, takes=0.2 if again is None else 1) as process:
        fresh.wait_for(8, process)
        process.send_signal(sign)
        if again is not None:
            time.sleep(again)
            process.send_signal(sign)
        out, err = process.communicate(timeout=60)
    run_id, asked = fresh.run().info.run_id, fresh.asked
    assert (process.returncode, out, fresh.run().info.status) == (130, "", "KILLED")
    assert "Stopping: finishing questions in flight; Ctrl-C again stops now" in err
    assert err.endswith(f"\nInterrupted: stopped; no finished row is lost; to resume: evaltrack resume {run_id}\n")
    assert "Traceback" not in err
    rows = fresh.rows(run_id)
    assert {row["question"] for row in rows} == set(asked)
    assert 8 <= len(asked) <= 8 + IN_FLIGHT
    assert all(row["error"] is None for row in rows)
    assert sorted(fresh.table(run_id), key=int) == sorted((row["id"] for row in rows), key=int)
    assert cli("resume", run_id)[0] == 0
    assert set(fresh.asked.values()) == {1}
    check_whole(fresh, run_id, reference)
    assert fresh.table(run_id) == [str(number) for number in range(QUESTIONS)]


HANGING = (
    MINE.replace("time.sleep(", "time.sleep(40 if place(question) > 9 else ")
    + "\ndef place(question):\n    return int(question.strip('?').split()[-1])\n"
)


@pytest.mark.parametrize("pauses", [[2.2], [0.3, 0.3]], ids=["a second", "a third"])
def test_a_second_stop_or_a_third_soon_after_stops_now(
    fresh: Project, cli: CLI, reference: dict[str, float], pauses: list[float]
) -> None:
    """Ctrl-C is doubled by `mlflow run`, so that a second one right away may be the first; a third one never is."""
    (fresh.folder / "mine.py").write_text(HANGING)
    with fresh.started("run", *BASE) as process:
        fresh.wait_for(10 + IN_FLIGHT, process)
        process.send_signal(signal.SIGINT)
        for pause in pauses:
            time.sleep(pause)
            assert process.poll() is None
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    run_id = fresh.run().info.run_id
    assert time.monotonic() - start < 25
    assert process.returncode == 130
    assert f"no finished row is lost; to resume: evaltrack resume {run_id}" in err
    assert "Traceback" not in err
    assert fresh.run().info.status == "KILLED"
    assert [row["id"] for row in fresh.rows(run_id)] == [str(number) for number in range(10)]
    fresh.write()
    assert cli("resume", run_id)[0] == 0
    check_whole(fresh, run_id, reference)


def test_a_comparison_does_not_pass_over_a_newer_run_that_was_killed(fresh: Project, cli: CLI) -> None:
    runs = [run_eval("golden.jsonl", target="python:mine:ask", judge="none", experiment="kept") for _ in range(2)]
    assert cli("baseline", "set", runs[0].run_id)[0] == 0
    before = fresh.asked.total()
    with fresh.started("run", *BASE, takes=2) as process:
        fresh.wait_for(before + 8, process)
        assert cli("compare", "--no-log", "--experiment", "kept")[0] == 0
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    code, _, err = cli("compare", "--no-log", "--experiment", "kept")
    (killed,) = (run.info.run_id for run in fresh.runs() if run.info.status == "RUNNING")
    assert code == 3
    assert f"the newest run {killed} (golden python:mine:ask k=5) was killed; resume it (evaltrack resume" in err
    assert cli("compare", runs[1].run_id, "--no-log")[0] == 0
    assert cli("resume", killed)[0] == 0
    assert cli("compare", "--no-log", "--experiment", "kept")[0] == 0
