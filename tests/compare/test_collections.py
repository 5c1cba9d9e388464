"""Two real retrieval systems compared on three public collections, against other people's arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from scipy import stats

from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate
from tests.compared import side
from tests.metrics.test_collections import DATA, golden_set, judgements, queries, rows, text_of, with_data

pytestmark = with_data

K = 5
MEASURES = {"recall_at_k": f"recall_{K}", "precision_at_k": f"P_{K}", "ndcg_at_k": f"ndcg_cut_{K}"}


def per_query(collection: str, system: str) -> dict[str, dict[str, float]]:
    """trec_eval's own values for each query, of the run cut as its lines stand and judgements of 0 and 1."""
    folder = DATA / "collections" / collection
    binary = {
        query: {document: int(grade >= 1) for document, grade in grades.items()}
        for query, grades in judgements(folder / "qrels.trec").items()
    }
    ranked: dict[str, dict[str, float]] = {}
    for line in text_of(folder / f"{system}.run").splitlines():
        query, _, document, *_ = line.split()
        held = ranked.setdefault(query, {})
        held.setdefault(document, -float(len(held)))
    found: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(binary, set(MEASURES.values())).evaluate(ranked)
    return found


@pytest.mark.parametrize("collection", ["adi", "cranfield", "vaswani"])
def test_deltas_intervals_and_flips_are_those_of_the_references(collection: str, tmp_path: Path) -> None:
    """Plain against stemmed BM25: deltas to 1e-9, McNemar as scipy has it, the interval as wide or wider."""
    folder = DATA / "collections" / collection
    golden = golden_set(tmp_path / f"{collection}.jsonl", queries(collection), judgements(folder / "qrels.trec"))
    sides: list[Any] = []
    for system in ("bm25_plain", "bm25_porter"):
        (tmp_path / system).write_text(text_of(folder / f"{system}.run"))
        sides.append(side(rows(golden, tmp_path / system, K).values()))
    made = compare(*sides, Gate())

    was, now = per_query(collection, "bm25_plain"), per_query(collection, "bm25_porter")
    for name, measure in MEASURES.items():
        differences = np.array([now[query][measure] - was[query][measure] for query in was])
        metric = next(metric for metric in made.metrics if metric.name == name)
        assert metric.n == len(differences)
        assert metric.delta == pytest.approx(differences.mean(), abs=1e-9)
        assert (metric.wins, metric.losses) == ((differences > 1e-12).sum(), (differences < -1e-12).sum())
        theirs = stats.bootstrap((differences,), np.mean, method="BCa", n_resamples=10_000, rng=7).confidence_interval
        width = theirs.high - theirs.low
        assert metric.interval is not None
        if metric.method == "bca":
            assert metric.interval == pytest.approx((theirs.low, theirs.high), abs=0.06 * width)
        else:  # of few queries resampling alone is too narrow
            assert metric.n < 100
            assert metric.interval[0] < theirs.low + 0.06 * width
            assert theirs.high - 0.06 * width < metric.interval[1]
    broke = [query for query in was if was[query][f"recall_{K}"] > 0 and now[query][f"recall_{K}"] == 0]
    mended = [query for query in was if was[query][f"recall_{K}"] == 0 and now[query][f"recall_{K}"] > 0]
    assert sorted(flip.id for flip in made.flips) == sorted(broke)
    assert sorted(fix.id for fix in made.by_fate["fixed"]) == sorted(mended)
    if len(broke) > len(mended):
        p_value = stats.binomtest(len(broke), len(broke) + len(mended), alternative="greater").pvalue
        assert made.loss.p == pytest.approx(p_value, abs=1e-6)
    assert all(change.cause.kind in ("source_lost", "source_demoted") for change in made.flips)
