"""Finds weak questions in a golden set, such as repeats, near repeats and placeholders. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from evaltrack.golden.findings import Finding, finding, finding_of_set
from evaltrack.golden.reader import GoldenStats, NumberedQuestion
from evaltrack.golden.words import ContentWords
from evaltrack.records import Question
from evaltrack.records.amount import count
from evaltrack.records.base import as_key
from evaltrack.records.question import title_key
from evaltrack.stats.significance import MIN_CHANGED

MAX_COMPARED = 50
"""Minimum number of earlier sets that one is compared with if many share its rarest members."""


def similar_pairs(sets: Sequence[Set[int]], least: float) -> Iterator[tuple[int, int, float]]:
    """Yield the positions (lower first) and the similarity of all pairs of sets with at least this similarity.

    Jaccard similarity: members in both over members in either, in [0, 1]. Empty sets have no pairs. If a set has more
    than `MAX_COMPARED` candidates, some of its pairs may be left out.
    """
    counts = Counter(member for each in sets for member in each)
    holders: dict[int, list[int]] = defaultdict(list)
    for place, members in enumerate(sets):
        rare = sorted(members, key=lambda member: (counts[member], member))
        prefix = rare[: len(rare) - ceil(least * len(rare) - 1e-9) + 1] if rare else []
        candidates: set[int] = set()
        for member in prefix:
            candidates.update(holders[member])
            if len(candidates) >= MAX_COMPARED:
                break
        for other in sorted(candidates):
            shared = len(members & sets[other])
            if (similarity := shared / (len(members) + len(sets[other]) - shared)) >= least - 1e-9:
                yield other, place, similarity
        for member in prefix:
            if len(holders[member]) < MAX_COMPARED:
                holders[member].append(place)


LIKE = 0.8
"""Share of common content words from which two questions with equal expectations count as duplicates."""

ANSWERS_LIKE = 0.5
"""The same share for their answers."""

MIN_WORDS, MIN_LIKE_WORDS = 3, 5
"""Below the first number of content words only equal texts are duplicates; below the second all words must match."""

SENSE = (
    frozenset({"who", "whom", "whose", "when", "where", "why", "how"})
    | {"not", "no", "nor", "never", "without", "cannot", "can't", "don't", "doesn't", "isn't", "aren't", "won't"}
    | {"before", "after", "until", "during", "first", "last", "only", "more", "most", "less", "least", "fewer"}
    | {"above", "below", "under", "over", "up", "down", "on", "off", "in", "out", "he", "she", "they"}
)
"""Words that change the meaning of a question, including stop words."""

DIRECTION = frozenset({"from", "to", "than", "into", "between", "versus", "vs", "over"})
"""Words that make the order of the others matter: from Paris to London, safer than beef."""


@dataclass(frozen=True)
class _Wording:
    """The parts of a question that decide if it duplicates another."""

    text: str
    words: tuple[str, ...]
    sense: frozenset[str]
    signs: tuple[str, ...]
    ordered: bool

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two questions that differ only in word order, endings and stop words."""
        if len(self.words) < MIN_WORDS:
            return (self.text,)
        return (self.words if self.ordered else tuple(sorted(self.words)), self.sense, self.signs)


def check_questions(entries: Sequence[NumberedQuestion]) -> Iterator[Finding]:
    """Yield findings about questions, each alone and compared with the others."""
    yield from _asking_the_same(entries)
    for entry in entries:
        yield from _repeats(entry)
        yield from _blanks(entry)
        yield from _useless_answer(entry)


def _asking_the_same(entries: Sequence[NumberedQuestion]) -> Iterator[Finding]:
    """Yield a finding for each question that duplicates or contradicts an earlier one of its domain.

    Questions with different histories are not duplicates.
    """
    split = ContentWords()
    wordings = [_wording(entry.question.question, split) for entry in entries]
    first, reported = dict[tuple[object, ...], NumberedQuestion](), set[int]()
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
    # numbers and signs always count: C++ and C# are two languages
    tokens = [token.strip(".,;:?!()[]{}'\"") for token in plain.split()]
    signs = tuple(sorted(filter(re.compile(r"[^\w'’-]|\d").search, tokens)))
    ordered = not DIRECTION.isdisjoint(words)
    return _Wording(" ".join(tokens), tuple(split(plain)), SENSE.intersection(words), signs, ordered)


