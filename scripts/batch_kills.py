#!/usr/bin/env python3
"""Kill evaluations that judge in batches, and check that each verdict is paid for once and the numbers are the same.

A golden set is evaluated with `--judge-mode batch` against a loopback server that speaks OpenAI's Batch protocol, in
files of at most `--lines` calls; of its batches one expires in part, one has failed lines, one breaks its download
off. The process is killed with SIGKILL while it asks, uploads, polls, downloads and judges, and gone on with by
`--resume auto`. At the end the metrics must be those of an evaluation that judged online, to the last bit.

    python scripts/batch_kills.py --questions 5000 --kills 12 --seed 0

Exits 1 if a number differs, or more was paid for twice than calls were in flight at the kills.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))

from tests.openai_server import server_process  # noqa: E402 - found through the path above

PATIENCE, CONCURRENCY = 600.0, 8
PROGRAM = (
    "from evaltrack.evaluation import batch_files; batch_files.MAX_LINES = {lines};"
    "from evaltrack.cli import main; main()"
)
OF_THE_RUN = ("seconds", "started_at", "trace_id")
"""What is another in each run."""

Stats = dict[str, Any]
MOMENTS: dict[str, Callable[[Stats], bool]] = {
    "asking": lambda _: True,
    "uploading": lambda stats: stats["files"] > 0,
    "polling": lambda stats: stats["batches"] > 0,
    "downloading": lambda stats: stats["in_batches"] > 0,
    "judging": lambda stats: stats["in_batches"] > 0 and stats["files"] == 0,
}


@dataclass(frozen=True)
class Place:
    """Where an evaluation has its files, and the server that judges."""

    folder: Path
    base_url: str
    lines: int

    def start(self, mode: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Evaluate, or go on with what was killed."""
        own = {name: str(self.folder / mode / name.lower()) for name in ("STATE", "CACHE")}
        env = os.environ | {f"EVALTRACK_{name}_DIR": path for name, path in own.items()}
        env |= {"OPENAI_BASE_URL": self.base_url, "PYTHONPATH": str(REPO), "MLFLOW_DISABLE_TELEMETRY": "true"}
        env |= {"MLFLOW_TRACKING_URI": f"sqlite:///{self.folder}/{mode}.db"}
        options = ["run", "golden.jsonl", "-t", "recorded:answers.jsonl", "--judge", "openai:gpt-4o-mini"]
        options += ["--judge-mode", mode, "--traces", "off", "--resume", "auto", "--output", "json"]
        options += ["--concurrency", str(CONCURRENCY)]
        command = [sys.executable, "-c", PROGRAM.format(lines=self.lines), *options]
        err = (self.folder / f"{mode}.err").open("a")
        with err:
            return subprocess.Popen(command, cwd=self.folder, env=env, stdout=stdout, stderr=err, text=True)

    def finish(self, mode: str) -> dict[str, Any]:
        """The result of an evaluation that nobody kills."""
        with self.start(mode) as process:
            out, _ = process.communicate(timeout=PATIENCE)
        if process.returncode:
            raise SystemExit(f"exit {process.returncode}: {(self.folder / f'{mode}.err').read_text()[-2000:]}")
        found: dict[str, Any] = json.loads(out)
        return found

    def stats(self) -> Stats:
        """What the server has counted."""
        with urllib.request.urlopen(f"{self.base_url}/stats") as reply:  # noqa: S310 - a server on loopback
            counted: Stats = json.load(reply)
            return counted

    def kill(self, moment: str, delay: float) -> str:
        """Start, wait for a moment and a little longer, and kill; the outcome in words."""
        process, end = self.start("batch", subprocess.DEVNULL), time.monotonic() + PATIENCE
        with process:
            while process.poll() is None and time.monotonic() < end and not MOMENTS[moment](self.stats()):
                time.sleep(0.02)
            time.sleep(delay)
            ended = process.poll()
            process.kill()
        return f"{moment}: killed" if ended is None else f"{moment}: had ended with {ended}"


def _write(folder: Path, number: int) -> None:
    words = [(f"q{each}", f"What of number {each}?", f"Number {each} is {each * each}.") for each in range(number)]
    golden = [{"id": key, "question": question, "expected_answer": answer} for key, question, answer in words]
    answers = [{"id": key, "answer": answer, "prompt_tokens": 10, "completion_tokens": 5} for key, _, answer in words]
    for name, lines in (("golden", golden), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _of_the_answer(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is another in each run: a kill after the run has ended leaves all verdicts in the cache."""
    verdicts = [{**verdict, "cached": None} for verdict in row["verdicts"]]
    return {**row, **dict.fromkeys(OF_THE_RUN), "verdicts": verdicts}


def _check(online: dict[str, Any], batch: dict[str, Any], paid: Stats, questions: int, kills: int) -> list[str]:
    problems = []
    if batch["metrics"] != online["metrics"] or batch["counts"] != online["counts"]:
        problems.append(f"other numbers: {batch['metrics']} instead of {online['metrics']}")
    was, now = ({row["id"]: _of_the_answer(row) for row in each["rows"]} for each in (online, batch))
    if different := [key for key in was if was[key] != now.get(key)]:
        first = different[0]
        parts = [name for name in was[first] if was[first][name] != now.get(first, {}).get(name)]
        problems.append(f"{len(different)} rows differ: {first} in {parts}")
    if paid["prompts"] != questions:
        problems.append(f"{paid['prompts']} of {questions} verdicts were asked for")
    if paid["paid"] - paid["prompts"] > kills * CONCURRENCY:
        problems.append(f"{paid['paid'] - paid['prompts']} verdicts were paid for twice")
    return problems


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=5000, help="default: 5000")
    parser.add_argument("--kills", type=int, default=12, help="default: 12")
    parser.add_argument("--lines", type=int, default=1000, help="calls of a file at most; default: 1000")
    parser.add_argument("--seed", type=int, default=0, help="of the moments; default: 0")
    chosen = parser.parse_args()
    draw = random.Random(chosen.seed)  # noqa: S311 - moments, no secrets
    with tempfile.TemporaryDirectory(prefix="batch-kills-") as name:
        folder = Path(name)
        _write(folder, chosen.questions)
        with server_process() as base_url:
            online = Place(folder, base_url, chosen.lines).finish("online")
        with server_process("--batch-looks", "3", "--batch-troubles", "expire,fail,cut") as base_url:
            place = Place(folder, base_url, chosen.lines)
            for number in range(chosen.kills):
                moment = list(MOMENTS)[number % len(MOMENTS)]
                print(place.kill(moment, draw.uniform(0, 1.5) + (6 if moment == "asking" else 0)), flush=True)
            batch, paid = place.finish("batch"), place.stats()
    problems = _check(online, batch, paid, chosen.questions, chosen.kills)
    print(
        f"{chosen.questions} questions, {chosen.kills} kills: {paid['paid']} verdicts paid, {paid['in_batches']} in"
        f" {paid['batches']} batches, {paid['paid'] - paid['prompts']} twice; files left {paid['files']}"
    )
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
