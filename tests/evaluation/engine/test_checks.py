"""What cannot hold on an engine is refused before anything is asked, each with its cure."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.engine import checks
from evaltrack.evaluation.engine.checks import check_engine
from evaltrack.evaluation.engine.store_address import problem_of


def refusal(target: Any = "python:m:f", functions: Any = None, **settings: Any) -> str:
    """Why settings are refused."""
    with pytest.raises(UsageError) as error:
        check_engine(EvaluationConfig.of(**settings), target, functions or {})
    return str(error.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"judge_prompt": "prompts:/p/1"}, "is read from MLflow"),
        ({"in_process": True}, "is for a debugger"),
        ({"workers": 2}, "set `engine_workers=`"),
        ({"engine_workers": 32}, "`engine_workers=32` share `concurrency=16`, and each needs 1; set `concurrency=32`"),
        ({"target": "traces:exp"}, "a traces: target asks MLflow"),
        ({"target": "models:/m/1"}, "take `engine=local`"),
        ({"target": print}, "name it as python:package.module:function"),
        ({"functions": {"m:judge": print}}, "`m:judge` is given as an object"),
    ],
)
def test_what_cannot_hold_is_refused(settings: dict[str, Any], words: str) -> None:
    """By the names of settings."""
    said = refusal(engine="ray", **settings)
    assert said.startswith("`engine=ray`: ")
    assert words in said


SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        (f"s3://AKIAIOSFODNN7EXAMPLE:{SECRET}@bucket/x", "holds a key (not shown here); give keys through"),
        (f"s3://{SECRET.replace('/', '')}@bucket/x", "holds a key"),
        (f"s3://bucket/x?secret_key={SECRET}", "holds a key"),
        (f"s3://bucket/x?endpoint_override=http%3A%2F%2Fme%3A{SECRET.replace('/', '')}%40host", "holds a key"),
        (f"abfss://account:{SECRET.replace('/', '')}@host/x", "holds a key"),
        ("hdfs://host/x", "hdfs:// is no object store that can be used (s3, gs, gcs, abfs, abfss); write the path of"),
        ("s3://bucket/x?allow_bucket_deletion=true", "`allow_bucket_deletion` cannot be set in the URI; it takes"),
        ("s3:///x", "names no bucket"),
        ("file://host/x", "a folder is named by its path alone"),
        ("s3://[bucket/x", "is no URI"),
    ],
)
def test_a_shared_folder_that_cannot_be_is_refused(folder: str, words: str) -> None:
    """No key in a URI is shown."""
    said = refusal(engine="ray", engine_folder=folder)
    assert said.startswith("`engine=ray`: `engine_folder=`: ")
    assert words in said
    assert "wJalr" not in said
    assert "wJalr" not in refusal(engine_folder=folder)


@pytest.mark.parametrize(
    "folder",
    [
        "/shared",
        "C:\\shared",
        "file:///shared",
        "s3://b",
        "s3://b/x?region=eu-1&scheme=http",
        "abfs://c@a.net/x",
        "gs://b",
    ],
)
def test_a_shared_folder_may_be_a_path_or_a_store(folder: str) -> None:
    """Those of pyarrow in which an object is there whole or not at all."""
    assert problem_of(folder) is None


def test_all_of_it_is_said_in_one_error() -> None:
    """A line each."""
    assert len(refusal(engine="spark", in_process=True, workers=2).splitlines()) == 2


def test_a_missing_package_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that brings it."""
    monkeypatch.setattr(checks, "find_spec", lambda _: None)
    assert "pip install 'mlflow-evaltrack[spark]', here and on the workers" in refusal(engine="spark")


def test_settings_of_an_engine_want_one() -> None:
    """They are not ignored in one process."""
    said = refusal(engine_address="auto", engine_workers=2)
    assert said.startswith("`engine_address=auto`, `engine_workers=2`: ")
    check_engine(EvaluationConfig.of(), "python:m:f", {})


def test_what_holds_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials, redaction, scores and the rest."""
    monkeypatch.setattr(checks, "find_spec", lambda _: object())
    config = EvaluationConfig.of(engine="ray", engine_workers=16, trials=3, redact="x", scores="exact_match")
    check_engine(config, "python:m:f", {})
    check_engine(config, None, {})
