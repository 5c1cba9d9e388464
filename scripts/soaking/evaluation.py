"""One evaluation of very many questions, and what MLflow must then hold of it."""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evaltrack import RunResult, run_eval
from evaltrack.errors import TrackingError
from evaltrack.records import Row
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking.reader import find_evaluation, read_rows
from evaltrack.tracking.store import Store, connect
from evaltrack.tracking.traces import TraceCounts, read_counts
from evaltrack.tracking.writer import TABLE_ROWS
from scripts.soaking.faults import FAULTS, Faults, chunk_of
from scripts.soaking.stores import Place

CONCURRENCY = 64
TIMEOUT = 3.0

MOST_GROWTH = 100
"""MB by which the peak of memory may grow after the first tenth of the questions."""

MOST_RESUMES = 20
"""How often an evaluation whose store refused something may be resumed."""

UNITS = 1024 if sys.platform != "darwin" else 1024 * 1024
"""Of `ru_maxrss`, in a MB."""


@dataclass
class Watch:
    """A `Progress` that notes the peak of memory, in MB, when so much of the questions is done."""

    total: int
    done: int = 0
    peaks: dict[str, float] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)

    def start(self, total: int) -> None:
        """Hear that it begins, or that it goes on."""
        assert total == self.total
        self.done, self.kinds = 0, Counter()

    def warn(self, text: str) -> None:
        """Say nothing."""

    def advance(self, row: Row) -> None:
        """Count one question."""
        self.done += 1
        if row.failure is not None:
            self.kinds[row.failure.kind] += 1
        for percent in (10, 50, 100):
            if self.done == max(1, self.total * percent // 100):
                self.peaks.setdefault(f"{percent} %", peak())

    def note(self, phrase: str, done: int, total: int) -> None:
        """Say nothing."""


def peak() -> float:
    """The most memory this process has had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNITS


@dataclass
class Soak:
    """One evaluation and what is to be said of it."""

    questions: int
    faults: Faults
    folder: Path
    problems: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    lost: int = 0

    def run(self, place: Place) -> tuple[Watch, Counter[str]]:
        """Evaluate, and hold what is in MLflow against what must be there; peaks, and faults by name."""
        watch = Watch(self.questions)
        result = self._evaluate(self._golden(), place, watch)
        watch.peaks["the end"] = peak()
        if result.status != "FINISHED":
            self.problems.append(f"the run is {result.status}")
        store = connect(place.plain_uri)
        expected = self._check_rows(read_rows(store, find_evaluation(store, result.run_id), ["id", "error", "passed"]))
        self._check_run(store, result, watch)
        self._check_memory(watch)
        return watch, expected

    def _golden(self) -> Path:
        golden = self.folder / "soak.jsonl"
        with golden.open("w") as file:
            for number in range(self.questions):
                text = f"What is said under number {number}"
                line = {"id": number, "question": text, "expected_chunks": [chunk_of(text, number % 5)]}
                file.write(json.dumps(line) + "\n")
        return golden

    def _evaluate(self, golden: Path, place: Place, watch: Watch) -> RunResult:
        """Evaluate; where the store refuses something, go on as a user does."""
        while True:
            try:
                return run_eval(
                    golden,
                    target=self.faults.ask,
                    judge="none",
                    concurrency=CONCURRENCY,
                    timeout=TIMEOUT,
                    traces="failed",  # some thousand requests to MLflow, for the faults' sake
                    experiment=self.folder.name,
                    tracking_uri=place.uri,
                    progress=watch,
                    resume="auto" if self.refusals else None,
                )
            except TrackingError as error:
                self.refusals.append(str(error))
                if len(self.refusals) > MOST_RESUMES:
                    raise

    def _check_run(self, store: Store, result: RunResult, watch: Watch) -> None:
        """One run that has ended, each metric in it once, and what its traces hold."""
        runs = store.client.search_runs([result.experiment_id])
        if (statuses := [run.info.status for run in runs]) != [result.status]:
            self.problems.append(f"runs: {statuses}")
        for name, value in runs[0].data.metrics.items():
            history = [each.value for each in store.client.get_metric_history(result.run_id, name)]
            if history != [value]:
                self.problems.append(f"metric {name} was logged {len(history)} times: {history}")
        failed = watch.kinds.total()  # a trace has one span, and says that it failed and what was expected
        must, held = TraceCounts(failed, failed, 2 * failed), read_counts(store, result.experiment_id, result.run_id)
        if gap := must.gap(held):
            self.problems.append(f"MLflow holds {gap}")

    def _check_rows(self, rows: Iterator[StoredRow]) -> Counter[str]:
        """Compare each row with the fault of its question."""
        seen, wrong, met = bytearray(self.questions), [], Counter[str]()
        for row in rows:
            number = int(row.id)
            seen[number] = min(seen[number] + 1, 2)
            name = self.faults.of(number)
            met[name or "none"] += 1
            kind = FAULTS[name][1] if name else None
            got = row.error.partition(":")[0] if row.error else None
            if got != kind or (kind is None and row.passed is not True):
                wrong.append(f"question {number} ({name or 'no fault'}): {row.error or row.passed}"[:200])
        for what, count in (("lost", seen.count(0)), ("doubled", seen.count(2))):
            if count:
                self.problems.append(f"{count:,} rows {what}")
        if wrong:
            self.problems.append(f"{len(wrong):,} rows are not what they must be, such as {wrong[0]}")
        self.lost = seen.count(0)
        del met["none"]
        return met

    def _check_memory(self, watch: Watch) -> None:
        shown = self.questions <= TABLE_ROWS  # then MLflow's own table of all rows is made at the end, in memory
        for place in ("50 %", "100 %", *(() if shown else ("the end",))):
            if (grown := watch.peaks[place] - watch.peaks["10 %"]) > MOST_GROWTH:
                self.problems.append(f"memory grew by {grown:.0f} MB from 10 % to {place}")
