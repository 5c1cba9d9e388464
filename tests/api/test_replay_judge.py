from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Run

from evaltrack import RunResult, run_eval
from evaltrack.api.replay_judge import replay_judge
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.records import Question, Response
from tests.judging import (
    JUDGE,
    OPTIONS,
    by_text,
    cli,
    golden_set,
    graded_reply,
    labels_file,
    scored_reply,
    serving,
)
from tests.openai_behaviours import Behaviour, quota

Z = 1.959963984540054
GRADES = {"Answer a.": [7, 7.2, 7.4, 7], "Answer b.": [5, 5, 5.6, 5.5]}
"""What the judge gives each response, one time after the other: in the run, then in the replay."""


def graded(grades: Mapping[str, Sequence[float | str]] = GRADES) -> Behaviour:
    return by_text(
        {text: [one if isinstance(one, str) else graded_reply(one) for one in each] for text, each in grades.items()}
    )


def scored(scores: Mapping[str, Sequence[float]]) -> Behaviour:
    return by_text({text: [scored_reply(one) for one in each] for text, each in scores.items()})


def judged_run(folder: Path, uri: str, answers: Sequence[str] = tuple(GRADES), **settings: Any) -> RunResult:
    golden, target = golden_set(folder, {answer[7]: f"{answer} {OPTIONS}" for answer in answers})
    asked = {"target": target, "judge": JUDGE, "rubric": "reasoning", "concurrency": 1, "traces": "off"}
    return run_eval(golden, tracking_uri=uri, **{**asked, **settings})


def children(uri: str, run_id: str) -> list[Run]:
    found = mlflow.MlflowClient(uri).search_runs(["0"])
    return [run for run in found if run.data.tags.get("mlflow.parentRunId") == run_id]


def test_it_measures_spread_share_tiers_and_noise(store_uri: str, tmp_path: Path) -> None:
    """By hand: 70, 72, 74 and 50, 50, 56."""
    told: list[tuple[int, int]] = []
    asked: list[str] = []

    def target(question: Question, k: int) -> Response:
        asked.append(question.id)
        return Response(answer=f"Answer {question.id}. {OPTIONS}")

    with serving(behaviour=graded()) as server:
        run = judged_run(tmp_path, store_uri, target=target)
        before = mlflow.get_run(run.run_id)
        made = replay_judge(run.run_id, times=2, tracking_uri=store_uri, on_progress=lambda *each: told.append(each))
    assert server.calls == 6
    assert sorted(asked) == ["a", "b"]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (made.run_id, made.judge, made.score, made.times) == (run.run_id, JUDGE, "reasoning_score", 2)
    assert made.judge_prompt == run.signature.judge_prompt != ""
    assert {row.id: (row.score, row.again, row.spread) for row in made.rows} == {
        "a": (70, (72, 74), 4),
        "b": (50, (50, 56), 6),
    }
    assert [(row.tier, row.tiers_again) for row in made.rows] == [(3, (3, 3)), (2, (2, 2))]
    assert [(row.passed, row.passed_again) for row in made.rows] == [(True, (True, True)), (False, (False, False))]
    assert (made.share_within, made.mean_spread, made.num_changed) == (3 / 4, 5, 0)
    assert made.noise == pytest.approx(Z * sqrt(2 * (4 + 12) / 2**2))
    assert (made.num_verdicts, made.failed, made.left_out, made.usage_tokens) == (4, 0, 0, 4 * 30)
    (child,) = children(store_uri, run.run_id)
    assert (child.info.status, child.info.run_name) == ("FINISHED", "judge replay")
    assert child.data.params == {"judge": JUDGE, "times": "2", "replayed_run": run.run_id}
    assert child.data.metrics == pytest.approx(dict(made.metrics))
    kept = mlflow.artifacts.load_dict(f"runs:/{child.info.run_id}/replay.json")
    assert [row["again"] for row in kept["rows"]] == [[72, 74], [50, 56]]
    assert kept["noise"] == made.noise

    after = mlflow.get_run(run.run_id)
    assert (after.data.metrics, after.data.params) == (before.data.metrics, before.data.params)
    assert set(after.data.tags) == set(before.data.tags)


