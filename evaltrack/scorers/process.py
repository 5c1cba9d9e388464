"""A score in a process of its own: what it does to that process, ends or holds up, is nothing to the run."""

from __future__ import annotations

from evaltrack.records import OwnScore, OwnValues, Question, Response
from evaltrack.records.base import Record
from evaltrack.records.roles import Scorer
from evaltrack.scorers.local import open_local
from evaltrack.targets.child.in_processes import InProcesses
from evaltrack.targets.child.server import Service


class Call(Record):
    """What a process is given."""

    question: Question
    response: Response


class ProcessScorer(InProcesses, Scorer):
    """Calls a score for each response, in a process of its own.

    Raises:
        UsageError: it cannot be opened.
    """

    def __init__(self, spec: str, *, measures_raw: bool = False) -> None:
        from evaltrack.targets.child.pool import Pool
        from evaltrack.targets.child.process import Order

        super().__init__(Pool(Order(spec, "evaltrack.scorers.process:answering"), f"score `{spec}`"))
        self.declared = tuple(map(OwnScore.model_validate, self._pool.facts["scores"]))
        self.measures_raw = measures_raw

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """What it gives, by name.

        Raises:
            RaisedElsewhereError: a user's function raised.
            ProcessEndedError: its process ended.
        """
        call = Call.model_construct(question=question, response=response)
        values = await self._pool.call(call.model_dump_json(exclude_defaults=True).encode())
        return OwnValues.model_validate_json(values)


def answering(spec: str) -> Service:
    """The score that ``[NAME=]SCORE`` names as a child process serves it: from the JSON of a `Call` to `OwnValues`.

    Raises:
        UsageError: it cannot be opened.
    """
    scorer = open_local(spec, own_loop=False)

    async def answer(payload: bytes) -> bytes:
        call = Call.model_validate_json(payload)
        return (await scorer(call.question, call.response)).model_dump_json().encode()

    return Service(answer, {"scores": [score.model_dump() for score in scorer.declared]})
