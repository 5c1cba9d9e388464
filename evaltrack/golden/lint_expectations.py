"""Finds sources and quotations that a corpus lacks, answers that their chunks lack, and negatives it may answer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.findings import Finding, Library, finding
from evaltrack.golden.reader import NumberedQuestion
from evaltrack.golden.words import ContentWords, plain_form, told_apart
from evaltrack.records.base import first_of
from evaltrack.records.question import title_key

_first = partial(first_of, most=10)
NEAR = 60
"""Similarity (0 to 100, by the longest common subsequence) from which an id is suggested for a missing one."""

MAX_HINTS = 200
"""Missing ids for which a suggestion is searched; if there are more, the set belongs to another corpus."""


ADD_PAGE = "add the page, or correct the question"


def check_expectations(entries: Sequence[NumberedQuestion], library: Library) -> Iterator[Finding]:
    """Yield findings about expectations that do not fit the chunks of a library."""
    yield from check_ids(entries, library)
    yield from _ambiguous_titles(entries, library)
    yield from _foreign_answers(entries, library)
    yield from _copies(entries, library)


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
        return f"did you mean `{self.exact[near[0]]}`?" if near else ADD_PAGE


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
            if names.key(expected) in names.exact or names.key(expected.strip()) in names.exact:
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
    for number, ((by_title, page), found) in enumerate(missing.items()):
        names = titles if by_title else ids
        entry, expected = found[0]
        name = expected if all(each == expected for _, each in found) else page
        questions = list(dict.fromkeys(each.question.id for each, _ in found))
        several = f", and {len(questions)} questions expect it: {_first(questions)}" if len(questions) > 1 else ""
        cure = names.cure(name) if number < MAX_HINTS else ADD_PAGE
        yield finding(entry, "missing-id", f"`{name}` is not in {library.name}{several}", cure)


def _page(key: str) -> str:
    return re.split("[#@]", key, maxsplit=1)[0]


def _ambiguous_titles(entries: Iterable[NumberedQuestion], library: Library) -> Iterator[Finding]:
    """Yield findings about expected titles that several pages have; a source from any of them counts."""
    for entry in entries:
        for title in entry.question.expected_names or () if entry.question.by_title else ():
            pages = sorted({chunk.id.partition("#")[0] for chunk in library.by_title.get(title_key(title), ())})
            if len(pages) > 1:
                message = f"`{title}` is the title of {len(pages)} pages: {_first(pages)}"
                yield finding(entry, "ambiguous-source", message, "any of them counts; rename those that do not answer")


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

WINDOW = 50
"""Content words within which a chunk must hold those of a negative; in a long chunk they may be far apart."""


def _copies(entries: Sequence[NumberedQuestion], library: Library) -> Iterator[Finding]:
    """Yield findings about unexpected copies of an expected chunk, for which a target would lose points."""
    copies = _copies_of(library.chunks)
    for entry in entries:
        question = entry.question
        if question.expected_passages is not None or not question.expected_chunks:
            continue
        expected = set(question.expected_chunks)
        unmarked = sorted({twin for key in expected for twin in copies.get(key, ()) if twin not in expected})
        if unmarked:
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
    """Yield findings about negatives whose best chunk holds all their content words, in its title or close together.

    Args:
        best: Negatives, each with the best chunk of a lexical search whose score is above the floor.
        library: The library that holds these chunks.
    """
    split = ContentWords()
    for entry, chunk in best:
        words = set(split(entry.question.question))
        if len(words) >= MIN_NEGATIVE_WORDS and words <= library.words[chunk.id]:
            rest = words.difference(split(f"{chunk.title} {chunk.heading}"))
            if _are_near(rest, split(chunk.text)):
                message = f"is a negative, and `{chunk.id}` holds all {len(words)} content words of the question"
                yield finding(entry, "answered-negative", message, "read the chunk: where it answers, expect it")


def _are_near(words: Set[str], text: Sequence[str]) -> bool:
    """Return True if some passage of `WINDOW` words holds all of these words."""
    last: dict[str, int] = {}
    for place, word in enumerate(text):
        if word in words:
            last[word] = place
            if len(last) == len(words) and place - min(last.values()) < WINDOW:
                return True
    return not words


MOST_IN_CHUNKS = 0.25
"""Maximum share of an answer's content words in the expected chunks at which the answer is likely from elsewhere.

Of the 417 answers of the golden sets and of a public set on software documentation, the lowest share is 0.32. For a
neighbour of the expected chunk on its page 79 % are below the limit, for any other chunk 94 %.
"""

MIN_ANSWER_WORDS = 4
"""Content words of an answer, below which a paraphrase may share none."""


def _foreign_answers(entries: Iterable[NumberedQuestion], library: Library) -> Iterator[Finding]:
    """Yield findings about answers with few content words in the text of the expected chunks."""
    split = ContentWords()
    for entry in entries:
        chunks = library.expected_chunks(entry.question)
        if not chunks or not entry.question.expected_answer:
            continue
        words = split.by_stem(entry.question.expected_answer)
        text = frozenset[str]().union(*(library.words[chunk.id] for chunk in chunks))
        missing = [word for stem, word in words.items() if stem not in text]
        if len(words) >= MIN_ANSWER_WORDS and len(words) - len(missing) <= MOST_IN_CHUNKS * len(words):
            message = f"of the answer's {len(words)} content words {len(missing)} are not in the expected chunks"
            cure = "expect the chunk that answers, or correct the answer"
            yield finding(entry, "answer-not-in-chunks", f"{message}: {_first(missing)}", cure)
