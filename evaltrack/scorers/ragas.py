"""`ragas:METRIC`: a metric of Ragas as a score.

`ragas:faithfulness` and `ragas:Faithfulness` are the class of `ragas.metrics.collections`. It is given the question as
`user_input`, the answer as `response`, the texts of the sources as `retrieved_contexts` and the expected answer as
`reference`. `?model=gpt-4o-mini` names its judge, `&embeddings=` the model of embeddings, at the address in
`OPENAI_BASE_URL`, else at OpenAI. Its values are those of Ragas.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

from evaltrack.llm.client import CALL_SECONDS, open_client
from evaltrack.llm.server import base_url, key
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.scorers.declaration import own_score
from evaltrack.scorers.libraries import (
    MetricPlace,
    check_server,
    first_lack,
    given_texts,
    opened_library,
    read_value,
    snake_case,
)
from evaltrack.targets.threads import in_own_loop

MODULES = ("ragas.metrics.collections", "ragas.llms", "ragas.embeddings")
PARTS = {
    "user_input": "question",
    "response": "answer",
    "retrieved_contexts": "sources",
    "reference": "expected_answer",
}
"""What Ragas calls the parts of a record."""

LOWER_IS_BETTER = frozenset({"NoiseSensitivity"})
OPENS_FILES = frozenset({"MultiModalFaithfulness", "MultiModalRelevance"})
"""Metrics that read a source's text as the name of a file, or as an address."""

MOST_TOKENS = 4096
"""Of one reply: Ragas' own 1,024 cut off the statements of a long answer."""

RETRIES = 3
"""Of a call that the server refused for the moment."""


class RagasScorer(Scorer):
    """Calls a metric of Ragas for each answer, in an event loop of its own.

    Raises:
        UsageError: Ragas is not installed, or has no such metric of one answer.
    """

    def __init__(self, spec: str, name: str = "") -> None:
        os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")  # it reports its use otherwise
        place = MetricPlace.of(spec)
        release, (metrics, llms, embeddings) = opened_library("ragas", MODULES, place)
        kind = _metric_class(metrics, place)
        self._needed, self._optional = _parts(kind, place)
        metric = kind(**_components(kind, llms, embeddings, place))
        low, high = metric.allowed_values if isinstance(metric.allowed_values, tuple) else (0.0, 1.0)
        self.declared = (
            own_score(
                name or snake_case(kind.__name__),
                spec,
                ["ragas", release, kind.__name__, place.model, place.embeddings],
                higher_is_better=kind.__name__ not in LOWER_IS_BETTER,
                span=float(high - low),
            ),
        )
        self._score = in_own_loop(_with_names(metric.ascore))

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """The value of Ragas, or why there is none."""
        (score,) = self.declared
        given = given_texts(question, response)
        if why := first_lack(given, (PARTS[each] for each in self._needed)):
            return OwnValues(reasons={score.name: why})
        optional = [each for each in self._optional if not first_lack(given, [PARTS[each]])]
        result = await self._score({each: given[PARTS[each]] for each in (*self._needed, *optional)})
        return read_value(score.name, getattr(result, "value", result), "Ragas")


def _with_names(function: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
    async def call(arguments: Mapping[str, Any]) -> Any:
        return await function(**arguments)

    return call


def _metric_class(metrics: Any, place: MetricPlace) -> type:
    names = {each.lower().replace("_", ""): each for each in metrics.__all__ if each != "BaseMetric"}
    found = names.get(place.name.lower().replace("_", ""))
    if found is None:
        listed = ", ".join(sorted(map(snake_case, names.values())))
        raise place.refused(f"Ragas has no such metric; there are {listed}")
    if found in OPENS_FILES:
        raise place.refused("reads sources as files and addresses; sources of evaltrack are texts")
    kind: type = getattr(metrics, found)
    return kind


def _parts(kind: Any, place: MetricPlace) -> tuple[list[str], list[str]]:
    """The parts of a record that a metric needs, and those that it takes too."""
    if not hasattr(kind, "ascore"):
        raise place.refused("is a setting of another metric")
    parameters = list(inspect.signature(kind.ascore).parameters.values())[1:]
    needed = [each for each in parameters if each.default is inspect.Parameter.empty]
    foreign = [each.name for each in needed if each.name not in PARTS or "Message" in str(each.annotation)]
    if foreign:
        others = "and a score is given the question, the answer, its sources and the expected answer"
        raise place.refused(f"needs `{foreign[0]}`, {others}")
    optional = [each.name for each in parameters if each not in needed and each.name in PARTS]
    return [each.name for each in needed], optional


def _components(kind: Any, llms: Any, embeddings: Any, place: MetricPlace) -> dict[str, Any]:
    """The model and the embeddings that a metric asks for."""
    asked = inspect.signature(kind.__init__).parameters
    made: dict[str, Callable[[Any], Any]] = {
        "llm": lambda client: llms.llm_factory(place.model, client=client, max_tokens=MOST_TOKENS),
        "embeddings": lambda client: embeddings.OpenAIEmbeddings(client=client, model=place.embeddings),
    }
    if not made.keys() & asked.keys():
        return {}
    check_server(place)
    client = open_client(key(), base_url(), CALL_SECONDS).with_options(max_retries=RETRIES)
    return {name: make(client) for name, make in made.items() if name in asked}
