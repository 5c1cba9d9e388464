"""Defines verdicts of judges, with observations of reasoning, and declarations and values of user-defined scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, SerializerFunctionWrapHandler, StringConstraints, model_serializer

from evaltrack.records.base import Count, ForeignText, Key, Record, Text
from evaltrack.records.response import Usage

Unit = Annotated[float, Field(ge=0, le=1)]
"""A judge's number, in [0, 1]."""


Grade = Annotated[float, Field(ge=0, le=10)]
"""One dimension of the reasoning rubric, in [0, 10]."""

CruxTreatment = Literal["none", "attempted", "stated", "explicit", "justified"]
UncertaintyTreatment = Literal["none", "limits", "quantified", "caveats", "counterarguments"]
Mode = Literal["explore", "converge", "hybrid"]
ObservedHardFail = Literal["HF1", "HF2", "HF3", "HF4"]


class Dimensions(Record):
    """The eight dimensions of the reasoning rubric."""

    h_count: Grade
    oscillation: Grade
    crux: Grade
    epistemic_honesty: Grade
    process_integrity: Grade
    actionability: Grade
    brevity: Grade
    format: Grade


class Observed(Record):
    """The observations of a judge on a piece of reasoning; `rubric.py` computes the score from them.

    `hypotheses` and `shifts` count distinct hypotheses and genuine changes of perspective. `confidence`, in percent, is
    the strongest claim on the conclusion; None if none is expressed. `quotes` holds words of the response as evidence,
    under `hypotheses`, `shifts`, `crux`, `confidence` and each hard fail.
    """

    dimensions: Dimensions
    hypotheses: Count
    shifts: Count
    crux_treatment: CruxTreatment
    uncertainty_treatment: UncertaintyTreatment
    confidence: Annotated[float, Field(ge=0, le=100)] | None = None
    hard_fails: tuple[ObservedHardFail, ...] = ()
    mode: Mode
    quotes: Mapping[str, tuple[ForeignText, ...]] = Field(default_factory=dict)


ANSWER_GRADES = ("overall_score", "accuracy", "completeness", "relevance")
"""The numbers of a verdict on an answer, each in [0, 1]."""


class Verdict(Record):
    """The verdict of one judge on one answer.

    For an answerable question it has the four numbers. For a negative it has only `declined`, which is True if the
    answer says that it does not know. Under the reasoning rubric it has `observed`. `usage` is the judge's usage over
    all calls. A `cached` verdict cost nothing in this run.
    """

    judge: Key
    reasoning: ForeignText
    accuracy: Unit | None = None
    completeness: Unit | None = None
    relevance: Unit | None = None
    overall_score: Unit | None = None
    declined: bool | None = None
    observed: Observed | None = None
    usage: Usage | None = None
    cached: bool = False


MOST_SCORES = 40
"""The most own scores in one run."""

LARGEST_SCORE = 1e15
"""The largest absolute value of a score."""

NAME_PATTERN = r"^[a-z][a-z0-9_]{0,59}$"
"""A pattern for names of scores, which are also names of metrics, columns and rules."""

ScoreName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


class OwnScore(Record):
    """The declaration of one score. A run stores it, so that comparisons and reports need no code of the user.

    `digest` covers the declaration, and the function's code if it can be read. Runs with different digests are not
    compared by this score. `gates` is True if rules of the gate may name it, `binary` is True if each value is 1 or 0.
    `span` is the largest difference of two values; None if there is no bound.
    """

    name: ScoreName
    computed_by: Text = Field(max_length=200)
    digest: str = Field(max_length=64)
    higher_is_better: bool = True
    gates: bool = True
    binary: bool = False
    span: float | None = Field(default=None, gt=0)

    @model_serializer(mode="wrap")
    def _without_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Dump only fields without their defaults: a tag of MLflow holds 8,000 characters."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        return {name: value for name, value in dump(self).items() if value != defaults[name]}


class OwnValues(Record):
    """The values of the user's own scores for one question, and reasons for those without one.

    `verdicts` are the verdicts of judges that a score asked, by the name of the score. `usage` is the usage of a judge
    without a verdict.
    """

    values: Mapping[str, float] = Field(default_factory=dict)
    reasons: Mapping[str, str] = Field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = Field(default_factory=dict)
    usage: Usage | None = None
