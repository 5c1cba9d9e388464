"""Why a question got better: the expected source that rose, its text or id, the answer, or what failed before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.compare.causes import causes_of
from tests.compare.test_causes import ASKED, DELAYS, QUOTED, causes, gains
from tests.compared import found, row
from tests.stored import patched


@pytest.mark.parametrize(
    ("was", "now", "kind", "detail"),
    [
        ("c", "ca", "source_gained", "`a` is returned now, at rank 2, and was not before"),
        ("cda", "ac", "source_promoted", "`a` rose from rank 3 to 1"),
        ("cdefgha", "cda", "source_promoted", "`a` rose from rank 7, beyond the first 5, to 3"),
        ("bc", "ac", "source_gained", "`a` is returned now, at rank 1, and was not before"),
    ],
)
def test_a_gain_is_told_by_the_expected_source_that_rose(was: str, now: str, kind: str, detail: str) -> None:
    """Whatever fell meanwhile; the other way round it is no cause, and is listed besides."""
    cause, *also = gains(found(*was), found(*now))
    assert (cause.kind, cause.source, cause.detail, cause.link) == (kind, "a", detail, "a.md")
    assert [other.kind for other in also] == ["source_lost"] * ("b" in was)
    loss = causes(found(*was), found(*now))
    assert loss[0].kind == ("source_lost" if "b" in was else "unknown")
    assert kind in [other.kind for other in loss]


def test_a_gain_of_the_judge_is_told_by_what_differs() -> None:
    """The answer; or an expected source that rose, from which it follows."""
    yes = found("a", "c", answer="Yes.")
    assert [cause.kind for cause in gains(found("a", "c"), yes, scores=(0.2, 0.9))] == ["answer_changed"]
    risen = gains(found("c", "a"), yes, scores=(0.2, 0.9))
    assert [cause.kind for cause in risen] == ["source_promoted", "context_changed"]
    assert risen[1].detail == "the answer is another, on the same sources in another order"


def test_a_text_explains_a_gain_where_its_source_stands_below_now_or_holds_the_passage() -> None:
    cause, *also = gains(found("d", "a"), found("a", "d", texts={"d": "new"}))
    assert cause.detail == "the text of `d` changed, and it stands below `a` now"
    assert [other.kind for other in also] == ["source_promoted"]
    (passage,) = gains(found("delays", texts={"delays": "After 5 h."}), found("delays", texts=DELAYS), QUOTED)
    assert passage.detail == "the text of `delays` changed, and now holds the expected passage"
    (renamed, *_) = gains(found("c", "v2", texts={"v2": "text of a"}), found("c", "a"))
    assert renamed.detail == "the text of `v2` came back as `a`: it has another id now"
    assert (renamed.source, renamed.rank_before, renamed.rank_after) == ("a", 2, 2)


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


@given(*[st.lists(st.sampled_from("abcdefgh"), unique=True)] * 2)
def test_a_hit_or_rank_that_rose_is_told_by_a_source_that_rose(was: list[str], now: list[str]) -> None:
    """Any two lists, in one of which the first expected source stands higher; the sentence holds."""
    before, after = row(ASKED, found(*was)), row(ASKED, found(*now))
    if after.scores["reciprocal_rank"] <= before.scores["reciprocal_rank"]:
        return
    cause, *_ = causes_of(before, after, 5, worse=False)
    assert cause.kind == ("source_promoted" if cause.source in was else "source_gained")
    places = [keys.index(cause.source or "") + 1 if cause.source in keys else None for keys in (was, now)]
    assert [cause.rank_before, cause.rank_after] == places
    assert cause.rank_after is not None
    assert cause.rank_before is None or cause.rank_after < cause.rank_before
