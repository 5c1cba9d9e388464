"""What a gate takes for shown: whole comparisons of planted losses, and the level over all rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate, parse_drops
from evaltrack.metrics.catalogue import BY_METRIC
from tests.compared import found, question, rows_of, side

FIFTY = [question(f"q{i}") for i in range(50)]
EVIDENCE: tuple[Any, ...] = ("evidence", "significant")


def compared(
    changed: dict[str, tuple[str, ...]], gate: Gate, before: dict[str, tuple[str, ...]] | None = None
) -> Comparison:
    """Fifty questions that found their source at the first rank, against others that got these sources."""
    sides = [rows_of(FIFTY, {key: found(*ids) for key, ids in (given or {}).items()}) for given in (before, changed)]
    return compare(side(sides[0]), side(sides[1]), gate, resamples=100)


@pytest.mark.parametrize("kind", EVIDENCE)
def test_a_uniform_drop_of_rank_is_evidence(kind: Any) -> None:
    """MRR from 1.0 to 0.5 on 50 of 50 questions."""
    made = compared({f"q{i}": ("x", f"q{i}!") for i in range(50)}, Gate(kind=kind))
    mrr = next(metric for metric in made.metrics if metric.name == "mrr")
    assert (made.verdict, mrr.changed, mrr.regressed) == ("regression", 50, True)
    assert mrr.p_value is not None
    assert mrr.p_value < 1e-12


@pytest.mark.parametrize("kind", EVIDENCE)
def test_a_uniform_loss_is_evidence_though_flips_are_allowed(kind: Any) -> None:
    """Recall 1.0 to 0.0 with `--allow-flips 50`."""
    made = compared({f"q{i}": ("x",) for i in range(50)}, Gate(kind=kind, allow_flips=50))
    assert made.verdict == "regression"
    assert made.reasons[0].startswith("Recall@5 went from 1.000 to 0.000")


def test_a_small_loss_that_is_shown_stays_below_its_rule() -> None:
    """Every question lost a rank: `evidence` tolerates what the rule tolerates, `significant` does not."""
    rules, _, asked = parse_drops(["mrr=60%", "recall_at_k=off"], BY_METRIC)
    changed = {f"q{i}": ("x", f"q{i}!") for i in range(50)}
    assert compared(changed, Gate(rules, kind="evidence", explicit=asked)).verdict == "ok"
    assert compared(changed, Gate(rules, kind="significant", explicit=asked)).verdict == "regression"


def test_gains_are_never_a_loss() -> None:
    worse = {f"q{i}": ("x", f"q{i}!") for i in range(50)}
    for kind in EVIDENCE:
        assert compared({}, Gate(kind=kind), before=worse).verdict == "ok"


def test_a_domain_with_a_rule_of_its_own_is_tested_too() -> None:
    """Beside the rules of the whole set, and corrected for all of them."""
    _, domains, _ = parse_drops(["d:recall_at_k=1%"], BY_METRIC)
    made = compared({f"q{i}": ("x",) for i in range(12)}, Gate({}, domains, allow_flips=50, kind="evidence"))
    assert made.verdict == "regression"
    assert made.reasons[0].startswith("Recall@5 in d went from")


@pytest.mark.parametrize("n", [pytest.param(20, marks=pytest.mark.long), 50])
def test_sides_swapped_by_coin_keep_the_level(n: int) -> None:
    """Two systems that differ by coin alone: over all rules together at most some 5 % are called a regression."""
    draw = np.random.default_rng(n)
    asked, called = [question(f"q{i}") for i in range(n)], 0
    for _ in range(50):
        ranks = draw.choice([0, 1, 2, 3], (2, n), p=[0.2, 0.5, 0.2, 0.1])
        sides = [
            side(rows_of(asked, {f"q{i}": _ranked(f"q{i}!", rank) for i, rank in enumerate(each)})) for each in ranks
        ]
        called += compare(*sides, Gate(kind="evidence"), resamples=20).verdict == "regression"
    assert called / 50 < 0.05 + 3 * (0.05 * 0.95 / 50) ** 0.5


def _ranked(key: str, rank: int) -> Any:
    return found("x") if rank == 0 else found(*("x", "y")[: rank - 1], key)


def test_ids_that_moved_are_said_first() -> None:
    """The texts are the same under other ids: that stands before the regression."""
    texts = {f"q{i}!": f"text of q{i}!" for i in range(8)} | {f"new{i}": f"text of q{i}!" for i in range(8)}
    changed = {f"q{i}": found(f"new{i}", "other", texts=texts) for i in range(8)}
    made = compare(side(rows_of(FIFTY, {})), side(rows_of(FIFTY, changed)), Gate(), resamples=100)
    assert made.verdict == "regression"
    assert made.reasons[0].startswith("all 8 questions that got worse: the expected sources came back under other ids")


def test_texts_that_moved_are_said_first() -> None:
    """The ids are the same, their texts changed, and what came of it got worse."""
    changed = {f"q{i}": found("x", f"q{i}!", texts={f"q{i}!": "edited"}) for i in range(20)}
    made = compare(side(rows_of(FIFTY, {})), side(rows_of(FIFTY, changed)), Gate(), resamples=100)
    assert made.verdict == "regression"
    assert made.reasons[0].startswith("all 20 questions that got worse: the expected sources have the same ids")
