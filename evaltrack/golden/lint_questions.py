"""Finds weak questions in a golden set (repeats, contradictions, placeholders, stray blanks), and too small domains."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from evaltrack.golden.findings import Finding, finding, finding_of_set
from evaltrack.golden.reader import GoldenStats, NumberedQuestion
from evaltrack.golden.words import ContentWords
from evaltrack.records import Question
from evaltrack.records.base import as_key, count
from evaltrack.records.question import title_key
from evaltrack.stats.significance import MIN_CHANGED

MIN_WORDS = 3
"""Content words of a question, below which only equal texts ask the same."""

SENSE = (
    frozenset({"who", "whom", "whose", "when", "where", "why", "how"})
    | {"not", "no", "nor", "never", "without", "cannot", "can't", "don't", "doesn't", "isn't", "aren't", "won't"}
    | {"before", "after", "until", "during", "first", "last", "only", "more", "most", "less", "least", "fewer"}
    | {"above", "below", "under", "over", "up", "down", "on", "off", "in", "out", "he", "she", "they"}
)
"""Words that change the meaning of a question, including stop words."""

DIRECTION = frozenset({"from", "to", "than", "into", "between", "versus", "vs", "over"})
"""Words that make the order of the others matter: from Paris to London, safer than beef."""


def check_questions(entries: Sequence[NumberedQuestion]) -> Iterator[Finding]:
    """Yield findings about questions, each alone and compared with the others."""
    yield from _asking_the_same(entries)
    for entry in entries:
        yield from _repeats(entry)
        yield from _blanks(entry)
        yield from _useless_answer(entry)


def _asking_the_same(entries: Sequence[NumberedQuestion]) -> Iterator[Finding]:
    """Yield a finding for each question that asks the same as an earlier one of its domain.

    It contradicts that question if the expectations differ. Questions with different histories do not ask the same.
    """
    split = ContentWords()
    first = dict[tuple[object, ...], NumberedQuestion]()
    for entry in entries:
        question = entry.question
        earlier = first.setdefault((question.domain, question.history, *_meaning(question.question, split)), entry)
        if earlier is entry:
            continue
        asks = f"asks the same as question {earlier.question.id} (line {earlier.line})"
        if differs := _difference(question, earlier.question):
            cure = "expect the same of both, or remove one"
            yield finding(entry, "contradiction", f"{asks}, and {differs}", cure)
        else:
            yield finding(entry, "near-duplicate", f"{asks}, and counts twice", "reword or remove")


def _meaning(text: str, split: ContentWords) -> tuple[object, ...]:
    """Return a key that is equal for questions that differ only in word order, endings and stop words."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    words, stems = re.findall(r"\w+(?:'\w+)?", plain), split(plain)
    # numbers and signs always count: C++ and C# are two languages
    tokens = [token.strip(".,;:?!()[]{}'\"") for token in plain.split()]
    if len(stems) < MIN_WORDS:
        return (" ".join(tokens),)
    signs = sorted(filter(re.compile(r"[^\w'’-]|\d").search, tokens))
    ordered = stems if DIRECTION.intersection(words) else sorted(stems)
    return tuple(ordered), SENSE.intersection(words), tuple(signs)


def _difference(one: Question, other: Question) -> str:
    """Return the difference between two expectations; empty if a run can fulfil both."""
    if one.negative != other.negative:
        return "one of them is a negative"
    first, second = _expectation(one), _expectation(other)
    if first is not None and second is not None and first != second and not one.negative:
        return "expects other sources"
    return "" if set(one.expected_tools) == set(other.expected_tools) else "expects other tools"


def _expectation(question: Question) -> object:
    """Return the expected sources in a form that can be compared."""
    if question.expected is None:
        return None
    return question.by_title, frozenset(map(title_key, question.expected) if question.by_title else question.expected)


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
