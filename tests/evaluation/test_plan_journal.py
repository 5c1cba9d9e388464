"""Which rows a run keeps in its journal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.plan import planned
from evaltrack.records import Row

from .test_plan_checks import golden_set, recorded


@pytest.mark.parametrize(
    ("target", "judge", "lines"),
    [
        ("recorded", "none", 0),
        ("recorded", "recorded", 3),
        (lambda question: ["a"], "none", 3),
    ],
    ids=["at hand", "at hand and judged", "asked"],
)
def test_what_costs_nothing_to_make_again_is_not_kept(target: Any, judge: str, lines: int, tmp_path: Path) -> None:
    """Responses at hand are read again after a kill; where a judge was asked of them, or a target, each row is kept."""
    golden = golden_set(tmp_path, *({} for _ in range(3)))
    if judge == "recorded":
        (tmp_path / "judge").mkdir()
        judge = recorded(tmp_path / "judge", *({"id": n, "overall_score": 1} for n in range(3)))
    if target == "recorded":
        target = recorded(tmp_path, *({"id": n, "answer": "a", "sources": [{"chunk_id": "a"}]} for n in range(3)))
    rows: list[Row] = []
    with (
        closing(Journal(tmp_path / "state" / "run.sqlite", {})) as journal,
        planned(golden, EvaluationConfig.of(judge=judge), target) as plan,
    ):
        plan.ask(rows.append, memory=journal)
    with closing(Journal(tmp_path / "state" / "run.sqlite", {})) as journal:
        assert journal.reuse.num_rows == lines
    assert [row.passed for row in rows] == [True] * 3
