from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import mlflow
import pytest

from evaltrack.tracking.rows import read_table

from . import warm
from .conftest import REPO, Serve
from .in_process import called
from .judging import JUDGE, golden_set
from .openai_behaviours import (
    Behaviour,
    Reply,
    Usage,
    answer_judge,
    quota,
    unauthorised,
)
from .openai_requests import Json
from .openai_server import OpenAIServer

GOLDEN = REPO / "golden" / "wikipedia.json"
AGENT = "python:scripts.wikipedia_agent:ask"
KEY = "sk-never-to-be-written-9f8e7d6c5b4a"
LOGGED = """
from openai._utils._logs import setup_logging
setup_logging()
from evaltrack.cli import main
main()
"""
"""The command line in a warm process, where openai was imported before OPENAI_LOG was set."""


@dataclass
class Ledger:
    agent: list[Usage] = field(default_factory=list)
    judge: list[Usage] = field(default_factory=list)

    def behave(self, request: Json, call: int) -> Reply:
        reply = replace(MODEL(request, call), usage=Usage(100 + call, 10 + call % 7))
        assert reply.usage is not None
        (self.agent if "tools" in request else self.judge).append(reply.usage)
        return reply


def searching(request: Json, _call: int) -> Reply:
    messages = request["messages"]
    if len(messages) == 2:
        return Reply(tool_calls=(("wikipedia_search", {"query": messages[1]["content"]}),))
    if len(messages) == 4:
        return Reply(tool_calls=(("wikipedia_page", {"title": json.loads(messages[3]["content"])[0]["title"]}),))
    return Reply(f"By what was read: {messages[5]['content'][:100]}")


MODEL = answer_judge(searching)


def tokens(usages: list[Usage]) -> int:
    return sum(usage.prompt + usage.completion for usage in usages)


@dataclass(frozen=True)
class Evaluation:
    folder: Path
    uri: str
    ended: subprocess.CompletedProcess[str]
    ledger: Ledger

    @property
    def run(self) -> Any:
        return mlflow.MlflowClient(self.uri).get_run(self.printed["run_id"])

    @property
    def printed(self) -> Json:
        found: Json = json.loads(self.ended.stdout)
        return found

    def artifact(self, path: str) -> str:
        local = mlflow.MlflowClient(self.uri).download_artifacts(self.printed["run_id"], path)
        return Path(local).read_text()


