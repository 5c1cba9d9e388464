"""A real MLflow server with our pages behind basic authentication, and three users."""

from __future__ import annotations

import json
import sqlite3
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from werkzeug.security import generate_password_hash

from evaltrack import run_eval
from tests.mlflow_server import MlflowServer, copied_store

ADMIN, ADA, GRACE, PASSWORD = "admin", "ada", "grace", "a-long-password-1"
AUTH = {"MLFLOW_FLASK_SERVER_SECRET_KEY": "secret", "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD}
API = "ajax-api/2.0/mlflow"


def ask(address: str, user: str = "", body: Any = None, **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of an answer."""
    sent = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address, sent, {"Content-Type": "application/json", **headers})
    if user:
        asked.add_header("Authorization", f"Basic {b64encode(f'{user}:{PASSWORD}'.encode()).decode()}")
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


@contextmanager
def guarded_server(folder: Path, empty_database: Path) -> Iterator[str]:
    """A server with basic authentication that shows nothing that was not granted, under a static prefix.

    An experiment of Ada's holds one run; Grace has no grant.
    """
    copied_store(folder / "server", empty_database)
    settings = folder / "auth.ini"
    settings.write_text(
        f"[mlflow]\ndefault_permission = NO_PERMISSIONS\ndatabase_uri = sqlite:///{folder}/auth.db\n"
        f"admin_username = {ADMIN}\nauthorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    env = {**AUTH, "MLFLOW_AUTH_CONFIG_PATH": str(settings), "MLFLOW_BASIC_AUTH_FAIL_CLOSED": "true"}
    server_options = ("--app-name", "evaltrack-basic-auth", "--static-prefix", "/team")
    golden = folder / "small #1.jsonl"
    golden.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
    with MlflowServer(folder / "server", *server_options, env=env) as server:
        server.wait_until_ready("/team/health")
        _make_passwords_cheap(folder / "auth.db")
        where = f"{server.address}/team"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MLFLOW_TRACKING_USERNAME", ADMIN)
            patch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
            patch.setenv("EVALTRACK_STATE_DIR", str(folder / "state"))
            options: dict[str, Any] = {"judge": "none", "traces": "off", "experiment": "ada's", "run_name": "Ada's run"}
            made = run_eval(golden, target=lambda question, k: ["a"], tracking_uri=where, **options)
        for user in (ADA, GRACE):
            told = ask(f"{where}/api/2.0/mlflow/users/create", ADMIN, {"username": user, "password": PASSWORD})
            assert told[0] == 200, told
        grant = {"resource_type": "experiment", "resource_id": made.experiment_id, "permission": "EDIT"}
        told = ask(f"{where}/api/3.0/mlflow/users/permissions/grant", ADMIN, {"username": ADA, **grant})
        assert told[0] == 200, told
        _make_passwords_cheap(folder / "auth.db")
        yield where


def _make_passwords_cheap(database: Path) -> None:
    """Each request has its password checked, which takes a tenth of a second with the hash that MLflow makes."""
    cheap = generate_password_hash(PASSWORD, "pbkdf2:sha256:1")
    with closing(sqlite3.connect(database, timeout=30)) as users, users:
        users.execute("update users set password_hash = ?", [cheap])
