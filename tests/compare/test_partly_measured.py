"""Questions of which one side measured only a part of the trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaltrack import Comparison, Response, Source, compare_runs, run_eval
from evaltrack.compare.engine import compare
from evaltrack.compare.pairing import Side
from evaltrack.compare.partly_measured import TRIALS
from evaltrack.evaluation.trials import merge
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Failure, Question, Row
from evaltrack.rows.stored_row import stored_row
from tests.compared import K, found, question, row, rows_of, side

AWAY = "ConnectionError: the index is away"


def trial_of(asked: Question, number: int, letter: str) -> Row:
    """One trial: a hit (p), a miss (f), an error (E), or a hit whose judge failed (J)."""
    timing = {"position": 0, "question": asked, "trial": number, "started_at": 0.0, "seconds": 0.1}
    if letter == "E":
        return Row.model_validate({**timing, "failure": Failure(kind="target_error", message=AWAY)})
    response = found(f"{asked.id}!" if letter in "pJ" else "x")
    made = measure(asked, response, Rules(K), judge_failed=letter == "J")
    if letter == "J":
        timing["failure"] = Failure(kind="judge_error", message="no opinion")
    return Row.model_validate({**timing, "response": response, "scores": made.scores, "passed": made.passed})


def side_of(outcomes: str, name: str, **signature: str) -> Side:
    """A run with a letter for each trial of `q`; and of one question that hits."""
    asked = question("q")
    trials = [trial_of(asked, number, letter) for number, letter in enumerate(outcomes, 1)]
    merged = stored_row(merge(trials), K)
    made = side([merged, row(question("plain"), found("plain!"), 1)], name, **signature)
    by_id = {"q": [stored_row(each, K) for each in trials]}
    info = replace(made.info, settings={TRIALS: str(len(outcomes))})
    return replace(made, info=info, trials=lambda ids: {key: by_id[key] for key in ids if key in by_id})


def compared(was: str, now: str) -> Comparison:
    return compare(side_of(was, "was"), side_of(now, "now"))


def fate(made: Comparison) -> str:
    (name,) = (name for name, number in made.fates.items() if number and (name != "identical" or number == 2))
    return name


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("ppp", "EEp"),
        ("ffp", "EEp"),  # else it would be fixed by what was not asked
        ("ppf", "EEf"),  # else it would be broken by what was not asked
        ("ppppp", "pEEEE"),
        ("pp", "pE"),
    ],
)
def test_a_question_measured_in_less_than_before_is_lost(was: str, now: str) -> None:
    made = compared(was, now)
    assert (fate(made), made.exit_code) == ("lost", 3)
    (lost,) = made.lost
    assert (lost.cause.kind, lost.now) == ("target_failed", "not measured")
    assert lost.cause.detail.startswith(f"target_error: {AWAY} (in ")
    recall = next(metric for metric in made.metrics if metric.name == "recall_at_k")
    assert (recall.n, recall.measured) == (1, (2, 1))


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ("ppppp", "ppppE", "identical"),
        ("ppppp", "pppEE", "identical"),
        ("pEE", "pEE", "identical"),
        ("ppp", "ffE", "broke"),
        ("pppp", "fffE", "broke"),
    ],
)
def test_one_that_is_measured_in_most_trials_or_fails_anyhow_is_compared(was: str, now: str, expected: str) -> None:
    """One trial that failed among several is no loss, and what fails whatever the others give did break."""
    assert fate(compared(was, now)) == expected


@pytest.mark.parametrize(
    ("now", "ignored", "expected"),
    [
        ("pJJ", (), "lost"),
        ("pJJ", ("judge",), "identical"),
        ("pEE", ("judge",), "lost"),
        ("pJE", ("judge",), "identical"),
    ],
)
def test_a_trial_of_which_the_judge_alone_failed_is_measured_where_no_judge_is_compared(
    now: str, ignored: tuple[str, ...], expected: str
) -> None:
    was = "".join("p" if letter.isalpha() else letter for letter in now)
    made = compare(side_of(was, "was"), side_of(now, "now", judge="j" if ignored else "none"), ignore=ignored)
    assert fate(made) == expected


script: dict[str, str] = {}
"""What the trials of each question give, as above."""
times: defaultdict[str, int] = defaultdict(int)


def ask(question: Question, k: int) -> Response:
    letter = script[question.question][times[question.question]]
    times[question.question] += 1
    if letter == "E":
        raise ConnectionError("the index is away")
    return Response(answer="so", sources=(Source(chunk_id="a" if letter == "p" else "x", text="text"),))


@pytest.fixture
def fresh_script() -> Iterator[None]:
    script.clear()
    times.clear()
    yield
    script.clear()


@pytest.mark.usefixtures("fresh_script")
def test_a_run_and_its_comparison_name_the_questions_that_are_measured_in_part(store_uri: str, tmp_path: Path) -> None:
    """With the first error, from MLflow's store and from a file; one whose trials all failed is an error of the run."""
    golden = tmp_path / "set.jsonl"
    lines = [
        {"id": "q", "question": "Some?", "expected_chunks": ["a"]},
        {"id": "all", "question": "All?", "expected_chunks": ["a"]},
    ]
    golden.write_text(
        "".join(Question.model_validate({"domain": "d", **line}).model_dump_json() + "\n" for line in lines)
    )
    fixed: dict[str, Any] = {"judge": "none", "tracking_uri": store_uri, "traces": "off", "concurrency": 1, "trials": 3}
    runs = []
    for outcomes in ("ppp", "pEE"):
        script.update({"Some?": outcomes, "All?": "EEE"})
        times.clear()
        runs.append(run_eval(golden, target=f"python:{__name__}:ask", in_process=True, **fixed))
    assert not [note for note in runs[0].notes if "measured by" in note]
    note = f"5 trials failed (target_error: {AWAY}); 1 question (q) is measured by the others"
    assert note in runs[1].notes
    made = compare_runs(runs[1].run_id, runs[0].run_id, gate="seed", tracking_uri=store_uri, log=False)
    (lost,) = made.lost
    assert (made.exit_code, lost.id) == (3, "q")
    assert lost.cause.detail == f"target_error: {AWAY} (in 2 of 3 trials)"


def sides(trials: str | None) -> tuple[Side, Side]:
    """A question whose candidate was measured in one trial of three, as `trials` says, and one of one trial."""
    asked_questions = [question("a"), question("b")]
    whole = [replace(each, trials=3, passes=3) for each in rows_of(asked_questions, {})]
    part = [replace(whole[0], trials=1, passes=1), whole[1]]
    settings = {} if trials is None else {TRIALS: trials}
    made = (side(whole, "was"), side(part, "now"))
    return made[0], replace(made[1], info=replace(made[1].info, settings=settings))


@pytest.mark.parametrize(("trials", "lost"), [("3", 1), ("1", 0), (None, 0), ("many", 0), ("9" * 5000, 0), ("", 0)])
def test_how_often_a_question_was_asked_is_read_with_care(trials: str | None, lost: int) -> None:
    """The setting comes from a store that others write to; where it says nothing one trial is enough."""
    made = compare(*sides(trials))
    assert len(made.lost) == lost
    if lost:
        assert made.lost[0].cause.detail == "2 of 3 trials failed"  # a saved file holds no single trials
