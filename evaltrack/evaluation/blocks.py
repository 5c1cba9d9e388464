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

LEAST = 8
"""Questions of a block; fewer are asked one by one."""

SHORT, REMEMBERED = 4000, 8000
"""Characters of the texts whose tokens are remembered, and how many are."""


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
    """Makes the blocks of one run; the tokens of texts that sources have are remembered."""

    def __init__(self, evaluator: Evaluator) -> None:
        assert evaluator.count is not None
        self._target, self._rules, self._redactor = evaluator.target, evaluator.rules, evaluator.redactor
        self._count = evaluator.count
        self._tokens_of_texts: dict[str, int] = {}

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
        kinds, first_of_kinds = _kinds(questions, responses)
        num_tokens, method = self._num_tokens(questions, responses)
        first, examples, times = numbered[0][0], list[Row](), {"started_at": started_at, "seconds": seconds}
        for place, fields in zip(first_of_kinds, responses.take(first_of_kinds).to_pylist(), strict=True):
            tokens = Tokens(count=num_tokens[place], known=method)
            examples.append(self._example(numbered[place], response_of(fields), tokens, times))
        return RowBlock(first, questions, responses, examples, kinds, num_tokens)

    def _example(self, numbered: Numbered, response: Response, tokens: Tokens, times: dict[str, float]) -> Row:
        position, question, trial = numbered
        own = {"position": position, "question": question, "trial": trial, "response": response, "tokens": tokens}
        return record_of(Row, own | times | vars(measure(question, response, self._rules, tokens=tokens)))

    def _is_clean(self, responses: pa.Table) -> bool:
        """Whether the redactor leaves all texts as they are."""
        if self._redactor is None:
            return True
        sources = responses["sources"].chunk(0).values
        columns = map(sources.field, SOURCE_TEXTS)
        texts = [text for column in columns for text in column.unique().to_pylist()]
        return self._redactor.leaves(responses["answer"].to_pylist(), texts)

    def _num_tokens(
        self, questions: Sequence[Question], responses: pa.Table
    ) -> tuple[list[int], Literal["counted", "estimated", "reported"]]:
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


def _kinds(questions: Sequence[Question], responses: pa.Table) -> tuple[list[int], list[int]]:
    """The place of each row's kind among the kinds, and the place of the first row of each kind."""
    lists = responses["sources"].chunk(0)
    chunk_ids, titles = (lists.values.field(name) for name in ("chunk_id", "title"))
    keys = {False: chunk_ids.to_pylist(), True: of_each_text(titles, title_key).to_pylist()}
    others = (responses[name].to_pylist() for name in ("answer", "abstained", "model"))
    kinds, places, first_of_kinds = dict[Hashable, int](), list[int](), list[int]()
    rows = zip(questions, spans_of(lists), *others, strict=True)
    for number, (question, (start, end), answer, abstained, model) in enumerate(rows):
        kind = kind_of(question, keys[question.by_title][start:end], answer, abstained=bool(abstained)), model
        place = kinds.setdefault(kind, len(kinds))
        if place == len(first_of_kinds):
            first_of_kinds.append(number)
        places.append(place)
    return places, first_of_kinds
