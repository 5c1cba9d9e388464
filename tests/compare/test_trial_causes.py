"""Why a question of several trials got worse, from real runs of a scripted target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Comparison, Response, RunResult, Source, compare_runs, run_eval
from evaltrack.compare.change import Fate
from evaltrack.records import Question
from evaltrack.tracking.tags import TRIALS
from tests.judging import golden_set

TARGET = f"python:{__name__}:ask"

script: list[str] = []
"""What each trial returns: ids of sources, a letter each, and behind a colon the answer."""
asked: defaultdict[str, int] = defaultdict(int)


def ask(question: Question, k: int) -> Response:
    ids, _, answer = script[asked[question.id]].partition(":")
    asked[question.id] += 1
    sources = tuple(Source(chunk_id=key.lower(), text="edited" if key.isupper() else f"text of {key}") for key in ids)
    return Response(answer=answer or "so", sources=sources)


@pytest.fixture(autouse=True)
def fresh_script() -> Iterator[None]:
    script.clear()
    yield
    script.clear()


def evaluated(uri: str, folder: Path, trials: str, expected: tuple[str, ...] = ("a",)) -> RunResult:
    script[:] = trials.split()
    asked.clear()
    golden, _ = golden_set(folder, {"q": None}, expected_chunks=list(expected))
    settings: dict[str, Any] = {"judge": "none", "tracking_uri": uri, "traces": "off", "concurrency": 1}
    return run_eval(golden, target=TARGET, in_process=True, trials=len(script), **settings)


def compared(uri: str, folder: Path, was: str, now: str, **options: Any) -> Comparison:
    before, after = evaluated(uri, folder, was, **options), evaluated(uri, folder, now, **options)
    return compare_runs(after.run_id, before.run_id, gate="seed", tracking_uri=uri, log=False)


@pytest.mark.parametrize(
    ("was", "now", "expected", "fate", "source", "words"),
    [
        ("abc abc abc abc abc", "abc :no bc bcd bce", "a", "broke", "a", "returned, in 3 of 4 trials that failed"),
        ("abc abc abc", "abc abc bc", "a", "lower score", "a", "in 1 of 1 trial that failed"),
        ("abc abc abc", "abc ac ac", "ab", "lower score", "b", "in 2 of 2 trials with a lower score"),
        ("abc", "abc :no bc bc", "a", "broke", "a", "returned, in 2 of 3 trials that failed"),
        ("bac abc", "bc", "a", "broke", "a", "is no longer returned"),
        ("bc b abc", "abc abc abc", "a", "fixed", "a", "at rank 1, in 2 of 2 trials that failed before"),
        ("ab b b :no", "ab ab ab ab", "a", "fixed", "a", "at rank 1, in 2 of 3 trials that failed before"),
        ("abc ac ac", "abc abc abc", "ab", "higher score", "b", "in 2 of 2 trials with a lower score before"),
    ],
)
def test_the_cause_is_that_of_most_trials_that_are_worse(
    store_uri: str, tmp_path: Path, was: str, now: str, expected: str, fate: Fate, source: str, words: str
) -> None:
    (change,) = compared(store_uri, tmp_path, was, now, expected=tuple(expected)).by_fate[fate]
    kind = "source_gained" if fate in ("fixed", "higher score") else "source_lost"
    assert (change.cause.kind, change.cause.source) == (kind, source)
    assert change.cause.detail.endswith(words)


def test_a_trial_is_shown_of_which_the_cause_is_true(store_uri: str, tmp_path: Path) -> None:
    """With the scores of all trials."""
    (flip,) = compared(store_uri, tmp_path, "abc abc abc abc abc", "abc :no bc:no bcd:no bce:no").flips
    assert flip.after is not None
    assert [each.kind for each in flip.also] == ["context_changed"]
    assert [source.chunk_id for source in flip.after.sources or ()] == ["b", "c"]
    assert flip.after.scores["recall_at_k"] == 0.2
    (fix,) = compared(store_uri, tmp_path, "ab b b :no", "ab ab ab ab").by_fate["fixed"]
    assert fix.before is not None
    assert [source.chunk_id for source in fix.before.sources or ()] == ["b"]


def test_what_a_passing_trial_shares_is_no_cause(store_uri: str, tmp_path: Path) -> None:
    """Text and order of `b` scatter in the baseline too; that `a` is gone is new."""
    (flip,) = compared(store_uri, tmp_path, "bcad Bcad abcd", "Bcd Bcd Bcd").flips
    assert (flip.cause.kind, flip.cause.source, flip.also) == ("source_lost", "a", ())
    before, after = (row.sources[0] for row in (flip.before, flip.after) if row and row.sources)
    assert before.text_digest == after.text_digest


def test_a_run_whose_trials_are_gone_is_explained_by_its_rows(store_uri: str, tmp_path: Path) -> None:
    before, after = (evaluated(store_uri, tmp_path, each) for each in ("abc abc", ":no bc bc"))
    artifacts = Path(mlflow.get_run(after.run_id).info.artifact_uri.removeprefix("file://"))
    (artifacts / TRIALS).unlink()
    made = compare_runs(after.run_id, before.run_id, gate="seed", tracking_uri=store_uri, log=False)
    assert [flip.cause.kind for flip in made.flips] == ["now_declines"]
