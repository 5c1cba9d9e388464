"""Re-exports the records of an evaluation (question, response, verdict, row) and the protocols of targets and judges.

`Question` -> (`Target`) -> `Response` -> (`Judge`) -> `Verdict` -> scores -> `Row`. All records are immutable, refuse
unknown fields, and hold no NaN and no infinity. A score without a value has a reason in `Row.unmeasured`, and no
number.
"""

from evaltrack.records.base import ForeignText, Record
from evaltrack.records.question import Passage, Question, Turn
from evaltrack.records.response import Response, Source, ToolCall, Usage, together
from evaltrack.records.roles import Closable, Judge, PlainTarget, Scorer, Target
from evaltrack.records.row import Failure, FailureKind, Reasoned, Row, Tally, Tokens
from evaltrack.records.run import METRICS_VERSION, Signature, Weights
from evaltrack.records.verdict import (
    CruxTreatment,
    Dimensions,
    Mode,
    Observed,
    OwnScore,
    OwnValues,
    UncertaintyTreatment,
    Unit,
    Verdict,
)

__all__ = [
    "METRICS_VERSION",
    "Closable",
    "CruxTreatment",
    "Dimensions",
    "Failure",
    "FailureKind",
    "ForeignText",
    "Judge",
    "Mode",
    "Observed",
    "OwnScore",
    "OwnValues",
    "Passage",
    "PlainTarget",
    "Question",
    "Reasoned",
    "Record",
    "Response",
    "Row",
    "Scorer",
    "Signature",
    "Source",
    "Tally",
    "Target",
    "Tokens",
    "ToolCall",
    "Turn",
    "UncertaintyTreatment",
    "Unit",
    "Usage",
    "Verdict",
    "Weights",
    "together",
]
