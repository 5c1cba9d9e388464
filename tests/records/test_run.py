"""The system that a run evaluated, and why another one is another."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.records.run import LONGEST_SYSTEM, System, why_another_system
from tests.files import data

SYSTEM = System(
    commit="1", states={"corpus": "3 pages"}, settings={"top_k": "5"}, files={"rag.py": "a", "late.py": "b"}
)


@pytest.mark.parametrize(("change", "why"), data("records.json")["why_it_is_another"])
def test_why_it_is_another(change: dict[str, Any], why: str | None) -> None:
    assert why_another_system(SYSTEM, SYSTEM.model_copy(update=change)) == why


def test_changes_that_were_not_committed() -> None:
    dirty = SYSTEM.model_copy(update={"changes": "x"})
    assert why_another_system(dirty, dirty) is None
    assert why_another_system(dirty, SYSTEM) == "the work tree was not clean when the run was made"
    assert [each.is_committed for each in (SYSTEM, dirty, System())] == [True, False, False]


def test_files_stay_as_they_were_and_fit_into_a_tag() -> None:
    many = SYSTEM.with_files({"rag.py": "x", **{f"app/{n}.py": "c" * 12 for n in range(1000)}})
    assert many.files["rag.py"] == "a"
    assert 200 < len(many.files) < 1000
    assert LONGEST_SYSTEM - 1000 < len(many.model_dump_json()) <= LONGEST_SYSTEM
