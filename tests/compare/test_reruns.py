"""Reruns tell broken questions from flaky ones, from lucky passes, and from another system."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate
from evaltrack.compare.reruns import Answer, Questions, RerunState, rerun_questions
from evaltrack.errors import UsageError
from evaltrack.metrics.metric import Threshold
from evaltrack.records import OwnScore
from evaltrack.records.row import Row
from evaltrack.report.comparison_words import reasons
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.report.templates import say
from tests.compared import found, patched, question, rows_of, side

TEN = [question(f"q{n}") for n in range(10)]


@dataclass
class Turns:
    """Answers as they are written: `.` passes, `x` fails, `e` was not measured, `b` is the baseline's answer.

    A question that is not named fails as before; the last turn goes on. Capital letters are other answers to the same
    end, and `U` one of a candidate whose content is the baseline's.
    """

    turns: Mapping[str, str] = field(default_factory=dict)
    record: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    limit: int = 1000
    deterministic: bool = False
    asked: list[str] = field(default_factory=list)

    def records(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        return {key: self.record[key] for key in ids if key in self.record}

    def rerun(self, ids: Sequence[str]) -> Mapping[str, Answer]:
        answers = {}
        for key in ids:
            turns = self.turns.get(key, "x")
            turn = turns[min(self.asked.count(key), len(turns) - 1)]
            self.asked.append(key)
            passed = {"x": False, "X": False, "U": False, "e": None}.get(turn, True)
            as_before, same = None if turn == "U" else turn == "b", turn == "x"
            answers[key] = Answer(passed, same, same_scores=turn in "xXU", same_answer=same, as_before=as_before)
        return answers


def state_of(
    turns: str,
    *,
    record: tuple[int, int] | None = None,
    others: Mapping[str, str] = {},
    fixed: Sequence[str] = (),
    failing: Sequence[str] = (),
    broke: Sequence[str] = ("q",),
    trials: Mapping[str, tuple[int, int]] = {},
    limit: int = 1000,
) -> tuple[RerunState, int]:
    """The state of the question `q` that broke, and how many calls were made."""
    asker = Turns({"q": turns, **others}, {"q": record} if record else {}, limit)
    made = rerun_questions(Questions(broke, fixed, failing, trials=trials), asker)
    return made.by_id["q"].state, made.calls


@pytest.mark.parametrize(
    ("turns", "record", "expected"),
    [
        (".", None, ("flaky", 1)),
        ("xx.", None, ("flaky", 3)),
        ("xX.", (3, 3), ("flaky", 3)),
        ("xX", (3, 3), ("confirmed", 3)),  # 3 of 3 before against 0 of 4: p = 0.029
        ("X", (5, 5), ("confirmed", 2)),
        ("X", (1, 3), ("flaky", 9)),  # 1 of 3 before explains 10 failures (p = 0.23)
        ("e", None, ("not rerun", 2)),
    ],
)
def test_a_question_that_broke_is_rerun_until_that_is_decided(
    turns: str, record: tuple[int, int] | None, expected: tuple[str, int]
) -> None:
    assert state_of(turns, record=record) == expected


def test_a_record_is_held_against_trials_and_reruns_of_the_candidate() -> None:
    """A question that passed in one of its own trials is not rerun: the shares are compared."""
    assert state_of("x", record=(5, 5), trials={"q": (1, 5)}) == ("confirmed", 0)
    assert state_of("x", record=(3, 5), trials={"q": (1, 5)}) == ("flaky", 0)
    assert state_of("x", record=(5, 5), trials={"q": (3, 5)}) == ("flaky", 0)
    assert state_of("x", trials={"q": (1, 5)}) == ("flaky", 0)


def test_the_level_is_shared_by_the_questions_that_broke() -> None:
    record, others = {"q": (3, 3)}, dict.fromkeys("abcde", "X")
    made = [rerun_questions(Questions(["q", *keys]), Turns({"q": "X", **others}, record)) for keys in ((), others)]
    assert (made[0].by_id["q"].failed, made[0].by_id["q"].state) == (3, "confirmed")
    assert made[1].by_id["q"].failed > 3


@pytest.mark.parametrize(
    ("others", "fixed", "failing", "state"),
    [
        ({}, (), (), "confirmed"),  # nothing else fails: no luck is possible
        ({"f": "X"}, ("f",), (), "unclear"),  # one that was fixed was lucky, too
        ({"f": "X", "g": "X", "h": "X"}, ("f", "g", "h"), (), "lucky"),
        ({"f": "X."}, ("f",), (), "confirmed"),
        ({"a": "X", "b": "X"}, (), ("a", "b"), "confirmed"),  # ten draws without a lucky pass
        ({"a": "XXX.X", "b": "X.X", "c": "X"}, (), ("a", "b", "c"), "unclear"),
        (dict.fromkeys("abcdefg", "XXX.X"), (), tuple("abcdefg"), "lucky"),
    ],
)
def test_without_a_record_luck_is_measured_on_the_candidate(
    others: dict[str, str], fixed: tuple[str, ...], failing: tuple[str, ...], state: str
) -> None:
    """By the questions that were fixed, and by those that fail on both sides, each round one more draw."""
    assert state_of("X", others=others, fixed=fixed, failing=failing)[0] == state


@pytest.mark.parametrize(("flaky", "expected"), [(20, "unclear"), (250, "lucky")])
def test_with_hundreds_of_flaky_questions_one_fails_in_all_reruns_by_chance(flaky: int, expected: str) -> None:
    others = {f"q{number}": "X." for number in range(flaky)}
    state, calls = state_of("X", others=others, broke=("q", *others), failing=["z"] * 600, limit=9 + 2 * flaky)
    assert (state, calls) == (expected, 9 + 2 * flaky)


def test_a_target_that_gives_the_same_answers_is_deterministic() -> None:
    """All reruns, of the failing questions too, give the sources of the run: what fails is broken."""
    assert state_of("x", failing=("a", "b"), limit=12)[0] == "confirmed"
    assert state_of("x", failing=tuple("abcdef"), limit=10)[0] == "unclear"
    for limit in (4, 5):  # calls are kept for the failing ones if they are at most half of all, to the last call
        assert state_of("x", failing=("a", "b"), limit=limit) == ("confirmed", limit)
    made = rerun_questions(Questions(["q"]), Turns({"q": "."}, deterministic=True))
    assert (made.by_id["q"].state, made.calls, made.varied) == ("confirmed", 0, False)


def test_reruns_that_fail_say_nothing_and_end_early() -> None:
    """A target that is down while it is rerun neither varies nor is it flaky; the broken question counts."""
    made = rerun_questions(Questions(["q"], failing=["f"]), Turns({"q": "e"}))
    assert (made.by_id["q"].state, made.calls, made.varied) == ("not rerun", 2, None)
    assert made.why_not == "2 of 2 reruns were not measured"
    fell = rerun_questions(Questions([], fell=["a", "b"]), Turns(dict.fromkeys("ab", "e")))
    assert (fell.calls, fell.varied, fell.why_not) == (2, None, "2 of 2 reruns were not measured")


def test_no_more_calls_are_made_than_allowed() -> None:
    for limit in range(25):
        asker = Turns({"q": "X", "a": "X", "f": "X"}, limit=limit)
        made = rerun_questions(Questions(["q"], ["f"], ["a"], ["c"]), asker)
        assert made.calls == len(asker.asked) <= limit
        assert made.by_id["q"].state == "not rerun" if limit == 0 else made.calls > 0


def test_another_system_is_seen_by_the_answers_of_the_baseline() -> None:
    """Nothing is dismissed then. Of a flaky system those that were fixed do not give the baseline's answers."""
    keys = ["q", "r", "s"]
    for reworded in "bU":
        turns = dict.fromkeys(keys, "b") | dict.fromkeys("cd", reworded)
        rerun = rerun_questions(Questions(keys, changed=["c", "d"]), Turns(turns))
        assert (rerun.another_system, {each.state for each in rerun.by_id.values()}) == (True, set())
    flaky = rerun_questions(Questions(keys, fixed=["f", "g"]), Turns(dict.fromkeys(keys, "b") | {"f": ".", "g": "."}))
    assert (flaky.another_system, {each.state for each in flaky.by_id.values()}) == (False, {"flaky"})
    once = rerun_questions(Questions(keys), Turns(dict.fromkeys(keys, "b.")))
    assert (once.another_system, {each.state for each in once.by_id.values()}) == (False, {"flaky"})
    known = rerun_questions(Questions(keys, by_chance=0.1), Turns(dict.fromkeys(keys, "b")))
    assert (known.another_system, known.calls) == (False, 3)
    one = rerun_questions(Questions(["q"]), Turns({"q": "b"}))
    assert (one.another_system, one.by_id["q"].state, one.calls) == (False, "flaky", 1)


