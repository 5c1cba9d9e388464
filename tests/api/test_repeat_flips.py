"""Asking what changed again: what broke, what scatters, and what nobody can tell."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Comparison, RunResult, compare_runs, run_eval
from evaltrack.api.repeat_flips import RepeatFlips
from evaltrack.compare.comparison import Repeat
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.records import Question, Response, Source
from evaltrack.report.comparison.json_form import comparison_json
from evaltrack.report.comparison.markdown import comparison_markdown
from evaltrack.report.comparison.terminal import comparison_text
from tests.judging import JUDGE, by_text, cli, golden_set, scored_reply, serving
from tests.openai_behaviours import quota

TARGET = f"python:{__name__}:ask"
IDS = "abcd"

script: dict[str, list[bool | None]] = {}
"""What the target does for each question, one time after the other: finds it, does not, fails (None); then the last."""
asked: defaultdict[str, int] = defaultdict(int)


def ask(question: Question, k: int) -> Response:
    """A target that follows the script, and prints as targets do."""
    print("looking")
    turns = script.get(question.id, [True])
    turn = turns[min(asked[question.id], len(turns) - 1)]
    asked[question.id] += 1
    if turn is None:
        raise RuntimeError("down")
    return Response(answer="so", sources=(Source(chunk_id="x" if turn else "y"),))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Each test has a script of its own."""
    script.clear()
    asked.clear()
    yield
    script.clear()


def found_run(uri: str, folder: Path, ids: str = IDS, **settings: Any) -> RunResult:
    """A run of the scripted target; each question passes if `x` is found."""
    golden, _ = golden_set(folder, dict.fromkeys(ids), expected_chunks=["x"])
    return run_eval(
        golden,
        **{
            "target": TARGET,
            "judge": "none",
            "tracking_uri": uri,
            "traces": "off",
            "concurrency": 1,
            "in_process": True,
            **settings,
        },
    )


def pair(uri: str, folder: Path, turns: dict[str, list[bool | None]], **settings: Any) -> tuple[RunResult, RunResult]:
    """A candidate whose questions do as scripted, and a baseline in which all pass; the target counts from there."""
    before = found_run(uri, folder, **settings)
    script.update(turns)
    asked.clear()
    return found_run(uri, folder, **settings), before


def compared(runs: tuple[RunResult, RunResult], uri: str, repeat_flips: RepeatFlips = 3, **options: Any) -> Comparison:
    """Candidate against baseline, by flips alone."""
    rules = {"max_drop": ["recall_at_k=off", "mrr=off"], "tracking_uri": uri, "log": False}
    return compare_runs(runs[0].run_id, runs[1].run_id, repeat_flips=repeat_flips, **{**rules, **options})


ENDINGS: Sequence[tuple[list[bool | None], Repeat]] = [
    ([False, False, False, False], Repeat(3, 0, 3, "unsettled")),
    ([False, True, False, True], Repeat(1, 1, 0, "scatter")),
    ([False, False, True, True], Repeat(3, 2, 1, "scatter")),
    ([False, None, True, True], Repeat(3, 2, 0, "scatter")),
    ([False, None, None, None], Repeat(3, 0, 0, "not measured")),
    ([False, None, False, None], Repeat(3, 0, 1, "unsettled")),
]


def test_a_flip_is_scatter_unsettled_or_not_measured(store_uri: str, tmp_path: Path) -> None:
    """Where answers scatter and there is no record: scatter if it passes once again, else nobody can say.

    A failure of the target is no pass, so that a question that was never measured again counts.
    """
    turns = {str(number): each for number, (each, _) in enumerate(ENDINGS)}
    made = compared(pair(store_uri, tmp_path, turns, ids="".join(turns)), store_uri)
    found = {flip.id: flip for flip in made.flips}
    assert {key: flip.repeat for key, flip in found.items()} == {
        str(number): repeat for number, (_, repeat) in enumerate(ENDINGS)
    }
    assert [key for key, flip in found.items() if flip.counts] == ["4"]
    assert made.exit_code == 1
    assert (
        made.reasons[0]
        == "1 question went from pass to fail; 1 of them could not be measured again; 3 more are scatter"
    )
    assert made.reasons[1].startswith("2 questions (0, 5) fail every time again")