def test_a_second_replay_costs_nothing(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded()) as server:
        run = judged_run(tmp_path, store_uri)
        first = replay_judge(run.run_id, times=2, tracking_uri=store_uri)
        second = replay_judge(run.run_id, times=2, tracking_uri=store_uri)
        assert server.calls == 6
        third = replay_judge(run.run_id, times=3, tracking_uri=store_uri)
        assert server.calls == 8
    assert second.rows == first.rows
    assert (first.usage_tokens, second.usage_tokens, third.usage_tokens) == (120, 0, 60)
    assert [row.again for row in third.rows] == [(72, 74, 70), (50, 56, 55)]
    assert len(children(store_uri, run.run_id)) == 3


def test_without_a_cache_every_verdict_is_paid_for(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded()) as server:
        run = judged_run(tmp_path, store_uri, verdict_cache=False)
        for _ in range(2):
            replay_judge(run.run_id, times=1, tracking_uri=store_uri)
    assert server.calls == 6


def test_a_change_of_tier_is_counted(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded({"Answer a.": [7, 6.9], "Answer b.": [5, 4.9], "Answer c.": [9, 9.1]})):
        run = judged_run(tmp_path, store_uri, ("Answer a.", "Answer b.", "Answer c."))
        made = replay_judge(run.run_id, times=1, tracking_uri=store_uri)
    assert [(row.tier, row.tiers_again, row.changed) for row in made.rows] == [
        (3, (2,), True),
        (2, (1,), True),
        (3, (3,), False),
    ]
    assert made.num_changed == 2


def test_a_verdict_that_failed_is_counted_and_in_no_number(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded({"Answer a.": [7, "no", "no", 7.2], "Answer b.": [5, 5, 5, 5]})) as server:
        run = judged_run(tmp_path, store_uri)
        made = replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    assert server.calls == 2 + 3 + 2
    assert {row.id: row.again for row in made.rows} == {"a": (None, 72), "b": (50, 50)}
    assert (made.failed, made.num_verdicts, made.share_within, made.usage_tokens) == (1, 4, 1, 5 * 30)
    assert made.noise == pytest.approx(Z * sqrt(2 * 2 / 2**2))
    (child,) = children(store_uri, run.run_id)
    assert child.data.metrics["replay.num_errors"] == 1


def test_where_no_verdict_can_be_had_nothing_is_logged(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded({"Answer a.": [7, "no"], "Answer b.": [5, "no"]})):
        run = judged_run(tmp_path, store_uri)
        with pytest.raises(InconclusiveError) as error:
            replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    message = "none of 4 verdicts succeeded; the last failure: judge_error: UnreadableVerdictError"
    assert str(error.value).startswith(message)
    assert children(store_uri, run.run_id) == []


def test_a_share_of_the_responses_can_be_judged(store_uri: str, tmp_path: Path) -> None:
    answers = [f"Answer {key}." for key in "abcdefghij"]
    with serving(behaviour=graded({answer: [7, 7.2, 7.2] for answer in answers})) as server:
        run = judged_run(tmp_path, store_uri, answers)
        some = replay_judge(run.run_id, times=1, share=0.3, tracking_uri=store_uri)
        assert server.calls == 10 + 3
        more = replay_judge(run.run_id, times=1, share=0.31, tracking_uri=store_uri)
        every = replay_judge(run.run_id, times=1, tracking_uri=store_uri)
    ids = [[row.id for row in made.rows] for made in (some, more, every)]
    assert [len(each) for each in ids] == [3, 4, 10]
    assert set(ids[0]) < set(ids[1]) < set(ids[2])
    assert [each == sorted(each) for each in ids] == [True, True, True]
    assert (some.population, some.left_out) == (10, 0)
    assert some.noise == every.noise == pytest.approx(Z * sqrt(2 * 2 / 10))


