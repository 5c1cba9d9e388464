"""JUnit XML of a comparison: what a CI server reads out of it."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.reruns import Rerun, RerunState
from evaltrack.report.comparison_files import comparison_junit
from tests.comparisons import FLIP, comparison, quiet


def cases(made: Comparison) -> dict[tuple[str, str], str]:
    root = ET.fromstring(comparison_junit(made).encode())
    return {(case.attrib["classname"], case.attrib["name"]): ended(case) for case in root.iter("testcase")}


def ended(case: ET.Element) -> str:
    """`passed`, or the name of the element that says otherwise."""
    return next((child.tag for child in case if child.tag != "system-out"), "passed")


@pytest.mark.parametrize(("verdict", "how"), [("ok", "passed"), ("regression", "failure"), ("unknown", "error")])
def test_the_verdict_is_a_test_case(verdict: str, how: str) -> None:
    made = quiet(verdict=verdict)
    assert cases(made)["gate", "verdict"] == how
    assert "no question broke\n" in comparison_junit(made)


@pytest.mark.parametrize(
    ("kind", "how"), [("flaky", "passed"), ("unclear", "error"), ("not rerun", "failure"), ("confirmed", "failure")]
)
def test_a_flip_that_was_rerun_ends_as_the_gate_takes_it(kind: RerunState, how: str) -> None:
    flip = replace(FLIP, rerun=Rerun(kind, 2, 3))
    made = comparison(flips=(flip,))
    assert cases(made)["travel", "7: Can I get a refund?"] == how
    assert "passed 2 of 5 reruns" in comparison_junit(made)


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_parses_back(text: str) -> None:
    change = replace(FLIP, id=text, question=text, domain=text, cause=replace(FLIP.cause, detail=text, link=text))
    ET.fromstring(comparison_junit(comparison(flips=(change,), edited=(text,))).encode())
