"""Why a question changed: of all that differs, the earliest that can explain what was lost."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from evaltrack.compare.causes import causes_of
from evaltrack.compare.change import Cause
from evaltrack.compare.differences import AllSources, by_key
from evaltrack.metrics.measure import Rules, measure
from evaltrack.metrics.rubric import DIMENSIONS
from evaltrack.records import Question, Response, Row, Source, ToolCall, Verdict
from evaltrack.records.row import row_of
from tests.compared import edited, found, patched, question, row

Scores = tuple[float | None, float | None]
UNJUDGED, FELL, ROSE = (None, None), (0.9, 0.2), (0.2, 0.9)
JUDGED: dict[str, Any] = {"scores": FELL}
ASKED = question("q", expected_chunks=["a", "b"])
NEGATIVE = question("q", expected_chunks=[])


def causes(was: Response, now: Response, asked: Question = ASKED, scores: Scores = (None, None)) -> list[Cause]:
    before, after = scores
    return causes_of(row(asked, was, score=before), row(asked, now, score=after), 5)


def gains(was: Response, now: Response, asked: Question = ASKED, scores: Scores = (None, None)) -> list[Cause]:
    before, after = scores
    return causes_of(row(asked, was, score=before), row(asked, now, score=after), 5, worse=False)


def kinds(*arguments: Any, **more: Any) -> list[str]:
    return [cause.kind for cause in causes(*arguments, **more)]


def said(text: str, **fields: Any) -> Response:
    """``acD:No.``: the ids of sources, a letter each, a capital one for an edited text; and the answer."""
    ids, colon, answer = text.removeprefix(".").partition(":")
    texts = {key.lower(): "edited" for key in ids if key.isupper()}
    return found(*ids.lower(), texts=texts, answer=answer if colon else "It is so.", **fields)


LOSSES = """
# an edit that cannot explain what was lost is listed besides
acd cD - source_lost source_text_changed
acd xacD - source_demoted source_text_changed
abc Ac - source_lost source_text_changed
abc Ac fell source_text_changed source_lost verdict_changed
# an edit of a source that newly ranks above it, or took its place, is the cause
acd Dac - source_text_changed source_demoted | `d` changed, and now ranks above `a`
acd Dc - source_text_changed source_lost | `d` changed, and now replaces `a`
# a source that moved up into a gap took no place; one that passed others did
cade cde - source_lost | `a` (rank 2) is no longer returned
cade ced - source_lost | `a` (rank 2) is no longer returned; `e` took its place
acb bxac - source_demoted source_promoted | `a` fell from rank 1 to 3; `x` took its place
acb bac - source_demoted source_promoted | `a` fell from rank 1 to 2
# a gain is the cause of no loss
bc ac - source_lost source_gained
c ca - unknown source_gained
cda ac - unknown source_promoted
# a verdict changed only on the same answer, whatever the sources
ac ac fell verdict_changed | the judge's score went from 0.900 to 0.200 on the same answer and sources
ac ax fell verdict_changed | on the same answer; its sources changed too
ac acx fell verdict_changed | on the same answer; its sources changed too
ac a fell verdict_changed | on the same answer; its sources changed too
ac aC fell verdict_changed source_text_changed
ac c fell source_lost verdict_changed
abc bac fell verdict_changed source_demoted source_promoted
ac ac:No. fell answer_changed
acd aCd:No. fell context_changed source_text_changed | with different texts of the same sources
acd axd:No. fell context_changed | different sources: `x` is new among the first 5, `c` is no longer among the first 5
acd acdxy:No. fell context_changed | different sources: `x` and 1 more are new among the first 5
acdefgh acdehfg:No. fell context_changed | `h` is new among the first 5, `f` is no longer among the first 5
acd adc:No. fell context_changed | the answer changed, with the same sources in a different order
# the same answer without sources declines nothing
ac . - source_lost
ac :Nothing. - now_declines source_lost | answering (an empty list counts as declining)
"""
GAINS = """
c ca - source_gained | `a` is newly returned, at rank 2
cda ac - source_promoted | `a` rose from rank 3 to 1
cdefgha cda - source_promoted | `a` rose from rank 7, beyond the first 5, to 3
bc ac - source_gained source_lost | `a` is newly returned, at rank 1
ac ac:Yes. rose answer_changed | different answer
ca ac:Yes. rose source_promoted context_changed | `a` rose from rank 2 to 1
da aD - source_text_changed source_promoted | the text of `d` changed, and now ranks below `a`
. ac - source_gained | `a` is newly returned, at rank 1
:Nothing. ac - no_longer_declines source_gained | answers instead of declining (an empty list counts as declining)
"""


@pytest.mark.parametrize(("table", "worse"), [(LOSSES, True), (GAINS, False)])
def test_the_cause_and_what_is_listed_besides(table: str, worse: bool) -> None:
    """Each line has the sources before and now, the judge's score, the causes, and how the sentence ends."""
    for line in table.strip().splitlines():
        if line.startswith("#"):
            continue
        case, _, detail = line.partition(" | ")
        was, now, moved, *kinds = case.split()
        scores = {"-": UNJUDGED, "fell": FELL, "rose": ROSE}[moved]
        cause, *also = (causes if worse else gains)(said(was), said(now), scores=scores)
        assert [each.kind for each in (cause, *also)] == kinds, line
        assert cause.detail.endswith(detail), line


