"""Scores of one's own, which stand in every table, report and comparison as those of evaltrack do.

| name | what is scored |
| --- | --- |
| `package.module:function` | your own function, sync or async |
| `exact_match`, `token_f1` | the answer's words against those of the expected answer, as SQuAD defines them |
| `contains` | whether the words of the expected answer stand in the answer |
| `citation_precision`, `citation_recall` | whether the sources that the answer cites hold the words that it quotes |
| `context_precision` | how far relevant sources stand above others |
| `faithfulness`, `faithfulness:openai:MODEL` | the share of the answer's claims that the sources hold, by a judge |
| `tool_order` | how much of the expected sequence of tools was called in its order |
| `tool_arguments` | of the calls whose arguments are expected, the share that was made with them |
| `cost` | US dollars per 1,000 questions, by the tokens that the target reports and their prices |
| `regex:PATTERN` | whether the pattern is found in the answer |
| `json_schema:FILE` | whether the answer is JSON that holds to a schema |
| `mlflow:Correctness`, `mlflow:package.module:scorer` | a scorer of `mlflow.genai`, see `evaltrack.scorers.mlflow` |
| `mlflow:ragas.Faithfulness`, `mlflow:deepeval.AnswerRelevancy` | a metric of Ragas or DeepEval, through MLflow |

``NAME=`` before any of these gives it another name.
"""

from typing import TYPE_CHECKING, Any

from evaltrack.scorers.declaration import score

if TYPE_CHECKING:
    from evaltrack.scorers.genai import MRR as MRR
    from evaltrack.scorers.genai import CitationPrecision as CitationPrecision
    from evaltrack.scorers.genai import CitationRecall as CitationRecall
    from evaltrack.scorers.genai import Contains as Contains
    from evaltrack.scorers.genai import ContextPrecision as ContextPrecision
    from evaltrack.scorers.genai import ExactMatch as ExactMatch
    from evaltrack.scorers.genai import HitRate as HitRate
    from evaltrack.scorers.genai import JSONSchema as JSONSchema
    from evaltrack.scorers.genai import NDCGAtK as NDCGAtK
    from evaltrack.scorers.genai import NegativePass as NegativePass
    from evaltrack.scorers.genai import PrecisionAtK as PrecisionAtK
    from evaltrack.scorers.genai import RecallAtK as RecallAtK
    from evaltrack.scorers.genai import Regex as Regex
    from evaltrack.scorers.genai import TokenF1 as TokenF1
    from evaltrack.scorers.genai import ToolArguments as ToolArguments
    from evaltrack.scorers.genai import ToolOrder as ToolOrder
    from evaltrack.scorers.genai import ToolsCalled as ToolsCalled

FOR_MLFLOW = (
    *("MRR", "CitationPrecision", "CitationRecall", "Contains", "ContextPrecision", "ExactMatch", "HitRate"),
    *("JSONSchema", "NDCGAtK", "NegativePass", "PrecisionAtK", "RecallAtK", "Regex", "TokenF1", "ToolArguments"),
    *("ToolOrder", "ToolsCalled"),
)
"""Scores of evaltrack as scorers of `mlflow.genai.evaluate`, imported when they are first used."""

__all__ = ["score", *FOR_MLFLOW]  # noqa: PLE0604 - the names are strings, the rule cannot see it


def __getattr__(name: str) -> Any:
    if name in FOR_MLFLOW:
        from evaltrack.scorers import genai

        return getattr(genai, name)
    raise AttributeError(f"module 'evaltrack.scorers' has no attribute {name!r}")
