from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from statistics import mean

import pytest

from evaltrack.evaluation.loop import OF_TRIALS, Gathering, merge
from evaltrack.records import Failure, Question, Response, Row, Source, Tally, Tokens, Usage, Verdict

QUESTION = Question(id="7", question="What?", expected_chunks=("a",), domain="d")


def trial(number: int, kind: str, position: int = 0) -> Row:
    """A trial that passed (p), did not (f), whose target failed (e), or in which nothing was measured (u).

    Every value tells the number of the trial.
    """
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


@pytest.mark.parametrize(
    ("kinds", "missing", "passed", "shown"),
    [
        *(("p", 0, True, 1), ("f", 0, False, 1), ("e", 0, None, 1), ("u", 0, None, 1)),
        *(("pf", 0, False, 2), ("fp", 0, False, 1), ("ppf", 0, True, 1), ("fpp", 0, True, 2), ("fpf", 0, False, 1)),
        *(("pppf", 0, True, 1), ("ppff", 0, False, 3), ("ffff", 0, False, 1)),
        *(("pe", 0, None, 2), ("epp", 0, True, 2), ("eff", 0, False, 2), ("eppf", 0, True, 2), ("eepp", 0, None, 1)),
        *(("pu", 0, None, 2), ("eu", 0, None, 2), ("ppu", 0, True, 1), ("eeu", 0, None, 3)),
        *(("p", 1, None, 1), ("pp", 1, True, 1), ("fp", 1, False, 1), ("pp", 3, None, 1), ("e", 2, None, 1)),
    ],
)
def test_the_majority_of_measured_trials_decides_and_its_first_trial_is_shown(
    kinds: str, missing: int, passed: bool | None, shown: int
) -> None:
    number, counted = len(kinds) + missing, Counter(kinds)
    merged, example = merge(trials(kinds), number), trial(shown, kinds[shown - 1])
    assert merge(trials(kinds)[::-1], number) == merge(Random(7).sample(trials(kinds), len(kinds)), number) == merged
    measured = counted["p"] + counted["f"]
    assert (merged.passed, merged.trial) == (passed, None)
    assert merged.tally == Tally(trials=number, measured=measured, passed=counted["p"])
    for name in ("response", "verdicts", "duplicates", "question", "position", "failure"):
        assert getattr(merged, name) == getattr(example, name), name

    answered = [place for place, kind in enumerate(kinds, 1) if kind != "e"]
    assert (merged.seconds, merged.started_at) == ((len(kinds) + 1) / 2, 1000 - len(kinds))
    tokens = Tokens(count=round(100 * mean(answered)), known="counted") if answered else None
    assert merged.tokens == tokens

    scores = dict[str, float]()
    if example.response is not None:  # a failure has no scores
        hits = [place / 7 for place, kind in enumerate(kinds, 1) if kind in "pf"]
        scores = {"num_tokens": mean([100.0 * place for place in answered])} | ({"hit": mean(hits)} if hits else {})
    if passed is not None:
        scores["pass"] = counted["p"] / measured
    if measured == number:
        scores |= {"pass_at_n": "p" in kinds, "pass_hat_n": "f" not in kinds, "flaky": {"p", "f"} == set(kinds)}
    assert merged.scores == scores
    reasons = dict(example.unmeasured)
    if measured < number:
        reasons |= dict.fromkeys(OF_TRIALS, f"{measured} of {number} trials were measured")
    assert merged.unmeasured == {name: why for name, why in reasons.items() if name not in scores}


@pytest.mark.parametrize("values", [[0.1, 0.1, 0.1], [1e12, 0.1, -1e12], [1 / 3, 1 / 7]])
def test_means_are_rounded_once(values: list[float]) -> None:
    rows = [trial(number, "p").model_copy(update={"scores": {"hit": v}}) for number, v in enumerate(values, 1)]
    assert merge(rows).scores["hit"] == mean(values)