# Sources


QUOTED = question("q", expected_chunks=None, expected_passages=[{"quote": "four hours"}])
DELAYS = {"delays": "After four hours they owe €400."}


@pytest.mark.parametrize("now", [("delays", "c"), ("x", "c", "delays")])
def test_a_chunk_that_came_back_without_the_expected_passage_was_edited(now: tuple[str, ...]) -> None:
    cause, *also = causes(found("delays", "c", texts=DELAYS), found(*now, texts={"delays": "After 5 h."}), QUOTED)
    assert (cause.kind, cause.source, cause.rank_before) == ("source_text_changed", "delays", 1)
    assert cause.rank_after == now.index("delays") + 1
    assert cause.detail == "the text of `delays` changed, and no longer holds the expected passage"
    assert {"source_lost", "source_demoted", "source_text_changed"}.isdisjoint(other.kind for other in also)


def test_a_chunk_without_an_id_is_known_by_its_title() -> None:
    def titled(*texts: str) -> Response:
        return Response(answer="So.", sources=tuple(Source(title="vpn", text=text) for text in texts))

    (cause, *_) = causes(titled("After four hours.", "Prices."), titled("Prices.", "After five hours."), QUOTED)
    assert (cause.kind, cause.source, cause.rank_after) == ("source_text_changed", "vpn", 2)
    assert kinds(titled("After four hours.", "Prices."), titled("Prices."), QUOTED)[0] == "source_lost"
    assert kinds(found("delays", "c", texts=DELAYS), found("c"), QUOTED) == ["source_lost"]


def test_the_same_texts_under_other_ids() -> None:
    """The expected source came back, and was not lost; what else differs is listed besides."""
    was = found("a", "c", "d", texts={"d": "old"})
    now = found("v2-a", "v2-c", "v2-d", texts={"v2-a": "text of a", "v2-c": "text of c", "v2-d": "new"}, answer="No.")
    cause, *also = causes(was, now)
    assert (cause.kind, cause.source, cause.rank_before, cause.rank_after) == ("ids_changed", "a", 1, 1)
    assert cause.detail == "`a` is now returned as `v2-a`: the same text with a different id"
    assert [other.kind for other in also] == ["context_changed"]


def test_an_id_that_another_text_bears_now_has_changed_too() -> None:
    """Chunks were numbered anew: `a` is what stood before it, and its own text is called `n`."""
    now = found("c", "n", "a", texts={"n": "text of a", "a": "a new text"})
    assert kinds(found("c", "a", "d"), now) == ["ids_changed"]
    both = found("n", "m", texts={"n": "text of a", "m": "text of b"})
    assert [each.source for each in causes(found("a", "b"), both)] == ["a", "b"]
    copy = {"c": "text of a"}  # on both sides
    assert kinds(found("a", "c", texts=copy), found("c", texts=copy)) == ["source_lost"]


