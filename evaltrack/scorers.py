"""Provides evaltrack's scores (`RecallAtK`, `MRR`, `TokenF1`, ...) as scorers for `mlflow.genai.evaluate`.

    mlflow.genai.evaluate(data=data, predict_fn=ask, scorers=[RecallAtK(5), MRR(5), TokenF1()])

`inputs` holds the question, as `question` or as its only text. `expectations` has the names of a golden line
(`expected_chunks`, `expected_sources`, `expected_passages`) and of MLflow (`expected_response`, `expected_tool_calls`),
as in the records of MLflow's datasets. `outputs` may be anything that a target function may return: an answer, a list
of sources or ids, a mapping such as ``{"answer": ..., "sources": [...]}``, or objects of LangChain, LlamaIndex and
others. Grades of sources are no expectations: the functions count a graded source as relevant or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike, fspath
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.golden.importing.layouts import question_of
from evaltrack.judges.open_scores import measured_precision, open_builtin
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response
from evaltrack.records.run import MAX_K
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError
from evaltrack.targets.responses import as_response
from evaltrack.tracking.genai import GenaiScorer, genai_scorer

NOT_OF_THIS = "the question has no such score"

Measured = Callable[[Question, Response], float | str]


def RecallAtK(k: int = 5) -> GenaiScorer:  # noqa: N802 - named as MLflow's scorers are
    """`recall_at_K`: relevant in the first k / relevant."""
    return _retrieval("recall_at_k", f"recall_at_{k}", k)


def PrecisionAtK(k: int = 5) -> GenaiScorer:  # noqa: N802
    """`precision_at_K`: relevant in the first k / k."""
    return _retrieval("precision_at_k", f"precision_at_{k}", k)


def MRR(k: int = 5) -> GenaiScorer:  # noqa: N802
    """`mrr_at_K`: 1 / rank of the first relevant in the first k, else 0."""
    return _retrieval("reciprocal_rank", f"mrr_at_{k}", k)


def HitRate(k: int = 5) -> GenaiScorer:  # noqa: N802
    """`hit_rate_at_K`: 1 if any relevant is in the first k, else 0."""
    return _retrieval("hit", f"hit_rate_at_{k}", k)


def NDCGAtK(k: int = 5) -> GenaiScorer:  # noqa: N802
    """`ndcg_at_K`: discounted gain of the first k / that of the ideal list."""
    return _retrieval("ndcg_at_k", f"ndcg_at_{k}", k)


def NegativePass() -> GenaiScorer:  # noqa: N802
    """`negative_pass`: 1 if the target declined a negative question, else 0."""
    return _retrieval("negative_pass", "negative_pass", 1)


def ToolsCalled() -> GenaiScorer:  # noqa: N802
    """`tools_called`: 1 if every expected tool was called, else 0."""
    return _retrieval("tools_called", "tools_called", 1)


def ExactMatch() -> GenaiScorer:  # noqa: N802
    """`exact_match`: 1 if the answer has the words of the expected answer in their order, else 0."""
    return _builtin("exact_match")


def TokenF1() -> GenaiScorer:  # noqa: N802
    """`token_f1`: F1 of the answer's words against those of the expected answer, as SQuAD defines it."""
    return _builtin("token_f1")


def Contains() -> GenaiScorer:  # noqa: N802
    """`contains`: 1 if the answer has the words of the expected answer in a row, else 0."""
    return _builtin("contains")


def ContextPrecision(k: int = 5) -> GenaiScorer:  # noqa: N802
    """`context_precision_at_K`: the mean precision at the ranks of relevant sources in the first k."""
    _check_k(k)
    value = partial(measured_precision, k=k)
    return genai_scorer(f"context_precision_at_{k}", f"evaltrack: context_precision, k = {k}", _of_records(value))


def ToolOrder() -> GenaiScorer:  # noqa: N802
    """`tool_order`: the share of the sequence of expected tools that was called in its order."""
    return _builtin("tool_order")


def ToolArguments() -> GenaiScorer:  # noqa: N802
    """`tool_arguments`: the share of calls with expected arguments that were made with them."""
    return _builtin("tool_arguments")


def Regex(pattern: str, name: str = "regex") -> GenaiScorer:  # noqa: N802
    """`NAME`: 1 if Python's `re.search` finds the pattern in the answer, else 0. It runs in this process."""
    return _builtin(f"regex:{pattern}", name)


def JSONSchema(file: str | PathLike[str], name: str = "json_schema") -> GenaiScorer:  # noqa: N802
    """`NAME`: 1 if the answer is JSON that holds to the schema in a file, else 0."""
    return _builtin(f"json_schema:{fspath(file)}", name)


def _check_k(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
        raise UsageError(f"`k=`: is {k!r}; write a whole number from 1 to {MAX_K:,}")


def _retrieval(score: str, name: str, k: int) -> GenaiScorer:
    _check_k(k)

    def value(question: Question, response: Response) -> float | str:
        measured = measure(question, response, Rules(k))
        return measured.scores.get(score, measured.unmeasured.get(score, NOT_OF_THIS))

    return genai_scorer(name, f"evaltrack: {score}, k = {k}", _of_records(value))


def _builtin(spec: str, name: str = "") -> GenaiScorer:
    opened = open_builtin(spec, name)
    assert opened is not None  # one of the names above
    (score,) = opened.declared
    return genai_scorer(score.name, f"evaltrack: {score.computed_by}", _of_records(opened.measure))


def _of_records(value: Measured) -> Callable[[Mapping[str, Any], object, Mapping[str, Any]], float | str]:
    """Return a function that measures what MLflow gives to a scorer."""

    def of_mlflow(inputs: Mapping[str, Any], outputs: object, expectations: Mapping[str, Any]) -> float | str:
        question = question_of(inputs, expectations)
        if isinstance(question, list):
            return f"the question: {'; '.join(question)}"
        try:
            response = as_response(outputs)
        except (FailedElsewhereError, InvalidResponseError) as error:
            return f"the outputs: {error}"
        return value(question, response)

    return of_mlflow
