"""Defines retry policies for MLflow stores, and the time limit of model calls.

Calls of a model are retried by `evaltrack.judges.client`, which makes all questions wait if a server asks for a pause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

CALL_SECONDS = 120.0
"""Seconds that a call of a model may take by default. A reasoning model may think for a minute."""

T = TypeVar("T")


@dataclass(frozen=True)
class Policy:
    """A retry policy of at most `calls` calls or `seconds` seconds. Each pause, in seconds, is twice the one before."""

    first_pause: float
    longest_pause: float
    calls: int | None = None
    seconds: float | None = None

    def call(self, function: Callable[[], T], when: Callable[[BaseException], bool]) -> T:
        """Return the result of the function. Retry it `when` its error allows, and raise its last error."""
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
"""MLflow's server or its database does not answer, or cuts replies off. A restart takes less time than this."""

DOWNLOAD_FAILED = Policy(0.3, 1.0, calls=3)
"""An artifact did not come from MLflow's server."""

NAMED_AT_ONCE = Policy(0.0, 0.0, calls=4)
"""Another run named the same dataset at the same time."""
