"""Compares two runs, or runs of several golden sets with their baselines; logs the result or asserts no regression."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from evaltrack.api.baselines import choose_runs
from evaltrack.api.compare_sides import side_of_file, side_of_run
from evaltrack.api.rerun import rerunner_of
from evaltrack.compare.comparison import ComparedSet, Comparison, SetComparisons
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import ComparisonConfig
from evaltrack.errors import GoldenError, InconclusiveError, UsageError, listed
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.golden.reader import golden_name, open_golden
from evaltrack.metrics.catalogue import metric_table
from evaltrack.report.comparison_text import comparison_markdown, comparison_note, comparison_text
from evaltrack.report.escaping import one_line
from evaltrack.report.html.comparison_page import comparison_html, comparison_screen
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.report.templates import say
from evaltrack.system.processes import release_free_memory
from evaltrack.tracking.find_runs import shown_side_by_side
from evaltrack.tracking.notes import COMPARISON_PAGE, accepted_words, log_comparison
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
    **settings: Unpack[ComparisonOptions],
) -> Comparison:
    """Compare two runs, question by question.

    Args:
        candidate: MLflow run id, its beginning, or the run's name; None takes the newest finished run of the golden set
            that `golden`, baseline or baseline file name.
        baseline: The same for the baseline; None takes the run that was set as the baseline of the golden set.
        baseline_file: A saved ``evaltrack run --output json`` instead of a baseline in MLflow.
        experiment: MLflow experiment of the newest run; None follows MLflow's own settings, and if these choose none
            takes the experiment of the named baseline.
        log: Record the comparison on the candidate's run.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        say: Receives messages on the reruns.
        **settings: The settings of the comparison, described in `evaltrack.compare.gate.ComparisonConfig`, such as
            `max_drop`, `gate`, `max_reruns` or `min_coverage`.

    Raises:
        UsageError: an option is wrong, there is no baseline, or a run is not evaltrack's.
        InconclusiveError: the runs are not comparable, or one has not ended.
        TrackingError: the store is out of reach, or a run or its rows are gone.
    """
    if baseline and baseline_file:
        raise UsageError("name a baseline run or a baseline file, not both")
    config = settings_of(ComparisonConfig, settings)
    golden = config.golden
    store = connect_to_read(tracking_uri)
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder, ExitStack() as resources:
        saved = side_of_file(Path(baseline_file), Path(folder)) if baseline_file else None
        name = golden_name(golden) if golden else saved.info.signature.golden if saved else None
        candidate_run, baseline_run = choose_runs(
            store, candidate, baseline, experiment, saved=saved.info if saved else None, golden=name
        )
        rules = config.rules(metric_table(candidate_run.signature.scores, baseline_run.signature.scores))
        was = saved or side_of_run(store, baseline_run, Path(folder))
        now = side_of_run(store, candidate_run, Path(folder))
        accepted = accepted_words(store, candidate_run.run_id)
        rerunner = rerunner_of(store, was, now, config.max_reruns, resources, say) if config.gate == "auto" else ""
        comparison = compare(was, now, rules, ignore=config.ignore, rerunner=rerunner, accepted=accepted)
    reruns = comparison.reruns
    if reruns.calls and not isinstance(rerunner, str):
        reruns = replace(reruns, tokens=rerunner.tokens, usd=rerunner.usd)
    release_free_memory()  # before the reports are made
    beside = shown_side_by_side(candidate_run, baseline_run)
    place = (candidate_run.experiment_id, candidate_run.run_id, baseline_run.run_id)
    link = store.compare_link(*place) if beside else None
    comparison = replace(comparison, reruns=reruns, compare_link=link, screen=comparison_screen)
    if log:
        _log(store, comparison, beside=beside)
    return comparison


def _log(store: Store, comparison: Comparison, *, beside: bool) -> None:
    candidate, baseline = comparison.candidate, comparison.baseline
    passes = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    counted = comparison.passing_compared
    flips = {fate: comparison.count(fate) for fate in ("broke", "fixed")} if counted else {}
    result = {
        "baseline": baseline.run_id or baseline.name,
        "broke": flips.get("broke"),
        "fixed": flips.get("fixed"),
        "change": passes and passes.delta,
        "cause": one_line(say.cause(comparison), 300),
    }
    texts = {"comparison.md": comparison_markdown(comparison), COMPARISON_PAGE: comparison_html(comparison)}
    release_free_memory()  # the page takes many times its size while it is made
    note = comparison_note(comparison, candidate.experiment_id, side_by_side=beside)
    form = comparison_json(comparison)
    log_comparison(store, candidate.run_id, flips, comparison.verdict, result, form, texts, note)


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


# Several golden sets


def compare_sets(
    golden_sets: Sequence[str | os.PathLike[str]],
    *,
    experiment: str | None = None,
    log: bool = True,
    tracking_uri: str | None = None,
    say: Callable[[str], object] = lambda _: None,
    **settings: Unpack[ComparisonOptions],
) -> SetComparisons:
    """Compare the newest run of each golden set with the baseline of that set, question by question.

    A set cannot be compared if it has no baseline, or its newest run failed, is the baseline itself or measured
    something else. Its verdict is then unknown, and the other sets are compared all the same. A rule for a domain is
    applied to the sets that have it.

    Args:
        golden_sets: Golden sets, by their files or names.
        experiment: MLflow experiment to look in; None follows MLflow's own settings.
        log: Record each comparison on its candidate's run.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        say: Receives messages on the reruns.
        **settings: As in `compare_runs`, except `golden`.

    Raises:
        UsageError: an option is wrong, or no set has a run and a baseline.
    """
    paths = list({golden_name(each): each for each in map(str, golden_sets)}.values())
    config = settings_of(ComparisonConfig, settings)
    if not paths:
        raise UsageError("no golden set was named; name at least one")
    domains = {path: _domains(path) for path in paths}
    _check_rules(config, domains)
    shared: Any = {"experiment": experiment, "tracking_uri": tracking_uri, "log": log, "say": say}
    sets, wrong = list[ComparedSet](), list[str]()
    for path in paths:
        own: Any = {**settings, "golden": path, "max_drop": _rules_for(config.max_drop, domains[path])}
        try:
            made, problem = compare_runs(**shared, **own), ""
        except (InconclusiveError, UsageError) as error:
            made, problem = None, str(error)
            wrong += [f"{path}: {problem}"] if isinstance(error, UsageError) else []
        sets.append(ComparedSet(golden_name(path), made, problem))
    if len(wrong) == len(sets):
        raise UsageError(listed(wrong))
    return SetComparisons(tuple(sets))


def _domains(path: str) -> frozenset[str] | None:
    """Return the domains of a golden set; None if its file is missing or cannot be read."""
    try:
        return frozenset(open_golden(path).stats.domains) if Path(path).is_file() else None
    except GoldenError:
        return None


def _check_rules(config: ComparisonConfig, domains: dict[str, frozenset[str] | None]) -> None:
    """Refuse a rule for a domain that none of the sets has."""
    there = domains.values()
    for domain in filter(None, map(_domain, config.max_drop)):
        if all(each is not None and domain not in each for each in there):
            raise UsageError(f"`max_drop=`: no golden set has a question of domain `{domain}`")


def _rules_for(rules: Sequence[str], domains: frozenset[str] | None) -> list[str]:
    """Return the rules without those for domains of other sets; all rules if the domains are unknown."""
    return [rule for rule in rules if domains is None or _domain(rule) in ("", *domains)]


def _domain(rule: str) -> str:
    """Return the domain of a rule; empty for the whole set."""
    return rule.strip().rpartition(":")[0]