@pytest.mark.parametrize("share", [0, -0.1, 1.01])
def test_a_share_has_bounds(store_uri: str, share: float) -> None:
    with pytest.raises(UsageError, match=f"share is {share}; write a number above 0, up to 1"):
        replay_judge("nothing", share=share, tracking_uri=store_uri)


def test_rows_without_a_score_are_left_out(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"a": f"Answer a. {OPTIONS}", "b": "Answer b.", "c": None})
    with serving(behaviour=graded({"Answer a.": [7, 7], "Answer b.": ["no"]})):
        run = run_eval(golden, target=target, judge=JUDGE, rubric="reasoning", tracking_uri=store_uri, traces="off")
        made = replay_judge(run.run_id, times=1, tracking_uri=store_uri)
    assert ([row.id for row in made.rows], made.left_out) == (["a"], 2)


def test_answers_are_judged_again_too(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=scored({"Answer a.": [0.8, 0.85, 0.7], "Answer b.": [0.5, 0.5, 0.5]})):
        run = judged_run(tmp_path, store_uri, rubric="answer")
        made = replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    assert (made.score, made.share_within, made.num_changed) == ("overall_score", 3 / 4, 1)
    assert [row.tier for row in made.rows] == [None, None]
    assert made.noise == pytest.approx(Z * sqrt(2 * 0.0175 / 3 / 2**2))


def test_what_the_judge_does_not_decide_is_no_change(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"a": "Answer a."}, expected_tools=["search"])
    with serving(behaviour=scored({"Answer a.": [0.9]})):
        run = run_eval(golden, target=target, judge=JUDGE, tracking_uri=store_uri, traces="off")
        made = replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    assert [row["passed"] for row in run.rows] == [False]
    assert (made.num_changed, made.noise) == (0, 0)


def test_of_trials_the_one_response_that_is_kept_is_judged(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded({"Answer a.": [8, 8.6, 8.2, 8.1, 8.3]})) as server:
        run = judged_run(tmp_path, store_uri, ("Answer a.",), trials=3)
        made = replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    assert server.calls == 5
    assert [row["reasoning_score"] for row in run.rows] == [pytest.approx((80 + 86 + 82) / 3)]
    assert [(row.score, row.again) for row in made.rows] == [(80, (81, 83))]


def test_the_weights_of_the_run_make_the_scores(store_uri: str, tmp_path: Path) -> None:
    replies = [json.loads(graded_reply(0)) for _ in range(2)]
    replies[0]["dimensions"]["crux"], replies[1]["dimensions"]["crux"] = 8, 9
    weights = (
        "h_count=0,oscillation=0,crux=1,epistemic_honesty=0,process_integrity=0,actionability=0,brevity=0,format=0"
    )
    with serving(*map(json.dumps, replies)):
        run = judged_run(tmp_path, store_uri, ("Answer a.",), rubric_weights=weights)
        made = replay_judge(run.run_id, times=1, tracking_uri=store_uri)
    assert [(row.score, row.again) for row in made.rows] == [(80, (90,))]


def test_a_panel_is_asked_again_as_a_panel(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded({"Answer a.": [7, 7.4, 7.2, 7.8]})) as server:
        run = judged_run(tmp_path, store_uri, ("Answer a.",), judge=[JUDGE, "openai:gpt-4o"])
        made = replay_judge(run.run_id, times=1, tracking_uri=store_uri)
    assert server.calls == 4
    assert made.judge == "openai:gpt-4o-mini+openai:gpt-4o"
    assert [(row.score, row.again) for row in made.rows] == [(72, (75,))]


OWN = "given = iter([0.5, 0.9, 0.7])\ndef judge(question, response):\n    return {'overall_score': next(given)}\n"


def test_a_function_of_ones_own_can_be_asked_again(store_uri: str, tmp_path: Path) -> None:
    Path("replayed_judge.py").write_text(OWN)
    run = judged_run(tmp_path, store_uri, ("Answer a.",), judge="replayed_judge:judge", rubric="answer")
    made = replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    assert [(row.score, row.again) for row in made.rows] == [(0.5, (0.5, 0.9))]  # a new process begins anew


