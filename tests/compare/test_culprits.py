"""Which page is behind what got worse: what rose, where it explains several questions, else what fell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pytest

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import changed_parts
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate
from evaltrack.compare.pairing import Side
from evaltrack.records import Question, Response, Source
from evaltrack.report.comparison_text import comparison_text
from evaltrack.report.comparison_words import next_steps
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.report.templates import say
from tests.compared import found, question, rows_of, side

TEN = [question(f"q{place}") for place in range(10)]
DECLINES = Response(answer=None, abstained=True, sources=())
Given = Mapping[str, Response]


def against(asked: list[Question], was: Given, now: Given) -> Comparison:
    return compare(side(rows_of(asked, was)), side(rows_of(asked, now)), Gate(), resamples=50)


def compared(now: Given, was: Given | None = None) -> Comparison:
    """Ten questions, of which each finds its own chunk and `other` where nothing else is said."""
    return against(TEN, was or {}, now)


def culprits(made: Comparison) -> list[tuple[str, str | None, int]]:
    return [(each.kind, each.page, len(each.ids)) for each in made.culprits]


@pytest.mark.parametrize(
    ("settings", "targets", "words"),
    [
        (("19 pages", "18 pages"), ("bm25:docs", "bm25:docs"), "; the corpus changed"),
        (
            ("19 pages", "18 pages"),
            ("bm25:docs", "bm25:docs?chunk=90"),
            "; the target's settings changed",
        ),
        (("19 pages", "19 pages"), ("bm25:docs", "bm25:docs"), ""),
    ],
)
def test_a_lost_source_is_told_with_the_settings_that_may_be_related(
    settings: tuple[str, str], targets: tuple[str, str], words: str
) -> None:
    given: list[Given] = [{}, {f"q{place}": found("other") for place in range(6)}]
    both = of_corpora((side(rows_of(TEN, rows), target=to) for rows, to in zip(given, targets, strict=True)), *settings)
    cause = say.cause(compare(*both, Gate(), resamples=50))
    assert cause.count("; ") == bool(words)
    assert words in cause


def of_corpora(sides: Iterable[Side], *corpora: str) -> Iterator[Side]:
    for each, corpus in zip(sides, corpora, strict=True):
        yield replace(each, info=replace(each.info, settings={"corpus": corpus}))


@pytest.mark.parametrize(
    ("corpus", "culprit"),
    [("3 pages, 9 chunks, 2", ("now_declines", None, 3)), ("2 pages, 6 chunks, 2", ("page_deleted", "coffee", 3))],
)
def test_a_deleted_page_is_named_though_its_questions_return_nothing_else(
    corpus: str, culprit: tuple[str, str | None, int]
) -> None:
    asked = [question(f"q{n}", expected_chunks=[f"coffee#{n}" if n < 3 else f"tea#{n}"]) for n in range(9)]
    was = {f"q{n}": found(f"coffee#{n}" if n < 3 else f"tea#{n}") for n in range(9)}
    now = was | {f"q{n}": DECLINES for n in range(3)}
    sides = side(rows_of(asked, was)), side(rows_of(asked, now))
    made = compare(*of_corpora(sides, "3 pages, 9 chunks, 1", corpus), resamples=50)
    assert culprits(made) == [culprit]


def test_a_page_is_deleted_though_all_others_were_chunked_differently() -> None:
    asked = [question(f"q{n}", expected_chunks=[f"p{n}#a"]) for n in range(12)]

    def chunks(how: str, *pages: int) -> Response:
        return Response(
            answer="So.", sources=[Source(chunk_id=how.format(n), url=f"p{n}.md", text=how + f"{n}") for n in pages]
        )

    was = {f"q{n}": chunks("p{}#a", n, (n + 1) % 12) for n in range(12)}
    now = {f"q{n}": chunks("p{}@1", n or 1, n + 1 if n < 11 else 2) for n in range(12)}
    sides = side(rows_of(asked, was)), side(rows_of(asked, now))
    made = compare(*of_corpora(sides, "12 pages", "11 pages"), resamples=50)
    assert ("page_deleted", "p0.md", 1) in culprits(made)
    assert {kind for kind, page, _ in culprits(made) if page != "p0.md"} == {"rechunked"}


def test_a_page_with_another_name_was_not_deleted_though_a_part_of_it_was() -> None:
    texts = {f"{page}#{n}": f"text {n}" for page in "uv" for n in range(3)}
    asked = [question(f"q{n}", expected_chunks=[f"u#{n}"]) for n in range(3)]
    was = {f"q{n}": found(f"u#{n}", "other", texts=texts) for n in range(3)}
    now = {f"q{n}": found("other", *[f"v#{n}"] * (n < 2), texts=texts) for n in range(3)}
    assert culprits(against(asked, was, now)) == [("ids_changed", "u", 2), ("source_lost", "u", 1)]


def test_pages_that_are_not_named_are_counted_with_their_cause() -> None:
    """Three of the five lost sources are still returned for another question."""
    was = {"q9": found("q9!", "q0!", "q1!", "q2!")}
    made = compared({f"q{n}": found("other") for n in range(5)} | was, was)
    assert {kind for kind, _, _ in culprits(made)} == {"source_lost"}
    assert not [step for step in next_steps(made) if "for fewer questions" in step]


def test_a_page_was_deleted_though_another_holds_one_of_its_texts() -> None:
    texts = dict.fromkeys(("tea#contact", "coffee#contact"), "Write to us.")
    asked = [question(f"q{n}", expected_chunks=[f"coffee#{n}" if n else "tea#contact"]) for n in range(4)]
    was = {f"q{n}": found(f"coffee#{n}", "coffee#contact", "other", texts=texts) for n in range(1, 4)}
    tea = {"q0": found("tea#contact", texts=texts)}
    was, now = was | tea, dict.fromkeys(was, found("tea#contact", "other", texts=texts)) | tea
    assert culprits(against(asked, was, now)) == [("page_deleted", "coffee", 3)]


# Pages that rose


def test_a_new_page_above_the_expected_ones_is_named() -> None:
    """What fell for another reason is counted apart."""
    now = {f"q{place}": found("promo#1", f"q{place}!", "other") for place in range(5)}
    now["q8"], now["q9"] = found("other", "more"), found("other", "else")
    made = compared(now)
    assert culprits(made) == [("page_new", "promo", 5), ("source_lost", "q8!.md", 1), ("source_lost", "q9!.md", 1)]
    worse = "5 of 7 questions that got worse (2 broke, 5 score lower)"
    assert say.cause(made) == f"Cause of {worse}: “promo” is new in the results"
    assert "an expected source is ranked lower; 2:" in say.summary(made)
    assert next_steps(made)[0] == ("“promo” is new in the results (5 questions): edit it, rank it lower, or remove it.")


@pytest.mark.parametrize("others", [1, 2])
def test_a_page_that_rose_is_a_cause_only_of_more_than_half(others: int) -> None:
    """`promo` was returned before too, below the others."""
    was = {f"q{place}": found(f"q{place}!", "promo") for place in range(10)}
    now = {f"q{place}": found("promo", f"q{place}!") for place in range(2)}
    now |= {f"q{place}": found(f"more{place}", f"q{place}!", "promo") for place in range(8, 8 + others)}
    kinds = [kind for kind, page, _ in culprits(compared(now, was)) if page == "promo.md"]
    assert kinds == (["page_rose"] if others == 1 else [])


@pytest.mark.parametrize(("order", "kind"), [("abcdfe", "page_new"), ("bacdef", "page_rose")])
def test_a_new_page_may_change_the_order_far_below(order: str, kind: str) -> None:
    was = {f"q{place}": found(f"q{place}!", *"abcdef") for place in range(10)}
    now = {**was, **{f"q{place}": found("promo#1", f"q{place}!", *order) for place in range(6)}}
    assert culprits(compared(now, was)) == [(kind, "promo", 6)]


def test_other_pages_of_another_search_are_not_new() -> None:
    """Nothing of the first five is returned any more, and what was below them in another order."""
    was = {f"q{n}": found(f"q{n}!", *(f"page{10 * n + m}" for m in range(9))) for n in range(8)}
    now = {f"q{n}": found(*(f"page{10 * n + m}" for m in (8, 6, 7)), f"fresh{n % 2}") for n in range(8)}
    assert "page_new" not in [kind for kind, _, _ in culprits(compared(now, was))]


def test_several_new_pages_are_named_together() -> None:
    now = {f"q{place}": found(f"promo{place % 4}#1", f"q{place}!", "other") for place in range(6)}
    assert say.cause(compared(now)) == (
        "Cause of all 6 questions that got worse: “promo0”, “promo1”, “promo2” and 1 more are new in the results"
    )
    instead = compared({f"q{place}": found("promo#1", "other") for place in range(5)})
    assert culprits(instead) == [("page_new", "promo", 5)]
    best = {f"q{place}": found(f"only{place}", "promo", f"q{place}!") for place in range(4)}
    assert culprits(compared(best)) == [("page_new", "promo.md", 4)]


@pytest.mark.parametrize("places", [1, 8])
def test_edited_pages_that_rose_are_named(places: int) -> None:
    """By their files, also where several were edited."""
    was = {f"q{n}": found(f"q{n}!", f"p{n % places}", texts={f"p{n % places}": "old"}) for n in range(8)}
    now = {f"q{n}": found(f"p{n % places}", f"q{n}!", texts={f"p{n % places}": "new"}) for n in range(8)}
    words = "“p0.md” was edited" if places == 1 else "“p0.md”, “p1.md”, “p2.md” and 5 more were edited"
    made = compared(now, was)
    assert say.cause(made) == f"Cause of all 8 questions that got worse: {words}"
    assert {flip.cause.link for flip in made.by_fate["lower score"]} == {f"p{n}.md" for n in range(places)}


def test_what_was_returned_in_any_question_is_not_new() -> None:
    now = {f"q{place}": found("promo", f"q{place}!") for place in range(4)}
    same = {"q9": found("q9!", "promo")}
    made = compared({**now, **same}, same)
    assert say.cause(made).startswith(
        "Cause of all 4 questions that got worse: “promo” now ranks above the expected source"
    )
    assert "check what changed in search or ranking" in next_steps(made)[0]


def test_no_page_stands_above_itself() -> None:
    """Chunks of one page that change places, or are new, are no page that rose; of another are."""
    asked = [question(f"q{place}", expected_chunks=[f"page#{place}"]) for place in range(2)]
    chunks = [Source(chunk_id=f"page#{place}", title="The page") for place in range(3)]
    was = {f"q{n}": Response(answer="Yes.", sources=(chunks[n], chunks[1 - n])) for n in range(2)}

    def now(*sources: Source) -> list[tuple[str, str | None, int]]:
        given = {f"q{n}": Response(answer="Yes.", sources=(*sources, chunks[1 - n], chunks[n])) for n in range(2)}
        return culprits(against(asked, was, given))

    assert now() == now(chunks[2]) == [("source_demoted", "page", 2)]
    assert now(Source(chunk_id="promo", title="Another")) == [("page_rose", "Another", 2)]


@pytest.mark.parametrize("new", [True, False])
def test_a_new_page_among_the_first_with_another_answer_is_named(new: bool) -> None:
    """Though nothing expected fell; a page that was returned elsewhere before is not."""
    was = {} if new else {"q9": found("q9!", "promo")}
    now = {f"q{place}": found(f"q{place}!", "promo", answer="Other.") for place in range(3)} | was
    before, after = rows_of(TEN, was, 0.9), rows_of(TEN, now, 0.9)
    worse = [rows_of(TEN, now, 0.1)[place] if place < 3 else each for place, each in enumerate(after)]
    made = compare(side(before, judge="j"), side(worse, judge="j"), Gate(), resamples=50)
    assert say.cause(made) == (
        "Cause of all 3 questions that got worse: “promo.md” is new in the results"
        if new
        else "Cause of all 3 questions that got worse: no single document: changed sources, different answer"
    )


def ranked_below(others: Mapping[int, str]) -> Comparison:
    """Ten questions, each with an expected source that falls below one that overtakes `b`; `a` moves up by itself."""
    was = {f"q{place}": found(f"q{place}!", "a", "b", other) for place, other in others.items()}
    now = {f"q{place}": found("a", other, "b", f"q{place}!") for place, other in others.items()}
    return compared(now, was)


def test_a_page_that_was_there_before_is_named_for_more_than_half_alone() -> None:
    """It is neither edited nor new: where several did the same, search or ranking changed."""
    most = ranked_below(dict.fromkeys(range(6), "promo") | {place: f"x{place}" for place in range(6, 10)})
    few = ranked_below(dict.fromkeys(range(4), "promo") | {place: f"x{place}" for place in range(4, 10)})
    assert culprits(most)[0] == ("page_rose", "promo.md", 6)
    assert culprits(ranked_below({0: "x", 1: "y"})) == [("source_demoted", None, 2)]
    assert "promo" not in say.cause(few) + " ".join(next_steps(few))
    words = "no single document: an expected source is ranked lower (rank 1 → 4 …)"
    assert say.cause(few) == f"Cause of all 10 questions that got worse: {words}"
    assert next_steps(few) == [
        "An expected source is ranked lower (10 questions): check what changed in search or ranking."
    ]


@pytest.mark.parametrize(
    ("after", "page"),
    [
        ("a b c own", None),  # own left its place, and all others moved up by one
        ("b a c own", "b.md"),
        ("a own b c", "a.md"),
        ("c own a b", "c.md"),
        ("a b c", None),
        ("b a c", "b.md"),
    ],
)
def test_what_moved_up_because_the_expected_source_left_did_not_rise(after: str, page: str | None) -> None:
    """It rose if it overtook another source, or as far as the expected one fell."""
    was = {f"q{place}": found(f"q{place}!", "a", "b", "c") for place in range(4)}
    now = {key: found(*(f"{key}!" if name == "own" else name for name in after.split())) for key in was}
    made = compared(now, was)
    assert [each.page for each in made.culprits if each.kind == "page_rose"] == [page] * bool(page)


def test_no_sentence_says_that_a_source_took_its_own_place() -> None:
    """Chunks without ids are called by their title, whichever of them holds the passage."""
    asked = [question(f"q{n}", expected_chunks=None, expected_passages=[{"quote": "four hours"}]) for n in range(3)]
    held, other = Source(title="vpn", text="After four hours."), Source(title="vpn", text="Prices.")
    pairs = ((held, other), (other, held))
    was, now = ({each.id: Response(answer="So.", sources=pair) for each in asked} for pair in pairs)
    (flip, *_) = against(asked, was, now).by_fate["lower score"]
    assert flip.cause.detail == "`vpn` fell from rank 1 to 2"


# Pages that were deleted, or are returned for fewer questions


@pytest.mark.parametrize(
    ("pages", "still", "words"),
    [
        ("xx1234", (), "Cause of 2 of 6 questions that got worse: “x.md” was deleted"),
        ("xx12345", (), "Cause of all 7 questions that got worse: no single document"),
        ("xxyy12", (), "Cause of 4 of 6 questions that got worse: “x.md” and “y.md” were deleted"),
        (
            "xx1234",
            ("x",),
            "Cause of all 6 questions that got worse: no single document: an expected source is no longer returned",
        ),
        (
            "xxx123",
            ("x",),
            "Cause of all 6 questions that got worse: no single document: an expected source is no longer returned",
        ),
        ("xxxx12", ("x",), "Cause of 4 of 6 questions that got worse: “x” is returned for fewer questions"),
        (
            "12",
            (),
            "Cause of both questions that got worse: no single document: an expected source is no longer returned",
        ),
        ("1", (), "Cause of the only question that got worse: “1” is no longer returned"),
    ],
)
def test_a_page_that_was_deleted_is_seen_to_be(pages: str, still: tuple[str, ...], words: str) -> None:
    """Several questions returned it and none does now: a third is enough; else it must explain more than half."""
    asked = [question(f"q{place}", expected_chunks=[[*pages, *["own"] * 10][place]]) for place in range(10)]
    same = found("own", *still)
    was = {f"q{place}": found(page, "a", "b") for place, page in enumerate(pages)} | {"q9": same}
    now = {f"q{place}": found("a", "b") for place in range(len(pages))} | {"q9": same}
    made = against(asked, was, now)
    assert say.cause(made).startswith(words)
    assert {flip.cause.link for flip in made.flips} == {f"{page}.md" for page in pages}
    step = "what changed in search" if "for fewer" in words else "restore it" if "deleted" in words else "in the index"
    assert step in next_steps(made)[0]


@pytest.mark.parametrize(
    ("chunks", "left", "words"),
    [
        (4, (), "“branch” was deleted"),
        (4, ("branch#c8",), "4 chunks of “branch” are no longer returned"),
        (1, ("branch#c8",), "“branch#c0” is no longer returned"),
    ],
)
def test_a_page_is_deleted_where_none_of_its_chunks_is_returned(chunks: int, left: tuple[str, ...], words: str) -> None:
    """Each of four questions lost a chunk of its own, or one; another question returns what is left."""
    keys = [f"branch#c{place % chunks}" for place in range(4)]
    asked = [question(f"q{place}", expected_chunks=[key]) for place, key in enumerate([*keys, *["own"] * 6])]
    same = {"q9": found("own", *left)}
    was = {f"q{place}": found(key, "a", "b") for place, key in enumerate(keys)} | same
    made = against(asked, was, {f"q{place}": found("a", "b") for place in range(4)} | same)
    assert say.cause(made) == f"Cause of all 4 questions that got worse: {words}"


def test_of_several_lost_sources_the_one_that_most_questions_lost_is_named() -> None:
    asked = [question(f"q{place}", expected_chunks=[f"own{place}", "gone"]) for place in range(4)]
    was = {each.id: found(*each.expected_chunks or (), "a", "b") for each in asked}
    now = {each.id: found("a", "b") for each in asked}
    made = against(asked, was, now)
    assert culprits(made) == [("page_deleted", "gone.md", 4)]
    assert say.why(made.flips[0]) == (
        "`own0` (rank 1) is no longer returned (also: `gone` (rank 2) is no longer returned)"
    )
    back = against(asked, now, was)
    assert "(also: `gone` is newly returned, at rank 2" in say.why(back.by_fate["fixed"][0])


def declining(was: Given, now: Given) -> Comparison:
    """Six questions that expect the chunks of one page, of which some are declined now, and four others."""
    asked = [question(f"q{n}", expected_chunks=[f"gone#{n}"] if n < 6 else None) for n in range(10)]
    own = {f"q{n}": found(f"gone#{n}", "a", "b") for n in range(6)}
    return against(asked, own | dict(was), own | dict(now))


def test_a_deleted_page_is_the_cause_where_the_target_declines_without_it() -> None:
    """Another question still returns what stood below the page: no floor cuts that out."""
    was = {f"q{n}": found(f"q{n}!", f"gone#{n - 6}", f"gone#{n - 4}", "b") for n in range(6, 10)}
    now = dict.fromkeys((f"q{n}" for n in range(5)), DECLINES) | {"q5": found("a", "b")}
    made = declining(was, now | {f"q{n}": found(f"q{n}!", "b") for n in range(6, 10)})
    assert culprits(made)[0] == ("page_deleted", "gone", 6)
    assert say.cause(made) == "Cause of all 6 questions that got worse: “gone” was deleted"


def test_what_a_floor_cuts_off_is_no_deleted_page() -> None:
    """Nothing that stood below the page is returned where it is not; or another question still returns it."""
    declined = dict.fromkeys((f"q{n}" for n in range(5)), DECLINES)
    tail = {"q6": found("a", "b", "gone#0")}
    cut = declining(tail, declined | {"q6": found("a", "b"), "q5": DECLINES})
    assert culprits(cut) == [("now_declines", None, 6)]
    still = declining({}, declined | {"q5": found("gone#5", "b")})
    assert say.cause(still).endswith(": the target declines instead of answering")


def test_another_floor_is_named_where_the_target_declines() -> None:
    rows: list[Given] = [{}, {f"q{place}": DECLINES for place in range(6)}]
    targets = ("bm25:docs", "bm25:docs?floor=3")
    was, now = (side(rows_of(TEN, each), target=target) for each, target in zip(rows, targets, strict=True))
    words = "the target declines instead of answering; the target's settings changed: (default) → floor=3"
    assert say.cause(compare(was, now, Gate(), resamples=50)).endswith(words)


# Lists that end earlier, and ids


def listed(place: int, expected: int, most: int = 5) -> Response:
    """At most so many sources, of which the expected one has this rank."""
    return found(*[f"q{place}!" if rank == expected else f"s{place}-{rank}" for rank in range(1, most + 1)])


def test_what_a_shorter_list_cuts_off_is_no_page() -> None:
    was = {f"q{place}": listed(place, 1 + place % 5) for place in range(10)}
    made = compared({f"q{place}": listed(place, 1 + place % 5, 3) for place in range(10)}, was)
    assert culprits(made) == [("fewer_sources", None, 4)]
    assert made.flips[0].cause.detail == ("the list now ends after 3 sources instead of 5 sources; `q3!` had rank 4")
    assert say.cause(made) == "Cause of all 4 questions that got worse: the target returns fewer sources"
    assert next_steps(made)[0] == (
        "The target returns fewer sources (4 questions): check how many it is asked for, and its floor."
    )
    within = {f"q{place}": listed(place, 2 if place < 4 else 5) for place in range(10)}
    now = {f"q{place}": found(f"s{place}-1", f"s{place}-3", f"s{place}-4") for place in range(10)}
    causes = {flip.id: flip.cause.kind for flip in compared(now, within).flips}
    assert causes == {f"q{place}": "source_lost" if place < 4 else "fewer_sources" for place in range(10)}


def test_a_deleted_page_is_no_shorter_list() -> None:
    """It stood last, and no list is longer than before without it; another question still returns what stood below."""
    asked = [question(f"q{n}", expected_chunks=["gone" if n < 4 else f"own{n}"]) for n in range(10)]
    lists = {f"q{n}": ["a", "b", "c", "d", "gone"] if n < 4 else ["gone", f"own{n}", "e"] for n in range(10)}
    was = {key: found(*names) for key, names in lists.items()}
    now = {key: found(*(name for name in names if name != "gone")) for key, names in lists.items()}
    assert culprits(against(asked, was, now)) == [("page_deleted", "gone.md", 4)]
    cut = {key: found(*names[:4]) for key, names in lists.items()}
    assert culprits(against(asked, was, cut)) == [("fewer_sources", None, 4)]


def test_pages_that_were_cut_anew_are_said_to_be() -> None:
    """No page was deleted or rose; chunk ids in the golden set are out of date. Without texts the ids tell."""
    now = {f"q{n}": found(f"new{n}", f"more{n}") for n in range(10)}
    made = compared(now)
    assert culprits(made) == [("rechunked", f"q{n}!.md", 1) for n in range(10)]
    assert made.flips[0].cause.detail == "`q0!` (rank 1) is now in chunks with different ids"
    assert "if the golden set expects ids, update them" in next_steps(made)[0]
    few = compared({key: found("x", "y") for key in now})
    assert "rechunked" not in few.causes


# What is said of them


@pytest.mark.parametrize("silent", [1, 10])
def test_a_target_that_reports_no_sources_lost_none(silent: int) -> None:
    made = compared({f"q{place}": Response(answer="It is so.") for place in range(silent)})
    those, questions = ("the only question", "1 question") if silent == 1 else ("all 10 questions", "10 questions")
    was = "was" if silent == 1 else "were"
    unreported = "the target no longer reports sources, or what is expected of them"
    assert say.cause(made) == f"Cause of {those} that {was} lost: {unreported}"
    assert next_steps(made)[0] == (
        f"{unreported.capitalize()} ({questions}): return `sources`, best first, with the ids, titles or "
        "texts that are expected."
    )
    assert "no longer returned" not in comparison_text(made)


def test_culprits_stand_in_the_json() -> None:
    made = compared({f"q{place}": found("promo#1", f"q{place}!", "other") for place in range(2)})
    named = {"page": "promo", "kind": "page_new", "message": "", "link": "promo#1.md", "parts": ["promo#1"]}
    assert comparison_json(made)["culprits"] == [{**named, "ids": ["q0", "q1"], "words": "is new in the results"}]


def test_a_document_has_its_texts_of_both_sides() -> None:
    """As far as a row holds them: a source that is gone has none now, one that is new had none."""
    was = {f"q{n}": found(f"q{n}!", "x", texts={"x": "old"}) for n in range(2)} | {"q2": found("q2!", "other")}
    now = {f"q{n}": found("x", f"q{n}!", texts={"x": "new"}) for n in range(2)} | {"q2": found("other")}
    made = compared(now, was)
    first, second = changed_parts(made, made.culprits)
    assert first == [("x", "old", "new")]
    assert [(part.before, part.after) for part in second] == [("text of q2!", None)]
    bare = {
        fate: tuple(replace(each, before=None, after=None) for each in listed) for fate, listed in made.by_fate.items()
    }
    assert changed_parts(replace(made, by_fate=bare), made.culprits) == [[], []]
