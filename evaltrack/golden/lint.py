"""Finds weak questions in a golden set, too small domains, and expectations that the corpus does not fulfil."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

from pydantic import computed_field

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.reader import GoldenStats, NumberedQuestion
from evaltrack.golden.words import content_words, plain_form, text_key, told_apart, words_by_stem
from evaltrack.records import Passage, Question, Record
from evaltrack.records.base import count, first_of
from evaltrack.records.question import SourceText, title_key
from evaltrack.stats.significance import MIN_CHANGED

Severity = Literal["error", "warning", "note"]


ERRORS = ("bad-line", "bad-file", "missing-id", "other-form-id", "missing-quote")
WARNINGS = (
    *("contradiction", "near-duplicate", "answer-not-in-chunks", "empty-answer", "answered-negative"),
    *("unmarked-duplicate", "common-quote", "thin-domain", "too-small"),
)
NOTES = ("no-corpus",)
CODES: dict[str, Severity] = {
    **dict.fromkeys(ERRORS, "error"),
    **dict.fromkeys(WARNINGS, "warning"),
    **dict.fromkeys(NOTES, "note"),
}
"""Each code, which docs/lint.md describes, with its severity.

Errors exit with code 2, warnings with 1 if warnings are to count; notes only inform.
"""


class Finding(Record):
    """One problem in a golden set.

    `line` and `id` are None if it concerns the whole set; `id` is the question's.
    """

    file: str
    line: int | None = None
    id: str | None = None
    code: str
    message: str
    cure: str

    @computed_field
    @property
    def severity(self) -> Severity:
        """The severity of its code."""
        return CODES[self.code]

    def __str__(self) -> str:
        """Return ``FILE:LINE: question ID: what is wrong; cure [code]``."""
        severity = "" if self.severity == "error" else f"{self.severity}: "
        question = "" if self.id is None else f"question {self.id}: "
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {severity}{question}{self.message}; {self.cure} [{self.code}]"


def finding(asked: NumberedQuestion, code: str, message: str, cure: str) -> Finding:
    """Return a finding about one question."""
    return Finding(file=asked.file, line=asked.line, id=asked.question.id, code=code, message=message, cure=cure)


@dataclass(frozen=True)
class Library:
    """The chunks of a corpus for the questions of some domains; messages call it `name`."""

    name: str
    chunks: tuple[Chunk, ...]
    domains: frozenset[str]

    def entries(self, entries: Iterable[NumberedQuestion]) -> list[NumberedQuestion]:
        """Return the questions of this library's domains."""
        return [entry for entry in entries if entry.question.domain in self.domains]

    @cached_property
    def by_id(self) -> dict[str, Chunk]:
        """The chunks by their ids."""
        return {chunk.id: chunk for chunk in self.chunks}

    @cached_property
    def by_title(self) -> dict[str, list[Chunk]]:
        """The chunks of each title, by the normalized title (`title_key`)."""
        titles: dict[str, list[Chunk]] = {}
        for chunk in self.chunks:
            titles.setdefault(title_key(chunk.title), []).append(chunk)
        return titles

    @cached_property
    def words(self) -> dict[str, frozenset[str]]:
        """The content words of each chunk, with its title and heading, by its id."""
        texts = {chunk.id: f"{chunk.title} {chunk.heading} {chunk.text}" for chunk in self.chunks}
        return {key: frozenset(content_words(text)) for key, text in texts.items()}

    @cached_property
    def texts(self) -> dict[str, SourceText]:
        """The text of each chunk with its heading, as a target returns it, by id."""
        return {chunk.id: SourceText(chunk.headed_text) for chunk in self.chunks}

    def expected_chunks(self, question: Question) -> list[Chunk]:
        """Return the chunks that a question expects, by passage, id or title; empty if any of them is missing."""
        parts = [self._holders(passage) for passage in question.expected_passages or ()]
        if question.expected_passages is None:
            expected = question.expected_names or ()
            if question.by_title:
                parts = [self.by_title.get(title, []) for title in dict.fromkeys(map(title_key, expected))]
            else:
                parts = [[self.by_id[key]] if key in self.by_id else [] for key in dict.fromkeys(expected)]
        return [chunk for part in parts for chunk in part] if all(parts) else []

    def _holders(self, passage: Passage) -> list[Chunk]:
        return [each for each in self.chunks if each.id in passage.any_of or self.texts[each.id].holds(passage)]


PUNCTUATION = ".,;:?!()[]{}'\""
"""Signs around words that do not change a question. Signs such as in C++ and C# do."""


def check_questions(entries: Sequence[NumberedQuestion]) -> Iterator[Finding]:
    """Yield findings about questions, each alone and compared with the others."""
    yield from _asking_the_same(entries)
    for entry in entries:
        answer = entry.question.expected_answer
        if answer is not None and answer.casefold().strip(" .,;:?!-<>[]()") in PLACEHOLDERS:
            message = f"`expected_answer` is `{answer.strip()}`, which says nothing"
            yield finding(entry, "empty-answer", message, "write the answer, or leave the field out")