LONG = " ".join(f"word{n}" for n in range(60))
FIRST, SECOND = LONG[: len(LONG) // 2], LONG[len(LONG) // 2 :]


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        ({"a-1": FIRST, "a-2": SECOND}, "rechunked"),  # cut in two
        ({"z": f"{LONG} and what stood behind it, which is as long: {' '.join('abcdefghij' * 5)}"}, "rechunked"),
        ({"a": FIRST, "a2": f"{SECOND} more"}, "rechunked"),  # under the same id a part alone, and another the rest
        ({"a": FIRST}, "source_text_changed"),  # nothing holds the rest
        ({"a": f"{LONG} Edited."}, "source_text_changed"),
        ({"b": LONG}, "ids_changed"),
        ({"z": f"{LONG} Edited."}, "ids_changed"),
        ({"z": "of something else"}, "source_lost"),
    ],
)
def test_a_text_in_other_borders_is_neither_edited_nor_lost(now: dict[str, str], kind: str) -> None:
    """The words moved from one source to another; the judge's score tells that the answer is worse."""
    asked = question("q", expected_chunks=["a"])
    answer = found(*now, texts=now, answer="No.")
    cause, *_ = causes(found("a", texts={"a": LONG}), answer, asked, **JUDGED)
    assert (cause.kind, cause.source) == (kind, "a")


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        (f"{LONG.partition(' word5 ')[2]} and the words that follow it", "rechunked"),
        (f"and the words before it {LONG.partition(' word55 ')[0]}", "rechunked"),
        (f"The words before it {LONG.partition(' word55 ')[0]} and a new end", "source_text_changed"),
        (f"Another heading {LONG}", "source_text_changed"),
        (f"{LONG} One more sentence.", "source_text_changed"),
    ],
)
def test_a_chunk_that_lost_words_at_one_end_and_gained_some_at_the_other_was_not_edited(now: str, kind: str) -> None:
    cause, *_ = causes(found("p#2", texts={"p#2": LONG}), found("p#1", texts={"p#1": now}), of_chunk("p#2"))
    assert (cause.kind, cause.source) == (kind, "p#2")


def test_a_text_is_looked_for_in_its_own_page_first() -> None:
    """The other page has nearly the same text; and the text that has the old id now is not its place."""
    texts = {"other#7": f"Version 1 {LONG}", "p#1": "of something else", "p#7": f"{LONG} {SECOND} Version 2"}
    cause, *_ = causes(found("p#1", "x", texts={"p#1": LONG}), found(*texts, texts=texts), of_chunk("p#1"))
    assert (cause.kind, cause.rank_after) == ("rechunked", 3)
    assert cause.detail == "`p#1` (rank 1) is now in `p#7` (rank 3)"


def of_chunk(key: str) -> Question:
    return question("q", expected_chunks=[key])


def test_what_other_questions_show_of_a_source_explains_its_loss() -> None:
    """Its text is another one in their rows; it was cut out of their lists; or nearly no source kept its id."""
    was, now = found("a", "c"), found("c")
    rows = [row(ASKED, each) for each in (was, now)]

    def kind(before: Response, after: Response) -> str:
        everywhere = AllSources.of(*({"other": row(ASKED, each)} for each in (before, after)))
        return causes_of(*rows, 5, everywhere=everywhere)[0].kind

    assert kind(found("x", "a"), found("x", "a", texts={"a": "edited"})) == "source_text_changed"
    for many, moved, cause in ((9, 0, "source_lost"), (10, 4, "rechunked"), (10, 5, "source_lost")):
        old, new = ([f"{side}{n}" for n in range(many)] for side in ("old", "new"))
        texts = {key: f"text of {was}" for key, was in list(zip(new, old, strict=True))[:moved]}
        assert kind(found(*old), found(*new, texts=texts)) == cause
    nameless = [Response(answer="So.", sources=[Source(chunk_id=f"{side}{n}") for n in range(10)]) for side in "ab"]
    assert kind(*nameless) == "source_lost"  # without texts nothing shows new borders
    assert kind(was, was) == "source_lost"
    declined = row(ASKED, Response(answer="I do not know.", sources=(), abstained=True))
    everywhere = AllSources.of({"other": rows[0]}, {"other": rows[1]})
    assert causes_of(rows[0], declined, 5)[0].kind == "now_declines"
    assert causes_of(rows[0], declined, 5, everywhere=everywhere)[0].kind == "source_lost"


def explained(asked: Question, was: Response, now: Response, *others: tuple[Response, Response]) -> Cause:
    """The cause of a question, where other questions have these responses on both sides."""
    pairs = [(row(asked, was), row(asked, now)), *((row(ASKED, before), row(ASKED, after)) for before, after in others)]
    everywhere = AllSources.of(*({str(n): pair[end] for n, pair in enumerate(pairs)} for end in (0, 1)))
    return causes_of(*pairs[0], 5, everywhere=everywhere)[0]