def _like(
    entries: Sequence[NumberedQuestion], wordings: Sequence[_Wording], split: ContentWords
) -> Iterator[tuple[NumberedQuestion, NumberedQuestion]]:
    """Yield pairs that share most words and have equal expectations and similar answers."""
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
    """Return the expected sources in a form that can be compared."""
    if question.expected is None:
        return None
    return question.by_title, frozenset(map(title_key, question.expected) if question.by_title else question.expected)


def _same(entry: NumberedQuestion, other: NumberedQuestion) -> Finding:
    """Return the finding about a duplicate, or a contradiction if the expectations differ."""
    asks = f"asks the same as question {other.question.id} (line {other.line})"
    if differs := _difference(entry.question, other.question):
        return finding(entry, "contradiction", f"{asks}, and {differs}", "expect the same of both, or remove one")
    return finding(entry, "near-duplicate", f"{asks}, and counts twice", "reword or remove")


def _difference(one: Question, other: Question) -> str:
    if one.negative != other.negative:
        return "one of them is a negative"
    first, second = _expectation(one), _expectation(other)
    if first is not None and second is not None and first != second and not one.negative:
        return "expects other sources"
    if set(one.expected_tools) != set(other.expected_tools):
        return "expects other tools"
    return ""


TEXTS = ("id", "question", "expected_answer", "domain", "category")
LISTS = ("expected_chunks", "expected_sources", "expected_tools")

PLACEHOLDERS = frozenset(
    ["tbd", "todo", "fixme", "xxx", "na", "placeholder", "answer", "empty", "null", "undefined", "pending"]
)


def _repeats(entry: NumberedQuestion) -> Iterator[Finding]:
    """Yield findings about sources that a question expects twice; they count once."""
    question, keys = entry.question, set[str]()
    field = "expected_sources" if question.by_title else "expected_chunks"
    for expected in question.expected_names or ():
        key = title_key(expected) if question.by_title else expected
        if key in keys:
            yield finding(entry, "repeated-id", f"`{expected}` is twice in `{field}`", "remove one")
        keys.add(key)


def _blanks(entry: NumberedQuestion) -> Iterator[Finding]:
    """Yield findings about texts with surrounding blanks: such ids match nothing, and such labels differ."""
    texts = [(field, f"`{field}`", getattr(entry.question, field) or "") for field in TEXTS]
    for field in LISTS:
        texts += ((field, f"`{text}` in `{field}`", text) for text in getattr(entry.question, field) or ())
    for field, place, text in texts:
        if text.strip() not in ("", text) and not (field == "domain" and text == as_key(Path(entry.file).stem)):
            yield finding(entry, "surrounding-blanks", f"{place} begins or ends with blanks", "remove them")


def _useless_answer(entry: NumberedQuestion) -> Iterator[Finding]:
    """Yield findings about placeholder answers, and about a negative's answer, which is never used."""
    answer = entry.question.expected_answer
    if answer is None:
        return
    words = set(re.findall(r"\w+", re.sub(r"\bn/a\b", "na", answer.casefold())))
    if entry.question.negative:
        message = "is a negative with an `expected_answer`, which is not used"
        yield finding(entry, "unused-answer", message, "remove it, or say which sources are expected")
    elif words <= PLACEHOLDERS:
        message = f"`expected_answer` is `{answer.strip()}`, which says nothing"
        yield finding(entry, "empty-answer", message, "write the answer, or leave the field out")


MIN_QUESTIONS, MIN_NEGATIVES = 10, 2
"""Minimum sizes of a domain."""


def check_size(file: str, stats: GoldenStats) -> Iterator[Finding]:
    """Yield findings about domains with few questions or negatives, and about a set too small for an exact paired test.

    In such a set no loss is significant, even if every answerable question breaks.
    """
    has_both = stats.questions not in (stats.judged_only, stats.negatives)
    for domain, questions in stats.domains.items() if has_both else ():
        negatives = stats.negatives_by_domain[domain]
        if questions < MIN_QUESTIONS or negatives < MIN_NEGATIVES:
            message = f"domain {domain} has {count(questions, 'question')}, of which {count(negatives, 'negative')}"
            cure = f"at least {MIN_QUESTIONS} with {MIN_NEGATIVES} or 3 negatives make a set"
            yield finding_of_set(file, "thin-domain", message, cure)
    answerable = stats.questions - stats.negatives - stats.judged_only
    if 0 < answerable < MIN_CHANGED:
        message = f"has {count(answerable, 'answerable question')}; even if all break, no exact test shows it at 95 %"
        yield finding_of_set(file, "too-small", message, f"write at least {MIN_CHANGED}")