# Whole comparisons


def compared(worse: int, asker: Turns | str, gate: Gate | None = None, better: int = 0) -> Comparison:
    """Ten questions: the first `worse` broke, and the last `better` were fixed."""
    was = rows_of(TEN, {each.id: found("x") for each in TEN[len(TEN) - better :]})
    now = rows_of(TEN, {each.id: found("x") for each in TEN[:worse]})
    return compare(side(was), side(now), gate, rerunner=asker, resamples=50)


ONLY_FLIPS = Gate(drops={})


@pytest.mark.parametrize(
    ("turns", "record", "verdict", "words"),
    [
        (".", None, "ok", "[flaky: passed 1 of 1 rerun]"),
        ("xX.", (4, 5), "ok", "[flaky: passed 1 of 3 reruns, 4 of 5 before]"),
        ("X", (5, 5), "regression", "[confirmed: passed 0 of 2 reruns, 5 of 5 before]"),
        ("x", None, "regression", "[confirmed: passed 0 of 9 reruns]"),
        ("x", (0, 3), "ok", "[failed before too: passed 0 of 9 reruns, 0 of 3 before]"),
    ],
)
def test_each_question_says_in_one_line_why_it_counts_or_not(
    turns: str, record: tuple[int, int] | None, verdict: str, words: str
) -> None:
    made = compared(1, Turns({"q0": turns}, {"q0": record} if record else {}), ONLY_FLIPS)
    (flip,) = made.flips
    assert (made.verdict, say.remarks(flip)) == (verdict, words)


