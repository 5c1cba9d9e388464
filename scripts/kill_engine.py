#!/usr/bin/env python3
"""Kill the workers and the driver of evaluations on Ray again and again, and check the results.

`evaltrack run --set engine=ray --resume auto` is started; at random moments a worker, or the driver with all that it
started, is killed with SIGKILL. After the death of a driver the run is resumed. At the end its rows and metrics must be
those of an evaluation in one process that nobody killed, to the last bit, and no more than the questions in flight at
each kill may be asked or paid for twice. There is no verdict cache, so that the journal alone protects what was paid.
The judge is a scripted OpenAI server, which counts its calls.

    python scripts/kill_engine.py --kills 20 --questions 400 --seed 0

Exits 1 if anything was lost, doubled or paid for too often; one line a chain, and a summary.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))

from scripts.kill_loop import TARGET  # noqa: E402 - found through the path above
from tests.openai_behaviours import answer_judge, slow  # noqa: E402
from tests.openai_server import OpenAIServer  # noqa: E402

PATIENCE, CONCURRENCY, LATENCY = 300.0, 8, 0.1
MOST_KILLS = 7
"""In one chain."""
WORKER = b"ray::RowWorker"
"""How the command lines of workers begin."""
OF_THE_RUN = ("seconds", "started_at", "trace_id")
"""Fields that differ between runs."""


@dataclass
class Chain:
    """One evaluation that is killed and gone on with, in a folder of its own."""

    folder: Path
    engine: str
    base_url: str
    kills: Counter[str] = field(default_factory=Counter)

    def start(self) -> subprocess.Popen[bytes]:
        """Evaluate, or go on with what was killed."""
        env = os.environ | {
            "EVALTRACK_STATE_DIR": str(self.folder / "state"),
            "EVALTRACK_CACHE_DIR": str(self.folder / "cache"),
            "OPENAI_BASE_URL": self.base_url,
            "PYTHONPATH": str(REPO),
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_TRACKING_URI": f"sqlite:///{self.folder}/mlflow.db",
        }
        options = ["-t", "python:target:ask", "--judge", "openai:gpt-4o-mini", "--traces", "off", "--resume", "auto"]
        options += ["--set", "verdict_cache=false", "--set", f"engine={self.engine}", "--output", "json"]
        options += ["--concurrency", str(CONCURRENCY)]
        options += [] if self.engine == "local" else ["--set", "engine_workers=2"]
        command = [sys.executable, "-m", "evaltrack", "run", "golden.jsonl", *options]
        with (self.folder / "result.json").open("wb") as out, (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, cwd=self.folder, env=env, stdout=out, stderr=log, start_new_session=True)

    def finish(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """The result of an evaluation that nobody kills any more."""
        code = process.wait(PATIENCE)
        if code:
            raise SystemExit(f"exit {code}: {(self.folder / 'log').read_text(errors='replace')[-2000:]}")
        result: dict[str, Any] = json.loads((self.folder / "result.json").read_text())
        return result

    def asked(self) -> list[str]:
        """The questions that the target was asked, each time."""
        with suppress(FileNotFoundError):
            return (self.folder / "asked").read_text().splitlines()
        return []

    def own_processes(self) -> Iterator[tuple[int, bytes]]:
        """Id and command line of each process that this evaluation started, by the state folder that it has."""
        mark = f"EVALTRACK_STATE_DIR={self.folder / 'state'}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    yield int(path.name), (path / "cmdline").read_bytes()

    def kill_worker(self, draw: random.Random) -> bool:
        """Kill one of the workers that are at work."""
        end = time.monotonic() + 2
        while not (found := [each for each, command in self.own_processes() if WORKER in command]):
            if time.monotonic() > end:
                return False
        with suppress(ProcessLookupError):
            os.kill(draw.choice(found), signal.SIGKILL)
        return True

    def kill_driver(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the driver, and then what it left behind."""
        process.kill()
        process.wait()
        end = time.monotonic() + 5  # the cluster notices by itself; what it does meanwhile is a worker's work
        while list(self.own_processes()) and time.monotonic() < end:
            time.sleep(0.1)
        for number, _ in list(self.own_processes()):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def run(self, kills: int, draw: random.Random, questions: int) -> dict[str, Any]:
        """Kill so many times while questions are asked, and let it finish."""
        process = self.start()
        for turn in range(kills):
            begun, end = len(self.asked()), time.monotonic() + PATIENCE
            more = begun + draw.randint(1, max(1, (questions - begun) // max(1, kills)))
            while process.poll() is None and len(self.asked()) < more and time.monotonic() < end:
                time.sleep(0.02)
            if process.poll() is not None or len(set(self.asked())) >= questions:
                break
            if turn % 2 == 0 and self.kill_worker(draw):
                self.kills["worker"] += 1
            else:
                self.kill_driver(process)
                self.kills["driver"] += 1
                process = self.start()
        return self.finish(process)


def _make(folder: Path, questions: int) -> Path:
    folder.mkdir()
    (folder / "target.py").write_text(TARGET)
    lines = [
        {"id": f"{number:04}", "question": f"What is number {number}?", "expected_chunks": [f"c{number % 5}"]}
        for number in range(questions)
    ]
    (folder / "golden.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **dict.fromkeys(OF_THE_RUN)}


def _problems(chain: Chain, result: dict[str, Any], reference: dict[str, Any], paid: int) -> list[str]:
    problems, questions = list[str](), len(reference["rows"])
    for name in ("metrics", "counts"):
        if result[name] != reference[name]:
            problems.append(f"other {name}")
    if [_row(row) for row in result["rows"]] != [_row(row) for row in reference["rows"]]:
        problems.append("other rows")
    asked, most = chain.asked(), questions + chain.kills.total() * CONCURRENCY
    for what, count in (("calls paid", paid), ("questions asked", len(asked))):
        if not questions <= count <= most:
            problems.append(f"{what}: {count}, not from {questions} to {most}")
    if len(set(asked)) != questions:
        problems.append(f"{len(set(asked))} questions were asked")
    if left := list((chain.folder / "state").glob("*.sqlite")):
        problems.append(f"left behind: {left}")
    return problems


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="default: 20")
    parser.add_argument("--questions", type=int, default=400, help="in each evaluation; default: 400")
    parser.add_argument("--seed", type=int, default=0, help="of the moments; default: 0")
    chosen = parser.parse_args()
    draw, start, done = random.Random(chosen.seed), time.monotonic(), Counter[str]()
    bad = again = number = 0
    with (
        tempfile.TemporaryDirectory(prefix="kill-engine-") as name,
        OpenAIServer(slow(answer_judge(), LATENCY)) as judge,
    ):
        reference = Chain(_make(Path(name) / "local", chosen.questions), "local", judge.base_url).run(0, draw, 0)
        while done.total() < chosen.kills:
            number += 1
            chain = Chain(_make(Path(name) / f"chain{number}", chosen.questions), "ray", judge.base_url)
            before = judge.calls
            kills = min(MOST_KILLS, chosen.kills - done.total())
            result = chain.run(kills, draw, chosen.questions)
            paid = judge.calls - before
            problems = _problems(chain, result, reference, paid)
            bad, done, again = bad + bool(problems), done + chain.kills, again + paid - chosen.questions
            how = ", ".join(f"{count} {what}" for what, count in sorted(chain.kills.items())) or "no"
            print(f"chain {number}: {how} kills, {paid} calls paid: {'; '.join(problems) or 'same rows'}", flush=True)
            if not chain.kills:
                raise SystemExit("no kill came in time; take more questions")
    kinds = f"{done['worker']} of workers, {done['driver']} of drivers"
    print(
        f"{done.total()} kills ({kinds}) on Ray, {number} chains of {chosen.questions} questions,"
        f" {time.monotonic() - start:.0f} s: calls paid again {again} (bound {done.total() * CONCURRENCY}), chains with"
        f" a problem {bad}"
    )
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
