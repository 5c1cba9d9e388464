"""What a run adds up of its rows as they come: means, what it took, the first misses, and what is worth a note."""

from __future__ import annotations

from collections.abc import Callable

from evaltrack.evaluation.run_warnings import RunWarnings
from evaltrack.metrics.aggregate import Kept, Summary
from evaltrack.metrics.ledger import Ledger
from evaltrack.metrics.run_metrics import metric_table
from evaltrack.records import OwnScore, Row


class Figures:
    """All of it, of one run with these scores of its own; `shown_rows` are the first that failed or did not pass.

    A run `of_failed` asks only questions that did not pass before.
    """

    def __init__(
        self, k: int, own: tuple[OwnScore, ...], warn: Callable[[str], object], *, of_failed: bool = False
    ) -> None:
        self.ledger, self.shown_rows = Ledger(), Kept()
        self.summary = Summary(k, metric_table(own))
        self.warnings = RunWarnings(k, tuple(score.name for score in own), warn, of_failed=of_failed)

    def add_trial(self, row: Row) -> None:
        """Add one trial of a question."""
        self.ledger.add(row)
        self.warnings.add_trial(row)

    def add_question(self, row: Row) -> None:
        """Add one finished question, whose trials were added."""
        self.summary.add(row)
        self.shown_rows.add(row)
        self.warnings.add(row)