def test_an_unclear_question_makes_the_verdict_unknown_and_names_the_cure() -> None:
    made = compared(1, Turns({"q0": "X"}, limit=9), ONLY_FLIPS)
    unclear = replace(made.reruns.by_id["q0"], state="unclear")
    assert (
        say.remarks(replace(made.flips[0], rerun=unclear)) == "[broken, or passed once by luck: passed 0 of 9 reruns]"
    )
    was = rows_of(TEN, {f"q{n}": found("x") for n in range(7, 10)})
    now = rows_of(TEN, {f"q{n}": found("x") for n in (0, 7, 8, 9)})
    turns = Turns({"q0": "X", "q7": "XXX.X", "q8": "X", "q9": "X"}, limit=30)
    made = compare(side(was), side(now), ONLY_FLIPS, rerunner=turns, resamples=50)
    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert reasons(made) == [
        "1 question (q0) failed every rerun, but may have been lucky in the baseline; use a baseline with --trials 3"
    ]


def test_a_clear_net_loss_is_a_regression_without_a_rerun() -> None:
    asker = Turns()
    made = compared(8, asker, ONLY_FLIPS)
    assert (made.verdict, asker.asked) == ("regression", [])
    assert reasons(made) == ["8 questions broke and 0 were fixed; the loss is significant (p = 0.004)"]


