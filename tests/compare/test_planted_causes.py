"""Changes planted in made-up questions and in real collections get their cause."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from evaltrack.compare.change import CauseKind
from tests.conftest import REPO
from tests.metrics.test_collections import pytestmark as with_real_data
from tests.planted_causes import PLANTS, Outcome, plant_all, real_collections


def assert_right(outcome: Outcome) -> None:
    """At least 95 % of them, and of each kind more than half."""
    table = "\n".join([*outcome.lines(), *outcome.wrong[:20]])
    assert outcome.planted == 400, table
    assert len({name for name, _, _ in outcome.table}) >= 20, table
    assert {wanted for _, wanted, _ in outcome.table} == {*get_args(CauseKind)} - {"unknown"}, table
    assert outcome.right >= 0.95, table
    for plant in PLANTS:
        times = {got: times for (name, _, got), times in outcome.table.items() if name == plant.name}
        assert 2 * times.get(plant.cause, 0) >= sum(times.values()), table


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_changes_get_their_cause(seed: int) -> None:
    """400 changes of more than 40 kinds and as many mended, about half of the kinds two changes at once."""
    assert_right(plant_all(400, seed, {}))


@with_real_data
def test_changes_planted_in_real_collections_get_their_cause() -> None:
    """400 changes in the BM25 runs of two public collections, among made-up questions."""
    real = real_collections()
    assert {name: len(found) > 20 for name, found in real.items()} == {"adi": True, "cranfield": True}
    assert_right(plant_all(400, 0, real))


def test_the_script_prints_the_table_and_its_verdict() -> None:
    command = [sys.executable, str(REPO / "scripts" / "plant_causes"), "--changes", "100", "--seed", "5"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *lines, last = ended.stdout.splitlines()
    assert any(line.split()[:3] == ["lose", "source_lost", "="] for line in lines)
    assert last.endswith("% got the right cause")
    assert last.startswith("100 changes in made-up questions")
