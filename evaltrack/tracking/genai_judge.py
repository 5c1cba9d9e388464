"""A scorer of `mlflow.genai` called for one question: built in, or the user's own."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaltrack.errors import UsageError
from evaltrack.golden.mlflow_records import record_of
from evaltrack.records import Question, Response

if TYPE_CHECKING:
    from mlflow.genai.scorers import Scorer

NOT_HERE = "reads a trace or a conversation, and a score is given the question, the answer and what is expected"
YES_NO: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
LONGEST_VALUE = 60
"""Characters shown of a value that is no number."""


class GenaiJudge:
    """Calls a scorer; `name` is the scorer's, `said` tells it from others, `binary` that it answers yes or no.

    Raises:
        UsageError: it is no scorer, needs more than a question, an answer and what is expected, or asks a model of
            OpenAI and there is no API key.
    """

    def __init__(self, scorer: object, place: str) -> None:
        from mlflow.genai.judges.utils import get_default_model
        from mlflow.genai.scorers import Scorer
        from mlflow.genai.scorers.builtin_scorers import BuiltInScorer

        if not isinstance(scorer, Scorer):
            raise UsageError(f"`scores={place}`: is {type(scorer).__name__}, no scorer of mlflow.genai; decorate it")
        self._scorer: Scorer = scorer
        self.binary = isinstance(scorer, BuiltInScorer) and hasattr(scorer, "model")
        required = getattr(scorer, "required_columns", set()) if self.binary else _required(scorer)
        if "trace" in required or scorer.is_session_level_scorer:
            raise UsageError(f"`scores={place}`: {scorer.name} {NOT_HERE}")
        self.name: str = scorer.name
        model = (getattr(scorer, "model", None) or get_default_model()) if self.binary else ""
        check_key(model, place)
        self.said: Sequence[Any] = [_serialized(scorer), model]

    def __call__(self, question: Question, response: Response) -> float | str:
        """Its value, yes being 1 and no 0, or why there is none."""
        record = record_of(question)
        run: Callable[..., object] = self._scorer.run
        inputs, expectations = dict(record.inputs), dict(record.expectations)
        return assessed_value(run(inputs=inputs, outputs=response.answer, expectations=expectations))


def assessed_value(returned: object) -> float | str:
    """The number in what a scorer returned, yes being 1 and no 0, or why there is none.

    Where a scorer compares a score with a threshold and says yes or no, it is the score.
    """
    several = returned if isinstance(returned, list) else [returned]
    if len(several) != 1:
        return f"the scorer returned {len(several)} assessments; a score is one"
    error = getattr(several[0], "error", None)
    if error is not None:
        return str(getattr(error, "error_message", None) or error)
    scored = (getattr(several[0], "metadata", None) or {}).get("score")
    return _number(getattr(several[0], "value", several[0]) if scored is None else scored)


def check_key(model: str, place: str) -> None:
    """Refuse a scorer that asks a model of OpenAI where there is no API key.

    Raises:
        UsageError: there is none.
    """
    if model.startswith("openai:/") and not os.environ.get("OPENAI_API_KEY"):
        cure = "set OPENAI_API_KEY, to any text for a server of your own, or name another model"
        raise UsageError(f"`scores={place}`: MLflow asks {model:.100} only with an API key; {cure}")


def open_builtin_scorer(name: str, settings: Mapping[str, Any], place: str) -> GenaiJudge:
    """The scorer of `mlflow.genai.scorers` with this name.

    Raises:
        UsageError: there is none, or it cannot be made with these settings.
    """
    from mlflow.exceptions import MlflowException
    from mlflow.genai import scorers
    from mlflow.genai.scorers.builtin_scorers import BuiltInScorer

    kind = getattr(scorers, name, None) if name.isidentifier() else None
    if not (inspect.isclass(kind) and issubclass(kind, BuiltInScorer)):
        raise UsageError(f"`scores={place}`: mlflow.genai.scorers has no `{name:.60}`; {_NAMES}")
    unknown = sorted(settings.keys() - kind.model_fields.keys())
    if unknown:
        raise UsageError(f"`scores={place}`: {name} takes no `{unknown[0]}`")
    try:
        return GenaiJudge(kind(**settings), place)
    except (ValueError, TypeError, MlflowException) as error:
        why = " ".join(str(error).split())
        raise UsageError(f"`scores={place}`: {why:.300}") from None


_NAMES = "there are Correctness, Guidelines, RelevanceToQuery, Safety, Completeness, Equivalence, Fluency and others"


def _required(scorer: Scorer) -> set[str]:
    """The arguments that the function of a user's scorer cannot do without."""
    parameters = inspect.signature(scorer.__call__).parameters.values()
    return {each.name for each in parameters if each.default is inspect.Parameter.empty}


def _serialized(scorer: Scorer) -> str:
    """The scorer as MLflow stores it, with the source of a user's function; without what the version of MLflow adds."""
    try:
        dumped = scorer.model_dump()
    except Exception:  # noqa: BLE001 - a user's own class may refuse
        return scorer.name
    dumped.pop("mlflow_version", None)
    return json.dumps(dumped, default=str, sort_keys=True)


def _number(value: object) -> float | str:
    if isinstance(value, bool | int | float):
        return float(value)
    text = str(getattr(value, "value", value))
    if text.lower() in YES_NO:
        return YES_NO[text.lower()]
    return f"the scorer returned `{text[:LONGEST_VALUE]}`, which is no number, yes or no"
