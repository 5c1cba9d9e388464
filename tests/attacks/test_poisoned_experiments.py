"""Whoever writes to one experiment spoils the page of that one alone, on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.tracking.baselines import Baseline, read_baselines
from evaltrack.tracking.tags import read_tag
from tests.server.test_pages import Browser, served_page

BASELINE = {"golden": "small", "run_id": "x", "by": "me", "at": "2026-01-01T00:00:00+00:00", "reason": ""}
DEEP = "[" * 3900 + "]" * 3900
SPOILT = [
    DEEP,
    '{"golden": ' + DEEP + "}",
    json.dumps({**BASELINE, "golden": {"a": [1]}}),
    json.dumps({**BASELINE, "run_id": 7}),
    json.dumps({**BASELINE, "at": None}),
    json.dumps({**BASELINE, "more": 1}),
    json.dumps([BASELINE]),
    "null",
    "NaN",
    "1e999",
    "{",
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[str]:
    with served_page(tmp_path_factory.mktemp("poisoned") / "server", empty_database) as where:
        yield where


@pytest.fixture(scope="module")
def poisoned(address: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A sound experiment `sound`, whose run is older than all others, and four that somebody poisoned."""
    folder = tmp_path_factory.mktemp("golden")
    golden = folder / "small.jsonl"
    golden.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
    client = mlflow.MlflowClient(address)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALTRACK_STATE_DIR", str(folder / "state"))
        options = {"tracking_uri": address, "traces": "off", "judge": "none", "target": lambda question, k: ["a"]}
        made = {name: run_eval(golden, experiment=name, **options) for name in ("sound", "numbers", "tags")}  # type: ignore[arg-type]
    numbers, tags = made["numbers"], made["tags"]
    for name in ("recall_at_k", "mrr", "num_questions", "pass_rate"):
        client.log_metric(numbers.run_id, name, float("nan"))
    signature = numbers.signature.model_dump_json()
    for start in (9 * 10**18, 4_102_444_800_000, 0):
        spoilt = {"evaltrack.golden": "small", "evaltrack.signature": signature}
        run = client.create_run(numbers.experiment_id, start_time=start, tags=spoilt)
        client.log_metric(run.info.run_id, "recall_at_k", float("inf"))
        client.log_metric(run.info.run_id, "mrr", 1e300)
    for number, text in enumerate(SPOILT):
        client.set_experiment_tag(tags.experiment_id, f"evaltrack.baseline.small{number or ''}", text)
        client.set_tag(tags.run_id, f"evaltrack.promoted.{number}", text)
    client.set_tag(tags.run_id, "evaltrack.promoted", SPOILT[0])
    flood = client.create_experiment("flood")
    for number in range(210):
        client.create_run(flood, tags={"evaltrack.golden": f"f{number}", "evaltrack.signature": DEEP})
    return [made["sound"].experiment_id, numbers.experiment_id, tags.experiment_id, flood]


def test_the_overview_shows_the_others(address: str, poisoned: list[str]) -> None:
    shown = Browser(address).get("")
    assert shown.status == 200
    (sound,) = [part for part in shown.text.split('<section class="card">') if ">sound</a>" in part]
    assert "cannot be shown" not in sound
    assert "1.000" in sound


@pytest.mark.parametrize("place", range(1, 3))
def test_each_poisoned_history_has_a_page_that_is_no_fault_of_ours(
    place: int, address: str, poisoned: list[str]
) -> None:
    shown = Browser(address).get("golden", experiment_id=poisoned[place], golden="small")
    assert shown.status == 200
    assert "this is a fault of evaltrack" not in shown.text


@pytest.mark.parametrize("text", SPOILT)
def test_a_spoilt_tag_is_none(text: str) -> None:
    assert read_tag(Baseline, text) is None
    assert read_baselines({"evaltrack.baseline.small": text}) == []


def test_a_tag_of_one_golden_set_cannot_speak_for_another() -> None:
    text = json.dumps(BASELINE)
    assert [each.run_id for each in read_baselines({"evaltrack.baseline.small": text})] == ["x"]
    assert read_baselines({"evaltrack.baseline.other": text}) == []
