"""One evaluation that is killed and gone on with, and what MLflow must then hold of it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from evaltrack.evaluation.journal import read_command
from evaltrack.rows.reader import read_table
from evaltrack.tracking.store import Store, connect
from evaltrack.tracking.traces import read_counts
from scripts.killing.disk import SmallDisk
from tests import warm

REPO = Path(__file__).parent.parent.parent

CONCURRENCY = 8
PATIENCE = 180.0
"""Seconds after which a process that was left alone counts as hanging."""

LEDGER = {"usage/judge_tokens", "usage/cached_verdicts"}
"""What a killed process paid for and had no time to keep is in the cache, and no call of this evaluation any more."""

TARGET = """
import hashlib, os, time

def ask(question, k):
    with open("asked", "ab", buffering=0) as file:
        file.write(question.encode() + b"\\n")
    if not os.path.exists("first"):
        open("first", "ab").close()
    time.sleep(0.03)
    number = int(hashlib.sha256(question.encode()).hexdigest(), 16)
    return {"answer": f"It is {number % 1000}.", "sources": [{"chunk_id": f"c{number % n}"} for n in (2, 3, 5, 7, 11)]}
"""


@dataclass
class Chain:
    """One evaluation: its folder with golden set, target, MLflow store and journal, and what became of it."""

    folder: Path
    cached: bool
    uri: str
    plain_uri: str
    """The same store, where nothing is lost on the way."""
    forked: bool = False
    disk: SmallDisk | None = None
    """Of the state folder, where it fills up."""
    kills: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    paid: int = 0
    asked: int = 0
    problems: list[str] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def experiment(self) -> str:
        """Its own, also on a server that other loops use."""
        return f"{self.folder.parent.name}-{self.folder.name}"

    def start(self, base_url: str) -> subprocess.Popen[bytes] | warm.WarmProcess:
        """Start the evaluation, or go on with it."""
        options = ["--resume", "auto", "--judge", "openai:gpt-4o-mini", "--concurrency", str(CONCURRENCY)]
        options += ["--experiment", self.experiment]
        command = ["-m", "evaltrack", "run", "golden.jsonl", "-t", "python:target:ask", *options]
        command += [] if self.cached else ["--set", "verdict_cache=false"]
        own = {
            "OPENAI_BASE_URL": base_url,
            "MLFLOW_TRACKING_URI": self.uri,
            "EVALTRACK_STATE_DIR": str(self.folder / "state"),
            "EVALTRACK_CACHE_DIR": str(self.folder / "cache"),
            "PYTHONPATH": str(REPO),
        }
        env = {**os.environ, **own}
        with (self.folder / "log").open("ab") as log:
            if self.forked:
                return warm.WarmProcess(tuple(command), self.folder, env, log, new_session=True)
            return subprocess.Popen(
                [sys.executable, *command],
                cwd=self.folder,
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, base_url: str, kill_after: float | None = None) -> bool:
        """Let it run, for so many seconds at most where it is to be killed; whether it came to its end by itself."""
        process = self.start(base_url)
        try:
            code = process.wait(PATIENCE if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            if kill_after is None:
                self.problems.append(f"did not end within {PATIENCE:g} s")
                return True
            self.kills += 1
            return False
        if code == 2 and self.disk is not None and self.disk.is_full:
            self.disk.enlarge()  # as the message says
            return self.run(base_url, kill_after)
        if code:
            end = (self.folder / "log").read_text(errors="replace").strip().splitlines()[-3:]
            self.problems.append(f"ended with exit code {code}: {' / '.join(end)}")
        return True

    def kept(self) -> int:
        """How many rows are in the journal."""
        return max(map(_rows_in, (self.folder / "state").glob("*.sqlite")), default=0)

    def phase(self, before: int, questions: int) -> str:
        """Where a kill came, by what was in the journal before and is now."""
        kept = self.kept()
        return "logging" if kept == questions else "asking" if kept > before else "start"

    def ended(self) -> bool:
        """Whether all is done and nothing is left to be resumed: a kill may come even then."""
        left = (self.folder / "state").glob("*.sqlite")
        if not (self.folder / "log").exists() or any(map(read_command, left)):  # one without a command is of no run yet
            return False
        return any(run.info.status == "FINISHED" for run in _runs(self._store(), self.experiment))

    def check(self, questions: int, reference: dict[str, float]) -> None:
        """Hold what MLflow now has against an evaluation that nobody killed."""
        store = self._store()
        runs = _runs(store, self.experiment)
        if [run.info.status for run in runs] != ["FINISHED"]:
            said = [
                line for line in (self.folder / "log").read_text(errors="replace").splitlines() if "resumed" in line
            ]
            self.problems.append(f"runs: {[run.info.status for run in runs]}; {' / '.join(said)}")
            return
        self.metrics = {name: value for name, value in runs[0].data.metrics.items() if "seconds" not in name}
        names = (self.metrics.keys() | reference.keys()) - (LEDGER if self.cached else set())
        for name in sorted(names):
            if reference and self.metrics.get(name) != reference.get(name):
                self.problems.append(f"{name} is {self.metrics.get(name)!r}, not {reference.get(name)!r}")
        expected = {str(number) for number in range(questions)}
        for what, ids in self._held(store, runs[0]).items():
            if len(ids) != questions or set(ids) != expected:
                self.problems.append(f"{what}: {len(ids)} of {len(set(ids))} questions, not {questions}")
        counts = read_counts(store, runs[0].info.experiment_id, runs[0].info.run_id)
        if (counts.traces, counts.spans) != (questions, 3 * questions):
            self.problems.append(f"{counts}, of {questions} questions")
        if doubled := [name for name in self.metrics if _is_doubled(store, runs[0], name)]:
            self.problems.append(f"logged twice with the same value: {', '.join(doubled[:5])}")
        if not runs[0].data.params:
            self.problems.append("no params")
        self._check_bounds(questions)

    def _held(self, store: Store, run: Any) -> dict[str, list[str]]:
        """The ids of the questions in each form that MLflow holds them in."""
        with tempfile.TemporaryDirectory() as folder:
            rows, table = (
                Path(store.client.download_artifacts(run.info.run_id, f"per_question.{end}", folder))
                for end in ("parquet", "json")
            )
            shown = json.loads(table.read_text())
            ids = [str(line[shown["columns"].index("id")]) for line in shown["data"]]
            return {"rows": [row["id"] for row in read_table(rows)], "table": ids}

    def _check_bounds(self, questions: int) -> None:
        asked = (self.folder / "asked").read_text().splitlines()
        self.asked, most = len(asked), questions + self.kills * CONCURRENCY
        if self.disk is not None:  # what found no room is asked again
            most = questions * (self.kills + 1)
        for what, count in (("calls paid", self.paid), ("questions asked", self.asked)):
            if not questions <= count <= most:
                self.problems.append(f"{what}: {count}, not from {questions} to {most}")
        if len(set(asked)) != questions:
            self.problems.append(f"{len(set(asked))} questions were asked, not {questions}")

    def _store(self) -> Store:
        return connect(self.plain_uri)

    def line(self, number: int) -> str:
        """What became of it."""
        where = ", ".join(f"{count} {phase}" for phase, count in sorted(self.phases.items())) or "none"
        told = f"chain {number:>3} {'cache' if self.cached else 'no cache':<8} kills {self.kills} ({where})"
        said = "; ".join(self.problems) or "same metrics"
        return f"{told}: {self.paid} calls paid, {self.asked} questions asked: {said}"


def _is_doubled(store: Store, run: Any, name: str) -> bool:
    values = [each.value for each in store.client.get_metric_history(run.info.run_id, name)]
    return any(first == second for first, second in pairwise(values))


def _rows_in(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            return int(database.execute("select count(*) from rows").fetchone()[0])
    except sqlite3.Error:
        return 0


def _runs(store: Store, experiment: str) -> list[Any]:
    found = store.client.get_experiment_by_name(experiment)
    return list(store.client.search_runs([found.experiment_id])) if found else []
