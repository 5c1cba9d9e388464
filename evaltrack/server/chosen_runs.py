"""Which runs of a golden set an address names, and those runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaltrack.records.past_run import PastRun
from evaltrack.tracking.history import past_runs
from evaltrack.tracking.store import Store

RUNS = 20
CHOSEN = 100
"""Runs that are looked through where some are chosen."""

ANY_TARGET = "*"
"""In an address: runs of every target."""


@dataclass(frozen=True)
class Choice:
    """Which runs of a golden set are shown: those before a moment, those from one to another, those of one target.

    Moments are in milliseconds since 1970. `target` is empty for all runs with trends of the newest one's target, and
    `ANY_TARGET` for trends of any.
    """

    before: int | None = None
    first: int | None = None
    last: int | None = None
    target: str = ""

    @property
    def narrow(self) -> bool:
        """Whether runs are left out by choice."""
        return self.first is not None or self.last is not None or self.target not in ("", ANY_TARGET)

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice | None:
        """The choice in an address: `before`, `from`, `to`, `target`; None where one of them is no moment."""
        texts = [query.get(name, "") for name in ("before", "from", "to")]
        if not all(re.fullmatch(r"[0-9]{0,15}", each, re.ASCII) for each in texts):
            return None
        before, first, last = (int(each) if each else None for each in texts)
        if first is not None and last is not None and first > last:
            first, last = last, first
        return cls(before, first, last, query.get("target", ""))

    def read(self, store: Store, experiment_id: str, golden: str) -> list[PastRun]:
        """The runs that are looked through."""
        if self.before is None and not self.narrow:
            return past_runs(store, experiment_id, golden, RUNS)
        before = self.before if self.last is None else self.last + 1
        return past_runs(store, experiment_id, golden, CHOSEN if self.narrow else RUNS, before, self.first)

    def chosen(self, runs: Sequence[PastRun]) -> list[PastRun]:
        """Those of them that are shown."""
        if self.target in ("", ANY_TARGET):
            return list(runs)
        return [run for run in runs if target_of(run) == self.target]


def target_of(run: PastRun) -> str:
    """What a run asked; empty where it does not say."""
    return run.signature.target if run.signature else ""
