"""A throttle whose pauses hold for the workers of a run on all machines: they signal them by shared files."""

from __future__ import annotations

import time
from contextlib import suppress
from hashlib import sha256
from uuid import uuid4

from pydantic import ValidationError

from evaltrack.llm.refusals import LONGEST_WAIT
from evaltrack.llm.throttle import Throttle
from evaltrack.records.base import Record
from evaltrack.system.shared_files import Board

LOOK_SECONDS = 0.05
"""Between two looks at what other workers say."""

_board: list[Board] = []
"""The shared files of this process, where it is one worker among several."""


class Pause(Record):
    """What a server said last to any worker: `until` is in seconds since the epoch, in the past where it named none."""

    stamp: str
    until: float
    why: str


class SharedThrottle(Throttle):
    """Holds, and halves, also when another worker was told so; each has its share of the calls in flight."""

    def __init__(self, limit: int, board: Board, name: str) -> None:
        super().__init__(limit)
        self._board, self._name, self._stamp = board, name, ""
        self._looked_at = -LOOK_SECONDS

    def pushed_back(self, since: float) -> None:
        """Tell the others too, once for the calls that were in flight together."""
        before = self._halved_at
        super().pushed_back(since)
        if self._halved_at != before:
            self._tell(0.0, "")

    def hold(self, seconds: float, why: str = "") -> None:
        """Nobody calls for so long, on any machine."""
        super().hold(seconds, why)
        self._tell(seconds, why)

    @property
    def pause_reason(self) -> str | None:
        """Why no call may be made now, by what any worker was told."""
        self._look()
        return super().pause_reason

    def _let_in(self) -> None:
        self._look()
        super()._let_in()

    def _tell(self, seconds: float, why: str) -> None:
        """Write what was said; a longer pause that another was told goes on."""
        until, earlier = time.time() + seconds, self._said()
        if earlier is not None and earlier.until > until:
            until, why = earlier.until, earlier.why
        own = Pause(stamp=uuid4().hex, until=until, why=why)
        self._stamp = own.stamp
        with suppress(OSError):  # the others are told by the server themselves
            self._board.write(self._name, own.model_dump_json().encode())

    def _look(self) -> None:
        """Do as another worker was told since the last look."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        said = self._said()
        if said is None or said.stamp == self._stamp:
            return
        self._stamp = said.stamp
        super().pushed_back(now)
        if (left := min(said.until - time.time(), LONGEST_WAIT)) > 0:
            super().hold(left, said.why)

    def _said(self) -> Pause | None:
        try:
            return Pause.model_validate_json(self._board.read(self._name))
        except (OSError, ValidationError):
            return None


def share_pauses(board: Board | None) -> None:
    """Have the models that this process opens from now on share their pauses by these files; None: no longer."""
    _board[:] = [board] if board else []


def open_throttle(limit: int, server: str) -> Throttle:
    """The throttle of a model on a server, which other workers may ask too."""
    if not _board:
        return Throttle(limit)
    return SharedThrottle(limit, _board[0], f"pause-{sha256(server.encode()).hexdigest()[:16]}.json")
