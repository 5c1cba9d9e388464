"""Functions that tests name as targets. This module imports little, because the process of a target imports it."""

from __future__ import annotations

from evaltrack.records import Question, Response, Source

FLIP = "second?"


def good(question: Question, k: int) -> Response:
    return Response(answer="so", sources=tuple(Source(chunk_id=key) for key in question.expected or ()))


def worse(question: Question, k: int) -> Response:
    return Response(answer="so", sources=(Source(chunk_id="x"),)) if question.question == FLIP else good(question, k)


def broken(question: Question, k: int) -> Response:
    if question.question == FLIP:
        raise RuntimeError("down")
    return good(question, k)


def raising(question: str) -> list[str]:
    raise RuntimeError(question)


def nothing(question: str) -> list[str]:
    return [f"not what {question} needs"]
