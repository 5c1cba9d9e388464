"""How long a server that does not answer is waited for."""

from __future__ import annotations

import os
import time

import pytest
from mlflow.exceptions import MlflowException

from evaltrack.system import retries
from evaltrack.system.retries import Policy
from evaltrack.tracking.store import connect
from tests.faulty_proxy import Rules, proxy_thread

READ = "GET .*/experiments/get"


def test_a_server_that_starts_anew_is_waited_for(server: str) -> None:
    """Six refused connections are more than MLflow alone repeats a request here; the seventh gets its answer."""
    rules = Rules()
    with proxy_thread(server, rules) as uri:
        store = connect(uri)
        rules.rules = [(READ, "dropped", 6)]
        assert store.client.get_experiment("0").experiment_id == "0"
    assert rules.counts[READ] == 6
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in os.environ


def test_patience_ends(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "SERVER_IS_SILENT", Policy(0.2, 4.0, seconds=1.0))
    rules = Rules()
    with proxy_thread(server, rules) as uri:
        store, start = connect(uri), time.monotonic()
        rules.rules = [(READ, "503", 1000)]
        with pytest.raises(MlflowException, match="too many 503"):
            store.client.get_experiment("0")
    assert 0.5 < time.monotonic() - start < 5


def test_what_the_user_sets_stays(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With MLFLOW_HTTP_REQUEST_MAX_RETRIES set, MLflow alone decides how often a request is repeated."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    rules = Rules()
    with proxy_thread(server, rules) as uri:
        store = connect(uri)
        rules.rules = [(READ, "503", 1000)]
        with pytest.raises(MlflowException, match="too many 503"):
            store.client.get_experiment("0")
    assert rules.counts[READ] == 1


def test_a_refusal_is_no_silence(server: str) -> None:
    rules = Rules([(READ, None, 1000)])
    with proxy_thread(server, rules) as uri, pytest.raises(MlflowException, match="No Experiment"):
        connect(uri).client.get_experiment("4711")
    assert rules.counts[READ] == 1


def test_replies_that_always_break_off_are_an_error(server: str) -> None:
    rules = Rules()
    with proxy_thread(server, rules) as uri:
        store = connect(uri)
        rules.rules = [(READ, "cut", 1000)]
        with pytest.raises(MlflowException, match="Connection broken"):
            store.client.get_experiment("0")
    assert rules.counts[READ] == retries.REPLY_BROKE_OFF.calls
