"""Which page is behind what got worse: what rose, where it explains several questions, else what fell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate
from evaltrack.records import Question, Response, Source
from evaltrack.report.comparison.culprit_words import (
    behind_line,
    behind_words,
    cause_summary,
    culprit_words,
    next_steps,
)
from evaltrack.report.comparison.json_form import comparison_json
from evaltrack.report.comparison.terminal import comparison_text
from evaltrack.report.comparison.words import cause_words
from evaltrack.report.html.documents import culprit_lines
from tests.compared import K, found, question, row, rows_of, side
from tests.planted_risers import plant_risers

TEN = [question(f"q{place}") for place in range(10)]


def against(asked: list[Question], was: Mapping[str, Response], now: Mapping[str, Response]) -> Comparison:
    return compare(side(rows_of(asked, was)), side(rows_of(asked, now)), Gate(), resamples=50)


def compared(now: Mapping[str, Response], was: Mapping[str, Response] | None = None) -> Comparison:
    """Ten questions, of which each finds its own chunk and `other` where nothing else is said."""
    return against(TEN, was or {}, now)


def first(made: Comparison) -> Culprit:
    return made.culprits[0]


def test_a_new_page_above_the_expected_ones_is_named() -> None:
    """With in how many questions it ranks above them; what fell for another reason is counted apart."""
    now = {f"q{place}": found("promo#1", f"q{place}!", "other") for place in range(5)}
    now["q8"], now["q9"] = found("other", "more"), found("other", "else")
    made = compared(now)
    riser = first(made)
    assert (riser.kind, riser.page, riser.parts, riser.novelty) == ("rose", "promo#1", ["promo#1"], "new")
    assert (riser.ids, riser.num_above) == ([f"q{place}" for place in range(5)], 5)
    assert [(each.kind, each.page) for each in made.culprits[1:]] == [("source_lost", "q8!"), ("source_lost", "q9!")]
    assert behind_words(made) == (
        "“promo#1” is new in the results and now ranks above the expected source in 5 of 7 questions that got worse"
    )
    assert "an expected source is returned lower, most often below “promo#1” (5); 2:" in cause_summary(made)
    assert next_steps(made)[0] == (
        "“promo#1” is new in the results and now ranks above the expected source in 5 questions that got worse: "
        "edit it, rank it lower, or take it out."
    )


def test_a_new_page_in_the_place_of_what_is_gone_ranks_above_nothing() -> None:
    """The expected sources are not returned any more: there is nothing below it."""
    now = {f"q{place}": found("promo#1", "other") for place in range(5)}
    made = compared(now)
    riser = first(made)
    assert (riser.page, riser.num_above, riser.num_instead) == ("promo#1", 0, 5)
    assert behind_words(made) == (
        "“promo#1” is new in the results and now takes the place of an expected source "
        "in all 5 questions that got worse"
    )
    assert "no longer returned, most often with “promo#1” in its place (5)" in cause_summary(made)
    assert "and now takes the place of an expected source in 5 questions that got worse" in next_steps(made)[0]
    both = compared({**now, "q0": found("promo#1", "q0!", "other")})
    assert (first(both).num_above, first(both).num_instead) == (1, 4)
    assert "now ranks above the expected source or takes the place of an expected source in" in behind_words(both)


def test_an_edited_page_that_rose_is_named_with_its_text() -> None:
    was = {f"q{place}": found(f"q{place}!", "promo", texts={"promo": "old"}) for place in range(4)}
    now = {key: found("promo", f"{key}!", texts={"promo": "new"}) for key in was}
    made = compared(now, was)
    riser = first(made)
    assert (riser.kind, riser.page, riser.novelty, riser.num_above, len(riser.ids)) == ("rose", "promo", "edited", 4, 4)
    assert culprit_words(riser, K) == "has another text and now ranks above the expected source"


def test_what_was_returned_in_any_question_is_not_new() -> None:
    now = {f"q{place}": found("promo", f"q{place}!") for place in range(4)}
    same = {"q9": found("q9!", "promo")}
    riser = first(compared({**now, **same}, same))
    assert (riser.page, riser.novelty) == ("promo", None)
    assert culprit_words(riser, K) == "now ranks above the expected source"


def test_the_best_of_several_risers_is_the_one_in_most_questions() -> None:
    """Whatever stands first in one question; a question is counted once."""
    now = {f"q{place}": found(f"only{place}", "promo", f"q{place}!") for place in range(4)}
    made = compared(now)
    assert [(each.page, len(each.ids)) for each in made.culprits] == [("promo", 4)]


def test_a_page_that_is_gone_is_named_and_not_what_moved_up() -> None:
    asked = [question(f"q{place}", expected_chunks=["gone"]) for place in range(4)]
    was = {each.id: found("gone", "a", "b") for each in asked}
    now = {each.id: found("a", "b") for each in asked}
    made = against(asked, was, now)
    assert [(each.kind, each.page, len(each.ids)) for each in made.culprits] == [("source_lost", "gone", 4)]


def lost_pages(pages: Mapping[int, str], still: tuple[str, ...] = ()) -> Comparison:
    """Ten questions, of which some lost a page that they expect; the last one returns `still` on both sides."""
    asked = [question(f"q{place}", expected_chunks=[pages.get(place, "own")]) for place in range(10)]
    same = found("own", *still)
    was = {f"q{place}": found(page, "a", "b") for place, page in pages.items()} | {"q9": same}
    now = {f"q{place}": found("a", "b") for place in pages} | {"q9": same}
    return against(asked, was, now)


DECLINES = Response(answer=None, abstained=True, sources=())


def declining(was: Mapping[str, Response], now: Mapping[str, Response]) -> Comparison:
    """Six questions that expect the chunks of one page, of which some are declined now, and four others."""
    asked = [question(f"q{n}", expected_chunks=[f"gone#{n}"] if n < 6 else None) for n in range(10)]
    own = {f"q{n}": found(f"gone#{n}", "a", "b") for n in range(6)}
    return against(asked, own | dict(was), own | dict(now))


def test_a_deleted_page_is_named_where_the_target_declines_without_it() -> None:
    """Another question still returns what stood below the page: no floor cuts that out."""
    now = dict.fromkeys((f"q{n}" for n in range(5)), DECLINES) | {"q5": found("a", "b")}
    made = declining({}, now)
    assert made.causes == {"now_declines": 5, "source_lost": 1}
    assert [(each.kind, each.page, len(each.ids), each.gone) for each in made.culprits] == [
        ("source_lost", "gone", 6, True)
    ]
    assert behind_words(made) == "“gone” is no longer returned, which explains all 6 questions that got worse"
    assert next_steps(made)[0].startswith("“gone” is no longer returned, and 6 questions got worse: look whether")


def test_what_a_floor_cuts_off_is_no_deleted_page() -> None:
    """Nothing that stood below the page is returned where it is not; or another question still returns it."""
    declined = dict.fromkeys((f"q{n}" for n in range(5)), DECLINES)
    tail = {"q6": found("a", "b", "gone#0")}
    assert not [
        each for each in declining(tail, declined | {"q6": found("a", "b"), "q5": DECLINES}).culprits if each.page
    ]
    still = declining({}, declined | {"q5": found("gone#5", "b")})
    assert behind_words(still).startswith("no document: the target declines where it answered")
    one = {"q6": found("gone#1", "a"), "q7": found("gone#5", "a")}
    apart = declining(one, declined | {"q6": found("a"), "q7": one["q7"]})
    assert [(each.page, each.ids) for each in apart.culprits if each.page] == [("gone#1", ["q1"])]


def test_of_several_lost_sources_the_one_that_most_questions_lost_is_named() -> None:
    asked = [question(f"q{place}", expected_chunks=[f"own{place}", "gone"]) for place in range(4)]
    was = {each.id: found(*each.expected_chunks or (), "a", "b") for each in asked}
    now = {each.id: found("a", "b") for each in asked}
    made = against(asked, was, now)
    assert [(each.kind, each.page, len(each.ids)) for each in made.culprits] == [("source_lost", "gone", 4)]
    assert cause_words(made.flips[0]) == (
        "`own0` (rank 1) is no longer returned (also: `gone` (rank 2) is no longer returned)"
    )
    back = against(asked, now, was)
    assert "(also: `gone` is returned now, at rank 2, and was not before" in cause_words(back.by_fate["fixed"][0])


@pytest.mark.parametrize(
    ("pages", "still", "gone", "words"),
    [
        ("xx1234", (), True, "“x” is no longer returned, which explains 2 of 6 questions that got worse"),
        ("xx1234", ("x",), False, "no single document: in all 6 questions that got worse"),
        ("xxx123", ("x",), False, "no single document: in all 6 questions that got worse"),
        ("xxxx12", ("x",), False, "“x” is returned for fewer questions, which explains 4 of 6 questions that"),
        ("12", (), None, "no single document: in both questions that got worse"),
        ("123", (), None, "no single document: in all 3 questions that got worse"),
    ],
)
def test_a_page_that_is_gone_is_seen_to_be(pages: str, still: tuple[str, ...], gone: bool | None, words: str) -> None:
    """Several questions returned it and none does now: a third is enough; else it must explain more than half."""
    made = lost_pages(dict(enumerate(pages)), still)
    assert behind_words(made).startswith(words)
    assert first(made).gone is gone
    step = "other questions still return it, so look at" if "for fewer" in words else "still in the index"
    assert step in next_steps(made)[0]


def lost_chunks(left: tuple[str, ...], title: str | None = None) -> Comparison:
    """Ten questions, of which each of the first four lost a chunk of its own; the last returns what is `left`."""
    keys = [f"branch#c{place}" for place in range(4)]
    asked = [question(f"q{place}", expected_chunks=[key]) for place, key in enumerate([*keys, *["own"] * 6])]

    def chunks(*ids: str) -> Response:
        titles = dict.fromkeys((*keys, *left), title)
        sources = (Source(chunk_id=key, title=titles.get(key), text=f"text of {key}") for key in ids)
        return Response(answer="It is so.", sources=tuple(sources))

    was = {each.id: chunks(*(each.expected_chunks or ()), "a", "b") for each in asked}
    now = {each.id: chunks(*({*(each.expected_chunks or ())} & {"own"}), "a", "b") for each in asked}
    was["q9"] = now["q9"] = chunks("own", *left)
    return against(asked, was, now)


@pytest.mark.parametrize(
    ("title", "page"),
    [(None, "branch"), ("The branch", "The branch")],
)
def test_a_deleted_page_is_one_whose_chunks_each_question_lost_alone(title: str | None, page: str) -> None:
    """Chunks share a title, or what stands before `#` in their ids."""
    made = lost_chunks((), title)
    (gone,) = made.culprits
    assert (gone.kind, gone.page, len(gone.parts), len(gone.ids), gone.remains) == ("source_lost", page, 4, 4, False)
    assert behind_words(made) == f"“{page}” is no longer returned, which explains all 4 questions that got worse"


def test_a_page_of_which_chunks_are_returned_is_not_said_to_be_gone() -> None:
    """Its chunks are; where one alone is lost that one is named, and where nothing says that they share a page each."""
    made = lost_chunks(("branch#c8",), title="The branch")
    (page,) = made.culprits
    assert (page.page, page.remains) == ("The branch", True)
    words = "“The branch” has 4 chunks, each of which is no longer returned"
    assert behind_words(made) == f"{words}, which explains all 4 questions that got worse"
    assert next_steps(made)[0] == f"{words}, and 4 questions got worse: look whether they are still in the index."
    elsewhere = lost_chunks(("branch#c0",), title="The branch")
    assert culprit_words(first(elsewhere), K) == "has 4 chunks, each of which is returned for fewer questions"
    assert "other questions still return them, so" in next_steps(elsewhere)[0]
    assert [each.page for each in lost_chunks(("branch#c8",)).culprits] == [f"branch#c{place}" for place in range(4)]


def test_a_chunk_stands_for_no_page() -> None:
    """Where others of it are returned the chunk is named, under its id."""
    asked = [question(f"q{place}", expected_chunks=["branch#c0"]) for place in range(4)]
    one, two = (Source(chunk_id=f"branch#c{place}", title="The branch") for place in range(2))
    was = {each.id: Response(answer="Yes.", sources=(one, two)) for each in asked}
    now = {each.id: Response(answer="Yes.", sources=(two,)) for each in asked}
    made = against(asked, was, now)
    assert [(each.page, culprit_words(each, K)) for each in made.culprits] == [("branch#c0", "is no longer returned")]


def test_a_title_that_other_questions_return_is_returned_for_fewer() -> None:
    fields = {"expected_chunks": None, "expected_sources": ["The branch"]}
    asked = [question(f"q{place}", **fields) for place in range(4)]
    page, other = Source(title="The branch"), Source(title="Another")
    was = {each.id: Response(answer="Yes.", sources=(page, other)) for each in asked}
    lost = {each.id: Response(answer="Yes.", sources=(other,)) for each in asked[:3]}
    now = {"q3": Response(answer="Yes.", sources=(page, other)), **lost}
    made = against(asked, was, now)
    assert behind_words(made) == (
        "“The branch” is returned for fewer questions, which explains all 3 questions that got worse"
    )
    assert "other questions still return it, so look at" in next_steps(made)[0]


@pytest.mark.parametrize("title", [None, "The branch"])
def test_a_chunk_that_other_questions_return_is_nowhere_no_longer_returned(title: str | None) -> None:
    asked = [question(f"q{place}", expected_chunks=["branch#c0"]) for place in range(3)]
    one, two = Source(chunk_id="branch#c0", title=title), Source(chunk_id="other#c1", title="Another")
    was = {each.id: Response(answer="Yes.", sources=(one, two)) for each in asked}
    still = {each.id: Response(answer="Yes.", sources=(one, two)) for each in asked[1:]}
    now = {"q0": Response(answer="Yes.", sources=(two,)), **still}
    made = against(asked, was, now)
    assert (first(made).kind, first(made).gone) == ("source_lost", False)
    page = "“branch#c0” is returned for fewer questions"
    assert behind_words(made) == f"{page}, which explains the only question that got worse"
    assert next_steps(made)[0].startswith(f"{page}, and 1 question got worse: other questions still return it, so")
    assert [each["words"] for each in comparison_json(made)["culprits"]] == ["is returned for fewer questions"]
    assert [each["what"] for each in culprit_lines(made)] == ["is returned for fewer questions"]


@pytest.mark.parametrize("lost", [1, 4])
def test_sources_that_other_questions_return_are_not_looked_for_in_the_index(lost: int) -> None:
    asked = [question(f"q{place}", expected_chunks=[f"c{place % 4}"]) for place in range(8)]
    own = {each.id: found(f"c{place % 4}", "other") for place, each in enumerate(asked)}
    demotions = {f"q{place}": found("other", f"c{place % 4}") for place in range(lost, 4)}
    now = {**own, **{f"q{place}": found("other") for place in range(lost)}, **demotions}
    made = against(asked, own, now)
    steps = " ".join(next_steps(made))
    assert "no longer returned" not in steps
    assert "the index" not in steps
    source, them = ("An expected source is", "it") if lost == 1 else ("Expected sources are", "them")
    assert f"{source} returned for fewer questions, and" in steps
    assert f"other questions still return {them}, so look at what changed in search or ranking." in steps


@pytest.mark.parametrize("silent", [1, 10])
def test_a_target_that_reports_no_sources_lost_none(silent: int) -> None:
    made = compared({f"q{place}": Response(answer="It is so.") for place in range(silent)})
    those, questions = ("the only question", "1 question") if silent == 1 else ("all 10 questions", "10 questions")
    was = "was" if silent == 1 else "were"
    assert behind_words(made) == f"no document: the target reports no sources now in {those} that {was} lost"
    assert next_steps(made)[0] == (
        f"The target reports no sources in {questions}, so that retrieval is not measured: "
        "return `sources`, best first."
    )
    assert "no longer returned" not in comparison_text(made)


def test_no_page_stands_above_itself() -> None:
    """Chunks of one page that change places, or are new, are no page that rose; of another are."""
    asked = [question(f"q{place}", expected_chunks=[f"page#{place}"]) for place in range(2)]
    chunks = [Source(chunk_id=f"page#{place}", title="The page") for place in range(3)]
    was = {f"q{n}": Response(answer="Yes.", sources=(chunks[n], chunks[1 - n])) for n in range(2)}

    def first_of(*sources: Source) -> Culprit:
        now = {f"q{n}": Response(answer="Yes.", sources=(*sources, chunks[1 - n], chunks[n])) for n in range(2)}
        return first(against(asked, was, now))

    moved, newly = first_of(), first_of(chunks[2])
    assert [(each.kind, each.page) for each in (moved, newly)] == [("source_demoted", "The page")] * 2
    other = first_of(Source(chunk_id="promo", title="Another"))
    assert (other.kind, other.page) == ("rose", "Another")


def test_what_rose_in_one_question_of_several_is_none() -> None:
    """Search changed, and no page; where only one question is worse, and one source rose, that one is named."""
    several = compared({f"q{place}": found(f"x{place}", f"q{place}!") for place in range(3)})
    assert [(each.kind, each.page, len(each.ids)) for each in several.culprits] == [("source_demoted", None, 3)]
    alone = compared({"q0": found("x", "q0!")})
    assert [(each.kind, each.page, each.novelty) for each in alone.culprits] == [("rose", "x", "new")]
    either = compared({"q0": found("x", "y", "q0!")})
    assert [(each.kind, each.page) for each in either.culprits] == [("source_demoted", "q0!")]


@pytest.mark.parametrize(("worse", "share"), [(1, "the only question"), (2, "both questions"), (3, "all 3 questions")])
def test_what_explains_all_of_it_is_said_to(worse: int, share: str) -> None:
    asked = [question(f"q{place}", expected_chunks=["gone"]) for place in range(worse)]
    was = {each.id: found("gone", "a") for each in asked}
    made = against(asked, was, {each.id: found("a") for each in asked})
    assert behind_words(made) == f"“gone” is no longer returned, which explains {share} that got worse"
    assert cause_summary(made) == f"{share} that got worse: an expected source is no longer returned"


@pytest.mark.parametrize("new", [True, False])
def test_a_new_page_among_the_first_with_another_answer_is_named(new: bool) -> None:
    """Though nothing expected fell; a page that was returned elsewhere before is not."""
    was = {} if new else {"q9": found("q9!", "promo")}
    now = {f"q{place}": found(f"q{place}!", "promo", answer="Other.") for place in range(3)} | was
    before, after = rows_of(TEN, was, 0.9), rows_of(TEN, now, 0.9)
    worse = [rows_of(TEN, now, 0.1)[place] if place < 3 else each for place, each in enumerate(after)]
    made = compare(side(before, judge="j"), side(worse, judge="j"), Gate(), resamples=50)
    if new:
        assert behind_words(made) == (
            "“promo” is new in the results and now among the first 5 sources in all 3 questions that got worse"
        )
        assert cause_summary(made).endswith("another answer, most often with “promo” (3)")
    else:
        assert [(each.kind, each.page) for each in made.culprits] == [("context_changed", None)]
        assert behind_line(made) == (
            "Behind it: no single document: in all 3 questions that got worse the sources changed, "
            "and the answer with them"
        )


@pytest.mark.parametrize("seed", [0, 1])
def test_planted_pages_are_named(seed: int) -> None:
    """In at least 95 % of comparisons in which other things went wrong too."""
    outcome = plant_risers(20, seed, {})
    assert outcome.named >= 0.95 * outcome.planted == 19, outcome.wrong


def ranked_below(others: Mapping[int, str]) -> Comparison:
    """Ten questions, each with an expected source that falls below one that overtakes `b`; `a` moves up by itself."""
    was = {f"q{place}": found(f"q{place}!", "a", "b", other) for place, other in others.items()}
    now = {f"q{place}": found("a", other, "b", f"q{place}!") for place, other in others.items()}
    return compared(now, was)


def test_a_page_that_was_there_before_is_named_for_more_than_half_alone() -> None:
    """It is neither edited nor new: where several did the same, search or ranking changed."""
    most = ranked_below(dict.fromkeys(range(6), "promo") | {place: f"x{place}" for place in range(6, 10)})
    few = ranked_below(dict.fromkeys(range(4), "promo") | {place: f"x{place}" for place in range(4, 10)})
    assert (first(most).page, first(most).novelty) == ("promo", None)
    assert "edit it" not in next_steps(most)[0]
    assert "look at what changed in search or ranking" in next_steps(most)[0]
    assert "promo" not in behind_words(few) + " ".join(next_steps(few))


@pytest.mark.parametrize(
    ("after", "page"),
    [
        ("a b c own", None),  # own left its place, and all others moved up by one
        ("b a c own", "b"),
        ("a own b c", "a"),
        ("c own a b", "c"),
        ("a b c", None),
        ("b a c", "b"),
    ],
)
def test_what_moved_up_because_the_expected_source_left_did_not_rise(after: str, page: str | None) -> None:
    """It rose if it overtook another source, or as far as the expected one fell."""
    was = {f"q{place}": found(f"q{place}!", "a", "b", "c") for place in range(4)}
    now = {key: found(*(f"{key}!" if name == "own" else name for name in after.split())) for key in was}
    made = compared(now, was)
    assert first(made).page == page if page else all(each.kind != "rose" for each in made.culprits)


def test_where_no_document_explains_most_of_it_that_is_said() -> None:
    """With the ranks that the expected sources had and have, and what to look at."""
    made = compared({f"q{place}": found(f"x{place}", f"y{place}", f"q{place}!") for place in range(4)})
    assert [(each.kind, each.page) for each in made.culprits] == [("source_demoted", None)]
    assert behind_words(made) == (
        "no single document: in all 4 questions that got worse an expected source is returned lower (rank 1 → 3 …)"
    )
    assert next_steps(made) == [
        "Expected sources rank lower in 4 questions: look at what changed in search or ranking."
    ]


def test_no_page_is_named_where_all_ids_are_made_anew() -> None:
    """Pages that were cut anew are none that was deleted or rose; the golden set needs the new ids."""
    titled = {f"q{n}": with_titles(found(f"new{n}", f"more{n}"), "Returns") for n in range(10)}
    was = {f"q{n}": with_titles(found(f"q{n}!", "other"), "Returns") for n in range(10)}
    made = compared(titled, was)
    assert made.ids_made_anew
    assert [(each.page, each.kind, len(each.ids)) for each in made.culprits] == [(None, "source_lost", 10)]
    assert behind_words(made).endswith("no longer returned, and no source of the baseline is returned under its id")
    assert "put the new ids into the golden set" in next_steps(made)[0]
    one = compared(titled | {"q9": found("new9", "other")}, was)
    assert not one.ids_made_anew
    assert "new ids" not in " ".join(next_steps(one))
    few = compared({key: found("x", "y") for key in titled}, was)
    assert not few.ids_made_anew
    in_part = replace(made, num_common=made.num_common + 1)
    assert not in_part.ids_made_anew


def with_titles(response: Response, title: str) -> Response:
    sources = tuple(each.model_copy(update={"title": title}) for each in response.sources or ())
    return response.model_copy(update={"sources": sources})


def listed(place: int, expected: int, *, most: int = 5, answer: str = "It is so.") -> Response:
    """At most so many sources, of which the expected one has this rank."""
    names = [f"q{place}!" if rank == expected else f"s{place}-{rank}" for rank in range(1, 6)]
    return found(*names[:most], answer=answer)


def test_what_a_shorter_list_cuts_off_is_no_page() -> None:
    """The target returns fewer sources for any question; chunks with one title are not said to have gone."""
    was = {f"q{place}": listed(place, 1 + place % 5) for place in range(10)}
    made = compared({f"q{place}": listed(place, 1 + place % 5, most=3) for place in range(10)}, was)
    (culprit,) = made.culprits
    assert (culprit.kind, culprit.page, sorted(culprit.ids)) == ("fewer_sources", None, ["q3", "q4", "q8", "q9"])
    assert culprit_words(culprit, K) == "the target returns at most 3 sources now, where it returned up to 5"
    assert behind_words(made) == (
        "no document: an expected source is no longer returned in all 4 questions that got worse "
        "(the target returns at most 3 sources now, where it returned up to 5)"
    )
    assert next_steps(made)[0] == (
        "The target returns fewer sources, which explains 4 questions (the target returns at most 3 sources now, "
        "where it returned up to 5): look at how many it is asked for, and at its floor."
    )


def test_another_answer_on_the_first_of_the_sources_is_of_the_shorter_list() -> None:
    """With the answer the judge's score fell; where the list is another one its length is not why."""
    was = [row(each, listed(place, 1), place, 0.9) for place, each in enumerate(TEN)]
    now = [row(each, listed(place, 1, most=2, answer="Less."), place, 0.2) for place, each in enumerate(TEN)]
    now[9] = row(TEN[9], found("q9!", "else", answer="Less."), 9, 0.2)
    kinds = {each.kind: each.ids for each in compare(side(was), side(now), Gate(), resamples=50).culprits}
    assert kinds["fewer_sources"] == [f"q{place}" for place in range(9)]


