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
from evaltrack.api.run_several import check_sweep, run_sets
from evaltrack.cli import _run
from evaltrack.errors import GoldenError, TrackingError, UsageError
from evaltrack.evaluation.result import SetResults
from evaltrack.report.schemas import made_schemas
from evaltrack.tracking.find_runs import named_evaluations
from evaltrack.tracking.parents import CONFIGURATION_TAG, KIND_TAG
from evaltrack.tracking.store import connect
from tests.files import data, put
from tests.report.test_html import ATTRIBUTES, TAGS, Page

NAMES = ("one", "two", "three")


def write(folder: Path, name: str, *more: dict[str, Any], questions: int = 3) -> Path:
    lines = [{"id": n, "question": f"{name} {n}", "expected_chunks": [f"{name}{n}"]} for n in range(questions)]
    path = folder / f"{name}.jsonl"
    put(path, [*lines, *more])
    responses = folder / f"{name}_responses"
    responses.mkdir(exist_ok=True)
    put(responses / "strong.jsonl", [{"id": n, "sources": [{"chunk_id": f"{name}{n}"}]} for n in range(questions)])
    return path


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [write(tmp_path, name) for name in NAMES]


def target(question: str) -> list[str]:
    return ["x"] if question == "two 0" else [question.replace(" ", "")]


def below(uri: str, parent: str) -> list[str]:
    return [each.run_id for each in named_evaluations(connect(uri), parent)]


def all_runs() -> list[mlflow.entities.Run]:
    return list(mlflow.MlflowClient().search_runs(["0"], max_results=50))


def test_each_set_is_a_run_below_one_parent(store_uri: str, paths: list[Path]) -> None:
    said: list[str] = []
    sets = run_sets(paths, target=target, traces="off", run_name="nightly", say=said.append)
    assert isinstance(sets, SetResults)
    assert [result.signature.golden for result in sets.results] == list(NAMES)
    below = [mlflow.get_run(result.run_id) for result in sets.results]
    assert {each.data.tags["mlflow.parentRunId"] for each in below} == {sets.run_id}
    assert [each.info.run_name for each in below] == [f"nightly {name}" for name in NAMES]
    parent = mlflow.get_run(sets.run_id)
    assert (parent.info.status, parent.info.run_name) == ("FINISHED", "nightly")
    assert [each.run_id for each in named_evaluations(connect(store_uri), "nightly")] == [
        each.info.run_id for each in below
    ]
    assert "evaltrack.signature" not in parent.data.tags
    note = parent.data.tags["mlflow.note.content"]
    assert "| golden set | asked | Pass rate | Recall@5 | MRR | errors | run |" in note
    two = sets.results[1].run_id
    assert f"| two | 3 | 66.7 % | 0.667 | 0.667 | 0 | [{two[:8]}](#/experiments/0/runs/{two}) |" in note
    assert [line.rpartition("/")[2] for line in said] == [
        f"{name}.jsonl ({n} of 3)" for n, name in enumerate(NAMES, start=1)
    ]
    assert len(all_runs()) == 4


