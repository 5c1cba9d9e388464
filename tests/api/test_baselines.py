from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import get_baseline, run_eval, set_baseline
from evaltrack.api.baselines import place_of
from evaltrack.errors import TrackingError, UsageError
from evaltrack.tracking.baselines import baseline_history, clear_baseline, list_baselines
from tests.judging import scored_reply, serving


def golden(folder: Path) -> Path:
    path = folder / "few.jsonl"
    path.write_text(json.dumps({"id": "a", "question": "What?", "expected_chunks": ["x"]}) + "\n")
    return path


def test_a_baseline_is_set_read_and_cleared(store_uri: str, tmp_path: Path) -> None:
    path = golden(tmp_path)
    with pytest.raises(UsageError, match="no finished run to promote"):
        set_baseline(tracking_uri=store_uri)
    result = run_eval(path, target=lambda question: ["x"], judge="none", tracking_uri=store_uri, traces="off")
    with pytest.raises(UsageError, match="golden set `few` has no baseline"):
        get_baseline("few", tracking_uri=store_uri)

    made = set_baseline(reason="first", tracking_uri=store_uri)
    assert (made.run_id, made.golden, made.reason) == (result.run_id, "few", "first")
    assert get_baseline(str(path), tracking_uri=store_uri) == made
    assert list_baselines(*place_of(None, store_uri)) == [made]

    clear_baseline(*place_of(None, store_uri), "few")
    assert list_baselines(*place_of(None, store_uri)) == []
    assert baseline_history(*place_of(None, store_uri), "few") == [made]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, False),
        ({"model": "gpt-4o"}, True),
        ({"model": "gpt-4o", "trials": 3}, False),
        ({"judge": "openai"}, True),
    ],
)
def test_a_single_trial_of_a_model_is_told(
    store_uri: str, tmp_path: Path, settings: dict[str, Any], said: bool
) -> None:
    heard: list[str] = []
    with serving(scored_reply(0.9)):
        run_eval(golden(tmp_path), target=lambda _: {"answer": "so", "sources": ["x"]}, traces="off", **settings)
    set_baseline(say=heard.append)
    why = "evaluate it with --trials 3, so that compare can tell flaky questions from broken ones"
    assert [why in each for each in heard] == [True] * said


def test_a_run_without_its_rows_is_no_baseline(store_uri: str, tmp_path: Path) -> None:
    result = run_eval(golden(tmp_path), target=lambda _: ["x"], judge="none", tracking_uri=store_uri, traces="off")
    folder = Path(mlflow.MlflowClient(store_uri).get_run(result.run_id).info.artifact_uri.removeprefix("file://"))
    (folder / "per_question.parquet").write_bytes(b"garbage")
    with pytest.raises(TrackingError, match="was changed after the run"):
        set_baseline(result.run_id, tracking_uri=store_uri)
    assert list_baselines(*place_of(None, store_uri)) == []
    set_baseline(result.run_id, force=True, tracking_uri=store_uri)
    with pytest.raises(TrackingError, match="was changed after the run"):
        get_baseline("few", tracking_uri=store_uri)
