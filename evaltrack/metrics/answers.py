"""Scores answers and tool calls: words compared with the expected answer, citations of sources, calls of tools.

**Words.** Exact match and token F1 as SQuAD defines them (Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine
Comprehension of Text", section 6.1). Empty answers are treated as in SQuAD 2.0 (Rajpurkar et al. 2018). Texts are
compared without case, punctuation and the English articles a, an and the. None of these numbers says if an answer is
right: a near miss shares most of its words.

**Citations.** A *quotation* is a text between double quotation marks ("..", “..”, „..“, «..») on one line, with at
least three words; fewer words name a term. Its *citations* are the square brackets after it, up to the next quotation,
the end of the sentence or the end of the line. `[2]` is the second returned source and `[setup#3]` the source with that
chunk id. `[1, 3]` and `[1][3]` are two citations. If a returned source has a number as its chunk id, numbers are chunk
ids. A source holds a quotation if its text has the same words in the same order without a gap. Words are compared as in
passages: without case, punctuation and the targets of links. A quotation with `...` or `[...]` is held if each part is.
Precision and recall follow ALCE (Gao et al. 2023, "Enabling Large Language Models to Generate Text with Citations",
section 3), with quoted words instead of a model that judges entailment.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from evaltrack.records import Passage, Question, Response, Source
from evaltrack.records.question import SourceText, words_of

LEAST_WORDS = 3
"""The least number of words in a quotation. Fewer words between quotation marks name a term."""

NO_ANSWER = "the target gave no answer"
NO_SOURCES = "the target reports no sources"
NO_QUOTATION = f"the answer quotes nothing: no {LEAST_WORDS} words between double quotation marks"
NO_CITATION = "no quotation of the answer is followed by a citation such as [1] or [chunk_id]"
NO_TEXTS = "the sources that the answer cites have no text"

# Each class excludes opening marks, so that text after a mark without an end is not scanned twice.
_QUOTATION = re.compile(r'(?<!\w)"([^"\n]+)"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»')
_BRACKET = re.compile(r"\[([^\[\]\n]+)\]")
_SENTENCE_END = re.compile(r'(?:[.!?]["”“»)]?\s+|[。！？]["”“»)]?\s*)(?=(\w))')
_ELISION = re.compile(r"\[?(?:\.\.\.|…)\]?")


@dataclass(frozen=True)
class Quotation:
    """A quotation in an answer: its parts, each without a gap, and its citations as written."""

    parts: tuple[str, ...]
    citations: tuple[str, ...]


def citation_precision(_: Question, response: Response) -> float | str:
    """Return the share of citations whose source holds the quoted words, in [0, 1], or the reason for no value.

    A citation of a source that was not returned holds nothing. A citation of a source without text is left out.
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
    """Return the share of quotations that a cited source holds, in [0, 1], or the reason for no value.

    A quotation without a citation is not held. It is left out if a cited source has no text and no other cited source
    holds it.
    """
    checked = _checked(response)
    if isinstance(checked, str):
        return checked
    known = [any(quotation) for quotation in checked if any(quotation) or None not in quotation]
    return sum(known) / len(known) if known else NO_TEXTS


def quotations(answer: str, ids: frozenset[str] = frozenset()) -> Iterator[Quotation]:
    """Yield the quotations of an answer with their citations. `ids` are chunk ids, which may hold spaces."""
    matches = list(_QUOTATION.finditer(answer))
    for place, match in enumerate(matches):
        text = next(filter(None, match.groups()))
        parts = tuple(part for part in _ELISION.split(text) if words_of(part))
        if sum(len(words_of(part)) for part in parts) < LEAST_WORDS:
            continue
        end = matches[place + 1].start() if place + 1 < len(matches) else len(answer)
        yield Quotation(parts, tuple(_cited(_behind(answer, match.end(), end), ids)))


