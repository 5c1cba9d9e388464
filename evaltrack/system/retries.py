"""How long a model is waited for, and the policies by which a call that failed is made again, each by its name.

Calls of a model are made again by `evaltrack.judges.client`, which lets all questions wait where one is told to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

CALL_SECONDS = 120.0
"""For which a call of a model is waited for, unless set; a reasoning model may think for a minute."""

T = TypeVar("T")


@dataclass(frozen=True)
class Policy:
    """At most so many `calls`, or for so many `seconds`; each pause is twice as long as the one before, in seconds."""

    first_pause: float
    longest_pause: float
    calls: int | None = None
    seconds: float | None = None

    def call(self, function: Callable[[], T], when: Callable[[BaseException], bool]) -> T:
        """What the function returns; it is called again `when` its error says so, and its last error is raised."""
        import tenacity

        return tenacity.Retrying(
            wait=tenacity.wait_exponential(self.first_pause, self.longest_pause),
            stop=tenacity.stop_after_attempt(self.calls)
            if self.calls
            else tenacity.stop_before_delay(self.seconds or 0.0),
            retry=tenacity.retry_if_exception(when),
            reraise=True,
        )(function)


SERVER_IS_SILENT = Policy(0.2, 4.0, seconds=30.0)
"""MLflow's server or its database does not answer; one that is restarted is back by then."""

REPLY_BROKE_OFF = Policy(0.2, 4.0, calls=5)
"""A reply of such a server ended half-way."""

STORE_IS_LATE = Policy(0.3, 1.0, calls=3)
"""A store does not show what it took; some show it a little later."""

NAMED_AT_ONCE = Policy(0.0, 0.0, calls=4)
"""Another run has just named the same dataset."""

DATABASE_IS_BUSY = Policy(0.02, 0.02, seconds=30.0)
"""Another process changes the mode of a SQLite database, which SQLite refuses at once, whatever its timeout."""

FILE_IS_OPEN = Policy(0.05, 0.05, calls=21)
"""Windows does not rename over a file that another program, such as an editor or a virus scanner, has open."""
