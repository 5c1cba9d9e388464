from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import get_baseline, run_eval, set_baseline
from evaltrack.api.baselines import place_of
from evaltrack.errors import TrackingError
from evaltrack.tracking.baselines import list_baselines
from tests.judging import scored_reply, serving


def golden(folder: Path) -> Path:
    path = folder / "few.jsonl"
    path.write_text(json.dumps({"id": "a", "question": "What?", "expected_chunks": ["x"]}) + "\n")
    return path


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, False), ({"model": "gpt-4o"}, True), ({"model": "gpt-4o", "trials": 3}, False), ({"judge": "openai"}, True)],
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
