from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from .conftest import REPO


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(REPO / "scripts" / "mutate"))


def test_each_operator_comparison_constant_and_condition_is_changed(script: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('def f(x):\n    """Text 3."""\n    return x + 1 if x < 2 and x in "ab" else "3"\n')
    changes = [mutant.change.partition("  →  ")[2] for mutant in script["mutants"](path)]
    condition = "x + 1 if not (x < 2 and x in 'ab') else '3'"
    assert sorted(changes) == sorted(["x - 1", "2", "x <= 2", "3", "x < 2 or x in 'ab'", "x not in 'ab'", condition])


def test_a_mutant_is_killed_by_a_test_that_fails(script: dict[str, Any], tmp_path: Path) -> None:
    room, tests = tmp_path / "evaltrack" / "stats", tmp_path / "tests" / "stats"
    room.mkdir(parents=True)
    tests.mkdir(parents=True)
    for package in (room.parent, room):
        (package / "__init__.py").touch()
    (room / "halves.py").write_text("def half(x):\n    return x / 2\n\n\ndef third(x):\n    return x / 3\n")
    (tests / "test_halves.py").write_text(
        "from evaltrack.stats.halves import half\n\ndef test(): assert half(4) == 2\n"
    )
    script["killed"].__globals__["REPO"] = tmp_path
    before = (room / "halves.py").read_text()
    found = {mutant.line: script["killed"](mutant, tmp_path) for mutant in script["mutants"](room / "halves.py")}
    assert found == {2: True, 6: False}
    assert (room / "halves.py").read_text() == before
