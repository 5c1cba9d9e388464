"""The pages in MLflow's own server with basic authentication, and over a tracking server elsewhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evaltrack.ui.files import OF_REPORTS, OF_UI
from evaltrack.ui.forward import forwarding_app
from evaltrack.ui.local import open_server
from tests.files import data
from tests.guarded_server import ADA, ADMIN, API, GRACE, PASSWORD, ask, guarded_server
from tests.mlflow_server import MlflowServer, copied_store


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[str]:
    with guarded_server(tmp_path_factory.mktemp("guarded"), empty_database) as where:
        yield where


@pytest.mark.parametrize(("user", "sets", "status"), [(ADMIN, 1, 200), (ADA, 1, 200), (GRACE, 0, 403), ("", None, 401)])
def test_mlflow_decides_what_a_user_sees(guarded: str, user: str, sets: int | None, status: int) -> None:
    """Everybody signed in gets the files; what these ask for is MLflow's own API."""
    for name in ("", *OF_UI, *OF_REPORTS):
        assert ask(f"{guarded}/evaltrack/{name}", user)[0] == (200 if user else 401)
    found = ask(f"{guarded}/{API}/experiments/search", user, {"max_results": 100})
    experiments = json.loads(found[2]).get("experiments", []) if user else []
    assert len([each for each in experiments if each["name"] == "ada's"]) == (sets or 0)
    run = json.loads(ask(f"{guarded}/{API}/runs/search", ADMIN, {"experiment_ids": ["1"]})[2])["runs"][0]
    artifact = f"{guarded}/get-artifact?run_uuid={run['info']['run_id']}&path=outcomes.json"
    assert ask(artifact, user)[0] == status


def test_the_files_come_under_a_strict_policy(guarded: str) -> None:
    _, headers, page = ask(f"{guarded}/evaltrack/", ADA)
    assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
    assert "require-trusted-types-for 'script'" in headers["content-security-policy"]
    assert "<script>" not in page
    _, framed, _ = ask(f"{guarded}/evaltrack/frame.html", ADA)
    assert framed["content-security-policy"].startswith("sandbox allow-scripts allow-popups ")
    assert ask(f"{guarded}/evaltrack/app.py", ADMIN)[0] == 404
    assert ask(f"{guarded}/evaltrack/..%2fapp.py", ADMIN)[0] == 404


def test_a_server_without_its_secret_ends_at_once(tmp_path: Path, empty_database: Path) -> None:
    copied_store(tmp_path / "server", empty_database)
    with MlflowServer(tmp_path / "server", "--app-name", "evaltrack-basic-auth", env={"PATH": ""}) as server:
        assert server.wait(60) != 0
        assert "set MLFLOW_FLASK_SERVER_SECRET_KEY" in server.log.read_text()


@pytest.fixture(scope="module")
def forwarded(guarded: str) -> Iterator[str]:
    """The pages over that server with Ada's credentials."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_USERNAME", ADA)
        patch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
        server, address = open_server(partial(forwarding_app, guarded))
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield address
        server.shutdown()
        server.server_close()
        thread.join()


def test_what_the_pages_ask_is_passed_on_with_the_users_credentials(forwarded: str) -> None:
    status, headers, page = ask(f"{forwarded}evaltrack/")
    assert (status, "ui.js" in page, "no-referrer" in headers["Referrer-Policy"]) == (200, True, True)
    found = json.loads(ask(f"{forwarded}{API}/runs/search", body={"experiment_ids": ["1"]})[2])["runs"]
    assert [each["info"]["run_name"] for each in found] == ["Ada's run"]
    artifact = f"get-artifact?run_uuid={found[0]['info']['run_id']}&path=outcomes.json"
    assert json.loads(ask(forwarded + artifact)[2])["outcome"] == ["pass"]
    user = json.loads(ask(f"{forwarded}{API}/users/current")[2])["user"]
    assert user["username"] == ADA


@pytest.mark.parametrize(("path", "body", "headers", "status"), data("ui.json")["nothing_else_is_passed_on"])
def test_nothing_else_is_passed_on(forwarded: str, path: str, body: Any, headers: dict[str, str], status: int) -> None:
    assert ask(forwarded + path, body=body, **headers)[0] == status


def test_a_server_that_is_gone_is_named_without_its_password() -> None:
    client = forwarding_app("http://me:hidden@127.0.0.1:9", "secret").test_client()
    answer = client.post(f"/secret/{API}/runs/search", json={}, headers={"Host": "127.0.0.1"})
    assert (answer.status_code, "hidden" in answer.text) == (502, False)
    assert "the tracking server http://127.0.0.1:9 does not answer" in answer.get_json()["message"]
