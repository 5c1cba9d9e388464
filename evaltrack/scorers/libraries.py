"""What the metrics of Ragas and DeepEval have in common: how they are named, and what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from math import isfinite
from typing import Any
from urllib.parse import parse_qsl

from evaltrack.errors import UsageError
from evaltrack.llm.server import has_server
from evaltrack.metrics.citations import NO_ANSWER, NO_SOURCES
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.own_score import LARGEST_SCORE
from evaltrack.scorers.builtin import NO_EXPECTED_ANSWER

RAGAS, DEEPEVAL = "ragas:", "deepeval:"
"""Before the name of a metric."""

NOTHING_RETRIEVED = "the target returned no source"
DEFAULT_MODEL, DEFAULT_EMBEDDINGS = "gpt-4o-mini", "text-embedding-3-small"


@dataclass(frozen=True)
class MetricPlace:
    """A metric as ``ragas:NAME?model=MODEL&embeddings=MODEL`` names it."""

    spec: str
    name: str
    model: str
    embeddings: str

    @classmethod
    def of(cls, spec: str) -> MetricPlace:
        """The metric that is named.

        Raises:
            UsageError: a setting is none of these.
        """
        place, _, query = spec.partition("?")
        settings = dict(parse_qsl(query, keep_blank_values=True))
        name = place.partition(":")[2]
        wrong = [each for each, value in settings.items() if each not in ("model", "embeddings") or not value]
        if wrong or (query and not settings) or not name.isidentifier():
            raise UsageError(f"`scores={spec:.200}`: write {place.partition(':')[0]}:METRIC or METRIC?model=MODEL")
        return cls(spec, name, settings.get("model", DEFAULT_MODEL), settings.get("embeddings", DEFAULT_EMBEDDINGS))

    def refused(self, why: str) -> UsageError:
        """The error that says why the metric cannot be used."""
        return UsageError(f"`scores={self.spec:.200}`: {why}")


def opened_library(package: str, modules: Iterable[str], place: MetricPlace) -> tuple[str, list[Any]]:
    """The version of a package and some of its modules.

    Raises:
        UsageError: it is not installed, or cannot be imported; the message says how to install it.
    """
    cure = f'install it: pip install "mlflow-evaltrack[{package}]"'
    try:
        return version(package), [import_module(name) for name in modules]
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0] or package
        why = f"needs {package}" if missing == package else f"{package} cannot be imported ({error})"
    except Exception as error:  # noqa: BLE001 - a library may raise anything when it is imported
        why = f"{package} cannot be imported ({type(error).__name__}: {error!s:.200})"
    raise place.refused(f"{why}; {cure}")


def check_server(place: MetricPlace) -> None:
    """Refuse a metric that asks a model where no server is named.

    Raises:
        UsageError: neither a key nor an address is set.
    """
    if not has_server():
        raise place.refused(f"asks {place.model}; set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")


def given_texts(question: Question, response: Response) -> dict[str, Any]:
    """What metrics are given, by the parts of a record; in the place of a part that is missing the reason, a `Lack`."""
    sources = response.sources
    without = sum(source.text is None for source in sources or ())
    if sources is None:
        texts: Any = Lack(NO_SOURCES)
    elif not sources:
        texts = Lack(NOTHING_RETRIEVED)
    elif without:
        texts = Lack(f"{without} of {len(sources)} sources have no text")
    else:
        texts = [source.text for source in sources]
    blank = not (response.answer or "").strip()
    expected = question.expected_answer
    return {
        "question": question.question,
        "answer": Lack(NO_ANSWER) if blank else response.answer,
        "sources": texts,
        "expected_answer": Lack(NO_EXPECTED_ANSWER) if expected is None else expected,
    }


@dataclass(frozen=True)
class Lack:
    """Why a part of a record is missing."""

    reason: str


def first_lack(given: Mapping[str, Any], parts: Iterable[str]) -> str:
    """Why a metric that needs these parts cannot be measured; empty where it can."""
    return next((given[part].reason for part in parts if isinstance(given[part], Lack)), "")


def read_value(name: str, value: object, library: str) -> OwnValues:
    """What a metric gave, or that it gave no number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return OwnValues(reasons={name: f"{library} gave {str(value)[:60]!r}, which is no number"})
    if not isfinite(number) or abs(number) > LARGEST_SCORE:
        return OwnValues(reasons={name: f"{library} gave {number}: it could not measure this answer"})
    return OwnValues(values={name: number})


def snake_case(name: str) -> str:
    """``AnswerRelevancy`` as ``answer_relevancy``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
