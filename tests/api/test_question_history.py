"""How questions went over the last runs, from a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaltrack import compare_runs, run_eval
from evaltrack.api import compare_sides, question_history
from evaltrack.api.question_history import (
    histories_of_lines,
    history_evaluations,
    history_run,
    outcomes_json,
)
from evaltrack.records import Response, Source
from evaltrack.tracking.reader import EvaluationRun, find_evaluation
from evaltrack.tracking.run_files import fetch_rows
from evaltrack.tracking.store import Store, connect

TURNS = ("abc", "ab", "abc", "bc", "b")
"""The questions that pass in each run, oldest first."""


def finds(passing: str) -> Callable[[str], Response]:
    """A target that finds what these questions expect."""

    def ask(question: str) -> Response:
        key = question.removeprefix("What of ")[0]
        return Response(answer="", sources=(Source(chunk_id=key if key in passing else "x"),))

    return ask


@pytest.fixture
def ids(store_uri: str, tmp_path: Path) -> list[str]:
    """Runs of three questions; the third was edited before the last run."""
    made = []
    for number, passing in enumerate(TURNS):
        golden, texts = tmp_path / "set.jsonl", {key: f"What of {key}?" for key in "abc"}
        texts |= {"c": "What of c, please?"} if number == 4 else {}
        lines = [{"id": key, "question": text, "expected_chunks": [key]} for key, text in texts.items()]
        golden.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
        options: dict[str, Any] = {"tracking_uri": store_uri, "traces": "off"}
        made.append(run_eval(golden, target=finds(passing), run_name=f"run {number}", **options).run_id)
    return made


def test_a_strip_for_each_question_and_the_run_that_broke_it(store_uri: str, ids: list[str], tmp_path: Path) -> None:
    """Of the runs up to the one that is looked at; a run without rows is left out."""
    store = connect(store_uri)
    run = find_evaluation(store, ids[4])
    runs, lines, kept = history_evaluations(store, run).runs, [], tmp_path / "outcomes.jsonl"
    for each in runs:
        folder = tmp_path / each.past.run_id
        folder.mkdir()
        path = fetch_rows(store, each.evaluation, folder)
        lines.append(outcomes_json(path, each.past.run_id, each.evaluation.num_questions))
    kept.write_text("\n".join(lines), encoding="utf-8")
    made = histories_of_lines([*map(history_run, runs)], kept)
    assert [each.run_id for each in made.runs] == ids
    assert dict(made.outcomes) == {"a": "pppff", "b": "ppppp", "c": "ddddf"}
    since = made.first_broke("a")
    assert since is not None
    assert since.name == "run 3"
    path.write_bytes(b"no rows")
    assert outcomes_json(path, "r", 3) == "null"
    kept.write_text("\n".join([*lines[:4], "null"]), encoding="utf-8")
    assert len(histories_of_lines([*map(history_run, runs)], kept).runs) == 4


def test_only_runs_that_pass_by_the_same_rules_stand_side_by_side(
    store_uri: str, ids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = tmp_path / "set.jsonl"
    other = run_eval(golden, target=finds("a"), k=3, tracking_uri=store_uri, traces="off", run_name="k 3").run_id
    store = connect(store_uri)
    assert [each.past.run_id for each in history_evaluations(store, find_evaluation(store, other)).runs] == [other]
    assert len(history_evaluations(store, find_evaluation(store, ids[4])).runs) == 5
    monkeypatch.setattr(question_history, "MAX_ROWS", 7)
    assert [each.past.run_id for each in history_evaluations(store, find_evaluation(store, ids[4])).runs] == ids[3:]


def test_a_comparison_reads_its_two_runs_alone(store_uri: str, ids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    fetch = compare_sides.fetch_rows

    def noted(store: Store, run: EvaluationRun, folder: Path) -> Path:
        read.append(run.run_id)
        return fetch(store, run, folder)

    monkeypatch.setattr(compare_sides, "fetch_rows", noted)
    compare_runs(ids[3], ids[2], tracking_uri=store_uri, log=False, max_reruns=0)
    assert read == [ids[2], ids[3]]


def test_runs_of_other_targets_are_left_out_and_counted(store_uri: str, ids: list[str], tmp_path: Path) -> None:
    """They stand beside where any target is wanted, and the words of a comparison say how many are left out."""

    def another(question: str) -> Response:
        return finds("c")(question)

    golden = tmp_path / "set.jsonl"
    options: dict[str, Any] = {"tracking_uri": store_uri, "traces": "off"}
    other = run_eval(golden, target=another, run_name="other", **options).run_id
    last = run_eval(golden, target=finds("ab"), run_name="last", **options).run_id
    store = connect(store_uri)
    run = find_evaluation(store, last)
    own = history_evaluations(store, run)
    assert [each.past.run_id for each in own.runs] == [*ids, last]
    assert own.others == 1
    every = history_evaluations(store, run, any_target=True)
    assert ([each.past.run_id for each in every.runs], every.others) == ([*ids, other, last], 0)
    assert len({history_run(each).target for each in every.runs}) == 2
