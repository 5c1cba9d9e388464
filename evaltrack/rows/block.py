"""Rows of consecutive questions that are held in columns: few kinds of rows, and what differs from row to row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from evaltrack.records import Question, Response, Row, Source
from evaltrack.records.base import record_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowBlock:
    """Rows of questions that were asked once, of responses that nobody judges.

    `examples` holds a row of each kind, which may be another question's and need not hold all of its texts; `kinds`
    the place of each row's kind among them. What is measured of rows of one kind is the same but for `num_tokens`.
    They stand at the positions from `first` on.
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

    def alike(self) -> Iterator[tuple[Row, Question, list[int]]]:
        """For rows of one kind in one domain and of one difficulty: the example, a question, and their tokens."""
        labels = ((question.domain, question.difficulty) for question in self.questions)
        places: dict[Any, list[int]] = defaultdict(list)
        for place, key in enumerate(zip(self.kinds, labels, strict=True)):
            places[key].append(place)
        for (kind, _), own in places.items():
            yield self.examples[kind], self.questions[own[0]], [self.num_tokens[place] for place in own]

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


def of_each_text(texts: pa.StringArray, make: Callable[[str], str]) -> pa.StringArray:
    """What `make` gives of each text, made once for those that are the same; null where a text is null or empty."""
    import pyarrow as pa

    coded = texts.dictionary_encode()
    made = [make(text) if text else None for text in coded.dictionary.to_pylist()]
    return pa.array(made, pa.string()).take(coded.indices)
