"""The comparisons of several golden sets, each with its baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from evaltrack.compare.comparison import Comparison, Verdict

EXIT_CODES: dict[Verdict, int] = {"regression": 1, "unknown": 3, "ok": 0}
"""The exit code of each verdict, the worst first: of several sets the worst decides."""


@dataclass(frozen=True)
class ComparedSet:
    """One golden set: its comparison, or why it could not be compared."""

    golden: str
    comparison: Comparison | None = None
    problem: str = ""

    @property
    def verdict(self) -> Verdict:
        """That of the comparison; without one it could not be told."""
        return self.comparison.verdict if self.comparison else "unknown"


@dataclass(frozen=True)
class SetComparisons:
    """Several golden sets, each compared with its baseline, in the order in which they were named."""

    sets: Sequence[ComparedSet]

    @property
    def verdict(self) -> Verdict:
        """The worst of all: a regression beats what could not be told, and that beats no regression."""
        verdicts = {each.verdict for each in self.sets}
        return next((verdict for verdict in EXIT_CODES if verdict in verdicts), "unknown")

    @property
    def exit_code(self) -> int:
        """0 no regression in any set, 1 a regression in one, else 3 where one could not be told."""
        return EXIT_CODES[self.verdict]

    def _repr_html_(self) -> str:
        return "".join(
            (each.comparison and each.comparison._repr_html_())
            or f"<p>{escape(each.golden)}: {escape(each.problem)}</p>"
            for each in self.sets
        )
