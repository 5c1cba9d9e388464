from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import mlflow
import pytest
from jsonschema import Draft202012Validator

from evaltrack import compare_runs, run_eval, run_sweep, set_baseline
from evaltrack.api.report_sets import report_sets
from evaltrack.api.run_sweep import check_sweep
from evaltrack.cli import _run
from evaltrack.errors import UsageError
from evaltrack.report.schemas import made_schemas
from evaltrack.tracking.parents import CHILDREN_TAG, CONFIGURATION_TAG
from tests.files import put
from tests.report.test_html import ATTRIBUTES, TAGS, Page

CALLS: Counter[str] = Counter()
"""How often each question was asked of each target."""

STOP_AT = ""
"""The question at which somebody presses Ctrl-C."""


def good(question: str) -> list[str]:
    return _asked("good", question, question)


def bad(question: str) -> list[str]:
    return _asked("bad", question, question if question < "q3" else "x")


def down(question: str) -> list[str]:
    _asked("down", question, "")
    raise ValueError("down")


def _asked(target: str, question: str, found: str) -> list[str]:
    CALLS[f"{target} {question}"] += 1
    if f"{target} {question}" == STOP_AT:
        os.kill(os.getpid(), signal.SIGINT)
    return [found]


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    monkeypatch.setattr("tests.api.test_run_sweep.STOP_AT", "")


@pytest.fixture
def golden(tmp_path: Path, store_uri: str) -> Path:
    assert store_uri
    return put(
        tmp_path / "set.jsonl", [{"id": f"i{n}", "question": f"q{n}", "expected_chunks": [f"q{n}"]} for n in range(8)]
    )


def sweep(golden: Path, **fields: Any) -> dict[str, Any]:
    settings = {"judge": "none", "traces": "off", "concurrency": 1}
    targets = [{"target": each, "name": each.__name__} for each in (good, bad)]
    return {"golden": golden, "targets": targets, "k": [1, 2], "settings": settings, **fields}


def runs(parent: str) -> list[mlflow.entities.Run]:
    found = mlflow.MlflowClient().search_runs(["0"], f"tags.`mlflow.parentRunId` = '{parent}'", max_results=50)
    return list(found)


def test_a_configuration_is_never_the_newest_run(golden: Path) -> None:
    before, now = (run_eval(golden, target=good, judge="none", traces="off") for _ in range(2))
    set_baseline(before.run_id)
    run_sweep(sweep(golden, targets=[{"target": each, "name": each.__name__} for each in (bad, down)]))
    for name in ("", "set"):
        assert compare_runs(golden=name, log=False).candidate.run_id == now.run_id
    assert set_baseline().run_id == now.run_id


def test_each_configuration_is_a_run_below_one_parent(golden: Path) -> None:
    said: list[str] = []
    result = run_sweep(sweep(golden, name="nightly"), say=said.append)
    parent = mlflow.get_run(result.run_id)
    assert (parent.info.status, parent.info.run_name) == ("FINISHED", "nightly")
    assert parent.data.tags[CHILDREN_TAG] == ",".join(each.run_id for each in result.results)
    assert "| 1 | [good k=1]" in parent.data.tags["mlflow.note.content"]
    children = runs(result.run_id)
    assert {each.info.run_name for each in children} == {"good k=1", "good k=2", "bad k=1", "bad k=2"}
    assert {(each.data.params["sweep.target"], each.data.params["sweep.k"]) for each in children} == {
        (name, k) for name in ("good", "bad") for k in "12"
    }
    ranks = {each.info.run_name: each.data.metrics["sweep/rank"] for each in children}
    assert ranks == {"good k=1": 1, "good k=2": 1, "bad k=1": 2, "bad k=2": 2}
    assert all("recall_at_k" in each.data.metrics for each in children)
    how = "to resume after an interruption: evaltrack sweep SWEEP --resume"
    assert said.pop(0) == f"MLflow run {result.run_id}; {how} {result.run_id}"
    assert said == ["good k=1 (1 of 4)", "good k=2 (2 of 4)", "bad k=1 (3 of 4)", "bad k=2 (4 of 4)", "leaderboard"]
    names = {each.path for each in mlflow.MlflowClient().list_artifacts(result.run_id)}
    assert names == {"leaderboard.json", "leaderboard.md", "leaderboard.html"}
    page = Page(mlflow.artifacts.load_text(f"runs:/{result.run_id}/leaderboard.html"))
    assert {tag for tag, _ in page.elements} <= TAGS
    assert {n for _, each in page.elements for n in each if not n.startswith("aria-")} <= ATTRIBUTES
    made = json.loads(mlflow.artifacts.load_text(f"runs:/{result.run_id}/leaderboard.json"))
    assert [group["label"] for group in made["groups"]] == ["k = 1", "k = 2"]
    assert Draft202012Validator(made_schemas()["leaderboard"]).is_valid(made)
    assert made["groups"][0]["configurations"][1]["metrics"]["recall_at_k"]["delta"] == -0.625


