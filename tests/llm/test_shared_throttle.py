"""Pauses that a server asks of one worker hold for all that share a folder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltrack.llm.shared_throttle import SharedThrottle, open_throttle, share_pauses
from evaltrack.llm.throttle import Throttle
from evaltrack.system.shared_files import FolderFiles


@pytest.fixture
def pair(tmp_path: Path) -> tuple[SharedThrottle, SharedThrottle]:
    """The throttles of two workers."""
    return SharedThrottle(8, FolderFiles(tmp_path), "pause.json"), SharedThrottle(
        8, FolderFiles(tmp_path), "pause.json"
    )


@pytest.fixture
def _alone() -> Iterator[None]:
    yield
    share_pauses(None)


def test_a_pause_holds_for_the_other_worker(pair: tuple[SharedThrottle, SharedThrottle]) -> None:
    """With its reason; calls wait until it is over, and both have halved."""
    mine, other = pair

    async def work() -> float:
        mine.pushed_back(time.monotonic())
        mine.hold(0.3, "status 429")
        assert other.pause_reason == "status 429"
        started = time.monotonic()
        await other.enter()
        return time.monotonic() - started

    assert 0.15 <= asyncio.run(work()) < 3
    assert (mine.limit, other.limit) == (4, 4)


def test_calls_in_flight_together_halve_once(pair: tuple[SharedThrottle, SharedThrottle]) -> None:
    """Also where several of them on each worker are pushed back."""
    mine, other = pair
    since = time.monotonic()
    mine.pushed_back(since)
    mine.pushed_back(since)
    assert other.pause_reason is None
    other.pushed_back(since)
    assert (mine.limit, other.limit) == (4, 4)


def test_a_longer_pause_goes_on(pair: tuple[SharedThrottle, SharedThrottle], tmp_path: Path) -> None:
    """A shorter one that another worker was told later does not end it."""
    mine, other = pair
    mine.hold(60, "long")
    other.hold(1, "short")
    assert SharedThrottle(8, FolderFiles(tmp_path), "pause.json").pause_reason == "long"


def test_what_cannot_be_read_is_no_pause(tmp_path: Path) -> None:
    """A folder that is gone, or a file that is none of ours, stops nobody."""
    (tmp_path / "pause.json").write_text('{"until": "never"}')
    assert SharedThrottle(8, FolderFiles(tmp_path), "pause.json").pause_reason is None
    gone = SharedThrottle(8, FolderFiles(tmp_path / "gone"), "pause.json")
    gone.hold(60, "why")
    assert gone.pause_reason == "why"


@pytest.mark.usefixtures("_alone")
def test_models_share_where_the_process_is_a_worker(tmp_path: Path) -> None:
    """One file for each model and server; without a folder a throttle is its own."""
    assert type(open_throttle(4, "http://x m")) is Throttle
    share_pauses(FolderFiles(tmp_path))
    throttle = open_throttle(4, "http://x m")
    throttle.hold(60, "why")
    assert open_throttle(4, "http://x m").pause_reason == "why"
    assert open_throttle(4, "http://x other").pause_reason is None
