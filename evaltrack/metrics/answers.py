"""Scores of answers and tool calls: words against the expected answer, citations of sources, calls of tools. Pure.

**Words.** Exact match and token F1 as SQuAD defines them (Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine
Comprehension of Text", section 6.1), with the treatment of empty answers of SQuAD 2.0 (Rajpurkar et al. 2018). Texts
are compared without case, punctuation and the English articles a, an and the. None of these numbers says whether an
answer is right: a near miss shares most of its words.

**Citations.** A *quotation* is what stands between double quotation marks ("..", “..”, „..“, «..») on one line and has
at least three words; fewer name a term. Its *citations* are the square brackets behind it, up to the next quotation,
the end of the sentence or that of the line: `[2]` is the second returned source, `[setup#3]` the source with that chunk
id, `[1, 3]` and `[1][3]` are two. Where a returned source has a number as its chunk id, numbers are chunk ids. A source
holds a quotation if its text has the same words in the same order without a gap, as passages are compared: without
case, punctuation and links' targets. A quotation with `...` or `[...]` in it is held if each part is. Precision and
recall follow those of citations in ALCE (Gao et al. 2023, "Enabling Large Language Models to Generate Text with
Citations", section 3), with quoted words in the place of a model that says what entails what.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

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


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def squad_words(text: str) -> list[str]:
    """The words that are compared: NFC, lower case, no ASCII punctuation, no articles, split at white space."""
    return _ARTICLES.sub(" ", normalize("NFC", text).lower().translate(_PUNCTUATION)).split()


def exact_match(answer: str, expected: str) -> float:
    """1 if both have the same words in the same order, else 0."""
    return float(squad_words(answer) == squad_words(expected))


def token_f1(answer: str, expected: str) -> float:
    """The harmonic mean of precision and recall of the answer's words, repeats counted.

    Where either has no word it is 1 if both have none, else 0.
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
    """1 if the words of the expected answer stand in the answer one after the other, else 0.

    Whole words: ``art`` is not in ``party``. An expected answer without a word is in every answer.
    """
    wanted = squad_words(expected)
    return float(not wanted or f" {' '.join(wanted)} " in f" {' '.join(squad_words(answer))} ")


NO_TOOLS = "the question expects no tools"
NO_ARGUMENTS = "the question expects no arguments of tools"


def tool_order(question: Question, response: Response) -> float | str:
    """How much of the expected sequence of tools was called in its order; in [0, 1], or why it is not measured.

    The length of the longest common subsequence of the expected names and the called ones, over the number of expected
    names: the recall of ROUGE-L (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", section 3.1) with
    tools as words. Calls in between cost nothing. 1 says that all expected calls were made in their order.
    """
    expected = question.expected_tools
    if not expected:
        return NO_TOOLS
    return common_subsequence(expected, [call.name for call in response.tool_calls]) / len(expected)


def common_subsequence(expected: Sequence[str], calls: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    Bit by bit (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"), as a response may hold 100,000 calls: bit
    i of `open_places` is 0 where the length grows at the expected name i.
    """
    places: defaultdict[str, int] = defaultdict(int)
    for place, name in enumerate(expected):
        places[name] |= 1 << place
    all_places = open_places = (1 << len(expected)) - 1
    for name in calls:
        matches = open_places & places.get(name, 0)
        open_places = ((open_places + matches) | (open_places - matches)) & all_places
    return len(expected) - open_places.bit_count()


def tool_arguments(question: Question, response: Response) -> float | str:
    """Of the calls whose arguments are expected the share that was made with them; in [0, 1], or why there is none.

    A call is an expected one if it has the name of the tool and each expected argument with an equal value: equal as
    JSON, 1 and 1.0 too, texts letter by letter. Further arguments cost nothing. Each call stands for one expected call
    at most, in the assignment that fulfils the most of them. The order of calls counts in `tool_order` alone.
    """
    pairs = zip(question.expected_tools, question.expected_arguments, strict=False)
    expected = [_facts(name, arguments) for name, arguments in pairs if arguments]
    if not expected:
        return NO_ARGUMENTS
    wanted = set().union(*expected)
    calls = Counter(frozenset(_facts(call.name, call.arguments) & wanted) for call in response.tool_calls)
    return _most_fulfilled(expected, calls) / len(expected)


Fact = tuple[str, str, str]
"""The name of a tool, of an argument, and its value as JSON."""


def _facts(tool: str, arguments: Mapping[str, Any]) -> frozenset[Fact]:
    return frozenset((tool, name, _as_json(value)) for name, value in arguments.items())


def _as_json(value: object) -> str:
    """One text for all values that are equal as JSON."""
    return json.dumps(_with_whole_numbers(value), sort_keys=True, default=str)


def _with_whole_numbers(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _with_whole_numbers(item) for key, item in value.items()}
    return [_with_whole_numbers(item) for item in value] if isinstance(value, list | tuple) else value


def _most_fulfilled(expected: Sequence[frozenset[Fact]], calls: Mapping[frozenset[Fact], int]) -> int:
    """How many expected calls can have a call of their own: a largest matching (Hopcroft and Karp 1973).

    A call that carries all facts of an expected one is a candidate for it.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    made = [facts for facts, times in calls.items() if facts for _ in range(min(times, len(expected)))]
    fits = [(row, at) for row, wanted in enumerate(expected) for at, facts in enumerate(made) if wanted <= facts]
    if not fits:
        return 0
    graph = csr_array(([1] * len(fits), tuple(zip(*fits, strict=True))), shape=(len(expected), len(made)))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
