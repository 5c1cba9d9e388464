from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import RunResult, compare_runs, run_eval
from evaltrack.api.judges import MAX_WHY, accept_question
from evaltrack.errors import UsageError
from evaltrack.records import Dimensions
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import reasons
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.tracking.notes import ACCEPTED, accepted_questions
from evaltrack.tracking.store import connect
from tests.judging import cli, golden_set, labels_file, store_in
from tests.stores import copy_store

POINTS = {"hard": 90, "nothing": 0, "soft": 49, "warning": 69, "pass": 70}
"""Points of the questions; `hard` would, but for a hard fail."""


def verdict(key: str, points: float, **changes: Any) -> dict[str, Any]:
    """A verdict that makes of a response this many points."""
    return {
        "id": key,
        "dimensions": dict.fromkeys(Dimensions.model_fields, points / 10),
        "hypotheses": 0,
        "shifts": 0,
        "crux_treatment": "none",
        "uncertainty_treatment": "none",
        "mode": "converge",
        "hard_fails": ["HF1"] if key == "hard" else [],
        **changes,
    }


def reasoning_run(folder: Path, uri: str, points: Mapping[str, float] = POINTS, answer: str = "Yes.") -> RunResult:
    golden, target = golden_set(folder, {**dict.fromkeys(points, answer), "silent": None})
    rows = [verdict(key, score) for key, score in points.items()]
    judge = f"recorded:{labels_file(folder / 'verdicts.jsonl', rows)}"
    return run_eval(golden, target=target, judge=judge, rubric="reasoning", tracking_uri=uri, traces="off")


@dataclass(frozen=True)
class Stored:
    """A store with a run of all points, and two of which the second fell, which each test has a copy of."""

    folder: Path
    run: RunResult
    before: RunResult
    after: RunResult


