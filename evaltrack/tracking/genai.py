"""Calls scorers of `mlflow.genai`, Ragas and DeepEval for one question, and makes functions into MLflow's scorers."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, TypeAlias

from evaltrack.errors import UsageError
from evaltrack.golden.reader import expectations_of
from evaltrack.records import Question, Response, Source
from evaltrack.tracking.traces import document_span

if TYPE_CHECKING:
    from mlflow.entities import Feedback, Trace
    from mlflow.genai.scorers import Scorer


NOT_HERE = "reads a trace or a conversation, and a score is given the question, the answer and what is expected"
YES_NO: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
LONGEST_VALUE = 60
"""Characters shown of a value that is no number."""


class GenaiJudge:
    """Calls a scorer. `name` is the scorer's name, `said` identifies it. `binary` is True if it answers yes or no.

    Raises:
        UsageError: it is no scorer, needs more than a question, an answer and expectations, or needs a model of OpenAI
            and there is no API key.
    """

    def __init__(self, scorer: object, place: str) -> None:
        from mlflow.genai.judges.utils import get_default_model
        from mlflow.genai.scorers import Scorer
        from mlflow.genai.scorers.builtin_scorers import BuiltInScorer

        if not isinstance(scorer, Scorer):
            raise UsageError(f"`scores={place}`: is {type(scorer).__name__}, no scorer of mlflow.genai; decorate it")
        self._scorer: Scorer = scorer
        self.binary = isinstance(scorer, BuiltInScorer) and hasattr(scorer, "model")
        required = getattr(scorer, "required_columns", set()) if self.binary else _required(scorer.__call__)
        if "trace" in required or scorer.is_session_level_scorer:
            raise UsageError(f"`scores={place}`: {scorer.name} {NOT_HERE}")
        self.name: str = scorer.name
        model = (getattr(scorer, "model", None) or get_default_model()) if self.binary else ""
        check_key(model, place)
        self.said: Sequence[Any] = [_serialized(scorer), model]

    def __call__(self, question: Question, response: Response) -> float | str:
        """Return its value (yes is 1, no is 0), or the reason for no value."""
        run: Callable[..., object] = self._scorer.run
        inputs, expectations = {"question": question.question}, expectations_of(question)
        return assessed_value(run(inputs=inputs, outputs=response.answer, expectations=expectations))


def assessed_value(returned: object) -> float | str:
    """Return the number in a scorer's result (yes is 1, no is 0), or the reason for no value.

    If a scorer compares a score with a threshold and returns yes or no, the score is returned.
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
    """Raise if a scorer needs a model of OpenAI and there is no API key.

    Raises:
        UsageError: there is none.
    """
    if model.startswith("openai:/") and not os.environ.get("OPENAI_API_KEY"):
        cure = "set OPENAI_API_KEY, to any text for a server of your own, or name another model"
        raise UsageError(f"`scores={place}`: MLflow asks {model:.100} only with an API key; {cure}")


