"""What broke, what scatters and what cannot be told, by simulated systems."""

from __future__ import annotations

import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import fisher_exact

from evaltrack.compare.scatter import PERSISTENT, PROBES, Again, Record, Tally, _can_be_shown, settle
from evaltrack.stats.significance import worse_than_record
from tests.conftest import REPO


@dataclass
class Answers:
    """Answers by question: whether each passes, one after the other, the last for ever; the candidate's was a fail."""

    turns: Mapping[str, Sequence[bool | None]]
    known: Mapping[str, Record] = field(default_factory=dict)
    deterministic: bool = False
    shown: Mapping[str, bool] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)

    def records(self, ids: Sequence[str]) -> Mapping[str, Record]:
        return {key: self.known[key] for key in ids if key in self.known}

    def ask(self, ids: Sequence[str], times: int) -> Mapping[str, Sequence[Again]]:
        return {key: [self._next(key) for _ in range(times)] for key in ids}

    def _next(self, key: str) -> Again:
        turns, at = self.turns[key], self.asked.get(key, 0)
        self.asked[key] = at + 1
        passed = turns[min(at, len(turns) - 1)]
        return Again(passed, passed == self.shown.get(key, False))


ALWAYS, SOMETIMES = [False], [True, False] * 30


def kinds(answers: Answers, flips: str, fixes: str = "", others: str = "", **options: Any) -> dict[str, str]:
    found = settle(list(flips), list(fixes), list(others), answers, **options)
    return {key: repeat.kind for key, repeat in found.repeats.items()}


def test_a_target_known_to_be_deterministic_is_not_asked() -> None:
    answers = Answers({}, deterministic=True)
    assert kinds(answers, "ab") == {"a": "real", "b": "real"}
    assert answers.asked == {}


def test_the_same_answers_again_are_a_deterministic_target() -> None:
    answers = Answers(dict.fromkeys("abcde", ALWAYS))
    found = settle(["a"], ["b"], ["c", "d", "e"], answers)
    assert (found.is_shown, found.calls, found.repeats["a"].kind) == (False, PROBES, "real")


def test_one_other_answer_anywhere_is_scatter() -> None:
    """A question that fails for good is then unsettled where nothing is known of it."""
    answers = Answers({"a": ALWAYS, "b": [False, False, True]})
    found = settle(["a"], [], ["b"], answers)
    assert (found.is_shown, found.repeats["a"].kind, found.repeats["a"].failed) == (
        True,
        "unsettled",
        answers.asked["a"],
    )
    assert answers.asked["a"] >= PERSISTENT


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (Record(0, 10), "real"),
        (Record(1, 10), "real"),
        (Record(9, 10), "scatter"),
        (Record(1, 2), "scatter"),
        (Record(1, 3), "unsettled"),
        (Record(0, 1), "unsettled"),
        (Record(0, 0), "unsettled"),
    ],
)
def test_a_question_that_fails_every_time_is_held_against_its_record(record: Record, kind: str) -> None:
    """It broke if it passed before; a record that is too short tells nothing."""
    answers = Answers({"a": ALWAYS, "b": SOMETIMES}, {"a": record})
    assert kinds(answers, "ab")["a"] == kind


@pytest.mark.parametrize(("answers", "kind", "times"), [([False], "unsettled", 30), ([False, True], "scatter", 5)])
def test_a_question_that_fails_each_time_is_no_scatter_because_it_failed_once(
    answers: list[bool], kind: str, times: int
) -> None:
    """Of three trials that a baseline made one failure is no record to excuse thirty; one pass again is."""
    target = Answers({"a": answers, "b": [False, False, True]}, {"a": Record(1, 3)})
    assert kinds(target, "a", others="b") == {"a": kind}
    assert target.asked["a"] <= times + PROBES


def test_what_passes_as_often_as_before_is_scatter() -> None:
    answers = Answers({"a": [True]}, {"a": Record(0, 5)})
    assert kinds(answers, "a") == {"a": "scatter"}
    assert answers.asked["a"] < 30


def test_a_question_that_got_flaky_broke() -> None:
    """It passed 20 of 20 times, and fails two of three now."""
    answers = Answers({"a": [False, True, False] * 20}, {"a": Record(0, 20)})
    assert kinds(answers, "a") == {"a": "real"}


def test_as_many_lucky_questions_explain_those_that_fail_every_time() -> None:
    """Fixes that do not hold are luck in the candidate; as much luck was in the baseline."""
    answers = Answers(dict.fromkeys("abxy", ALWAYS) | {"s": SOMETIMES}, shown={"x": True, "y": True})
    found = settle(["a", "b", "s"], ["x", "y"], [], answers)
    assert found.lucky == 2
    assert {key: repeat.kind for key, repeat in found.repeats.items()} == dict.fromkeys("abs", "scatter")


def test_many_more_that_fail_every_time_than_luck_explains_broke() -> None:
    """Eight against none is shown; two against none is not."""
    many = "abcdefgh"
    answers = Answers(dict.fromkeys(many, ALWAYS) | {"s": SOMETIMES, "x": [True]}, shown={"x": True})
    assert set(kinds(answers, many + "s", "x").values()) == {"real", "scatter"}
    few = Answers(dict.fromkeys("ab", ALWAYS) | {"s": SOMETIMES})
    assert kinds(few, "abs") == {"a": "unsettled", "b": "unsettled", "s": "scatter"}