@pytest.fixture(scope="module")
def stored(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    folder = tmp_path_factory.mktemp("stored")
    with store_in(folder, empty_database) as uri:
        run = reasoning_run(folder / "all", uri)
        before = reasoning_run(folder / "before", uri, dict.fromkeys(("a", "b", "c"), 80), "Before.")
        after = reasoning_run(folder / "after", uri, {"a": 40, "b": 60, "c": 80}, "After.")
    return Stored(folder, run, before, after)


@pytest.fixture
def run(stored: Stored, store_uri: str) -> RunResult:
    copy_store(stored.folder, Path.cwd())
    return stored.run


def test_only_what_the_gates_let_through_is_accepted(store_uri: str, run: RunResult) -> None:
    """A hard fail never, a failed question with a justification of at most so many signs, a warning without one."""
    needed = "question `{}` failed; to accept it write a justification: `why='...'`"
    refusals = [
        *(("soft", "", needed.format("soft")), ("nothing", "  \n", needed.format("nothing"))),
        ("hard", "I say so.", "question `hard` is a hard fail (HF1): reject, escalate; a hard fail cannot be accepted"),
        ("pass", "I say so.", "question `pass` passed or was not measured; there is nothing to accept"),
        ("silent", "I say so.", "question `silent` passed or was not measured; there is nothing to accept"),
        ("unknown", "I say so.", f"run {run.run_id} has no question `unknown`"),
        ("soft", "y" * (MAX_WHY + 1), "the justification has 1,001 characters; write at most 1,000"),
    ]
    for key, why, message in refusals:
        with pytest.raises(UsageError) as refused:
            accept_question(run.run_id, key, why, tracking_uri=store_uri)
        assert str(refused.value) == message
    assert accepted_questions(connect(store_uri), run.run_id) == {}
    made = accept_question(run.run_id, "soft", " The pilot answered it. ", tracking_uri=store_uri)
    assert (made.id, made.tier, made.why) == ("soft", 1, "The pilot answered it.")
    assert accept_question(run.run_id, "nothing", "Known.", tracking_uri=store_uri).tier == 0
    assert accept_question(run.run_id, "warning", tracking_uri=store_uri).why == ""
    assert accept_question(run.run_id, "warning", "Read.", tracking_uri=store_uri).why == "Read."
    long = "x" + "\n\x01" * (MAX_WHY // 2 - 1) + "a"
    accept_question(run.run_id, "soft", long, tracking_uri=store_uri)
    assert accepted_questions(connect(store_uri), run.run_id)["soft"].why == long


def test_it_is_recorded_with_who_when_and_why(store_uri: str, run: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    before, rows = mlflow.get_run(run.run_id).data, list(run.rows)
    accept_question(run.run_id, "soft", "First.", tracking_uri=store_uri)
    made = accept_question(run.run_id, "soft", 'Ünïcode, "quotes"\nand lines.', tracking_uri=store_uri)
    accept_question(run.run_id, "warning", tracking_uri=store_uri)
    kept = accepted_questions(connect(store_uri), run.run_id)
    assert set(kept) == {"soft", "warning"}
    assert kept["soft"] == made
    assert (made.by, made.why) == ("ada", 'Ünïcode, "quotes"\nand lines.')
    at = datetime.fromisoformat(made.at)
    assert at.tzinfo == UTC
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)
    after = mlflow.get_run(run.run_id).data
    assert (after.metrics, after.params) == (before.metrics, before.params)
    new = {name for name in after.tags if name not in before.tags}
    assert len(new) == 2
    assert all(name.startswith(ACCEPTED) for name in new)
    assert list(run.rows) == rows


LENIENT: dict[str, Any] = {"min_coverage": 0.7, "max_drop": ["tier_0_share=off", "reasoning_score=off"]}


@pytest.fixture
def fell(stored: Stored, store_uri: str, monkeypatch: pytest.MonkeyPatch) -> tuple[RunResult, RunResult]:
    copy_store(stored.folder, Path.cwd())
    monkeypatch.chdir(stored.folder)  # where they were evaluated, by what is kept there
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(stored.folder / "state"))
    return stored.before, stored.after


def test_an_accepted_question_counts_as_accepted_and_never_as_passed(
    store_uri: str,
    fell: tuple[RunResult, RunResult],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every rendering says who accepted it, and why."""
    before, after = fell
    none = compare_runs(after.run_id, before.run_id, tracking_uri=store_uri, **LENIENT)
    said = ["2 questions broke (allowed: 0); 0 were fixed"]
    assert (reasons(none)[:1], none.reruns.why_not) == (said, "recorded answers cannot be rerun")
    monkeypatch.setenv("LOGNAME", "ada")
    assert cli("judge", "accept", after.run_id, "a") == 2
    assert "to accept it write a justification: --why '...'" in capsys.readouterr().err
    assert cli("judge", "accept", after.run_id, "a", "--why", "The pilot answered it.") == 0
    assert capsys.readouterr().out == f"a of run {after.run_id} is accepted by ada: The pilot answered it.\n"
    day = accepted_questions(connect(store_uri), after.run_id)["a"].at[:10]
    one = compare_runs(after.run_id, before.run_id, tracking_uri=store_uri, **LENIENT)
    assert one.verdict == "regression"
    assert reasons(one)[0] == "1 question broke (allowed: 0); 0 were fixed; 1 accepted"
    assert cli("judge", "accept", after.run_id, "b") == 0
    assert capsys.readouterr().out == f"b of run {after.run_id} is accepted by ada\n"
    both = compare_runs(after.run_id, before.run_id, tracking_uri=store_uri, **LENIENT)
    assert (both.verdict, both.exit_code) == ("ok", 0)
    assert reasons(both)[0] == "no confirmed failures; not counted: 2 accepted"
    assert [(flip.id, flip.was, flip.now, flip.counts) for flip in both.flips] == [
        ("a", "pass", "fail", False),
        ("b", "pass", "fail", False),
    ]
    assert (none.loss.p, one.loss.p, both.loss.p) == (0.25, 0.5, 1)
    rate = {metric.name: metric for metric in both.metrics}["pass_rate"]
    assert (rate.baseline, rate.candidate) == (1, pytest.approx(1 / 3))
    words = {"a": f"accepted by ada, {day}: The pilot answered it.", "b": f"accepted by ada, {day}"}
    assert {flip["id"]: flip["accepted"] for flip in comparison_json(both)["flips"]} == words
    shown = comparison_text(both, 200)
    assert all(f"[{each}]" in shown for each in words.values())
    assert words["a"] in comparison_markdown(both).replace("\\", "")
    strict = compare_runs(after.run_id, before.run_id, max_drop=["pass_rate=0"], tracking_uri=store_uri)
    assert strict.verdict == "regression"


def test_what_was_accepted_of_the_baseline_says_nothing_of_the_candidate(
    store_uri: str, fell: tuple[RunResult, RunResult], tmp_path: Path
) -> None:
    _, after = fell
    accept_question(after.run_id, "a", "Known.", tracking_uri=store_uri)
    worse = reasoning_run(tmp_path / "worse", store_uri, {"a": 40, "b": 60, "c": 10}, "Worse.")
    again = compare_runs(worse.run_id, after.run_id, tracking_uri=store_uri)
    assert [(flip.id, flip.accepted, flip.counts) for flip in again.flips] == [("c", None, True)]
