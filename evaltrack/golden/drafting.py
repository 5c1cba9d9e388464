"""Questions proposed from the headings of a corpus, for a person to put right. Pure.

A heading says what its text is about, so it gives a question and the chunk that answers it. Near misses put a heading
of one page beside the title of another: the corpus knows both, and nothing of the two together.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import TypeVar

from evaltrack.golden.corpus import Chunk, by_page
from evaltrack.golden.lint.library import Library
from evaltrack.golden.quotes import QuoteChooser
from evaltrack.golden.words import ContentWords
from evaltrack.records import Question

_WORDS = {
    "installation": "install installing installation setup upgrade upgrading download requirements",
    "configuration": "configure configuring configuration config settings setting options option",
    "troubleshooting": "troubleshooting troubleshoot error errors problem problems fail fails failure",
    "api": "api function functions method methods class classes parameters arguments endpoint",
}
CATEGORY_WORDS = {name: frozenset(words.split()) for name, words in _WORDS.items()}
"""Words of a heading by which its category is known; other headings are about usage."""

FORMS: Mapping[str, str] = {
    "installation": "How do I install {}?",
    "configuration": "How do I configure {}?",
    "api": "What does {} do?",
}
_GENERAL = {
    "What is {} for?": "description overview introduction intro about summary abstract purpose background",
    "How do I use {}?": "synopsis usage examples example quickstart",
    "What are the limits of {}?": "limits limitations limitation restrictions caveats caveat",
}
GENERAL_HEADINGS: Mapping[str, str] = {word: form for form, words in _GENERAL.items() for word in words.split()}
"""Headings that say nothing of what their page is about, and the question that they make of its title."""

_UNASKED = (
    "see also, references, related, related pages, further reading, links, external links, license, licence, "
    "copyright, author, authors, acknowledgements, acknowledgments, changelog, change log, history, contents, "
    "table of contents, note, notes, details, footnotes, miscellaneous, other, others, more"
)
UNASKED_HEADINGS = frozenset(_UNASKED.split(", "))
"""Headings of which nothing can be asked."""

_PREPOSITIONS = frozenset(
    ["from", "with", "on", "in", "for", "by", "via", "using", "without", "under", "of", "to", "and"]
)
T = TypeVar("T")
QUOTES_TRIED = 100
"""Quotations of a chunk that are tried until one stands in no other chunk."""

MOST_PAGES = 2
"""Pages that may have a heading; one of more, such as "Description", names no thing that could be asked for."""

LEAST_WORDS = 20
"""Words of a chunk, below which hardly anything can be asked of it."""


def category_of(heading: str) -> str:
    """The category of what stands under a heading."""
    words = set(re.findall(r"\w+", heading.casefold()))
    return next((name for name, marks in CATEGORY_WORDS.items() if words & marks), "usage")


def question_from(heading: str, title: str) -> str:
    """A question that the text under the heading answers: ``How do I install Larkway from source?``."""
    heading = " ".join(heading.split())
    if heading.endswith("?"):
        return heading
    if form := GENERAL_HEADINGS.get(_key(heading)):
        return form.format(title)
    category = category_of(heading)
    if category == "troubleshooting":
        return f"What do I do about {_inside(heading)} ({title})?"
    if category == "usage" and re.match(r"[A-Za-z]+ing\b", heading):
        return f"How does {_inside(heading)} work ({title})?"
    if category == "usage":
        return f'What does "{title}" say about "{heading}"?'
    rest = " ".join(word for word in heading.split() if word.casefold().strip(":,") not in CATEGORY_WORDS[category])
    topic = _inside(rest) if rest else title
    return FORMS[category].format(f"{title} {topic}" if topic.split()[0] in _PREPOSITIONS else topic)


def _inside(text: str) -> str:
    """The text inside of a sentence: words with one capital lose it, and names such as `API` keep theirs."""
    return " ".join(word.lower() if word.istitle() and word.isalpha() else word for word in text.split())


def draft_questions(library: Library, number: int, negatives: int) -> Iterator[dict[str, object]]:
    """Golden lines without ids, all of them drafts: so many that are answered, then so many near misses.

    They are spread over pages, and the same for the same corpus. There are fewer of them where the corpus has no more.
    """
    yield from islice(_answered(library), number)
    yield from near_misses(library, negatives)


def _answered(library: Library) -> Iterator[dict[str, object]]:
    """Questions on all chunks that have a quotation which stands in no other chunk, each once.

    Of each page those come first whose headings stand on few others: a heading of many says less of what is below it.
    """
    chooser, pages_with, texts = QuoteChooser(library, tried=QUOTES_TRIED), _pages_with(library), set[str]()
    for chunk in spread(library.chunks, len(library.chunks), last=lambda each: pages_with[_heading_key(each)]):
        text = question_from(chunk.heading, chunk.title)
        if text in texts or _heading_key(chunk) in UNASKED_HEADINGS:
            continue
        choice = chooser.choose(chunk, Question(id="draft", question=text, domain="draft"))
        if choice and choice.unique:
            texts.add(text)
            yield {
                "question": text,
                "expected_chunks": [chunk.id],
                "expected_passages": [{"quote": choice.quote, "source": chunk.title}],
                "category": category_of(chunk.heading),
                "draft": True,
            }


def shortages(lines: Iterable[Mapping[str, object]], number: int, negatives: int) -> list[str]:
    """What was asked for and could not be made, and why."""
    answered = [bool(line["expected_chunks"]) for line in lines]
    questions, misses = sum(answered), len(answered) - sum(answered)
    notes = []
    if questions < number:
        why = f"no other heading has {LEAST_WORDS} words below it with a sentence that stands in no other chunk"
        notes.append(f"{questions} of {number} questions: {why}")
    if misses < negatives:
        notes.append(f"{misses} of {negatives} negatives: no other heading is distinct enough")
    return notes


def near_misses(library: Library, number: int) -> Iterator[dict[str, object]]:
    """Questions on a heading of one page and the title of another that holds none of the heading's words.

    Headings that repeat on many pages, or name no thing, are left out.
    """
    split = ContentWords()
    pages = by_page(library.chunks)
    repeats = _pages_with(library)
    words = {page: frozenset().union(*(library.words[each.id] for each in parts)) for page, parts in pages.items()}
    titles = [(page, parts[0].title) for page, parts in _shuffled(pages.items())]
    made = 0
    for place, chunk in enumerate(spread(library.chunks, len(library.chunks))):
        if made == number:
            return
        if repeats[key := _heading_key(chunk)] > MOST_PAGES or key in GENERAL_HEADINGS or key in UNASKED_HEADINGS:
            continue
        stems = set(split(chunk.heading))
        others = titles[place % len(titles) :] + titles[: place % len(titles)]
        for page, title in others:
            if stems and page != chunk.page and not stems & words[page]:
                made += 1
                text = f'What does "{title}" say about "{" ".join(chunk.heading.split())}"?'
                yield {"question": text, "expected_chunks": [], "category": "usage", "draft": True}
                break


def _pages_with(library: Library) -> Counter[str]:
    """How many pages have a heading."""
    return Counter(key for parts in by_page(library.chunks).values() for key in {_heading_key(each) for each in parts})


def _heading_key(chunk: Chunk) -> str:
    return _key(chunk.heading)


def _key(heading: str) -> str:
    return re.sub(r"^(an?|the) ", "", " ".join(heading.casefold().split())).rstrip(":.")


def spread(
    chunks: Iterable[Chunk], number: int, *, with_heading: bool = True, last: Callable[[Chunk], int] = lambda _chunk: 0
) -> list[Chunk]:
    """Chunks with words enough, and a heading unless none is needed, one of each page in turn.

    Of a page those come last of which `last` is above `MOST_PAGES`.
    """
    headed = (chunk for chunk in chunks if chunk.heading.strip() or not with_heading)
    fit = [chunk for chunk in headed if len(chunk.text.split()) >= LEAST_WORDS]
    pages = (_shuffled(enumerate(parts)) for _, parts in _shuffled(by_page(fit).items()))
    rounds = zip_longest(*(sorted(page, key=lambda entry: last(entry[1]) > MOST_PAGES) for page in pages))
    return [entry[1] for each in rounds for entry in each if entry is not None][:number]


def _shuffled(items: Iterable[T]) -> list[T]:
    """In an order that says nothing, the same each time."""
    return sorted(items, key=lambda item: hashlib.sha256(repr(item).encode()).digest())
