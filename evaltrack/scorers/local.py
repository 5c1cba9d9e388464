"""A score by its name, built in or a user's function: in this process, or in one of its own."""

from __future__ import annotations

import asyncio

from evaltrack.errors import UsageError
from evaltrack.records import OwnScore, OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.scorers.builtin import TOO_LONG, open_builtin
from evaltrack.scorers.declaration import split_name
from evaltrack.targets.child import Service
from evaltrack.targets.processes import Order, Pool, ResponseCall

CHOICES = (
    "exact_match, token_f1, contains, citation_precision, citation_recall, context_precision, faithfulness, "
    "tool_order, tool_arguments, cost, regex:PATTERN, json_schema:FILE, mlflow:SCORER or "
    "package.module:function"
)

SCHEMA_SECONDS = 5.0
"""For which a schema may be held against one answer."""

MLFLOW = "mlflow:"
"""Before the name of a scorer of `mlflow.genai`."""


def open_local(spec: str, *, own_loop: bool = True) -> Scorer:
    """The score that ``[NAME=]SCORE`` names, called in this process.

    Raises:
        UsageError: there is no such score, or it cannot be opened.
    """
    name, place = split_name(spec)
    builtin = open_builtin(place, name)
    if builtin is not None:
        return builtin
    if place.startswith(MLFLOW):
        from evaltrack.scorers.mlflow import MlflowScorer

        return MlflowScorer(place, name)
    from evaltrack.scorers.function import FunctionScorer
    from evaltrack.targets.python import import_function

    check_place(place)
    return FunctionScorer(import_function(place, "score"), place, name, own_loop=own_loop)


def check_place(place: str) -> None:
    """Refuse what cannot be the place of a function, nor a scorer of MLflow."""
    if place.startswith(MLFLOW) and place != MLFLOW:
        return
    module, colon, function = place.partition(":")
    if not (colon and all(map(str.isidentifier, (*module.split("."), *function.split("."))))):
        raise UsageError(f"`scores=`: unknown score `{place:.100}`; write {CHOICES}")


class ProcessScorer(Pool, Scorer):
    """Calls a score for each response, in a process of its own, which ends where a built-in one takes too long.

    Raises:
        UsageError: it cannot be opened.
    """

    def __init__(self, spec: str, *, measures_raw: bool = False) -> None:
        super().__init__(Order(spec, "evaltrack.scorers.local:answering"), f"score `{spec}`")
        self.declared = tuple(map(OwnScore.model_validate, self.facts["scores"]))
        self.measures_raw = measures_raw
        self._turn = asyncio.Lock()

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """What it gives, by name.

        Raises:
            RaisedElsewhereError: a user's function raised.
            ProcessEndedError: its process ended.
        """
        call = ResponseCall.model_construct(question=question, response=response)
        if not self.measures_raw:
            return OwnValues.model_validate_json(await self.call(call))
        async with self._turn:  # so that an answer that holds it up costs no other its time
            await self.ready()
            try:
                async with asyncio.timeout(SCHEMA_SECONDS):
                    return OwnValues.model_validate_json(await self.call(call))
            except TimeoutError:
                self.close()
                return OwnValues(reasons={score.name: TOO_LONG.format(SCHEMA_SECONDS) for score in self.declared})


def answering(spec: str) -> Service:
    """The score that ``[NAME=]SCORE`` names as a process serves it: from the JSON of a `ResponseCall` to `OwnValues`.

    Raises:
        UsageError: it cannot be opened.
    """
    scorer = open_local(spec, own_loop=False)

    async def answer(payload: bytes) -> bytes:
        call = ResponseCall.model_validate_json(payload)
        return (await scorer(call.question, call.response)).model_dump_json().encode()

    return Service(answer, lambda: {"scores": [score.model_dump() for score in scorer.declared]})
