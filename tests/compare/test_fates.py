"""What became of each question: one fate for each, the worst first, and what is borderline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.compare.change import Fate
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import compare
from evaltrack.records import Failure, Response
from evaltrack.records.row import Row
from tests.compared import edited, found, patched, question, row, side

BROKEN = Failure(kind="target_error", message="down")
ASKED = [question(key) for key in "abcdefgh"]


def rows(given: Mapping[str, tuple[Response | Failure, float | None]]) -> list[Row]:
    """All questions, found and judged 0.9, but for those that are given with their score."""
    all_given = {asked.id: (found(f"{asked.id}!", "other"), 0.9) for asked in ASKED} | dict(given)
    return [row(asked, all_given[asked.id][0], n, all_given[asked.id][1]) for n, asked in enumerate(ASKED)]


def compared(was: Mapping[str, Any], now: Mapping[str, Any], judges: str = "jj", **options: Any) -> Comparison:
    """The comparison of two such runs, each judged by the judge of its letter."""
    sides = (side(rows(was), "was", judge=judges[0]), side(rows(now), "now", judge=judges[1]))
    return compare(*sides, resamples=20, **options)


def fates(made: Comparison) -> dict[str, Fate]:
    return {change.id: fate for fate, changes in made.by_fate.items() for change in changes}


@pytest.mark.parametrize(
    ("was", "now", "fate"),
    [
        ((found("a!"), 0.9), (found("a!"), 0.9), None),
        ((found("a!"), 0.9), (found("a!"), 0.5), "broke"),
        ((found("a!"), 0.5), (found("a!"), 0.9), "fixed"),
        ((found("a!"), 0.9), (found("a!"), 0.8), "lower score"),
        ((found("a!"), 0.8), (found("a!"), 0.9), "higher score"),
        ((found("a!", "x"), 0.9), (found("x", "a!"), 0.9), "lower score"),
        ((found("x", "a!"), 0.9), (found("a!", "x"), 0.95), "higher score"),
        ((found("a!", "x"), 0.9), (found("x", "a!"), 0.95), "lower score"),
        ((found("a!"), 0.9), (BROKEN, None), "lost"),
        ((found("a!"), 0.9), (found("a!", answer=None), None), "lost"),
        ((found("a!", answer=None), None), (found("a!"), 0.9), "newly measured"),
        ((BROKEN, None), (found("a!"), 0.9), "newly measured"),
        ((BROKEN, None), (Failure(kind="target_error", message="off"), None), "changed"),
        ((found("a!"), 0.9), (found("a!", answer="It is not."), 0.9), "changed"),
        ((found("a!"), 0.9), (found("a!", "y"), 0.9), "changed"),
        ((found("a!", "x", "y"), 0.9), (found("a!", "y", "x"), 0.9), "changed"),
        ((found("a!"), 0.9), (found("a!", texts={"a!": "new"}), 0.9), "changed"),
        ((found("a!"), 0.9), (found("a!", tool_calls=()), 0.9), None),
    ],
)
def test_a_question_has_the_fate_that_its_rows_show(was: Any, now: Any, fate: Fate | None) -> None:
    """Of any score the direction counts, a lower one of several first; identical is only what is."""
    made = compared({"a": was}, {"a": now})
    assert fates(made) == ({} if fate is None else {"a": fate})
    assert made.count("identical") == 8 - (fate is not None)


def test_another_word_of_the_judge_is_no_identical_question() -> None:
    was, now = rows({}), rows({})
    now[3] = edited(now[3], verdicts=(now[3].verdicts[0].model_copy(update={"reasoning": "for another reason"}),))
    made = compare(side(was, "was"), side(now, "now"), resamples=20)
    assert fates(made) == {"d": "changed"}


def test_more_tokens_are_no_lower_score() -> None:
    sides = [side([patched(each, num_tokens=tokens) for each in rows({})]) for tokens in (100.0, 900.0)]
    assert fates(compare(*sides, resamples=20)) == {}


def test_both_sides_of_what_differs_are_there() -> None:
    made = compared({}, {"a": (found("a!", "other", answer="No."), 0.9), "b": (found("b!", "other"), 0.99)})
    (other,), (gain,) = made.by_fate["changed"], made.by_fate["higher score"]
    assert (other.cause.kind, other.before.answer, other.after.answer) == ("answer_changed", "It is so.", "No.")  # type: ignore[union-attr]
    assert (gain.raised, gain.dropped) == ((("overall_score", 0.9, 0.99),), ())
    assert gain.before is not None


def test_the_worst_come_first_by_loss() -> None:
    """Of the judge's score, then of recall, then of the rank; not in the order of the file."""
    now = {
        "a": (found("x", "a!"), 0.9),
        "b": (found("b!", "other"), 0.8),
        "c": (found("x"), 0.9),
        "d": (found("d!", "other"), 0.3),
        "e": (found("x"), 0.2),
        "f": (found("x", "y", "f!"), 0.9),
    }
    made = compared({}, now)
    assert [change.id for change in made.flips] == ["e", "d", "c"]
    assert [change.id for change in made.by_fate["lower score"]] == ["b", "f", "a"]
    back = compared(now, {})
    assert [change.id for change in back.by_fate["fixed"]] == ["e", "d", "c"]
    assert [change.id for change in back.by_fate["higher score"]] == ["b", "f", "a"]