def test_a_target_that_answers_the_same_again_broke(store_uri: str, tmp_path: Path) -> None:
    """It is deterministic: what it fails now it fails for good."""
    made = compared(pair(store_uri, tmp_path, {"b": [False]}), store_uri)
    assert [flip.repeat for flip in made.flips] == [Repeat(3, 0, 3, "real")]
    assert (made.verdict, made.asking.scatter, made.asking.calls) == ("regression", False, 12)
    assert made.reasons == ("1 question went from pass to fail",)


def test_what_failed_before_is_not_called_broken_for_the_same_answers(store_uri: str, tmp_path: Path) -> None:
    """Its pass in the baseline was rare luck, or it was mended just before: nobody can say, exit code 3."""
    script["b"] = [False]
    found_run(store_uri, tmp_path)
    asked.clear()
    script.clear()
    made = compared(pair(store_uri, tmp_path, {"b": [False]}), store_uri)
    assert (made.verdict, made.asking.scatter) == ("unknown", False)
    assert [flip.repeat for flip in made.flips] == [Repeat(3, 0, 3, "unsettled", 1, 1)]
    assert "or it was mended just before" in made.reasons[0]


def test_a_newer_run_that_failed_is_not_passed_over(store_uri: str, tmp_path: Path) -> None:
    """The newest evaluation failed: an older one that is green says nothing of it; named, it is compared."""
    older, before = pair(store_uri, tmp_path, {})
    script.update({key: [None] for key in IDS})
    broken = found_run(store_uri, tmp_path)
    assert broken.status == "FAILED"
    with pytest.raises(
        InconclusiveError, match=f"the newest run {broken.run_id} .* is FAILED; evaluate again, or name"
    ):
        compare_runs(baseline=before.run_id, tracking_uri=store_uri, log=False)
    assert compare_runs(older.run_id, before.run_id, tracking_uri=store_uri, log=False).verdict == "ok"


def test_a_failed_run_that_claims_to_end_in_the_future_stops_nobody(store_uri: str, tmp_path: Path) -> None:
    """It would be the newest for ever."""
    _, before = pair(store_uri, tmp_path, {})
    script.update({key: [None] for key in IDS})
    broken = found_run(store_uri, tmp_path)
    mlflow.MlflowClient(store_uri).set_terminated(broken.run_id, "FAILED", end_time=4_000_000_000_000)
    assert compare_runs(baseline=before.run_id, tracking_uri=store_uri, log=False).verdict == "ok"


def test_auto_asks_others_before_it_calls_a_target_deterministic(store_uri: str, tmp_path: Path) -> None:
    """A hundred answers, all the same; what scatters is seen at the first that differs."""
    runs = pair(store_uri, tmp_path, {"b": [False]})
    made = compared(runs, store_uri, repeat_flips="auto")
    assert (made.verdict, made.asking.scatter, made.asking.calls) == ("regression", False, 100)
    script["a"] = [True] * 26 + [False]
    made = compared(runs, store_uri, repeat_flips="auto")
    assert made.asking.scatter is True


def test_scatter_is_no_regression(store_uri: str, tmp_path: Path) -> None:
    """It is listed, and the verdict says so."""
    made = compared(pair(store_uri, tmp_path, {"b": [False, True]}), store_uri)
    assert (made.verdict, made.exit_code, len(made.flips)) == ("ok", 0, 1)
    assert made.reasons == ("no regression: 1 question that went from pass to fail is scatter",)


def test_what_nobody_can_tell_is_unknown(store_uri: str, tmp_path: Path) -> None:
    """It fails every time, answers scatter, and one lucky pass in the baseline would look the same: exit code 3."""
    made = compared(pair(store_uri, tmp_path, {"a": [False], "b": [False, True]}), store_uri)
    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert made.reasons[0].startswith("1 question (a) fails every time again and passed once in the baseline")
    assert "--trials 5" in made.reasons[0]
    assert "that were fixed" not in made.reasons[0]  # none was