def _asking_the_same(entries: Sequence[NumberedQuestion]) -> Iterator[Finding]:
    """Yield a finding for each question that asks the same as an earlier one of its domain.

    It contradicts that question if the expectations differ. Questions with different histories do not ask the same.
    """
    first = dict[tuple[object, ...], NumberedQuestion]()
    for entry in entries:
        question = entry.question
        words = filter(None, (word.strip(PUNCTUATION) for word in text_key(question.question).split()))
        earlier = first.setdefault((question.domain, question.history, *words), entry)
        if earlier is entry:
            continue
        asks = f"asks the same as question {earlier.question.id} (line {earlier.line})"
        if differs := _difference(question, earlier.question):
            cure = "expect the same of both, or remove one"
            yield finding(entry, "contradiction", f"{asks}, and {differs}", cure)
        else:
            yield finding(entry, "near-duplicate", f"{asks}, and counts twice", "reword or remove")


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


PLACEHOLDERS = frozenset(
    ["", "tbd", "todo", "fixme", "xxx", "na", "n/a", "placeholder", "answer", "empty", "null", "undefined", "pending"]
)


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
            yield Finding(file=file, code="thin-domain", message=message, cure=cure)
    answerable = stats.questions - stats.negatives - stats.judged_only
    if 0 < answerable < MIN_CHANGED:
        message = f"has {count(answerable, 'answerable question')}; even if all break, no exact test shows it at 95 %"
        yield Finding(file=file, code="too-small", message=message, cure=f"write at least {MIN_CHANGED}")


_first = partial(first_of, most=10)
NEAR = 60
"""Similarity (0 to 100, by the longest common subsequence) from which an id is suggested for a missing one."""


def check_expectations(entries: Sequence[NumberedQuestion], library: Library) -> Iterator[Finding]:
    """Yield findings about expectations that do not fit the chunks of a library."""
    yield from check_ids(entries, library)
    copies = _copies_of(library.chunks)
    for entry in entries:
        yield from _foreign_answer(entry, library)
        yield from _unexpected_copies(entry, copies)


class _Names:
    """The ids or titles of a library as written, by the form in which they are compared."""

    def __init__(self, names: Iterable[str], *, by_title: bool) -> None:
        self.key: Callable[[str], str] = title_key if by_title else str
        self.exact = {self.key(name): name for name in names}
        self.forms: dict[str, set[str]] = {}
        for name in self.exact.values():
            self.forms.setdefault(plain_form(name), set()).add(name)

    def meant(self, name: str) -> list[str]:
        """Return the names that differ from this one only in their spelling (see `plain_form`)."""
        return sorted(self.forms.get(plain_form(name), ()))

    def cure(self, name: str) -> str:
        """Return the fix for a missing name: a suggestion of the most similar name, or to add the page."""
        from rapidfuzz import fuzz, process

        if meant := self.meant(name):
            return f"did you mean `{'` or `'.join(meant[:10])}`?"
        near = process.extractOne(self.key(name), self.exact.keys(), scorer=fuzz.ratio, score_cutoff=NEAR)
        return f"did you mean `{self.exact[near[0]]}`?" if near else "add the page, or correct the question"


def check_ids(entries: Iterable[NumberedQuestion], library: Library) -> Iterator[Finding]:
    """Yield findings about expected sources that the library lacks or spells differently.

    A missing page is one finding, however many questions expect chunks of it.
    """
    ids = _Names((chunk.id for chunk in library.chunks), by_title=False)
    titles = _Names((chunk.title for chunk in library.chunks), by_title=True)
    pages = {_page(chunk.id) for chunk in library.chunks}
    missing: dict[tuple[bool, str], list[tuple[NumberedQuestion, str]]] = {}
    for entry in entries:
        question, are_missing = entry.question, False
        names = titles if question.by_title else ids
        for expected in question.expected_names or ():
            if names.key(expected) in names.exact:
                continue
            if len(meant := names.meant(expected)) == 1:
                wrong, right = told_apart(expected, meant[0])
                message = f"`{wrong}` is not in {library.name}, `{right}` is"
                yield finding(entry, "other-form-id", message, f"write `{right}`")
                continue
            page = expected if question.by_title or _page(expected) in pages else _page(expected)
            missing.setdefault((question.by_title, page), []).append((entry, expected))
            are_missing = True
        yield from _check_passages(entry, library, are_missing=are_missing)
    for (by_title, page), found in missing.items():
        names = titles if by_title else ids
        entry, expected = found[0]
        name = expected if all(each == expected for _, each in found) else page
        questions = list(dict.fromkeys(each.question.id for each, _ in found))
        several = f", and {len(questions)} questions expect it: {_first(questions)}" if len(questions) > 1 else ""
        yield finding(entry, "missing-id", f"`{name}` is not in {library.name}{several}", names.cure(name))


