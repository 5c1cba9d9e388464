"""Processes of a function that nobody calls: none of them, and no socket to one, outlives its pool."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.targets.child.pool import Pool
from evaltrack.targets.child.process import Order, Process
from tests.conftest import REPO
from tests.targets.test_command import ends, written

OPENER = "evaltrack.targets.python:answering"
CALL = b'{"question": {"id": "1", "question": "q", "domain": "d"}, "k": 5}'


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Order:
    """A function whose second process takes long to import it, and whose first ends at the first call."""
    (tmp_path / "slow_function.py").write_text(
        "import os, pathlib, time\n"
        "marker = pathlib.Path(__file__).with_name('second')\n"
        "if marker.exists(): time.sleep(60)\n"
        "marker.touch()\n"
        "def answer(question): os._exit(3)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return Order("slow_function:answer", OPENER)


def test_the_socket_of_a_function_that_cannot_be_imported_is_closed() -> None:
    """Its process is gone too."""
    process = Process(Order("no_such_module:answer", OPENER))
    with pytest.raises(UsageError, match="no_such_module"):
        process.wait_until_ready("python:no_such_module:answer")
    assert process.socket.fileno() == -1
    assert process.ended.wait(5)


def test_a_process_that_is_not_ready_in_time_is_closed(slow: Order, tmp_path: Path) -> None:
    """However long it would import."""
    (tmp_path / "second").touch()
    process = Process(slow)
    with pytest.raises(UsageError, match=r"was not ready within 0\.1 s"):
        process.wait_until_ready("python:slow_function:answer", 0.1)
    assert process.socket.fileno() == -1
    assert process.ended.wait(5)


def test_a_pool_that_closes_while_a_process_is_replaced_leaves_neither(slow: Order) -> None:
    """The process that was to take the place of another is killed while it imports the function."""
    pool = Pool(slow, "python:slow_function:answer")

    async def lose_the_first_and_close() -> list[Process]:
        with pytest.raises(RuntimeError, match="exit code 3"):
            await pool.call(CALL)
        waiting = asyncio.ensure_future(pool.ready())
        while not pool._unclaimed:  # noqa: ASYNC110 - a thread starts it
            await asyncio.sleep(0.01)
        importing = list(pool._unclaimed)
        waiting.cancel()
        await pool.aclose()
        return importing

    [process] = asyncio.run(lose_the_first_and_close())
    assert process.ended.wait(5)
    assert process.socket.fileno() == -1


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no process groups")
def test_what_a_function_started_ends_with_the_parent_however_that_ends(tmp_path: Path) -> None:
    """The process of the function sees that its parent is gone, and takes along what it started."""
    (tmp_path / "starts_another.py").write_text(
        "import os, pathlib, subprocess, time\n"
        "here = pathlib.Path(__file__).parent\n"
        "def answer(question):\n"
        "    (here / 'child').write_text(f'{subprocess.Popen([\"sleep\", \"60\"]).pid}\\n')\n"
        "    (here / 'own').write_text(f'{os.getpid()}\\n')\n"
        "    time.sleep(60)\n"
    )
    (tmp_path / "parent.py").write_text(
        "import asyncio\n"
        "from evaltrack.targets.child.pool import Pool\n"
        "from evaltrack.targets.child.process import Order\n"
        f"pool = Pool(Order('starts_another:answer', '{OPENER}'), 'a function')\n"
        f"asyncio.run(pool.call({CALL!r}))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPO)])}
    with subprocess.Popen([sys.executable, tmp_path / "parent.py"], env=env, cwd=tmp_path) as parent:
        own, child = written(tmp_path / "own", 60), written(tmp_path / "child")
        parent.kill()
    assert ends(own)
    assert ends(child)
