from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CELLS = (
    """
import asyncio, threading
import mlflow, pandas as pd
import evaltrack
mlflow.set_tracking_uri({uri!r})
mlflow.autolog(silent=True)
asyncio.get_running_loop()
questions = [
    {{"question": "first?", "expected_chunks": ["a"], "expected_answer": "A"}},
    {{"question": "<script>alert(1)</script>", "expected_chunks": ["b"], "expected_answer": "B"}},
]
def judge(question, response):
    score = 1.0 if response.answer == question.expected_answer else 0.0
    return dict.fromkeys(("accuracy", "completeness", "relevance", "overall_score"), score)
async def ask(question, k):
    await asyncio.sleep(0)
    return {{"answer": "A", "sources": [{{"chunk_id": "a"}}]}}
with mlflow.start_run() as outer:
    result = evaltrack.run_eval(pd.DataFrame(questions), target=ask, judge=judge)
result
""",
    """
after = evaltrack.run_eval(iter(questions), target=lambda question, k: {{"answer": "B", "sources": []}}, judge=judge)
evaltrack.compare_runs(after.run_id, result.run_id, max_reruns=0)
""",
    """
loaded = evaltrack.load_run(result.run_id)
frame = loaded.to_pandas()
parent = mlflow.get_run(result.run_id).data.tags["mlflow.parentRunId"]
print(loaded.metrics["judge_score"], list(frame["passed"]), parent == outer.info.run_id)
""",
)


def test_a_notebook_is_executed(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="pip install nbclient ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="pip install nbclient ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(cell.format(uri=store_uri)) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})

    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()

    first, second, third = (cell["outputs"] for cell in notebook.cells)
    result, comparison = _html(first), _html(second)
    assert "1 of 2 questions passed" in result
    assert "&lt;script&gt;alert(1)" in result
    assert "First questions that broke" in comparison
    assert "<script" not in result + comparison
    assert "evaltrack: 100%" in json.dumps(first) or "application/vnd.jupyter.widget-view+json" in json.dumps(first)
    assert _printed(third).split("\n")[0] == "0.5 [True, False] True"


def _html(outputs: list[Any]) -> str:
    return "".join(each["data"].get("text/html", "") for each in outputs if each["output_type"] == "execute_result")


def _printed(outputs: list[Any]) -> str:
    return "".join(each["text"] for each in outputs if each.get("name") == "stdout")
