"""A score of one's own: what a run stores of it, and what it gives for one question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, SerializerFunctionWrapHandler, StringConstraints, model_serializer

from evaltrack.records.base import Record, Text
from evaltrack.records.response import Usage
from evaltrack.records.verdict import Verdict

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
