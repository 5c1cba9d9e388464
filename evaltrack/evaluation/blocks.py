"""Blocks of rows: responses at hand that nobody judges are scored in columns, without a record of each.

Questions and responses of another form, and those in which there may be a secret, are asked one by one as everywhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Literal

from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.at_once import Numbered, batches
from evaltrack.metrics.alike import is_plain, kind_of
from evaltrack.metrics.measure import measure
from evaltrack.privacy.redaction import SOURCE_TEXTS
from evaltrack.records import Question, Response, Row, Tokens
from evaltrack.records.base import record_of
from evaltrack.records.clock import seconds_now
from evaltrack.records.titles import title_key
from evaltrack.rows.block import RowBlock, of_each_text, response_of, spans_of

if TYPE_CHECKING:
    import pyarrow as pa

Method = Literal["counted", "estimated", "reported"]
"""How the tokens of a response are known."""

LEAST = 8
"""Questions of a block; fewer are asked one by one."""

SHORT, REMEMBERED = 4000, 8000
"""Characters of the texts whose tokens are remembered, and how many are."""

MOST_EXAMPLES = 2000
"""Rows that are remembered as examples of their kinds."""


def makes_blocks(evaluator: Evaluator) -> bool:
    """Whether rows of this evaluator may come in blocks."""
    return evaluator.answers_at_once and evaluator.rules.reasoning is None and evaluator.count is not None


async def rows_in_blocks(
    numbered: Iterator[Numbered], evaluator: Evaluator, stop: Callable[[], bool]
) -> AsyncGenerator[Row | RowBlock]:
    """The rows of all questions, each of which has one trial: as many as can be in blocks, the others one by one."""
    maker = _Maker(evaluator)
    for batch in batches(numbered):
        for plain, part in groupby(batch, lambda each: is_plain(each[1])):
            for rows in maker.blocks(list(part)) if plain else part:
                if stop():
                    return
                yield rows if isinstance(rows, RowBlock) else await evaluator.row(*rows)
        await asyncio.sleep(0)  # for whoever wants to stop the loop


class _Maker:
    """Makes the blocks of one run; the tokens of texts that sources have are remembered, and a row of each kind."""

    def __init__(self, evaluator: Evaluator) -> None:
        assert evaluator.count is not None
        self._target, self._rules, self._redactor = evaluator.target, evaluator.rules, evaluator.redactor
        self._count = evaluator.count
        self._tokens_of_texts: dict[str, int] = {}
        self._example_of_kind: dict[Hashable, Row] = {}

    def blocks(self, numbered: Sequence[Numbered]) -> Iterator[RowBlock | Numbered]:
        """Blocks of consecutive questions, and those that are to be asked one by one, in their order."""
        if len(numbered) < LEAST:
            yield from numbered
            return
        block = self._block(numbered)
        if block is not None:
            yield block
            return
        half = len(numbered) // 2
        yield from self.blocks(numbered[:half])
        yield from self.blocks(numbered[half:])

    def _block(self, numbered: Sequence[Numbered]) -> RowBlock | None:
        """The block of some plain questions; None where a response is not plain, or may hold a secret."""
        questions = [question for _, question, _ in numbered]
        started_at, start = seconds_now(), time.perf_counter()
        responses = self._target.columns_of(questions)
        seconds = (time.perf_counter() - start) / len(questions)
        if responses is None or not self._is_clean(responses):
            return None
        places, first_of_kinds = _kinds(questions, responses)
        num_tokens, method = self._num_tokens(questions, responses)
        self._remember(numbered, responses, first_of_kinds, method)
        times = {"started_at": started_at, "seconds": seconds}
        examples = [record_of(Row, vars(self._example_of_kind[kind]) | times) for kind in first_of_kinds]
        return RowBlock(numbered[0][0], questions, responses, examples, places, num_tokens)

    def _remember(
        self, numbered: Sequence[Numbered], responses: pa.Table, first_of_kinds: dict[Hashable, int], method: Method
    ) -> None:
        """Make an example of each kind that has none yet."""
        if len(self._example_of_kind) > MOST_EXAMPLES:
            self._example_of_kind.clear()
        new = {kind: place for kind, place in first_of_kinds.items() if kind not in self._example_of_kind}
        if not new:
            return
        tokens = Tokens(count=0, known=method)
        for (kind, place), response in zip(new.items(), _slim_responses(responses, list(new.values())), strict=True):
            self._example_of_kind[kind] = self._example(numbered[place], response, tokens)

    def _example(self, numbered: Numbered, response: Response, tokens: Tokens) -> Row:
        position, question, trial = numbered
        own = {"position": position, "question": question, "trial": trial, "response": response, "tokens": tokens}
        return record_of(Row, own | vars(measure(question, response, self._rules, tokens=tokens)))

    def _is_clean(self, responses: pa.Table) -> bool:
        """Whether the redactor leaves all texts as they are."""
        if self._redactor is None:
            return True
        sources = responses["sources"].chunk(0).values
        columns = map(sources.field, SOURCE_TEXTS)
        texts = [text for column in columns for text in column.unique().to_pylist()]
        return self._redactor.leaves(responses["answer"].to_pylist(), texts)

    def _num_tokens(self, questions: Sequence[Question], responses: pa.Table) -> tuple[list[int], Method]:
        """The tokens of each row, and the method by which they are known."""
        lists, k = responses["sources"].chunk(0), self._rules.k
        coded = lists.values.field("text").fill_null("").dictionary_encode()
        texts, codes = coded.dictionary.to_pylist(), coded.indices.to_pylist()
        first = [codes[start : min(end, start + k)] for start, end in spans_of(lists)]
        of_code = {code: self._tokens_of(texts[code]) for code in set(chain.from_iterable(first))}
        num_tokens = []
        for question, answer, own_codes in zip(questions, responses["answer"].to_pylist(), first, strict=True):
            own = self._count([question.question, answer or ""])
            num_tokens.append(own.count + sum(map(of_code.__getitem__, own_codes)))
        return num_tokens, own.known

    def _tokens_of(self, text: str) -> int:
        """Of the text of a source: the chunks of a corpus are returned for many questions."""
        number = self._tokens_of_texts.get(text)
        if number is None:
            number = self._count([text]).count
            if len(self._tokens_of_texts) >= REMEMBERED:
                self._tokens_of_texts.clear()
            if len(text) <= SHORT:
                self._tokens_of_texts[text] = number
        return number


def _kinds(questions: Sequence[Question], responses: pa.Table) -> tuple[list[int], dict[Hashable, int]]:
    """The place of each row's kind among the kinds, and the kinds, each with the place of its first row."""
    lists = responses["sources"].chunk(0)
    keys = {by_title: _keys(lists, by_title=by_title) for by_title in {each.by_title for each in questions}}
    others = (responses[name].to_pylist() for name in ("answer", "abstained", "model"))
    place_of_kind, places, first_of_kinds = dict[Hashable, int](), list[int](), dict[Hashable, int]()
    rows = zip(questions, spans_of(lists), *others, strict=True)
    for number, (question, (start, end), answer, abstained, model) in enumerate(rows):
        kind = kind_of(question, keys[question.by_title][start:end], answer, abstained=bool(abstained)), model
        place = place_of_kind.setdefault(kind, len(place_of_kind))
        if place == len(first_of_kinds):
            first_of_kinds[kind] = number
        places.append(place)
    return places, first_of_kinds


def _keys(lists: pa.ListArray, *, by_title: bool) -> list[str | None]:
    """What the sources of all lists are compared by."""
    column: pa.StringArray = lists.values.field("title" if by_title else "chunk_id")
    keys: list[str | None] = (of_each_text(column, title_key) if by_title else column).to_pylist()
    return keys


def _slim_responses(responses: pa.Table, places: list[int]) -> Iterator[Response]:
    """Some responses as far as they are measured: sources with names alone, and of an answer its first character."""
    for fields in responses.take(places).to_pylist():
        sources = [{name: each[name] for name in ("chunk_id", "title")} for each in fields["sources"]]
        answer = fields["answer"] and fields["answer"].strip()[:1]
        yield response_of({**fields, "sources": sources, "answer": answer})