@pytest.mark.parametrize(("earlier", "verdict", "kind"), [(True, "regression", "real"), (False, "ok", "scatter")])
def test_a_question_is_held_against_its_record(
    earlier: bool, verdict: str, kind: str, store_uri: str, tmp_path: Path
) -> None:
    """Five earlier runs in which it passed say that it broke; in which it failed, that its pass was luck."""
    script.update({"a": [earlier]})
    for _ in range(5):
        found_run(store_uri, tmp_path)
    asked.clear()
    script.clear()
    runs = pair(store_uri, tmp_path, {"a": [False], "b": [False, True]})
    made = compared(runs, store_uri, repeat_flips=5)
    repeats = {flip.id: flip.repeat for flip in made.flips}
    assert (made.verdict, repeats["a"] and repeats["a"].kind) == (verdict, kind)
    assert repeats["a"]
    assert (repeats["a"].record_failed, repeats["a"].record_times) == (0 if earlier else 5, 5)
    assert repeats["b"]
    assert repeats["b"].kind == "scatter"


def test_trials_of_the_baseline_are_a_record(store_uri: str, tmp_path: Path) -> None:
    """Of eight trials all passed; now it fails every time."""
    runs = pair(store_uri, tmp_path, {"a": [False], "b": [False] * 8 + [True]}, trials=8)
    made = compared(runs, store_uri, repeat_flips=5)
    repeats = {flip.id: flip.repeat for flip in made.flips}
    assert repeats["a"] == Repeat(5, 0, 5, "real", 0, 8)
    assert made.verdict == "regression"


def test_the_seeds_gate_asks_nobody(store_uri: str, tmp_path: Path) -> None:
    """Any question from pass to fail is a regression."""
    made = compared(pair(store_uri, tmp_path, {"b": [False, True]}), store_uri, gate="seed")
    assert (made.verdict, made.asking.calls, made.flips[0].repeat) == ("regression", 0, None)
    assert asked["b"] == 1


def test_evidence_wants_a_net_loss(store_uri: str, tmp_path: Path) -> None:
    """Five flips show nothing, six do; nobody is asked."""
    five = pair(store_uri, tmp_path, {key: [False] for key in "abcde"}, ids="abcdefgh")
    assert compared(five, store_uri, gate="evidence").verdict == "ok"
    script.clear()
    six = pair(store_uri, tmp_path, {key: [False] for key in "abcdef"}, ids="abcdefgh")
    made = compared(six, store_uri, gate="evidence")
    assert (made.verdict, made.reasons) == ("regression", ("6 questions went from pass to fail: a net loss is shown",))
    assert set(asked.values()) == {1}


def test_where_nobody_can_be_asked_the_rule_holds(store_uri: str, tmp_path: Path) -> None:
    """The reason says that scatter was not ruled out, and why; fixes stand beside the flips."""
    script["d"] = [False]
    runs = pair(store_uri, tmp_path, {"a": [False], "d": [True]})
    made = compared(runs, store_uri, repeat_flips=0)
    said = "1 question went from pass to fail, 1 from fail to pass (exact McNemar p 1)"
    assert made.reasons == (f"{said}; scatter was not ruled out: nothing was asked again",)
    golden = tmp_path / "small.jsonl"
    golden.rename(tmp_path / "gone.jsonl")
    made = compared(runs, store_uri, repeat_flips="auto")
    assert made.verdict == "regression"
    assert "scatter was not ruled out: " in made.reasons[0]
    assert "small.jsonl: no such file" in made.reasons[0]


def test_only_what_changed_is_asked_so_often(store_uri: str, tmp_path: Path) -> None:
    """With a number neither what passes still, nor what failed before."""
    script["d"] = [False]
    runs = pair(store_uri, tmp_path, {"a": [False], "b": [False, True]})
    assert asked == dict.fromkeys(IDS, 1)
    made = compared(runs, store_uri, repeat_flips=5)
    assert {flip.id: flip.repeat for flip in made.flips} == {
        "a": Repeat(5, 0, 5, "unsettled"),
        "b": Repeat(1, 1, 0, "scatter"),
    }
    assert asked == {"a": 6, "b": 2, "c": 1, "d": 1}


