"""The forms of what the commands about judges print: a replay, an agreement, the rubric."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaltrack.metrics.rubric import Gate
from evaltrack.metrics.rubric_tables import Requirement
from evaltrack.records import Mode
from evaltrack.report.schemas.form import Form
from evaltrack.stats.agreement import Figure


class ReplayRow(Form):
    """One response that was judged again."""

    id: str
    score: float
    again: list[float | None]
    spread: float | None
    tier: int | None
    tiers_again: list[int | None]
    passed: bool | None
    passed_again: list[bool | None]


class ReplayForm(Form):
    """How far the scores of a judge scatter."""

    schema_: Literal["evaltrack.replay/1"] = Field(alias="schema")
    run_id: str
    judge: str
    judge_prompt: str
    score: str
    times: int
    num_responses: int
    left_out: int
    num_errors: int
    share_within: float | None
    mean_spread: float | None
    num_changed: int
    noise: float | None
    judge_tokens: int
    rows: list[ReplayRow]


class WithinForm(Form):
    """Whether two judges agree within a tolerance."""

    tolerance: float
    needed: float
    share: float | None
    n: int
    agree: bool | None


class Confusion(Form):
    """How often the judge's label (rows) met the other's (columns)."""

    labels: list[str]
    counts: list[list[int]]


class AgreementPart(Form):
    """The agreement on one number or label."""

    n: int
    without_judge: int
    without_other: int
    figures: dict[str, Figure]
    confusion: Confusion | None


class Disagreement(Form):
    """A response on which the two lie further apart than the tolerance."""

    id: str
    score: float
    other: float
    gap: float


class AgreementForm(Form):
    """A judge held against people or another judge."""

    schema_: Literal["evaltrack.agreement/1"] = Field(alias="schema")
    run_id: str
    judge: str
    other: str
    rubric: str
    kappa: float | None
    within: WithinForm
    tolerances: dict[str, float]
    numbers: dict[str, AgreementPart]
    labels: dict[str, AgreementPart]
    disagreements: list[Disagreement]


class DimensionForm(Form):
    """A dimension of the rubric, with what its grades mean."""

    name: str
    weight: float
    measures: str
    anchors: dict[str, str]
    below_by_count: dict[str, float]


class HardFailForm(Form):
    """What makes a score 0."""

    code: str
    condition: str
    example: str


class TierForm(Form):
    """A tier: whole scores from `low` to `high`."""

    tier: int
    label: str
    low: int
    high: int
    action: str


class AimForm(Form):
    """An aim over naive single-shot answers."""

    metric: str
    mean: float
    published: float
    higher_is_better: bool
    improvement: float


class RubricForm(Form):
    """The reasoning rubric."""

    schema_: str = Field(alias="schema")
    dimensions: list[DimensionForm]
    hard_fails: list[HardFailForm]
    coupling: list[Requirement]
    penalties: dict[str, int]
    tiers: list[TierForm]
    gates: list[Gate]
    pass_score: int
    aims: list[AimForm]
    modes: dict[Mode, str]
    readings: list[str]


FORMS = {
    "replay": (ReplayForm, "A replayed judge: evaltrack judge replay --output json"),
    "agreement": (AgreementForm, "Two judges: evaltrack judge agree --output json"),
    "rubric": (RubricForm, "The reasoning rubric: evaltrack rubric --output json"),
}
