from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.api.report_sets import run_ids_of
from evaltrack.api.run_sets import run_sets
from evaltrack.cli import _run
from evaltrack.errors import GoldenError, TrackingError, UsageError
from evaltrack.evaluation.result import SetResults
from evaltrack.report.run_json import run_json
from evaltrack.report.sets import sets_json
from evaltrack.tracking.parents import CHILDREN_TAG
from tests.files import put

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


def run_of(run_id: str) -> mlflow.entities.Run:
    return mlflow.get_run(run_id)


def runs() -> list[mlflow.entities.Run]:
    return list(mlflow.MlflowClient().search_runs(["0"], max_results=50))


def test_each_set_is_a_run_below_one_parent(store_uri: str, paths: list[Path]) -> None:
    said: list[str] = []
    sets = run_sets(paths, target=target, traces="off", run_name="nightly", say=said.append)
    assert isinstance(sets, SetResults)
    assert [result.signature.golden for result in sets.results] == list(NAMES)
    children = [run_of(result.run_id) for result in sets.results]
    assert {each.data.tags["mlflow.parentRunId"] for each in children} == {sets.run_id}
    assert [each.info.run_name for each in children] == [f"nightly {name}" for name in NAMES]
    parent = run_of(sets.run_id)
    assert (parent.info.status, parent.info.run_name) == ("FINISHED", "nightly")
    assert parent.data.tags[CHILDREN_TAG] == ",".join(each.info.run_id for each in children)
    assert "evaltrack.signature" not in parent.data.tags
    note = parent.data.tags["mlflow.note.content"]
    assert "| golden set | asked | Pass rate | Recall@5 | MRR | errors | run |" in note
    two = sets.results[1].run_id
    assert f"| two | 3 | 66.7 % | 0.667 | 0.667 | 0 | [{two[:8]}](#/experiments/0/runs/{two}) |" in note
    assert [line.rpartition("/")[2] for line in said] == [
        f"{name}.jsonl ({n} of 3)" for n, name in enumerate(NAMES, start=1)
    ]
    assert len(runs()) == 4


def test_the_run_that_mlflow_opened_is_the_parent(
    store_uri: str, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = mlflow.MlflowClient()
    given = client.create_run(client.create_experiment("theirs")).info
    monkeypatch.setenv("MLFLOW_RUN_ID", given.run_id)
    sets = run_sets(paths[:2], target=target, traces="off")
    assert sets.run_id == given.run_id
    assert {result.experiment_id for result in sets.results} == {given.experiment_id}
    assert run_of(given.run_id).info.status == "FINISHED"
    assert {run_of(result.run_id).data.tags["mlflow.parentRunId"] for result in sets.results} == {given.run_id}
    with pytest.raises(UsageError, match="the run was opened by `mlflow run`, in its experiment"):
        run_sets(paths[:2], target=target, experiment="other")
    alone = client.create_run(given.experiment_id).info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", alone)
    assert run_eval(paths[0], target=target, traces="off").run_id == alone
    assert "mlflow.parentRunId" not in run_of(alone).data.tags


def test_all_bad_lines_of_all_files_are_one_error(store_uri: str, tmp_path: Path, paths: list[Path]) -> None:
    bad = write(tmp_path, "bad", {"id": 9}, {"id": 0, "question": "again"})
    worse = write(tmp_path, "worse", {"id": "x", "question": " "})
    (tmp_path / "other").mkdir()
    (tmp_path / "bare.jsonl").write_text('{"id": 1, "question": "What?"}\n')
    same = write(tmp_path / "other", "one")
    with pytest.raises(GoldenError) as caught:
        run_sets([paths[0], bad, worse, same, tmp_path / "none.jsonl", tmp_path / "bare.jsonl"])
    problems = [problem.replace(f"{tmp_path}/", "") for problem in caught.value.problems]
    assert problems == [
        "one.jsonl, other/one.jsonl: 2 golden sets are called `one`; rename one, or name it once",
        "bad.jsonl:4: `question` is missing; every question needs one",
        "bad.jsonl:5: id `0` is already on line 1; ids must be unique: give it another",
        "worse.jsonl:4: `question` is empty; write some text",
        "none.jsonl: no such file; did you mean one.jsonl?",
        "no target was named and there is no corpus at corpus/bare; name one with -t, e.g. -t bm25:DIR",
    ]
    assert runs() == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"only_failed": "4488541a"}, "`only_failed=4488541a`: needs a single golden set"),
        ({"evaluation_json": "out.json"}, "`evaluation_json=out.json`: needs a single golden set"),
        ({"k": 0}, "k is 0"),
        ({"filter": "domain=one"}, "`filter=domain=one` selects none of its 3 questions; there are: domain two"),
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
    assert runs() == []


