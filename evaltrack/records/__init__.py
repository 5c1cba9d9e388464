"""Re-exports the records of an evaluation (question, response, verdict, row) and the protocols of targets and judges.

`Question` -> (`Target`) -> `Response` -> (`Judge`) -> `Verdict` -> scores -> `Row`. All records are immutable, refuse
unknown fields, and hold no NaN and no infinity. A score without a value has a reason in `Row.unmeasured`, and no
number.
"""

from evaltrack.records.base import ForeignText, Record
from evaltrack.records.question import Passage, Question, Turn
from evaltrack.records.response import Response, Source, ToolCall, Usage, together
from evaltrack.records.roles import Closable, Judge, PlainTarget, Scorer, Target
from evaltrack.records.row import Failure, Reasoned, Row, Tokens
from evaltrack.records.run import Signature, Weights
from evaltrack.records.verdict import Dimensions, Observed, OwnScore, OwnValues, Verdict

__all__ = [
    "Closable",
    "Dimensions",
    "Failure",
    "ForeignText",
    "Judge",
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
    "Target",
    "Tokens",
    "ToolCall",
    "Turn",
    "Usage",
    "Verdict",
    "Weights",
    "together",
]