def test_where_nothing_can_be_rerun_each_counts_and_that_is_said() -> None:
    made = compared(2, "recorded answers cannot be rerun", ONLY_FLIPS)
    assert (made.verdict, say.remarks(made.flips[0])) == ("regression", "[not rerun]")
    assert say.reruns(made.reruns) == "Not rerun: recorded answers cannot be rerun."

    class Broken(Turns):
        def rerun(self, ids: Sequence[str]) -> Mapping[str, Answer]:
            raise UsageError("the target is gone")

    made = compared(2, Broken(), ONLY_FLIPS)
    assert (made.verdict, made.reruns.why_not) == ("regression", "the target is gone")
    assert compared(2, "not possible").verdict == "regression"  # by its means too


def test_a_question_without_enough_calls_is_unclear_where_answers_vary() -> None:
    """It failed as often as it was asked; the questions that fail on both sides are too many to show luck."""
    assert state_of("X", limit=9) == ("confirmed", 9)
    assert state_of("X", limit=8) == ("unclear", 8)
    many = [f"f{n}" for n in range(30)]
    assert state_of("X", failing=many, limit=20) == ("unclear", 9)
    flaky = {f"b{n}": "xxxxxx." for n in range(40)}
    assert state_of("X", others=flaky, broke=("q", *flaky), failing=[*many] * 30, limit=400)[0] == "lucky"


def test_after_one_that_is_confirmed_no_other_is_held_against_luck() -> None:
    asker = Turns({"q": "X", "r": "X"}, {"r": (5, 5)})
    made = rerun_questions(Questions(("q", "r"), fixed=("f",)), asker)
    assert [each.state for each in made.by_id.values()] == ["unclear", "confirmed"]
    assert "f" not in asker.asked


def test_a_question_that_was_left_out_has_a_reason() -> None:
    made = compared(3, Turns({"q0": "xx", "q1": "e"}, limit=2), ONLY_FLIPS)
    assert [each.state for each in made.reruns.by_id.values()] == ["unclear", "not rerun", "not rerun"]
    assert made.reruns.why_not == "1 of 2 reruns were not measured; no more than 2 calls"


def test_another_system_is_said_first_and_nothing_is_dismissed() -> None:
    made = compared(3, Turns(dict.fromkeys(("q0", "q1", "q2"), "b")), ONLY_FLIPS)
    assert (made.verdict, reasons(made)[0]) == (
        "unknown",
        "another system was rerun, or the rerun questions are flaky: the reruns give the baseline's answers",
    )


def test_another_system_is_said_where_passing_is_not_compared_too() -> None:
    now = rows_of(TEN, {each.id: found("x", "y", f"{each.id}!") for each in TEN[:4]})
    asker = Turns({each.id: "b" for each in TEN})
    sides = side(rows_of(TEN, {}), judge="one"), side(now, judge="two")
    assert compare(*sides, ignore=["judge"], rerunner=asker, resamples=50).rules[0].kind == "another system"


def test_questions_whose_scores_moved_show_first_if_another_system_is_rerun() -> None:
    """Three broke; of many that changed, three are ranked lower, and are so again."""
    twenty = [question(f"q{n}") for n in range(20)]
    worse = {each.id: found("x") for each in twenty[:3]} | {q.id: found("x", f"{q.id}!") for q in twenty[3:6]}
    others = {each.id: found(f"{each.id}!", "other", answer="Other words.") for each in twenty[6:]}
    turns = {each.id: "b" if n < 3 else "x" if n < 6 else "U" for n, each in enumerate(twenty)}
    made = compare(
        side(rows_of(twenty, {})), side(rows_of(twenty, worse | others)), ONLY_FLIPS, rerunner=Turns(turns), resamples=9
    )
    assert (made.verdict, made.reruns.another_system) == ("ok", False)


def test_a_mean_counts_only_if_it_is_shown_where_answers_vary() -> None:
    """Two of ten are flaky: recall fell by 20 %, which chance explains."""
    flaky = compared(2, Turns({"q0": ".", "q1": "."}))
    assert (flaky.verdict, {rule.state for rule in flaky.rules}) == ("ok", {"held", "not shown"})
    assert "not significant (p = 0.25)" in " ".join(reasons(flaky))


