"""Whether a question that broke fails by its judge alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaltrack.compare.changes import _by_judge
from evaltrack.rows.stored_row import StoredRow

ANSWERED: dict[str, Any] = {
    "reasoning_score": None,
    "negative_pass": None,
    "overall_score": 0.2,
    "hit": 1.0,
    "false_abstention": 0.0,
    "tools_called": None,
    "id": "1",
    "abstained": False,
    "sources": [{"chunk_id": "a"}],
}
"""The columns of a row that a judge did not pass."""


@pytest.mark.parametrize(
    ("changes", "by_judge"),
    [
        ({}, True),
        ({"tools_called": 1.0}, True),
        ({"tools_called": 0.0}, False),
        ({"hit": 0.0}, False),
        ({"overall_score": None}, False),
        ({"hit": None}, True),
        ({"hit": None, "false_abstention": 1.0}, False),
        ({"hit": None, "false_abstention": None}, True),
        ({"reasoning_score": 40.0, "hit": 0.0}, True),
        ({"negative_pass": 0.0, "overall_score": None}, True),
    ],
)
def test_what_would_pass_but_for_the_judge(changes: dict[str, Any], by_judge: bool) -> None:
    """Nothing else of the row fails; a negative is by the judge unless the target itself declined before."""
    before, after = StoredRow.of(ANSWERED), StoredRow.of(ANSWERED | changes)
    assert _by_judge(before, after) == by_judge
    assert not _by_judge(None, after)
    assert not _by_judge(before, None)
    if "negative_pass" in after.scores:
        assert not _by_judge(replace(before, abstained=True), after)
        assert not _by_judge(replace(before, sources=()), after)