MOSTLY = [False, True, False, False, True, False, True, False, False, False]


@pytest.mark.parametrize(
    ("worse", "lucky", "kind"),
    [
        ("ab", "", "scatter"),  # so few are no doubt
        ("abc", "", "unsettled"),
        ("abc", "x", "scatter"),
        ("abcde", "x", "unsettled"),
        ("abc", "xyz", "scatter"),
    ],
)
def test_several_that_fail_most_times_are_no_scatter_unless_as_many_were_lucky(
    worse: str, lucky: str, kind: str
) -> None:
    turns = dict.fromkeys(worse + lucky, MOSTLY) | {"s": [True, True, False, True, True] * 6, "t": [True]}
    answers = Answers(turns, shown=dict.fromkeys(lucky + "t", True))
    assert kinds(answers, worse + "s", lucky + "t") == dict.fromkeys(worse, kind) | {"s": "scatter"}


def test_a_failure_is_no_answer() -> None:
    answers = Answers({"a": [None], "b": SOMETIMES})
    assert kinds(answers, "ab")["a"] == "not measured"


def test_a_number_bounds_what_is_asked() -> None:
    answers = Answers(dict.fromkeys("abc", ALWAYS))
    found = settle(["a"], ["b"], ["c"], answers, most=3)
    assert (answers.asked, found.calls) == (dict.fromkeys("abc", 3), 9)
    scattering = Answers({"a": ALWAYS, "s": SOMETIMES, "x": [True]}, shown={"x": True})
    settle(["a", "s"], ["x"], [], scattering, most=4)
    assert max(scattering.asked.values()) <= 4


SIMULATED = [
    (50, 0.0, 0, True, 0.0, 1.0),
    (50, 0.05, 5, True, 0.0, 0.9),
    (50, 0.05, 5, False, 0.0, 0.12),
    (50, 1.0, 0, False, 0.0, 0.12),
]


@pytest.mark.parametrize(("n", "scatter", "runs", "broken", "least", "most"), SIMULATED)
def test_the_gate_under_noise(n: int, scatter: float, runs: int, broken: bool, least: float, most: float) -> None:
    """Twenty simulations of `scripts/false_alarms`: what broke is found, and equal systems pass."""
    script = runpy.run_path(str(REPO / "scripts" / "false_alarms"))
    world = script["World"](n, scatter, runs, broken, "auto", True)
    verdicts = [script["simulate"](world, seed) for seed in range(20)]
    regressions = np.mean([verdict == "regression" for verdict, _, _ in verdicts])
    if broken:
        assert regressions >= most
        assert np.mean([named for _, named, _ in verdicts]) >= most
    else:
        assert least <= regressions <= most


def test_the_record_decides_as_soon_as_it_can() -> None:
    """Ten failures against three passes: 1 in 286 by chance, below the level of one flip at three looks (1 in 200)."""
    answers = Answers({"a": ALWAYS, "b": [False, False, True]}, known={"a": Record(0, 3)})
    found = settle(["a"], [], ["b"], answers)
    assert (found.repeats["a"].kind, found.repeats["a"].failed) == ("real", 10)


@pytest.mark.parametrize(("failures", "kind"), [(14, "real"), (11, "unsettled"), (4, "scatter")])
def test_what_may_well_be_worse_is_no_scatter(failures: int, kind: str) -> None:
    """Against a record of fourteen passes; the level is 1 in 200 for broken, 1 in 20 for unsettled."""
    turns = [at % 30 < failures for at in range(30)]
    spread = [not fails for _, fails in sorted(zip([at * 7 % 30 for at in range(30)], turns, strict=True))]
    answers = Answers({"a": spread, "b": [False, False, True]}, known={"a": Record(0, 14)})
    assert settle(["a"], [], ["b"], answers).repeats["a"].kind == kind


def test_what_can_no_longer_be_shown_is_not_asked() -> None:
    """Only a question that would be called broken if it failed each time that is left is asked on.

    Attempts that could not be measured are used up, and say nothing of the question. Fisher's exact test is scipy's.
    """
    for most, passed, failed, unmeasured in product((1, 4, 9), (0, 1, 3), (0, 2), (0, 2)):
        tally = Tally(passed, failed, passed + failed + unmeasured)
        if tally.times > most:
            continue
        failures = failed + most - tally.times
        for before, times in ((0, 3), (0, 12), (2, 30)):
            table = [[failures, passed], [before, times - before]]
            p = fisher_exact(table, alternative="greater").pvalue
            record = Record(before, times)
            for level, is_shown in ((p * 1.0001, True), (p * 0.9999, False), (0.05, p < 0.05)):
                assert bool(_can_be_shown(record, tally, most, level)) == is_shown, (record, tally, most, level)
            exact = worse_than_record(failures, failures + passed, before, times)
            assert not _can_be_shown(record, tally, most, exact)
    assert not _can_be_shown(None, Tally(), 9, 1.1)