def open_builtin_scorer(name: str, settings: Mapping[str, Any], place: str) -> GenaiJudge:
    """Return the scorer of `mlflow.genai.scorers` with this name.

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


def _required(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name for each in parameters if each.default is inspect.Parameter.empty}


def _serialized(scorer: Scorer) -> str:
    """Return the scorer as MLflow stores it, with the source of a user's function, without MLflow's version."""
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
    return f"the scorer returned `{text[:LONGEST_VALUE]}`, not a number, yes or no"


LIBRARIES = {
    "ragas": {"RAGAS_DO_NOT_TRACK": "true"},
    "deepeval": {
        "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
        "DEEPEVAL_DISABLE_DOTENV": "1",
        "CONFIDENT_TRACING_ENABLED": "NO",
    },
}
"""The libraries, each with the environment variables that turn telemetry and reading of `.env` files off."""

LOWER_IS_BETTER = ("NoiseSensitivity",)
NO_EXPECTED_ANSWER = "the question has no expected answer"
NO_TEXTS = "the target returned no texts of sources"

TRACE_ID = f"tr-{0:032x}"


class LibraryMetric:
    """Calls a metric for each answer. It is created for each call, as some metrics store the answer that they measured.

    Attributes:
        name: Name of the metric, in snake case.
        said: Identity of the score: library, version, metric and model.
        higher_is_better: True if higher values are better.

    Raises:
        UsageError: the library is not installed, has no such metric, or the metric measures conversations.
    """

    binary = False

    def __init__(self, library: str, metric: str, model: str, place: str) -> None:
        from mlflow.exceptions import MlflowException
        from mlflow.genai.judges.utils import get_default_model

        os.environ.update({name: os.environ.get(name, value) for name, value in LIBRARIES[library].items()})
        try:
            release = version(library)
            scorers = import_module(f"mlflow.genai.scorers.{library}")
            registry = import_module(f"mlflow.genai.scorers.{library}.registry")
        except (ImportError, PackageNotFoundError) as error:
            raise UsageError(f"`scores={place}`: needs {library}: {error!s:.200}; pip install {library}") from None
        self._make: Callable[[], Scorer] = partial(scorers.get_scorer, metric, model=model or None)
        try:
            kind = registry.get_metric_class(metric)
        except MlflowException as error:
            raise UsageError(f"`scores={place}`: {' '.join(str(error).split()):.300}") from None
        try:
            scorer = self._make()
        except Exception as error:  # noqa: BLE001 - each metric checks its arguments in its own way
            check_key(model or get_default_model(), place)
            raise UsageError(f"`scores={place}`: {' '.join(str(error).split()):.300}") from None
        if scorer.is_session_level_scorer:
            raise UsageError(f"`scores={place}`: {metric} {NOT_HERE}")
        stored = scorer.model_dump()["third_party_scorer_data"]
        check_key(stored["model"] or "", place)
        self.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", metric).lower()
        self.said: Sequence[Any] = [library, release, metric, stored["model"]]
        self.higher_is_better = metric not in LOWER_IS_BETTER
        parts = _required(getattr(kind, "ascore", lambda: None))  # Ragas scores 0 without them
        self._needs_expected = "reference" in parts
        self._needs_texts = "Context" in metric or metric == "Faithfulness" or any("contexts" in each for each in parts)

    def __call__(self, question: Question, response: Response) -> float | str:
        """Return the value of the metric, or the reason for no value."""
        expected, sources = question.expected_answer, response.sources or ()
        has_texts = bool(sources) and all(source.text for source in sources)
        if self._needs_expected and expected is None:
            return NO_EXPECTED_ANSWER
        if self._needs_texts and not has_texts:
            return NO_TEXTS
        run: Callable[..., object] = self._make().run
        feedback = run(
            inputs={"question": question.question},
            outputs=response.answer,
            expectations={} if expected is None else {"expected_output": expected},
            trace=_trace(question, sources if has_texts else ()),
        )
        return assessed_value(feedback)


def _trace(question: Question, sources: Sequence[Source]) -> Trace:
    """Return a trace with the retrieved sources in the form that MLflow reads."""
    from mlflow.entities import Trace, TraceData, TraceInfo, TraceLocation, TraceState

    place = TraceLocation.from_experiment_id("0")
    info = TraceInfo(TRACE_ID, place, request_time=0, state=TraceState.OK, execution_duration=0)
    return Trace(info, TraceData([document_span(question.question, sources, TRACE_ID)] if sources else []))


GenaiScorer: TypeAlias = "Scorer"
"""The scorer type of `mlflow.genai.evaluate`."""

Measure = Callable[[Mapping[str, Any], object, Mapping[str, Any]], float | str]
"""Maps inputs, outputs and expectations to a value, or to the reason for no value."""


def genai_scorer(name: str, description: str, measure: Measure) -> GenaiScorer:
    """Return a scorer with a name. An unmeasured question is an error of its feedback, and in no mean."""
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback
    from mlflow.genai.scorers import scorer

    code = AssessmentSource("CODE", "evaltrack")

    def score(inputs: Any, outputs: Any, expectations: Any) -> Feedback:
        measured = measure(inputs or {}, outputs, expectations or {})
        if isinstance(measured, str):
            return Feedback(name=name, error=AssessmentError("NOT_MEASURED", measured), source=code)
        return Feedback(name=name, value=measured, source=code)

    return scorer(score, name=name, description=description)
