"""Changes planted in pages, search, answers and judge get their cause, and their page is named."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPO


@pytest.fixture(scope="module")
def planting() -> Any:
    loader = SourceFileLoader("plant_causes", str(REPO / "scripts" / "plant_causes"))
    module = module_from_spec(spec_from_loader(loader.name, loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(("at_once", "changes"), [(1, 24), (2, 12)])
def test_planted_changes_get_their_cause(planting: Any, tmp_path: Path, at_once: int, changes: int) -> None:
    """One of each kind, and some two at once, in the pages of this repository."""
    sections = planting.sections_of([REPO / "golden" / "corpus"], "development")
    outcome = planting.plant(planting.Store(tmp_path), sections, at_once, changes, 1)
    assert outcome.right >= planting.LIMITS[at_once], outcome.wrong
    if at_once == 1:
        assert {name for name, *_ in outcome.table} >= planting.PLANTS.keys() - {"edited page outranks"}
