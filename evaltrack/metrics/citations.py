"""Whether the source that an answer cites holds the words that it quotes. Pure.

A *quotation* is what stands between double quotation marks ("..", “..”, „..“, «..») on one line and has at least three
words; fewer name a term. Its *citations* are the square brackets behind it, up to the next quotation, the end of the
sentence or that of the line: `[2]` is the second returned source, `[setup#3]` the source with that chunk id, `[1, 3]`
and `[1][3]` are two. Where a returned source has a number as its chunk id, numbers are chunk ids.

A source holds a quotation if its text has the same words in the same order without a gap, as passages are compared:
without case, punctuation and links' targets. A quotation with `...` or `[...]` in it is held if each part is.

Precision and recall follow those of citations in ALCE (Gao et al. 2023, "Enabling Large Language Models to Generate
Text with Citations", section 3), with quoted words in the place of a model that says what entails what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaltrack.records import Passage, Question, Response, Source
from evaltrack.records.passage import SourceText, words_of

LEAST_WORDS = 3
"""Words of a quotation; fewer between quotation marks name a term."""

NO_ANSWER = "the target gave no answer"
NO_SOURCES = "the target reports no sources"
NO_QUOTATION = f"the answer quotes nothing: no {LEAST_WORDS} words between double quotation marks"
NO_CITATION = "no quotation of the answer is followed by a citation such as [1] or [chunk_id]"
NO_TEXTS = "the sources that the answer cites have no text"

# Each class leaves out the marks that open, so that marks without an end cost no second look at what follows.
_QUOTATION = re.compile(r'(?<!\w)"([^"\n]+)"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»')
_BRACKET = re.compile(r"\[([^\[\]\n]+)\]")
_SENTENCE_END = re.compile(r'(?:[.!?]["”“»)]?\s+|[。！？]["”“»)]?\s*)(?=(\w))')
_ELISION = re.compile(r"\[?(?:\.\.\.|…)\]?")


@dataclass(frozen=True)
class Quotation:
    """Words that an answer quotes, each part without a gap, and what it cites for them as it is written."""

    parts: tuple[str, ...]
    citations: tuple[str, ...]


def citation_precision(_: Question, response: Response) -> float | str:
    """Of the citations behind quotations the share whose source holds the words; in [0, 1], or why there is none.

    A citation of a source that was not returned holds nothing; one of a source without text is left out.
    """
    checked = _checked(response)
    if isinstance(checked, str):
        return checked
    cited = [held for quotation in checked for held in quotation]
    known = [held for held in cited if held is not None]
    if not known:
        return NO_TEXTS if cited else NO_CITATION
    return sum(known) / len(known)


def citation_recall(_: Question, response: Response) -> float | str:
    """Of the quotations the share that a source cited for it holds; in [0, 1], or why there is none.

    A quotation without a citation is not held. One is left out where a source without text is cited for it and no other
    holds it.
    """
    checked = _checked(response)
    if isinstance(checked, str):
        return checked
    known = [any(quotation) for quotation in checked if any(quotation) or None not in quotation]
    return sum(known) / len(known) if known else NO_TEXTS


def quotations(answer: str, ids: frozenset[str] = frozenset()) -> Iterator[Quotation]:
    """The quotations of an answer with what they cite; `ids` are chunk ids, which may hold spaces."""
    matches = list(_QUOTATION.finditer(answer))
    for place, match in enumerate(matches):
        text = next(filter(None, match.groups()))
        parts = tuple(part for part in _ELISION.split(text) if words_of(part))
        if sum(len(words_of(part)) for part in parts) < LEAST_WORDS:
            continue
        end = matches[place + 1].start() if place + 1 < len(matches) else len(answer)
        yield Quotation(parts, tuple(_cited(_behind(answer, match.end(), end), ids)))


def _behind(answer: str, start: int, end: int) -> str:
    """What stands behind a quotation on its line and in its sentence, which may end with the quotation."""
    line = answer.find("\n", start, end)
    end = end if line < 0 else line
    first = start - 2  # the last letter of the quotation, and its mark
    for match in _SENTENCE_END.finditer(answer, first, end):
        if not (match[1].islower() or match[1].isdigit()):  # behind "p." or "e.g." the sentence goes on
            end = match.end()
            break
    return answer[start:end]


def _cited(text: str, ids: frozenset[str]) -> Iterator[str]:
    """What brackets name: a chunk id, or names without spaces between commas and semicolons."""
    for match in _BRACKET.finditer(text):
        content = match[1].strip()
        if content in ids:
            yield content
            continue
        names = [name.strip() for name in re.split("[,;]", content)]
        if all(name in ids or (name and not re.search(r"\s", name)) for name in names):
            yield from names


def _checked(response: Response) -> list[list[bool | None]] | str:
    """For each quotation and each of its citations whether the source holds it, None where that has no text."""
    if response.answer is None:
        return NO_ANSWER
    if response.sources is None:
        return NO_SOURCES
    by_name = _by_name(response.sources)
    found = list(quotations(response.answer, frozenset(by_name)))
    if not found:
        return NO_QUOTATION
    texts: dict[str, SourceText] = {}
    return [[_holds(by_name.get(name), each, texts) for name in each.citations] for each in found]


def _by_name(sources: Sequence[Source]) -> Mapping[str, Source]:
    """The sources by what an answer may call them: chunk ids, and ranks unless chunk ids are numbers."""
    ids = {source.chunk_id: source for source in reversed(sources) if source.chunk_id}
    if any(name.isdecimal() for name in ids):
        return ids
    return {str(rank): source for rank, source in enumerate(sources, start=1)} | ids


def _holds(source: Source | None, quotation: Quotation, texts: dict[str, SourceText]) -> bool | None:
    if source is None:
        return False
    if not source.text:
        return None
    if source.text not in texts:
        texts[source.text] = SourceText(source.text)
    return all(texts[source.text].holds(Passage(quote=part, share=1)) for part in quotation.parts)
