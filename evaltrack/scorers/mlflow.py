"""`mlflow:NAME`: a scorer of `mlflow.genai`, built in or the user's own, as a score.

| name | the scorer |
| --- | --- |
| `mlflow:Correctness` | built in, as `Safety`, `RelevanceToQuery`, `Completeness`, `Equivalence` |
| `mlflow:Guidelines:FILE` | guidelines, one on each line of a text file |
| `mlflow:ragas.Faithfulness`, `mlflow:deepeval.AnswerRelevancy` | a metric of Ragas or DeepEval that MLflow wraps |
| `mlflow:package.module:name` | the user's own `@scorer`, or an object as ``Guidelines(name=..., guidelines=...)`` |

`?model=openai:/gpt-4o-mini` behind one that is not the user's own names its judge; without it MLflow's default judges
(`MLFLOW_GENAI_JUDGE_DEFAULT_MODEL`, else `openai:/gpt-4.1-mini`). MLflow calls the model, at the address in
`OPENAI_BASE_URL` for ``openai:/``. The scorer is given ``{"question": ...}`` as inputs, the answer as outputs, and
expectations by MLflow's names; yes is 1 and no 0. A metric of Ragas or DeepEval is given the texts of the sources too,
and of what is expected the answer alone, as MLflow gives Ragas all expectations joined to one text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.metrics.citations import NO_ANSWER
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.scorers.builtin import bounded_text
from evaltrack.scorers.declaration import measured_value, own_score
from evaltrack.scorers.local import MLFLOW
from evaltrack.targets.python import import_function
from evaltrack.targets.threads import in_thread
from evaltrack.tracking.genai_judge import GenaiJudge, open_builtin_scorer
from evaltrack.tracking.genai_libraries import LIBRARIES, LibraryMetric

MAX_GUIDELINES = 100_000
"""Bytes of a file of guidelines."""


class MlflowScorer(Scorer):
    """Calls a scorer of MLflow for each answer, in threads.

    Raises:
        UsageError: there is no such scorer, or it needs more than a question, an answer and what is expected.
    """

    def __init__(self, spec: str, name: str = "") -> None:
        judge = _open(spec.removeprefix(MLFLOW), spec)
        rising = getattr(judge, "higher_is_better", True)
        fields = {"binary": judge.binary, "span": 1.0 if judge.binary else None, "higher_is_better": rising}
        self.declared = (own_score(name or judge.name, spec, list(judge.said), **fields),)
        self._judge = in_thread(judge)

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """The value, or why there is none."""
        (score,) = self.declared
        if response.answer is None:
            return OwnValues(reasons={score.name: NO_ANSWER})
        return measured_value(score.name, await self._judge(question, response))


def _open(place: str, spec: str) -> GenaiJudge | LibraryMetric:
    place, _, model = place.partition("?model=")
    name, colon, rest = place.partition(":")
    library, _, metric = name.partition(".")
    if library in LIBRARIES and metric and not colon:
        return LibraryMetric(library, metric, model, spec)
    settings: dict[str, Any] = {"model": model} if model else {}
    if not colon:
        return open_builtin_scorer(name, settings, spec)
    if name == "Guidelines":
        lines = _lines(Path(rest), spec)
        return open_builtin_scorer(name, {**settings, "guidelines": lines}, spec)
    if model:
        raise UsageError(f"`scores={spec}`: `?model=` is for scorers that are built in; name the model in your own")
    return GenaiJudge(import_function(place, "score"), spec)


def _lines(path: Path, spec: str) -> list[str]:
    text = bounded_text(path, MAX_GUIDELINES, spec, "write fewer guidelines")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise UsageError(f"`scores={spec}`: {path}: holds no guideline; write one on each line")
    return lines
