"""Defines the JSON form of comparisons (`evaltrack compare --output json`), and converts a comparison to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasPath, BeforeValidator, Field

from evaltrack.compare.change import Cause, CauseKind, Change, CulpritKind, Fate, Outcome
from evaltrack.compare.comparison import (
    Comparison,
    GroupDelta,
    MetricDelta,
    Rule,
    RuleKind,
    RuleState,
    Verdict,
)
from evaltrack.compare.gate import GateKind
from evaltrack.compare.pairing import ErrorCount
from evaltrack.compare.reruns import Rerun, Reruns
from evaltrack.compare.run_differences import RunDifference
from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.metric import Threshold
from evaltrack.records import Signature
from evaltrack.records.row import Row
from evaltrack.report.comparison_words import reasons
from evaltrack.report.schemas.form import Delta, Form
from evaltrack.report.templates import say
from evaltrack.tracking.rows import columns_of


class RunSide(Form):
    """One run; `run_id` is null for a saved file."""

    run_id: Annotated[str | None, BeforeValidator(lambda run_id: run_id or None)]
    name: str
    link: str | None
    num_questions: int
    num_errors: int
    signature: Signature


class GateForm(Form):
    """The rules that were applied."""

    kind: GateKind
    allow_flips: int
    min_coverage: float | None
    allow_partial: bool
    max_drop: dict[str, Threshold] = Field(validation_alias="drops")
    domain_max_drop: dict[str, dict[str, Threshold]] = Field(validation_alias="domain_drops")


class RuleForm(Form):
    """One rule of the gate: its value and limit, in questions or in the unit of its metric."""

    kind: RuleKind
    state: RuleState
    words: str
    metric: str | None
    where: str
    value: int | float
    limit: int | None
    threshold: Threshold | None
    p_value: float | None
    names: list[str]


def _both_sides(pair: Sequence[float] | None) -> dict[str, float] | None:
    return dict(zip(("baseline", "candidate"), pair, strict=True)) if pair else None


class MetricForm(Form):
    """One metric on both sides over `n` questions; `drop` is a share of the baseline's value, null if that is 0."""

    baseline: float
    candidate: float
    delta: float
    drop: float | None
    interval: list[float | None] | None
    interval_method: str | None = Field(validation_alias="method")
    p_value: float | None
    threshold: Threshold | None
    regressed: bool
    n: int
    measured: Annotated[dict[str, int] | None, BeforeValidator(_both_sides)]
    wins: int
    losses: int


def _by_name(metrics: Iterable[MetricDelta]) -> dict[str, MetricDelta]:
    return {metric.name: metric for metric in metrics}


Metrics = Annotated[dict[str, MetricForm], BeforeValidator(_by_name)]


class GroupForm(Form):
    """The metrics and flips of one domain, difficulty or category."""

    num_questions: int
    pass_to_fail: int
    fail_to_pass: int
    metrics: Metrics


class CulpritForm(Form):
    """A page with its chunks, an error, or a cause, with the questions that it made worse; each question is in one.

    `page_new`: the baseline returned nothing of the page; `page_deleted`: the candidate returns nothing of it;
    `page_rarer`: the candidate returns it for other questions; `page_rose`: it newly ranks above the expected source.
    """

    kind: CulpritKind
    page: str | None
    message: str
    link: str | None
    parts: list[str]
    ids: list[str]
    words: str


def _moves(moves: Iterable[tuple[str, float, float]]) -> dict[str, Any]:
    return {name: _both_sides(pair) for name, *pair in moves}


Moves = Annotated[dict[str, Delta], BeforeValidator(_moves)]


def _of_cause(name: str) -> Any:
    return Field(validation_alias=AliasPath("cause", name))


class ChangeForm(Form):
    """One question that differs; the first of them hold the rows of both sides."""

    id: str
    fate: Fate
    question: str
    domain: str
    difficulty: str | None
    category: str | None
    from_: Outcome = Field(validation_alias="was", serialization_alias="from")
    to: Outcome = Field(validation_alias="now")
    cause: CauseKind = _of_cause("kind")
    detail: str = _of_cause("detail")
    source: str | None = _of_cause("source")
    rank_before: int | None = _of_cause("rank_before")
    rank_after: int | None = _of_cause("rank_after")
    risers: list[str] = _of_cause("risers")
    link: str | None = _of_cause("link")
    also: list[Cause]
    dropped: Moves
    rerun: Rerun | None
    accepted: str | None
    counts: bool
    raised: Moves
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class ComparedAim(Form):
    """One aim of the rubric. `improvement` is that over the baseline of the comparison; null if that is 0."""

    metric: str
    aim: float = Field(validation_alias=AliasPath("aim", "mean"))
    baseline: float
    candidate: float = Field(validation_alias="measured")
    reached: bool
    improvement: float | None = Field(validation_alias="over_baseline")
    published: float = Field(validation_alias=AliasPath("aim", "published"))
    published_improvement: float = Field(validation_alias="over_published")
    aim_improvement: float = Field(validation_alias=AliasPath("aim", "improvement"))