def _page(key: str) -> str:
    return re.split("[#@]", key, maxsplit=1)[0]


MOST_CHUNKS = 3
"""Chunks that may hold one whole quotation without a finding: chunks overlap, and a page may repeat a sentence."""


def _check_passages(entry: NumberedQuestion, library: Library, *, are_missing: bool) -> Iterator[Finding]:
    """Yield findings about quotations in no chunk or in too many, and about chunk ids that do not exist.

    With `are_missing` (ids of the question are missing) missing quotations are not reported: their page is likely the
    missing one.
    """
    for passage in entry.question.expected_passages or ():
        if passage.any_of and not set(passage.any_of) & library.by_id.keys() and not are_missing:
            message = f"none of `{'`, `'.join(passage.any_of)}` is in {library.name}"
            yield finding(entry, "missing-id", message, "name the chunks that hold the passage, or quote it")
        if passage.quote is None:
            continue
        whole = passage.model_copy(update={"share": 1.0})
        places = sum(text.holds(whole) for text in library.texts.values())
        if places > MOST_CHUNKS:
            message = f"{places} chunks hold {passage.key}, and any of them counts"
            yield finding(entry, "common-quote", message, "quote words that are in no other place")
        elif not (places or are_missing or any(text.holds(passage) for text in library.texts.values())):
            message = f"no chunk of {library.name} holds {passage.key}"
            yield finding(entry, "missing-quote", message, "quote the page word by word, or add the page")


MIN_COPY_WORDS = 5
"""Words of a chunk, below which it is too short to be a copy."""

MIN_NEGATIVE_WORDS = 4
"""Content words of a negative, below which a chunk may hold them all by chance."""


def _unexpected_copies(entry: NumberedQuestion, copies: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Yield a finding about unexpected copies of an expected chunk, for which a target would lose points."""
    decides = entry.question.expected_passages is None
    expected = set(entry.question.expected_chunks or ()) if decides else set[str]()
    if unmarked := sorted({twin for key in expected for twin in copies.get(key, ())} - expected):
        verbs = "has {}, and is" if len(unmarked) == 1 else "have {}, and are"
        message = f"{_first(unmarked)} {verbs.format('the text of an expected chunk')} not expected"
        yield finding(entry, "unmarked-duplicate", message, "expect the copy too, or remove it from the corpus")


def _copies_of(chunks: Sequence[Chunk]) -> dict[str, list[str]]:
    """Return the ids of all chunks with the same words, by the id of each."""
    same: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for chunk in chunks:
        words = tuple(re.findall(r"\w+", chunk.text.casefold()))
        if len(words) >= MIN_COPY_WORDS:
            same[words].append(chunk.id)
    return {key: keys for keys in same.values() for key in keys if len(keys) > 1}


def check_negatives(best: Iterable[tuple[NumberedQuestion, Chunk]], library: Library) -> Iterator[Finding]:
    """Yield findings about negatives whose best chunk holds all their content words.

    Args:
        best: Negatives, each with the best chunk of a lexical search whose score is above the floor.
        library: The library that holds these chunks.
    """
    for entry, chunk in best:
        words = set(content_words(entry.question.question))
        if len(words) >= MIN_NEGATIVE_WORDS and words <= library.words[chunk.id]:
            message = f"is a negative, and `{chunk.id}` holds all {len(words)} content words of the question"
            yield finding(entry, "answered-negative", message, "read the chunk: where it answers, expect it")


MOST_IN_CHUNKS = 0.25
"""Maximum share of an answer's content words in the expected chunks at which the answer is likely from elsewhere.

Of the 417 answers of the golden sets and of a public set on software documentation, the lowest share is 0.32. For a
neighbour of the expected chunk on its page 79 % are below the limit, for any other chunk 94 %.
"""

MIN_ANSWER_WORDS = 4
"""Content words of an answer, below which a paraphrase may share none."""


def _foreign_answer(entry: NumberedQuestion, library: Library) -> Iterator[Finding]:
    """Yield a finding about an answer with few content words in the text of the expected chunks."""
    chunks, words = library.expected_chunks(entry.question), words_by_stem(entry.question.expected_answer or "")
    text = frozenset[str]().union(*(library.words[chunk.id] for chunk in chunks))
    missing = [word for stem, word in words.items() if stem not in text]
    if chunks and len(words) >= MIN_ANSWER_WORDS and len(words) - len(missing) <= MOST_IN_CHUNKS * len(words):
        message = f"of the answer's {len(words)} content words {len(missing)} are not in the expected chunks"
        cure = "expect the chunk that answers, or correct the answer"
        yield finding(entry, "answer-not-in-chunks", f"{message}: {_first(missing)}", cure)
