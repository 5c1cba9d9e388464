"""The leaderboard of several configurations: order, paired differences, and correction."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.ranking import Contender, Leaderboard, Standing, rank
from evaltrack.records import OwnScore, Signature
from evaltrack.records.run import Run
from evaltrack.stats.significance import holm, sign_flip
from tests.compared import contender

QUICK = 200
"""Resamples of an interval whose ends are not looked at."""


def by_name(board: Leaderboard) -> dict[str, Standing]:
    return {each.name: each for each in board.standings}


def plain(name: str, values: Sequence[float], metric: str = "recall_at_k", **signature: Any) -> Contender:
    """A configuration with one run, whose rows hold no more than a score."""
    ids = [str(place) for place in range(len(values))]
    columns = pd.DataFrame({"id": ids, "digest": ids, metric: [float(value) for value in values]})
    run = Run(name, name, Signature(golden="set", golden_digest="0", k=5, target=name, **signature))
    return Contender(name, run, columns, {})


def test_the_best_comes_first_and_the_others_are_held_against_it() -> None:
    """Paired over the same questions: delta is the difference of the means, with an interval around it."""
    good, bad = [True] * 18 + [False] * 2, [True] * 8 + [False] * 12
    board = rank([contender("bad", bad), contender("good", good)])
    (group,) = board.groups
    assert (board.rank_by, group.reference, group.num_questions, group.label) == ("recall_at_k", "good", 20, "")
    assert [(each.name, each.rank) for each in group.standings] == [("good", 1), ("bad", 2)]
    lines = by_name(board)
    mean = lines["bad"].means["recall_at_k"]
    assert (mean.value, mean.n, mean.delta) == (0.4, 20, pytest.approx(-0.5))
    assert mean.interval is not None
    assert mean.interval[0] < -0.5 < mean.interval[1] < 0
    assert lines["good"].means["recall_at_k"].delta is None
    assert lines["good"].p_value is None
    assert lines["bad"].p_value == sign_flip(list(map(float, good)), list(map(float, bad))).p


def test_against_the_best_all_pairs_are_corrected_for_and_against_the_first_those_with_it() -> None:
    """The data chose the best one, so that any pair might have been looked at."""
    hits = {"a": [True] * 6 + [False] * 14, "b": [True] * 14 + [False] * 6, "c": [True] * 20, "d": [False] * 20}
    contenders = [contender(name, each) for name, each in hits.items()]
    for reference, name, tests in (("best", "c", 6), ("first", "a", 3)):
        board = rank(contenders, reference=reference, resamples=QUICK)  # type: ignore[arg-type]
        raw = {key: sign_flip(hits[name], each).p for key, each in hits.items() if key != name}
        assert (board.tests, board.groups[0].reference) == (tests, name)
        assert {key: each.p_value for key, each in by_name(board).items() if key != name} == holm(raw, tests)


def test_equal_configurations_are_hardly_ever_told_apart() -> None:
    """Of 200 leaderboards of six configurations that are all alike at most 5 % show one that is worse than the best."""
    draw, false_alarms = random.Random(0), 0
    for _ in range(200):
        contenders = [plain(f"c{number}", [draw.random() < 0.6 for _ in range(12)]) for number in range(6)]
        p_values = [each.p_value for each in rank(contenders, resamples=1).standings]
        false_alarms += any(p is not None and p < 0.05 for p in p_values)
    assert false_alarms <= 10


def test_equal_means_have_one_rank() -> None:
    hits = {"a": 2, "b": 4, "c": 2, "d": 0, "e": 4, "f": 1}
    board = rank([plain(name, [place < number for place in range(8)]) for name, number in hits.items()], resamples=1)
    assert [(each.name, each.rank) for each in board.standings] == [
        *(("b", 1), ("e", 1)),
        *(("a", 3), ("c", 3)),
        *(("f", 5), ("d", 6)),
    ]


def test_a_lost_question_lifts_no_mean() -> None:
    """What one configuration did not measure is in the mean of none; what lost a tenth has no rank."""
    base = [True] * 10 + [False] * 10
    lost = {"whole": base, "one lost": [*base[:19], None], "many": [*base[:10], *[None] * 10]}
    board = rank([contender(name, hits) for name, hits in lost.items()])
    lines = by_name(board)
    assert lines["whole"].means["recall_at_k"].value == lines["one lost"].means["recall_at_k"].value == 10 / 19
    assert board.groups[0].num_questions == 19
    assert (lines["many"].rank, lines["many"].why_unranked) == (None, "measured 10 of 20 questions")
    assert lines["many"].means["recall_at_k"].value == 1  # its own mean, beside which no difference stands
    assert lines["many"].means["recall_at_k"].delta is None
    assert board.groups[0].standings[-1].name == "many"
    assert lines["many"].num_errors == 0  # as its run says; the columns know better


def test_what_was_measured_in_different_ways_is_not_compared() -> None:
    """Recall at 3 and at 5 are two metrics: each k is a group with a reference of its own."""
    hits = [[True] * 10 + [False] * 10, [True] * 20]
    made = [
        contender(f"{name}{k}", each, signature={"k": k}) for k in (3, 5) for name, each in zip("ab", hits, strict=True)
    ]
    board = rank(made, resamples=QUICK)
    assert [(group.label, group.reference) for group in board.groups] == [("k = 3", "b3"), ("k = 5", "b5")]
    assert board.tests == 2
    tokens = rank(made, "num_tokens", resamples=QUICK)  # which k does not shape
    assert [(group.label, len(group.standings)) for group in tokens.groups] == [("", 4)]


def test_a_price_is_the_cost() -> None:
    board = rank([contender("priced", [True] * 10, usd=0.02), contender("free?", [True] * 10)], resamples=QUICK)
    assert board.cost_unit == "usd"
    assert [by_name(board)[name].cost for name in ("priced", "free?")] == [0.02, None]


def test_where_nothing_was_measured_nobody_has_a_rank() -> None:
    """All failed; or one did, which decides nothing for the others."""
    board = rank([contender("a", [None] * 5), contender("b", [None] * 5)])
    assert (board.rank_by, board.tests) == (None, 0)
    assert {each.why_unranked for each in board.standings} == {"nothing was measured"}
    assert rank([]).groups == ()
    one = rank([contender("down", [None] * 6), contender("up", [True] * 6)], reference="first")
    assert one.groups[0].reference is None  # the first has no score that others could be compared with
    assert {each.name: (each.rank, each.why_unranked) for each in one.standings} == {
        "up": (1, ""),
        "down": (None, "not measured"),
    }
    none_common = [contender(f"c{n}", [None if place == n else True for place in range(10)]) for n in range(10)]
    assert {each.why_unranked for each in rank(none_common).standings} == {"no question was measured by all"}


@pytest.mark.parametrize("name", ["recall", "tier_1_share", "k"])
def test_only_what_runs_are_compared_by_can_rank(name: str) -> None:
    """A metric that there is not, and one that says nothing about better and worse."""
    with pytest.raises(UsageError, match=f"`rank_by={name}`: no metric"):
        rank([contender("a", [True])], name)


def test_a_score_of_ones_own_ranks_too() -> None:
    """With the direction that it declares; declared in two ways it makes two groups."""
    own = OwnScore(name="waffle", computed_by="app:waffle", digest="1", higher_is_better=False)
    other = own.model_copy(update={"digest": "2"})
    made = [plain(name, values, "waffle", scores=(own,)) for name, values in (("few", [1, 2, 1]), ("many", [4, 5, 6]))]
    made.append(plain("other", [0, 0, 0], "waffle", scores=(other,)))
    board = rank(made, "waffle", resamples=QUICK)
    assert board.higher_is_better is False
    assert [[each.name for each in group.standings] for group in board.groups] == [["few", "many"], ["other"]]
    assert by_name(board)["many"].means["waffle"].delta == pytest.approx(11 / 3)
