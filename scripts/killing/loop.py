"""Chains of kills, one after the other, each held against an evaluation that nobody killed."""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from evaltrack.tracking.store import connect
from scripts.killing.chain import CONCURRENCY, TARGET, Chain
from scripts.killing.disk import SmallDisk
from scripts.soaking.stores import Place
from tests import warm

MOST_KILLS = 6
"""In one chain."""

REFERENCE = "reference"
"""The name of the chain that nobody kills."""

DISK = (150, 450)
"""KB of a disk that fills up, from and to; the journal of 200 questions takes about as much."""


@dataclass(frozen=True)
class Plan:
    """What is chosen on the command line; `place` is a server that all chains share, else each has a database."""

    kills: int
    questions: int
    seed: int
    forked: bool = False
    full_disk: bool = False
    place: Place | None = None


def _calls(base_url: str) -> int:
    with urllib.request.urlopen(f"{base_url}/stats", timeout=30) as response:  # noqa: S310 - our own server
        return int(json.load(response)["calls"])


class Loop:
    """Chains of kills, one after the other, until there were enough."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        self._kills, self._questions, self._forked = plan.kills, plan.questions, plan.forked
        self._chance = Random(plan.seed)  # noqa: S311 - no secret
        self._starts = self._asks = self._takes = 0.0
        connect(f"sqlite:///{folder}/mlflow.db")  # migrating takes seconds, copying does not

    def chain(self, name: str, *, cached: bool) -> Chain:
        """A folder of its own, with the same golden set and an empty store."""
        folder = self._folder / name
        own = f"sqlite:///{folder}/mlflow.db"
        uri, plain_uri = (self._plan.place.uri, self._plan.place.plain_uri) if self._plan.place else (own, own)
        chain = Chain(folder, cached, uri, plain_uri, self._forked)
        chain.folder.mkdir()
        if self._plan.full_disk and name != REFERENCE:
            chain.disk = SmallDisk(folder / "state", self._chance.randint(*DISK))
            chain.disk.mount()
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
        reference = self.chain(REFERENCE, cached=False)
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
            try:
                self._break_off(chain, base_url, left, reference.metrics)
            finally:
                if chain.disk is not None:
                    chain.disk.unmount()
            print(chain.line(len(chains)), flush=True)
            chains.append(chain)
            if not chain.problems:
                shutil.rmtree(chain.folder)
        return chains

    def _break_off(self, chain: Chain, base_url: str, left: int, reference: dict[str, float]) -> None:
        """Kill it some times, and let it finish."""
        before = _calls(base_url)
        self._kill(chain, base_url, min(left, self._chance.randint(1, MOST_KILLS)))
        if not chain.kills or chain.phases["end"]:  # the machine has become faster
            self._takes = max(self._takes * 0.9, self._starts + self._asks)
        self._finish(chain, base_url, reference, before)

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
