"""An MLflow server whose replies are lost, cut, doubled or made up: what is written is there once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from evaltrack import RunResult, run_eval
from evaltrack.errors import TrackingError
from evaltrack.system import retries
from evaltrack.system.retries import Policy
from tests.api.test_evaluate import answers, golden
from tests.faulty_proxy import Rules, proxy_thread
from tests.stores import trace_counts

CREATE, BATCH, UPDATE = "POST .*/runs/create", "POST .*/runs/log-batch", "POST .*/runs/update"
START, SPANS, ARTIFACT = "POST .*/mlflow/traces$", "POST /v1/traces", "PUT .*/artifacts/"
NEW_EXPERIMENT, INPUTS, TAG = "POST .*/experiments/create", "POST .*/runs/log-inputs", "POST .*/runs/set-tag"
WRITES = (CREATE, BATCH, UPDATE, START, SPANS, ARTIFACT, NEW_EXPERIMENT, INPUTS, TAG)
ALL = (3, 6, 9)


class Served:
    def __init__(self, address: str, uri: str, rules: Rules, folder: Path) -> None:
        self.address, self.uri, self.rules = address, uri, rules
        self.golden, self.experiment = golden(folder), folder.name
        self.client = MlflowClient(address)

    def run(self, resume: str | None = None) -> RunResult:
        target: dict[str, Any] = {"target": answers, "tracking_uri": self.uri, "experiment": self.experiment}
        return run_eval(self.golden, resume=resume, **target)

    def runs(self) -> list[Any]:
        found = self.client.get_experiment_by_name(self.experiment)
        return list(self.client.search_runs([found.experiment_id])) if found else []

    def check_whole(self) -> None:
        (run,) = self.runs()
        assert run.info.status == "FINISHED"
        for name, value in run.data.metrics.items():
            history = self.client.get_metric_history(run.info.run_id, name)
            assert [each.value for each in history] == [value], name
        assert len(run.inputs.dataset_inputs) == 1
        assert trace_counts(self.address, run.info.run_id, run.info.experiment_id) == ALL


@pytest.fixture
def served(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(retries, "SERVER_IS_SILENT", Policy(0.2, 4.0, seconds=2.0))
    rules = Rules()
    with proxy_thread(server, rules) as uri:
        yield Served(server, uri, rules, tmp_path)


@pytest.mark.parametrize("fault", ["503", "dropped", "lost", "cut", "doubled", "delayed"])
def test_a_write_that_meets_a_fault_is_there_once(served: Served, fault: str) -> None:
    writes = (CREATE, BATCH) if fault == "delayed" else WRITES
    served.rules.rules = [(pattern, fault, 1) for pattern in writes]
    assert served.run().status == "FINISHED"
    assert served.rules.counts == dict.fromkeys(writes, 1)
    served.check_whole()


@pytest.mark.parametrize(
    ("pattern", "gap"),
    [
        (SPANS, "reading the traces back failed"),
        (START, "holds 0 traces, not 3"),
        (ARTIFACT, "holds no artifact settings.json"),
    ],
)
def test_what_was_not_done_is_not_called_finished(served: Served, pattern: str, gap: str) -> None:
    served.rules.rules = [(pattern, "empty", 1000)]
    with pytest.raises(TrackingError, match=gap) as caught:
        served.run()
    assert "FINISHED" not in [run.info.status for run in served.runs()]
    served.rules.rules = []
    resumed = str(caught.value).partition("evaltrack resume ")[2]
    assert bool(resumed) == (pattern in (SPANS, START))
    assert served.run(resumed or None).status == "FINISHED"
    if resumed:
        served.check_whole()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([("", "login", 1000)], "does not answer: .*not in a valid JSON format"),
        *(
            ([(pattern, "login", 1000)], "valid JSON|Expecting value|reading the traces back failed")
            for pattern in (BATCH, START, SPANS)
        ),
    ],
)
def test_a_fault_that_stays_leaves_no_run_finished(served: Served, rules: list[Any], said: str) -> None:
    served.rules.rules = rules
    with pytest.raises(TrackingError, match=said):
        served.run()
    assert "FINISHED" not in [run.info.status for run in served.runs()]


def test_runs_whose_creation_was_never_confirmed_do_not_stay_running(served: Served) -> None:
    served.rules.rules = [(CREATE, "lost", 1000)]
    with pytest.raises(TrackingError, match="creating a run failed"):
        served.run()
    assert served.rules.counts[CREATE] > 1
    assert served.runs() == []


def test_a_server_that_is_gone_is_an_error_soon(served: Served) -> None:
    served.rules.rules = [(START, "dropped", 1000), (UPDATE, "dropped", 1000)]
    start = time.monotonic()
    with pytest.raises(TrackingError, match=r"writing traces failed: .*; no finished row is lost; to resume"):
        served.run()
    assert time.monotonic() - start < 15
    assert Counter(run.info.status for run in served.runs()) == {"RUNNING": 1}


def test_a_store_that_does_not_answer_does_not_make_a_new_run_of_an_old_one(served: Served) -> None:
    served.rules.rules = [(SPANS, "empty", 1000)]
    with suppress(TrackingError):
        served.run()
    served.rules.rules = [("GET .*/runs/get", "503", 1000)]
    with pytest.raises(TrackingError, match=r"finding run .* failed"):
        served.run("auto")
    served.rules.rules = []
    served.run("auto")
    served.check_whole()
