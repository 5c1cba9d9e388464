"""Runs the bundled showcase: one golden set, evaluated before and after a change of its retriever."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

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

if TYPE_CHECKING:
    from evaltrack.options import EvaluationOptions

GOLDEN = "travel.jsonl"
BEFORE, AFTER = "pages cut by headings", "pages cut into 120 words"
CHANGE = "chunk=words:120"
"""The change: means hardly move, but single questions break."""

REASON = "evaltrack run --demo"
"""The reason stored with the showcase's baseline."""


class DemoRuns(NamedTuple):
    """The two runs of the showcase; the first is the baseline of its golden set."""

    before: RunResult
    after: RunResult


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


def run_demo(
    *,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
    progress: ProgressChoice = None,
    **settings: Unpack[EvaluationOptions],
) -> DemoRuns:
    """Evaluate BM25 on the showcase's golden set, make that its baseline, and evaluate it again after a change.

    No key and no server are needed. `compare_runs` then shows what the change broke.

    Args:
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: The address of MLflow's UI, for links.
        progress: As in `run_eval`.
        **settings: As in `run_eval`.

    Raises:
        UsageError: the golden set `travel` has a baseline set by the user in the experiment, or a setting is wrong.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
    """
    golden = demo_golden()
    named = {name: settings[name] for name in ("experiment",) if name in settings}
    experiment = settings_of(EvaluationConfig, named).experiment or None
    _check_baseline(golden, experiment, tracking_uri)
    corpus = f"bm25:{golden.parent / 'corpus' / golden.stem}"

    def evaluate(target: str, name: str) -> RunResult:
        settings["run_name"] = name
        return run_eval(golden, target=target, tracking_uri=tracking_uri, ui_url=ui_url, progress=progress, **settings)

    before = evaluate(corpus, BEFORE)
    set_baseline(before.run_id, reason=REASON, experiment=experiment, tracking_uri=tracking_uri)
    after = evaluate(f"{corpus}?{CHANGE}", AFTER)
    return DemoRuns(before, after)


def _check_baseline(golden: Path, experiment: str | None, tracking_uri: str | None) -> None:
    """Refuse to replace a baseline that a user has set."""
    store = connect(tracking_uri)
    baseline = stored_baseline(store, choose_experiment(store, experiment).experiment_id, golden.stem)
    if baseline is not None and baseline.reason != REASON:
        raise UsageError(
            f"golden set `{golden.stem}` of this experiment has a baseline that is not of the showcase;"
            " name another experiment with `experiment=demo`"
        )