@pytest.fixture(scope="module")
def evaluation(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """`evaltrack run golden/wikipedia.json` over the agent, judged, as a user starts it, with a key that is checked."""
    folder, ledger = tmp_path_factory.mktemp("wikipedia"), Ledger()
    shutil.copy(empty_database, folder / "mlflow.db")
    uri = f"sqlite:///{folder}/mlflow.db"
    command = ("-c", LOGGED, "run", str(GOLDEN), "-t", AGENT, "--experiment", "wikipedia", "--judge", "openai")
    required = ("--require", "functional")
    prices = ("--set", "judge_price_in=0.15", "--set", "judge_price_out=0.6")
    with OpenAIServer(ledger.behave, api_key=KEY) as server:
        given = {
            "MLFLOW_TRACKING_URI": uri,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_LOG": "debug",
            "EVALTRACK_CACHE_DIR": str(folder / "cache"),
            "EVALTRACK_STATE_DIR": str(folder / "state"),
            "PYTHONPATH": str(REPO),
        }
        printed = ("--output", "json", "--set", "evaluation_json=results/evaluation.json")
        ended = warm.run((*command, *required, *prices, *printed), folder, {**os.environ, **given})
    assert ended.returncode == 0, ended.stderr[-3000:]
    return Evaluation(folder, uri, ended, ledger)


def test_every_question_is_asked_judged_and_scored(evaluation: Evaluation) -> None:
    totals, metrics, counts = (evaluation.printed[name] for name in ("totals", "metrics", "counts"))
    assert (totals["num_questions"], totals["num_negatives"], totals["num_errors"]) == (20, 2, 0)
    assert (totals["num_judged"], totals["judge_errors"], totals["cached_verdicts"]) == (20, 0, 0)
    assert (len(evaluation.ledger.agent), len(evaluation.ledger.judge)) == (60, 20)
    assert counts["judge_score"] == counts["combined_score"] == counts["hit_rate"] == 18
    assert metrics["hit_rate"] > 0.8
    assert 0 < metrics["judge_score"] < 1
    assert 0 < metrics["combined_score"] <= metrics["combined_score_best"]
    assert evaluation.run.info.status == "FINISHED"


def test_tokens_are_what_the_server_counted_in_two_ledgers(evaluation: Evaluation) -> None:
    totals, judged = evaluation.printed["totals"], evaluation.ledger.judge
    assert totals["total_tokens"] == tokens(evaluation.ledger.agent)
    assert totals["judge_tokens"] == tokens(judged)
    spent = sum(usage.prompt * 0.15 + usage.completion * 0.6 for usage in judged) / 1e6
    assert evaluation.printed["cost_usd"] == {"judge": pytest.approx(spent)}
    assert {row["tokens_known"] for row in evaluation.printed["rows"]} == {"reported"}


def test_evaluation_json_holds_the_means_of_its_questions(evaluation: Evaluation) -> None:
    text = evaluation.artifact("evaluation.json")
    written = json.loads(text)

    def untimed(content: str) -> Json:
        return {name: value for name, value in json.loads(content).items() if name != "timestamp"}

    assert untimed((evaluation.folder / "results" / "evaluation.json").read_text()) == untimed(text)
    results = written["results"]
    assert written["num_questions"] == len(results) == 20
    means = {f"avg_{name}": name for name in ("hit_rate", "mrr", "judge_score", "combined_score", "num_tokens")}
    measured = {name: [result[of] for result in results if result[of] is not None] for name, of in means.items()}
    assert [len(measured[name]) for name in means] == [18, 18, 18, 18, 20]
    assert written["summary"] == {
        **{name: pytest.approx(fmean(values)) for name, values in measured.items()},
        "best_combined_score": max(measured["avg_combined_score"]),
        "total_tokens": tokens(evaluation.ledger.agent),
    }
    assert (written["metadata"]["target"], written["metadata"]["judge_model"]) == (AGENT, "gpt-4o-mini")


def test_the_key_is_nowhere(evaluation: Evaluation) -> None:
    assert "HTTP Request" in evaluation.ended.stderr, "the log that is searched should be there"
    assert KEY not in evaluation.ended.stdout + evaluation.ended.stderr
    files = [path for path in evaluation.folder.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"mlflow.db", "verdicts.sqlite", "evaluation.json", "reasoning.md", "per_question.parquet"} <= names
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
        if path.suffix == ".parquet":
            assert KEY not in json.dumps(list(read_table(path)), default=str), path


@pytest.mark.parametrize(
    ("behaviour", "code", "message"),
    [
        (unauthorised(), 2, "refuses the key (status 401); check OPENAI_API_KEY"),
        (quota(), 3, "the quota of the key is used up (You exceeded your current quota"),
    ],
)
def test_a_refused_key_ends_the_run_with_one_message(
    serve: Serve, store_uri: str, tmp_path: Path, behaviour: Behaviour, code: int, message: str
) -> None:
    server = serve(behaviour)
    golden, target = golden_set(tmp_path, {"a": "An answer.", "b": "Another answer."})
    ended = called("run", golden, "-t", target, "--judge", JUDGE, "--concurrency", "2", "--traces", "off", cwd=tmp_path)

    assert (ended.returncode, ended.stdout) == (code, "")
    assert message in ended.stderr
    assert ended.stderr.count("Error: ") == 1
    assert "Traceback" not in ended.stderr
    assert "internal" not in ended.stderr
    assert server.calls <= 2
    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert run.info.status == "FAILED"
