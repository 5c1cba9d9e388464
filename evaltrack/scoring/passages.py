"""Whether the text of a source holds an expected passage."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from evaltrack.records.passage import Passage, words_of


class SourceText:
    """The words of a source's text, made once for all passages that are looked for in it."""

    def __init__(self, text: str) -> None:
        self._words = words_of(text)
        self._text = _joined(self._words)

    def holds(self, passage: Passage) -> bool:
        """Whether the text holds the quotation, or at least its share where a border of the text cuts it.

        Words are compared, in their order and without a gap. A text that lies wholly inside the quotation is cut on
        both sides.
        """
        quote = passage.words
        if not quote:
            return False
        if _joined(quote) in self._text:
            return True
        least = ceil(passage.share * len(quote))
        longest = min(len(quote) - 1, len(self._words))
        if least > longest:
            return False
        inside = len(self._words) < len(quote) and self._text in _joined(quote)
        return inside or any(self._is_cut(quote, size) for size in range(least, longest + 1))

    def _is_cut(self, quote: Sequence[str], size: int) -> bool:
        """Whether the text begins with the last words of the quotation, or ends with its first."""
        return self._text.startswith(_joined(quote[-size:])) or self._text.endswith(_joined(quote[:size]))


def _joined(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "
