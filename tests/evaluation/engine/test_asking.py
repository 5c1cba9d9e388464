"""Questions asked by workers give the rows of a run in one process, whatever is broken off meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import GoldenError, InconclusiveError, TrackingError, UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.engine import asking
from evaltrack.evaluation.engine.asking import asking_of, environment_of
from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.engine.orders import Order
from evaltrack.evaluation.journal import Journal, delete_journal
from evaltrack.evaluation.loop import Watch
from evaltrack.evaluation.plan import planned
from evaltrack.llm import ServerRefusesError
from tests.openai_behaviours import unauthorised
from tests.openai_server import OpenAIServer

from .in_process import InProcess, Project, question_of, timeless

HARD: list[dict[str, Any]] = [
    question_of(7, question="7\u2028?", metadata={"a": [1, 2.5, None], "b": {"c": "\x1b"}}),
    {"id": 8, "question": "Who\r\nknows?", "expected_sources": [], "history": [{"role": "user", "content": "Hi"}]},
    question_of(9, draft=True),
    {"id": "9.0", "question": "Graded?", "expected_chunks": {"001": 3, "x": 0}, "difficulty": "hard"},
    {"id": "p", "question": "Quoted?", "expected_passages": [{"any_of": ["a b c", "b c d"]}]},
    {
        "id": "t",
        "question": "Tools?",
        "expected_answer": "x",
        "expected_tools": ["f"],
        "expected_arguments": [{"n": 1}],
    },
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A folder that is the working directory; its module is imported anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return Project(tmp_path)


def folder_of(project: Project) -> WorkFolder:
    """The shared folder of the run."""
    return WorkFolder.of_run("0" * 32, "")


@pytest.mark.parametrize("ending", ["jsonl", "json"])
@pytest.mark.parametrize(
    "settings", [{}, {"trials": 2}, {"sample": 3, "sample_seed": 1}, {"filter": "difficulty=hard"}, {"redact": "is"}]
)
def test_the_rows_are_those_of_one_process(project: Project, ending: str, settings: dict[str, Any]) -> None:
    """Ids, texts, scores, failures and trials are the same to the last bit, in the order of the set."""
    project.golden = project.folder / f"golden.{ending}"
    project.write(HARD + [question_of(number) for number in range(20, 40)])
    local = timeless(project.ask(name="1" * 32, **settings))
    alone = project.asked()
    rows = project.ask(InProcess(), **settings)
    assert timeless(rows) == local
    assert [row.model_dump_json() for row in timeless(rows)] == [row.model_dump_json() for row in local]
    assert [(row.position, row.trial) for row in rows] == sorted((row.position, row.trial) for row in rows)
    assert sorted(project.asked()) == sorted(alone)


def test_a_judge_is_asked_as_in_one_process(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts are the same, and workers share the calls in flight."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-in-a-file-0123456789")
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        settings = {"judge": "openai:gpt-4o-mini", "verdict_cache": False}
        local = timeless(project.ask(name="1" * 32, **settings))
        engine = InProcess()
        assert timeless(project.ask(engine, **settings)) == local
    assert {order.command["settings"]["concurrency"] for order in engine.orders} == {2}
    for path in Path(folder_of(project).place).iterdir():
        assert b"sk-never" not in path.read_bytes(), path


def test_a_stopped_run_holds_what_was_done_and_goes_on(project: Project) -> None:
    """No part is begun once it is to stop; what was done is handed on, and is not asked again."""
    engine = InProcess()
    project.stop = lambda: len(engine.orders) >= 2
    part = project.ask(engine)
    first = project.asked()
    assert 0 < len(part) < 20
    assert len(part) == len(first)
    project.stop = lambda: False
    rows = project.ask(InProcess())
    assert len(rows) == 20
    assert sorted(first + project.asked()) == sorted(row.question.question for row in rows)
    assert project.journal.reuse.reused == len(part)


def test_a_part_stops_between_two_questions(project: Project) -> None:
    """A worker that is to stop leaves its journal, whose rows are handed on; going on asks the rest alone."""
    folder, engine = folder_of(project), InProcess(num_cpus=1)
    engine.before = lambda _: folder.ask_to_stop()
    assert project.ask(engine) == []
    assert project.asked() == []
    assert len(project.ask(InProcess())) == len(project.asked()) == 20


def test_a_killed_worker_costs_what_was_in_flight(project: Project) -> None:
    """The part of a worker that is killed goes on from its journal."""
    path = project.folder / "mine.py"
    path.write_text(path.read_text().replace("    number", "    __import__('time').sleep(0.05)\n    number", 1))
    program = "import sys; from evaltrack.evaluation.engine.part import run_part; run_part(sys.argv[1], {})"
    killed = []

    def kill(order: Order) -> None:
        if order.part.number:  # a few questions, at the end
            return
        killed.append(order)
        with subprocess.Popen([sys.executable, "-c", program, order.model_dump_json()]) as process:
            asked = project.folder / "asked"
            while process.poll() is None and not (asked.exists() and asked.read_bytes().count(b"\n") > 7):
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL

    rows = project.ask(InProcess(num_cpus=1, before=kill))
    asked = project.asked()
    assert [row.position for row in rows] == list(range(20))
    assert len(set(asked)) == 20
    assert 20 <= len(asked) <= 20 + 4


def test_what_was_edited_is_asked_again(project: Project) -> None:
    """Other rows are used again under the places that their questions have now."""
    project.ask(InProcess())
    project.asked()
    project.write(
        [
            question_of(99),
            *(question_of(number) for number in range(1, 20) if number != 5),
            question_of(5, question="5?"),
        ]
    )
    rows = project.ask(InProcess())
    assert sorted(project.asked()) == ["5?", "What is number 99?"]
    assert [row.position for row in rows] == list(range(20))
    assert rows[-1].question.question == "5?"
    assert (project.journal.reuse.reused, project.journal.reuse.redone) == (18, 1)


def test_failed_questions_are_asked_again_where_that_is_wanted(project: Project) -> None:
    """Those alone."""
    failed = [row.question.question for row in project.ask(InProcess()) if row.failure]
    project.asked()
    assert failed
    project.ask(InProcess())
    assert project.asked() == []
    project.ask(InProcess(), retry_errors=True)
    assert sorted(project.asked()) == sorted(failed)


def test_a_run_of_workers_goes_on_in_one_process(project: Project) -> None:
    """What lies in the shared folder goes to the journal of the run, and the folder is removed."""
    engine = InProcess()
    project.stop = lambda: len(engine.orders) >= 2
    done = len(project.ask(engine))
    project.asked()
    config = EvaluationConfig.of(judge="none", in_process=True)
    rows: list[Any] = []
    journal = Journal(project.folder / "state" / f"{'0' * 32}.sqlite", {})
    with planned(str(project.golden), config, "python:mine:ask") as plan, asking_of(plan, journal) as ask:
        assert ask(rows.append, Watch()) == ()
    journal.close()
    assert len(rows) == 20
    assert len(project.asked()) == 20 - done
    assert not Path(folder_of(project).place).exists()


def test_a_shared_folder_goes_with_its_journal(project: Project) -> None:
    """Nothing is left of a run that is over; files of others stay, and so does their folder."""
    project.ask(InProcess(), engine_folder="")
    folder = folder_of(project)
    path = Path(folder.place)
    (path / "mine.txt").write_text("mine")
    delete_journal(project.journal.path)
    assert [each.name for each in path.iterdir()] == ["mine.txt"]
    assert not project.journal.path.exists()


def test_a_fault_reaches_the_driver_as_it_is(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that refuses the key ends the run with the error of a run in one process."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-in-a-file-0123456789")
    with OpenAIServer(unauthorised()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with pytest.raises(ServerRefusesError) as local:
            project.ask(name="1" * 32, judge="openai:gpt-4o-mini")
        with pytest.raises(ServerRefusesError) as there:
            project.ask(InProcess(), judge="openai:gpt-4o-mini")
    assert str(there.value) == str(local.value)


def test_a_damaged_part_is_asked_for_again(project: Project) -> None:
    """A file of rows that was changed is an error that says which; going on takes the rows from the journal."""
    folder = folder_of(project)

    class Damaging(InProcess):
        def run(self, *arguments: Any) -> Any:
            for end in super().run(*arguments):
                if end and end.part == 0:
                    folder.files.write("part-000000.parquet", b"PAR1 no more")
                yield end

    with pytest.raises(TrackingError, match=r"part-000000\.parquet: is damaged"):
        project.ask(Damaging())
    project.asked()
    assert len(project.ask(InProcess())) == 20
    assert project.asked() == []


def test_a_folder_that_cannot_be_made_is_refused(project: Project) -> None:
    """The error names the setting."""
    (project.folder / "file").write_text("")
    with pytest.raises(UsageError, match=r"`engine_folder=`: .*file/0+ cannot be made: Not a directory"):
        WorkFolder.of_run("0" * 32, str(project.folder / "file")).make()


def test_a_golden_set_that_changes_meanwhile_is_refused(project: Project) -> None:
    """Nothing is asked of it."""
    config = EvaluationConfig.of(judge="none", in_process=True)
    with planned(str(project.golden), config, "python:mine:ask") as plan:
        project.write(19)
        journal = Journal(project.folder / "state" / "x.sqlite", {})
        with pytest.raises(GoldenError, match="changed while it was read"):
            asking.ask_on(InProcess(), plan, journal, lambda _: None, Watch())
        journal.close()
    assert project.asked() == []


def test_what_cannot_be_taken_over_is_not_lost(project: Project) -> None:
    """Where the journal of the run cannot be written, the shared folder stays."""
    project.ask(InProcess())
    journal = Journal(project.folder / "state" / f"{'0' * 32}.sqlite", {})
    journal.problem = "the disk is full"
    with pytest.raises(InconclusiveError, match="cannot be taken over: the disk is full"):
        asking.gather(journal)
    journal.close()
    assert folder_of(project).receipt(0)


def test_workers_are_given_few_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of models and of evaltrack, and those that a header names."""
    for name in ("OPENAI_API_KEY", "EVALTRACK_CACHE_DIR", "MY_KEY", "OTHER_KEY"):
        monkeypatch.setenv(name, "1234567890")
    options = {"header.Authorization": "Bearer MY_KEY", "answer": "OTHER_KEY", "header.X": ""}
    config = EvaluationConfig.of(target_options=options)
    command = asking.Command("g.jsonl", "http://x", config, "/")
    given = environment_of(command)
    assert {"OPENAI_API_KEY", "EVALTRACK_CACHE_DIR", "MY_KEY"} <= given.keys()
    assert not {"OTHER_KEY", "PATH"} & given.keys()
