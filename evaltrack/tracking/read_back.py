"""What a store holds, compared with what was written to it: an answer of 200 alone says little."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evaltrack.errors import TrackingError
from evaltrack.system import retries
from evaltrack.tracking.store import Store, find_run, tracking_errors

if TYPE_CHECKING:
    from mlflow.entities import Run


class _GapError(Exception):
    """What a run does not hold, in words."""


@dataclass(frozen=True)
class Expected:
    """What a run must hold."""

    status: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    params: Collection[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    inputs: int = 0

    def gap(self, run: Run) -> str | None:
        """What it does not hold, in words; None where it holds all."""
        data, status = run.data, run.info.status
        if self.status and status != self.status:
            return f"the status {status or 'of nothing'}, not {self.status}"
        for name, value in self.metrics.items():
            if (actual := data.metrics.get(name)) != value:
                return f"{actual!r} as metric {name}, not {value!r}"
        for name, text in self.tags.items():
            if data.tags.get(name) != text:
                return f"another tag {name}, or none"
        missing = sorted(set(self.params) - data.params.keys())
        if missing:
            return f"no param {missing[0]}"
        datasets = len(run.inputs.dataset_inputs) if run.inputs else 0
        return f"{datasets} datasets, not {self.inputs}" if datasets < self.inputs else None


def write_until_held(store: Store, run_id: str, doing: str, write: Callable[[], object], expected: Expected) -> None:
    """Write to a run, and read it back; again where it is not there, which is why `write` may be called twice.

    Raises:
        TrackingError: the store refused, or does not hold what was written.
    """

    def gap() -> str | None:
        with tracking_errors(doing):
            write()
        return expected.gap(find_run(store, run_id))

    expect(run_id, gap)


def expect(run_id: str, gap: Callable[[], str | None]) -> None:
    """Look a few times whether a run holds all.

    Raises:
        TrackingError: it does not.
    """

    def look() -> None:
        if (problem := gap()) is not None:
            raise _GapError(problem)

    try:
        retries.STORE_IS_LATE.call(look, lambda error: isinstance(error, _GapError))
    except _GapError as problem:
        raise TrackingError(f"MLflow holds {problem}, of run {run_id}, though it said that all was written") from None
