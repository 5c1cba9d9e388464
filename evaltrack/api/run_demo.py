"""Runs the bundled showcase: one golden set, evaluated before and after a change of its retriever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evaltrack
from evaltrack.api.baselines import set_baseline
from evaltrack.api.progress_bar import ProgressChoice
from evaltrack.api.run_eval import run_eval
from evaltrack.errors import UsageError
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.tracking.baselines import get_baseline as stored_baseline
from evaltrack.tracking.store import choose_experiment, connect

GOLDEN = "travel.jsonl"
BEFORE, AFTER = "chunks by heading", "chunks of 120 words"
CHANGE = "chunk=words:120"
"""The change: means hardly move, but single questions break."""

REASON = "evaltrack run --demo"
"""The reason stored with the showcase's baseline."""


def demo_golden() -> Path:
    """Return the showcase's golden set, which has its corpus next to it, from the installation or the checkout.

    Raises:
        UsageError: this installation has none.
    """
    package = Path(evaltrack.__file__).parent
    places = (package / "showcase" / GOLDEN, package.parent / "golden" / GOLDEN)
    for path in places:
        if path.is_file():
            return path
    raise UsageError(f"the showcase is not in this installation ({places[0]}); install evaltrack from a wheel again")


def run_demo(progress: ProgressChoice = None, **settings: Any) -> tuple[RunResult, RunResult]:
    """Evaluate BM25 on the showcase's golden set, make that its baseline, and evaluate it again after a change.

    No key and no server are needed. `compare_runs` then shows what the change broke.

    Args:
        progress: As in `run_eval`.
        **settings: As in `run_eval`.

    Raises:
        UsageError: the golden set `travel` has a baseline set by the user in the experiment, or a setting is wrong.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
    """
    golden = demo_golden()
    named = {"experiment": settings["experiment"]} if "experiment" in settings else {}
    experiment = settings_of(EvaluationConfig, named).experiment or None
    store = connect()
    baseline = stored_baseline(store, choose_experiment(store, experiment).experiment_id, golden.stem)
    if baseline is not None and baseline.reason != REASON:
        problem = f"golden set `{golden.stem}` of this experiment has a baseline that is not of the showcase"
        raise UsageError(f"{problem}; name another experiment with `experiment=demo`")
    target = f"bm25:{golden.parent / 'corpus' / golden.stem}"
    before = run_eval(golden, target=target, progress=progress, **{**settings, "run_name": BEFORE})
    set_baseline(before.run_id, reason=REASON, experiment=experiment)
    after = run_eval(golden, target=f"{target}?{CHANGE}", progress=progress, **{**settings, "run_name": AFTER})
    return before, after
