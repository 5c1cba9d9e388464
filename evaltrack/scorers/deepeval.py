"""`deepeval:METRIC`: a metric of DeepEval as a score.

`deepeval:AnswerRelevancyMetric` is the class of `deepeval.metrics`. Its test case holds the question as `input`, the
answer as `actual_output`, the texts of the sources as `retrieval_context`, the expected answer as `expected_output`,
the calls as `tools_called` and the expected ones as `expected_tools`. `?model=gpt-4o-mini` names its judge, at the
address in `OPENAI_BASE_URL`, else at OpenAI. Its values are those of DeepEval.
"""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any

from evaltrack.llm.server import base_url, key
from evaltrack.metrics.tool_use import NO_TOOLS
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.scorers.declaration import own_score
from evaltrack.scorers.libraries import (
    Lack,
    MetricPlace,
    check_server,
    first_lack,
    given_texts,
    opened_library,
    read_value,
    snake_case,
)
from evaltrack.targets.threads import in_own_loop

MODULES = ("deepeval.metrics", "deepeval.models", "deepeval.test_case")
PARTS = {
    "input": "question",
    "actual_output": "answer",
    "retrieval_context": "sources",
    "expected_output": "expected_answer",
    "tools_called": "tools_called",
    "expected_tools": "expected_tools",
}
"""What DeepEval calls the parts of a record."""

QUIET = {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "DEEPEVAL_DISABLE_DOTENV": "1", "CONFIDENT_TRACING_ENABLED": "NO"}
"""It reports its use, reads `.env` files and sends traces otherwise."""


class DeepEvalScorer(Scorer):
    """Measures each answer with a metric of DeepEval of its own, in an event loop apart.

    Raises:
        UsageError: DeepEval is not installed, or has no such metric of one answer.
    """

    def __init__(self, spec: str, name: str = "") -> None:
        for variable, value in QUIET.items():
            os.environ.setdefault(variable, value)
        place = MetricPlace.of(spec)
        release, (metrics, models, self._cases) = opened_library("deepeval", MODULES, place)
        self._kind = _metric_class(metrics, place)
        self._settings = _settings(self._kind, models, place)
        metric = self._metric(place)
        self._needed = _needed(metric, place)
        own_name = snake_case(self._kind.__name__.removesuffix("Metric"))
        said = ["deepeval", release, self._kind.__name__, place.model]
        rising = _higher_is_better(metric)
        self.declared = (own_score(name or own_name, spec, said, higher_is_better=rising, span=1.0),)
        self._measure = in_own_loop(self._measured)

    def _metric(self, place: MetricPlace | None = None) -> Any:
        """A metric for one answer: it holds what it saw."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # on what changed between its releases
                return self._kind(**self._settings)
        except Exception as error:  # each metric checks its arguments in its own way
            if place is None:
                raise
            raise place.refused(f"cannot be made with a model alone: {' '.join(str(error).split()):.200}") from None

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """The value of DeepEval, or why there is none."""
        (score,) = self.declared
        given = given_texts(question, response) | self._tools(question, response)
        if why := first_lack(given, (PARTS[each] for each in self._needed)):
            return OwnValues(reasons={score.name: why})
        fields = {name: given[part] for name, part in PARTS.items() if not isinstance(given[part], Lack)}
        return read_value(score.name, await self._measure(self._cases.LLMTestCase(**fields)), "DeepEval")

    async def _measured(self, case: Any) -> Any:
        metric = self._metric()
        try:
            await metric.a_measure(case, _show_indicator=False)
        except Exception as error:
            if type(error).__name__ == "RetryError" and error.__cause__ is not None:
                raise error.__cause__ from None  # the last of several tries; its own words name no reason
            raise
        return metric.score

    def _tools(self, question: Question, response: Response) -> dict[str, Any]:
        call = self._cases.ToolCall
        arguments = question.expected_arguments or ({},) * len(question.expected_tools)
        pairs = zip(question.expected_tools, arguments, strict=True)
        expected = [call(name=name, input_parameters=dict(each) or None) for name, each in pairs]
        calls = [call(name=each.name, input_parameters=dict(each.arguments) or None) for each in response.tool_calls]
        return {"tools_called": calls, "expected_tools": expected or Lack(NO_TOOLS)}


def _metric_class(metrics: Any, place: MetricPlace) -> type:
    names = [each for each in metrics.__all__ if each.endswith("Metric") and not each.startswith("Base")]
    kind = getattr(metrics, place.name, None) if place.name in names else None
    if kind is None:
        raise place.refused(f"DeepEval has no such metric; there are {', '.join(sorted(names))}")
    if not (inspect.isclass(kind) and issubclass(kind, metrics.BaseMetric)):
        raise place.refused("measures conversations or pictures, and a score is given one answer")
    return kind


def _settings(kind: Any, models: Any, place: MetricPlace) -> dict[str, Any]:
    """The judge of a metric, where it has one."""
    taken = inspect.signature(kind.__init__).parameters
    settings: dict[str, Any] = {"include_reason": False} if "include_reason" in taken else {}
    if "model" in taken:
        check_server(place)
        settings["model"] = models.OpenAIModel(model=place.model, api_key=key(), base_url=base_url())
    return settings


def _needed(metric: Any, place: MetricPlace) -> list[str]:
    """The parts of a record that a metric needs."""
    needed = [str(getattr(each, "value", each)) for each in metric._required_params]  # noqa: SLF001 - told nowhere else
    foreign = ["a trace"] if metric.requires_trace else [f"`{each}`" for each in needed if each not in PARTS]
    if foreign:
        others = "and a score is given the question, the answer, its sources, its calls and what is expected"
        raise place.refused(f"needs {foreign[0]}, {others}")
    return needed


def _higher_is_better(metric: Any) -> bool:
    """By what DeepEval lets pass: some metrics of earlier releases pass where they are low."""
    passed = []
    for value in (0.0, 1.0):
        metric.score = value
        passed.append(bool(metric.is_successful()))
    return passed != [True, False]