@pytest.mark.parametrize(("counts", "mean"), [([1, 2], 2), ([1, 1, 2], 1), ([2, 3], 2), ([0, 0], 0), ([7, None], 7)])
def test_tokens_are_whole(counts: list[int | None], mean: int) -> None:
    tokens = [None if count is None else Tokens(count=count, known="counted") for count in counts]
    rows = [trial(number, "p").model_copy(update={"tokens": each}) for number, each in enumerate(tokens, 1)]
    assert merge(rows).tokens == Tokens(count=mean, known="counted")


def test_what_the_failure_of_a_question_cost_is_kept() -> None:
    paid = Failure(kind="target_error", message="cut off", usage=Usage(prompt_tokens=3, completion_tokens=4))
    failed = trial(1, "e").model_copy(update={"failure": paid})
    assert merge([failed, trial(2, "f")]).failure == merge([failed, trial(2, "e")]).failure == paid


def judge_failed(number: int, hit: float) -> Row:
    scores, failure = {"hit": hit, "num_tokens": 100.0 * number}, Failure(kind="judge_error", message=f"in {number}")
    update = {"passed": None, "failure": failure, "scores": scores, "unmeasured": {"overall_score": "the judge failed"}}
    return trial(number, "p").model_copy(update=update)


def test_what_trials_measured_before_their_judge_failed_is_in_the_means() -> None:
    merged = merge([judge_failed(1, 1.0), judge_failed(2, 0.5)])
    assert (merged.passed, merged.failure) == (None, judge_failed(1, 1.0).failure)
    assert merged.response == trial(1, "p").response
    assert merged.scores == {"hit": 0.75, "num_tokens": 150.0}
    assert merged.unmeasured == {"overall_score": "the judge failed"} | dict.fromkeys(
        OF_TRIALS, "0 of 2 trials were measured"
    )
    judged = trial(2, "f").model_copy(update={"scores": {"hit": 0.5, "overall_score": 0.25, "pass": 0.0}})
    merged = merge([judge_failed(1, 1.0), judged, judged.model_copy(update={"trial": 3})])
    assert (merged.passed, merged.failure, merged.response) == (False, None, judged.response)
    assert (merged.scores["overall_score"], merged.tally) == (0.25, Tally(trials=3, measured=2, passed=0))
    assert merged.scores["hit"] == mean([1.0, 0.5, 0.5])


def test_a_row_of_a_single_trial_is_handed_on_as_it_is() -> None:
    taken: list[Row] = []
    gathering, row = Gathering(1, taken.append), trial(1, "p")
    gathering.add(row)
    assert taken[0] is row
    gathering.close()
    assert len(taken) == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_question_is_handed_on_with_its_last_trial(seed: int) -> None:
    order = Random(seed).sample(list(product(range(4), (1, 2, 3))), 12)
    rows = {key: trial(key[1], "pfe"[sum(key) % 3], key[0]) for key in order}
    taken: list[Row] = []
    gathering, came = Gathering(3, taken.append), Counter[int]()
    for position, number in order:
        came[position] += 1
        before = len(taken)
        gathering.add(rows[position, number])
        assert len(taken) - before == (came[position] == 3)
    gathering.close()
    assert {row.position: row for row in taken} == {
        position: merge([rows[position, number] for number in (1, 2, 3)]) for position in range(4)
    }


def test_trials_of_interrupted_questions_are_merged_at_the_end() -> None:
    taken: list[Row] = []
    gathering = Gathering(3, taken.append)
    for position, number, kind in [(5, 2, "p"), (1, 1, "f"), (2, 1, "p"), (5, 1, "e"), (2, 3, "p"), (2, 2, "p")]:
        gathering.add(trial(number, kind, position))
    gathering.close()
    gathering.close()
    assert [(row.position, row.tally) for row in taken] == [
        (2, Tally(trials=3, measured=3, passed=3)),
        (1, Tally(trials=3, measured=1, passed=0)),
        (5, Tally(trials=3, measured=1, passed=1)),
    ]
