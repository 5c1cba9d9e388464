"""Whether what is expected ever comes back: ids of another form, or texts of another corpus, make all a miss."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaltrack.errors import Guide
from evaltrack.metrics.relevance import expected_of, relevant_keys, source_keys
from evaltrack.records import Row

ENOUGH = 10
"""Answerable questions after which it is said that nothing that they expect came back."""

SHOWN = 60
"""Characters of an id or of a text that are shown."""


class Returned:
    """Looks at the answerable questions as they are measured, until the first expected source comes back.

    Of questions that all failed before it is no wonder that what they expect does not: with `of_failed` nothing is
    said.
    """

    def __init__(self, warn: Callable[[str], object], *, of_failed: bool = False) -> None:
        self._warn = warn
        self._measured = 0
        self._came_back, self._has_looked = of_failed, False
        self._example = ""
        self._quoted = False

    def add(self, row: Row, times: int = 1) -> None:
        """Take one finished question, or more of its kind; what came back beyond the first k counts, too."""
        if self._came_back or row.response is None or "hit" not in row.scores:
            return
        keys = source_keys(row.question, row.response.sources or ())
        by_name = row.finds is None
        self._came_back = not relevant_keys(row.question).isdisjoint(keys) if by_name else any(row.finds or ())
        self._measured += times
        if not self._example:
            self._example, self._quoted = _example(row, keys)

    def may_warn_of(self, rows: Sequence[Row]) -> bool:
        """Whether something may still be said before the end, and any of these decides about it."""
        return not (self._came_back or self._has_looked) and any("hit" in row.scores for row in rows)

    def warn_once(self) -> None:
        """Say it as soon as enough questions are measured."""
        if self._measured >= ENOUGH and not self._has_looked:
            self._has_looked = True
            if note := self.note:
                self._warn(note)

    @property
    def note(self) -> str | None:
        """What is said of enough questions of which none ever got what it expects, where anything came back at all."""
        if self._came_back or self._measured < ENOUGH or not self._example:
            return None
        questions = f"{self._measured:,} questions"
        if self._quoted:
            what = f"no source held an expected quotation in any of {questions}: {self._example}"
            return f"{what}; are the quotations from the pages that the target searches? {Guide.QUOTATIONS.reference}"
        what = f"no expected source of {questions} ever came back: {self._example}; are the ids those of the target?"
        return f"{what} {Guide.IDS.reference}"


def _example(row: Row, keys: Sequence[str]) -> tuple[str, bool]:
    """What a question expects and the first that came back, both whole or with an ellipsis, and whether it is a text.

    Empty where nothing came back that can be shown.
    """
    passages = row.question.expected_passages if row.finds is not None else None
    quotes = [_quoted(passage.quote) for passage in passages or () if passage.quote is not None]
    if quotes:
        text = next((each.text for each in (row.response.sources if row.response else None) or () if each.text), "")
        return f"expected {quotes[0]}, returned e.g. {_quoted(text)}" if text else "", True
    named = next((key for key in keys if not key.startswith("\0")), "")
    return f"expected {_short(min(expected_of(row) or ()))}, returned e.g. {_short(named)}" if named else "", False


def _quoted(text: str) -> str:
    return f"“{_short(' '.join(text.split()))}”"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
