"""The forms of a comparison as JSON: `evaltrack compare --output json`, and of several golden sets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from evaltrack.compare.change import CauseKind, CulpritKind, Fate, Outcome
from evaltrack.compare.comparison import ComparedAim, RuleKind, RuleState, Verdict
from evaltrack.compare.gate import GateKind, Threshold
from evaltrack.compare.pairing import ErrorCount
from evaltrack.compare.reruns import Rerun, Reruns
from evaltrack.compare.run_differences import RunDifference
from evaltrack.records import Signature
from evaltrack.report.schemas.form import CriterionState, Delta, Form


class RunSide(Form):
    """One run; `run_id` is null for a saved file."""

    run_id: str | None
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
    max_drop: dict[str, Threshold]
    domain_max_drop: dict[str, dict[str, Threshold]]


class RuleForm(Form):
    """One rule of the gate: its value and limit, in questions or in the unit of its metric."""

    kind: RuleKind
    state: RuleState
    words: str
    metric: str | None
    where: str
    value: float
    limit: int | None
    threshold: Threshold | None
    p_value: float | None
    names: list[str]


class Measured(Form):
    """How many common questions each side measured."""

    baseline: int
    candidate: int


class MetricForm(Form):
    """One metric on both sides over `n` questions; `drop` is a share of the baseline's value, null where that is 0."""

    baseline: float
    candidate: float
    delta: float
    drop: float | None
    interval: list[float | None] | None
    interval_method: str | None
    p_value: float | None
    threshold: Threshold | None
    regressed: bool
    n: int
    measured: Measured | None
    wins: int
    losses: int


class GroupForm(Form):
    """The metrics and flips of one domain, difficulty or category."""

    num_questions: int
    pass_to_fail: int
    fail_to_pass: int
    metrics: dict[str, MetricForm]


class CauseForm(Form):
    """Why a question changed."""

    kind: CauseKind
    detail: str
    source: str | None
    rank_before: int | None
    rank_after: int | None
    displaced_by: str | None
    link: str | None


class CulpritForm(Form):
    """What is behind questions that got worse: a page with its chunks, an error or a cause; each question is in one.

    `page_new`: the baseline returned nothing of the page; `page_deleted`: the candidate returns nothing of it;
    `page_rarer`: it does for other questions; `page_rose`: it newly stands above the expected source.
    """

    page: str | None
    kind: CulpritKind
    message: str
    link: str | None
    parts: list[str]
    ids: list[str]
    words: str


class ChangeForm(Form):
    """One question of which anything differs; the first of them hold the rows of both sides."""

    id: str
    fate: Fate
    question: str
    domain: str
    difficulty: str | None
    category: str | None
    from_: Outcome = Field(alias="from")
    to: Outcome
    cause: CauseKind
    detail: str
    source: str | None
    rank_before: int | None
    rank_after: int | None
    displaced_by: str | None
    link: str | None
    also: list[CauseForm]
    dropped: dict[str, Delta]
    same_retrieval: bool | None
    rerun: Rerun | None
    accepted: str | None
    counts: bool
    raised: dict[str, Delta]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class CriterionForm(Form):
    """A criterion of `--require` on both sides."""

    criterion: str
    baseline: CriterionState
    candidate: CriterionState


class ComparisonForm(Form):
    """A comparison; `questions` counts the common questions by what became of them."""

    schema_: Literal["evaltrack.comparison/1"] = Field(alias="schema")
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
    metrics: dict[str, MetricForm]
    loss_p: float | None
    reruns: Reruns
    causes: dict[CauseKind, int]
    culprits: list[CulpritForm]
    questions: dict[Fate, int]
    flips: list[ChangeForm]
    lost: list[ChangeForm]
    drops: list[ChangeForm]
    fixes: list[ChangeForm]
    newly_measured: list[ChangeForm]
    gains: list[ChangeForm]
    changed: list[ChangeForm]
    num_drops: int
    errors: list[ErrorCount]
    added: list[str]
    removed: list[str]
    edited: list[str]
    not_selected: list[str]
    domains: dict[str, GroupForm]
    difficulties: dict[str, GroupForm]
    categories: dict[str, GroupForm]
    ignored: list[str]
    left_out: list[str]
    notes: list[str]
    aims: list[ComparedAim]
    criteria: list[CriterionForm]


class MissingComparison(Form):
    """A golden set that could not be compared."""

    schema_: Literal["evaltrack.comparison/1"] = Field(alias="schema")
    golden: str
    verdict: Verdict
    headline: str
    exit_code: Literal[0, 1, 3]
    reasons: list[str]


class ComparisonsForm(Form):
    """Several golden sets."""

    comparisons: list[ComparisonForm | MissingComparison]


FORMS = {
    "comparison": (ComparisonForm, "A comparison: evaltrack compare --output json"),
    "comparisons": (ComparisonsForm, "Comparisons of several golden sets"),
}
