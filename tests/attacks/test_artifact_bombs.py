"""Artifacts of a few kilobytes that stand for gigabytes: refused or cut, by a reader that stays small."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest

from evaltrack import report_html, run_eval
from evaltrack.api.report_html import stored_result
from evaltrack.errors import TrackingError
from evaltrack.report.html import run_page
from evaltrack.tracking.reader import find_evaluation
from evaltrack.tracking.store import connect
from tests.attacks.bombs import BOMBS
from tests.files import data

READ = """
import re, sys
from pathlib import Path
from evaltrack.compare.run_info import RunInfo
from evaltrack.errors import TrackingError
from evaltrack.records import Signature
from evaltrack.api.compare_sides import side_of_table
from evaltrack.rows.reader import read_table

for path in map(Path, sys.argv[1:]):
    try:
        longest = max(len(row["answer"] or "") for row in read_table(path))
        side = side_of_table(RunInfo("r", "r", Signature(golden="g", golden_digest="0", k=5, target="t")), path)
        said = f"read, no text above {longest}"
    except TrackingError as error:
        said = str(error)
    print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024, said)
"""
MEMORY_MB = 500
GOLDEN = "".join(f'{{"id": {n}, "question": "What is {n}?", "expected_chunks": ["a"]}}\n' for n in range(12))


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bombs")
    for name, make in BOMBS.items():
        path = folder / f"{name}.parquet"
        make(path)
        assert path.stat().st_size < 1_000_000
    return folder


def test_a_bomb_takes_little_memory(bombs: Path) -> None:
    files = [bombs / f"{name}.parquet" for name in BOMBS]
    read = subprocess.run([sys.executable, "-c", READ, *files], capture_output=True, text=True, timeout=120)
    assert read.returncode == 0, read.stderr
    for name, line in zip(BOMBS, read.stdout.splitlines(), strict=True):
        memory, said = line.split(" ", 1)
        assert int(memory) < MEMORY_MB, (name, said)
        assert "was not written by evaltrack" in said or re.search(r"no text above (200000|2)$", said), (name, said)


SPOILT: list[dict[str, object]] = data("attacks.json")["spoilt_summaries"]


def test_a_summary_is_read_to_the_letter(store_uri: str, tmp_path: Path) -> None:
    golden = tmp_path / "small.jsonl"
    golden.write_text(GOLDEN)
    run = run_eval(golden, target=lambda question, k: ["a"], judge="none", tracking_uri=store_uri, traces="off")
    store = connect(store_uri)
    summary = mlflow.artifacts.load_dict(f"runs:/{run.run_id}/summary.json")
    assert stored_result(store, find_evaluation(store, run.run_id)).metrics == run.metrics
    for spoilt in SPOILT:
        store.client.log_text(run.run_id, json.dumps(summary | spoilt), "summary.json")
        with pytest.raises(TrackingError, match=f"is damaged or of another version: {next(iter(spoilt))}"):
            stored_result(store, find_evaluation(store, run.run_id))


def test_how_much_is_listed_depends_on_the_rows(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (run_page.LISTED, run_page.SAMPLED) == (10_000, 2_000)
    monkeypatch.setattr(run_page, "LISTED", 40)
    monkeypatch.setattr(run_page, "SAMPLED", 20)
    golden = tmp_path / "many.jsonl"
    lines = (f'{{"id": {n}, "question": "What is {n}?", "expected_chunks": ["a"]}}\n' for n in range(50))
    golden.write_text("".join(lines))
    run = run_eval(golden, target=lambda question, k: ["a"], judge="none", tracking_uri=store_uri, traces="off")
    summary = mlflow.artifacts.load_dict(f"runs:/{run.run_id}/summary.json")
    summary["totals"]["num_questions"] = 1
    mlflow.MlflowClient(store_uri).log_text(run.run_id, json.dumps(summary), "summary.json")
    page = report_html(run.run_id, tracking_uri=store_uri)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*)</script>', page)[1])  # type: ignore[index]
    assert len(data["questions"]) == 20
