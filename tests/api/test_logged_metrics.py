from __future__ import annotations

from pathlib import Path

import mlflow

from evaltrack import run_eval
from evaltrack.api.run_artifacts import logged_metrics
from evaltrack.metrics.catalogue import SCORES
from evaltrack.tracking.tags import FIRST_METRICS, metric_name, names_within
from tests.api.test_evaluate import answers
from tests.files import put
from tests.report.test_run import result

DOMAINS = ("a/b", "a_b", "A_B", "..", "x.max", "easy", "Größe", "Grosse", "Москва", "n", "q?*" * 60)


def golden_of(domains: tuple[str, ...], folder: Path) -> Path:
    questions = (
        {"id": number, "question": f"what of {number}?", "domain": domain, "expected_chunks": ["a#1"]}
        for number, domain in enumerate(domains)
    )
    return put(folder / "many.jsonl", questions)


def test_any_domain_has_metrics_of_its_own(store_uri: str, tmp_path: Path) -> None:
    made = run_eval(golden_of(DOMAINS, tmp_path), target=answers, tracking_uri=store_uri, traces="off")

    logged = mlflow.MlflowClient(store_uri).get_run(made.run_id).data.metrics
    domains = [name for name in logged if name.startswith("domain/") and name.endswith("/pass_rate")]
    assert len(domains) == len(DOMAINS)
    assert {"domain/x.max/pass_rate", "domain/easy/pass_rate", "domain/Москва/pass_rate"} <= set(domains)


def test_names_that_a_database_takes_for_one_are_told_apart() -> None:
    names = names_within(DOMAINS)
    assert len({name.casefold() for name in names.values()}) == len(DOMAINS)
    assert (names["Москва"], names["x.max"]) == ("Москва", "x.max")
    assert names["Größe"].startswith("Größe-")
    assert names["a/b"] == names_within(["a_b", "a/b"])["a/b"] == "a_b-c14cddc0"
    assert names_within(["a/b"]) == {"a/b": "a_b"}
    assert names_within(["a/b", "a_b"])["a_b"] == "a_b"
    assert all(len(name) < 120 for name in names.values())
    assert metric_name("reise@home: ü" + "x" * 300) == ("reise_home_ ü" + "x" * 300)[:250]


def test_the_main_metrics_are_logged_and_the_user_s_own() -> None:
    metrics = {score.metric: 0.5 for score in SCORES} | {"precision_at_k.max": 0.8, "combined_score_best": 1.4}
    logged, _ = logged_metrics(result(metrics=metrics, counts=dict.fromkeys(metrics, 4)))

    assert list(logged)[: len(FIRST_METRICS)] == list(FIRST_METRICS)
    top = [name for name in logged if "/" not in name]
    assert len(top) == 15
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
    words = f"MLflow's metrics hold {len(held)} of 100 domains, the largest; summary.json holds them all"
    assert note == words
    assert logged_metrics(made)[1] is None
