from __future__ import annotations

from pathlib import Path

from .conftest import evaltrack
from .in_process import called

GOLDEN = """{"id": 1, "question": "How do I install it?", "expected_chunks": [5, 6]}
{"id": 99, "question": "How do I configure the flux capacitor?", "expected_chunks": []}
"""
APP = """
import pathlib
def ask(question, k):
    if "flux" in question:
        return {"abstained": True, "sources": []}
    return {"answer": "pip install it", "sources": [5, 7] if pathlib.Path("lost").exists() else [5, 6]}
"""
SETTINGS = '[run]\ngolden = "docs/eval/example_gold.jsonl"\ntarget = "python:app:ask"\ntraces = "off"\n'


def test_run_with_the_default_golden_set_into_a_baseline_and_compare_to_it(store_uri: str, tmp_path: Path) -> None:
    env, baseline = {"MLFLOW_TRACKING_URI": store_uri}, tmp_path / "docs/eval/baseline.json"
    baseline.parent.mkdir(parents=True)
    for name, text in {"docs/eval/example_gold.jsonl": GOLDEN, "app.py": APP, "evaltrack.toml": SETTINGS}.items():
        (tmp_path / name).write_text(text)
    compare = ("compare", "--baseline", "docs/eval/baseline.json")
    saved = evaltrack("run", cwd=tmp_path, env={**env, "EVALTRACK_RUN_OUTPUT": "auto"})  # its stdout is a file
    assert saved.returncode == 0
    baseline.write_text(saved.stdout)
    assert called("run", cwd=tmp_path, env=env).returncode == 0
    assert called(*compare, cwd=tmp_path, env=env).returncode == 0
    (tmp_path / "lost").touch()
    assert called("run", cwd=tmp_path, env=env).returncode == 0
    worse = called(*compare, cwd=tmp_path, env=env)
    assert worse.returncode == 1
    assert "Recall@5 fell from 1.000 to 0.500" in worse.stdout
    baseline.write_text("travel: 26 questions\n")
    refused = called(*compare, cwd=tmp_path, env=env)
    assert refused.returncode == 2
    assert "save one with: evaltrack run GOLDEN" in refused.stderr
