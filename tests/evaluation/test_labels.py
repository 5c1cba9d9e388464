from __future__ import annotations

from pathlib import Path

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig
from tests.conftest import few_questions
from tests.tracking.test_provenance import git


def test_all_that_is_wrong_is_in_one_error() -> None:
    params = {"a/b": "1", "": "2", "long": "x" * 6000, "nul": "\0"} | {f"p{n}": "" for n in range(100)}
    with pytest.raises(UsageError) as caught:
        EvaluationConfig.of(param=params, tag={"mlflow.user": "me", "evaltrack.x": ""}, note="\ud800" * 4000)
    problems = str(caught.value).splitlines()
    assert [line.partition("; ")[0] for line in problems] == [
        "`param=`: there are 104",
        "`param=`: `a/b` is no name",
        "`param=`: `` is no name",
        "`param=`: `long` has a value of 6,000 characters",
        "`param=`: `nul` holds a NUL character",
        "`tag=`: `mlflow.user` begins as a tag of mlflow does",
        "`tag=`: `evaltrack.x` begins as a tag of evaltrack does",
        "`note=`: has 4,000 characters",
        "`note=`: holds half of a surrogate pair, which is no text",
    ]


def test_labels_and_names_in_mlflow(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = few_questions(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    for command in (["init", "-q"], ["add", "travel.jsonl"], ["commit", "-qm", "one"]):
        git(tmp_path, *command)
    made = run_eval(
        golden,
        target=f"bm25:{tmp_path / 'corpus' / 'travel'}",
        tracking_uri=store_uri,
        param={"k": "mine", "size": 600},
        tag={"team": "search"},
        note="Smaller chunks.",
    )
    run = mlflow.MlflowClient(store_uri).get_run(made.run_id)
    assert (run.data.params["k"], run.data.params["param.k"], run.data.params["param.size"]) == ("5", "mine", "600")
    assert run.data.tags["team"] == "search"
    assert run.data.tags["mlflow.note.content"].startswith("Smaller chunks.\n\n### travel: ")
    start, _, end = run.info.run_name.partition("…")
    assert (start, end[-34:]) == ("travel bm25:", "/corpus/travel k=5 k=mine size=600")
    assert made.settings["param.size"] == "600"
    commit = run.data.tags["mlflow.source.git.commit"]
    assert made.settings["commit"] == f"{commit[:12]} (main)"