class ComparisonForm(Form):
    """A comparison; `questions` counts the common questions by fate."""

    schema_: Literal["evaltrack.comparison/1"] = Field("evaltrack.comparison/1", alias="schema")
    verdict: Verdict
    headline: str
    exit_code: Literal[0, 1, 3]
    reasons: list[str]
    rules: list[RuleForm]
    gate: GateForm
    baseline: RunSide
    candidate: RunSide
    differences: list[RunDifference]
    compare_link: str | None
    num_common: int
    metrics: Metrics
    loss_p: float | None
    reruns: Reruns
    causes: dict[CauseKind, int]
    culprits: list[CulpritForm]
    questions: dict[Fate, int]
    flips: list[ChangeForm] = Field(validation_alias=AliasPath("changes", "broke"))
    lost: list[ChangeForm] = Field(validation_alias=AliasPath("changes", "lost"))
    drops: list[ChangeForm] = Field(validation_alias=AliasPath("changes", "lower score"))
    fixes: list[ChangeForm] = Field(validation_alias=AliasPath("changes", "fixed"))
    newly_measured: list[ChangeForm] = Field(validation_alias=AliasPath("changes", "newly measured"))
    gains: list[ChangeForm] = Field(validation_alias=AliasPath("changes", "higher score"))
    changed: list[ChangeForm] = Field(validation_alias=AliasPath("changes", "changed"))
    num_drops: int
    errors: list[ErrorCount]
    added: list[str]
    removed: list[str]
    edited: list[str]
    not_selected: list[str]
    domains: dict[str, GroupForm] = Field(validation_alias=AliasPath("grouped", "domain"))
    difficulties: dict[str, GroupForm] = Field(validation_alias=AliasPath("grouped", "difficulty"))
    categories: dict[str, GroupForm] = Field(validation_alias=AliasPath("grouped", "category"))
    ignored: list[str]
    left_out: list[str]
    notes: list[str]
    aims: list[ComparedAim]


class MissingComparison(Form):
    """A golden set that could not be compared."""

    schema_: Literal["evaltrack.comparison/1"] = Field("evaltrack.comparison/1", alias="schema")
    golden: str
    verdict: Verdict
    headline: str
    exit_code: Literal[0, 1, 3]
    reasons: list[str]


class ComparisonsForm(Form):
    """The comparisons of several golden sets."""

    comparisons: list[ComparisonForm | MissingComparison]


FORMS = {
    "comparison": (ComparisonForm, "A comparison: evaltrack compare --output json"),
    "comparisons": (ComparisonsForm, "Comparisons of several golden sets"),
}


SIDES = 2000
"""Questions that hold the rows of both sides."""

CULPRITS = 100
"""Culprits that are listed. In a large comparison very many have one question each."""

SIDE_COLUMNS = ("answer", "error", "passed", "abstained", "tool_calls", *(score.name for score in SCORES))
"""Columns of a changed question's row in the JSON, besides its sources without their texts."""


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as an object that `json.dumps(…, allow_nan=False)` accepts and UTF-8 can hold.

    Metrics, here and in groups, are by name. A `drop` is a share of the baseline's value, positive if the candidate is
    worse, null if that value is 0; `interval` is in the unit of the metric; the `amount` of a `threshold` is a share if
    `relative` is true; `measured` is the number of common questions that each side measured. `questions` counts the
    common questions by fate. `flips` (broke), `lost`, `drops` (lower score), `fixes` (fixed), `newly_measured`, `gains`
    (higher score) and `changed` hold one object for each question, or the worst of very many; the first 2,000 of all
    hold both sides. `added`, `removed`, `edited` and `not_selected` hold ids. A number that is not finite is null.
    `culprits` holds the sources or errors of the questions that got worse, each with its questions: the 100 with the
    most. `gate` holds the settings of the rules, `rules` each rule with its state.
    """
    grouped: dict[str, dict[str, GroupDelta]] = {"domain": {}, "difficulty": {}, "category": {}}
    for group in comparison.groups:
        grouped[group.kind][group.name] = group
    return ComparisonForm.of(
        comparison,
        headline=say.verdict(comparison),
        reasons=reasons(comparison),
        rules=[_rule(rule, comparison) for rule in comparison.rules],
        loss_p=comparison.loss.p if comparison.passing_compared else None,
        culprits=[CulpritForm.of(each, words=say.culprit(each)) for each in comparison.culprits[:CULPRITS]],
        questions={fate: comparison.count(fate) for fate in get_args(Fate)},
        num_drops=comparison.count("lower score"),
        notes=[say.redeclared(comparison.redeclared)] if comparison.redeclared else [],
        changes=_changes(comparison),
        grouped=grouped,
    ).data()


def _rule(rule: Rule, comparison: Comparison) -> RuleForm:
    words, metric = say.rule(rule, comparison), rule.metric
    if metric is None:
        return RuleForm.of(rule, words=words, threshold=None)
    return RuleForm.of(
        rule, words=words, metric=metric.name, value=metric.candidate, limit=None, threshold=metric.threshold
    )


def _changes(comparison: Comparison) -> dict[Fate, list[ChangeForm]]:
    places = count()  # the first of all fates hold both sides
    return {
        fate: [_change(change, whole=next(places) < SIDES) for change in changes]
        for fate, changes in comparison.by_fate.items()
    }


def _change(change: Change, *, whole: bool) -> ChangeForm:
    sides = (_side(each if whole else None) for each in (change.before, change.after))
    return ChangeForm.of(change, **dict(zip(("before", "after"), sides, strict=True)))


def _side(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    columns = columns_of(row)
    names = ("chunk_id", "title", "url", "score")
    sources = columns["sources"] and [{name: source[name] for name in names} for source in columns["sources"]]
    own = {name: score for name, score in row.scores.items() if name not in columns}
    return {name: columns[name] for name in SIDE_COLUMNS} | own | {"sources": sources}
