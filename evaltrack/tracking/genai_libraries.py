"""A metric of Ragas or DeepEval called through MLflow, which wraps both as scorers."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Source
from evaltrack.tracking.genai_judge import NOT_HERE, assessed_value, check_key
from evaltrack.tracking.spans import document_span

if TYPE_CHECKING:
    from mlflow.entities import Trace
    from mlflow.genai.scorers import Scorer

LIBRARIES = {
    "ragas": {"RAGAS_DO_NOT_TRACK": "true"},
    "deepeval": {
        "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
        "DEEPEVAL_DISABLE_DOTENV": "1",
        "CONFIDENT_TRACING_ENABLED": "NO",
    },
}
"""The libraries, each with the environment in which it reports nothing and reads no `.env` file."""

LOWER_IS_BETTER = ("NoiseSensitivity",)
NO_EXPECTED_ANSWER = "the question has no expected answer"
NO_TEXTS = "the target returned no texts of sources"

TRACE_ID = f"tr-{0:032x}"


class LibraryMetric:
    """Calls a metric for each answer; it is made anew each time, as some hold the answer that they measured.

    Attributes:
        name: That of the metric, in snake case.
        said: What tells the score from others: library, version, metric and model.
        higher_is_better: Whether more of it is better.

    Raises:
        UsageError: the library is not installed, has no such metric, or it measures conversations.
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
        parts = _parts_of_ragas(kind)
        self._needs_expected = "reference" in parts
        self._needs_texts = "Context" in metric or metric == "Faithfulness" or any("contexts" in each for each in parts)

    def __call__(self, question: Question, response: Response) -> float | str:
        """The value of the metric, or why there is none."""
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


def _parts_of_ragas(kind: Any) -> list[str]:
    """What a metric of Ragas has to be given, without which it would score nothing as 0; empty for other libraries."""
    measure = getattr(kind, "ascore", None)
    parameters = inspect.signature(measure).parameters.values() if measure else ()
    return [each.name for each in parameters if each.default is inspect.Parameter.empty]


def _trace(question: Question, sources: Sequence[Source]) -> Trace:
    """What was retrieved, where MLflow looks for it."""
    from mlflow.entities import Trace, TraceData, TraceInfo, TraceLocation, TraceState

    place = TraceLocation.from_experiment_id("0")
    info = TraceInfo(TRACE_ID, place, request_time=0, state=TraceState.OK, execution_duration=0)
    return Trace(info, TraceData([document_span(question.question, sources, TRACE_ID)] if sources else []))