def test_without_a_flip_nobody_is_asked(store_uri: str, tmp_path: Path) -> None:
    """Each question was asked once, by the run."""
    runs = pair(store_uri, tmp_path, {})
    made = compared(runs, store_uri)
    assert (made.verdict, made.flips) == ("ok", ())
    assert set(asked.values()) == {1}


def test_allowed_flips_are_those_that_count(store_uri: str, tmp_path: Path) -> None:
    """Scatter uses up no allowance."""
    script.update({key: [True] for key in IDS})
    for _ in range(5):
        found_run(store_uri, tmp_path)
    asked.clear()
    runs = pair(store_uri, tmp_path, {"a": [False], "b": [False, True], "c": [False, True]})
    assert compared(runs, store_uri, repeat_flips=5, allow_flips=1).verdict == "ok"
    asked.update(dict.fromkeys("abc", 1))
    assert compared(runs, store_uri, repeat_flips=5).verdict == "regression"


def test_no_row_and_no_metric_of_the_run_is_changed(store_uri: str, tmp_path: Path) -> None:
    """A flip that is scatter still stands in the means, and in the run."""
    candidate, before = pair(store_uri, tmp_path, {"b": [False, True]})
    made = compared((candidate, before), store_uri)
    rate = {metric.name: metric for metric in made.metrics}["pass_rate"]
    assert (rate.baseline, rate.candidate, made.mcnemar_p) == (1, 0.75, 1)
    assert [row["passed"] for row in candidate.rows] == [True, False, True, True]
    assert len(mlflow.MlflowClient(store_uri).search_runs(["0"])) == 2


def test_a_question_edited_since_is_not_asked(store_uri: str, tmp_path: Path) -> None:
    """Its outcome would be that of another question; the others are asked."""
    runs = pair(store_uri, tmp_path, {"a": [False, True], "b": [False, True]})
    golden = tmp_path / "small.jsonl"
    golden.write_text(golden.read_text().replace("What of b?", "What of b now?"))
    made = compared(runs, store_uri)
    repeats = {flip.id: flip.repeat for flip in made.flips}
    assert repeats == {"a": Repeat(1, 1, 0, "scatter"), "b": Repeat(0, 0, 0, "not measured")}
    assert (asked["a"], asked["b"]) == (2, 1)
    assert made.verdict == "regression"


def test_every_rendering_says_what_came_of_it(store_uri: str, tmp_path: Path) -> None:
    """Terminal, Markdown and JSON, in words and numbers."""
    turns: dict[str, list[bool | None]] = {
        "a": [False],
        "b": [False, True, False, True],
        "c": [False, False, True],
        "d": [False, None],
    }
    made = compared(pair(store_uri, tmp_path, turns), store_uri)
    said = {
        "a": "[unsettled: failed 3 of 3 times again]",
        "b": "[scatter: failed 0 of 1 times again]",
        "c": "[scatter: failed 1 of 3 times again]",
        "d": "[asked 3 times again, measured 0]",
    }
    shown, page = comparison_text(made, 200), comparison_markdown(made).replace("\\", "")
    for key, words in said.items():
        assert f"- {key} (small): pass to fail, source_lost {words}" in shown
        assert words in page
    assert "asked again (10 calls): 2 scatter, 1 unsettled, 1 not measured" in shown
    document = comparison_json(made)
    flips = {flip["id"]: flip for flip in document["flips"]}
    repeat = {"kind": "scatter", "times": 3, "passed": 2, "failed": 1, "record": {"times": 0, "failed": 0}}
    assert flips["c"]["repeat"] == repeat
    assert {key: flip["counts"] for key, flip in flips.items()} == {"a": False, "b": False, "c": False, "d": True}
    assert document["asked_again"] == {"possible": True, "calls": 10, "scatter": True, "lucky": 0, "why_not": None}


# With a judge


