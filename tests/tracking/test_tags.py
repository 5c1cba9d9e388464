"""Who a run says it was made by, also in a container whose user has no name."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.system.users import user_name
from tests.judging import golden_set

NAMELESS = 54321
VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")


def _name_of_a_nameless_user(answers: multiprocessing.SimpleQueue[str]) -> None:
    for name in VARIABLES:
        os.environ.pop(name, None)
    os.setuid(NAMELESS)
    answers.put(user_name())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_user_without_a_name_is_a_number() -> None:
    """As in a container that is started with `--user 54321`."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=_name_of_a_nameless_user, args=(answers,))
    process.start()
    process.join(30)
    assert process.exitcode == 0
    assert answers.get() == f"uid {NAMELESS}"


def test_a_run_says_who_made_it(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "somebody")
    golden, _ = golden_set(tmp_path, {"q": None}, expected_chunks=["a"])
    recorded = tmp_path / "responses.jsonl"
    recorded.write_text('{"id": "q", "answer": "so", "sources": [{"chunk_id": "a"}]}\n')
    run = run_eval(golden, target=f"recorded:{recorded}", judge="none", tracking_uri=store_uri, traces="off")
    assert mlflow.get_run(run.run_id).data.tags["mlflow.user"] == "somebody"
