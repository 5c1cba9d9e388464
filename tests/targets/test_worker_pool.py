"""Functions in real processes that end, hang, fill the memory or print, and what becomes of their neighbours."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from evaltrack.records import Question, Row
from evaltrack.targets import open_target
from evaltrack.targets.worker_pool import Call, Pool, Process
from tests.actors import gathered
from tests.conftest import REPO
from tests.targets.test_command import ends, written

OPENER = "evaltrack.targets.python:answering"
CALL = Call(question=Question(id="1", question="q", domain="d"), k=5)

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module, and gives its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"in_processes_{abs(hash(str(tmp_path)))}"

    def to_file(code: str) -> str:
        (tmp_path / f"{name}.py").write_text(dedent(code))
        return name

    return to_file


def rows(module: str, *, timeout: float = 30, **settings: str) -> tuple[list[Row], list[str]]:
    """Eight rows that were asked at once, the fourth question being bad, and the notes of the target."""
    texts = ["bad" if number == 3 else f"good {number}" for number in range(8)]
    asked = [Question(id=str(n), question=text, domain="d", expected_chunks=("a",)) for n, text in enumerate(texts)]
    target = open_target(f"python:{module}:ask", settings)
    return gathered(asked, target, concurrency=8, timeout=timeout), list(target.notes)


def the_failure(found: list[Row]) -> str:
    """The error of the bad question; all others were measured."""
    failed = {row.question: row.error for row in found if row.error}
    assert list(failed) == ["bad"], failed
    assert [row.scores.get("hit") for row in found if not row.error] == [1.0] * 7
    return failed["bad"]


def test_a_process_that_ends_once_costs_no_row_and_workers_share_the_questions(write: Write, tmp_path: Path) -> None:
    module = write(
        f"""
        import os, pathlib, time

        def ask(question):
            once = pathlib.Path({str(tmp_path / "once")!r})
            if question == "bad" and not once.exists():
                once.touch()
                os._exit(1)
            time.sleep(0.2)
            return {{"answer": str(os.getpid()), "sources": ["a"]}}
        """
    )
    found, notes = rows(module, workers="3")
    assert [row.error for row in found] == [None] * 8
    assert len({row.answer for row in found}) >= 2
    assert "ended 1 time: ended with exit code 1" in notes[0]


def test_one_that_fills_the_memory_costs_one_of_eight_rows(write: Write, tmp_path: Path) -> None:
    module = write(
        f"""
        import pathlib, time

        KEPT = []

        def ask(question):
            pieces, once = KEPT, pathlib.Path({str(tmp_path / "once")!r})
            if question == "bad":
                once.touch()
            while question == "bad":
                pieces.append("x" * 10_000_000)
            time.sleep(0 if once.exists() else 2)
            largest = "x" * 5_000_000
            return ["a"]
        """
    )
    found, notes = rows(module, memory="300MB")
    assert the_failure(found) == "target_error: MemoryError: "
    assert "ran out of memory, and was killed" in notes[0]


def test_no_call_is_made_in_a_process_that_is_about_to_be_killed(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    kill = Process.kill

    def kill_slowly(process: Process, why: str) -> None:
        time.sleep(0.5)
        kill(process, why)

    monkeypatch.setattr(Process, "kill", kill_slowly)
    module = write(
        """
        import time

        def ask(question):
            if question == "bad":
                raise MemoryError
            time.sleep(1 if question == "good 2" else 0)  # it is the next one that is called alone
            return ["a"]
        """
    )
    assert the_failure(rows(module)[0]) == "target_error: MemoryError: "


def test_what_cannot_be_sent_is_named(write: Write) -> None:
    module = write("def ask(question):\n    return (lambda: 1) if question == 'bad' else ['a']")
    found, notes = rows(module)
    said = the_failure(found)
    assert said.startswith("target_invalid: what the target returned")
    assert "function" in said
    assert "\n" not in said
    assert notes == []


def test_what_is_raised_keeps_its_type_message_and_traceback(write: Write) -> None:
    module = write(
        """
        class MineError(Exception):
            def __init__(self, one, two):
                super().__init__(f"{one} and {two}")
                self.lock = __import__("threading").Lock()

        def ask(question):
            if question == "bad":
                raise MineError("this", "that")
            return ["a"]
        """
    )
    found, _ = rows(module)
    assert the_failure(found) == "target_error: MineError: this and that"
    traceback = found[3].traceback
    assert traceback
    assert 'raise MineError("this", "that")' in traceback


def test_what_a_function_prints_is_no_answer(write: Write, capfd: pytest.CaptureFixture[str]) -> None:
    module = write(
        """
        import os, sys

        def ask(question):
            print("1 result {}", flush=True)
            os.write(1, b"2 raised {}\\n")
            os.system("echo 3 result")
            assert sys.stdin.read() == ""
            return ["a"]
        """
    )
    found, notes = rows(module)
    printed = capfd.readouterr()
    assert [row.scores["hit"] for row in found] == [1.0] * 8
    assert (printed.out, notes) == ("", [])
    assert [printed.err.count(text) for text in ("1 result {}", "2 raised {}", "3 result\n")] == [8] * 3


def test_a_pool_that_closes_while_a_process_is_replaced_leaves_neither(write: Write, tmp_path: Path) -> None:
    module = write(
        f"""
        import os, pathlib, time

        here = pathlib.Path({str(tmp_path)!r})
        if (here / "second").exists():
            (here / "pid").write_text(f"{{os.getpid()}}\\n")
            time.sleep(60)
        (here / "second").touch()

        def ask(question):
            os._exit(3)
        """
    )
    pool = Pool(OPENER, f"{module}:ask", "a function")

    async def lose_the_first_and_close() -> int:
        with pytest.raises(RuntimeError, match="exit code 3"):
            await pool.call(CALL)
        waiting = asyncio.ensure_future(pool.ready())
        await asyncio.sleep(0)
        pid = await asyncio.to_thread(written, tmp_path / "pid", 60)
        waiting.cancel()
        await pool.aclose()
        return pid

    assert ends(asyncio.run(lose_the_first_and_close()))


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no process groups")
@pytest.mark.parametrize(
    ("kind", "sent"),
    [("def", signal.SIGKILL), ("async def", signal.SIGTERM)],
)
def test_processes_and_what_they_started_end_with_the_parent(
    write: Write, tmp_path: Path, kind: str, sent: signal.Signals
) -> None:
    module = write(
        f"""
        import os, pathlib, subprocess, time

        here = pathlib.Path({str(tmp_path)!r})

        {kind} ask(question):
            (here / "child").write_text(f"{{subprocess.Popen(['sleep', '60']).pid}}\\n")
            (here / "own").write_text(f"{{os.getpid()}}\\n")
            time.sleep(60)
        """
    )
    (tmp_path / "parent.py").write_text(
        "import asyncio\n"
        "from evaltrack.targets.worker_pool import Call, Pool\n"
        f"pool = Pool('{OPENER}', '{module}:ask', 'a function')\n"
        f"asyncio.run(pool.call(Call.model_validate_json({CALL.model_dump_json()!r})))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPO)])}
    with subprocess.Popen([sys.executable, tmp_path / "parent.py"], env=env, cwd=tmp_path) as parent:
        own, child = written(tmp_path / "own", 60), written(tmp_path / "child")
        parent.send_signal(sent)
    assert ends(own)
    assert ends(child)
