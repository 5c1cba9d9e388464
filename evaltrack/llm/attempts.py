"""One question on its way: what was tried, what went wrong, and what it waits for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from evaltrack.llm.json_modes import Schema
from evaltrack.llm.refusals import LONGEST_WAIT
from evaltrack.llm.replies import AnswerError
from evaltrack.llm.throttle import Throttle

ATTEMPTS = 8
"""Calls that may fail for one question asked of the model. Calls that the server puts off (429) are not failures."""

PATIENCE = LONGEST_WAIT
"""Seconds for which one question may be put off again and again; whoever asks may have less."""

WAITING = "waiting: "
"""How the note on the error of who is stopped begins."""

Message = Mapping[str, str]


@dataclass
class Asking:
    """One question asked of the model: the form it is at, and what went wrong so far.

    `sent_at` is the monotonic time in seconds of the call that is under way; None between two calls.
    """

    messages: list[Message]
    schema: Schema | None
    form: int
    failures: int = 0
    times_put_off: int = 0
    first_put_off: float | None = None
    last: str = ""
    sent_at: float | None = None

    @property
    def may_go_on(self) -> bool:
        """Whether it may be asked once more."""
        now = time.monotonic()
        since = now if self.first_put_off is None else self.first_put_off
        return self.failures < ATTEMPTS and now - since < PATIENCE

    def failed(self, why: str) -> None:
        """Count a failed call."""
        self.last = why
        self.failures += 1

    def put_off(self, why: str) -> None:
        """Count an answer that says: not now."""
        self.last = why
        self.times_put_off += 1
        if self.first_put_off is None:
            self.first_put_off = time.monotonic()

    def gave_up(self) -> AnswerError:
        """Why it is not asked once more."""
        failed, put_off = f"failed {self.failures} times", f"put it off {self.times_put_off} times"
        counts = [what for what, count in ((failed, self.failures), (put_off, self.times_put_off)) if count]
        return AnswerError(f"the server {' and '.join(counts)}; last: {self.last}")

    def waits_for(self, throttle: Throttle) -> str:
        """What it waits for now, in words; a pause that another question got counts here too."""
        if self.sent_at is not None:
            before = f"; before that: {self.last}" if self.last else ""
            return f"no answer for {time.monotonic() - self.sent_at:.1f} s{before}"
        return throttle.pause_reason or self.last or f"one of the {int(throttle.limit)} calls in flight to end"
