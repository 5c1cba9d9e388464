"""Sets, domains and labels as a whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from evaltrack.golden.lint.size import check_domains, check_size
from evaltrack.golden.reader import GoldenStats


def stats(questions: int, negatives: int = 0, judged_only: int = 0, **by: Any) -> GoldenStats:
    labels = {"domain": Counter({"set": questions}), "category": Counter(by.get("category", {}))}
    return GoldenStats(questions, negatives, judged_only, labels, Counter({"set": negatives}))


@pytest.mark.parametrize(
    ("counts", "is_small"),
    [
        ((5,), True),
        ((6,), False),
        ((10, 5), True),
        ((10, 4), False),
        ((9, 2, 2), True),
        ((9, 9), False),
        ((9, 0, 9), False),
    ],
)
def test_sets_in_which_no_test_shows_anything(counts: tuple[int, ...], is_small: bool) -> None:
    findings = list(check_size("set.jsonl", stats(*counts)))
    assert [finding.code for finding in findings] == ["too-small"] * is_small
    assert all(str(finding).startswith("set.jsonl: warning: has ") for finding in findings)


@pytest.mark.parametrize(
    ("counts", "is_thin"), [((9, 2), True), ((10, 1), True), ((10, 2), False), ((3, 3), False), ((3, 0, 3), False)]
)
def test_thin_domains(counts: tuple[int, ...], is_thin: bool) -> None:
    """Fewer than ten questions or two negatives, in sets that have both kinds."""
    assert [finding.code for finding in check_domains("f", stats(*counts))] == ["thin-domain"] * is_thin