def _behind(answer: str, start: int, end: int) -> str:
    """Return the text after a quotation on its line and in its sentence. The sentence may end with the quotation."""
    line = answer.find("\n", start, end)
    end = end if line < 0 else line
    first = start - 2  # the last letter of the quotation, and its mark
    for match in _SENTENCE_END.finditer(answer, first, end):
        if not (match[1].islower() or match[1].isdigit()):  # after "p." or "e.g." the sentence continues
            end = match.end()
            break
    return answer[start:end]


def _cited(text: str, ids: frozenset[str]) -> Iterator[str]:
    """Yield the names in brackets: one chunk id, or names without spaces that commas or semicolons separate."""
    for match in _BRACKET.finditer(text):
        content = match[1].strip()
        if content in ids:
            yield content
            continue
        names = [name.strip() for name in re.split("[,;]", content)]
        if all(name in ids or (name and not re.search(r"\s", name)) for name in names):
            yield from names


def _checked(response: Response) -> list[list[bool | None]] | str:
    """Return, for each citation of each quotation, True if the source holds it; None if the source has no text."""
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
    """Return the sources by the names that an answer may use: chunk ids, and ranks unless chunk ids are numbers."""
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


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def squad_words(text: str) -> list[str]:
    """Return the words to compare: NFC, lower case, no ASCII punctuation, no articles, split at white space."""
    return _ARTICLES.sub(" ", normalize("NFC", text).lower().translate(_PUNCTUATION)).split()


def exact_match(answer: str, expected: str) -> float:
    """Return 1 if both have the same words in the same order, else 0."""
    return float(squad_words(answer) == squad_words(expected))


def token_f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words, repeats counted.

    If either has no word, it is 1 if both have none, else 0.
    """
    given, wanted = squad_words(answer), squad_words(expected)
    if not given or not wanted:
        return float(given == wanted)
    common = (Counter(given) & Counter(wanted)).total()
    if not common:
        return 0.0
    precision, recall = common / len(given), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def contains(answer: str, expected: str) -> float:
    """Return 1 if the answer has the words of the expected answer one after the other, else 0.

    Words are compared whole: ``art`` is not in ``party``. An expected answer without a word is in every answer.
    """
    wanted = squad_words(expected)
    return float(not wanted or f" {' '.join(wanted)} " in f" {' '.join(squad_words(answer))} ")


NO_TOOLS = "the question expects no tools"
NO_ARGUMENTS = "the question expects no arguments of tools"


def tool_order(question: Question, response: Response) -> float | str:
    """Return the share of expected tools that were called in order, in [0, 1], or the reason for no value.

    It is the length of the longest common subsequence of the expected and the called names, over the number of expected
    names. This is the recall of ROUGE-L (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", section
    3.1) with tools as words. Calls in between cost nothing. 1 means that all expected calls were made in order.
    """
    expected = question.expected_tools
    if not expected:
        return NO_TOOLS
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(expected, [call.name for call in response.tool_calls]) / len(expected)


def tool_arguments(question: Question, response: Response) -> float | str:
    """Return the share of expected calls that were made with their arguments, in [0, 1], or the reason for no value.

    Only expected calls with arguments count. A call matches an expected one if it has the tool's name and each expected
    argument with an equal value: 1 equals 1.0, texts are compared letter by letter. Further arguments cost nothing.
    Each call matches at most one expected call, in the assignment that matches the most of them: a maximum matching, by
    the algorithm of Hopcroft and Karp (1973). Only `tool_order` scores the order of calls.
    """
    pairs = zip(question.expected_tools, question.expected_arguments, strict=False)
    expected = [(name, arguments) for name, arguments in pairs if arguments]
    if not expected:
        return NO_ARGUMENTS
    calls = response.tool_calls
    fits = [
        (row, place)
        for row, (name, arguments) in enumerate(expected)
        for place, call in enumerate(calls)
        if call.name == name and arguments.items() <= call.arguments.items()
    ]
    if not fits:
        return 0.0
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    graph = csr_array(([1] * len(fits), tuple(zip(*fits, strict=True))), shape=(len(expected), len(calls)))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum()) / len(expected)