def test_a_mean_that_fell_without_a_flip_is_rerun_to_see_whether_anything_varies() -> None:
    """Up to ten questions once; the same scores again make it a regression, the baseline's answers unknown."""
    now = rows_of(TEN, {each.id: found("x", "y", f"{each.id}!") for each in TEN[:4]})
    for turn, verdict in (("x", "regression"), (".", "ok"), ("b", "unknown")):
        asker = Turns(dict.fromkeys((each.id for each in TEN), turn))
        made = compare(side(rows_of(TEN, {})), side(now), rerunner=asker, resamples=50)
        assert (made.verdict, sorted(set(asker.asked))) == (verdict, ["q0", "q1", "q2", "q3"])


@pytest.mark.parametrize(("turn", "verdict"), [("x", "regression"), ("X", "ok")])
def test_a_score_of_ones_own_is_tested_where_answers_vary(turn: str, verdict: str) -> None:
    """Three of ten are worse by it alone, and reruns do not compute it."""
    tone = OwnScore(name="tone", computed_by="f", digest="1")
    sides = (
        side([patched(each, tone=float(place >= worse)) for place, each in enumerate(rows_of(TEN, {}))], scores=(tone,))
        for worse in (0, 3)
    )
    gate = Gate({"tone": Threshold(0.1, relative=True)})
    assert compare(*sides, gate, rerunner=Turns({f"q{n}": turn for n in range(3)}), resamples=50).verdict == verdict


# Trials


def test_a_question_of_several_trials_says_what_was_measured_in_the_run_and_in_its_reruns() -> None:
    """3 of 3 before, 1 of 3 now, and its one rerun, to see whether answers vary, failed."""
    made = compare(side(tried([3] * 10, 3)), side(tried([1] + [3] * 9, 3)), rerunner=Turns({}, {"q0": (3, 3)}))
    (flip,) = made.flips
    assert say.remarks(flip) == "[flaky: passed 1 of 3, and 0 of 1 rerun; 3 of 3 before]"
    told = comparison_json(made)["reruns"]["by_id"]["q0"]
    assert (told["state"], told["run_passed"], told["run_trials"], told["failed"]) == ("flaky", 1, 3, 1)


def tried(passes: Sequence[int], trials: int) -> list[Row]:
    """Rows of questions that passed so often; a row's scores are means over its trials."""
    rows = rows_of(TEN[: len(passes)], {})
    return [
        patched(
            row,
            passed=2 * times > trials,
            trials=trials,
            passes=times,
            **dict.fromkeys(("recall_at_k", "reciprocal_rank", "hit", "pass"), times / trials),
        )
        for row, times in zip(rows, passes, strict=True)
    ]


def test_trials_are_compared_as_means_on_both_sides() -> None:
    """Five trials against one of the same system: 0.94 of all trials pass, and so does the single one, by questions."""
    was, now = side(tried([5] * 7 + [4, 4, 4], 5)), side(rows_of(TEN, {"q9": found("x")}))
    made = compare(was, now, rerunner=Turns({"q9": "x."}, {"q9": (4, 5)}), resamples=50)
    passing = next(metric for metric in made.metrics if metric.name == "pass_rate")
    assert (passing.baseline, passing.candidate) == (pytest.approx(0.94), 0.9)
    assert (made.verdict, made.reruns.varied) == ("ok", True)


def test_a_loss_is_shown_by_the_trials_of_both_sides() -> None:
    """Each of five questions may be flaky; that all of them lose two of three trials is no chance."""
    was, now = side(tried([3] * 10, 3)), side(tried([1] * 5 + [3] * 5, 3))
    made = compare(was, now, ONLY_FLIPS, rerunner=Turns(), resamples=50)
    assert made.loss.p == pytest.approx(0.2**5)
    assert (made.verdict, made.reruns.calls) == ("regression", 0)
