"""One comparison from end to end: which runs, their rows, the verdict, and the record of it on the candidate's run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from evaltrack.api.choose_runs import choose_runs
from evaltrack.api.compare_sides import side_of_run
from evaltrack.api.rerun import ComparedRuns, rerunner_of
from evaltrack.api.saved_side import side_of_file
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import ComparisonConfig
from evaltrack.errors import UsageError
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.golden.reader import golden_name
from evaltrack.metrics.catalogue import metric_table
from evaltrack.metrics.criteria import parse_criteria
from evaltrack.records.run import Run
from evaltrack.report.comparison_summary import behind_words
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.escaping import clip
from evaltrack.report.html.comparison_page import comparison_html, comparison_screen
from evaltrack.report.run_text import comparison_note
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.system.processes import release_free_memory
from evaltrack.tracking.notes import COMPARISON_PAGE, accepted_words, log_comparison
from evaltrack.tracking.reader import shown_side_by_side, side_by_side
from evaltrack.tracking.store import Store, connect_to_read

if TYPE_CHECKING:
    from evaltrack.options import ComparisonOptions


def compare_runs(
    candidate: str | None = None,
    baseline: str | None = None,
    *,
    baseline_file: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    log: bool = True,
    tracking_uri: str | None = None,
    say: Callable[[str], object] = lambda _: None,
    ui_url: str | None = None,
    **settings: Unpack[ComparisonOptions],
) -> Comparison:
    """Compare two runs, question by question.

    Args:
        candidate: MLflow run id, its beginning, or the run's name; None takes the newest finished run of the golden set
            that `golden`, baseline or baseline file name.
        baseline: The same of the baseline; None takes the run that was set as the baseline of the golden set.
        baseline_file: A saved ``evaltrack run --output json`` instead of a baseline in MLflow.
        experiment: MLflow experiment of the newest run; None follows MLflow's own settings, and
            where these choose none it is the experiment of a baseline that is named.
        log: Record the comparison on the candidate's run.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        say: Receives messages on the reruns.
        ui_url: Where MLflow's UI is, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.
        **settings: The settings of the comparison, each as `evaltrack.compare.gate.ComparisonConfig` says, such as
            `max_drop`, `gate`, `max_reruns` or `min_coverage`.

    Raises:
        UsageError: an option is wrong, there is no baseline, or a run is not evaltrack's.
        InconclusiveError: the runs are not comparable, or one has not ended.
        TrackingError: the store is out of reach, or a run or its rows are gone.
    """
    if baseline and baseline_file:
        raise UsageError("name a baseline run or a baseline file, not both")
    config = settings_of(ComparisonConfig, settings)
    config.rules_by_form()  # what is wrong whatever the runs are is found at once
    golden = config.golden
    store = connect_to_read(tracking_uri, ui_url)
    saved = side_of_file(Path(baseline_file)) if baseline_file else None
    name = golden_name(golden) if golden else saved.info.signature.golden if saved else None
    candidate_run, compared_run = choose_runs(
        store, candidate, baseline, experiment, baseline_is_file=saved is not None, golden=name
    )
    was_signature = saved.info.signature if saved else compared_run.signature  # type: ignore[union-attr]
    table = metric_table(candidate_run.signature.scores, was_signature.scores)
    rules, criteria = config.rules(table), parse_criteria(config.require, table.metrics)
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder, ExitStack() as resources:
        was = saved or side_of_run(store, compared_run, Path(folder))  # type: ignore[arg-type]  # there is one of both
        now = side_of_run(store, candidate_run, Path(folder))
        accepted = accepted_words(store, candidate_run.run_id)
        runs = ComparedRuns(store, candidate_run, compared_run, now, was)
        rerunner = rerunner_of(runs, config.max_reruns, resources, say) if config.gate == "auto" else ""
        comparison = compare(
            was, now, rules, ignore=config.ignore, criteria=criteria, rerunner=rerunner, accepted=accepted
        )
    reruns = comparison.reruns
    if reruns.calls and not isinstance(rerunner, str):
        reruns = replace(reruns, tokens=rerunner.tokens, usd=rerunner.usd)
    release_free_memory()  # before the reports are made
    comparison = replace(
        comparison,
        reruns=reruns,
        compare_link=side_by_side(store, candidate_run, compared_run),
        screen=comparison_screen,
    )
    if log:
        _log(store, comparison, candidate_run, compared_run)
    return comparison


def _log(store: Store, comparison: Comparison, candidate: Run, baseline: Run | None) -> None:
    """Record a comparison on the candidate's run."""
    deltas = {f"delta/{metric.name}": metric.delta for metric in comparison.metrics if metric.shows_change}
    passes = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    counted = comparison.passing_compared
    result = {
        "baseline": comparison.baseline.run_id or comparison.baseline.name,
        "broke": comparison.count("broke") if counted else None,
        "fixed": comparison.count("fixed") if counted else None,
        "change": passes and passes.delta,
        "cause": clip(behind_words(comparison), 300),
    }
    texts = {"comparison.md": comparison_markdown(comparison), COMPARISON_PAGE: comparison_html(comparison)}
    release_free_memory()  # the page takes many times its size while it is made
    beside = shown_side_by_side(candidate, baseline)
    note = comparison_note(comparison, candidate.experiment_id, side_by_side=beside)
    logged = comparison_json(comparison)
    log_comparison(store, candidate.run_id, deltas, comparison.verdict, result, logged, texts, note)


def assert_no_regression(
    candidate: RunResult | str | None = None,
    baseline: RunResult | str | None = None,
    *,
    baseline_file: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    tracking_uri: str | None = None,
    **settings: Unpack[ComparisonOptions],
) -> Comparison:
    """Compare two runs and raise an AssertionError unless the verdict is ok.

    Args:
        candidate: A result, or a run as in `compare_runs`.
        baseline: A result, or a run as in `compare_runs`; None takes the baseline of the golden set.
        baseline_file: As in `compare_runs`.
        experiment: As in `compare_runs`.
        tracking_uri: As in `compare_runs`.
        **settings: As in `compare_runs`, such as `max_drop`, `allow_flips` or `gate`.

    Raises:
        AssertionError: the verdict is regression or unknown; the message is the comparison with its causes.
        UsageError: an option is wrong, there is no baseline, or a run is not evaltrack's.
        InconclusiveError: the runs are not comparable, or one has not ended.
        TrackingError: the store is out of reach, or a run or its rows are gone.
    """
    __tracebackhide__ = True
    run, other = (each.run_id if isinstance(each, RunResult) else each for each in (candidate, baseline))
    comparison = compare_runs(
        run, other, baseline_file=baseline_file, experiment=experiment, tracking_uri=tracking_uri, **settings
    )
    if comparison.verdict != "ok":
        raise AssertionError(comparison_text(comparison, everything=False))
    return comparison