def test_recorded_verdicts_of_a_model_are_refused_too(store_uri: str, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "labels.jsonl", [{"id": "a", "overall_score": 0.5}], judge="openai:gpt-4o")
    run = judged_run(tmp_path, store_uri, ("Answer a.",), judge=f"recorded:{labels}", rubric="answer")
    with serving(scored_reply(1)) as server, pytest.raises(UsageError, match="verdicts that were recorded"):
        replay_judge(run.run_id, tracking_uri=store_uri)
    assert server.calls == 0
    assert children(store_uri, run.run_id) == []


def test_another_prompt_is_refused(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded()) as server:
        run = judged_run(tmp_path, store_uri)
        older = run.signature.model_copy(update={"judge_prompt": "0123456789abcdef"})
        mlflow.MlflowClient(store_uri).set_tag(run.run_id, "evaltrack.signature", older.model_dump_json())
        with pytest.raises(UsageError) as refused:
            replay_judge(run.run_id, tracking_uri=store_uri)
    assert server.calls == 2
    prompt = run.signature.judge_prompt
    assert str(refused.value) == f"the judge's prompt was 0123456789abcdef and is {prompt}; evaluate again"


def test_a_run_that_nobody_judged_is_refused(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"a": "Answer a."}, expected_chunks=["x"])
    run = run_eval(golden, target=target, judge="none", tracking_uri=store_uri, traces="off")
    with pytest.raises(UsageError, match="holds no judged response; evaluate with `judge=` first"):
        replay_judge(run.run_id, tracking_uri=store_uri)
    with pytest.raises(UsageError, match="there is no MLflow run `nothing`"):
        replay_judge("nothing", tracking_uri=store_uri)
    with mlflow.start_run() as foreign:
        pass
    with pytest.raises(UsageError, match="is not an evaluation of evaltrack"):
        replay_judge(foreign.info.run_id, tracking_uri=store_uri)


@pytest.mark.parametrize("times", [0, -1, 101])
def test_times_have_bounds(store_uri: str, times: int) -> None:
    with pytest.raises(UsageError, match=f"times is {times}; write a number from 1 to 100"):
        replay_judge("nothing", times=times, tracking_uri=store_uri)


def test_what_stands_in_the_way_is_named(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(behaviour=graded()):
        run = judged_run(tmp_path, store_uri)
    with serving(behaviour=quota()), pytest.raises(InconclusiveError, match="quota"):
        replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    assert children(store_uri, run.run_id) == []
    with pytest.raises(UsageError, match="set OPENAI_API_KEY or OPENAI_BASE_URL first"):
        replay_judge(run.run_id, tracking_uri=store_uri)
    here = Path.cwd()
    monkeypatch.chdir(tmp_path)
    with serving(behaviour=graded()), pytest.raises(UsageError, match=f"the run was started in {here}; go there first"):
        replay_judge(run.run_id, tracking_uri=store_uri)


def test_the_command_line(store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(behaviour=graded()):
        run = judged_run(tmp_path, store_uri)
        assert cli("judge", "replay", run.run_id, "--times", "2") == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown[0] == "openai:gpt-4o-mini: 2 responses judged 2 times again, 120 tokens"
        assert shown[1] == "within 5 % of the run's score: 75.0 %"
        assert shown[3:] == [
            "changed tier or outcome: 0 of 2",
            "noise of the judge: two runs' means differ by up to 5.544 by it alone (95 %)",
            "  b: 50.000, again 50.000, 56.000",
            "  a: 70.000, again 72.000, 74.000",
        ]
        assert cli("judge", "replay", run.run_id, "--times", "2", "--output", "json") == 0
        printed = json.loads(capsys.readouterr().out)
        assert (printed["schema"], printed["judge_tokens"], printed["times"]) == ("evaltrack.replay/1", 0, 2)
        assert cli("judge", "replay", run.run_id, "--times", "0") == 2
        assert "Error: times is 0; write a number from 1 to 100" in capsys.readouterr().err