def judged_pair(uri: str, folder: Path, **settings: Any) -> tuple[RunResult, RunResult]:
    """Answers that a judge gave 0.9 in the baseline; in the candidate one of two got 0.3."""
    runs = []
    for name in ("before", "after"):
        golden, target = golden_set(folder / name, {"a": f"First {name}.", "b": f"Second {name}."})
        asked_for = {"target": target, "judge": JUDGE, "traces": "off", "concurrency": 1, **settings}
        runs.append(run_eval(golden, tracking_uri=uri, **asked_for))
    return runs[1], runs[0]


def judge(*again: float) -> dict[str, list[str]]:
    """What the judge gives each text in turn: the first verdict on the candidate's second answer is bad luck or not."""
    texts = {"First before.": [0.9], "Second before.": [0.9], "First after.": [0.9], "Second after.": [0.3, *again]}
    return {text: [scored_reply(score) for score in scores] for text, scores in texts.items()}


@pytest.mark.parametrize(
    ("again", "kind", "calls", "verdict"),
    [((0.9,), "scatter", 1, "ok"), ((0.3, 0.9, 0.3), "scatter", 4, "ok"), ((0.3,), "real", 6, "regression")],
)
def test_a_judge_gives_a_fresh_verdict_each_time(
    store_uri: str, tmp_path: Path, again: tuple[float, ...], kind: str, calls: int, verdict: str
) -> None:
    """The one that made the flip is in the cache, and not taken from there: the answer is the same."""
    with serving(behaviour=by_text(judge(*again))) as server:
        runs = judged_pair(store_uri, tmp_path)
        assert server.calls == 4
        made = compared(runs, store_uri)
        assert server.calls == 4 + calls
    (flip,) = made.flips
    assert flip.repeat is not None
    assert (flip.id, flip.repeat.kind, made.verdict) == ("b", kind, verdict)


def test_trials_are_counted_on_from_those_of_the_run(store_uri: str, tmp_path: Path) -> None:
    """A run of three trials has three verdicts; asking again is a fourth and a fifth."""
    with serving(behaviour=by_text(judge(0.3, 0.3, 0.9, 0.9))) as server:
        runs = judged_pair(store_uri, tmp_path, trials=3)
        assert server.calls == 12
        made = compared(runs, store_uri, repeat_flips=2)
    assert server.calls == 13
    assert made.flips[0].repeat == Repeat(1, 1, 0, "scatter", 0, 3)


def test_a_judge_that_is_gone_is_refused(store_uri: str, tmp_path: Path) -> None:
    """`auto` was a model, and is nobody now: a set with nothing but its judge cannot be measured without."""
    with serving(behaviour=by_text(judge())):
        runs = judged_pair(store_uri, tmp_path, judge="auto")
    with pytest.raises(UsageError, match="there is no judge, so nothing could be measured"):
        compared(runs, store_uri)


def test_recorded_responses_and_verdicts_cannot_be_asked_again(store_uri: str, tmp_path: Path) -> None:
    """They would be the same, which proves nothing."""
    verdicts = tmp_path / "verdicts.jsonl"

    def write(name: str, score: float) -> None:
        rows = [{"id": key, "judge": name, "reasoning": "so", "overall_score": score} for key in "ab"]
        verdicts.write_text("".join(json.dumps(row) + "\n" for row in rows))

    golden, target = golden_set(tmp_path, {"a": "First.", "b": "Second."})
    runs = []
    for score in (0.9, 0.3):
        write("people", score)
        judged = {"target": target, "judge": f"recorded:{verdicts}", "traces": "off"}
        runs.append(run_eval(golden, tracking_uri=store_uri, **judged))
    made = compared((runs[1], runs[0]), store_uri, repeat_flips="auto")
    assert {flip.repeat for flip in made.flips} == {None}
    assert made.asking.why_not == "recorded responses cannot be asked again"


# What is refused


def test_another_target_is_refused(store_uri: str, tmp_path: Path) -> None:
    """Whoever answers now must be who answered then."""
    candidate, before = pair(store_uri, tmp_path, {"a": [False]})
    other = candidate.signature.model_copy(update={"target": "python:other:ask"})
    mlflow.MlflowClient(store_uri).set_tag(candidate.run_id, "evaltrack.signature", other.model_dump_json())
    with pytest.raises(UsageError) as refused:
        compared((candidate, before), store_uri)
    said = f"run {candidate.run_id} cannot be repeated here: target was 'python:other:ask' and is '{TARGET}'"
    assert str(refused.value) == said
    assert asked["a"] == 1


