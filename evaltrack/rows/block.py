"""Rows of consecutive questions that are held in columns: few kinds of rows, and what differs from row to row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from evaltrack.records import Question, Response, Row, Source
from evaltrack.records.base import record_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowBlock:
    """Rows of questions that were asked once, of responses that nobody judges.

    `examples` holds a row of each kind, `kinds` the place of each row's kind among them: rows of one kind differ in
    `questions` (but not in what follows from them), `answer` and `sources` of `responses`, and `num_tokens` alone. They
    stand at the positions from `first` on.
    """

    first: int
    questions: Sequence[Question]
    responses: pa.Table
    examples: Sequence[Row]
    kinds: Sequence[int]
    num_tokens: Sequence[int]

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def characters(self) -> int:
        """Of the texts of all rows, roughly."""
        return int(self.responses.nbytes)

    @cached_property
    def tokens_of_kinds(self) -> list[list[int]]:
        """The tokens of each row, by its kind."""
        by_kind: list[list[int]] = [[] for _ in self.examples]
        for kind, number in zip(self.kinds, self.num_tokens, strict=True):
            by_kind[kind].append(number)
        return by_kind

    def row(self, place: int) -> Row:
        """One of the rows as a record."""
        example, number = self.examples[self.kinds[place]], self.num_tokens[place]
        assert example.tokens is not None
        (fields,) = self.responses.slice(place, 1).to_pylist()
        own = {
            "position": self.first + place,
            "question": self.questions[place],
            "response": response_of(fields),
            "tokens": example.tokens.model_copy(update={"count": number}),
            "scores": {**example.scores, "num_tokens": float(number)},
        }
        return record_of(Row, vars(example) | own)

    def rows(self) -> Iterator[Row]:
        """All of them as records."""
        return map(self.row, range(len(self)))


def response_of(fields: dict[str, Any]) -> Response:
    """The response of a row of `RowBlock.responses`."""
    sources = tuple(record_of(Source, each) for each in fields["sources"])
    return record_of(Response, {**fields, "sources": sources, "abstained": bool(fields["abstained"])})


def spans_of(lists: pa.ListArray) -> list[tuple[int, int]]:
    """Where the items of each list begin and end among those of all."""
    return list(pairwise(lists.offsets.to_pylist()))
