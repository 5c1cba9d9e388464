"""A function as a scorer that `mlflow.genai.evaluate` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mlflow.entities import Feedback
    from mlflow.genai.scorers import Scorer

GenaiScorer: TypeAlias = "Scorer"
"""What `mlflow.genai.evaluate` takes."""

Measure = Callable[[Mapping[str, Any], object, Mapping[str, Any]], float | str]
"""From inputs, outputs and expectations to a value, or to the reason why there is none."""


def genai_scorer(name: str, description: str, measure: Measure) -> GenaiScorer:
    """The scorer with a name; a question that was not measured is an error of its feedback, and in no mean."""
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback
    from mlflow.genai.scorers import scorer

    code = AssessmentSource("CODE", "evaltrack")

    def score(inputs: Any, outputs: Any, expectations: Any) -> Feedback:
        measured = measure(inputs or {}, outputs, expectations or {})
        if isinstance(measured, str):
            return Feedback(name=name, error=AssessmentError("NOT_MEASURED", measured), source=code)
        return Feedback(name=name, value=measured, source=code)

    return scorer(score, name=name, description=description)
