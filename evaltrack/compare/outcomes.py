"""Which questions each of several runs passed: a matrix of questions and runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evaltrack.compare.change import Outcome

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class OutcomeRow:
    """One question; an outcome is None where the run was not asked it."""

    id: str
    outcomes: tuple[Outcome | None, ...]
    question: str = ""

    @property
    def differs(self) -> bool:
        """Whether the runs that were asked it do not all have one outcome."""
        return len({each for each in self.outcomes if each is not None}) > 1


@dataclass(frozen=True)
class OutcomeMatrix:
    """The first questions of several runs: those whose outcome differs, then those that failed, then the others.

    `num_questions` and `num_differing` count all of them.
    """

    rows: tuple[OutcomeRow, ...]
    num_questions: int
    num_differing: int

    def with_questions(self, texts: Mapping[str, str]) -> OutcomeMatrix:
        """The matrix with the text of each question, by its id."""
        return replace(self, rows=tuple(replace(row, question=texts.get(row.id, "")) for row in self.rows))


def outcome_matrix(columns: Sequence[pd.DataFrame], most: int) -> OutcomeMatrix:
    """The matrix of several runs, of which at most `most` questions are listed.

    A question that was edited between two runs stands there once in each form.

    Args:
        columns: The light columns of each run.
        most: Questions listed at most.
    """
    outcomes: dict[tuple[str, str], dict[int, Outcome]] = {}
    for place, frame in enumerate(columns):
        parts = zip(frame["id"], frame["digest"], frame["passed"], frame["error"].notna(), strict=True)
        for key, digest, passed, failed in parts:
            outcomes.setdefault((key, digest), {})[place] = _outcome(passed, failed=failed)
    rows = [OutcomeRow(key, tuple(map(each.get, range(len(columns))))) for (key, _), each in outcomes.items()]
    rows.sort(key=_place)
    return OutcomeMatrix(tuple(rows[:most]), len(rows), sum(row.differs for row in rows))


def _outcome(passed: Any, *, failed: bool) -> Outcome:
    import pandas as pd

    if failed:
        return "error"
    return "not measured" if pd.isna(passed) else "pass" if passed else "fail"


def _place(row: OutcomeRow) -> int:
    """Differing ones first, then those that did not pass; within each the order of the golden set stays."""
    return 0 if row.differs else 2 if "pass" in row.outcomes else 1