@pytest.mark.parametrize(("page", "kind"), [("#1", "ids_changed"), ("", "rechunked")])
def test_a_renamed_page_with_one_more_sentence_was_not_cut_anew(page: str, kind: str) -> None:
    """An id that names no page does not show that the page was renamed."""
    others = found(*(f"old{n}" for n in range(10))), found(*(f"new{n}" for n in range(10)))
    was, now = (
        Response(answer="So.", sources=[Source(chunk_id=f"{key}{page}", text=text)])
        for key, text in (("a", LONG), ("v2-a", f"{LONG} More."))
    )
    assert explained(question("q", expected_chunks=[f"a{page}"]), was, now, others).kind == kind


def test_new_chunks_without_the_expected_passage_are_not_called_its_place() -> None:
    whole = f"{FIRST} After four hours they owe €400. {SECOND}"
    was, now = found("a", texts={"a": whole}), found("b", "c", texts={"b": FIRST, "c": SECOND})
    cause = causes(was, now, QUOTED)[0]
    words = "`a` (rank 1) is now in chunks with different ids; none that is returned holds the expected passage"
    assert (cause.kind, cause.detail, cause.rank_after) == ("rechunked", words, None)


def test_a_list_that_is_empty_now_declines_unless_it_lacks_only_what_was_expected() -> None:
    assert kinds(found("c"), Response(answer="It is so.", sources=())) == ["now_declines"]
    assert "now_declines" not in kinds(found("a"), Response(answer="It is so.", sources=()))


def test_whole_pages_that_come_back_in_chunks_under_their_ids_were_not_edited() -> None:
    """Of one page alone that is what an edit left."""
    asked, pages = question("q", expected_chunks=["a"]), ("a", "b", "c")
    whole = {page: f"{page} {LONG} {page}" for page in pages}
    chunks = {page: f"{page} {FIRST}" for page in pages}
    was, now = found(*pages, texts=whole), found("b", "c", "a", texts=chunks)
    cause = explained(asked, was, now)
    assert (cause.kind, cause.source) == ("rechunked", "a")
    assert cause.detail == "`a` (rank 1) is now in smaller chunks with the same id (rank 3)"
    rewritten = {page: f"{page} word0 word1 and then what else there is to say of {page}" for page in pages}
    for texts in ({**whole, "a": chunks["a"]}, rewritten):
        assert explained(asked, was, found("b", "c", "a", texts=texts)).kind == "source_text_changed"


def test_a_chunk_that_kept_its_text_was_not_edited_though_another_of_its_page_was() -> None:
    """It is new in this list after another order; another question shows it with one text on both sides."""
    asked = question("q", expected_chunks=["a"])
    was, now = found("a", "x"), found("page#1", "a", "x")
    edited = (found("page#2", "z"), found("page#2", "z", texts={"page#2": "edited"}))
    same = (found("page#1", "z"), found("z", "page#1"))
    assert explained(asked, was, now, edited).kind == "source_text_changed"
    cause = explained(asked, was, now, edited, same)
    assert (cause.kind, cause.displaced_by) == ("source_demoted", "page#1")
    rows = [{"other": row(ASKED, each)} for each in edited]
    assert AllSources.of(*rows).edited == {"page", "page#2"}
    assert AllSources.of(*rows, [row(ASKED, found("page#3"))]).edited == {"page#2"}


def test_a_deleted_page_is_the_cause_of_all_questions_that_are_declined_without_it() -> None:
    """One chunk of it is seen to be cut out; of the other no list shows more than that it is gone."""
    declined = Response(answer="I do not know.", sources=(), abstained=True)
    cut_out = (found("page#1", "z"), found("z"))
    for part in ("page#1", "page#2"):
        asked = question("q", expected_chunks=[part])
        assert explained(asked, found(part, "z"), declined, cut_out).kind == "source_lost"
        still = (found("z"), found("z", "page#3"))
        kind = "source_lost" if part == "page#1" else "now_declines"
        assert explained(asked, found(part, "z"), declined, cut_out, still).kind == kind


def test_other_ids_of_unexpected_sources_are_told_where_the_answer_is_another() -> None:
    """All texts are the same in the same order; the judge that changes its mind on the same answer is told itself."""
    was, texts = found("a", "c"), {"z": "text of c"}
    assert kinds(was, found("a", "z", texts=texts, answer="No."), **JUDGED) == ["ids_changed", "context_changed"]
    assert kinds(was, found("a", "z", texts=texts), **JUDGED) == ["verdict_changed", "ids_changed"]


def titled(*sources: tuple[str, str | None, str]) -> Response:
    made = (Source(title=title, chunk_id=chunk, text=text) for title, chunk, text in sources)
    return Response(answer="It is so.", sources=tuple(made))


