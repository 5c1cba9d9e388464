"""A prompt of MLflow's registry in place of the answer judge's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import compare_runs, run_eval
from evaltrack.api.judges import replay_judge
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.judges import Models, open_judge
from evaltrack.tracking.registry import RegisteredPrompt, registered_prompt
from evaltrack.tracking.store import connect
from tests.openai_server import OpenAIServer

TEXT = "Grade the answer between the tags as a customs officer would."


def test_a_registered_prompt_judges(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the system message, with the rule that data is no instruction; its version stands in the signature, and a
    run under another version is not comparable.
    """
    client = mlflow.MlflowClient(store_uri)
    client.register_prompt("customs", TEXT)
    client.set_prompt_alias("customs", "live", 1)
    Path("responses.jsonl").write_text(json.dumps({"id": "1", "answer": "90 days."}) + "\n")
    golden = tmp_path / "mine.jsonl"
    golden.write_text(json.dumps({"id": "1", "question": "How long?", "expected_answer": "90 days."}) + "\n")

    def judged() -> Any:
        return run_eval(
            golden,
            target="recorded:responses.jsonl",
            judge="openai:gpt-4o-mini",
            judge_prompt="prompts:/customs@live",
            tracking_uri=store_uri,
        )

    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        first = judged()
        system = server.requests[-1].body["messages"][0]
        client.register_prompt("customs", f"{TEXT} Be strict.")
        client.set_prompt_alias("customs", "live", 2)
        second = judged()
        mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/elsewhere.db")
        replay = replay_judge(second.run_id, times=2, tracking_uri=store_uri)
    assert not (tmp_path / "elsewhere.db").exists()
    assert replay.judge_prompt == second.signature.judge_prompt
    assert (system["role"], system["content"].startswith(TEXT)) == ("system", True)
    assert "instruction" in system["content"].removeprefix(TEXT)
    assert first.metrics["judge_score"] > 0
    assert first.signature.judge_prompt.startswith("prompts:/customs/1 ")
    assert second.signature.judge_prompt.startswith("prompts:/customs/2 ")
    with pytest.raises(InconclusiveError, match="the baseline's judge prompt is `prompts:/customs/1 "):
        compare_runs(second.run_id, first.run_id, tracking_uri=store_uri)


def test_prompts_that_cannot_be_used(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not there, a template with variables, chat messages; and a judge that has no such prompt."""
    client = mlflow.MlflowClient(store_uri)
    client.register_prompt("variables", "Grade {{ answer }} to {{question}}.")
    client.register_prompt("chat", [{"role": "system", "content": TEXT}])
    store = connect(store_uri)
    for uri, message in {
        "customs": "write prompts:/NAME@ALIAS",
        "prompts:/nothing/1": "register it, or set its alias",
        "prompts:/variables@live": "register it, or set its alias",
        "prompts:/variables/1": "has the variables answer, question; leave them out",
        "prompts:/chat/1": "holds chat messages",
    }.items():
        with pytest.raises(UsageError) as caught:
            registered_prompt(store, uri)
        assert message in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    own = RegisteredPrompt("prompts:/customs/1", TEXT)
    for name, rubric in (("recorded:verdicts.jsonl", "answer"), ("openai:gpt-4o-mini", "reasoning")):
        with pytest.raises(UsageError, match="`judge_prompt=` is for openai: judges of answers"):
            open_judge(name, rubric=rubric, models=Models(1), cache=None, own=own)