def test_across_judges_nothing_breaks_and_no_score_of_theirs_moves() -> None:
    """What is found is still compared; who passes, and what they said, is not."""
    now = {"a": (found("a!", "other"), 0.1), "b": (found("x"), 0.1), "c": (found("c!", "other", answer="No."), 0.1)}
    made = compared({}, now, judges="ij", ignore=["judge"])
    assert fates(made) == {"b": "lower score", "c": "changed"}
    assert {"judge_score", "pass_rate"} <= set(made.left_out) - {metric.name for metric in made.metrics}
    assert [name for name, _, _ in made.by_fate["lower score"][0].dropped] == ["recall_at_k", "reciprocal_rank"]
    assert {change.now for change in (*made.by_fate["lower score"], *made.by_fate["changed"])} == {"not compared"}
    assert {(group.pass_to_fail, group.fail_to_pass) for group in made.groups} == {(0, 0)}
    failed = rows({})
    failed[0] = patched(failed[0], passed=None, overall_score=None, error="judge_error: no JSON", verdicts=[])
    made = compare(side(rows({}), "was", judge="i"), side(failed, "now", judge="j"), ignore=["judge"], resamples=20)
    assert made.count("lost") == 0


def test_a_change_of_a_part_is_shown_only_where_it_is_a_regression() -> None:
    """Two questions that nothing found are lost: the mean of the rest is higher, and that is no gain."""
    was = {"a": (found("x"), 0.1), "b": (found("x"), 0.1)}
    made = compared(was, {"a": (BROKEN, None), "b": (BROKEN, None)})
    recall = next(metric for metric in made.metrics if metric.name == "recall_at_k")
    assert (recall.n, recall.measured, recall.partial, recall.shows_change) == (6, (8, 6), True, False)
    worse = {key: (found("x"), 0.1) for key in "cdefgh"} | {"a": (BROKEN, None)}
    fell = next(metric for metric in compared({}, worse).metrics if metric.name == "recall_at_k")
    assert (fell.partial, fell.regressed, fell.shows_change) == (True, True, True)


answers = st.sampled_from(["It is so.", "No."])
given_rows = st.one_of(
    st.just((BROKEN, None)),
    st.tuples(
        st.builds(lambda hit, answer: found(*(["a!", "x"] if hit else ["x"]), answer=answer), st.booleans(), answers),
        st.sampled_from([0.3, 0.74, 0.76, 0.9, None]),
    ),
)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.tuples(given_rows, given_rows), min_size=1, max_size=8))
def test_the_fates_add_up_whatever_happens(pairs: list[tuple[Any, Any]]) -> None:
    asked = [question(f"q{place}", expected_chunks=["a!"]) for place in range(len(pairs))]
    sides = [
        side([row(one, pair[end][0], n, pair[end][1]) for n, (one, pair) in enumerate(zip(asked, pairs, strict=True))])
        for end in (0, 1)
    ]
    made = compare(*sides, resamples=2)
    assert sum(made.fates.values()) == made.num_common == len(pairs)
    listed = [change.id for changes in made.by_fate.values() for change in changes] + [each.id for each in made.same]
    assert sorted(listed) == sorted(each.id for each in asked)
