"""Baselines in a real MLflow store, and the gate on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pytest

import evaltrack
from evaltrack import RunResult, compare_runs, run_eval
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.tracking.baselines import clear_baseline, get_baseline, list_baselines, set_baseline
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.store import connect
from tests.api.test_evaluate import QUESTIONS, golden
from tests.in_process import called
from tests.judging import scored_reply, serving, store_in
from tests.small_targets import broken, good, worse
from tests.stores import copy_store


@dataclass(frozen=True)
class Made:
    golden: Path
    folder: Path
    runs: dict[str, RunResult]


@pytest.fixture(scope="module")
def made(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Evaluations of one golden set: at k=3, the baseline, the same again, one worse, one with a failure."""
    path, folder = golden(tmp_path_factory.mktemp("golden")), tmp_path_factory.mktemp("made")
    targets = {"baseline": good, "same": good, "worse": worse, "broken": broken}
    with store_in(folder, empty_database) as uri:
        options: dict[str, Any] = {"tracking_uri": uri, "traces": "off"}
        made = {"three": run_eval(path, k=3, target=good, **options)}
        made |= {name: run_eval(path, target=ask, **options) for name, ask in targets.items()}
        yield Made(path, folder, made)


@pytest.fixture
def runs(made: Made, store_uri: str) -> dict[str, RunResult]:
    copy_store(made.folder, Path(store_uri.removeprefix("sqlite:///")).parent)
    return made.runs


def test_each_promotion_is_kept_with_who_when_and_why(store_uri: str, runs: dict[str, RunResult]) -> None:
    """One experiment tag holds the last one."""
    store = connect(store_uri)
    made = [
        set_baseline(store, find_evaluation(store, runs[name].run_id), reason)
        for name, reason in (("baseline", "first"), ("same", "second"), ("baseline", "third"))
    ]
    assert (made[0].reason, made[0].golden, bool(made[0].by), made[0].at[:2]) == ("first", "small", True, "20")
    assert get_baseline(store, "0", "small") == made[-1]
    assert list_baselines(store, "0") == made[-1:]

    clear_baseline(store, "0", "small")
    assert get_baseline(store, "0", "small") is None
    with pytest.raises(UsageError, match="has no baseline"):
        clear_baseline(store, "0", "small")


def test_a_golden_set_of_any_name_has_a_baseline(store_uri: str, tmp_path: Path) -> None:
    store, names = connect(store_uri), ["it's #1 100%", "it's :23:1 100%", "é.v2 (a,b)"]
    for name in names:
        file = tmp_path / f"{name}.jsonl"
        golden(tmp_path).replace(file)
        first, second = (run_eval(file, target=good, tracking_uri=store_uri, traces="off") for _ in range(2))
        set_baseline(store, find_evaluation(store, first.run_id))
        compared = compare_runs(golden=name, tracking_uri=store_uri)
        assert (compared.baseline.run_id, compared.candidate.run_id) == (first.run_id, second.run_id)
    assert [each.golden for each in list_baselines(store, "0")] == sorted(names)
    for name in names:
        clear_baseline(store, "0", name)
    assert list_baselines(store, "0") == []


def test_only_a_finished_fully_measured_run_makes_a_baseline(store_uri: str, runs: dict[str, RunResult]) -> None:
    store = connect(store_uri)
    partly = find_evaluation(store, runs["broken"].run_id)
    with pytest.raises(UsageError, match=r"1 of 3 questions .* ended in errors; a baseline should be fully measured"):
        set_baseline(store, partly)
    assert set_baseline(store, partly, force=True).run_id == partly.run_id

    store.client.update_run(runs["same"].run_id, status="FAILED")
    with pytest.raises(UsageError, match="is FAILED; only a FINISHED run makes a baseline"):
        set_baseline(store, find_evaluation(store, runs["same"].run_id))


def test_a_tag_that_somebody_else_wrote_is_passed_over(store_uri: str) -> None:
    store = connect(store_uri)
    store.client.set_experiment_tag("0", "evaltrack.baseline.small", "nonsense")
    assert list_baselines(store, "0") == []


