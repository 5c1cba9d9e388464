"""`mlflow.genai.evaluate` with the scorers of evaltrack on a real collection: per question the values of a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import mlflow
import pytest

import evaltrack.scorers as own
from evaltrack import open_golden, run_eval
from evaltrack.golden.mlflow_records import record_of
from tests.metrics.test_collections import adi
from tests.scorers.test_genai import NAMES, records

pytestmark = [
    pytest.mark.long,  # what is built in is held against MLflow in `test_genai`, too
    pytest.mark.skipif(
        not os.environ.get("EVALTRACK_TEST_DATA"), reason="EVALTRACK_TEST_DATA does not name the folder of real data"
    ),
    pytest.mark.filterwarnings("ignore"),  # MLflow warns of itself and of pandas
]

MAKERS = (own.RecallAtK, own.PrecisionAtK, own.MRR, own.HitRate, own.NDCGAtK, own.ContextPrecision)
OWN = ["context_precision"]


def ranked(lines: list[str]) -> dict[str, list[str]]:
    """The documents of each query in a TREC run, by rank."""
    ranks: dict[str, list[tuple[int, str]]] = {}
    for line in lines:
        query, _, document, rank, *_ = line.split()
        ranks.setdefault(query, []).append((int(rank), document))
    return {query: [document for _, document in sorted(found)] for query, found in ranks.items()}


def evaluated(data: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """The value of each question and scorer as `mlflow.genai.evaluate` logs it."""
    made = mlflow.genai.evaluate(data=data, scorers=[make(5) for make in MAKERS])
    table = made.result_df
    assert table is not None
    values = {}
    for _, row in table.iterrows():
        for assessment in row["assessments"]:
            if (name := assessment["assessment_name"]) in NAMES and assessment["feedback"]["value"] is not None:
                values[row["request"]["question"], name] = assessment["feedback"]["value"]
    return values


def test_values_of_a_collection_are_those_of_a_run(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_MAX_WORKERS", "1")  # SQLite has one writer
    golden, path, lines = adi(tmp_path)
    path.write_text("".join(lines))
    result = run_eval(golden, target=f"recorded:{path}", judge="none", traces="off", scores=OWN, tracking_uri=store_uri)
    sources, data = ranked(lines), []
    for question in open_golden(golden):
        record = record_of(question)
        outputs = {"sources": sources.get(question.id, [])}
        data.append({"inputs": dict(record.inputs), "outputs": outputs, "expectations": dict(record.expectations)})
    mlflow.set_tracking_uri(store_uri)
    try:
        values = evaluated(data)
    finally:
        mlflow.set_tracking_uri(None)
    rows = {row["question"]: row for row in result.rows}
    expected = {
        (text, name): row[NAMES[name]]
        for text, row in rows.items()
        for name in (
            "recall_at_5",
            "precision_at_5",
            "mrr_at_5",
            "hit_rate_at_5",
            "ndcg_at_5",
            "context_precision_at_5",
        )
        if row[NAMES[name]] is not None
    }
    assert len(expected) == 6 * 35
    assert values == pytest.approx(expected, abs=1e-12)


def test_values_of_travel_are_those_of_a_run_in_mlflow(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.conftest import REPO

    monkeypatch.setenv("MLFLOW_GENAI_EVAL_MAX_WORKERS", "1")
    result = run_eval(REPO / "golden/travel.jsonl", judge="none", traces="off", scores=OWN, tracking_uri=store_uri)
    mlflow.set_tracking_uri(store_uri)
    try:
        values = evaluated(records(REPO / "golden/travel.jsonl", REPO / "golden/corpus/travel"))
    finally:
        mlflow.set_tracking_uri(None)
    rows = {row["question"]: row for row in result.rows}
    assert len(values) == 6 * 60
    assert {key: rows[key[0]][NAMES[key[1]]] for key in values} == pytest.approx(values, abs=1e-12)
