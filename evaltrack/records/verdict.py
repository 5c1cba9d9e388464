"""What a judge said of a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from evaltrack.records.base import Count, ForeignText, Key, Record
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
    """What one judge said of one answer.

    On an answerable question it holds the four numbers; on a negative `declined` alone: whether the answer says that
    it does not know; under the reasoning rubric what the judge `observed`. `usage` is
    what the judge used for it, all calls together; `cached`: nothing was paid this time.
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
