#!/usr/bin/env python3
"""Kill evaluations again and again, at random moments from start-up to the end of logging, and check the results.

`evaltrack run --resume auto` is started, killed with SIGKILL, and started again; after some kills it may finish. Then
MLflow must hold the same as after an evaluation that nobody killed: the same metrics to the last bit, one run,
FINISHED, with one row, one table line and one trace a question. No more than the questions in flight at each kill may
be asked or paid for twice. Every other chain has no verdict cache, so that the journal alone protects what was
paid. The judge is a scripted OpenAI server, which counts its calls.

With `--server` the runs are on that MLflow server of this machine, behind a proxy that answers 503, breaks connections
off before or after the server has done the work, cuts, delays and doubles.

    python scripts/kill_loop.py --kills 100 --questions 200 --seed 0
    python scripts/kill_loop.py --server http://127.0.0.1:5000

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
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")

from evaltrack.evaluation.journal import read_command  # noqa: E402 - found through the path above
from evaltrack.tracking.rows import read_table  # noqa: E402
from evaltrack.tracking.store import Store, connect  # noqa: E402
from tests import warm  # noqa: E402
from tests.faulty_proxy import Chance, proxy_thread  # noqa: E402
from tests.openai_behaviours import answer_judge, slow  # noqa: E402
from tests.openai_server import OpenAIServer  # noqa: E402
from tests.stores import trace_counts  # noqa: E402

LATENCY = 0.05
FAULTS = ("503", "dropped", "lost", "cut", "doubled", "delayed")
MOST_KILLS_OF_A_CHAIN = 6

REFERENCE = "reference"
"""The name of the chain that nobody kills."""

CONCURRENCY = 8
PATIENCE = 180.0
"""Seconds after which a process that was left alone counts as hanging."""

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

    def start(self, judge: OpenAIServer) -> subprocess.Popen[bytes] | warm.WarmProcess:
        """Start the evaluation, or go on with it."""
        options = ["--resume", "auto", "--judge", "openai:gpt-4o-mini", "--concurrency", str(CONCURRENCY)]
        options += ["--experiment", self.experiment]
        command = ["-m", "evaltrack", "run", "golden.jsonl", "-t", "python:target:ask", *options]
        command += [] if self.cached else ["--set", "verdict_cache=false"]
        own = {
            "OPENAI_BASE_URL": judge.base_url,
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

    def run(self, judge: OpenAIServer, kill_after: float | None = None) -> bool:
        """Let it run, for so many seconds at most where it is to be killed; whether it came to its end by itself."""
        process = self.start(judge)
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
        """Return the number of rows in the journal."""
        return max(map(_rows_in, (self.folder / "state").glob("*.sqlite")), default=0)

    def phase(self, before: int, questions: int) -> str:
        """Return the phase of a kill, by the rows in the journal before and now."""
        kept = self.kept()
        return "logging" if kept == questions else "asking" if kept > before else "start"

    def ended(self) -> bool:
        """True if nothing is left to resume: a kill may come even then."""
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
        self.metrics = runs[0].data.metrics
        for name in sorted(self.metrics.keys() | reference.keys()):
            if reference and self.metrics.get(name) != reference.get(name):
                self.problems.append(f"{name} is {self.metrics.get(name)!r}, not {reference.get(name)!r}")
        expected = {str(number) for number in range(questions)}
        for what, ids in self._held(store, runs[0]).items():
            if len(ids) != questions or set(ids) != expected:
                self.problems.append(f"{what}: {len(ids)} of {len(set(ids))} questions, not {questions}")
        traces, spans, _ = trace_counts(store.uri, runs[0].info.run_id, runs[0].info.experiment_id)
        if (traces, spans) != (questions, 3 * questions):
            self.problems.append(f"{traces} traces and {spans} spans of {questions} questions")
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
        for what, count in (("calls paid", self.paid), ("questions asked", self.asked)):
            if not questions <= count <= most:
                self.problems.append(f"{what}: {count}, not from {questions} to {most}")
        if len(set(asked)) != questions:
            self.problems.append(f"{len(set(asked))} questions were asked, not {questions}")

    def _store(self) -> Store:
        return connect(self.plain_uri)

    def line(self, number: int) -> str:
        """One line about the chain."""
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


class Loop:
    """Chains of kills, one after the other, until there were enough."""

    def __init__(self, folder: Path, chosen: argparse.Namespace, proxy: str | None) -> None:
        self._folder, self._server, self._proxy = folder, chosen.server, proxy
        self._kills, self._questions, self._forked = chosen.kills, chosen.questions, chosen.forked
        self._chance = Random(chosen.seed)
        self._starts = self._asks = self._takes = 0.0
        connect(f"sqlite:///{folder}/mlflow.db")  # migrating takes seconds, copying does not

    def chain(self, name: str, *, cached: bool) -> Chain:
        """A folder of its own, with the same golden set and an empty store."""
        folder = self._folder / name
        own = f"sqlite:///{folder}/mlflow.db"
        chain = Chain(folder, cached, self._proxy or own, self._server or own, self._forked)
        chain.folder.mkdir()
        shutil.copy(self._folder / "mlflow.db", chain.folder)
        (chain.folder / "target.py").write_text(TARGET)
        lines = [
            {"id": number, "question": f"What is number {number}?", "expected_chunks": [f"c{number % 5}"]}
            for number in range(self._questions)
        ]
        (chain.folder / "golden.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return chain

    def run(self, judge: OpenAIServer) -> list[Chain]:
        """Kill until there were enough kills; the first chain is the one that nobody kills."""
        if self._forked:
            warm.run(("-c", ""), self._folder, os.environ)  # its start is that of no evaluation
        reference = self.chain(REFERENCE, cached=False)
        began, start = time.time(), time.monotonic()
        self._finish(reference, judge, {}, 0)
        self._takes = time.monotonic() - start
        self._starts = (reference.folder / "first").stat().st_mtime - began
        self._asks = (reference.folder / "asked").stat().st_mtime - began - self._starts
        took = f"{self._starts:.1f} s to the first question, {self._takes:.1f} s in all"
        print(f"{reference.line(0)}, {len(reference.metrics)} of them, {took}", flush=True)
        chains = [reference]
        while not reference.problems and (left := self._kills - sum(chain.kills for chain in chains)) > 0:
            chain = self.chain(f"chain{len(chains)}", cached=len(chains) % 2 == 0)
            self._break_off(chain, judge, left, reference.metrics)
            print(chain.line(len(chains)), flush=True)
            chains.append(chain)
        return chains

    def _break_off(self, chain: Chain, judge: OpenAIServer, left: int, reference: dict[str, float]) -> None:
        """Kill it some times, and let it finish."""
        before = judge.calls
        self._kill(chain, judge, min(left, self._chance.randint(1, MOST_KILLS_OF_A_CHAIN)))
        if not chain.kills or chain.phases["end"]:  # the machine has become faster
            self._takes = max(self._takes * 0.9, self._starts + self._asks)
        self._finish(chain, judge, reference, before)

    def _kill(self, chain: Chain, judge: OpenAIServer, kills: int) -> None:
        while chain.kills < kills and not chain.problems:
            before = chain.kept()
            if chain.run(judge, self._moment(before / self._questions)):
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

    def _finish(self, chain: Chain, judge: OpenAIServer, reference: dict[str, float], before: int) -> None:
        if not chain.problems and not chain.ended():
            chain.run(judge)
        chain.paid = judge.calls - before
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


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="how many processes are killed; default: 100")
    parser.add_argument("--questions", type=int, default=200, help="in each evaluation; default: 200")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills; default: 0")
    parser.add_argument("--server", metavar="ADDRESS", help="an MLflow server of this machine; default: SQLite files")
    parser.add_argument("--faults", type=float, default=0.03, help="share of the server's requests; default: 0.03")
    parser.add_argument("--forked", action="store_true", help="start without imports: quicker, and few kills come then")
    return parser.parse_args()


def main() -> int:
    """Run the loop; the exit code."""
    chosen = _chosen()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers are stopped
    start, faults = time.monotonic(), Chance(FAULTS, chosen.faults, chosen.seed)
    proxy = proxy_thread(chosen.server, faults) if chosen.server else nullcontext()
    with (
        tempfile.TemporaryDirectory(prefix="kill-loop-") as folder,
        OpenAIServer(slow(answer_judge(), LATENCY)) as judge,
        proxy as address,
    ):
        chains = Loop(Path(folder), chosen, address).run(judge)
    if faults.counts:
        print(", ".join(f"{count} {name}" for name, count in faults.counts.items()))
    print(summary(chains, time.monotonic() - start))
    return int(any(chain.problems for chain in chains))


if __name__ == "__main__":
    sys.exit(main())
