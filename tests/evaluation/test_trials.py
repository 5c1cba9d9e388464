from __future__ import annotations

import statistics
from collections import Counter
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.evaluation.loop import OF_TRIALS, Gathering, merge
from evaltrack.records import Failure, Question, Response, Row, Source, Tally, Tokens, Usage, Verdict

repeatable = settings(deadline=None, derandomize=True)

QUESTION = Question(id="7", question="What?", expected_chunks=("a",), domain="d")
KINDS = {
    "p": "the question passed",
    "f": "it did not",
    "e": "the target failed",
    "u": "nothing that decides was measured, and nothing failed",
}


def trial(number: int, kind: str, position: int = 0) -> Row:
    """A trial that ended as `kind` says, in which every value tells the number of the trial."""
    made = Row(
        position=position, question=QUESTION, trial=number, started_at=1000 - number, seconds=number, duplicates=number
    )
    if kind == "e":
        failure = Failure(kind="target_error", message=f"failed in trial {number}")
        return made.model_copy(update={"failure": failure})
    scores = {"num_tokens": float(100 * number)}
    if kind != "u":
        scores = {"hit": number / 7, **scores, "pass": float(kind == "p")}
    return made.model_copy(
        update={
            "response": Response(answer=f"answer of trial {number}", sources=(Source(chunk_id=f"c{number}"),)),
            "verdicts": (Verdict(judge="j", reasoning=f"of trial {number}"),),
            "scores": scores,
            "unmeasured": {"combined_score": f"not in trial {number}"} | ({"hit": "none"} if kind == "u" else {}),
            "passed": {"p": True, "f": False, "u": None}[kind],
            "tokens": Tokens(count=100 * number, known="counted"),
        }
    )


def trials(kinds: str) -> list[Row]:
    """Trials 1, 2, ... that ended as the letters say."""
    return [trial(number, kind) for number, kind in enumerate(kinds, 1)]


def every_way(longest: int) -> list[str]:
    return ["".join(kinds) for length in range(1, longest + 1) for kinds in product(KINDS, repeat=length)]


WAYS = every_way(4)


def decided(kinds: str, missing: int = 0) -> str | None:
    ordered = sorted(kind for kind in kinds if kind in "pf")  # all f before all p
    if 2 * len(ordered) <= len(kinds) + missing:
        return None
    return ordered[len(ordered) // 2 - (len(ordered) % 2 == 0)]


@pytest.mark.parametrize("asked", [0, 1, 3], ids=["all of them", "one is missing", "three are missing"])
def test_every_way_to_end(asked: int) -> None:
    for kinds in WAYS:
        merged = merge(trials(kinds), len(kinds) + asked if asked else None)
        counted, outcome = Counter(kinds), decided(kinds, asked)
        measured = counted["p"] + counted["f"]
        assert merged.passed is {"p": True, "f": False, None: None}[outcome], kinds
        assert merged.tally == Tally(trials=len(kinds) + asked, measured=measured, passed=counted["p"]), kinds
        assert merged.scores.get("pass") == (counted["p"] / measured if outcome else None), kinds
        of_trials = [merged.scores.get(name) for name in OF_TRIALS]
        if set(kinds) <= set("pf") and not asked:
            assert of_trials == ["p" in kinds, "f" not in kinds, {"p", "f"} == set(kinds)], kinds
            assert set(OF_TRIALS).isdisjoint(merged.unmeasured), kinds
        else:
            assert of_trials == [None] * 3, kinds
            reasons = {merged.unmeasured[name] for name in OF_TRIALS}
            assert reasons == {f"{measured} of {len(kinds) + asked} trials were measured"}, kinds


def test_one_trial_is_shown_whatever_finishes_first() -> None:
    for kinds in WAYS:
        merged, outcome = merge(trials(kinds)), decided(kinds)
        unmeasured = [n for n, kind in enumerate(kinds) if kind == "u"] or [
            n for n, kind in enumerate(kinds) if kind == "e"
        ]
        shown = trials(kinds)[kinds.index(outcome) if outcome else unmeasured[0]]
        for name in ("response", "verdicts", "duplicates", "question", "position"):
            assert getattr(merged, name) == getattr(shown, name), (kinds, name)
        assert merged.failure == (None if outcome else shown.failure), kinds
        assert merged.trial is None
        assert merged.scores.keys().isdisjoint(merged.unmeasured), kinds
        rest = {name: why for name, why in merged.unmeasured.items() if name not in OF_TRIALS}
        assert rest == {name: why for name, why in shown.unmeasured.items() if name not in merged.scores}, kinds
        assert merge(trials(kinds)[::-1]) == merge(Random(7).sample(trials(kinds), len(kinds))) == merged, kinds


def test_each_score_is_a_mean_over_the_trials_that_measured_it() -> None:
    for kinds in WAYS:
        merged = merge(trials(kinds))
        numbers = {
            "hit": [number / 7 for number, kind in enumerate(kinds, 1) if kind in "pf"],
            "num_tokens": [100.0 * number for number, kind in enumerate(kinds, 1) if kind != "e"],
        }
        means = {name: statistics.mean(values) for name, values in numbers.items() if values}
        means = means if decided(kinds) or "u" in kinds else {}  # it is a failure, which has no scores
        own = {"pass", *OF_TRIALS}
        assert {name: value for name, value in merged.scores.items() if name not in own} == means, kinds


def test_time_and_tokens_are_those_of_one_trial() -> None:
    for kinds in WAYS:
        merged = merge(trials(kinds))
        numbers = [number for number, kind in enumerate(kinds, 1) if kind != "e"]
        assert merged.seconds == (len(kinds) + 1) / 2, kinds
        assert merged.started_at == 1000 - len(kinds), kinds
        if numbers:
            assert merged.tokens == Tokens(count=round(100 * statistics.mean(numbers)), known="counted"), kinds
        else:
            assert merged.tokens is None, kinds


def test_one_trial_of_one_is_its_row() -> None:
    for kind in "pf":
        one, merged = trial(1, kind), merge([trial(1, kind)])
        own = {"trial", "tally", "scores"}
        assert merged.model_dump(exclude=own) == one.model_dump(exclude=own)
        passed = float(kind == "p")
        assert merged.scores == one.scores | {"pass_at_n": passed, "pass_hat_n": passed, "flaky": 0.0}


@repeatable
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=9))
def test_means_are_rounded_once(values: list[float]) -> None:
    given_ = [trial(number, "p").model_copy(update={"scores": {"hit": v}}) for number, v in enumerate(values, 1)]
    assert merge(given_).scores["hit"] == statistics.mean(values)


