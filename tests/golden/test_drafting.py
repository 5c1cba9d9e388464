"""Questions proposed from headings."""

from __future__ import annotations

import pytest

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.drafting import category_of, draft_questions, near_misses, question_from, shortages
from evaltrack.golden.lint.library import Library


@pytest.mark.parametrize(
    ("heading", "category", "question"),
    [
        ("Installation", "installation", "How do I install Larkway?"),
        ("Installing from Source", "installation", "How do I install Larkway from source?"),
        ("Configuring the API Server", "configuration", "How do I configure the API server?"),
        ("Proxy settings", "configuration", "How do I configure proxy?"),
        ("Error codes", "troubleshooting", "What do I do about error codes (Larkway)?"),
        ("The `Client` class", "api", "What does the `Client` do?"),
        ("Removing a Tick", "usage", "How does removing a tick work (Larkway)?"),
        ("Denied boarding", "usage", 'What does "Larkway" say about "Denied boarding"?'),
        ("How do I  cancel?", "usage", "How do I cancel?"),
        ("API", "api", "What does Larkway do?"),
        ("Description", "usage", "What is Larkway for?"),
        ("An Example:", "usage", "How do I use Larkway?"),
        ("Caveats", "usage", "What are the limits of Larkway?"),
    ],
)
def test_a_heading_becomes_a_question_of_its_category(heading: str, category: str, question: str) -> None:
    """By its words; a question stays as it is."""
    assert category_of(heading) == category
    assert question_from(heading, "Larkway") == question


def library(**headings: str) -> Library:
    """Two chunks a page: the heading's, and a lead without one."""
    chunks = []
    for page, heading in headings.items():
        text = f"{heading} is a matter of {page} for all who travel by it, " + "as was said before " * 5
        chunks += [Chunk(page, page.title(), "", f"{page}.md", "Lead. " * 30)]
        chunks += [Chunk(f"{page}#h", page.title(), heading, f"{page}.md#h", text)]
    return Library("corpus", tuple(chunks), frozenset({"set"}))


def test_drafts_are_spread_over_pages_and_expect_their_chunk() -> None:
    """With a quotation that the chunk holds; leads and short texts give none."""
    pages = library(rail="Delays", air="Denied boarding", sea="Cabins")
    lines = list(draft_questions(pages, 2, 1))
    assert [bool(line["expected_chunks"]) for line in lines] == [True, True, False]
    assert len({str(line["expected_chunks"]) for line in lines}) == 3
    assert all(line["draft"] for line in lines)
    assert lines == list(draft_questions(pages, 2, 1))
    assert len(list(draft_questions(pages, 99, 0))) == 3
    for line in lines[:2]:
        (passage,) = line["expected_passages"]  # type: ignore[misc]
        (key,) = line["expected_chunks"]  # type: ignore[misc]
        assert str(passage["quote"]).rstrip(".") in " ".join(pages.by_id[key].text.split())


def test_a_near_miss_is_answered_by_no_page() -> None:
    """The page that it names holds no word of the heading; where every page does, there is none."""
    pages = library(rail="Delays", air="Boarding")
    questions = [str(line["question"]) for line in near_misses(pages, 9)]
    assert sorted(questions) == ['What does "Air" say about "Delays"?', 'What does "Rail" say about "Boarding"?']
    assert list(near_misses(library(rail="Delays", air="Delays"), 9)) == []


def of_texts(**texts: str) -> Library:
    """A chunk a page, under the heading "About it"."""
    chunks = (Chunk(f"{page}#h", page.title(), "About it", f"{page}.md#h", text) for page, text in texts.items())
    return Library("corpus", tuple(chunks), frozenset({"set"}))


def test_a_quotation_stands_in_one_chunk_only() -> None:
    """However many sentences before it others have too; a chunk without such a sentence is left out."""
    shared = " ".join(f"What it is about is, as it is everywhere, the common matter {n}." for n in range(12))
    own = "Ferries leave the northern harbour at noon on every working day."
    lines = list(draft_questions(of_texts(a=f"{shared}\n\n{own}", b=shared, c=shared), 9, 0))
    assert [line["expected_chunks"] for line in lines] == [["a#h"]]
    (passage,) = lines[0]["expected_passages"]  # type: ignore[misc]
    assert "northern harbour" in str(passage["quote"])
    assert shortages(lines, 1, 0) == []


def test_headings_that_many_pages_have_are_no_near_misses() -> None:
    """They name no thing; and it is said what could not be made."""
    pages = library(rail="Delays", air="delays", sea="Delays", road="Tolls", bus="Stops", walk="Paths")
    lines = list(near_misses(pages, 9))
    assert sorted(str(line["question"]).split('"')[3] for line in lines) == ["Paths", "Stops", "Tolls"]
    assert shortages(lines, 2, 9) == [
        "0 of 2 questions: no other heading has 20 words below it with a sentence that stands in no other chunk",
        "3 of 9 negatives: no other heading is distinct enough",
    ]


def manual(*headings: str) -> Library:
    """Four pages that have these headings in common, and one heading each of its own."""
    chunks = []
    for page in ("stop", "start", "prune", "pack"):
        for place, heading in enumerate((*headings, f"Speed of {page}")):
            text = (
                f"The {page} command knows matter {place} of {page}, in so many words of {heading}. " + "So it is. " * 9
            )
            chunks.append(Chunk(f"{page}#{place}", page, heading, f"{page}.md#{place}", text))
    return Library("corpus", tuple(chunks), frozenset({"set"}))


def drafts(pages: Library, number: int) -> list[str]:
    """The questions that have an answer."""
    return [str(line["question"]) for line in draft_questions(pages, number, 0)]


def test_headings_that_say_nothing_make_questions_of_the_title_or_none() -> None:
    """Each once: a description and an overview of one page are asked for by the same words."""
    assert sorted(drafts(manual("Description", "Overview", "See Also", "Details"), 99)) == sorted(
        question
        for page in ("stop", "start", "prune", "pack")
        for question in (f"What is {page} for?", f'What does "{page}" say about "Speed of {page}"?')
    )


def test_headings_of_few_pages_come_first() -> None:
    """Of each page; those of many are taken where there are no others left."""
    first = drafts(manual("Return values"), 4)
    assert sorted(first) == sorted(
        f'What does "{p}" say about "Speed of {p}"?' for p in ("stop", "start", "prune", "pack")
    )
    assert drafts(manual("Return values"), 5)[:4] == first
    assert "Return values" in drafts(manual("Return values"), 5)[4]


def test_headings_that_say_nothing_are_no_near_misses() -> None:
    """Also where one page alone has them."""
    pages = library(rail="Caveats", air="An example", sea="See also", road="Tolls")
    assert {str(line["question"]).split('"')[3] for line in near_misses(pages, 9)} == {"Tolls"}
