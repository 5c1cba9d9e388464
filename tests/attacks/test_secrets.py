"""Secrets that try to get into runs, files and messages, by every way there was."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.cli import _run
from evaltrack.errors import UsageError
from evaltrack.privacy.redaction import MARK, check_names
from evaltrack.records import Response, Source
from evaltrack.tracking.server_retries import reason
from evaltrack.tracking.store import Store
from tests.files import data, put
from tests.key_forms import keys
from tests.targets.test_http import Handler, Server, server  # noqa: F401 - a fixture

KEY = keys()["GitHub personal"][1]
PASSWORD = "correct9horse"
HEADER = "t0p-secret/value"


def golden(folder: Path, *more: dict[str, Any], **fields: Any) -> Path:
    return put(folder / "small.jsonl", [{"id": 1, "question": "How?", "expected_chunks": ["a"], **fields}, *more])


FAILS = {"id": 2, "question": "Fail", "expected_chunks": ["a"]}


def everything(folder: Path) -> str:
    held = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            held.append(path.read_bytes().decode("utf-8", "replace"))
            if path.suffix in {".db", ".sqlite"}:
                with sqlite3.connect(path) as database:
                    held += database.iterdump()
    return "\n".join(held)


@pytest.fixture
def echo(server: Server) -> Server:  # noqa: F811
    """A server that says in every field of its answer what it was sent; it fails where the question says so."""

    def answer(handler: Handler) -> None:
        asks = json.loads(server.requests[-1].body)["question"] == "How?"
        said = " ".join(f"{name}={value}" for name, value in handler.headers.items())
        source = {"chunk_id": "a", "title": said, "url": f"http://x/?{said}", "text": said}
        body = {"answer": said, "sources": [source], "tool_calls": [{"name": "t", "arguments": {"sent": [said]}}]}
        handler.reply(body if asks else said, 200 if asks else 500)

    server.answer, server.url = answer, f"{server.url}/ask"
    return server


SECRETS = json.loads(json.dumps(data("attacks.json")["secret_arguments"]).replace("{KEY}", KEY))


@pytest.mark.parametrize("arguments", [*SECRETS, []], ids=" ".join)
def test_a_secret_in_a_name_or_setting_is_refused(
    arguments: list[str], store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without arguments it is in the path of the golden set."""
    target = [] if "-t" in arguments else ["-t", "command:echo {question}"]
    folder = tmp_path if arguments else tmp_path / KEY

    assert _run(["run", str(golden(folder)), *target, *arguments]) == 2

    said = "".join(capsys.readouterr())
    assert not arguments or "environment" in said or "NAME=VALUE" in said
    for text in (said, everything(tmp_path)):
        assert KEY not in text
        assert PASSWORD not in text


@pytest.mark.parametrize("target", ["command:echo --max-tokens 500 {question}", "command:echo --token-limit=8k {id}"])
def test_settings_that_only_sound_like_secrets_are_taken(target: str, store_uri: str, tmp_path: Path) -> None:
    assert run_eval(golden(tmp_path), target=target).totals["num_errors"] == 1  # an echo is no JSON


def test_values_of_queries_are_in_no_output_hint_and_link(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"mysql+nothing://db.invalid/mlflow?password={PASSWORD}")
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://host.invalid/v1?sig={PASSWORD}")
    assert _run(["doctor"]) == 3
    said = "".join(capsys.readouterr())
    assert PASSWORD not in said
    assert "https://host.invalid/v1?sig=***" in said
    assert "mlflow?password=***" in said
    for uri in (f"postgresql://h/db?password={PASSWORD}", f"https://host/api?sig={PASSWORD}"):
        store = Store(uri, None)  # type: ignore[arg-type]
        assert PASSWORD not in f"{store.shown} {store.ui} {store.serve_command} {store.run_link('1', '2')}"
        assert PASSWORD not in reason(ValueError(f"Could not reach '{uri}', or (see {uri})"))
    assert PASSWORD not in reason(ValueError(f"Could not parse 'postgresql://me:{PASSWORD}@h/db'"))


def test_the_journal_holds_no_value_of_a_query(store_uri: str, tmp_path: Path) -> None:
    def target(question: str, k: int) -> Response:
        raise OSError("gone")

    run_eval(golden(tmp_path), target=target, tracking_uri=f"{store_uri}?timeout=12.0625")

    (journal,) = (tmp_path / "state").glob("*.sqlite")
    with sqlite3.connect(journal) as database:
        kept = "\n".join(database.iterdump())
    assert "?timeout=***" in kept
    assert "12.0625" not in kept


def test_a_query_of_a_target_is_sent_and_not_shown(
    echo: Server, store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["run", str(golden(tmp_path)), "-t", f"{echo.url}?tenant=muller4711", "--output", "json"]) == 0

    said = "".join(capsys.readouterr())
    assert [request.path for request in echo.requests] == ["/ask?tenant=muller4711"]
    assert "/ask?tenant=***" in said
    assert "muller4711" not in said
    with sqlite3.connect(tmp_path / "store" / "mlflow.db") as database:
        assert not any("muller4711" in line for line in database.iterdump())


