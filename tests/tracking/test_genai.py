"""Metrics of Ragas and DeepEval through MLflow, with the installed libraries."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.judges.open_scores import open_scorer
from evaltrack.records import Question, Response, Source
from evaltrack.tracking.genai import LIBRARIES

pytestmark = pytest.mark.filterwarnings("ignore")  # both libraries warn of themselves
QUESTION = Question(id="1", question="Where is Hobbiton?", domain="d", expected_answer="In New Zealand.")


def needs(library: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(library) is None, reason=f"{library} is not installed")


def value(spec: str, answer: str, question: Question = QUESTION, **fields: Any) -> float | str:
    """What a score came to, or why it did not."""
    scorer = open_scorer(spec)
    made = asyncio.run(scorer(question, Response(answer=answer, **fields)))  # type: ignore[arg-type]
    (name,) = [score.name for score in scorer.declared]
    return made.values[name] if name in made.values else made.reasons[name]


@needs("ragas")
def test_values_of_ragas() -> None:
    assert value("mlflow:ragas.ExactMatch", "In New Zealand.") == 1.0
    assert value("mlflow:ragas.ExactMatch", "Here.") == 0.0
    assert value("mlflow:ragas.StringPresence", "It is. In New Zealand.") == 1.0
    alone = Question(id="1", question="Where?", domain="d")
    assert value("mlflow:ragas.ExactMatch", "Here.", alone) == "the question has no expected answer"


@needs("deepeval")
def test_values_of_deepeval() -> None:
    assert value("mlflow:deepeval.ExactMatch", "In New Zealand.") == 1.0
    assert value("mlflow:deepeval.ExactMatch", "Here.") == 0.0
    alone = Question(id="1", question="Where?", domain="d")
    assert "expected_output" in str(value("mlflow:deepeval.ExactMatch", "Here.", alone))


@pytest.mark.parametrize("library", [pytest.param(each, marks=needs(each)) for each in LIBRARIES])
def test_a_metric_is_a_score_of_a_run(library: str, tmp_path: Path, store_uri: str) -> None:
    answers, golden = tmp_path / "answers.jsonl", tmp_path / "golden.jsonl"
    answers.write_text('{"id": 1, "answer": "Paris"}\n{"id": 2, "answer": "Lyon"}\n')
    golden.write_text(
        '{"id": 1, "question": "The capital?", "expected_answer": "Paris"}\n'
        '{"id": 2, "question": "The largest city?", "expected_answer": "Paris"}\n'
    )
    made = run_eval(
        golden,
        target=f"recorded:{answers}",
        scores=[f"right=mlflow:{library}.ExactMatch"],
        judge="none",
        tracking_uri=store_uri,
        traces="off",
    )
    assert made.metrics["right"] == 0.5


@pytest.mark.parametrize("library", [pytest.param(each, marks=needs(each)) for each in LIBRARIES])
def test_a_metric_that_there_is_not(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"Unknown .*metric: 'Nothing'"):
        open_scorer(f"mlflow:{library}.Nothing")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        open_scorer(f"mlflow:{library}.Faithfulness?model=openai:/m")
    assert all(os.environ[name] == value for name, value in LIBRARIES[library].items())


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_that_is_not_installed(library: str) -> None:
    if find_spec(library):
        pytest.skip(f"{library} is installed")
    with pytest.raises(UsageError, match=f"needs {library}: .*; pip install {library}"):
        open_scorer(f"mlflow:{library}.ExactMatch")


@needs("ragas")
def test_texts_of_sources_reach_a_metric() -> None:
    held = (Source(chunk_id="a", text="In New Zealand."), Source(chunk_id="b", text="Elsewhere."))
    assert value("mlflow:ragas.NonLLMContextRecall", "Here.", sources=held) == 1.0
    for sources in (None, (), (Source(chunk_id="a"),)):
        said = value("mlflow:ragas.NonLLMContextRecall", "Here.", sources=sources)
        assert said == "the target returned no texts of sources"