def test_a_child_is_the_run_that_stands_alone(golden: Path) -> None:
    from evaltrack import run_eval

    result = run_sweep(sweep(golden, k=2))
    alone = mlflow.get_run(run_eval(golden, k=2, target=bad, judge="none", traces="off", concurrency=1).run_id).data
    child = mlflow.get_run(result.results[1].run_id).data
    assert {k: v for k, v in child.params.items() if not k.startswith("sweep.")} == alone.params
    assert {k: v for k, v in child.metrics.items() if not k.startswith("sweep/")} == alone.metrics


def test_a_sweep_that_was_stopped_goes_on(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished runs are not made again, the one under way is gone on with, and no question is asked twice."""
    monkeypatch.setattr("tests.api.test_run_sweep.STOP_AT", "bad q4")
    whole = sweep(golden, k=2, seeds=[1, 2])
    with pytest.raises(KeyboardInterrupt, match=r"bad seed=1: stopped; 2 of 4 runs finished, no row is lost; to"):
        run_sweep(whole)
    (parent,) = mlflow.MlflowClient().search_runs(["0"], "tags.`evaltrack.kind` = 'sweep'")
    assert parent.info.status == "KILLED"
    assert parent.data.tags["mlflow.note.content"] == "2 of 4 configurations evaluated\n"
    before = {each.info.run_id for each in runs(parent.info.run_id)}
    assert len(before) == 3
    monkeypatch.setattr("tests.api.test_run_sweep.STOP_AT", "")
    result = run_sweep(whole, resume="auto")
    assert (result.run_id, result.reused, result.success) == (parent.info.run_id, 2, True)
    assert before < {each.run_id for each in result.results}
    assert mlflow.get_run(result.run_id).info.status == "FINISHED"
    assert {f"{name} q{n}": 2 for name in ("good", "bad") for n in range(8)} == CALLS
    assert {each.name: each.spread for each in result.leaderboard.standings} == {"good": (1, 1), "bad": (0.375, 0.375)}
    again = run_sweep(whole, resume=result.run_id[:12])
    assert (again.run_id, again.reused) == (result.run_id, 4)


def test_a_new_sweep_names_the_one_that_was_broken_off(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    fresh = run_sweep(sweep(golden, k=2), resume="auto", say=said.append)
    note = "no sweep of these configurations was interrupted; this is a new one"
    assert (fresh.reused, fresh.notes) == (0, (note,))
    assert said[0] == note  # before anything is asked
    monkeypatch.setattr("tests.api.test_run_sweep.STOP_AT", "good q0")
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(golden, k=1))
    monkeypatch.setattr("tests.api.test_run_sweep.STOP_AT", "")
    (note,) = run_sweep(sweep(golden, k=1)).notes
    assert "was interrupted; --resume auto resumes it" in note


def test_a_sweep_can_be_extended(golden: Path) -> None:
    first = run_sweep(sweep(golden, k=[1]))
    more = run_sweep(sweep(golden, k=[1, 2]), resume=first.run_id)
    assert (more.run_id, more.reused, len(more.results)) == (first.run_id, 2, 4)
    with pytest.raises(UsageError, match="is a different sweep"):
        run_sweep(sweep(golden, k=[3]), resume=first.run_id)
    with pytest.raises(UsageError, match="is not a sweep"):
        run_sweep(sweep(golden, k=[1]), resume=first.results[0].run_id)


def test_a_run_that_cannot_be_gone_on_with_is_made_anew(golden: Path, tmp_path: Path) -> None:
    first = run_sweep(sweep(golden, k=1))
    client = mlflow.MlflowClient()
    lost = first.results[1].run_id
    client.update_run(lost, status="RUNNING")
    second = run_sweep(sweep(golden, k=1), resume=first.run_id)
    assert (second.reused, second.results[1].run_id != lost) == (1, True)
    assert client.get_run(lost).info.status == "KILLED"
    digests = [each.data.tags[CONFIGURATION_TAG] for each in runs(first.run_id)]
    assert sorted(Counter(digests).values()) == [1, 2]


def test_a_configuration_that_fails_leaves_the_others(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = [{"target": each, "name": each.__name__} for each in (good, down)]
    result = run_sweep(sweep(golden, targets=targets, k=1))
    assert (result.success, result.status) == (False, "FAILED")
    lines = {each.name: each for each in result.leaderboard.standings}
    assert (lines["good"].rank, lines["down"].rank, lines["down"].why_unranked) == (1, None, "not measured")
    again = run_sweep(sweep(golden, targets=targets, k=1), resume=result.run_id)
    assert (again.reused, CALLS["down q0"]) == (2, 1)
    retried = run_sweep(sweep(golden, targets=targets, k=1), resume=result.run_id, retry_errors=True)
    assert (retried.reused, CALLS["down q0"], CALLS["good q0"]) == (1, 2, 1)


def test_the_run_that_mlflow_opened_is_the_parent(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = mlflow.MlflowClient().create_run("0").info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", given)
    assert run_sweep(sweep(golden, k=1)).run_id == given
    with pytest.raises(UsageError, match="resume with: evaltrack sweep FILE --resume RUN"):
        run_sweep(sweep(golden, k=1), resume="auto")


def test_nothing_is_run_where_anything_is_wrong(golden: Path) -> None:
    for fields, message in (
        ({"rank_by": "recal"}, "`rank_by=recal`: no metric"),
        ({"settings": {"model": "sk-proj-" + "a1B2" * 12}}, "model"),
        ({"golden": "none.jsonl"}, "no such file"),
    ):
        with pytest.raises(UsageError, match=message):
            check_sweep(sweep(golden) | fields)
    assert mlflow.MlflowClient().search_runs(["0"]) == []


FILE = """\
golden: {golden}
targets: [python:tests.api.test_run_sweep:good, python:tests.api.test_run_sweep:bad]
settings: {{judge: none, traces: "off", in_process: true}}
"""


def test_the_command(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run asks nothing; a table for people, JSON for machines; a wrong file is exit code 2."""
    file = tmp_path / "sweep.yaml"
    file.write_text(FILE.format(golden=golden))
    assert _run(["sweep", str(file), "--dry-run", "--output", "table"]) == 0
    assert "2 configurations × 8 questions: the target is called 16 times; nothing was run" in capsys.readouterr().out
    assert _run(["sweep", str(file), "--dry-run", "--output", "json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert Draft202012Validator(made_schemas()["sweep-plan"]).is_valid(planned)
    assert (planned["target_calls"], len(planned["configurations"])) == (16, 2)
    assert CALLS == {}
    assert _run(["sweep", str(file), "--output", "table"]) == 0
    printed = capsys.readouterr()
    assert "1  python:tests.api.test_run_sweep:good     1.000                reference" in printed.out
    assert "-0.625 [" in printed.out
    assert "(1 of 2)" in printed.err
    assert _run(["sweep", str(file), "--resume", "auto", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "evaltrack.leaderboard/1"
    assert _run(["sweep", str(file), "--retry-errors"]) == 2
    assert "needs a sweep to resume" in capsys.readouterr().err
    file.write_text("golden: none.jsonl\nk: 0\n")
    assert _run(["sweep", str(file)]) == 2
    assert f"{file}: `k.0` is 0; write a whole number" in capsys.readouterr().err


def test_a_report_compares_the_runs_of_a_sweep(golden: Path, tmp_path: Path) -> None:
    result = run_sweep(sweep(golden, k=1))
    for named in ([result.run_id], [each.run_id for each in result.results]):
        page = Page(report_sets(named, tmp_path / "all.html")[0].read_text(encoding="utf-8"))
        assert {tag for tag, _ in page.elements} <= TAGS
        assert "11 of 16 questions passed in 2 runs" in page.words
        assert "Runs of set, compared" in page.words
        assert "2 bad 0.375 n 8 -0.625 [" in page.words
