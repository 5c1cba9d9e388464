from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from evaltrack.api.progress_bar import BarOfTqdm, PlainProgress, in_notebook, shown_progress
from evaltrack.evaluation.loop import Silent
from evaltrack.records import Failure, Question, Row
from evaltrack.records.row import seconds_now

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


def row(failure: Failure | None, started_at: float | None = None) -> Row:
    moment = seconds_now() if started_at is None else started_at
    return Row.model_construct(question=Question(id="1", question="q", domain="d"), failure=failure, started_at=moment)


def test_what_is_drawn_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for choice, kind in ((None, Silent), (False, Silent), (PlainProgress(), PlainProgress), (True, PlainProgress)):
        with shown_progress(choice) as progress:
            assert type(progress) is kind
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with shown_progress(choice=True) as progress:
        assert isinstance(progress, BarOfTqdm)


def test_a_kernel_is_a_notebook_and_a_terminal_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell, expected in ((None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)):
        ipython = ModuleType("IPython")
        ipython.get_ipython = lambda shell=shell: shell  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert in_notebook() is expected
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


def test_the_speed_of_the_bar_counts_what_was_asked_alone() -> None:
    bar = BarOfTqdm()
    bar.start(100)
    for row_ in [*[row(None, 1.0)] * 50, row(None)]:
        bar.advance(row_)
    drawn = bar._bar
    assert drawn is not None
    assert (drawn.n, drawn.initial, drawn.format_dict["rate"]) == (51, 50, None)
    bar.advance(row(None))
    assert (drawn.n, drawn.initial) == (52, 50)
    bar.close()


def test_the_bar_counts_questions_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    bar = BarOfTqdm()
    bar.advance(row(None))
    bar.note("nothing is drawn yet", 0, 0)
    bar.opened("4488", "evaltrack resume 4488")
    bar.note("judging again", 3, 7)
    bar.start(2)
    bar.warn("slow")
    bar.advance(row(Failure(kind="target_error", message="down")))
    bar.advance(row(None))
    bar.note("logging the rows", 0, 0)
    bar.note("writing traces", 1, 2)
    bar.start(1)
    bar.close()
    drawn = capsys.readouterr().err
    for words in (
        "if it is stopped, go on with: evaltrack resume 4488",
        "judging again: ",
        "3/7",
        "Warning: slow",
        "2/2",
        "1 error",
        "logging the rows",
        "writing traces 1/2",
        "0/1",
    ):
        assert words in drawn
