"""What a golden set could show, held against the gate and its evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltrack import estimate_power
from evaltrack.api.golden_power import smallest_losses
from evaltrack.compare.comparison import MetricDelta
from evaltrack.compare.engine import compare
from evaltrack.compare.evidence import shown_losses
from evaltrack.compare.gate import Gate
from evaltrack.stats.significance import sign_flip
from tests.compared import found, question, rows_of, side
from tests.conftest import REPO


def delta(name: str, answerable: int, broken: int) -> MetricDelta:
    """A metric whose baseline found everything, after some questions broke."""
    test = sign_flip([1.0] * answerable, [0.0] * broken + [1.0] * (answerable - broken))
    after = (answerable - broken) / answerable
    return MetricDelta(
        name,
        baseline=1.0,
        candidate=after,
        n=answerable,
        drop=1 - after,
        wins=0,
        ties=answerable - broken,
        losses=broken,
        threshold=Gate().drops[name],
        p_value=test.p,
        changed=test.changed,
    )


@pytest.mark.parametrize("answerable", [1, 5, 6, 7, 19, 20, 21, 40, 60, 100, 1000])
def test_the_smallest_losses_are_those_of_gate_and_evidence(answerable: int) -> None:
    """So many broken questions are over the rule, or shown; one fewer is not."""
    losses = {loss.rule: loss.broken for loss in smallest_losses(answerable)}
    for rule in ("recall_at_k", "mrr"):
        broken = losses[rule]
        assert broken
        assert Gate().exceeded(delta(rule, answerable, broken), higher_is_better=True)
        assert not Gate().exceeded(delta(rule, answerable, broken - 1), higher_is_better=True)
    for broken in range(min(answerable, 12) + 1):
        metrics = [delta(name, answerable, broken) for name in ("recall_at_k", "mrr")]
        is_shown = bool(shown_losses(metrics, [], broken, 0))
        assert is_shown is bool(losses["evidence"] and broken >= losses["evidence"])
        assert (metrics[0].p_value or 0) < 0.05 or not (losses["exact"] and broken >= losses["exact"])


@pytest.mark.parametrize(("rule", "gate"), [("evidence", Gate(kind="evidence")), ("flips", Gate(kind="seed"))])
@pytest.mark.parametrize("answerable", [8, 40])
def test_whole_comparisons_show_the_smallest_loss(answerable: int, rule: str, gate: Gate) -> None:
    """Of runs with planted losses: a regression with so many broken questions, and none with one fewer."""
    broken = next(loss.broken for loss in smallest_losses(answerable) if loss.rule == rule)
    assert broken
    questions = [question(f"q{number}") for number in range(answerable)]
    verdicts = []
    for losses in (broken - 1, broken):
        after = {f"q{number}": found("x") for number in range(losses)}
        made = compare(side(rows_of(questions, {})), side(rows_of(questions, after)), gate, resamples=100)
        verdicts.append(made.verdict)
    assert verdicts == ["ok", "regression"]


def test_a_set_and_its_domains() -> None:
    """Answerable questions alone count; a set of one domain is one group."""
    whole = estimate_power(REPO / "golden/travel.jsonl")
    assert [(group.domain, group.answerable) for group in whole.groups] == [(None, 60)]
    exact = next(loss for loss in whole.groups[0].losses if loss.rule == "exact")
    assert (exact.broken, exact.drop) == (6, 0.1)
    assert exact.share == pytest.approx(0.1286, abs=1e-4)
    groups = estimate_power(REPO / "golden/calibration.jsonl").groups
    assert {group.domain: group.answerable for group in groups} == {
        **dict.fromkeys(("travel", "food", "cdc", "construction", "business"), 7),
        None: 35,
    }


def test_a_set_without_answerable_questions_shows_nothing(tmp_path: Path) -> None:
    """Every loss is None, and no number is made up."""
    path = tmp_path / "none.jsonl"
    path.write_text(json.dumps({"id": 1, "question": "a?", "expected_chunks": []}) + "\n")
    (group,) = estimate_power(path).groups
    assert {(loss.broken, loss.drop, loss.share) for loss in group.losses} == {(None, None, None)}
