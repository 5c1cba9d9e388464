"""The comparison of two runs: pairing, metrics, rules, verdict and causes."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.compare.causes import causes_of
from evaltrack.compare.comparison import Comparison, Threshold
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate, parse_drops
from evaltrack.compare.pairing import NotComparableError
from evaltrack.errors import UsageError
from evaltrack.records import Failure, Response, Source
from evaltrack.records.verdict import OwnScore
from evaltrack.report.comparison_words import headline_changes, reasons
from evaltrack.report.templates import say
from tests.compared import found, question, row, rows_of, side

TEN = [question(f"q{i}", domain=f"domain {i % 2}", difficulty="easy" if i < 5 else "hard") for i in range(10)]
LOST = {"q3": found("x", "y")}
BROKEN = Failure(kind="target_error", message="RuntimeError: down")


def compared(given_now: dict[str, Response | Failure], gate: Gate | None = None, **options: Any) -> Comparison:
    """Ten questions that all passed, against the same with some responses replaced."""
    return compare(side(rows_of(TEN, {})), side(rows_of(TEN, given_now)), gate, resamples=200, **options)


def test_a_run_compared_with_itself_is_silent() -> None:
    """No delta, no flip, no cause, verdict ok, exit code 0."""
    made = compared({})

    assert (made.verdict, made.exit_code, reasons(made)) == ("ok", 0, ["no question broke"])
    assert all(metric.delta == 0 and not metric.regressed for metric in made.metrics)
    assert not any(made.by_fate.values())
    assert (made.causes, made.loss.p) == ({}, 1)


def test_one_question_from_pass_to_fail_is_a_regression_with_its_lost_source() -> None:
    baseline = side(rows_of(TEN, {"q1": found("x")}))
    made = compare(baseline, side(rows_of(TEN, LOST)), Gate(drops={}), resamples=200)

    assert (made.verdict, made.exit_code) == ("regression", 1)
    assert reasons(made) == ["1 question broke (allowed: 0); 1 was fixed"]
    assert [fix.id for fix in made.by_fate["fixed"]] == ["q1"]
    (flip,) = made.flips
    assert (flip.id, flip.was, flip.now, flip.domain, flip.difficulty) == ("q3", "pass", "fail", "domain 1", "easy")
    assert (flip.cause.kind, flip.cause.source, flip.cause.rank_before) == ("source_lost", "q3!", 1)
    assert flip.cause.displaced_by == "x"
    assert flip.cause.detail == "`q3!` (rank 1) is no longer returned; `x` took its place"


@pytest.mark.parametrize(("texts", "verdict"), [(["d:recall_at_k=5%"], "ok"), (["d:recall_at_k=4%"], "regression")])
def test_a_domain_can_have_a_rule_of_its_own(texts: list[str], verdict: str) -> None:
    """`d:recall_at_k=4%` looks at that domain alone."""
    asked = [question(f"q{i}", expected_chunks=["a", "b", "c", "d"]) for i in range(5)]
    drops, domains, asked_for = parse_drops([*texts, "recall_at_k=off"])
    gate = Gate(drops, domains, explicit=asked_for)
    made = compare(side(rows_of(asked, {})), side(rows_of(asked, {"q0": found("a", "b", "c")})), gate, resamples=100)
    assert made.verdict == verdict
    recall = next(metric for metric in made.groups[0].metrics if metric.name == "recall_at_k")
    assert (made.groups[0].kind, recall.interval is not None) == ("domain", True)


def test_a_rule_for_an_unknown_domain_and_an_unknown_part_are_refused() -> None:
    with pytest.raises(UsageError, match="no question in both runs is of domain `travle`"):
        compared({}, Gate(domain_drops={"travle": {"mrr": Threshold(0.1, relative=True)}}))
    with pytest.raises(UsageError, match="`ignore=jugde`: write one of k, judge"):
        compared({}, ignore=["jugde"])


def test_a_lost_question_makes_the_verdict_unknown() -> None:
    """Measured before, failed now: listed with its cause, in no mean, exit code 3."""
    made = compared({"q3": BROKEN})

    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert reasons(made) == ["1 question was lost: measured in the baseline, not in the candidate"]
    (lost,) = made.by_fate["lost"]
    assert (lost.id, lost.was, lost.now, lost.cause.kind) == ("q3", "pass", "error", "target_failed")
    assert lost.cause.detail == "target_error: RuntimeError: down"
    assert next(m for m in made.metrics if m.name == "recall_at_k").n == 9


@pytest.mark.parametrize(
    ("now", "coverage", "exit_code"),
    [
        ({"q3": BROKEN}, 0.9, 0),
        ({"q3": BROKEN, "q4": BROKEN}, 0.9, 3),
        ({**LOST, "q4": BROKEN}, None, 1),
    ],
)
def test_coverage_allows_lost_questions_and_no_regression(now: Any, coverage: float | None, exit_code: int) -> None:
    assert compared(now, Gate(min_coverage=coverage)).exit_code == exit_code


def test_added_removed_and_edited_questions_are_listed_and_in_no_number() -> None:
    edited = [*TEN[1:9], question("q9", question="What else?"), question("new")]
    rows = rows_of(edited, {"q9": found("x"), "new": found("x")})
    made = compare(side(rows_of(TEN, {})), side(rows), Gate(min_coverage=0.8), resamples=100)

    assert (made.removed, made.added, made.edited) == (("q0",), ("new",), ("q9",))
    assert made.num_common == 8
    assert made.verdict == "ok"


EDITED = [question(f"q{n}", question="What else?") for n in range(2)]
ADDED = [question(f"new{n}") for n in range(9)]


@pytest.mark.parametrize(
    ("now", "coverage", "left"),
    [
        (TEN[:3], None, "3 of 10 questions are left to compare: 7 removed (see --min-coverage)"),
        (TEN[:3], 0.3, ""),
        (TEN[1:], None, ""),
        ([*EDITED, *TEN[2:], *ADDED], None, "8 of 10 questions are left to compare: 2 edited (see --min-coverage)"),
        ([*EDITED, *TEN[2:], *ADDED], 0.8, ""),
        ([*EDITED[:1], *TEN[1:]], None, ""),
    ],
)
def test_a_tenth_of_the_questions_may_be_removed_or_edited(now: Any, coverage: float | None, left: str) -> None:
    """Unless `min_coverage` says otherwise. Added questions do not count."""
    made = compare(side(rows_of(TEN, {})), side(rows_of(now, {})), Gate(min_coverage=coverage), resamples=100)
    assert (made.verdict, reasons(made)) == (("unknown", [left]) if left else ("ok", ["no question broke"]))


def test_what_is_newly_measured_and_fails_comes_first_and_says_so() -> None:
    was = dict.fromkeys(("q1", "q2", "q3"), BROKEN)
    made = compare(side(rows_of(TEN, was)), side(rows_of(TEN, {"q3": found("x")})), Gate(min_coverage=0), resamples=9)
    assert [change.id for change in made.by_fate["newly measured"]] == ["q3", "q1", "q2"]
    assert [say.changed(change).partition(": ")[0] for change in made.by_fate["newly measured"]] == [
        "q3 (domain 1) is newly measured and fails",
        "q1 (domain 1) is newly measured and passes",
        "q2 (domain 0) is newly measured and passes",
    ]


def test_no_share_of_passes_rises_by_what_is_not_measured_any_more() -> None:
    """Questions that missed pass by their judge alone where no sources are reported; none of them was fixed."""
    missed = {f"q{place}": found("x") for place in range(4)}
    silent = {f"q{place}": Response(answer="It is so.") for place in range(6)}
    made = compare(side(rows_of(TEN, missed, 0.9)), side(rows_of(TEN, silent, 0.9)), Gate(min_coverage=0), resamples=9)
    assert (made.fates["lost"], made.fates["fixed"], made.verdict) == (6, 0, "ok")
    passing, judged = (next(m for m in made.metrics if m.name == name) for name in ("pass_rate", "judge_score"))
    assert (passing.n, passing.measured, passing.candidate, passing.delta) == (4, (10, 4), 1, 0)
    assert (judged.n, judged.measured) == (10, (10, 10))  # which is the same as before
    assert {change.now for change in made.by_fate["lost"]} == {"not measured"}
    worse = compare(side(rows_of(TEN, {}, 0.9)), side(rows_of(TEN, silent, 0.2)), Gate(min_coverage=0), resamples=9)
    assert worse.fates["broke"] == 10  # the judge says so of those, too


@pytest.mark.parametrize(
    ("failed", "coverage", "expected"), [(1, None, "ok"), (2, None, "unknown"), (2, 0.8, "ok"), (9, 0.8, "unknown")]
)
def test_a_baseline_of_errors_leaves_nothing_to_be_green_about(
    failed: int, coverage: float | None, expected: str
) -> None:
    """What it did not measure is not compared, whether the candidate fails it too, misses it or passes."""
    was = {f"q{place}": BROKEN for place in range(failed)}
    now = {"q0": found("x")} | ({"q1": BROKEN} if failed > 1 else {})
    gate = Gate(min_coverage=coverage)
    made = compare(side(rows_of(TEN, was)), side(rows_of(TEN, now)), gate, resamples=100)
    assert made.verdict == expected
    newly = max(1, failed - 1)
    assert f"1 of {newly} newly measured question{'s' if newly > 1 else ''} fails." in headline_changes(made)
    if expected == "unknown":
        left = f"{10 - failed} of 10 questions {'is' if failed == 9 else 'are'} left to compare"
        assert f"{left}, the others failed (see --min-coverage)" in reasons(made)


@pytest.mark.parametrize(
    ("reported", "now", "broke", "reason"),
    [
        # every question still passes; without sources they pass by their verdicts
        (True, 0.76, 0, "Judge score fell from 0.990 to 0.760, 23.2 % (allowed: 10 %)"),
        (False, 0.2, 10, "10 questions broke (allowed: 0); 0 were fixed"),
    ],
)
def test_a_fall_of_the_judge_is_a_regression(reported: bool, now: float, broke: int, reason: str) -> None:
    answer = Response(answer="so")
    rows = [
        [row(each, found(f"{each.id}!") if reported else answer, position, score) for position, each in enumerate(TEN)]
        for score in (0.99, now)
    ]
    made = compare(side(rows[0]), side(rows[1]), Gate(kind="seed"), resamples=100)
    assert (made.verdict, len(made.flips), reasons(made)[0]) == ("regression", broke, reason)


@pytest.mark.parametrize(
    ("part", "value"),
    {
        **{"k": 3, "judge": "openai:other", "weights": "alpha=1"},
        **{"pass_threshold": 0.5, "metrics_version": 2, "golden": "other"},
    }.items(),
)
def test_runs_that_measured_something_else_are_refused(part: str, value: Any) -> None:
    name, cure = part.replace("_", " "), f"or add `ignore={part}`"
    name, cure = ("golden set", "Compare runs of the same golden set") if part == "golden" else (name, cure)
    with pytest.raises(NotComparableError, match=f"the baseline's {name} is .*, the candidate's is .*{cure}$"):
        compare(side(rows_of(TEN, {})), side(rows_of(TEN, {}), **{part: value}))


@pytest.mark.parametrize(
    ("rubric", "weights", "broke"),
    [("answer", "alpha=1", 1), ("reasoning", "alpha=1", 0), ("reasoning", "same", 1)],
)
def test_passes_are_left_out_only_where_weights_decide_them(rubric: str, weights: str, broke: int) -> None:
    before, after = ({"rubric": rubric, "weights": each} for each in ("same", weights))
    sides = side(rows_of(TEN, {}), **before), side(rows_of(TEN, LOST), **after)
    assert compare(*sides, ignore=["weights"], resamples=9).count("broke") == broke


@pytest.mark.parametrize(("digest", "redeclared"), [("1", ()), ("2", ("tone",))])
def test_a_score_is_compared_only_if_both_sides_declare_it_alike(digest: str, redeclared: tuple[str, ...]) -> None:
    before, after = (OwnScore(name="tone", computed_by="f", digest=each) for each in ("1", digest))
    made = compare(side(rows_of(TEN, {}), scores=(before,)), side(rows_of(TEN, {}), scores=(after,)), resamples=9)
    assert made.redeclared == redeclared


@pytest.mark.parametrize(("empty", "words"), [(5, ""), (6, "6 of 10 questions have no answer now")])
def test_answers_that_most_questions_lost_are_told(empty: int, words: str) -> None:
    now = {f"q{n}": found(f"q{n}!", "other", answer=" ") for n in range(empty)}
    made = compare(side(rows_of(TEN, {})), side(rows_of(TEN, now)), resamples=9)
    assert (made.verdict, say.differs(made)) == ("ok", words)


def test_runs_without_a_common_question_are_refused() -> None:
    with pytest.raises(NotComparableError, match=r"no question in common; compare runs of the same golden set"):
        compare(side(rows_of(TEN[:5], {})), side(rows_of(TEN[5:], {})))


def test_groups_have_their_own_deltas() -> None:
    made = compared(LOST)

    shown = {(group.kind, group.name): (group.num_questions, group.pass_to_fail) for group in made.groups}
    assert shown == {
        ("domain", "domain 0"): (5, 0),
        ("domain", "domain 1"): (5, 1),
        ("difficulty", "easy"): (5, 1),
        ("difficulty", "hard"): (5, 0),
    }


TITLES = ("loss aversion", "Other", "Loss aversion")


def test_titles_are_compared_as_titles() -> None:
    """A question by source title: the cause names the title, whatever its chunks are called."""
    asked = question("q", expected_chunks=None, expected_sources=["Loss_Aversion"])
    first, other, last = ({"chunk_id": n, "title": title} for n, title in zip("123", TITLES, strict=True))
    was, now = (
        Response(answer="a", sources=tuple(Source(**each) for each in pair)) for pair in ((first, other), (other, last))
    )
    (cause,) = causes_of(row(asked, was), row(asked, now), 5)
    assert (cause.kind, cause.source, cause.rank_before, cause.rank_after) == ("source_demoted", "loss aversion", 1, 2)
