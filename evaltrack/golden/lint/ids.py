"""What a question expects, held against what there is: names and passages that are missing or in another form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evaltrack.golden.lint.finding import SHOWN_NAMES, Entry, Finding, first_names
from evaltrack.golden.lint.library import Library
from evaltrack.golden.words import plain_form, told_apart
from evaltrack.records import Passage, Question
from evaltrack.records.passage import title_key

TEXTS = ("id", "question", "expected_answer", "domain", "category")
LISTS = ("expected_chunks", "expected_sources", "expected_tools")

NEAR = 60
"""Likeness (0 to 100, by the longest common subsequence) from which a missing id is likely meant as another."""

MAX_HINTS = 200
"""Missing ids for which the nearest is looked for; of a set with more, the corpus is another one."""


@dataclass(frozen=True)
class _Names:
    """The ids or titles of a library: as they are written, by the form in which they compare."""

    exact: Mapping[str, str]
    forms: Mapping[str, frozenset[str]]
    by_title: bool

    def key(self, name: str) -> str:
        """The form in which names compare."""
        return title_key(name) if self.by_title else name

    def meant(self, name: str) -> list[str]:
        """The names that differ from this in their form alone."""
        return sorted(self.forms.get(plain_form(name), ()))


def _names(names: Iterable[str], by_title: bool) -> _Names:
    exact = {title_key(name) if by_title else name: name for name in names}
    forms: dict[str, set[str]] = {}
    for name in exact.values():
        forms.setdefault(plain_form(name), set()).add(name)
    return _Names(exact, {form: frozenset(each) for form, each in forms.items()}, by_title)


def check_ids(entries: Iterable[Entry], library: Library) -> Iterator[Finding]:
    """What is expected and is not in the library, or only in another form.

    A page that is not there is one finding, whatever its questions expect of it.
    """
    ids = _names((chunk.id for chunk in library.chunks), by_title=False)
    titles = _names((chunk.title for chunk in library.chunks), by_title=True)
    pages = {_page(chunk.id) for chunk in library.chunks}
    missing: dict[tuple[bool, str], list[tuple[Entry, str]]] = {}
    for entry in entries:
        question, are_missing = entry.question, False
        names = titles if question.by_title else ids
        for expected in question.expected_names or ():
            if names.key(expected) in names.exact or names.key(expected.strip()) in names.exact:
                continue
            if len(meant := names.meant(expected)) == 1:
                wrong, right = told_apart(expected, meant[0])
                message = f"`{wrong}` is not in {library.name}, `{right}` is"
                yield entry.finding("other-form-id", message, f"write `{right}`")
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
        several = f", and {len(questions)} questions expect it: {first_names(questions)}" if len(questions) > 1 else ""
        if meant := names.meant(name):
            cure = f"did you mean `{'` or `'.join(meant[:SHOWN_NAMES])}`?"
        else:
            cure = _nearest(names.key(name), names.exact) if number < MAX_HINTS else ""
        cure = cure or "add the page, or correct the question"
        yield entry.finding("missing-id", f"`{name}` is not in {library.name}{several}", cure)


def _page(key: str) -> str:
    """The page of a chunk's id."""
    return re.split("[#@]", key, maxsplit=1)[0]


def _nearest(key: str, exact: Mapping[str, str]) -> str:
    from rapidfuzz import fuzz, process

    near = process.extractOne(key, exact.keys(), scorer=fuzz.ratio, score_cutoff=NEAR)
    return f"did you mean `{exact[near[0]]}`?" if near else ""


def expectation_field(question: Question) -> str:
    """The field that says what is relevant."""
    return "expected_sources" if question.by_title else "expected_chunks"


def check_repeats(entries: Iterable[Entry]) -> Iterator[Finding]:
    """What is expected twice in one question; it counts once."""
    for entry in entries:
        field, keys = expectation_field(entry.question), set[str]()
        for expected in entry.question.expected_names or ():
            key = title_key(expected) if entry.question.by_title else expected
            if key in keys:
                yield entry.finding("repeated-id", f"`{expected}` is twice in `{field}`", "remove one")
            keys.add(key)


def check_blanks(entries: Iterable[Entry]) -> Iterator[Finding]:
    """Texts with blanks around them: as parts of ids they match nothing, as parts of labels they make another label."""
    for entry in entries:
        for field, in_list, text in _texts(entry.question):
            if text.strip() not in ("", text) and not (field == "domain" and entry.has_default_domain):
                place = f"`{text}` in `{field}`" if in_list else f"`{field}`"
                yield entry.finding("surrounding-blanks", f"{place} begins or ends with blanks", "remove them")


def _texts(question: Question) -> Iterator[tuple[str, bool, str]]:
    """The texts that are compared or asked: field, whether that is a list, text."""
    for field in TEXTS:
        if (text := getattr(question, field)) is not None:
            yield field, False, text
    for field in LISTS:
        yield from ((field, True, text) for text in getattr(question, field) or ())


def check_titles(entries: Iterable[Entry], library: Library) -> Iterator[Finding]:
    """Expected titles that several pages have: a source from any of them counts."""
    for entry in entries:
        for title in entry.question.expected_names or () if entry.question.by_title else ():
            pages = sorted({chunk.id.partition("#")[0] for chunk in library.by_title.get(title_key(title), ())})
            if len(pages) > 1:
                message = f"`{title}` is the title of {len(pages)} pages: {first_names(pages)}"
                yield entry.finding("ambiguous-source", message, "any of them counts; rename those that do not answer")


MOST_CHUNKS = 3
"""Chunks that may hold one quotation whole: chunks overlap, and a page may say a thing twice."""


def _check_passages(entry: Entry, library: Library, *, are_missing: bool) -> Iterator[Finding]:
    """Quotations that no chunk holds or that many hold whole, and chunks to choose from of which none is there.

    Those of a question whose ids `are_missing` are likely on the same page, and are not named too.
    """
    for passage in entry.question.expected_passages or ():
        if passage.any_of and not set(passage.any_of) & library.by_id.keys() and not are_missing:
            message = f"none of `{'`, `'.join(passage.any_of)}` is in {library.name}"
            yield entry.finding("missing-id", message, "name the chunks that hold the passage, or quote it")
        if passage.quote is not None:
            found = _check_quote(entry, passage, library)
            yield from (each for each in found if each.code != "missing-quote" or not are_missing)


def _check_quote(entry: Entry, passage: Passage, library: Library) -> Iterator[Finding]:
    whole = passage.model_copy(update={"share": 1.0})
    places = sum(text.holds(whole) for text in library.texts.values())
    if places > MOST_CHUNKS:
        message = f"{places} chunks hold {passage.key}, and any of them counts"
        yield entry.finding("common-quote", message, "quote words that stand in no other place")
    elif not places and not any(text.holds(passage) for text in library.texts.values()):
        message = f"no chunk of {library.name} holds {passage.key}"
        yield entry.finding("missing-quote", message, "quote the page word by word, or add the page")
