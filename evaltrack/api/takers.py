"""Who takes the rows of a run as they come: what adds them up, writes them and tells of them."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.evaluation.figures import Figures
from evaltrack.evaluation.plan import Plan
from evaltrack.evaluation.progress import Progress
from evaltrack.evaluation.trials import Gathering
from evaltrack.records import Row
from evaltrack.tracking.progress_tag import ProgressTag
from evaltrack.tracking.writer import RunWriter


@dataclass
class Takers:
    """All of them, of one run."""

    plan: Plan
    writer: RunWriter
    pulse: ProgressTag
    progress: Progress

    def __post_init__(self) -> None:
        settings = self.plan.settings
        own, of_failed = self.plan.signature.scores, bool(settings.only_failed)
        self.figures = Figures(settings.k, own, self.progress.warn, of_failed=of_failed)
        self._trials = Gathering(settings.trials, self._take_question)

    def take(self, row: Row) -> None:
        """Take one trial of a question."""
        self.figures.add_trial(row)
        self.writer.add_trial(row)
        self._trials.add(row)

    def _take_question(self, row: Row) -> None:
        """Take one finished question."""
        self.writer.add(row)
        self.figures.add_question(row)
        self.pulse.add()
        self.progress.advance(row)

    def close(self) -> None:
        """Take the questions whose trials were broken off, and wait for what is under way."""
        self._trials.close()
        self.pulse.close()