def test_the_description_says_how_the_last_comparison_ended(store_uri: str, runs: dict[str, RunResult]) -> None:
    """Verdict, reasons and links stand before what the run said of itself; comparing again replaces them."""
    client = mlflow.MlflowClient(store_uri)
    run_id, baseline = runs["worse"].run_id, runs["baseline"].run_id
    own = client.get_run(run_id).data.tags["mlflow.note.content"]

    compare_runs(run_id, baseline, tracking_uri=store_uri)
    described = client.get_run(run_id).data.tags["mlflow.note.content"]
    assert described.startswith(
        "**Regression: 1 question broke, 0 were fixed. Pass rate 100.0 % → 66.7 %.** compared with "
    )
    assert "- 1 question broke" in described
    assert f"[Comparison](#/experiments/0/runs/{run_id}/artifacts/comparison.html)" in described
    assert "Side by side" not in described, "without traces MLflow's own view shows nothing"
    assert described.endswith(f"\n* * *\n\n{own}")
    data = client.get_run(run_id).data
    result = json.loads(data.tags["evaltrack.compare.result"])
    assert (result["baseline"], result["broke"], result["fixed"], bool(result["cause"])) == (baseline, 1, 0, True)
    assert (data.metrics["broke"], data.metrics["fixed"]) == (1, 0)
    assert {"comparison.json", "comparison.md"} <= {item.path for item in client.list_artifacts(run_id)}

    client.set_tag(run_id, "mlflow.note.content", f"{described}\nadded by hand")
    compare_runs(run_id, baseline, allow_flips=3, max_drop=["recall_at_k=off", "mrr=off"], tracking_uri=store_uri)
    again = client.get_run(run_id).data.tags["mlflow.note.content"]
    assert again.startswith(
        "**No regression: 1 question broke, 0 were fixed. Pass rate 100.0 % → 66.7 %.** compared with "
    )
    assert again.endswith(f"\n* * *\n\n{own}\nadded by hand")
    assert again.count("compared with") == described.count("compared with")

    client.set_tag(run_id, "mlflow.note.content", "x" * 7990)  # nothing that somebody wrote is cut for the verdict
    compare_runs(run_id, baseline, tracking_uri=store_uri)
    tags = client.get_run(run_id).data.tags
    assert tags["mlflow.note.content"] == "x" * 7990
    assert tags["evaltrack.compare.verdict"] == "regression"


def test_without_options_the_newest_run_is_held_against_the_baseline(
    store_uri: str, runs: dict[str, RunResult], tmp_path: Path
) -> None:
    env = {"MLFLOW_TRACKING_URI": store_uri}
    none = called("compare", cwd=tmp_path, env=env)
    assert none.returncode == 2
    assert "golden set `small` has no baseline in this experiment; set one" in none.stderr

    set_ = called("baseline", "set", runs["baseline"].run_id, "--reason", "start", cwd=tmp_path, env=env)
    assert set_.returncode == 0
    assert "start" in called("baseline", "show", "small", cwd=tmp_path, env=env).stdout
    newest = called("compare", "--output", "json", cwd=tmp_path, env=env)
    told = json.loads(newest.stdout)
    assert (newest.returncode, told["verdict"]) == (3, "unknown")
    assert told["lost"][0]["id"] == "b"


def test_a_run_of_others_or_one_that_goes_on_is_not_compared(store_uri: str, runs: dict[str, RunResult]) -> None:
    client = mlflow.MlflowClient(store_uri)
    base = runs["baseline"].run_id
    with pytest.raises(UsageError, match="is not an evaluation of evaltrack"):
        compare_runs(client.create_run("0").info.run_id, base, tracking_uri=store_uri)
    client.update_run(runs["worse"].run_id, status="RUNNING")
    with pytest.raises(InconclusiveError, match="is still RUNNING; wait until it has ended"):
        compare_runs(runs["worse"].run_id, base, tracking_uri=store_uri)


def test_a_long_reason_is_cut(store_uri: str, runs: dict[str, RunResult]) -> None:
    store = connect(store_uri)
    made = set_baseline(store, find_evaluation(store, runs["same"].run_id), "\x01" * 6000)
    assert get_baseline(store, "0", "small") == made
    assert set(made.reason) == {"\x01", "…"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, False), ({"model": "gpt-4o"}, True), ({"model": "gpt-4o", "trials": 3}, False), ({"judge": "openai"}, True)],
)
def test_a_single_trial_of_a_model_is_told(
    store_uri: str, tmp_path: Path, settings: dict[str, Any], said: bool
) -> None:
    heard: list[str] = []
    with serving(scored_reply(0.9)):
        run_eval(golden(tmp_path, QUESTIONS[:1]), target=good, traces="off", **settings)
    evaltrack.set_baseline(say=heard.append)
    why = "evaluate it with --trials 3, so that compare can tell flaky questions from broken ones"
    assert [why in each for each in heard] == [True] * said
