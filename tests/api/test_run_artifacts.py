from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltrack import load_run, run_eval
from evaltrack.api.run_artifacts import logged_metrics
from evaltrack.metrics.catalogue import SCORES
from evaltrack.report.templates import say
from evaltrack.tracking.tags import FIRST_METRICS, metric_name, names_within
from tests.files import put
from tests.report.test_run import result


def small_set(folder: Path) -> Path:
    lines = [{"id": n, "question": f"number {n}?", "expected_chunks": ["a#1"] if n else []} for n in range(4)]
    return put(folder / "small.jsonl", lines)


EMPTY = "have neither an answer nor sources; return an answer, a list of sources or a mapping with `answer`, `sources`"


def notes(folder: Path, uri: str, target: Any, **settings: Any) -> list[str]:
    made = run_eval(small_set(folder), target=target, tracking_uri=uri, traces="off", **settings)
    said = ("neither an answer nor sources", "empty answer", "was not measured")
    return [note for note in made.notes if any(words in note for words in said)]


def test_responses_without_content_and_empty_answers_are_counted(store_uri: str, tmp_path: Path) -> None:
    empty: dict[str, Any] = {"number 0?": {}, "number 1?": "", "number 2?": " \n", "number 3?": {"answer": ""}}
    (note,) = notes(tmp_path, store_uri, lambda question: empty[question], trials=2)
    assert note.startswith(f"8 of 8 responses {EMPTY}")
    beside = {"answer": " ", "sources": ["a#1"]}
    responses: dict[str, Any] = {"number 0?": {}, "number 1?": "", "number 2?": beside}
    without, answers = notes(tmp_path, store_uri, lambda question: responses.get(question, ["a#1"]))
    assert without.startswith(f"2 of 4 responses {EMPTY}")
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
    assert [totals[name] for name in ("num_errors", "trial_errors", "empty_answers")] == [0, 1, 3]


def test_a_judge_that_had_no_answer_to_judge_is_named(store_uri: str, tmp_path: Path) -> None:
    judge = tmp_path / "verdicts.jsonl"
    judge.write_text('{"id": 1, "overall_score": 1, "judge": "people"}\n')
    shared: dict[str, Any] = {"target": lambda _: ["a#1"], "tracking_uri": store_uri, "traces": "off"}
    made = run_eval(small_set(tmp_path), judge=f"recorded:{judge}", **shared)
    assert made.signature.judge == "people"
    assert say.judge(made) == "judge people: 0 judged, no response had an answer to judge"
    assert say.judge(load_run(made.run_id, tracking_uri=store_uri)) == say.judge(made)
    assert say.judge(run_eval(small_set(tmp_path), judge="none", **shared)).startswith("answers were not judged")


DOMAINS = ("a/b", "a_b", "A_B", "..", "x.max", "easy", "Größe", "Grosse", "Москва", "n", "q?*" * 60)


def test_names_that_a_database_takes_for_one_are_told_apart() -> None:
    names = names_within(DOMAINS)
    assert len({name.casefold() for name in names.values()}) == len(DOMAINS)
    assert (names["Москва"], names["x.max"]) == ("Москва", "x.max")
    assert names["a/b"] == names_within(["a_b", "a/b"])["a/b"] == "a_b-c14cddc0"
    assert names_within(["a/b"]) == {"a/b": "a_b"}
    assert all(len(name) < 120 for name in names.values())
    assert metric_name("reise@home: ü" + "x" * 300) == ("reise_home_ ü" + "x" * 300)[:250]
    logged, _ = logged_metrics(result(groups={domain: {"mrr": (0.5, 1)} for domain in ("a/b", "a_b")}))
    assert {f"domain/{name}/mrr" for name in names_within(["a/b", "a_b"]).values()} <= set(logged)


MOST = 15
"""Metrics without a slash, which MLflow's charts show first."""


def test_few_metrics_are_logged_beside_those_of_domains_the_main_ones_first() -> None:
    metrics = {score.metric: 0.5 for score in SCORES} | {"precision_at_k.max": 0.8, "combined_score_best": 1.4}
    logged, _ = logged_metrics(result(metrics=metrics, counts=dict.fromkeys(metrics, 4)))
    assert list(logged)[: len(FIRST_METRICS)] == list(FIRST_METRICS)
    top = [name for name in logged if "/" not in name]
    assert len(top) <= MOST
    assert {"num_questions", "num_errors", "ndcg_at_k", "combined_score"} <= set(top)
    assert {name.partition("/")[0] for name in logged if "/" in name} == {"domain"}


def test_domains_that_are_left_out_are_counted() -> None:
    groups = {f"domain {i}": {"recall_at_k": (0.5, 4)} for i in range(100)} | {"hard": {"recall_at_k": (0.25, 2)}}
    made = result(groups=groups)
    logged, note = logged_metrics(made, limit=40)
    held = [name for name in logged if name.startswith("domain/")]
    assert len(logged) <= 40
    assert held == [f"domain/domain {i}/recall_at_k" for i in range(len(held))]
    assert "difficulty/hard/recall_at_k" not in logged
    assert note == f"MLflow's metrics hold {len(held)} of 100 domains, the largest; summary.json holds them all"
    assert logged_metrics(made)[1] is None
