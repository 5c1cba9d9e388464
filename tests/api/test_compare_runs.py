from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pyarrow.parquet as pq
import pytest

from evaltrack import Comparison, Response, RunResult, Source, compare_runs, run_eval
from evaltrack.errors import TrackingError, UsageError
from evaltrack.report.comparison_text import comparison_text
from evaltrack.report.comparison_words import reasons
from evaltrack.tracking.tags import ROWS_TAG
from tests.files import put
from tests.judging import cli, store_in


def golden(folder: Path) -> Path:
    return put(folder / "four.jsonl", [{"id": n, "question": f"q {n}", "expected_chunks": [f"c{n}"]} for n in range(4)])


def evaluated(folder: Path, uri: str, k: int = 5, **lost: object) -> RunResult:
    """A run in which question 0 is answered by what `lost` says instead: sources, or nothing of them."""

    def target(question: str, k: int) -> Response:
        number = question.removeprefix("q ")
        if lost and number == "0":
            return Response.model_validate({"answer": "x", **lost})
        return Response(answer="x", sources=(Source(chunk_id=f"c{number}"),))

    return run_eval(golden(folder), k=k, target=target, traces="off", tracking_uri=uri)


Kept = tuple[str, dict[str, RunResult]]


@pytest.fixture(scope="module")
def kept(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("kept")
    made: dict[str, Any] = {"good": {}, "lost": {"sources": None}, "bad": {"sources": [{"chunk_id": "other"}]}}
    with store_in(folder, empty_database) as uri:
        yield uri, {name: evaluated(folder, uri, **each) for name, each in {**made, "of k 3": {"k": 3}}.items()}


def compared(store_uri: str, good: RunResult, bad: RunResult, **options: object) -> Comparison:
    made: Comparison = compare_runs(bad.run_id, good.run_id, tracking_uri=store_uri, **options)  # type: ignore[arg-type]
    return made


def test_what_is_not_measured_any_more_is_lost(kept: Kept) -> None:
    uri, runs = kept
    made = compared(uri, runs["good"], runs["lost"])
    assert (made.verdict, [change.now for change in made.by_fate["lost"]]) == ("unknown", ["not measured"])
    assert "0 (four) was lost: the target no longer reports sources" in comparison_text(made)


def test_recorded_files_of_the_same_name_are_told_apart(store_uri: str, tmp_path: Path) -> None:
    answers, verdicts = tmp_path / "answers.jsonl", tmp_path / "verdicts.jsonl"

    def judged(answer: str, score: float) -> RunResult:
        lines = [{"id": n, "answer": answer, "sources": [{"chunk_id": f"c{n}"}]} for n in range(4)]
        opinions = [{"id": n, "overall_score": score, "judge": "us"} for n in range(4)]
        for path, content in ((answers, lines), (verdicts, opinions)):
            put(path, content)
        names = {"target": f"recorded:{answers}", "judge": f"recorded:{verdicts}"}
        return run_eval(golden(tmp_path), **names, traces="off", tracking_uri=store_uri)  # type: ignore[arg-type]

    first, again, other, worse = judged("x", 0.9), judged("x", 0.9), judged("y", 0.9), judged("y", 0.8)
    pairs = ((first, again), (first, other), (other, worse))
    names = [[each.name for each in compared(store_uri, *pair).differences] for pair in pairs]
    assert names == [[], ["recorded responses"], ["recorded verdicts"]]
    assert "What differs: different recorded responses" in comparison_text(compared(store_uri, first, other))


def test_the_newest_run_is_of_the_experiment_that_is_chosen(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"sources": [{"chunk_id": "other"}]}
    first, second = (evaluated(tmp_path, store_uri) for _ in range(2))
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "pull request")
    broken = evaluated(tmp_path, store_uri, **wrong)
    by_variable = compare_runs(baseline=first.run_id, tracking_uri=store_uri, max_reruns=0)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME")
    by_name = compare_runs(baseline=first.run_id, tracking_uri=store_uri, experiment="pull request", max_reruns=0)
    by_baseline = compare_runs(baseline=first.run_id, tracking_uri=store_uri, max_reruns=0)
    candidates = [made.candidate.run_id for made in (by_variable, by_name, by_baseline)]
    assert candidates == [broken.run_id, broken.run_id, second.run_id]
    assert (by_name.verdict, by_baseline.verdict) == ("regression", "ok")
    with pytest.raises(UsageError, match="no finished run of golden set `four`"):
        compare_runs(baseline=broken.run_id, tracking_uri=store_uri)
    mlflow.MlflowClient(store_uri).create_experiment("empty")
    with pytest.raises(UsageError, match="no finished run of golden set `four` in experiment `empty`"):
        compare_runs(baseline=first.run_id, tracking_uri=store_uri, experiment="empty")


def test_a_gate_without_a_rule_is_no_pass(kept: Kept) -> None:
    store_uri, runs = kept
    good, other = runs["good"], runs["of k 3"]
    made = compared(store_uri, good, other, ignore=["k"])
    assert made.verdict == "unknown"
    assert reasons(made) == ["no rule could be applied: their metrics were not measured on both sides"]
    tags = mlflow.MlflowClient(store_uri).get_run(other.run_id).data.tags
    assert tags["evaltrack.compare.verdict"] == "unknown"
    assert json.loads(tags["evaltrack.compare.result"]) == {
        "baseline": good.run_id,
        "broke": None,
        "fixed": None,
        "change": None,
        "cause": "",
    }


def test_the_newest_run_of_the_set_that_is_named(
    store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, number in (("first", 2), ("second", 2), ("the newest is its baseline", 1)):
        golden = tmp_path / f"{name}.jsonl"
        golden.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
        runs = [
            run_eval(golden, target=lambda q, k: ["a"], tracking_uri=store_uri, traces="off") for _ in range(number)
        ]
        assert cli("baseline", "set", runs[0].run_id) == 0
    capsys.readouterr()
    assert cli("compare", "--no-log") == 2
    refused = capsys.readouterr().err
    assert "2 golden sets have runs newer than their baselines (first, second); name one: evaltrack compare" in refused
    for name in ("first", "second"):
        assert cli("compare", str(tmp_path / f"{name}.jsonl"), "--no-log", "--output", "table") == 0
        assert f"{name}, 1 question in both runs" in capsys.readouterr().out


def test_a_table_that_lacks_rows_is_damaged(store_uri: str, tmp_path: Path) -> None:
    good, bad = evaluated(tmp_path, store_uri), evaluated(tmp_path, store_uri, sources=[{"chunk_id": "other"}])
    client = mlflow.MlflowClient(store_uri)
    path = Path(client.download_artifacts(bad.run_id, "per_question.parquet", str(tmp_path)))
    pq.write_table(pq.read_table(path).slice(1), path)
    client.log_artifact(bad.run_id, str(path))
    client.delete_tag(bad.run_id, ROWS_TAG)  # as in a run of before
    with pytest.raises(TrackingError, match=r"per_question.parquet of run .* is damaged, .*: it holds 3 rows, and the"):
        compared(store_uri, good, bad)
