"""Downloads through connections that break off."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException

from evaltrack.system import retries
from evaltrack.system.retries import Policy
from evaltrack.tracking.store import Store, connect
from tests.faulty_proxy import Rules, proxy_thread

ROWS = "per_question.txt"
DOWNLOAD = f"GET .*{ROWS}"


def logged(store: Store, tmp_path: Path) -> str:
    (tmp_path / ROWS).write_text("a row\n" * 1000)
    run = store.client.create_run("0")
    store.client.log_artifact(run.info.run_id, str(tmp_path / ROWS))
    return run.info.run_id


def test_a_download_that_breaks_off_is_tried_again(server: str, tmp_path: Path) -> None:
    (folder := tmp_path / "read").mkdir()
    rules = Rules([(DOWNLOAD, "cut", 2)])
    with proxy_thread(server, rules) as address:
        store = connect(address)
        assert store.download(logged(store, tmp_path), ROWS, folder).read_text() == "a row\n" * 1000
    assert rules.counts[DOWNLOAD] == 2


def test_a_download_that_never_comes_is_an_error(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "REPLY_BROKE_OFF", Policy(0.0, 0.0, calls=2))
    (folder := tmp_path / "read").mkdir()
    with proxy_thread(server, Rules([(DOWNLOAD, "cut", 1000)])) as address:
        store = connect(address)
        run_id = logged(store, tmp_path)
        with pytest.raises(MlflowException, match=ROWS):
            store.download(run_id, ROWS, folder)