def test_a_stop_in_the_second_set_leaves_the_first_finished(store_uri: str, paths: list[Path]) -> None:
    asked: list[str] = []

    def stopping(question: str) -> list[str]:
        asked.append(question)
        if len(asked) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return target(question)

    with pytest.raises(KeyboardInterrupt) as stopped:
        run_sets(paths, target=stopping, traces="off", concurrency=1)
    by_name = {run.data.tags.get("evaltrack.golden"): run for run in runs()}
    assert {name: run.info.status for name, run in by_name.items()} == {
        "one": "FINISHED",
        "two": "KILLED",
        None: "KILLED",
    }
    second, parent = by_name["two"], by_name[None]
    assert run_ids_of([parent.info.run_id]) == [by_name["one"].info.run_id]
    message = f"{paths[1]}: stopped; no finished row is lost; to resume: evaltrack resume {second.info.run_id}"
    assert str(stopped.value) == f"{message}; not evaluated: {paths[2]}"
    assert f"| [{by_name['one'].info.run_id[:8]}]" in parent.data.tags["mlflow.note.content"]
    result = run_eval(paths[1], target=stopping, traces="off", concurrency=1, resume=second.info.run_id)
    assert (result.run_id, asked[5:]) == (second.info.run_id, ["two 2"])
    assert run_of(result.run_id).data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert run_ids_of([parent.info.run_id]) == [by_name["one"].info.run_id, result.run_id]  # for its report


def test_a_set_of_which_nothing_is_measured_stops_no_other(
    store_uri: str, paths: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    def fails_in_two(question: str) -> list[str]:
        if question.startswith("two"):
            raise ValueError("down")
        return target(question)

    sets = run_sets(paths, target=fails_in_two, traces="off")
    assert [result.status for result in sets.results] == ["FINISHED", "FAILED", "FINISHED"]
    assert (sets.success, sets.status, run_of(sets.run_id).info.status) == (False, "FAILED", "FAILED")
    note = run_of(sets.run_id).data.tags["mlflow.note.content"]
    assert "| two | 3 | – | – | – | 3 | FAILED |" in note


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
    parent = next(run for run in runs() if CHILDREN_TAG in run.data.tags)
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
    assert "two: nothing could be measured: 2 of 3 questions ended in errors" in capsys.readouterr().err
    (tmp_path / "one_responses/strong.jsonl").write_text('{"id": 0, "sources": ["x"]}\n')
    assert _run([*words, "--require", "mrr>0.5"]) == 1


def test_json_holds_each_run_as_it_is_alone(
    store_uri: str, paths: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["run", *map(str, paths[:2]), "--traces", "off", "--output", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert list(made) == ["sets"]
    assert [each["signature"]["golden"] for each in made["sets"]] == ["one", "two"]
    assert [len(each["rows"]) for each in made["sets"]] == [3, 3]
    sets = run_sets(paths[:2], target=target, traces="off")
    alone = ["".join(run_json(result)) for result in sets.results]
    assert "".join(sets_json(sets)) == '{"sets": [\n' + ",\n".join(alone) + "]}\n"
    assert _run(["run", str(paths[0]), "--traces", "off", "--output", "json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["schema"] == "evaltrack.run/1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resume", "4488541a"], "--resume and --retry-errors need a single golden set; use: evaltrack resume"),
        (["--resume", "auto"], "need a single golden set"),
        (["--retry-errors"], "need a single golden set"),
        (["--set", "golden=golden/x.jsonl"], "and --set golden=golden/x.jsonl: use one of the two"),
        (["--only-failed", "4488541a"], "--only-failed 4488541a: needs a single golden set"),
    ],
)
def test_options_of_one_set_are_refused(
    store_uri: str, paths: list[Path], capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert _run(["run", *map(str, paths), *options]) == 2
    assert message in capsys.readouterr().err
    assert runs() == []


def test_the_parent_is_told_from_an_evaluation(
    store_uri: str, paths: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    sets = run_sets(paths[:2], target=target, traces="off")
    assert _run(["baseline", "set", sets.run_id]) == 2
    children = ", ".join(result.run_id for result in sets.results)
    assert f"is the parent of several evaluations; name one of them: {children}" in capsys.readouterr().err
