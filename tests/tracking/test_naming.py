"""Naming a run by the beginning of its id or by its name, and links that lead somewhere; on a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack import compare_runs, report_html, run_eval
from evaltrack.errors import TrackingError, UsageError
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.tracking.find_runs import LISTED, named_run
from evaltrack.tracking.store import Store, connect
from tests.api.test_evaluate import golden
from tests.judging import cli
from tests.small_targets import good, worse


def resolve_run(store: Store, name_or_id: str) -> str:
    return str(named_run(store, name_or_id).info.run_id)


@pytest.fixture
def store(store_uri: str) -> Store:
    return connect(store_uri)


def made_run(store: Store, name: str, experiment_id: str = "0") -> str:
    run_id: str = store.client.create_run(experiment_id, run_name=name, tags={"evaltrack.golden": "set"}).info.run_id
    return run_id


def test_a_run_is_named_by_id_prefix_or_name(store: Store) -> None:
    other = store.client.create_experiment("other")
    first, second = made_run(store, "nightly"), made_run(store, "it's 100 % new", other)
    assert resolve_run(store, first) == resolve_run(store, first[:12]) == resolve_run(store, "nightly") == first
    assert resolve_run(store, second[:12]) == second
    named = made_run(store, first[:1])  # a whole name says more than how an id begins
    assert resolve_run(store, first[:1]) == named


def test_a_name_of_several_runs_lists_them(store: Store) -> None:
    ids = [made_run(store, "nightly") for _ in range(LISTED + 2)]
    with pytest.raises(UsageError, match="`nightly` matches several runs; name one by more of its id") as caught:
        resolve_run(store, "nightly")
    lines = str(caught.value).splitlines()[1:]
    assert len(lines) == LISTED + 1
    assert {line.split()[0] for line in lines[:-1]} < set(ids)
    assert all("nightly (20" in line for line in lines[:-1])


@pytest.mark.parametrize("named", ["0" * 32, "feedbeef", "nigh", "it's", "%", "!!", "a" * 300])
def test_an_unknown_run_is_an_error_of_usage(store: Store, named: str) -> None:
    made_run(store, "nightly")
    with pytest.raises(UsageError, match=r"there is no MLflow run .*; another store may hold it"):
        resolve_run(store, named)


def test_a_deleted_run_is_found_by_its_id_alone(store: Store) -> None:
    """The message says how it is restored; its name and the beginning of its id are free again."""
    run_id = made_run(store, "nightly")
    store.client.delete_run(run_id)
    with pytest.raises(TrackingError, match="is deleted; restore it first"):
        resolve_run(store, run_id)
    for named in ("nightly", run_id[:12]):
        with pytest.raises(UsageError, match="there is no MLflow run"):
            resolve_run(store, named)
    with pytest.raises(TrackingError, match="is deleted; restore it first"):
        compare_runs(run_id, run_id, tracking_uri=store.uri)


def test_every_command_takes_a_prefix_or_a_name(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = golden(tmp_path)
    was = run_eval(path, target=good, tracking_uri=store.uri, run_name="before", traces="off").run_id
    now = run_eval(path, target=worse, tracking_uri=store.uri, run_name="after", traces="off").run_id
    assert cli("compare", now[:10], "--baseline-run", "before", "--no-log") == 1
    assert cli("report", "after", was[:10], "-o", str(tmp_path / "page.html")) == 0
    assert cli("baseline", "set", "before") == 0
    assert f"run {was} is the baseline" in capsys.readouterr().out
    wrong = (
        ("compare", "nonsense"),
        ("compare", now, "--baseline-run", "0" * 32),
        ("report", "nonsense", "-o", "page.html"),
        ("baseline", "set", "nonsense"),
        ("resume", "nonsense"),
        ("run", str(path), "-t", "python:tests.small_targets:good", "--resume", "nonsense"),
        ("judge", "replay", "nonsense"),
        ("judge", "agree", "nonsense", "--run", now),
        ("judge", "accept", "nonsense", "1"),
    )
    for arguments in wrong:
        assert cli(*arguments) == 2, arguments
        assert "there is no MLflow run" in capsys.readouterr().err, arguments


def test_no_link_is_guessed(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server nothing links to MLflow's UI; where it is said where that is, everything does."""
    path = golden(tmp_path)
    was = run_eval(path, target=good, tracking_uri=store.uri)
    now = run_eval(path, target=worse, tracking_uri=store.uri)
    assert (was.link, was.serve_command) == (None, "evaltrack ui")
    plain = compare_runs(now.run_id, was.run_id, tracking_uri=store.uri)
    assert (plain.compare_link, plain.candidate.link, plain.baseline.trace_link) == (None, None, None)
    assert "127.0.0.1" not in comparison_html(plain)

    described = store.client.get_run(now.run_id).data.tags["mlflow.note.content"]
    relative = f"#/experiments/0/evaluation-runs?selectedRunUuid={now.run_id}&compareToRunUuid={was.run_id}"
    assert f"[Side by side]({relative})" in described

    monkeypatch.setenv("EVALTRACK_UI_URL", "https://mlflow.example/team/")
    linked = compare_runs(now.run_id, was.run_id, tracking_uri=store.uri)
    place = f"https://mlflow.example/team/#/experiments/0/evaluation-runs?selectedRunUuid={now.run_id}"
    assert linked.compare_link == f"{place}&compareToRunUuid={was.run_id}"
    assert linked.candidate.link == f"https://mlflow.example/team/#/experiments/0/runs/{now.run_id}"

    monkeypatch.setenv("EVALTRACK_UI_URL", "http://ui.example:5001")
    again = run_eval(path, target=good, tracking_uri=store.uri, traces="off")
    assert again.link == f"http://ui.example:5001/#/experiments/0/runs/{again.run_id}"
    assert again.serve_command is None
    untraced = compare_runs(again.run_id, was.run_id, tracking_uri=store.uri)
    assert untraced.candidate.link
    assert untraced.compare_link is None, "MLflow's own view shows nothing without traces"
    assert "ui.example" in report_html(again.run_id, tracking_uri=store.uri)


def test_a_link_has_no_password(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALTRACK_UI_URL", "https://me:secret@ui.example/team?token=secret")
    assert connect(store_uri).run_link("0", "a") == "https://ui.example/team/#/experiments/0/runs/a"
