from __future__ import annotations

import asyncio
import csv
import gzip
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaltrack.golden.reader import open_golden
from evaltrack.metrics.aggregate import Summary
from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.measure import Rules
from evaltrack.records import Row
from evaltrack.targets import open_target
from tests.actors import evaluated

DATA = Path(os.environ.get("EVALTRACK_TEST_DATA", ""))

with_data = pytestmark = pytest.mark.skipif(
    not os.environ.get("EVALTRACK_TEST_DATA"), reason="EVALTRACK_TEST_DATA does not name the folder of real data"
)

RUNS = [
    pytest.param(collection, system, questions, id=f"{collection}-{system}")
    for collection, questions in (("adi", 35), ("cranfield", 225), ("vaswani", 93))
    for system in ("bm25_plain", "bm25_porter")
]

WHOLE_LIST = 1000
"""A k beyond the end of every list, for measures without a cut-off."""

NAMES = {
    "P": "precision_at_k",
    "recall": "recall_at_k",
    "success": "hit",
    "mrr": "reciprocal_rank",
    "ndcg_cut": "ndcg_at_k",
    "ndcg_exp": "ndcg_at_k",
}
"""trec_eval's measures with a cut-off, each with the score of ours that it is."""


GRADED = ("cranfield",)
"""Collections whose judgements have grades, so that their nDCG is not the binary one."""

Grades = dict[str, dict[str, int]]
"""Query, document, grade."""


def text_of(path: Path) -> str:
    packed = path.with_name(f"{path.name}.gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text()


def judgements(path: Path) -> Grades:
    grades: Grades = {}
    for line in path.read_text().splitlines():
        query, _, document, grade = line.split()
        grades.setdefault(query, {})[document] = int(grade)
    return grades


def golden_set(path: Path, texts: Mapping[str, str], grades: Grades) -> Path:
    with path.open("w") as file:
        for query, text in texts.items():
            line: dict[str, Any] = {"id": query, "question": text}
            if query in grades:
                line["expected_chunks"] = [document for document, grade in grades[query].items() if grade >= 1]
            file.write(json.dumps(line) + "\n")
    return path


def queries(collection: str) -> dict[str, str]:
    lines = (DATA / "collections" / collection / "queries.jsonl").read_text().splitlines()
    return {line["_id"]: line["text"] for line in map(json.loads, lines)}


def rows(golden: Path, recorded: Path, k: int) -> dict[str, Row]:
    async def ask() -> list[Row]:
        return [
            row async for row in evaluated(open_golden(golden), open_target(f"recorded:{recorded}"), rules=Rules(k))
        ]

    found = asyncio.run(ask())
    by_id = {row.id: row for row in found}
    assert len(by_id) == len(found)
    return by_id


def summary(found: Iterable[Row], k: int) -> Summary:
    whole = Summary(k)
    for row in found:
        whole.add(row)
    return whole


def measure_of(column: str) -> tuple[str, int]:
    """Our score's name and the k of one of trec_eval's measures."""
    if column == "recip_rank":
        return "reciprocal_rank", WHOLE_LIST
    name, _, k = column.rpartition("_")
    return NAMES[name], int(k)


@pytest.mark.parametrize(("collection", "system", "questions"), RUNS)
def test_every_question_scores_as_trec_eval_has_it(
    collection: str, system: str, questions: int, tmp_path: Path
) -> None:
    folder = DATA / "collections" / collection
    golden = golden_set(tmp_path / f"{collection}.jsonl", queries(collection), judgements(folder / "qrels.trec"))
    (tmp_path / "run").write_text(text_of(folder / f"{system}.run"))
    expected = list(csv.DictReader(text_of(folder / f"expected_{system}.perquery.csv").splitlines()))
    columns = set(expected[0]) - {"qid", "map", "Rprec"}
    columns -= {column for column in columns if collection in GRADED and column.startswith("ndcg")}
    cuts = {k for _, k in map(measure_of, columns)}
    found = {k: rows(golden, tmp_path / "run", k) for k in cuts}

    assert cuts >= {1, 5, 10, 20, 25, 30, 100, 1000}
    assert [line["qid"] for line in expected] == list(queries(collection))
    assert len(expected) == questions == len(found[5])
    wrong = [
        (line["qid"], column, score, line[column])
        for line in expected
        for column in columns
        for name, k in [measure_of(column)]
        for score in [found[k][line["qid"]].scores[name]]
        if f"{score:.6f}" != line[column]
    ]
    assert wrong == []

    whole = summary(found[5].values(), 5)
    published = [float(line["recall_5"]) for line in expected]
    assert whole.metrics["recall_at_k"] == pytest.approx(sum(published) / questions, abs=1e-6)
    assert whole.totals["num_measured"] == whole.counts["recall_at_k"] == questions
    assert whole.totals["num_errors"] == 0


def test_trec_evals_own_fixture(tmp_path: Path) -> None:
    folder = DATA / "trec_eval"
    grades = judgements(folder / "qrels.test")
    run = folder / "results.test"
    golden = golden_set(tmp_path / "trec.jsonl", {query: f"topic {query}" for query in grades}, grades)

    printed = [line.split() for line in (folder / "out.test.aq").read_text().splitlines()]
    ours = (*(f"{name}_" for name in NAMES), "recip_rank")
    printed = [line for line in printed if line[0].startswith(ours)]
    cuts = {measure_of(measure)[1] for measure, _, _ in printed}
    found = {k: rows(golden, run, k) for k in cuts}
    means = {k: summary(found[k].values(), k).metrics for k in cuts}
    metric_of = {score.name: score.metric for score in SCORES}

    assert cuts == {1, 5, 10, 15, 20, 30, 100, 200, 500, 1000}
    assert len(printed) == 31 * 4
    wrong = []
    for measure, query, value in printed:
        name, k = measure_of(measure)
        score = means[k][metric_of[name]] if query == "all" else found[k][query].scores[name]
        if f"{score:.4f}" != value:
            wrong.append((measure, query, score, value))
    assert wrong == []
