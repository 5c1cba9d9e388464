"""Readers of tags, numbers and `summary.json` in a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from mlflow.entities import Experiment, ExperimentTag, Metric, Run, RunData, RunInfo, RunTag

from evaltrack.api.report_html import _page
from evaltrack.errors import EvaltrackError
from evaltrack.evaluation.result import RunResult
from evaltrack.records import Signature
from evaltrack.records.run import Run as EvaltrackRun
from evaltrack.report.run_text import run_summary
from evaltrack.tracking.baselines import Baseline, list_baselines
from evaltrack.tracking.find_runs import find_evaluation, newest_evaluation
from evaltrack.tracking.notes import Accepted, accepted_questions
from evaltrack.tracking.store import Store
from evaltrack.tracking.tags import ROWS
from evaltrack.tracking.writer import SUMMARY
from scripts.fuzzing.reader import OWN, Reader, writable
from scripts.fuzzing.seeds import SIGNATURE, good_table

RUN_ID = "0" * 32
MOMENTS = (0, 1, -1, 1_700_000_000_000, 2**63 - 1, -(2**63), 253_402_300_800_000)
NUMBERS = (0.0, -1.0, 0.5, 3.0, 1e308, 2.0**63, float("nan"), float("inf"), float("-inf"))
MEASURED = ("num_questions", "num_errors", "recall_at_k", "mrr", "pass_rate", "judge_score")
TAGS = (
    *("evaltrack.golden", "evaltrack.signature", "evaltrack.system"),
    *("evaltrack.accepted.0", "evaltrack.accepted.1"),
    *("evaltrack.compare.verdict", "evaltrack.traces", "evaltrack.baseline.g", "evaltrack.golden_set.g", "mlflow.user"),
)


class Planted:
    """A tracking store in memory with one experiment and one run, all of which a stranger wrote."""

    def __init__(self, tags: Mapping[str, str], artifacts: Mapping[str, bytes], chance: Random) -> None:
        self._artifacts = artifacts
        moment = chance.choice(MOMENTS)
        info = RunInfo(RUN_ID, "0", "u", "FINISHED", moment, moment, "active", "x", run_name=tags.get("mlflow.user"))
        numbers = [Metric(name, chance.choice(NUMBERS), 0, 0) for name in MEASURED]
        held = [RunTag(name, text) for name, text in tags.items()]
        self._run = Run(info, RunData(metrics=numbers, tags=held))
        self._experiment = Experiment("0", "e", "x", "active", [ExperimentTag(*each) for each in tags.items()])

    def get_run(self, _run_id: str) -> Run:
        """The run, whichever is wanted."""
        return self._run

    def get_experiment(self, _experiment_id: str) -> Experiment:
        """The experiment."""
        return self._experiment

    def search_runs(self, *_: object, **__: object) -> list[Run]:
        """The run, whatever is searched for."""
        return [self._run]

    def download_artifacts(self, _run_id: str, path: str, folder: str) -> str:
        """An artifact as a file."""
        to = Path(folder) / path
        to.write_bytes(self._artifacts[path])
        return str(to)


def planted_store(
    tags: Mapping[str, str] | None = None, artifacts: Mapping[str, bytes] | None = None, seed: bytes = b""
) -> Store:
    """A store of a stranger's; the numbers in it are made of `seed`."""
    made: Any = Planted(tags or {"evaltrack.signature": SIGNATURE}, artifacts or {}, Random(seed))
    return Store("sqlite:///mlflow.db", made)


def planted_run() -> EvaltrackRun:
    """The run in it, with a good signature; it does not say how many questions it asked, so that any rows are read."""
    return EvaltrackRun(RUN_ID, "r", Signature.model_validate_json(SIGNATURE), experiment_id="0")


READ_TAGS: Sequence[Callable[[Store], object]] = (
    lambda store: list_baselines(store, "0"),
    lambda store: accepted_questions(store, RUN_ID),
    lambda store: find_evaluation(store, RUN_ID),
    lambda store: newest_evaluation(store, "0", "g"),
)


def tags(_folder: Path, raw: bytes) -> None:
    """One text in every tag of a run and its experiment, with numbers and moments of all sizes."""
    text = raw.decode("utf-8", "replace")
    store = planted_store(dict.fromkeys(TAGS, text), seed=raw)
    for read in READ_TAGS:
        with suppress(EvaltrackError):
            writable(read(store))


def report(_: Path, raw: bytes) -> None:
    """The summary of a run and its page, in a store with a stranger's tags."""
    artifacts = {SUMMARY: raw, ROWS: good_table()}
    store = planted_store(dict.fromkeys(TAGS, raw.decode("utf-8", "replace")) | GOOD, artifacts, raw)
    _page(store, planted_run()).encode()


GOOD = {"evaltrack.signature": SIGNATURE, "evaltrack.golden": "g"}


def small_summary() -> bytes:
    """The summary of a run of four questions."""
    made = RunResult(
        run_id=RUN_ID, experiment_id="0", status="FINISHED", signature=Signature.model_validate_json(SIGNATURE),
        metrics={"recall_at_k": 0.5, "mrr": 0.5, "pass_rate": 0.75, "judge_score": 0.5},
        counts={"recall_at_k": 4, "mrr": 4, "pass_rate": 4, "judge_score": 4},
        totals={"num_questions": 4, "num_errors": 0, "num_negatives": 0, "num_passed": 3},
        groups={"d": {"recall_at_k": (0.5, 4), "pass_rate": (0.75, 4)}, "easy": {"mrr": (0.5, 4)}},
        seconds={"target_seconds.p50": 0.5}, by_judge={"j": (0.5, 4)}, cost_usd={"target": 0.25}, criteria=(),
        notes=("a note",), errors=(), missed=(), link="", serve_command=None, read_table=list,
    )  # fmt: skip
    said = run_summary(made) | {"criteria": [{"criterion": "recall_at_k>=0.8", "value": 0.5, "met": False}]}
    return json.dumps(said).encode()


def tag_readers() -> dict[str, Reader]:
    """All readers of this area by name."""
    moment = "2026-01-01T00:00:00+00:00"
    written = (
        Baseline(golden="g", run_id=RUN_ID, by="me", at=moment, reason="why"),
        Accepted(id="1", tier=1, why="so", by="me", at=moment),
    )
    seeds = (SIGNATURE.encode(), *(each.model_dump_json().encode() for each in written), b"g", b"all", b"it's")
    return {
        "tags": Reader(tags, (), seeds),
        "summary and page": Reader(report, OWN, (small_summary(),), 2),
    }
