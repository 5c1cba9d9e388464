from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

import pytest

from evaltrack.golden.reader import open_golden
from evaltrack.metrics.confidence import read_confidence
from evaltrack.metrics.criteria import measured_aims
from evaltrack.metrics.rubric import Grading, claimed_band, grade
from evaltrack.metrics.rubric_tables import misfits
from evaltrack.records import Observed

from .judging import KINDS, lines, observed
from .judging import SHOWCASE as PROMPTS


@dataclass(frozen=True)
class Read:
    """One answer, and what the first reader makes of it."""

    kind: str
    id: str
    answer: str
    reference: Observed

    @property
    def grading(self) -> Grading:
        return grade(self.reference)


@dataclass(frozen=True)
class Judged(Read):
    """One answer, and what each of the two readers makes of it."""

    second: Observed


@pytest.fixture(scope="module")
def showcase() -> list[Judged]:
    found = []
    for kind in KINDS:
        reference = {row["id"]: observed(row) for row in lines(f"{kind}.verdicts.jsonl")}
        second = {row["id"]: observed(row) for row in lines(f"{kind}.second.jsonl")}
        found += [
            Judged(kind, row["id"], row["answer"], reference[row["id"]], second[row["id"]])
            for row in lines(f"{kind}.jsonl")
        ]
    return found


def test_thirty_prompts_have_an_answer_of_each_kind_and_two_verdicts_of_each_answer() -> None:
    ids = [question.id for question in open_golden(PROMPTS)]
    assert len(set(ids)) == len(ids) == 30
    for kind in KINDS:
        for name in (f"{kind}.jsonl", f"{kind}.verdicts.jsonl", f"{kind}.second.jsonl"):
            assert [row["id"] for row in lines(name)] == ids, name


def test_what_is_observed_is_quoted_letter_for_letter_and_nothing_else(
    showcase: list[Judged], naive: list[Read]
) -> None:
    for one in (*showcase, *naive):
        seen, where = one.reference, (one.kind, one.id)
        assert [quote for quote in chain.from_iterable(seen.quotes.values()) if quote not in one.answer] == [], where
        for name, count in (("hypotheses", seen.hypotheses), ("shifts", seen.shifts)):
            quotes = seen.quotes.get(name, ())
            assert len(quotes) == len(set(quotes)) == count, where
        expected = {
            *(["hypotheses"] if seen.hypotheses else []),
            *(["shifts"] if seen.shifts else []),
            *(["crux"] if seen.crux_treatment != "none" else []),
            *(["confidence"] if seen.confidence is not None else []),
            *seen.hard_fails,
        }
        assert {name for name, quotes in seen.quotes.items() if quotes} == expected, where


def test_each_quoted_confidence_reads_as_the_band_of_its_verdict(showcase: list[Judged], naive: list[Read]) -> None:
    quoted = [
        (one.kind, one.id, quote, claimed_band(read_confidence(quote).percent), one.grading.claimed_band)
        for one in (*showcase, *naive)
        for quote in one.reference.quotes.get("confidence", ())
    ]
    assert len(quoted) == sum(one.reference.confidence is not None for one in (*showcase, *naive))
    assert [case for case in quoted if case[3] is None or case[3] != case[4]] == []


@pytest.mark.parametrize(("kind", "tiers"), [("strong", {3}), ("middling", {1, 2, 3}), ("flawed", {0, 1})])
def test_each_kind_of_answer_reaches_the_tiers_that_it_should(
    kind: str, tiers: set[int], showcase: list[Judged]
) -> None:
    assert {one.grading.tier for one in showcase if one.kind == kind} == tiers


def test_no_score_of_zero_is_without_a_hard_fail(showcase: list[Judged]) -> None:
    for one in showcase:
        for grading in (one.grading, grade(one.second)):
            assert (grading.tier == 0) == bool(grading.hard_fails), (one.kind, one.id)


def test_two_readings_lead_to_the_same_outcome_almost_always(showcase: list[Judged]) -> None:
    assert len(showcase) == 90
    tiers = [(one.grading.tier, grade(one.second).tier) for one in showcase]
    assert sum(first == second for first, second in tiers) >= 85
    assert all(abs(first - second) <= 1 for first, second in tiers)
    assert [one.id for one in showcase if set(one.reference.hard_fails) != set(one.second.hard_fails)] == []


@pytest.fixture(scope="module")
def naive() -> list[Read]:
    verdicts = {row["id"]: observed(row) for row in lines("naive.verdicts.jsonl")}
    return [Read("naive", row["id"], row["answer"], verdicts[row["id"]]) for row in lines("naive.jsonl")]


def test_thirty_naive_answers_are_short_and_judged_with_quotes(naive: list[Read]) -> None:
    assert [one.id for one in naive] == [question.id for question in open_golden(PROMPTS)]
    assert max(len(one.answer.split()) for one in naive) <= 90
    assert {row["judge"] for row in lines("naive.verdicts.jsonl")} == {"evaltrack-reference"}


def test_naive_answers_are_a_baseline_that_the_strong_ones_leave_behind(
    naive: list[Read], showcase: list[Judged]
) -> None:

    def means(read: Sequence[Read]) -> dict[str, float]:
        gaps = [gap for one in read if (gap := one.grading.coupling_gap) is not None]
        return {
            "hypotheses": fmean(one.reference.hypotheses for one in read),
            "shifts": fmean(one.reference.shifts for one in read),
            "coupling_violation_rate": fmean(map(bool, gaps)),
        }

    strong = [one for one in showcase if one.kind == "strong"]
    assert [each.reached for each in measured_aims(means(naive))] == [False] * 3
    assert [each.reached for each in measured_aims(means(strong))] == [True] * 3
    assert max(one.grading.score for one in naive) < 50


def test_no_grade_contradicts_its_count(naive: list[Read], showcase: list[Judged]) -> None:
    verdicts = [one.reference for one in (*naive, *showcase)] + [one.second for one in showcase]
    assert len(verdicts) == 210
    assert [found for verdict in verdicts for found in misfits(verdict)] == []
