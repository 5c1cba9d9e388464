"""Asking flipped questions again: real, flaky, gone, or not measured."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Comparison, RunResult, compare_runs, run_eval
from evaltrack.compare.comparison import Repeat
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.records import Question, Response, Source
from evaltrack.report.comparison_machine import comparison_json
from evaltrack.report.comparison_markdown import comparison_markdown
from evaltrack.report.comparison_terminal import comparison_text

from .judging import JUDGE, by_text, cli, golden_set, scored_reply, serving
from .openai_behaviours import quota

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
        **{"target": TARGET, "judge": "none", "tracking_uri": uri, "traces": "off", "concurrency": 1, **settings},
    )


def pair(uri: str, folder: Path, turns: dict[str, list[bool | None]], **settings: Any) -> tuple[RunResult, RunResult]:
    """A candidate whose questions do as scripted, and a baseline in which all pass; the target counts from there."""
    before = found_run(uri, folder, **settings)
    script.update(turns)
    asked.clear()
    return found_run(uri, folder, **settings), before


def compared(runs: tuple[RunResult, RunResult], uri: str, repeat_flips: int = 3, **options: Any) -> Comparison:
    """Candidate against baseline, by flips alone."""
    rules = {"max_drop": ["recall_at_k=off", "mrr=off"], "tracking_uri": uri, "log": False}
    return compare_runs(runs[0].run_id, runs[1].run_id, repeat_flips=repeat_flips, **{**rules, **options})


ENDINGS: Sequence[tuple[list[bool | None], Repeat, str, bool]] = [
    ([False, False, False, False], Repeat(3, 0, 3), "real", True),
    ([False, True, False, True], Repeat(3, 2, 1), "flaky", True),
    ([False, False, True, True], Repeat(3, 2, 1), "flaky", True),
    ([False, True, True, True], Repeat(3, 3, 0), "gone", False),
    ([False, True, None, True], Repeat(3, 2, 0), "not measured", True),
    ([False, None, None, None], Repeat(3, 0, 0), "not measured", True),
    ([False, None, False, None], Repeat(3, 0, 1), "real", True),
]


def test_a_flip_is_real_flaky_gone_or_not_measured(store_uri: str, tmp_path: Path) -> None:
    """Only one that passes every time it is asked again is no regression: a failure of the target is no pass."""
    turns = {str(number): each for number, (each, *_) in enumerate(ENDINGS)}
    made = compared(pair(store_uri, tmp_path, turns, ids="".join(turns)), store_uri)
    found = {flip.id: flip for flip in made.flips}
    for number, (_, repeat, kind, counts) in enumerate(ENDINGS):
        flip = found[str(number)]
        assert (flip.repeat, repeat.kind, flip.counts) == (repeat, kind, counts)
    assert (made.exit_code, made.reasons) == (1, ("6 questions went from pass to fail",))


def test_what_is_gone_is_no_regression(store_uri: str, tmp_path: Path) -> None:
    """Alone it leaves the verdict as it was."""
    made = compared(pair(store_uri, tmp_path, {"b": [False, True]}), store_uri)
    assert (made.verdict, made.exit_code, made.reasons, len(made.flips)) == ("ok", 0, ("no regression",), 1)


def test_only_what_flipped_is_asked_again(store_uri: str, tmp_path: Path) -> None:
    """As often as asked for; neither what passes still, nor what failed before."""
    script["d"] = [False]
    runs = pair(store_uri, tmp_path, {"a": [False], "b": [False, True]})
    assert asked == dict.fromkeys(IDS, 1)
    made = compared(runs, store_uri, repeat_flips=5)
    assert {flip.id: flip.repeat for flip in made.flips} == {"a": Repeat(5, 0, 5), "b": Repeat(5, 5, 0)}
    assert asked == {"a": 6, "b": 6, "c": 1, "d": 1}
    assert made.reasons == ("1 question went from pass to fail",)


def test_without_a_flip_nobody_is_asked(store_uri: str, tmp_path: Path) -> None:
    """Each question was asked once, by the run."""
    runs = pair(store_uri, tmp_path, {})
    made = compared(runs, store_uri)
    assert (made.verdict, made.flips) == ("ok", ())
    assert set(asked.values()) == {1}


def test_allowed_flips_are_those_that_are_left(store_uri: str, tmp_path: Path) -> None:
    """What is gone uses up no allowance."""
    runs = pair(store_uri, tmp_path, {"a": [False], "b": [False, True], "c": [False, True]})
    assert compared(runs, store_uri, allow_flips=1).verdict == "ok"
    assert compared(runs, store_uri, allow_flips=0).verdict == "regression"


def test_no_row_and_no_metric_of_the_run_is_changed(store_uri: str, tmp_path: Path) -> None:
    """A flip that is gone still stands in the means, and in the run."""
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
    assert repeats == {"a": Repeat(3, 3, 0), "b": Repeat(3, 0, 0)}
    assert (repeats["b"] or Repeat(1, 1, 0)).kind == "not measured"
    assert (asked["a"], asked["b"]) == (4, 1)
    assert made.verdict == "regression"


def test_every_rendering_says_what_came_of_it(store_uri: str, tmp_path: Path) -> None:
    """Terminal, Markdown and JSON, in words and numbers."""
    turns: dict[str, list[bool | None]] = {
        "a": [False],
        "b": [False, True, False, True],
        "c": [False, True],
        "d": [False, True, None],
    }
    made = compared(pair(store_uri, tmp_path, turns), store_uri)
    said = {
        "a": "[real: failed 3 of 3 times again]",
        "b": "[flaky: failed 1 of 3 times again]",
        "c": "[gone: failed 0 of 3 times again]",
        "d": "[asked 3 times again, measured 1]",
    }
    shown, page = comparison_text(made, 200), comparison_markdown(made).replace("\\", "")
    for key, words in said.items():
        assert f"- {key} (small): pass to fail, source_lost {words}" in shown
        assert words in page
    assert "asked again: 1 real, 1 flaky, 1 gone, 1 not measured" in shown
    flips = {flip["id"]: flip for flip in comparison_json(made)["flips"]}
    assert flips["b"]["repeat"] == {"kind": "flaky", "times": 3, "passed": 2, "failed": 1}
    assert {key: flip["counts"] for key, flip in flips.items()} == {"a": True, "b": True, "c": False, "d": True}


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
    ("again", "kind", "verdict"),
    [((0.9, 0.8, 0.9), "gone", "ok"), ((0.3, 0.9, 0.3), "flaky", "regression"), ((0.3,), "real", "regression")],
)
def test_a_judge_gives_a_fresh_verdict_each_time(
    store_uri: str, tmp_path: Path, again: tuple[float, ...], kind: str, verdict: str
) -> None:
    """The one that made the flip is in the cache, and not taken from there: the answer is the same."""
    with serving(behaviour=by_text(judge(*again))) as server:
        runs = judged_pair(store_uri, tmp_path)
        assert server.calls == 4
        made = compared(runs, store_uri)
        assert server.calls == 7
    (flip,) = made.flips
    assert flip.repeat is not None
    assert (flip.id, flip.repeat.kind, made.verdict) == ("b", kind, verdict)


def test_trials_are_counted_on_from_those_of_the_run(store_uri: str, tmp_path: Path) -> None:
    """A run of three trials has three verdicts; asking again is a fourth and a fifth."""
    with serving(behaviour=by_text(judge(0.3, 0.3, 0.9, 0.9))) as server:
        runs = judged_pair(store_uri, tmp_path, trials=3)
        assert server.calls == 12
        made = compared(runs, store_uri, repeat_flips=2)
    assert server.calls == 14
    assert made.flips[0].repeat == Repeat(2, 2, 0)


def test_a_judge_that_is_gone_is_refused(store_uri: str, tmp_path: Path) -> None:
    """`auto` was a model, and is nobody now: a set with nothing but its judge cannot be measured without."""
    with serving(behaviour=by_text(judge())):
        runs = judged_pair(store_uri, tmp_path, judge="auto")
    with pytest.raises(UsageError, match="there is no judge, so nothing could be measured"):
        compared(runs, store_uri)


def test_a_recorded_judge_of_another_name_is_refused(store_uri: str, tmp_path: Path) -> None:
    """Whoever judges now must be who judged then."""
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
    assert {flip.repeat for flip in compared((runs[1], runs[0]), store_uri).flips} == {Repeat(3, 0, 3)}
    write("others", 0.9)
    with pytest.raises(UsageError) as refused:
        compared((runs[1], runs[0]), store_uri)
    said = f"run {runs[1].run_id} cannot be repeated here: judge was 'people' and is 'others'"
    assert str(refused.value) == said


# What is refused


def test_another_target_is_refused(store_uri: str, tmp_path: Path) -> None:
    """Whoever answers now must be who answered then."""
    candidate, before = pair(store_uri, tmp_path, {"a": [False]})
    other = candidate.signature.model_copy(update={"target": "bm25:docs"})
    mlflow.MlflowClient(store_uri).set_tag(candidate.run_id, "evaltrack.signature", other.model_dump_json())
    with pytest.raises(UsageError) as refused:
        compared((candidate, before), store_uri)
    said = f"run {candidate.run_id} cannot be repeated here: target was 'bm25:docs' and is '{TARGET}'"
    assert str(refused.value) == said
    assert asked["a"] == 1


def test_a_target_that_is_gone_is_refused(store_uri: str, tmp_path: Path) -> None:
    """It says what could not be opened."""
    Path("passing_target.py").write_text("def ask(question):\n    return [question[8]]\n")
    golden, _ = golden_set(tmp_path, {"a": None}, expected_chunks=["a"])
    before = run_eval(golden, target="python:passing_target:ask", judge="none", tracking_uri=store_uri, traces="off")
    sys.modules["passing_target"].ask = lambda question: ["b"]  # type: ignore[attr-defined]
    after = run_eval(golden, target="python:passing_target:ask", judge="none", tracking_uri=store_uri, traces="off")
    del sys.modules["passing_target"].ask
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
    """From 1 to 100; 0 asks nobody."""
    runs = pair(store_uri, tmp_path, {"a": [False]})
    for times in (-1, 101):
        with pytest.raises(UsageError, match=f"repeat_flips is {times}; write a number from 1 to 100"):
            compared(runs, store_uri, repeat_flips=times)
    assert [flip.repeat for flip in compared(runs, store_uri, repeat_flips=0).flips] == [None]


def test_a_judge_that_cannot_be_asked_any_more_ends_the_comparison(store_uri: str, tmp_path: Path) -> None:
    """It could not be told; nothing is passed for want of a verdict."""
    with serving(behaviour=by_text(judge())):
        runs = judged_pair(store_uri, tmp_path)
    with serving(behaviour=quota()), pytest.raises(InconclusiveError, match="quota"):
        compared(runs, store_uri)


def test_the_command_line(store_uri: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`compare --repeat-flips 3 --output json`: JSON alone on stdout though the target prints; 0 if all is gone."""
    candidate, before = pair(store_uri, tmp_path, {"a": [False, True]})
    capfd.readouterr()
    rules = ("--no-log", "--max-drop", "recall_at_k=off", "--max-drop", "mrr=off")
    compared_ = ("compare", candidate.run_id, "--baseline-run", before.run_id, *rules)
    assert cli(*compared_, "--repeat-flips", "3", "--output", "json") == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["flips"][0]["repeat"]["kind"] == "gone"
    assert "looking" in printed.err
    assert cli(*compared_) == 1
    assert cli(*compared_, "--repeat-flips", "3") == 0
    assert "asked again: 1 gone" in capfd.readouterr().out