def test_another_chunk_of_an_expected_page_is_no_edit() -> None:
    """Under one title several chunks stand; the text of one changed only if the same chunk has another."""
    asked = question("q", expected_chunks=None, expected_sources=["Page"])
    was = titled(("Page", "1", "one"), ("Page", "2", "two"), ("Other", "3", "three"))
    other = titled(("Page", "4", "four"), ("Page", "2", "two"), ("Other", "3", "three"))
    edited = titled(("Page", "1", "one"), ("Page", "2", "two, edited"), ("Other", "3", "three"))
    assert kinds(was, other, asked, **JUDGED) == ["verdict_changed"]
    assert kinds(was, edited, asked, **JUDGED) == ["source_text_changed", "verdict_changed"]


def test_sources_without_a_key_have_no_text_that_changed() -> None:
    """Nothing says that the first one without an id is the same on both sides; the context is another."""
    was, now = titled(("T", None, "one"), ("T", None, "two")), titled(("T", None, "one"), ("T", None, "three"))
    assert kinds(was, now, **JUDGED) == ["verdict_changed"]
    assert kinds(was, now.model_copy(update={"answer": "No."}), **JUDGED) == ["context_changed"]


# Declining


@pytest.mark.parametrize("sources", [(), None])
@pytest.mark.parametrize("scores", [(None, None), (0.9, 0.1)])
def test_an_abstention_is_no_lost_source(sources: Any, scores: Any) -> None:
    """The target declines an answerable question, and so returns nothing: the sources are not what was lost first."""
    now = Response(answer="I do not know.", sources=sources, abstained=True)
    cause, *also = causes(found("a", "c"), now, scores=scores)
    assert (cause.kind, cause.detail) == ("now_declines", "the target declines instead of answering")
    missing = "no_longer_reports_sources" if sources is None else "source_lost"
    assert missing in [cause.kind for cause in also]


def test_an_abstention_with_its_sources_is_one_too() -> None:
    """It found what is expected, and says that it does not know; on other sources these are told besides."""
    declining = {"abstained": True, "answer": "I do not know."}
    assert kinds(found("a", "c"), found("a", "c", **declining), **JUDGED) == ["now_declines"]
    assert kinds(found("a", "c"), found("a", "x", **declining), **JUDGED) == ["now_declines", "context_changed"]
    assert kinds(found("a", "c"), found("x", "c", **declining), **JUDGED)[0] == "source_lost"


def negative(given: Response, declined: bool | None) -> Row:
    verdicts = () if declined is None else (Verdict(judge="j", reasoning="because", declined=declined),)
    made = measure(NEGATIVE, given, Rules(5), verdicts)
    scored = {"scores": made.scores, "unmeasured": made.unmeasured, "passed": made.passed}
    return row_of(NEGATIVE, given, 5, verdicts=verdicts, **scored)


@pytest.mark.parametrize(
    ("was", "declined"),
    [(found(), None), (found("x", abstained=True), None), (found("x", answer="I do not know."), True)],
    ids=["nothing returned", "flagged", "in words"],
)
def test_a_negative_that_is_answered_no_longer_declines(was: Response, declined: bool | None) -> None:
    """Whether the target said so or the judge saw it, and whatever it found meanwhile."""
    for now in (found("x", answer="In 1911."), found("y", answer="In 1911.")):
        (cause, *_) = causes_of(negative(was, declined), negative(now, declined and False), 5)
        assert cause.kind == "no_longer_declines"
        assert ("as the judge reads" in cause.detail) == (declined is not None)


def test_a_negative_that_the_judge_reads_otherwise_is_a_matter_of_the_judge() -> None:
    said = found("x", answer="Who knows.")
    assert [cause.kind for cause in causes_of(negative(said, True), negative(said, False), 5)] == ["verdict_changed"]
    mended = causes_of(negative(said, False), negative(found("x", answer="I do not know."), True), 5)
    assert mended[0].kind == "now_declines"


def test_a_refusal_in_words_declines_where_a_judge_says_so() -> None:
    """Without that it is another answer."""
    was, now = found("a"), found("a", answer="I am sorry, I cannot say.")
    refused = edited(
        row(ASKED, now, score=0.1), verdicts=(Verdict(judge="j", reasoning="", overall_score=0.1, declined=True),)
    )
    for after, kind in ((refused, "now_declines"), (row(ASKED, now, score=0.1), "answer_changed")):
        assert [cause.kind for cause in causes_of(row(ASKED, was, score=0.9), after, 5)] == [kind]
    unjudged = causes(was, now)
    assert [cause.kind for cause in unjudged] == ["answer_changed"]


