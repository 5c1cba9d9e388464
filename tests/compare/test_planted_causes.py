"""Changes planted in pages, search, answers and judge get their cause, and their page is named."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

from tests.conftest import REPO


def test_each_kind_of_planted_change_gets_its_cause(tmp_path: Path) -> None:
    """In the pages of this repository."""
    planting = run_path(str(REPO / "scripts" / "plant_causes"), run_name="plant_causes")
    sections = planting["sections_of"]([REPO / "golden" / "corpus"], "development")
    outcome = planting["plant"](planting["Store"](tmp_path), sections, 1, len(planting["PLANTS"]), 1)
    assert outcome.right >= planting["LIMITS"][1], outcome.wrong
    assert len({name for name, *_ in outcome.table}) >= len(planting["PLANTS"]) - 1
