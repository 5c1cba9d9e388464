"""Metrics of Ragas and DeepEval as scores: what is the same for both, also where neither is installed."""

from __future__ import annotations

import sys

import pytest

from evaltrack.errors import UsageError
from evaltrack.metrics.citations import NO_ANSWER, NO_SOURCES
from evaltrack.records import Question, Response, Source
from evaltrack.scorers.builtin import NO_EXPECTED_ANSWER
from evaltrack.scorers.libraries import (
    NOTHING_RETRIEVED,
    MetricPlace,
    check_server,
    first_lack,
    given_texts,
    opened_library,
    read_value,
    snake_case,
)
from evaltrack.scorers.local import open_local

QUESTION = Question(id="1", question="q?", domain="d", expected_answer="b")
SOURCE = Source(chunk_id="a", text="words")


def test_names_and_settings() -> None:
    """The model of the judge and that of embeddings stand behind the name."""
    place = MetricPlace.of("ragas:faithfulness?model=a/b:c&embeddings=e")
    assert (place.name, place.model, place.embeddings) == ("faithfulness", "a/b:c", "e")
    assert MetricPlace.of("ragas:faithfulness").model == "gpt-4o-mini"


@pytest.mark.parametrize("spec", ["ragas:a b", "ragas:x?", "ragas:x?modle=a", "ragas:x?model=", "deepeval:x:y"])
def test_what_is_no_metric(spec: str) -> None:
    """The message shows the form."""
    if spec == "ragas:x?":
        assert MetricPlace.of(spec).name == "x"
        return
    with pytest.raises(UsageError, match=f"write {spec.partition(':')[0]}:METRIC or METRIC.model=MODEL"):
        MetricPlace.of(spec)


@pytest.mark.parametrize("package", ["ragas", "deepeval"])
def test_a_library_that_is_missing(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is asked, with the way to install it."""
    monkeypatch.setitem(sys.modules, package, None)
    for name in [each for each in sys.modules if each.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UsageError, match=rf'pip install "mlflow-evaltrack\[{package}\]"'):
        open_local(f"{package}:Faithfulness")


def test_a_library_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what it needs itself something is missing."""
    place = MetricPlace.of("ragas:faithfulness")
    with pytest.raises(UsageError, match=r"click cannot be imported.*absent_package"):
        opened_library("click", ["absent_package.module"], place)


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge without key and address is refused before the run."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match="asks m; set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        check_server(MetricPlace.of("ragas:faithfulness?model=m"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    check_server(MetricPlace.of("ragas:faithfulness?model=m"))


@pytest.mark.parametrize(
    ("response", "parts", "why"),
    [
        (Response(answer="a", sources=(SOURCE,)), ["question", "answer", "sources", "expected_answer"], ""),
        (Response(answer=" \n"), ["question", "answer"], NO_ANSWER),
        (Response(answer="a"), ["sources"], NO_SOURCES),
        (Response(answer="a", sources=()), ["sources"], NOTHING_RETRIEVED),
        (Response(answer="a", sources=(SOURCE, Source(chunk_id="b"))), ["sources"], "1 of 2 sources have no text"),
        (Response(answer="a"), ["answer"], ""),
    ],
)
def test_what_a_metric_lacks(response: Response, parts: list[str], why: str) -> None:
    """A part that is missing is a reason, and the library is not asked."""
    assert first_lack(given_texts(QUESTION, response), parts) == why


def test_a_question_without_an_expected_answer() -> None:
    """It lacks the reference."""
    question = QUESTION.model_copy(update={"expected_answer": None})
    assert first_lack(given_texts(question, Response(answer="a")), ["expected_answer"]) == NO_EXPECTED_ANSWER


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, None, "good", [1]])
def test_what_is_no_number(value: object) -> None:
    """It is a reason."""
    read = read_value("s", value, "Ragas")
    assert (read.values, list(read.reasons)) == ({}, ["s"])
    assert read.reasons["s"].startswith("Ragas gave ")


def test_numbers() -> None:
    """Those of numpy too, as they are."""
    assert read_value("s", 0.25, "Ragas").values == {"s": 0.25}


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("AnswerRelevancy", "answer_relevancy"),
        ("CHRFScore", "chrf_score"),
        ("PIILeakage", "pii_leakage"),
        ("Bias", "bias"),
    ],
)
def test_names_of_scores(name: str, snake: str) -> None:
    """As names of metrics are written."""
    assert snake_case(name) == snake