@pytest.mark.parametrize(
    ("most", "longer"),
    [(5, 0), (4, 1)],  # no list is shorter; a single one was longer
)
def test_a_list_that_is_not_shorter_for_several_explains_nothing(most: int, longer: int) -> None:
    was = {f"q{place}": listed(place, 4, most=5 if place < longer else most) for place in range(10)}
    now = {key: found(*[f"s{key[1:]}-{rank}" for rank in range(1, most + 1)]) for key in was}
    assert "fewer_sources" not in {each.kind for each in compared(now, was).culprits}


def test_what_stood_within_the_shorter_list_is_lost_for_another_reason() -> None:
    was = {f"q{place}": listed(place, 2 if place < 4 else 5) for place in range(10)}
    now = {f"q{place}": found(f"s{place}-1", f"s{place}-3", f"s{place}-4") for place in range(10)}
    ids = {key: each.kind for each in compared(now, was).culprits for key in each.ids}
    assert ids == {f"q{place}": "source_lost" if place < 4 else "fewer_sources" for place in range(10)}


def test_a_deleted_page_is_no_shorter_list() -> None:
    """It stood last, and no list is longer than before without it; another question still returns what stood below."""
    asked = [question(f"q{n}", expected_chunks=["gone" if n < 4 else f"own{n}"]) for n in range(10)]
    lists = {f"q{n}": ["a", "b", "c", "d", "gone"] if n < 4 else ["gone", f"own{n}", "e"] for n in range(10)}
    was = {key: found(*names) for key, names in lists.items()}
    now = {key: found(*(name for name in names if name != "gone")) for key, names in lists.items()}
    made = against(asked, was, now)
    (culprit,) = made.culprits
    assert (culprit.kind, culprit.page, culprit.gone) == ("source_lost", "gone", True)
    cut = {key: found(*names[:4]) for key, names in lists.items()}
    shorter = against(asked, was, cut)
    assert [each.kind for each in shorter.culprits] == ["fewer_sources"]
