#!/usr/bin/env python3
"""Kill evaluations again and again, at random moments from start-up to the end of logging, and check what comes out.

`evaltrack run --resume auto` is started, killed with SIGKILL, and started again; after some kills it may finish, and
then MLflow must hold what it holds of an evaluation that nobody killed: the same metrics to the last bit, one run,
FINISHED, with one row, one table line and one trace a question. No more than the questions in flight at each kill may
be asked or paid for twice. In every other chain there is no verdict cache, so that the journal alone protects what was
paid. The judge is a scripted OpenAI server in a process of its own, which counts its calls.

    python scripts/kill_loop.py --kills 100 --questions 200 --seed 0

Exits 1 if anything was lost, doubled or paid for too often; one line a chain, and a summary.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")

from evaltrack.rows.reader import read_table  # noqa: E402 - found through the path above
from evaltrack.tracking.store import Store, connect  # noqa: E402
from evaltrack.tracking.traces import read_counts  # noqa: E402
from tests import warm  # noqa: E402
from tests.openai_server import server_process  # noqa: E402

CONCURRENCY = 8
LATENCY = 0.05
PATIENCE = 180.0
"""Seconds after which a process that was left alone counts as hanging."""

MOST_KILLS = 6
"""In one chain."""

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
    forked: bool = False
    kills: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    paid: int = 0
    asked: int = 0
    problems: list[str] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)

    def start(self, base_url: str) -> subprocess.Popen[bytes] | warm.WarmProcess:
        """Start the evaluation, or go on with it."""
        options = ["--resume", "auto", "--judge", "openai:gpt-4o-mini", "--concurrency", str(CONCURRENCY)]
        options += ["--experiment", "kills"]
        command = ["-m", "evaltrack", "run", "golden.jsonl", "-t", "python:target:ask", *options]
        command += [] if self.cached else ["--no-cache"]
        own = {
            "OPENAI_BASE_URL": base_url,
            "MLFLOW_TRACKING_URI": f"sqlite:///{self.folder}/mlflow.db",
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
        if not (self.folder / "log").exists() or list((self.folder / "state").glob("*.sqlite")):
            return False
        return any(run.info.status == "FINISHED" for run in _runs(self._store()))

    def check(self, questions: int, reference: dict[str, float]) -> None:
        """Hold what MLflow now has against an evaluation that nobody killed."""
        store = self._store()
        runs = _runs(store)
        if [run.info.status for run in runs] != ["FINISHED"]:
            self.problems.append(f"runs: {[run.info.status for run in runs]}")
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
        traces = read_counts(store, runs[0].info.experiment_id, runs[0].info.run_id).traces
        if traces != questions:
            self.problems.append(f"{traces} traces, not {questions}")
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
        for what, count in (("calls paid", self.paid), ("questions asked", self.asked)):
            if not questions <= count <= most:
                self.problems.append(f"{what}: {count}, not from {questions} to {most}")
        if len(set(asked)) != questions:
            self.problems.append(f"{len(set(asked))} questions were asked, not {questions}")

    def _store(self) -> Store:
        return connect(f"sqlite:///{self.folder}/mlflow.db")

    def line(self, number: int) -> str:
        """What became of it."""
        where = ", ".join(f"{count} {phase}" for phase, count in sorted(self.phases.items())) or "none"
        told = f"chain {number:>3} {'cache' if self.cached else 'no cache':<8} kills {self.kills} ({where})"
        said = "; ".join(self.problems) or "same metrics"
        return f"{told}: {self.paid} calls paid, {self.asked} questions asked: {said}"


def _rows_in(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            return int(database.execute("select count(*) from rows").fetchone()[0])
    except sqlite3.Error:
        return 0


def _runs(store: Store) -> list[Any]:
    return list(store.client.search_runs([each.experiment_id for each in store.client.search_experiments()]))


def _calls(base_url: str) -> int:
    with urllib.request.urlopen(f"{base_url}/stats", timeout=30) as response:  # noqa: S310 - our own server
        return int(json.load(response)["calls"])


class Loop:
    """Chains of kills, one after the other, until there were enough."""

    def __init__(self, folder: Path, kills: int, questions: int, seed: int, *, forked: bool) -> None:
        self._folder, self._kills, self._questions, self._forked = folder, kills, questions, forked
        self._chance = Random(seed)  # noqa: S311 - no secret
        self._starts = self._asks = self._takes = 0.0
        connect(f"sqlite:///{folder}/mlflow.db")  # migrating takes seconds, copying does not

    def chain(self, name: str, *, cached: bool) -> Chain:
        """A folder of its own, with the same golden set and an empty store."""
        chain = Chain(self._folder / name, cached, self._forked)
        chain.folder.mkdir()
        shutil.copy(self._folder / "mlflow.db", chain.folder)
        (chain.folder / "target.py").write_text(TARGET)
        lines = [
            {"id": number, "question": f"What is number {number}?", "expected_chunks": [f"c{number % 5}"]}
            for number in range(self._questions)
        ]
        (chain.folder / "golden.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return chain

    def run(self, base_url: str) -> list[Chain]:
        """Kill until there were enough kills; the first chain is the one that nobody kills."""
        if self._forked:
            warm.run(("-c", ""), self._folder, os.environ)  # its start is that of no evaluation
        reference = self.chain("reference", cached=False)
        began, start = time.time(), time.monotonic()
        self._finish(reference, base_url, {}, 0)
        self._takes = time.monotonic() - start
        self._starts = (reference.folder / "first").stat().st_mtime - began
        self._asks = (reference.folder / "asked").stat().st_mtime - began - self._starts
        took = f"{self._starts:.1f} s to the first question, {self._takes:.1f} s in all"
        print(f"{reference.line(0)}, {len(reference.metrics)} of them, {took}", flush=True)
        chains = [reference]
        while not reference.problems and (left := self._kills - sum(chain.kills for chain in chains)) > 0:
            chain = self.chain(f"chain{len(chains)}", cached=len(chains) % 2 == 0)
            before = _calls(base_url)
            self._kill(chain, base_url, min(left, self._chance.randint(1, MOST_KILLS)))
            if not chain.kills or chain.phases["end"]:  # the machine has become faster
                self._takes = max(self._takes * 0.9, self._starts + self._asks)
            self._finish(chain, base_url, reference.metrics, before)
            print(chain.line(len(chains)), flush=True)
            chains.append(chain)
            if not chain.problems:
                shutil.rmtree(chain.folder)
        return chains

    def _kill(self, chain: Chain, base_url: str, kills: int) -> None:
        while chain.kills < kills and not chain.problems:
            before = chain.kept()
            if chain.run(base_url, self._moment(before / self._questions)):
                return
            chain.phases["end" if chain.ended() else chain.phase(before, self._questions)] += 1
            if chain.phases["end"]:
                return

    def _moment(self, done: float) -> float:
        """Seconds after which a process is killed: in one of five cases while it starts, in two each while it asks
        what is left and while it logs.
        """
        asked = self._starts + self._asks * (1 - done)
        logged = asked + self._takes - self._starts - self._asks
        between = self._chance.choice([(0, self._starts), *[(self._starts, asked), (asked, logged)] * 2])
        return self._chance.uniform(*between)

    def _finish(self, chain: Chain, base_url: str, reference: dict[str, float], before: int) -> None:
        if not chain.problems and not chain.ended():
            chain.run(base_url)
        chain.paid = _calls(base_url) - before
        if not chain.problems:
            chain.check(self._questions, reference)


def summary(chains: list[Chain], seconds: float) -> str:
    """The figures of all chains together."""
    killed = [chain for chain in chains[1:] if chain.kills]
    phases = sum((chain.phases for chain in chains), Counter[str]())
    kills, questions = sum(chain.kills for chain in chains), chains[0].asked
    again = {name: sum(getattr(chain, name) - questions for chain in chains[1:]) for name in ("paid", "asked")}
    by_phase = ", ".join(f"{phases[name]} {name}" for name in ("start", "asking", "logging", "end"))
    return (
        f"{kills} kills ({by_phase}) in {len(killed)} chains of {questions} questions, "
        f"{seconds:.0f} s: calls paid again {again['paid']}, questions asked again {again['asked']} "
        f"(bound {kills * CONCURRENCY}), chains with a problem {sum(bool(chain.problems) for chain in chains)}"
    )


def main() -> int:
    """Run the loop; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100, help="how many processes are killed; default: 100")
    parser.add_argument("--questions", type=int, default=200, help="in each evaluation; default: 200")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills; default: 0")
    parser.add_argument("--forked", action="store_true", help="start without imports: quicker, and few kills come then")
    parser.add_argument("--keep", action="store_true", help="keep the folders of chains with a problem")
    chosen = parser.parse_args()
    folder, start = Path(tempfile.mkdtemp(prefix="kill-loop-")), time.monotonic()
    try:
        with server_process("--latency", str(LATENCY)) as base_url:
            loop = Loop(folder, chosen.kills, chosen.questions, chosen.seed, forked=chosen.forked)
            chains = loop.run(base_url)
    finally:
        if chosen.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)
    print(summary(chains, time.monotonic() - start))
    return int(any(chain.problems for chain in chains))


if __name__ == "__main__":
    sys.exit(main())