@pytest.mark.parametrize(("counts", "mean"), [([1, 2], 2), ([1, 1, 2], 1), ([2, 3], 2), ([0, 0], 0), ([7, None], 7)])
def test_tokens_are_whole(counts: list[int | None], mean: int) -> None:
    given_ = [
        trial(number, "p").model_copy(
            update={"tokens": None if count is None else Tokens(count=count, known="counted")}
        )
        for number, count in enumerate(counts, 1)
    ]
    assert merge(given_).tokens == Tokens(count=mean, known="counted")


def test_a_failure_in_some_trials_is_not_that_of_the_question() -> None:
    paid = Failure(kind="target_error", message="cut off", usage=Usage(prompt_tokens=3, completion_tokens=4))
    failed = trial(1, "e").model_copy(update={"failure": paid})
    assert merge([failed, trial(2, "f"), trial(3, "f")]).failure is None
    assert merge([failed, trial(2, "f")]).failure == merge([failed, trial(2, "e")]).failure == paid


def judge_failed(number: int, hit: float) -> Row:
    scores, failure = {"hit": hit, "num_tokens": 100.0 * number}, Failure(kind="judge_error", message=f"in {number}")
    update = {"passed": None, "failure": failure, "scores": scores, "unmeasured": {"overall_score": "the judge failed"}}
    return trial(number, "p").model_copy(update=update)


def test_where_the_judge_failed_in_all_trials_what_was_retrieved_counts() -> None:
    merged = merge([judge_failed(1, 1.0), judge_failed(2, 0.5)])
    assert (merged.passed, merged.failure, merged.response) == (
        None,
        judge_failed(1, 1.0).failure,
        trial(1, "p").response,
    )
    assert merged.scores == {"hit": 0.75, "num_tokens": 150.0}
    assert merged.unmeasured == {"overall_score": "the judge failed"} | dict.fromkeys(
        OF_TRIALS, "0 of 2 trials were measured"
    )


def test_where_the_judge_failed_in_one_trial_the_others_decide() -> None:
    judged = trial(2, "f").model_copy(update={"scores": {"hit": 1.0, "overall_score": 0.25, "pass": 0.0}})
    merged = merge([judge_failed(1, 1.0), judged, judged.model_copy(update={"trial": 3})])
    assert (merged.passed, merged.failure, merged.response) == (False, None, judged.response)
    assert (merged.scores["overall_score"], merged.tally) == (0.25, Tally(trials=3, measured=2, passed=0))


def test_what_a_trial_measured_before_its_judge_failed_is_in_the_mean() -> None:
    merged = merge([judge_failed(1, 0.0), trial(2, "p").model_copy(update={"scores": {"hit": 1.0, "num_tokens": 200}})])
    assert merged.tokens is not None
    assert merged.scores["num_tokens"] == merged.tokens.count == 150
    assert merged.scores["hit"] == 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_one_trial_goes_through_untouched(kind: str) -> None:
    taken: list[Row] = []
    gathering, given_ = Gathering(1, taken.append), trial(1, kind)
    gathering.add(given_)
    assert [row is given_ for row in taken] == [True]
    gathering.close()
    assert (len(taken), given_.trial, given_.tally) == (1, 1, None)


@repeatable
@given(st.permutations(list(product(range(4), (1, 2, 3)))))
def test_a_question_is_handed_on_with_its_last_trial(order: list[tuple[int, int]]) -> None:
    taken: list[Row] = []
    gathering, came = Gathering(3, taken.append), Counter[int]()
    for position, number in order:
        came[position] += 1
        before = len(taken)
        gathering.add(trial(number, "pfe"[(position + number) % 3], position))
        assert len(taken) - before == (came[position] == 3)
    gathering.close()
    assert sorted(row.position for row in taken) == [0, 1, 2, 3]
    for row in taken:
        whole = [trial(number, "pfe"[(row.position + number) % 3], row.position) for number in (1, 2, 3)]
        assert row == merge(whole)


def test_what_was_broken_off_is_merged_at_the_end() -> None:
    taken: list[Row] = []
    gathering = Gathering(3, taken.append)
    for position, number, kind in [(5, 2, "p"), (1, 1, "f"), (2, 1, "p"), (5, 1, "e"), (2, 3, "p"), (2, 2, "p")]:
        gathering.add(trial(number, kind, position))
    assert [row.position for row in taken] == [2]
    gathering.close()
    assert [row.position for row in taken] == [2, 1, 5]
    assert [row.tally for row in taken] == [
        Tally(trials=3, measured=3, passed=3),
        Tally(trials=3, measured=1, passed=0),
        Tally(trials=3, measured=1, passed=1),
    ]
    assert taken[2].unmeasured["flaky"] == "1 of 3 trials were measured"
    gathering.close()
    assert len(taken) == 3