# Sources that are not reported


@pytest.mark.parametrize("now", [Response(answer="It is so."), Response(answer="No."), Response()])
def test_sources_that_are_not_reported_any_more_are_not_said_to_be_lost(now: Response) -> None:
    cause, *also = causes(found("a", "c"), now)
    assert (cause.kind, cause.source) == ("no_longer_reports_sources", None)
    assert cause.detail == "the target no longer reports sources, or what is expected of them"
    assert not {"source_lost", "now_declines"} & {other.kind for other in also}
    assert [other.detail for other in also] == {
        "It is so.": [],
        "No.": ["the answer changed, with sources that it does not report"],
        None: ["the target gives no answer now, with sources that it does not report"],
    }[now.answer]


@pytest.mark.parametrize(
    ("field", "expected", "reason"),
    [
        (
            "text",
            {"expected_passages": [{"quote": "text of a"}]},
            "the target returns no texts in which the expected passages",
        ),
        ("title", {"expected_sources": ["a"]}, "titles are expected, and no source has one"),
        ("chunk_id", {}, "chunk ids are expected, and no source has one"),
    ],
)
def test_sources_without_what_is_expected_are_not_said_to_be_lost(
    field: str, expected: dict[str, Any], reason: str
) -> None:
    asked = Question.model_validate(
        {"id": "q", "question": "What?", "domain": "d", **(expected or {"expected_chunks": ["a"]})}
    )
    was = found("a", "c")
    was = edited(was, sources=tuple(edited(each, title=each.chunk_id) for each in was.sources or ()))
    now = edited(was, sources=tuple(edited(each, **{field: None}) for each in was.sources or ()))
    cause = causes(was, now, asked)[0]
    assert cause.kind == "no_longer_reports_sources"
    assert cause.detail.startswith(reason)


def test_sources_that_are_not_reported_explain_no_other_answer_where_none_are_expected() -> None:
    """The answer is worse; with the same one its judge may have missed them."""
    asked = Question(id="q", question="What?", domain="d", expected_answer="So.")
    assert kinds(found("a"), Response(answer="No."), asked, **JUDGED) == [
        "context_changed",
        "no_longer_reports_sources",
    ]
    same = kinds(found("a"), Response(answer="It is so."), asked, **JUDGED)
    assert same == ["no_longer_reports_sources", "verdict_changed"]
    assert kinds(found(), Response(answer="It is so."), NEGATIVE) == [
        "no_longer_reports_sources",
        "no_longer_declines",
    ]


def test_sources_that_are_newly_reported_are_not_said_to_be_new() -> None:
    """Neither an expected one nor the others, which the answer may have been made from before."""
    cause, other = gains(Response(answer="No."), found("a", "c"))
    assert (cause.kind, cause.source) == ("now_reports_sources", None)
    assert other.detail == "the answer changed, with sources that it did not report before"
    assert other.risers == ()
    worse, *_ = causes(Response(answer="No."), found("a", "c"), **JUDGED)
    assert (worse.kind, worse.risers) == ("context_changed", ())


def test_newly_reported_sources_without_the_expected_one_are_why_it_does_not_pass() -> None:
    """It passed by its judge alone; the answer and its verdict are the same."""
    cause, *others = causes(Response(answer="It is so."), found("x", "c"), scores=(0.9, 0.9))
    assert (cause.kind, [each.kind for each in others]) == ("now_reports_sources", [])


# Answer and verdict


def called(tools: str, *sources: str) -> Response:
    return found(*sources or ("q!",), tool_calls=tuple(ToolCall(name=tool) for tool in tools))


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ("s", "", "`s` is no longer called"),
        ("", "s", "`s` is now called"),
        ("s", "r", "`s` is no longer called; `r` is now called"),
        ("a", "abcde", "`b` and 3 more are now called"),
        ("ab", "abb", "the same tools are called more or fewer times"),
        ("ab", "ba", ""),
    ],
)
def test_tools_are_compared_by_name_and_number_in_any_order(was: str, now: str, words: str) -> None:
    """Other tools are the cause before another verdict is, whatever the sources."""
    for sources in (("q!", "c"), ("q!", "x")):
        sides = (
            row(question("q"), called(was, "q!", "c"), score=0.9),
            row(question("q"), called(now, *sources), score=0.2),
        )
        cause, *_ = causes_of(*sides, 5)
        assert (cause.kind, cause.detail) == ("tools_changed", words) if words else cause.kind == "verdict_changed"


