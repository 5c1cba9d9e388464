"""What a golden set could show: the smallest losses that tests and gate find in a set of its size."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import floor

from evaltrack.compare.gate import DEFAULT_DROPS, EXACT
from evaltrack.golden.reader import open_golden
from evaltrack.stats.power import detectable_share, fewest_changes

POWER, CONFIDENCE = 0.8, 0.95

RETRIEVAL_RULES = ("recall_at_k", "mrr")
"""Metrics with a rule in the default gate that a run without a judge measures."""


@dataclass(frozen=True)
class SmallestLoss:
    """The smallest loss that one rule or test shows in a set of so many questions.

    The losses are those of a baseline that finds everything first: a broken question takes its recall and its
    reciprocal rank from 1 to 0. None where the set is too small to show any.

    Attributes:
        rule: ``flips``, ``recall_at_k`` and ``mrr`` are rules of the default gate; ``exact`` is one exact paired test,
            ``evidence`` that of `gate=evidence`, corrected for being several.
        broken: questions that must break, at least.
        drop: what recall and MRR drop by then, in [0, 1].
        share: share of all questions that users ask, in [0, 1], at which the set shows the loss in 80 % of all cases,
            by the model of `evaltrack.stats.power.detectable_share`.
    """

    rule: str
    broken: int | None
    drop: float | None
    share: float | None


@dataclass(frozen=True)
class GroupPower:
    """The smallest losses that the answerable questions of a set, or of one of its domains, show; `domain` or None."""

    domain: str | None
    answerable: int
    losses: tuple[SmallestLoss, ...]


@dataclass(frozen=True)
class GoldenPower:
    """The smallest losses of a whole set (the first of `groups`), and of each domain where there are several."""

    file: str
    groups: tuple[GroupPower, ...]


def estimate_power(path: str | os.PathLike[str]) -> GoldenPower:
    """The smallest losses that a golden set can show, by the number of its answerable questions.

    Raises:
        GoldenError: the set cannot be read, or lines are bad.
    """
    checked = open_golden(path)
    answerable = Counter(question.domain for question in checked if question.expected)
    groups = [GroupPower(None, answerable.total(), smallest_losses(answerable.total()))]
    if len(checked.stats.by["domain"]) > 1:
        domains = ((domain, answerable[domain]) for domain in checked.stats.by["domain"])
        groups += [GroupPower(domain, count, smallest_losses(count)) for domain, count in domains]
    return GoldenPower(str(checked.path), tuple(groups))


def smallest_losses(answerable: int) -> tuple[SmallestLoss, ...]:
    """The smallest loss that each rule of the default gate, and each exact test, shows with so many questions."""
    return tuple(_loss(rule, answerable, changes) for rule, changes in _changes(answerable))


def _changes(answerable: int) -> Iterator[tuple[str, int]]:
    """Each rule and test with the broken questions that it needs."""
    yield "flips", 1
    for metric in RETRIEVAL_RULES:
        yield metric, floor(DEFAULT_DROPS[metric].amount * answerable + EXACT) + 1
    yield "exact", fewest_changes()
    yield "evidence", fewest_changes(tests=len(RETRIEVAL_RULES) + 1)


def _loss(rule: str, answerable: int, changes: int) -> SmallestLoss:
    if changes > answerable:
        return SmallestLoss(rule, None, None, None)
    return SmallestLoss(rule, changes, changes / answerable, detectable_share(answerable, changes, power=POWER))
