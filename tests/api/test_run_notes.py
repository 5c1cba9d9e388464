from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltrack import load_run, run_eval
from evaltrack.report.templates import say
from tests.files import put


def small_set(folder: Path) -> Path:
    lines = [{"id": n, "question": f"number {n}?", "expected_chunks": ["a#1"] if n else []} for n in range(4)]
    return put(folder / "small.jsonl", lines)


EMPTY = "have neither an answer nor sources; return an answer, a list of sources or a mapping with `answer`, `sources`"


def notes(folder: Path, uri: str, target: Any, **settings: Any) -> list[str]:
    made = run_eval(small_set(folder), target=target, tracking_uri=uri, traces="off", **settings)
    said = ("neither an answer nor sources", "empty answer", "was not measured")
    return [note for note in made.notes if any(words in note for words in said)]


@pytest.mark.parametrize("trials", [1, 2])
def test_responses_without_content_are_counted(store_uri: str, tmp_path: Path, trials: int) -> None:
    empty: dict[str, Any] = {"number 0?": {}, "number 1?": "", "number 2?": " \n", "number 3?": {"answer": ""}}
    (note,) = notes(tmp_path, store_uri, lambda question: empty[question], trials=trials)
    assert note.startswith(f"{4 * trials} of {4 * trials} responses {EMPTY}")


def test_responses_with_content_need_no_note(store_uri: str, tmp_path: Path) -> None:
    full: dict[str, Any] = {"number 0?": [], "number 1?": {"abstained": True}, "number 2?": {"sources": ["a"]}}
    assert notes(tmp_path, store_uri, lambda question: full.get(question, [])) == []


def test_empty_answers_are_counted_beside_responses_without_content(store_uri: str, tmp_path: Path) -> None:
    beside = {"answer": " ", "sources": ["a#1"]}
    (note,) = notes(tmp_path, store_uri, lambda _: beside)
    assert note.startswith("4 of 4 responses have an empty answer, which never passes where it is judged; leave")
    responses: dict[str, Any] = {"number 0?": {}, "number 1?": "", "number 2?": beside}
    empty, answers = notes(tmp_path, store_uri, lambda question: responses.get(question, ["a#1"]))
    assert empty.startswith(f"2 of 4 responses {EMPTY}")
    assert answers.startswith("1 of 4 responses has an empty answer but other fields, which never passes where it")


def test_errors_of_trials_and_empty_answers_are_recorded(store_uri: str, tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(question: str) -> Any:
        asked.append(question)
        if question == "number 1?" and asked.count(question) == 1:
            raise ValueError("busy")
        return "" if question == "number 2?" else ["a#1"]

    made = run_eval(small_set(tmp_path), target=ask, trials=3, tracking_uri=store_uri, traces="off")
    totals = load_run(made.run_id, tracking_uri=store_uri).totals
    assert {name: totals[name] for name in ("num_errors", "trial_errors", "empty_answers")} == {
        "num_errors": 0,
        "trial_errors": 1,
        "empty_answers": 3,
    }


def test_retrieval_that_could_not_be_measured_is_noted(store_uri: str, tmp_path: Path) -> None:
    made = run_eval(small_set(tmp_path), target=lambda _: "Yes.", tracking_uri=store_uri, traces="off")
    said = "the retrieval of 3 of 3 questions was not measured: the target reports no sources; return `sources`"
    assert [note for note in made.notes if note.startswith(said)]
    assert load_run(made.run_id, tracking_uri=store_uri).notes == made.notes


def test_a_judge_that_had_no_answer_to_judge_is_named(store_uri: str, tmp_path: Path) -> None:
    judge = tmp_path / "verdicts.jsonl"
    judge.write_text('{"id": 1, "overall_score": 1, "judge": "people"}\n')
    shared: dict[str, Any] = {"target": lambda _: ["a#1"], "tracking_uri": store_uri, "traces": "off"}
    made = run_eval(small_set(tmp_path), judge=f"recorded:{judge}", **shared)
    assert made.signature.judge == "none"
    assert say.judge(made) == "judge people: 0 judged, no response had an answer to judge"
    assert say.judge(load_run(made.run_id, tracking_uri=store_uri)) == say.judge(made)
    assert say.judge(run_eval(small_set(tmp_path), judge="none", **shared)).startswith("answers were not judged")
