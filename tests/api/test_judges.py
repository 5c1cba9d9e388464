from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Run

from evaltrack import RunResult, run_eval
from evaltrack.api.judges import judges_agreement, replay_judge
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.judges.reliability import COUNTED, LABELS, SCALES, JudgesAgreement
from evaltrack.metrics.rubric import RubricWeights, grade
from evaltrack.records import Question, Response
from evaltrack.report.schemas.form import record_data
from evaltrack.stats.agreement import label_agreement, numeric_agreement
from tests.files import data, put
from tests.judging import (
    JUDGE,
    OPTIONS,
    RESPONSES,
    SHOWCASE,
    by_text,
    cli,
    golden_set,
    graded_reply,
    labels_file,
    lines,
    observed,
    recordings,
    scored_reply,
    serving,
    store_in,
)
from tests.openai_behaviours import Behaviour, quota

RESAMPLES = 100
FIRST = RESPONSES / "middling.verdicts.jsonl"
SECOND = RESPONSES / "middling.second.jsonl"


@dataclass(frozen=True)
class Judged:
    """The middling answers of the showcase as a run judged by the reference, and as one judged by the second reader."""

    uri: str
    reference: RunResult
    second: RunResult


@pytest.fixture(scope="module")
def judged(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    with store_in(tmp_path_factory.mktemp("agreeing"), empty_database) as uri:
        yield Judged(uri, showcase_run(uri, f"recorded:{FIRST}"), showcase_run(uri, f"recorded:{SECOND}"))


def showcase_run(uri: str, judge: str, **settings: Any) -> RunResult:
    asked = {"target": f"recorded:{RESPONSES / 'middling.jsonl'}", "rubric": "reasoning", "traces": "off"}
    return run_eval(SHOWCASE, judge=judge, tracking_uri=uri, **{**asked, **settings})


def agreed(judged: Judged, **options: Any) -> JudgesAgreement:
    return judges_agreement(judged.reference.run_id, resamples=RESAMPLES, tracking_uri=judged.uri, **options)


def values(row: dict[str, Any], weights: RubricWeights | None = None) -> dict[str, Any]:
    """Everything comparable in a reference verdict, by the rubric itself."""
    seen = observed(row)
    graded = grade(seen, weights or RubricWeights())
    return {
        **seen.dimensions.model_dump(),
        "reasoning_score": graded.score,
        "hypotheses": seen.hypotheses,
        "shifts": seen.shifts,
        "tier": graded.tier,
        "hard_fails": "+".join(graded.hard_fails) or "none",
        "crux_treatment": seen.crux_treatment,
        "uncertainty_treatment": seen.uncertainty_treatment,
        "mode": seen.mode,
    }


def by_hand(kind: str = "middling", weights: RubricWeights | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    return tuple(  # type: ignore[return-value]
        {row["id"]: values(row, weights) for row in lines(f"{kind}.{part}.jsonl")} for part in ("verdicts", "second")
    )


def test_the_figures_are_those_of_the_coefficients_called_by_hand(judged: Judged) -> None:
    made = agreed(judged, labels=SECOND)
    own, other = by_hand()
    ids = sorted(own)
    assert (made.judge, made.other, made.rubric) == ("evaltrack-reference", "second-reader", "reasoning")
    assert set(made.numbers) == {
        "reasoning_score",
        "hypotheses",
        "shifts",
        *observed(lines("strong.verdicts.jsonl")[0]).dimensions.model_dump(),
    }
    for name, found in made.numbers.items():
        sides = [[side[key][name] for key in ids] for side in (own, other)]
        tolerance = 5 if name == "reasoning_score" else 1
        assert found == numeric_agreement(*sides, tolerance=tolerance, resamples=RESAMPLES), name
    assert set(made.labels) == {"tier", "hard_fails", "crux_treatment", "uncertainty_treatment", "mode"}
    for name, found in made.labels.items():
        sides = [[side[key][name] for key in ids] for side in (own, other)]
        assert found == label_agreement(*sides, resamples=RESAMPLES), name
    assert made.kappa == made.numbers["reasoning_score"].figures["quadratic_kappa"].value
    assert made.kappa is not None
    assert 0.5 < made.kappa < 1


def test_two_judges_agree_where_enough_responses_lie_within_the_tolerance(judged: Judged) -> None:
    own, other = by_hand()
    gaps = [abs(own[key]["reasoning_score"] - other[key]["reasoning_score"]) for key in own]
    near = sum(gap <= 2 for gap in gaps) / len(gaps)
    assert 0 < near < 1
    made = agreed(judged, labels=SECOND, tolerance=0.02, needed=near)
    assert (made.within.tolerance, made.within.n, made.within.share) == (0.02, 30, pytest.approx(near))
    assert made.within.agree
    assert (made.tolerances["crux"], made.tolerances["shifts"]) == (0.2, 1)
    assert not agreed(judged, labels=SECOND, tolerance=0.02, needed=near + 0.01).within.agree


def test_only_the_same_answers_are_held_against_each_other(judged: Judged, tmp_path: Path) -> None:
    kept, others = lines("middling.jsonl")[:20], lines("flawed.jsonl")[20:]
    given = tmp_path / "mixed.jsonl"
    put(given, [*kept, *others])
    mixed = showcase_run(judged.uri, f"recorded:{SECOND}", target=f"recorded:{given}")
    labelled, other = agreed(judged, labels=SECOND), agreed(judged, other_run=judged.second.run_id)
    assert (other.numbers, other.labels) == (labelled.numbers, labelled.labels)
    score = agreed(judged, other_run=mixed.run_id).numbers["reasoning_score"]
    assert (score.n, score.without_b) == (20, 10)
    flawed = showcase_run(judged.uri, **recordings("flawed"))
    with pytest.raises(UsageError, match="no question was judged on both sides"):
        agreed(judged, other_run=flawed.run_id)


def test_both_sides_are_scored_by_the_weights_of_the_run(judged: Judged) -> None:
    text = "crux=0.05,brevity=0.15"
    heavy = showcase_run(judged.uri, f"recorded:{FIRST}", rubric_weights=text)
    made = judges_agreement(heavy.run_id, labels=SECOND, resamples=RESAMPLES, tracking_uri=judged.uri)
    through_a_run = judges_agreement(
        heavy.run_id, other_run=judged.second.run_id, resamples=RESAMPLES, tracking_uri=judged.uri
    )
    own, other = by_hand(weights=RubricWeights.parse(text))
    sides = [[side[key]["reasoning_score"] for key in sorted(own)] for side in (own, other)]
    assert made.numbers["reasoning_score"] == numeric_agreement(*sides, tolerance=5, resamples=RESAMPLES)
    assert through_a_run.numbers == made.numbers


ANSWERS = {key: f"Answer {key}." for key in "abcdef"}
OWN = {"a": 0.9, "b": 0.8, "c": 0.3, "d": 0.75, "e": 1.0, "f": 0.1}
PEOPLE = {"a": 0.8, "b": 0.3, "c": 0.4, "d": 0.7, "e": 1.0, "f": 0.0}


def scores(given: dict[str, float], parts: bool = False) -> list[dict[str, Any]]:
    names = ("overall_score", "accuracy", "completeness", "relevance") if parts else ("overall_score",)
    return [{"id": key, **dict.fromkeys(names, score)} for key, score in given.items()]


def answer_run(uri: str, folder: Path, rows: list[dict[str, Any]], **fields: Any) -> RunResult:
    golden, target = golden_set(folder, ANSWERS, **fields)
    judge = labels_file(folder / "verdicts.jsonl", rows, judge="model")
    return run_eval(golden, target=target, judge=f"recorded:{judge}", tracking_uri=uri, traces="off")


def test_judges_of_answers_are_compared_too(store_uri: str, tmp_path: Path) -> None:
    """By overall score within 0.1 and its parts, and by whether the answer passes at the run's threshold."""
    run = answer_run(store_uri, tmp_path, scores(OWN, parts=True))
    labels = labels_file(tmp_path / "people.jsonl", scores(PEOPLE))
    made = judges_agreement(run.run_id, labels=labels, resamples=RESAMPLES, tracking_uri=store_uri)
    sides = [list(side.values()) for side in (OWN, PEOPLE)]
    assert set(made.numbers) == set(SCALES["answer"])
    found = made.numbers["overall_score"]
    assert found == numeric_agreement(*sides, tolerance=0.1, resamples=RESAMPLES)
    assert found.figures["share_within"].value == 5 / 6
    assert [(each.id, each.score, each.other) for each in made.disagreements] == [("b", 0.8, 0.3)]
    assert set(made.labels) == set(LABELS["answer"])
    outcomes = [["pass" if score >= 0.75 else "fail" for score in side] for side in sides]
    assert made.labels["outcome"] == label_agreement(*outcomes, resamples=RESAMPLES)
    assert (made.numbers["accuracy"].n, made.numbers["accuracy"].without_b) == (0, 6)
    assert made.labels["declined"].n == 0
    json.dumps(record_data(made, "agreement"), allow_nan=False)


def test_negatives_are_compared_by_whether_they_were_seen_to_decline(
    store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = answer_run(
        store_uri, tmp_path, [{"id": key, "declined": key in "abcd"} for key in ANSWERS], expected_chunks=[]
    )
    people = [{"id": key, "declined": key in "abc", "overall_score": 0.5} for key in ANSWERS]
    labels = labels_file(tmp_path / "people.jsonl", people)
    made = judges_agreement(run.run_id, labels=labels, resamples=RESAMPLES, tracking_uri=store_uri)
    sides = [[key in seen for key in ANSWERS] for seen in ("abcd", "abc")]
    assert made.labels["declined"] == label_agreement(*sides, resamples=RESAMPLES)
    assert (made.numbers["overall_score"].n, made.kappa, made.disagreements) == (0, None, ())
    assert cli("judge", "agree", run.run_id, "--labels", labels) == 0
    assert re.search(r"\ndeclined +6 ", capsys.readouterr().out)
    same = answer_run(store_uri, tmp_path / "same", scores(dict.fromkeys(ANSWERS, 0.9)))
    assert cli("judge", "agree", same.run_id, "--labels", tmp_path / "same/verdicts.jsonl") == 0
    assert "not defined (" in capsys.readouterr().out


def test_what_is_refused(judged: Judged, tmp_path: Path) -> None:
    """Both or neither of labels and run, no share, nothing in common, bad labels, runs that were judged otherwise."""
    rows = lines("middling.second.jsonl")
    bad = [{**rows[0], "dimensions": {**rows[0]["dimensions"], "crux": 11}}]
    files = {
        "other": labels_file(tmp_path / "other.jsonl", [{**row, "id": f"x-{row['id']}"} for row in rows]),
        "answers": labels_file(tmp_path / "answers.jsonl", [{"id": row["id"], "overall_score": 0.5} for row in rows]),
        "bad": labels_file(tmp_path / "bad.jsonl", bad),
    }
    answer = answer_run(judged.uri, tmp_path, scores(OWN))
    golden, target = golden_set(tmp_path, ANSWERS, expected_chunks=["x"])
    unjudged = run_eval(golden, target=target, judge="none", tracking_uri=judged.uri, traces="off")
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, "name the labels, or another run, to compare the judge with"),
        ({"labels": SECOND, "other_run": "x"}, "name the labels, or another run, to compare the judge with"),
        ({"labels": SECOND, "tolerance": 5}, "tolerance is 5; write a number from 0 to 1"),
        ({"labels": SECOND, "needed": 5}, "share is 5; write a number from 0 to 1"),
        ({"labels": files["other"]}, "no question was judged on both sides: evaltrack-reference and"),
        ({"labels": files["answers"]}, "no question was judged on both sides: evaltrack-reference and"),
        ({"labels": files["bad"]}, "bad.jsonl:1: `dimensions.crux` is too large; write at most 10"),
        ({"other_run": answer.run_id}, "was judged by the rubric answer, the other by reasoning"),
        ({"other_run": unjudged.run_id}, "holds no verdict; evaluate with `judge=` first"),
        ({"other_run": "nothing"}, "there is no MLflow run `nothing`"),
    ]
    for options, message in refused:
        with pytest.raises(UsageError) as raised:
            agreed(judged, **options)
        assert message in str(raised.value)


def test_the_command_line(judged: Judged, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", judged.uri)
    monkeypatch.setenv("COLUMNS", "200")
    run = judged.reference.run_id
    assert cli("judge", "agree", run, "--labels", SECOND, "--output", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == "evaltrack.agreement/1"
    assert set(printed["numbers"]) == {*SCALES["reasoning"], *COUNTED["reasoning"]}
    assert printed["labels"]["tier"]["n"] == 30
    gaps = [each["gap"] for each in printed["disagreements"]]
    assert gaps == sorted(gaps, reverse=True)

    assert cli("judge", "agree", run, "--run", judged.second.run_id) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"evaltrack-reference against second-reader (run {judged.second.run_id[:8]})\n")
    for name in (*SCALES["reasoning"], *COUNTED["reasoning"], *LABELS["reasoning"]):
        assert f"\n{name} " in shown
    assert f"further apart than the tolerance: {len(gaps)}" in shown or not gaps
    asked = ("judge", "agree", run, "--labels", SECOND, "--tolerance", "0.02")
    assert cli(*asked) == 0
    shown = capsys.readouterr().out
    within = agreed(judged, labels=SECOND, tolerance=0.02).within
    assert within.share is not None
    said = f"{round(30 * within.share)} of 30 responses ({100 * within.share:.1f} %) lie within it, all have to"
    assert f"agree within the tolerance of 0.02: no; {said}" in shown
    assert cli(*asked, "--share", "0.1", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out)["within"]["agree"]


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
    assert (made.num_verdicts, made.num_errors, made.left_out, made.judge_tokens) == (4, 0, 0, 4 * 30)
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


@pytest.mark.parametrize("what", data("api.json")["each_response_is_judged_again"], ids=lambda what: what[0])
def test_each_response_is_judged_again(store_uri: str, tmp_path: Path, what: list[Any]) -> None:
    _, behaviour, grades, settings, times, rows, changed = what
    with serving(behaviour={"graded": graded, "scored": scored}[behaviour](grades)) as server:
        run = judged_run(tmp_path, store_uri, tuple(grades), **settings)
        made = replay_judge(run.run_id, times=times, tracking_uri=store_uri)
        assert server.calls == sum(map(len, grades.values()))
        assert [[row.score, list(row.again), list(row.tiers_again)] for row in made.rows] == rows
        assert (made.num_changed, made.judge) == (changed, run.signature.judge)
        replay_judge(run.run_id, times=times, tracking_uri=store_uri)
        again = 0 if settings.get("verdict_cache", True) else times * len(rows)
        assert server.calls == sum(map(len, grades.values())) + again


def test_where_no_verdict_can_be_had_nothing_is_logged(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=graded({"Answer a.": [7, "no"], "Answer b.": [5, "no"]})):
        run = judged_run(tmp_path, store_uri)
        with pytest.raises(InconclusiveError) as error:
            replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    message = "none of 4 verdicts succeeded; the last failure: judge_error: "
    assert str(error.value).startswith(message)
    assert children(store_uri, run.run_id) == []


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


REPLAYED_BY_FUNCTION = (
    "given = iter([0.5, 0.9, 0.7])\ndef judge(question, response):\n    return {'overall_score': next(given)}\n"
)


def test_a_function_of_ones_own_can_be_asked_again(store_uri: str, tmp_path: Path) -> None:
    Path("replayed_judge.py").write_text(REPLAYED_BY_FUNCTION)
    run = judged_run(tmp_path, store_uri, ("Answer a.",), judge="replayed_judge:judge", rubric="answer")
    made = replay_judge(run.run_id, times=2, tracking_uri=store_uri)
    assert [(row.score, row.again) for row in made.rows] == [(0.5, (0.5, 0.9))]  # a new process begins anew


def test_a_run_with_no_judge_to_ask_again_is_refused(store_uri: str, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "labels.jsonl", [{"id": "a", "overall_score": 0.5}], judge="openai:gpt-4o")
    recorded = judged_run(tmp_path, store_uri, ("Answer a.",), judge=f"recorded:{labels}", rubric="answer")
    golden, target = golden_set(tmp_path, {"a": "Answer a."}, expected_chunks=["x"])
    unjudged = run_eval(golden, target=target, judge="none", tracking_uri=store_uri, traces="off")
    with serving(behaviour=graded()) as server:
        other = judged_run(tmp_path, store_uri)
        older = other.signature.model_copy(update={"judge_prompt": "0123456789abcdef"})
        mlflow.MlflowClient(store_uri).set_tag(other.run_id, "evaltrack.signature", older.model_dump_json())
        for run_id, message in {
            recorded.run_id: "recorded verdicts cannot be replayed",
            unjudged.run_id: "holds no judged response; evaluate with `judge=` first",
            other.run_id: f"prompt was 0123456789abcdef and is {other.signature.judge_prompt}; evaluate again",
        }.items():
            with pytest.raises(UsageError, match=re.escape(message)):
                replay_judge(run_id, tracking_uri=store_uri)
            assert children(store_uri, run_id) == []
    assert server.calls == 2


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
    with (
        serving(behaviour=graded()),
        pytest.raises(UsageError, match=f"the run was started in {here}; change to that folder first"),
    ):
        replay_judge(run.run_id, tracking_uri=store_uri)


def test_a_replay_by_the_command_line(store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(behaviour=graded()):
        run = judged_run(tmp_path, store_uri)
        assert cli("judge", "replay", run.run_id, "--times", "2") == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown[0] == "openai:gpt-4o-mini: 2 responses judged 2 times again, 120 tokens"
        assert shown[1] == "within 5 % of the run's score: 75.0 %"
        assert shown[3:] == [
            "changed tier or outcome: 0 of 2",
            "judge noise: the means of two runs differ by up to 5.544 (95 %)",
            "  b: 50.000, again 50.000, 56.000",
            "  a: 70.000, again 72.000, 74.000",
        ]
        assert cli("judge", "replay", run.run_id, "--times", "2", "--output", "json") == 0
        printed = json.loads(capsys.readouterr().out)
        assert (printed["schema"], printed["judge_tokens"], printed["times"]) == ("evaltrack.replay/1", 0, 2)
        for times in ("0", "101"):
            assert cli("judge", "replay", run.run_id, "--times", times) == 2
            assert f"Error: times is {times}; write a number from 1 to 100" in capsys.readouterr().err