@pytest.mark.parametrize("sources", ["a", "x"])
@pytest.mark.parametrize(
    ("answer", "gone"),
    [
        (None, "the target gives no answer now"),
        ("", "the target gives an empty answer now"),
        (" \n", "the target gives an empty answer now"),
    ],
)
def test_an_answer_that_is_missing_or_empty_is_no_other_one(answer: str | None, gone: str, sources: str) -> None:
    """On the same sources and on others, where what is other about them is said besides."""
    asked = question("q", expected_chunks=["z"])
    new = f", with different sources: `{sources}` is new among the first 5"
    besides = "" if sources == "a" else f"{new}, `a` is no longer among the first 5"
    (lost,) = causes(found("a"), found(sources, answer=answer), asked)
    assert (lost.kind, lost.detail) == ("answer_missing", gone + besides)
    (gained,) = gains(found("a", answer=answer), found(sources), asked)
    assert gained.kind == "answer_gained"
    assert gained.detail == gone.replace("gives", "gave").replace("now", "before") + besides
    assert kinds(found("a", answer=None), found("a", answer="")) == ["unknown"]


def test_a_judge_that_failed_explains_that_nothing_was_measured() -> None:
    """Another answer does not; a source that was lost was lost all the same."""
    failed: dict[str, Any] = {"error": "judge_error: empty", "passed": None, "overall_score": None}
    before = row(ASKED, found("a", "c"), score=0.9)
    answered = patched(row(ASKED, found("a", "c", answer="No."), score=0.9), **failed)
    assert [cause.kind for cause in causes_of(before, answered, 5)] == ["judge_failed", "answer_changed"]
    lost = patched(row(ASKED, found("c"), score=0.9), **failed)
    assert [cause.kind for cause in causes_of(before, lost, 5)] == ["source_lost", "judge_failed"]


def test_the_three_dimensions_that_fell_most_are_named() -> None:
    was, now = (row(question("q", expected_chunks=None), Response(answer=each)) for each in ("Yes.", "No."))
    was = patched(was, reasoning_score=80, **dict.fromkeys(DIMENSIONS, 4))
    now = patched(now, reasoning_score=20, **dict(zip(DIMENSIONS, (3, 0, 2, 1, 4), strict=False)))
    detail = causes_of(was, now, 5)[0].detail
    assert detail == "Oscillation from 4 to 0, Epistemic honesty from 4 to 1, Crux from 4 to 2"


def test_a_new_hard_fail_is_the_cause_and_an_old_one_is_none() -> None:
    was, now = (row(question("q", expected_chunks=None), Response(answer=each)) for each in ("Yes.", "No."))
    was = patched(was, reasoning_score=80, hard_fails=["HF1"])
    assert causes_of(was, patched(now, reasoning_score=0, hard_fails=["HF1", "HF5"]), 5)[0].detail == "hard fail: HF5"
    assert causes_of(was, patched(now, reasoning_score=70, hard_fails=["HF1"]), 5)[0].kind == "answer_changed"


def test_of_several_trials_the_row_says_how_many_passed() -> None:
    rows = [edited(row(ASKED, found("a")), trials=3, passes=passes) for passes in (3, 1)]
    (cause,) = causes_of(*rows, 5)
    assert (cause.kind, cause.detail) == ("unknown", "before 3 of 3 trials passed, now 1 of 3 trials passed")


def test_a_text_explains_a_gain_too() -> None:
    (passage,) = gains(found("delays", texts={"delays": "After 5 h."}), found("delays", texts=DELAYS), QUOTED)
    assert passage.detail == "the text of `delays` changed, and now holds the expected passage"
    (renamed, *_) = gains(found("c", "v2", texts={"v2": "text of a"}), found("c", "a"))
    assert renamed.detail == "`v2` is now returned as `a`: the same text with a different id"
    assert (renamed.source, renamed.rank_before, renamed.rank_after) == ("a", 2, 2)


def test_other_parts_of_the_same_pages_are_said_as_such() -> None:
    asked = question("q", expected_chunks=None, expected_sources=["Page"])
    was, now = (titled(("Page", key, key), ("Other", "3", "three")) for key in ("1", "2"))
    (cause, *_) = causes(was, now.model_copy(update={"answer": "No."}), asked, **JUDGED)
    assert cause.detail == "the answer changed, with other parts of the same pages"


