"""What is kept of old runs is listed, and removed when that is said, on a real store."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import mlflow
import pytest

import evaltrack.api.prune as home
from evaltrack import compare_runs, prune, run_eval, set_baseline
from evaltrack.api.prune import seconds_of
from evaltrack.errors import TrackingError, UsageError
from evaltrack.evaluation.journal import Journal
from evaltrack.judges.cache import VerdictCache, cache_folder
from evaltrack.records import Verdict
from evaltrack.system.folders import state_folder
from tests.judging import cli, golden_set

ANSWERS = {"1": "one", "2": "two"}


def evaluated(folder: Path, uri: str, name: str) -> str:
    """The id of a run."""
    golden, target = golden_set(folder, dict(ANSWERS), expected_chunks=["a"])
    lines = [{"id": key, "answer": answer, "sources": [{"chunk_id": "a"}]} for key, answer in ANSWERS.items()]
    Path(target.partition(":")[2]).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run_eval(golden, target=target, judge="none", tracking_uri=uri, run_name=name, traces="off").run_id


def artifacts(uri: str, run_id: str) -> set[str]:
    """The artifacts that MLflow lists."""
    return {each.path for each in mlflow.MlflowClient(uri).list_artifacts(run_id)}


def age(path: Path, days: float) -> None:
    """Let a file be as old."""
    for each in path.parent.glob(f"{path.name}*"):
        os.utime(each, (time.time() - days * 86_400,) * 2)


def test_what_nothing_names_goes_and_the_rest_stays(
    store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dry it removes nothing; done it removes artifacts but the summary, and leaves what is named."""
    free, base, candidate, own, named, pointing = (
        evaluated(tmp_path, store_uri, name) for name in ("free", "base", "candidate", "own", "named", "pointing")
    )
    client = mlflow.MlflowClient(store_uri)
    set_baseline(base, tracking_uri=store_uri)
    compare_runs(candidate, base, tracking_uri=store_uri)
    client.set_tag(own, "release", "1.2")
    client.set_tag(pointing, "evaltrack.note", f"see {named}")
    before = {run: artifacts(store_uri, run) for run in (free, base, candidate, own, named, pointing)}

    assert prune("1h", tracking_uri=store_uri).items == ()  # all of them are younger
    dry = prune("0h", tracking_uri=store_uri)
    assert {item.name for item in dry.items if item.kind == "artifacts"} == {free, pointing}
    assert dry.reasons_to_keep == {
        "a baseline, now or once": 1,
        "compared": 1,
        "has a tag of its own": 1,
        "named by a tag": 1,
    }
    assert dry.bytes > 1000
    assert {run: artifacts(store_uri, run) for run in before} == before

    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    assert cli("prune", "--keep-baselines", "--older-than", "0h", "--yes", "--output", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["done"], printed["bytes"], printed["reasons_to_keep"]) == (True, dry.bytes, dry.reasons_to_keep)
    assert artifacts(store_uri, free) == {"summary.json"}
    assert {run: artifacts(store_uri, run) for run in (base, candidate, own, named)} == {
        run: before[run] for run in (base, candidate, own, named)
    }
    assert client.get_run(free).data.metrics["num_questions"] == 2
    assert prune("0h", tracking_uri=store_uri).items == ()
    with pytest.raises(TrackingError, match=f"of run {free} was removed by `evaltrack prune`"):
        compare_runs(free, base, tracking_uri=store_uri)


def test_a_run_that_becomes_a_baseline_meanwhile_stays(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What names it is looked at again right before anything goes."""
    run = evaluated(tmp_path, store_uri, "free")
    heavy_run = home.heavy_run

    def promoted(*arguments: object) -> object:
        found = heavy_run(*arguments)  # type: ignore[arg-type]
        set_baseline(run, tracking_uri=store_uri)
        return found

    monkeypatch.setattr(home, "heavy_run", promoted)
    pruning = prune("0h", yes=True, tracking_uri=store_uri)
    assert (pruning.items, pruning.reasons_to_keep) == ((), {"named meanwhile": 1})
    assert "per_question.parquet" in artifacts(store_uri, run)


def test_old_journals_and_an_old_cache_go(store_uri: str, tmp_path: Path) -> None:
    """Young ones and those that are open stay."""
    old, young, in_use = (state_folder() / f"{digit * 32}.sqlite" for digit in "123")
    for path in (old, young):
        Journal(path, {"run_id": "f" * 32}).close()
    working = Journal(in_use, {})
    cache = VerdictCache(cache_folder())
    cache.put("key", Verdict(judge="j", reasoning="so"))
    cache.close()
    verdicts = cache_folder() / "verdicts.sqlite"
    for path in (old, in_use, verdicts):
        age(path, 100)

    dry = prune(tracking_uri=store_uri)
    assert [(item.kind, item.name) for item in dry.items] == [("journal", str(old)), ("cache", str(verdicts))]
    assert old.exists()
    assert verdicts.exists()
    assert prune(yes=True, tracking_uri=store_uri).items == dry.items
    working.close()
    assert [path.exists() for path in (old, young, in_use, verdicts)] == [False, True, True, False]


def test_the_journal_of_a_baseline_stays(store_uri: str, tmp_path: Path) -> None:
    """As its artifacts do."""
    run = evaluated(tmp_path, store_uri, "base")
    set_baseline(run, tracking_uri=store_uri)
    path = state_folder() / f"{'4' * 32}.sqlite"
    Journal(path, {"run_id": run}).close()
    age(path, 100)
    pruning = prune(yes=True, tracking_uri=store_uri)
    assert (pruning.items, pruning.reasons_to_keep) == ((), {"a baseline, now or once": 1})
    assert path.exists()


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "1.5d", "90 d", "90y", "9" * 9 + "d", "90d\n"])
def test_a_time_that_cannot_be_read_is_refused(text: str) -> None:
    """The message says how to write one."""
    with pytest.raises(UsageError, match="write a whole number and h, d or w, such as 90d"):
        prune(text)


def test_times() -> None:
    """Hours, days and weeks."""
    assert (seconds_of("36h"), seconds_of("90d"), seconds_of("2w")) == (129_600, 7_776_000, 1_209_600)


def test_an_empty_store_has_nothing(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found, and that is said."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    assert cli("prune") == 0
    assert prune(tracking_uri=store_uri).items == ()


def test_temporary_folders_of_killed_processes_go(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are old for certain: a process that is at work may not have written for hours."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, young, other, linked = (
        tmp_path / name for name in ("evaltrack-ab12_xyz", "evaltrack-pytest-abcd1234", "evaltrack-mine", "target")
    )
    for folder in (left, young, other, linked):
        folder.mkdir()
        (folder / "per_question.parquet").write_bytes(b"rows" * 100)
        age(folder / "per_question.parquet", 8 if folder is not young else 2)
        age(folder, 8)
    (tmp_path / "evaltrack-linked00").symlink_to(linked)
    dry, done = (prune("1d", yes=yes, tracking_uri=store_uri) for yes in (False, True))
    for pruning in (dry, done):
        (item,) = (each for each in pruning.items if each.kind == "temporary")
        assert (item.name, item.bytes) == (str(left), 400)
    assert [each.exists() for each in (left, young, other, linked)] == [False, True, True, True]
    assert (linked / "per_question.parquet").exists()