def test_the_run_that_mlflow_opened_is_the_parent_of_sets(
    store_uri: str, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = mlflow.MlflowClient()
    given = client.create_run(client.create_experiment("theirs")).info
    monkeypatch.setenv("MLFLOW_RUN_ID", given.run_id)
    sets = run_sets(paths[:2], target=target, traces="off")
    assert sets.run_id == given.run_id
    assert {result.experiment_id for result in sets.results} == {given.experiment_id}
    assert mlflow.get_run(given.run_id).info.status == "FINISHED"
    assert {mlflow.get_run(result.run_id).data.tags["mlflow.parentRunId"] for result in sets.results} == {given.run_id}
    with pytest.raises(UsageError, match="the run was opened by `mlflow run`, in its experiment"):
        run_sets(paths[:2], target=target, experiment="other")
    alone = client.create_run(given.experiment_id).info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", alone)
    assert run_eval(paths[0], target=target, traces="off").run_id == alone
    assert "mlflow.parentRunId" not in mlflow.get_run(alone).data.tags


def test_all_bad_lines_of_all_files_are_one_error(store_uri: str, tmp_path: Path, paths: list[Path]) -> None:
    bad = write(tmp_path, "bad", {"id": 9}, {"id": 0, "question": "again"})
    worse = write(tmp_path, "worse", {"id": "x", "question": " "})
    (tmp_path / "other").mkdir()
    (tmp_path / "bare.jsonl").write_text('{"id": 1, "question": "What?", "expected_chunks": ["a"]}\n')
    same = write(tmp_path / "other", "one")
    with pytest.raises(GoldenError) as caught:
        run_sets([paths[0], bad, worse, same, tmp_path / "none.jsonl", tmp_path / "bare.jsonl"])
    problems = [problem.replace(f"{tmp_path}/", "") for problem in caught.value.problems]
    assert problems == [
        "one.jsonl, other/one.jsonl: 2 golden sets are called `one`; rename one, or name it once",
        "bad.jsonl:4: `question` is missing; write it",
        "bad.jsonl:5: id `0` is already used on line 1; use another id",
        "worse.jsonl:4: `question` is empty; write some text",
        "none.jsonl: no such file; did you mean one.jsonl?",
        "no target was named and there is no corpus at corpus/bare; name one with -t, e.g. -t bm25:DIR",
    ]
    assert all_runs() == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"only_failed": "4488541a"}, "`only_failed=4488541a`: needs a single golden set"),
        ({"evaluation_json": "out.json"}, "`evaluation_json=out.json`: needs a single golden set"),
        ({"k": 0}, "k must be a whole number from 1 to 1000, not `0`"),
        ({"filter": "domain=one"}, "`filter=domain=one` matches none of the 3 questions"),
        ({"run_name": "sk-proj-" + "a1B2" * 12}, "run_name"),
        ({"target": "python:nosuchmodule:ask"}, "nosuchmodule"),
        ({"judge": "recorded:nosuch.jsonl"}, "judge"),
    ],
)
def test_settings_are_checked_for_all_sets(
    store_uri: str, paths: list[Path], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        run_sets(paths, **{"target": target} | settings)
    assert message in str(caught.value)
    assert all_runs() == []


def test_a_stop_in_the_second_set_leaves_the_first_finished(store_uri: str, paths: list[Path]) -> None:
    asked: list[str] = []

    def stopping(question: str) -> list[str]:
        asked.append(question)
        if len(asked) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return target(question)

    with pytest.raises(KeyboardInterrupt) as stopped:
        run_sets(paths, target=stopping, traces="off", concurrency=1)
    by_name = {run.data.tags.get("evaltrack.golden"): run for run in all_runs()}
    assert {name: run.info.status for name, run in by_name.items()} == {
        "one": "FINISHED",
        "two": "KILLED",
        None: "KILLED",
    }
    second, parent = by_name["two"], by_name[None]
    assert [each.run_id for each in named_evaluations(connect(store_uri), parent.info.run_id)] == [
        by_name["one"].info.run_id
    ]
    message = f"{paths[1]}: stopped; no finished row is lost; to resume: evaltrack resume {second.info.run_id}"
    assert str(stopped.value) == f"{message}; not evaluated: {paths[2]}"
    assert f"| [{by_name['one'].info.run_id[:8]}]" in parent.data.tags["mlflow.note.content"]
    result = run_eval(paths[1], target=stopping, traces="off", concurrency=1, resume=second.info.run_id)
    assert (result.run_id, asked[5:]) == (second.info.run_id, ["two 2"])
    assert mlflow.get_run(result.run_id).data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert below(store_uri, parent.info.run_id) == [by_name["one"].info.run_id, result.run_id]  # for its report


def test_a_store_that_loses_a_run_ends_it(store_uri: str, paths: list[Path]) -> None:
    def deleting(question: str) -> list[str]:
        if question == "two 2":
            client = mlflow.MlflowClient(store_uri)
            client.delete_run(client.search_runs(["0"], "tags.`evaltrack.golden` = 'two'")[0].info.run_id)
        return target(question)

    with pytest.raises(TrackingError) as caught:
        run_sets(paths, target=deleting, traces="off", concurrency=1, tracking_uri=store_uri)
    assert str(caught.value).startswith(f"{paths[1]}: MLflow")
    assert str(caught.value).endswith(f"; not evaluated: {paths[2]}")
    parent = next(run for run in all_runs() if KIND_TAG in run.data.tags)
    assert parent.info.status == "FAILED"
    assert "| one | 3 | 100.0 % |" in parent.data.tags["mlflow.note.content"]


def test_one_table_and_the_worst_exit_code(
    store_uri: str, paths: list[Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A missed requirement (1) beats what could not be told (3), which beats 0; stderr says of which set each is."""
    files = list(map(str, paths))
    words = ["run", *files, "--traces", "off", "--output", "table"]
    assert _run(words) == 0
    printed = capsys.readouterr()
    lines = [line.split() for line in printed.out.splitlines()]
    assert lines[0] == ["golden", "set", "asked", "Pass", "rate", "Recall@5", "MRR", "errors", "run"]
    assert [line[:7] for line in lines[1:4]] == [[name, "3", "100.0", "%", "1.000", "1.000", "0"] for name in NAMES]
    assert "FINISHED, the parent of 3" in printed.out
    answers = tmp_path / "two_responses/strong.jsonl"
    answers.write_text('{"id": 0, "sources": ["x"]}\n{"id": 1, "sources": ["x"]}\n{"id": 2, "sources": ["x"]}\n')
    assert _run([*words, "--require", "mrr>0.5"]) == 1
    assert "two: A required criterion was missed." in capsys.readouterr().err
    answers.write_text('{"id": 0, "answer": "yes"}\n')
    assert _run(words) == 3
    assert "two: no question passed or failed: 2 of 3 failed with an error" in capsys.readouterr().err
    parent = next(each for each in all_runs() if "mlflow.parentRunId" not in each.data.tags)  # the newest
    assert parent.info.status == "FAILED"
    assert "| two | 3 | – | – | – | 2 | FAILED |" in parent.data.tags["mlflow.note.content"]
    assert "| three | 3 | 100.0 % |" in parent.data.tags["mlflow.note.content"]
    (tmp_path / "one_responses/strong.jsonl").write_text('{"id": 0, "sources": ["x"]}\n')
    assert _run([*words, "--require", "mrr>0.5"]) == 1


@pytest.mark.parametrize(("options", "message"), data("api.json")["options_of_one_set_are_refused"])
def test_options_of_one_set_are_refused(
    store_uri: str, paths: list[Path], capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert _run(["run", *map(str, paths), *options]) == 2
    assert message in capsys.readouterr().err
    assert all_runs() == []


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
    monkeypatch.setattr("tests.api.test_run_several.STOP_AT", "")


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


def children(parent: str) -> list[mlflow.entities.Run]:
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
    assert "| 1 | [good k=1]" in parent.data.tags["mlflow.note.content"]
    below = children(result.run_id)
    assert {each.info.run_name for each in below} == {"good k=1", "good k=2", "bad k=1", "bad k=2"}
    assert {(each.data.params["sweep.target"], each.data.params["sweep.k"]) for each in below} == {
        (name, k) for name in ("good", "bad") for k in "12"
    }
    ranks = {each.info.run_name: each.data.metrics["sweep/rank"] for each in below}
    assert ranks == {"good k=1": 1, "good k=2": 1, "bad k=1": 2, "bad k=2": 2}
    assert all("recall_at_k" in each.data.metrics for each in below)
    how = "to resume after an interruption: evaltrack sweep SWEEP --resume"
    assert said.pop(0) == f"MLflow run {result.run_id}; {how} {result.run_id}"
    assert said == ["good k=1 (1 of 4)", "good k=2 (2 of 4)", "bad k=1 (3 of 4)", "bad k=2 (4 of 4)", "leaderboard"]
    names = {each.path for each in mlflow.MlflowClient().list_artifacts(result.run_id)}
    assert names == {"leaderboard.json", "leaderboard.html"}
    page = Page(mlflow.artifacts.load_text(f"runs:/{result.run_id}/leaderboard.html"))
    assert {tag for tag, _ in page.elements} <= TAGS
    assert {n for _, each in page.elements for n in each if not n.startswith("aria-")} <= ATTRIBUTES
    made = json.loads(mlflow.artifacts.load_text(f"runs:/{result.run_id}/leaderboard.json"))
    assert [group["label"] for group in made["groups"]] == ["k = 1", "k = 2"]
    assert Draft202012Validator(made_schemas()["leaderboard"]).is_valid(made)
    assert made["groups"][0]["configurations"][1]["metrics"]["recall_at_k"]["delta"] == -0.625


def test_a_sweep_that_was_stopped_goes_on(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished runs are not made again, the one under way is gone on with, and no question is asked twice."""
    monkeypatch.setattr("tests.api.test_run_several.STOP_AT", "bad q4")
    whole = sweep(golden)
    with pytest.raises(KeyboardInterrupt, match=r"bad k=1: stopped; .*; not evaluated: bad k=2; to resume all: "):
        run_sweep(whole)
    (parent,) = mlflow.MlflowClient().search_runs(["0"], "tags.`evaltrack.kind` = 'sweep'")
    assert parent.info.status == "KILLED"
    assert parent.data.tags["mlflow.note.content"] == "2 of 4 configurations evaluated\n"
    before = {each.info.run_id for each in children(parent.info.run_id)}
    assert len(before) == 3
    monkeypatch.setattr("tests.api.test_run_several.STOP_AT", "")
    result = run_sweep(whole, resume=parent.info.run_id)
    assert (result.run_id, result.reused, result.success) == (parent.info.run_id, 2, True)
    assert before < {each.run_id for each in result.results}
    assert mlflow.get_run(result.run_id).info.status == "FINISHED"
    assert {f"{name} q{n}": 2 for name in ("good", "bad") for n in range(8)} == CALLS
    again = run_sweep(whole, resume=result.run_id[:12])
    assert (again.run_id, again.reused) == (result.run_id, 4)


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
    digests = [each.data.tags[CONFIGURATION_TAG] for each in children(first.run_id)]
    assert sorted(Counter(digests).values()) == [1, 2]


def test_a_configuration_that_fails_leaves_the_others(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = [{"target": each, "name": each.__name__} for each in (good, down)]
    result = run_sweep(sweep(golden, targets=targets, k=1))
    assert (result.success, result.status) == (False, "FAILED")
    lines = {each.name: each for each in result.leaderboard.standings}
    assert (lines["good"].rank, lines["down"].rank, lines["down"].why_unranked) == (1, None, "not measured")
    again = run_sweep(sweep(golden, targets=targets, k=1), resume=result.run_id)
    assert (again.reused, CALLS["down q0"]) == (2, 1)


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
targets: [python:tests.api.test_run_several:good, python:tests.api.test_run_several:bad]
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
    assert "1  python:tests.api.test_run_several:good     1.000                reference" in printed.out
    assert "-0.625 [" in printed.out
    assert "(1 of 2)" in printed.err
    assert _run(["sweep", str(file), "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "evaltrack.leaderboard/1"
    file.write_text("golden: none.jsonl\nk: 0\n")
    assert _run(["sweep", str(file)]) == 2
    assert f"{file}: `k.0` is too small; write at least 1" in capsys.readouterr().err
