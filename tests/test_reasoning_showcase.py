from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

import pytest

from evaltrack.golden.reader import open_golden
from evaltrack.metrics.confidence import read_confidence
from evaltrack.metrics.criteria import measured_aims
from evaltrack.metrics.rubric import Grading, claimed_band, grade, misfits
from evaltrack.records import Observed

from .judging import KINDS, SHOWCASE, lines, observed


@dataclass(frozen=True)
class Judged:
    id: str
    answer: str
    seen: Observed
    grading: Grading


def judged(kind: str, verdicts: str = "verdicts") -> list[Judged]:
    seen = [observed(row) for row in lines(f"{kind}.{verdicts}.jsonl")]
    answers = lines(f"{kind}.jsonl")
    ids = [question.id for question in open_golden(SHOWCASE)]
    assert [row["id"] for row in answers] == [row["id"] for row in lines(f"{kind}.{verdicts}.jsonl")] == ids
    return [Judged(row["id"], row["answer"], each, grade(each)) for row, each in zip(answers, seen, strict=True)]


@pytest.mark.parametrize("kind", [*KINDS, "naive"])
def test_what_is_observed_is_quoted_letter_for_letter_and_nothing_else(kind: str) -> None:
    for one in judged(kind):
        seen = one.seen
        assert [quote for quote in chain.from_iterable(seen.quotes.values()) if quote not in one.answer] == [], one.id
        for name, count in (("hypotheses", seen.hypotheses), ("shifts", seen.shifts)):
            quotes = seen.quotes.get(name, ())
            assert len(quotes) == len(set(quotes)) == count, one.id
        observations = {
            "hypotheses": seen.hypotheses,
            "shifts": seen.shifts,
            "crux": seen.crux_treatment != "none",
            "confidence": seen.confidence is not None,
        }
        expected = {*(name for name, is_there in observations.items() if is_there), *seen.hard_fails}
        assert {name for name, quotes in seen.quotes.items() if quotes} == expected, one.id
        bands = [claimed_band(read_confidence(quote).percent) for quote in seen.quotes.get("confidence", ())]
        assert bands == [one.grading.claimed_band] * (seen.confidence is not None), one.id
        assert list(misfits(seen)) == []


@pytest.mark.parametrize(("kind", "tiers"), [("strong", {3}), ("middling", {1, 2, 3}), ("flawed", {0, 1})])
def test_two_readings_lead_to_the_tiers_that_they_should(kind: str, tiers: set[int]) -> None:
    pairs = list(zip(judged(kind), judged(kind, "second"), strict=True))
    assert len(pairs) == 30
    assert {one.grading.tier for one, _ in pairs} == tiers
    assert sum(one.grading.tier == other.grading.tier for one, other in pairs) >= 28
    for one, other in pairs:
        assert abs(one.grading.tier - other.grading.tier) <= 1
        assert set(one.seen.hard_fails) == set(other.seen.hard_fails)
        for grading in (one.grading, other.grading):
            assert (grading.tier == 0) == bool(grading.hard_fails), one.id
        assert list(misfits(other.seen)) == []


def test_naive_answers_are_a_baseline_that_the_strong_ones_leave_behind() -> None:
    def means(read: Sequence[Judged]) -> dict[str, float]:
        gaps = [gap for one in read if (gap := one.grading.coupling_gap) is not None]
        return {
            "hypotheses": fmean(one.seen.hypotheses for one in read),
            "shifts": fmean(one.seen.shifts for one in read),
            "coupling_violation_rate": fmean(map(bool, gaps)),
        }

    naive = judged("naive")
    assert [each.reached for each in measured_aims(means(naive))] == [False] * 3
    assert [each.reached for each in measured_aims(means(judged("strong")))] == [True] * 3
    assert max(one.grading.score for one in naive) < 50
    assert max(len(one.answer.split()) for one in naive) <= 90
