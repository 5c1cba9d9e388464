"""Functions of a user that end, alter, patch or hold up what they run in: the evaluation goes on, and says so."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.judges import Models, open_judge
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import PlainTarget, Question, Response, Row, Target
from evaltrack.targets import open_target
from tests.actors import gathered
from tests.files import data, put
from tests.targets.test_command import ends
from tests.targets.test_worker_pool import Write, write  # noqa: F401 - a fixture

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Loops and tasks that a function left behind in this process become garbage when its thread ends, in a later test."""

TABLES = data("attacks.json")

GOOD = """
import asyncio, builtins, ctypes, gc, json, os, pathlib, resource, signal, stat, subprocess, sys, threading, time

def good(question):
    return {"answer": question, "sources": ["a"]}
"""


@pytest.fixture
def written(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:  # noqa: F811
    """Writes a module with the given code, and returns its name."""
    monkeypatch.chdir(tmp_path)
    return lambda code: write(GOOD + dedent(code))


@pytest.fixture
def bad(written: Write) -> Callable[..., str]:
    """Makes a target whose function does a deed on the question `bad`, and returns its name."""

    def target(deed: str, kind: str = "def") -> str:
        lines = indent(dedent(deed).strip(), " " * 8)
        module = written(f"{kind} ask(question):\n    if question == 'bad':\n{lines}\n    return good(question)\n")
        return f"python:{module}:ask"

    return target


def questions(*texts: str) -> list[Question]:
    more = {"domain": "d", "expected_chunks": ("a",), "expected_answer": "secret"}
    return [Question(id=str(n), question=text, **more) for n, text in enumerate(texts)]


def several(count: int) -> list[Question]:
    """As many questions, of which the second is bad."""
    return questions(*("bad" if number == 1 else f"good {number}" for number in range(count)))


def rows(target: Target, asked: list[Question], *, concurrency: int = 1, timeout: float = 20, **more: Any) -> list[Row]:
    return gathered(asked, target, concurrency=concurrency, timeout=timeout, **more)


def failures(found: list[Row]) -> list[str | None]:
    return [row.error for row in found]


@pytest.mark.parametrize(("kind", "end", "how"), TABLES["ends"])
def test_a_process_that_ends_fails_the_question_in_it(kind: str, end: str, how: str, bad: Callable[..., str]) -> None:
    name = bad(end, kind)
    target = open_target(name)
    found = rows(target, several(4))
    first, said, *others = failures(found)
    assert (first, others) == (None, [None, None])
    assert (said or "").startswith(f"target_error: its process {how}")
    assert [row.scores.get("hit") for row in found] == [1.0, None, 1.0, 1.0]
    assert target.notes[0].startswith(f"the process of python target `{name[7:]}` ended 2 times: {how}")


@pytest.mark.parametrize("deed", TABLES["deeds"])
def test_what_a_function_does_to_its_process_stays_there(deed: str, bad: Callable[..., str]) -> None:
    if deed == "os.setuid(65534)" and os.geteuid() != 0:
        pytest.skip("only root may change its user")
    before = (Path.cwd(), sys.getrecursionlimit(), json.loads, time.time, os.geteuid())
    found = rows(open_target(bad(deed, "async def")), several(4), timeout=2)
    assert [row.id for row in found] == ["0", "1", "2", "3"]
    assert found[0].scores["hit"] == 1.0
    assert all(row.error or row.scores["hit"] == 1.0 for row in found)
    assert before == (Path.cwd(), sys.getrecursionlimit(), json.loads, time.time, os.geteuid())


@pytest.mark.parametrize("in_process", ["true", "false"])
def test_a_function_cannot_alter_what_is_expected(written: Write, in_process: str) -> None:
    module = written(
        """
        from evaltrack.records import Question

        def ask(question: Question):
            question.__dict__["expected_chunks"] = ("mine",)
            question.metadata["x"] = "mine"
            return {"answer": question.expected_answer, "sources": ["mine"]}
        """
    )
    (row,) = rows(open_target(f"python:{module}:ask", {"in_process": in_process}), several(1))
    assert (row.scores["recall_at_k"], row.expected) == (0.0, ("a",))


SWALLOW = """
while True:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        pass
"""


def test_a_call_that_swallows_its_cancellation_holds_up_nobody(bad: Callable[..., str]) -> None:
    start = time.monotonic()
    found = rows(open_target(bad(SWALLOW, "async def")), several(3), timeout=0.5)
    assert failures(found) == [None, "target_timeout: no response within 0.5 s", None]
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("deed", TABLES["deeds_in_process"])
def test_in_this_process_a_function_has_a_loop_of_its_own(deed: str, bad: Callable[..., str]) -> None:
    found = rows(open_target(bad(deed, "async def"), {"in_process": "true"}), several(3), timeout=1)
    assert [row.id for row in found] == ["0", "1", "2"]
    assert failures(found)[0] is None
    gc.collect()


def test_an_event_loop_that_is_held_up_is_ended(bad: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltrack.targets.worker_pool.UNHEARD_SECONDS", 0.2)
    name = bad("time.sleep(600)", "async def")
    target = open_target(name)
    said = failures(rows(target, several(12), timeout=0.5))
    assert (said[0], said[1], said[-1]) == (None, "target_timeout: no response within 0.5 s", None)
    ended = f"the process of python target `{name[7:]}` ended 1 time: did not react, and was killed (1x)"
    assert list(target.notes) == [ended]


GARBAGE = """
for number in range(3, 64):
    try:
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            os.write(number, {})
    except OSError:
        pass
"""


@pytest.mark.parametrize("garbage", TABLES["garbage"])
def test_garbage_among_the_answers_ends_no_evaluation(garbage: str, bad: Callable[..., str]) -> None:
    found = rows(open_target(bad(GARBAGE.format(garbage))), several(4), timeout=5)
    assert [row.id for row in found] == ["0", "1", "2", "3"]
    assert (failures(found)[0], failures(found)[3]) == (None, None)


def test_after_many_ends_in_vain_none_is_started(written: Write) -> None:
    module = written("def ask(question):\n    os._exit(5)")
    found = rows(open_target(f"python:{module}:ask"), several(12))
    said = [text or "" for text in failures(found)]
    assert all("its process ended with exit code 5" in text for text in said)
    assert said[-1].endswith("its process ended with exit code 5, 20 times in a row without an answer")


def test_processes_that_it_leaves_behind_are_ended(written: Write, tmp_path: Path) -> None:
    module = written(
        """
        def ask(question):
            child = subprocess.Popen(["sleep", "600"])
            pathlib.Path(f"{question}.pid").write_text(str(child.pid))
            if question == "bad":
                os._exit(1)
            return good(question)
        """
    )
    rows(open_target(f"python:{module}:ask"), several(3))
    for text in ("good 0", "bad", "good 2"):
        assert ends(int((tmp_path / f"{text}.pid").read_text()), 1)


def test_a_long_answer_costs_others_no_time() -> None:
    """Work on it would hold up the event loop, and with it the deadlines of other questions."""
    threads: list[str] = []

    class Noting(Redactor):
        def response(self, response: Response) -> Response:
            threads.append(threading.current_thread().name)
            return super().response(response)

    def count(texts: Sequence[str], response: Response) -> None:
        threads.append(threading.current_thread().name)

    async def long(question: Question, k: int, /) -> Response:
        return Response(answer="word " * 200_000, sources=())

    (row,) = rows(PlainTarget(long), several(1), redactor=Noting(()), count=count)
    assert row.error is None
    assert threads == ["evaltrack-target"] * 2


@pytest.mark.parametrize(("code", "message"), TABLES["modules_that_end"])
def test_a_module_that_ends_the_process_is_found_before_anything_runs(code: str, message: str, written: Write) -> None:
    module = written(code)
    with pytest.raises(UsageError) as caught:
        open_target(f"python:{module}:ask")
    assert message in str(caught.value)
    assert str(caught.value).startswith("python target")


def test_a_judge_that_ends_its_process_fails_its_question(written: Write) -> None:
    module = written(
        """
        def judge(question, response):
            if question.question == "bad":
                os._exit(0)
            return {"overall_score": 1.0, "reasoning": "good"}
        """
    )
    judge = open_judge(f"{module}:judge", models=Models(1), cache=None)
    found = rows(open_target(f"python:{module}:good"), several(3), judges=[judge])
    why = "judge_error: its process ended with exit code 0 (called twice, the second time alone)"
    assert failures(found) == [None, why, None]
    assert [len(row.verdicts) for row in found] == [1, 0, 1]


def test_a_run_whose_function_exits_is_finished_and_counts_the_error(
    bad: Callable[..., str], tmp_path: Path, store_uri: str
) -> None:
    asked = [each.model_dump(mode="json", exclude={"domain"}, exclude_none=True) for each in several(3)]
    golden = put(tmp_path / "golden.jsonl", asked)
    options: dict[str, Any] = {"judge": "none", "tracking_uri": store_uri, "traces": "off"}
    result = run_eval(golden, target=bad("os._exit(0)"), **options, target_options={"workers": 2, "memory": "2GB"})
    run = mlflow.MlflowClient(store_uri).get_run(result.run_id)
    assert (run.info.status, run.data.params["target.workers"], run.data.params["target.memory"]) == (
        "FINISHED",
        "2",
        "2GB",
    )
    assert run.data.metrics["num_errors"] >= 1
    assert any("ended 2 times: ended with exit code 0 (2x)" in note for note in result.notes)
