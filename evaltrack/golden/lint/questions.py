"""Questions that ask what another one asks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaltrack.golden.lint.alike import similar_pairs
from evaltrack.golden.lint.finding import Entry, Finding
from evaltrack.golden.words import ContentWords
from evaltrack.records import Question
from evaltrack.records.passage import title_key

LIKE = 0.8
"""Share of content words in common from which two questions that expect the same may ask the same."""

ANSWERS_LIKE = 0.5
"""Likewise of their answers."""

MIN_WORDS, MIN_LIKE_WORDS = 3, 5
"""Content words, below which only equal texts are the same question, and below which all of them must be the same."""

SENSE = (
    frozenset({"who", "whom", "whose", "when", "where", "why", "how"})
    | {"not", "no", "nor", "never", "without", "cannot", "can't", "don't", "doesn't", "isn't", "aren't", "won't"}
    | {"before", "after", "until", "during", "first", "last", "only", "more", "most", "less", "least", "fewer"}
    | {"above", "below", "under", "over", "up", "down", "on", "off", "in", "out", "he", "she", "they"}
)
"""Words that change what is asked, stop words or not."""

DIRECTION = frozenset({"from", "to", "than", "into", "between", "versus", "vs", "over"})
"""Words beside which the order of the others counts: from Paris to London, safer than beef."""


@dataclass(frozen=True)
class _Wording:
    """A question in the parts that decide whether another asks the same."""

    text: str
    words: tuple[str, ...]
    sense: frozenset[str]
    signs: tuple[str, ...]
    ordered: bool

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two questions that ask the same in words that differ in order, endings and stop words alone."""
        if len(self.words) < MIN_WORDS:
            return (self.text,)
        return (self.words if self.ordered else tuple(sorted(self.words)), self.sense, self.signs)


def check_questions(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Questions of one domain that ask the same, each with the first that does; and those that contradict it.

    After other turns the same words ask something else.
    """
    split = ContentWords()
    wordings = [_wording(entry.question.question, split) for entry in entries]
    first, reported = dict[tuple[object, ...], Entry](), set[int]()
    for entry, wording in zip(entries, wordings, strict=True):
        question = entry.question
        earlier = first.setdefault((question.domain, question.history, *wording.key), entry)
        if earlier is not entry:
            reported.add(entry.number)
            yield _same(entry, earlier)
    for one, other in _like(entries, wordings, split):
        if other.number not in reported:
            reported.add(other.number)
            yield _same(other, one)


def _wording(text: str, split: ContentWords) -> _Wording:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    words = re.findall(r"\w+(?:'\w+)?", plain)
    # numbers and signs are never a matter of wording: C++ and C# are two languages
    tokens = [token.strip(".,;:?!()[]{}'\"") for token in plain.split()]
    signs = tuple(sorted(filter(re.compile(r"[^\w'’-]|\d").search, tokens)))
    ordered = not DIRECTION.isdisjoint(words)
    return _Wording(" ".join(tokens), tuple(split(plain)), SENSE.intersection(words), signs, ordered)


def _like(entries: Sequence[Entry], wordings: Sequence[_Wording], split: ContentWords) -> Iterator[tuple[Entry, Entry]]:
    """Pairs that share most words and expect the same, in their answers too."""
    numbers: dict[str, int] = {}
    sets = [frozenset(numbers.setdefault(word, len(numbers)) for word in wording.words) for wording in wordings]
    for one, other, _ in similar_pairs(sets, LIKE):
        first, second = entries[one].question, entries[other].question
        before, after = wordings[one], wordings[other]
        if (
            min(len(sets[one]), len(sets[other])) >= MIN_LIKE_WORDS
            and (first.domain, first.history) == (second.domain, second.history)
            and (before.sense, before.signs) == (after.sense, after.signs)
            and first.expected
            and _expectation(first) == _expectation(second)
            and _answers_alike(first.expected_answer, second.expected_answer, split)
        ):
            yield entries[one], entries[other]


def _answers_alike(one: str | None, other: str | None, split: ContentWords) -> bool:
    if one is None or other is None:
        return one == other
    first, second = set(split(one)), set(split(other))
    return bool(first | second) and len(first & second) / len(first | second) >= ANSWERS_LIKE


def _expectation(question: Question) -> object:
    """What is expected of retrieval, in a form that compares."""
    if question.expected is None:
        return None
    return question.by_title, frozenset(map(title_key, question.expected) if question.by_title else question.expected)


def _same(entry: Entry, other: Entry) -> Finding:
    """A duplicate; a contradiction where what is expected differs."""
    asks = f"asks what {other} asks"
    if differs := _difference(entry.question, other.question):
        return entry.finding("contradiction", f"{asks}, and {differs}", "expect the same of both, or remove one")
    return entry.finding("near-duplicate", f"{asks}, and counts twice", "reword or remove")


def _difference(one: Question, other: Question) -> str:
    if one.negative != other.negative:
        return "one of them is a negative"
    first, second = _expectation(one), _expectation(other)
    if first is not None and second is not None and first != second and not one.negative:
        return "expects other sources"
    if set(one.expected_tools) != set(other.expected_tools):
        return "expects other tools"
    return ""
