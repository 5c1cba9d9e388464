"""Two evaluations and their comparison, on a real store: verdicts that must not be a pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pyarrow.parquet as pq
import pytest

from evaltrack import Comparison, Response, RunResult, Source, compare_runs, run_eval, set_baseline
from evaltrack.errors import TrackingError, UsageError
from evaltrack.report.comparison.files import write_comparison
from evaltrack.report.comparison.rules import reasons
from evaltrack.report.comparison.terminal import comparison_text
from evaltrack.tracking.stored_rows import ROWS_TAG
from tests.judging import cli


def golden(folder: Path) -> Path:
    path = folder / "four.jsonl"
    lines = [{"id": n, "question": f"q {n}", "expected_chunks": [f"c{n}"]} for n in range(4)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def evaluated(folder: Path, uri: str, k: int = 5, **lost: object) -> RunResult:
    """A run in which question 0 is answered by what `lost` says instead: sources, or nothing of them."""

    def target(question: str, k: int) -> Response:
        number = question.removeprefix("q ")
        if lost and number == "0":
            return Response.model_validate({"answer": "x", **lost})
        return Response(answer="x", sources=(Source(chunk_id=f"c{number}"),))

    return run_eval(golden(folder), k=k, target=target, traces="off", tracking_uri=uri)


def compared(store_uri: str, good: RunResult, bad: RunResult, **options: object) -> Comparison:
    made: Comparison = compare_runs(bad.run_id, good.run_id, tracking_uri=store_uri, **options)  # type: ignore[arg-type]
    return made


def test_what_is_not_measured_any_more_is_lost(store_uri: str, tmp_path: Path) -> None:
    good, bad = evaluated(tmp_path, store_uri), evaluated(tmp_path, store_uri, sources=None)
    made = compared(store_uri, good, bad)
    assert (made.verdict, [change.now for change in made.by_fate["lost"]]) == ("unknown", ["not measured"])
    assert "0 (four) was lost: the target reports no sources now" in comparison_text(made)


def test_recorded_files_of_the_same_name_are_told_apart(store_uri: str, tmp_path: Path) -> None:
    answers, verdicts = tmp_path / "answers.jsonl", tmp_path / "verdicts.jsonl"

    def judged(answer: str, score: float) -> RunResult:
        lines = [{"id": n, "answer": answer, "sources": [{"chunk_id": f"c{n}"}]} for n in range(4)]
        opinions = [{"id": n, "overall_score": score, "judge": "us"} for n in range(4)]
        for path, content in ((answers, lines), (verdicts, opinions)):
            path.write_text("".join(json.dumps(each) + "\n" for each in content))
        names = {"target": f"recorded:{answers}", "judge": f"recorded:{verdicts}"}
        return run_eval(golden(tmp_path), **names, traces="off", tracking_uri=store_uri)  # type: ignore[arg-type]

    first, again, other, worse = judged("x", 0.9), judged("x", 0.9), judged("y", 0.9), judged("y", 0.8)
    pairs = ((first, again), (first, other), (other, worse))
    names = [[each.name for each in compared(store_uri, *pair).differences] for pair in pairs]
    assert names == [[], ["recorded responses"], ["recorded verdicts"]]
    assert "What differs: other recorded responses" in comparison_text(compared(store_uri, first, other))


def test_the_newest_run_is_of_the_experiment_that_is_chosen(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"sources": [{"chunk_id": "other"}]}
    first, second = (evaluated(tmp_path, store_uri) for _ in range(2))
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "pull request")
    broken = evaluated(tmp_path, store_uri, **wrong)
    by_variable = compare_runs(baseline=first.run_id, tracking_uri=store_uri)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME")
    by_name = compare_runs(baseline=first.run_id, tracking_uri=store_uri, experiment="pull request")
    by_baseline = compare_runs(baseline=first.run_id, tracking_uri=store_uri)
    candidates = [made.candidate.run_id for made in (by_variable, by_name, by_baseline)]
    assert candidates == [broken.run_id, broken.run_id, second.run_id]
    assert (by_name.verdict, by_baseline.verdict) == ("regression", "ok")
    with pytest.raises(UsageError, match="no finished run of golden set `four`"):
        compare_runs(baseline=broken.run_id, tracking_uri=store_uri)
    mlflow.MlflowClient(store_uri).create_experiment("empty")
    with pytest.raises(UsageError, match="no finished run of golden set `four` in experiment `empty` to compare"):
        compare_runs(baseline=first.run_id, tracking_uri=store_uri, experiment="empty")


def test_a_gate_without_a_rule_is_no_pass(store_uri: str, tmp_path: Path) -> None:
    good, other = evaluated(tmp_path, store_uri), evaluated(tmp_path, store_uri, k=3)
    made = compared(store_uri, good, other, ignore=["k"])
    assert made.verdict == "unknown"
    assert reasons(made) == ["no rule could be applied: what they are about was not measured on both sides"]
    tags = mlflow.MlflowClient(store_uri).get_run(other.run_id).data.tags
    assert tags["evaltrack.compare.verdict"] == "unknown"
    assert json.loads(tags["evaltrack.compare.result"]) == {
        "baseline": good.run_id,
        "broke": None,
        "fixed": None,
        "change": None,
        "cause": "",
    }


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("judge_score=5%", "Judge score was not measured on both sides, and has a rule"),
        ("four:judge_score=5%", "Judge score was not measured on both sides in four, and has a rule"),
    ],
)
def test_a_rule_that_cannot_be_applied_is_no_pass(store_uri: str, tmp_path: Path, rule: str, said: str) -> None:
    good = evaluated(tmp_path, store_uri)
    made = compared(store_uri, good, evaluated(tmp_path, store_uri), max_drop=[rule])
    assert (made.verdict, reasons(made)) == ("unknown", [said])


def test_a_green_gate_has_no_failed_test_case(store_uri: str, tmp_path: Path) -> None:
    good, bad = evaluated(tmp_path, store_uri), evaluated(tmp_path, store_uri, sources=[{"chunk_id": "other"}])
    rules = ["recall_at_k=off", "mrr=off"]
    made = compared(store_uri, good, bad, allow_flips=1, max_drop=rules)
    write_comparison(made, tmp_path / "out.xml")
    written = (tmp_path / "out.xml").read_text()
    assert made.verdict == "ok"
    assert 'failures="0"' in written.splitlines()[1]
    assert all(f'name="{number}: q {number}"' in written for number in range(4))
    blocked = compared(store_uri, good, bad, max_drop=rules)
    write_comparison(blocked, tmp_path / "out.xml")
    assert 'failures="3"' in (tmp_path / "out.xml").read_text().splitlines()[1]


def test_the_newest_run_of_the_set_that_is_named(
    store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):
        golden = tmp_path / f"{name}.jsonl"
        golden.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
        runs = [run_eval(golden, target=lambda q, k: ["a"], tracking_uri=store_uri, traces="off") for _ in range(2)]
        assert cli("baseline", "set", runs[0].run_id) == 0
    capsys.readouterr()
    assert cli("compare", "--no-log") == 2
    refused = capsys.readouterr().err
    assert "2 golden sets have runs newer than their baselines (first, second); name one: evaltrack compare" in refused
    for name in ("first", "second"):
        assert cli("compare", str(tmp_path / f"{name}.jsonl"), "--no-log", "--output", "table") == 0
        assert f", {name}, 1 common question" in capsys.readouterr().out


def test_a_table_that_lacks_rows_is_damaged(store_uri: str, tmp_path: Path) -> None:
    good, bad = evaluated(tmp_path, store_uri), evaluated(tmp_path, store_uri, sources=[{"chunk_id": "other"}])
    client = mlflow.MlflowClient(store_uri)
    path = Path(client.download_artifacts(bad.run_id, "per_question.parquet", str(tmp_path)))
    pq.write_table(pq.read_table(path).slice(1), path)
    client.log_artifact(bad.run_id, str(path))
    client.delete_tag(bad.run_id, ROWS_TAG)  # as in a run of before
    with pytest.raises(TrackingError, match=r"per_question.parquet of run .* is damaged, .*: it holds 3 rows, and the"):
        compared(store_uri, good, bad)


def test_golden_sets_that_wait_are_found_by_one_search(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"target": lambda q, k: ["a"], "tracking_uri": store_uri, "traces": "off"}
    for name in ("first", "second", "third", "fourth"):
        golden = tmp_path / f"{name}.jsonl"
        golden.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
        runs = [run_eval(golden, **options) for _ in range(1 if name == "fourth" else 2)]
        set_baseline(runs[0].run_id, tracking_uri=store_uri)
    searches: list[str] = []
    search = mlflow.MlflowClient.search_runs

    def counted(client: mlflow.MlflowClient, ids: list[str], filter_string: str = "", *more: Any, **named: Any) -> Any:
        searches.append(filter_string)
        return search(client, ids, filter_string, *more, **named)

    monkeypatch.setattr(mlflow.MlflowClient, "search_runs", counted)
    with pytest.raises(
        UsageError, match=r"3 golden sets have runs newer than their baselines \(first, second, third\)"
    ):
        compare_runs(tracking_uri=store_uri)
    assert len(searches) == 1