@pytest.mark.parametrize(
    ("error", "kind", "lacks"),
    [
        ("target_timeout: no response within 60 s", "target_failed", {"sources": None, "answer": None}),
        ("judge_error: empty", "judge_failed", {}),
    ],
)
def test_what_is_newly_measured_failed_before(error: str, kind: str, lacks: dict[str, Any]) -> None:
    now = row(ASKED, found("a", "c"), score=0.9)
    (cause,) = causes_of(patched(now, error=error, passed=None, overall_score=None, **lacks), now, 5, worse=False)
    assert (cause.kind, cause.detail) == (kind, f"{error}; that was before")


# Whatever differs


def test_a_repeat_takes_no_rank() -> None:
    """A source that comes again keeps its first rank, and those behind it are not pushed down."""
    flat = row(ASKED, found("x", "x", "a", "x", "b"))
    assert {key: rank for key, (rank, _) in by_key(flat).items()} == {"x": 1, "a": 2, "b": 3}
    unnamed = Response(answer="so", sources=(Source(title="t"), Source(chunk_id="a"), Source(title="t")))
    ranks = {key: rank for key, (rank, _) in by_key(row(ASKED, unnamed)).items()}
    assert list(ranks.values()) == [1, 2, 3], "a source without the key that is compared still takes up its place"


def test_whatever_differs_the_kinds_are_what_they_say() -> None:
    """Two lists at random: `answer_changed` on the same sources only, `verdict_changed` on the same answer."""
    rng = random.Random(3)
    for _ in range(2000):
        sides: list[Response] = []
        while len(sides) < 2:
            keys = rng.sample("abcdefgh", rng.randint(0, 8))
            texts = {key: rng.choice([f"text of {key}"] * 9 + ["edited"]) for key in keys}
            sides.append(found(*keys, answer=rng.choice(["yes", "no"]), texts=texts, abstained=rng.random() < 0.1))
        for place, cause in enumerate(causes(*sides, scores=(0.9, rng.choice([0.9, 0.2])))):
            check(cause, *sides, first=place == 0)
            assert place or cause.kind not in ("source_gained", "source_promoted")
        for place, cause in enumerate(gains(*sides, scores=(rng.choice([0.9, 0.2]), 0.9))):
            assert place or cause.kind not in ("source_lost", "source_demoted")


def check(cause: Cause, was: Response, now: Response, *, first: bool) -> None:
    """One cause against the two responses, counted here anew."""
    old, new = ([source.chunk_id for source in side.sources or ()] for side in (was, now))
    contexts = [[(source.chunk_id, source.text) for source in (side.sources or ())[:5]] for side in (was, now)]
    if cause.kind == "answer_changed":
        assert contexts[0] == contexts[1]
        assert was.answer != now.answer
    if cause.kind == "context_changed":
        assert contexts[0] != contexts[1]
        assert was.answer != now.answer
        assert set(re.findall("`(.)`", cause.detail)) <= {*old[:5]} ^ {*new[:5]}
    if cause.kind == "verdict_changed":
        assert was.answer == now.answer
    if cause.kind in ("source_lost", "source_demoted", "source_gained", "source_promoted"):
        assert cause.source in ("a", "b")
        assert (cause.rank_before, cause.rank_after) == (rank(old, cause.source), rank(new, cause.source))
    if cause.kind in ("source_lost", "source_demoted"):
        same = was.answer == now.answer and not now.abstained
        assert new or was.declined or not first or same  # where nothing came back for another answer, it newly declines
    if cause.displaced_by:
        assert cause.displaced_by not in ("a", "b")
        assert rank(new, cause.displaced_by) is not None
        place = rank(old, cause.displaced_by)
        assert place is None or place > (cause.rank_before or 0)
    if cause.kind == "source_text_changed":
        texts = [{source.chunk_id: source.text for source in side.sources or ()} for side in (was, now)]
        assert texts[0][cause.source] != texts[1][cause.source]
        risen = any(above(new, cause.source, key) and not above(old, cause.source, key) for key in "ab" if key in old)
        assert not first or cause.source in ("a", "b") or risen


def rank(keys: list[str | None], key: str | None) -> int | None:
    return keys.index(key) + 1 if key in keys else None


def above(keys: list[str | None], one: str | None, other: str) -> bool:
    return one in keys and (other not in keys or keys.index(one) < keys.index(other))