def test_a_target_that_is_gone_is_refused(store_uri: str, tmp_path: Path) -> None:
    """It says what could not be opened."""
    module = Path("passing_target.py")
    module.write_text("def ask(question):\n    return [question[8]]\n")
    golden, _ = golden_set(tmp_path, {"a": None}, expected_chunks=["a"])
    before = run_eval(golden, target="python:passing_target:ask", judge="none", tracking_uri=store_uri, traces="off")
    module.write_text("def ask(question):\n    return ['another']\n")
    after = run_eval(golden, target="python:passing_target:ask", judge="none", tracking_uri=store_uri, traces="off")
    module.unlink()
    with pytest.raises(UsageError, match="python target `passing_target:ask`: cannot be imported"):
        compared((after, before), store_uri)


def test_a_golden_set_that_is_gone_is_refused(store_uri: str, tmp_path: Path) -> None:
    """There is nothing left to ask."""
    runs = pair(store_uri, tmp_path, {"a": [False]})
    (tmp_path / "small.jsonl").unlink()
    with pytest.raises(UsageError, match=r"small\.jsonl: no such file"):
        compared(runs, store_uri)


def test_a_run_of_another_folder_is_refused(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative names would mean something else; without repeats it compares from anywhere."""
    runs = pair(store_uri, tmp_path, {"a": [False]})
    here = Path.cwd()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"the run was started in {here}; go there first"):
        compared(runs, store_uri)
    assert compared(runs, store_uri, repeat_flips=0).verdict == "regression"


def test_repeats_have_bounds(store_uri: str, tmp_path: Path) -> None:
    """Up to 100; 0 asks nobody."""
    runs = pair(store_uri, tmp_path, {"a": [False]})
    for times in (-1, 101):
        with pytest.raises(UsageError, match=f"repeat_flips is {times}; write auto, or a number from 0 to 100"):
            compared(runs, store_uri, repeat_flips=times)
    assert [flip.repeat for flip in compared(runs, store_uri, repeat_flips=0).flips] == [None]


def test_a_judge_that_cannot_be_asked_any_more_ends_the_comparison(store_uri: str, tmp_path: Path) -> None:
    """It could not be told; nothing is passed for want of a verdict."""
    with serving(behaviour=by_text(judge())):
        runs = judged_pair(store_uri, tmp_path)
    with serving(behaviour=quota()), pytest.raises(InconclusiveError, match="quota"):
        compared(runs, store_uri)


def test_the_command_line(store_uri: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`compare --repeat-flips 3 --output json`: JSON alone on stdout though the target prints; 0 if all is scatter."""
    candidate, before = pair(store_uri, tmp_path, {"a": [False, True]})
    capfd.readouterr()
    rules = ("--no-log", "--max-drop", "recall_at_k=off", "--max-drop", "mrr=off")
    compared_ = ("compare", candidate.run_id, "--baseline-run", before.run_id, *rules)
    assert cli(*compared_, "--repeat-flips", "3", "--output", "json") == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["flips"][0]["repeat"]["kind"] == "scatter"
    assert "looking" in printed.err
    assert cli(*compared_, "--gate", "seed") == 1
    assert cli(*compared_, "--repeat-flips", "3") == 0
    assert "asked again (1 call): 1 scatter" in capfd.readouterr().out
    assert cli(*compared_, "--repeat-flips", "often") == 2


def test_an_older_run_is_not_asked_of_newer_code_unless_that_is_wanted(store_uri: str, tmp_path: Path) -> None:
    """The same target was evaluated once more since: what answers now may not be what answered then."""
    older, before = pair(store_uri, tmp_path, {"b": [False]})
    newer = found_run(store_uri, tmp_path)
    asked.clear()
    made = compared((older, before), store_uri, "auto")
    assert not asked
    assert made.asking.why_not is not None
    assert f"run {newer.run_id} of the same target is newer" in made.asking.why_not
    assert compared((older, before), store_uri, 3).asking.possible
