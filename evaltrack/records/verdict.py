"""What a judge said of a response, and what scores of one's own came to."""

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
    """What a judge saw in a piece of reasoning; `rubric.py` makes the score of it.

    `hypotheses` and `shifts` count distinct hypotheses and genuine changes of perspective. `confidence`, in percent, is
    the strongest claim on the conclusion, None where none is expressed. `quotes` holds words of the response that show
    what was seen: under `hypotheses`, `shifts`, `crux`, `confidence` and each hard fail.
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

    On an answerable question it has the four numbers; on a negative only `declined`: the answer says that it does not
    know; under the reasoning rubric `observed`. `usage` is the judge's usage over all calls. A `cached` verdict cost
    nothing in this run.
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
"""Scores of one's own in one run."""

LARGEST_SCORE = 1e15
"""The largest number that a score may have, and the smallest below zero."""

NAME_PATTERN = r"^[a-z][a-z0-9_]{0,59}$"
"""Names of scores: they are names of metrics, columns and rules too."""

ScoreName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


class OwnScore(Record):
    """The declaration of one score, which a run stores so that comparisons and reports need no code of the user.

    `digest` is of the declaration, and of the function's code where it can be read: runs with another one are not
    compared by this score. `gates` says whether rules of the gate may name it, `binary` that each question has 1 or 0;
    `span` is the largest difference of two values, None where there is no bound.
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
        """Only what is not the default: a tag of MLflow holds 8,000 characters."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        return {name: value for name, value in dump(self).items() if value != defaults[name]}


class OwnValues(Record):
    """What scores of one's own came to for one question: values by name, and reasons for those without one.

    `verdicts` are those of a judge that a score asked, by the name of the score; `usage` is what a judge used that gave
    none.
    """

    values: Mapping[str, float] = Field(default_factory=dict)
    reasons: Mapping[str, str] = Field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = Field(default_factory=dict)
    usage: Usage | None = None
