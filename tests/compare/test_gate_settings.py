"""The settings of a comparison."""

from __future__ import annotations

import pytest

from evaltrack.compare.gate import ComparisonConfig
from evaltrack.errors import UsageError


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("allow_flips", -1, "allow_flips is -1; write a whole number of at least 0"),
        ("min_coverage", 1.5, "min_coverage is 1.5; write a number from 0 to 1"),
        ("gate", "strict", "gate is strict; write auto, seed or evidence"),
        ("max_reruns", -1, "max_reruns is -1; write a whole number of at least 0"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        ComparisonConfig.of(**{name: value})
    assert str(refused.value) == message


def test_one_text_is_a_list_of_one() -> None:
    """Where several are taken, one may stand alone; a set of parts has one order."""
    made = ComparisonConfig.of(max_drop="mrr=5%", ignore={"k", "judge"})
    assert (made.max_drop, made.ignore) == (("mrr=5%",), ("judge", "k"))
