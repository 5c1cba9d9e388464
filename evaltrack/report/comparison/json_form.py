"""A comparison as JSON for machines, versioned by `schema`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from math import isfinite
from typing import Any, get_args

from evaltrack.compare.change import Change, Fate
from evaltrack.compare.comparison import Comparison, MetricDelta, Rule
from evaltrack.compare.gate import Threshold
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records.base import without_halves
from evaltrack.records.run import Run
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.comparison.culprit_words import culprit_words
from evaltrack.report.comparison.rules import reasons, rule_words
from evaltrack.report.comparison.words import verdict_words
from evaltrack.report.schemas.comparison import (
    CauseForm,
    ChangeForm,
    ComparisonForm,
    CriterionForm,
    GateForm,
    GroupForm,
    MetricForm,
    RuleForm,
    RunSide,
)
from evaltrack.report.schemas.form import CriterionState
from evaltrack.tracking.rows import columns_of

COMPARISON_SCHEMA = "evaltrack.comparison/1"

LISTS: dict[Fate, str] = {
    "broke": "flips",
    "lost": "lost",
    "lower score": "drops",
    "fixed": "fixes",
    "newly measured": "newly_measured",
    "higher score": "gains",
    "changed": "changed",
}
"""The list that holds the questions of each fate."""

SIDES = 2000
"""Questions whose rows of both sides are there."""

CULPRITS = 100
"""Sources behind what got worse, of which very many have one question each."""

SIDE_COLUMNS = ("answer", "error", "passed", "abstained", "tool_calls", *(score.name for score in SCORES))
"""What of a changed question's row stands in the JSON, besides its sources without their texts."""


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as an object that `json.dumps(…, allow_nan=False)` takes and UTF-8 can hold.

    Metrics, here and in groups, are by name. A `drop` is a share of the baseline's value, positive where the candidate
    is worse, null where that value is 0; `interval` is in the unit of the metric; a `threshold` has
    an `amount` that is a share where `relative` is true; `measured` is how many common questions each side measured.
    `questions` counts the common questions by what became of them. `flips` (broke), `lost`, `drops` (lower score),
    `fixes` (fixed), `newly_measured`, `gains` (higher score) and `changed` hold one object for each, of
    very many the worst; the first 2,000 of all hold both sides. `added`, `removed`, `edited` and
    `not_selected` hold ids. A number that is not finite is null.
    `culprits` holds the sources behind what got worse, or the errors, each with its questions, the 100 with the most.
    `gate` holds the settings of the rules, `rules` each rule with its state.
    """
    gate = comparison.gate
    made = ComparisonForm.of(
        comparison,
        schema=COMPARISON_SCHEMA,
        headline=verdict_words(comparison),
        reasons=reasons(comparison),
        rules=[_rule(rule, comparison) for rule in comparison.rules],
        gate=GateForm.of(
            gate,
            max_drop=_drops(gate.drops),
            domain_max_drop={domain: _drops(each) for domain, each in gate.domain_drops.items()},
        ),
        baseline=_run(comparison.baseline),
        candidate=_run(comparison.candidate),
        differences=[asdict(each) for each in comparison.differences],
        metrics=_metrics(comparison.metrics),
        loss_p=comparison.loss_p if comparison.passing_compared else None,
        reruns=asdict(comparison.reruns),
        culprits=[asdict(each) | {"words": culprit_words(each)} for each in comparison.culprits[:CULPRITS]],
        questions={fate: comparison.count(fate) for fate in get_args(Fate)},
        **_changes(comparison),
        num_drops=comparison.count("lower score"),
        errors=[asdict(each) for each in comparison.errors],
        domains=_groups(comparison, "domain"),
        difficulties=_groups(comparison, "difficulty"),
        categories=_groups(comparison, "category"),
        aims=[asdict(aim) for aim in comparison.aims],
        criteria=[
            CriterionForm.of(
                None,
                criterion=str(candidate.criterion),
                baseline=CriterionState.of(baseline),
                candidate=CriterionState.of(candidate),
            )
            for baseline, candidate in comparison.criteria
        ],
    )
    storable: dict[str, Any] = _storable(made)
    return storable


def _rule(rule: Rule, comparison: Comparison) -> dict[str, Any]:
    metric = rule.metric
    return RuleForm.of(
        rule,
        words=rule_words(rule, comparison),
        metric=metric and metric.name,
        value=metric.candidate if metric else rule.value,
        limit=None if metric else rule.limit,
        threshold=metric and metric.threshold and asdict(metric.threshold),
        names=list(rule.names),
    )


def _drops(drops: Mapping[str, Threshold]) -> dict[str, Any]:
    return {name: asdict(drop) for name, drop in drops.items()}


def _changes(comparison: Comparison) -> dict[str, list[dict[str, Any]]]:
    lists: dict[str, list[dict[str, Any]]] = {}
    place = 0
    for fate, changes in comparison.by_fate.items():
        lists[LISTS[fate]] = [_change(change, whole=place + n < SIDES) for n, change in enumerate(changes)]
        place += len(changes)
    return lists


def _metrics(metrics: Iterable[MetricDelta]) -> dict[str, Any]:
    return {
        metric.name: MetricForm.of(
            metric,
            interval_method=metric.method,
            threshold=metric.threshold and asdict(metric.threshold),
            measured=metric.measured and dict(zip(("baseline", "candidate"), metric.measured, strict=True)),
        )
        for metric in metrics
    }


def _groups(comparison: Comparison, kind: str) -> dict[str, Any]:
    groups = (group for group in comparison.groups if group.kind == kind)
    return {group.name: GroupForm.of(group, metrics=_metrics(group.metrics)) for group in groups}


def _change(change: Change, *, whole: bool) -> dict[str, Any]:
    cause = CauseForm.of(change.cause)
    return ChangeForm.of(
        change,
        **cause | {"from": change.was, "cause": cause["kind"]},
        to=change.now,
        also=list(map(CauseForm.of, change.also)),
        dropped=_moves(change.dropped),
        raised=_moves(change.raised),
        rerun=change.rerun and asdict(change.rerun),
        before=_side(change.before if whole else None),
        after=_side(change.after if whole else None),
    )


def _moves(moves: Iterable[tuple[str, float, float]]) -> dict[str, Any]:
    return {name: {"baseline": was, "candidate": now} for name, was, now in moves}


def _run(run: Run) -> dict[str, Any]:
    return RunSide.of(run, run_id=run.run_id or None, signature=run.signature.model_dump())


def _side(row: StoredRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    columns = columns_of(row)
    names = ("chunk_id", "title", "url", "score")
    sources = columns["sources"] and [{name: source[name] for name in names} for source in columns["sources"]]
    return {name: columns[name] for name in (*SIDE_COLUMNS, *row.own)} | {"sources": sources}


def _storable(value: Any) -> Any:
    """The value with null for what is no number, and with the replacement character for half of a surrogate pair."""
    if isinstance(value, str):
        return without_halves(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return value