def test_headers_that_a_server_sends_back_are_masked(
    echo: Server, store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_HEADER", HEADER)
    monkeypatch.setenv("MY_LOGIN", "Ym9iOnBhc3N3MHJk")
    path = golden(tmp_path, FAILS)
    options = {"header.X-Service": "MY_HEADER", "header.Authorization": "Basic MY_LOGIN"}

    result = run_eval(path, target=echo.url, target_options=options)

    rows = json.dumps(list(result.rows), default=str)
    assert "x-service=***" in rows.lower()
    assert result.metrics["recall_at_k"] == 1
    held = everything(tmp_path)
    for secret in (HEADER, "Ym9iOnBhc3N3MHJk"):
        assert secret not in rows
        assert secret not in held


def test_what_a_program_says_of_its_environment_is_masked(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", HEADER)
    monkeypatch.setenv("SERVICE_NAME", "search-service-7")
    program = put(
        tmp_path / "program.py",
        "import json, os, sys\n"
        "said = os.environ['SERVICE_TOKEN'] + ' for ' + os.environ['SERVICE_NAME']\n"
        "print(json.dumps({'answer': said, 'sources': []})) if sys.argv[1] == '1' else sys.exit(said)\n",
    )
    path = golden(tmp_path, FAILS)

    result = run_eval(path, target=f"command:{sys.executable} {program} {{id}}")

    rows = json.dumps(list(result.rows), default=str)
    assert rows.count("*** for search-service-7") >= 2
    assert HEADER not in rows + everything(tmp_path)


def test_patterns_of_redact_are_logged_as_a_digest(store_uri: str, tmp_path: Path) -> None:
    def logged(*patterns: str) -> str:
        run = run_eval(golden(tmp_path), target=lambda question, k: ["a"], redact=patterns)
        params: dict[str, str] = mlflow.MlflowClient().get_run(run.run_id).data.params
        assert "Muller" not in str(params)
        return params["redact"]

    assert len({logged("Muller", "Muller4"), logged("Muller"), logged("Muller[5]")}) == 3


def test_what_is_taken_out_changes_no_score(store_uri: str, tmp_path: Path) -> None:
    path = golden(tmp_path, expected_chunks=None, expected_sources=["Order CUST-2"])
    titles = ["Order CUST-1", "Order CUST-2", "Order CUST-2"]

    def target(question: str, k: int) -> Response:
        return Response(answer="CUST-1 has ordered " * 50, sources=tuple(Source(title=each) for each in titles))

    plain = run_eval(path, target=target)
    redacted = run_eval(path, target=target, redact=[r"CUST-\d"])

    assert redacted.metrics == plain.metrics
    assert (plain.metrics["recall_at_k"], plain.metrics["mrr"]) == (1, 0.5)
    (row,) = redacted.rows
    assert "CUST" not in json.dumps(row["sources"]) + row["answer"]


JUDGE = """
seen = []
def judge(question, response):
    seen.append(response.model_dump_json())
    return {"reasoning": "it repeats " + SECRET, "overall_score": 1.0}
"""


def test_a_judge_sees_nothing_secret_and_its_words_are_redacted(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_judge.py").write_text(f"SECRET = {KEY!r}\n{JUDGE}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def target(question: str, k: int) -> Response:
        return Response(answer=f"take {KEY}", sources=(Source(chunk_id="a", text=KEY),))

    result = run_eval(golden(tmp_path), target=target, judge="own_judge:judge", in_process=True, tracking_uri=store_uri)

    assert KEY not in "".join(sys.modules["own_judge"].seen)
    (tmp_path / "own_judge.py").unlink()
    (row,) = result.rows
    assert "it repeats [redacted]" in json.dumps(row, default=str)
    assert KEY not in kept(tmp_path)


def kept(folder: Path) -> str:
    return everything(folder / "store") + everything(folder / "state")


@pytest.mark.parametrize("setting", ["param", "tag", "note"])
def test_no_setting_that_is_logged_may_hold_a_key(store_uri: str, tmp_path: Path, setting: str) -> None:
    told: Any = {"x": f"it is {KEY}"} if setting in ("param", "tag") else f"it is {KEY}"
    with pytest.raises(UsageError, match=f"(?s)`{setting}") as caught:
        run_eval(golden(tmp_path), target=lambda _: "a", tracking_uri=store_uri, **{setting: told})
    assert KEY not in str(caught.value) + kept(tmp_path)


def test_keys_and_patterns_of_ones_own_are_redacted_wherever_a_target_writes_them(
    store_uri: str, tmp_path: Path
) -> None:
    def target(question: str, k: int) -> dict[str, Any]:
        if question == "Fail":
            raise OSError("x" * 1970 + " " + KEY)  # a message that is cut
        return {"answer": f"CUST-4711 uses {KEY}", "model": f"m {KEY}", "sources": [{"chunk_id": "a", "text": KEY}]}

    result = run_eval(golden(tmp_path, FAILS), target=target, redact=[r"CUST-\d+"], tracking_uri=store_uri)
    rows = json.dumps(list(result.rows), default=str)
    assert rows.count(MARK) >= 3
    assert KEY[:6] not in rows
    for secret in (KEY, "CUST-4711"):
        assert secret not in rows + kept(tmp_path)


def test_settings_of_headers_name_the_environment() -> None:
    for told in ("header.Authorization=Bearer MY_TOKEN_VARIABLE", "header.X-Api-Key=MY_API_KEY", "answer=data.token"):
        check_names([("a --target-option", told)])
    assert "MY_TOKEN_VARIABLE" not in os.environ
