"""Who takes the rows of a run as they come: what adds them up, writes them, looks at them and tells of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from evaltrack.evaluation.lookouts import Lookouts
from evaltrack.evaluation.plan import Plan
from evaltrack.evaluation.progress import BlockProgress, Progress
from evaltrack.evaluation.trials import Gathering
from evaltrack.metrics.aggregate import Kept, Summary
from evaltrack.metrics.ledger import Ledger
from evaltrack.metrics.run_metrics import metric_table
from evaltrack.records import Row
from evaltrack.rows.block import RowBlock
from evaltrack.tracking.progress_tag import ProgressTag
from evaltrack.tracking.writer import RunWriter


@dataclass
class Takers:
    """All of them, of one run; `shown_rows` are the first that failed or did not pass."""

    plan: Plan
    writer: RunWriter
    pulse: ProgressTag
    progress: Progress
    ledger: Ledger = field(init=False, default_factory=Ledger)
    shown_rows: Kept = field(init=False, default_factory=Kept)

    def __post_init__(self) -> None:
        settings, signature = self.plan.settings, self.plan.signature
        self.summary = Summary(settings.k, metric_table(signature.scores))
        self.lookouts = Lookouts(settings.k, signature.own_names, self.progress.warn)
        self._trials = Gathering(settings.trials, self._take_question)

    def take(self, row: Row) -> None:
        """Take one trial of a question."""
        self.ledger.add(row)
        self.writer.add_trial(row)
        self._trials.add(row)

    def _take_question(self, row: Row) -> None:
        """Take one finished question."""
        self.writer.add(row)
        self.summary.add(row)
        self.shown_rows.add(row)
        self.lookouts.add(row)
        self.pulse.add()
        self.progress.advance(row)

    def take_block(self, block: RowBlock) -> None:
        """Take finished questions that were asked once."""
        self.writer.add_block(block)
        for example, question, num_tokens in block.alike():
            self.ledger.add_alike(example, num_tokens)
            self.summary.add_alike(example, question, num_tokens)
        times = Counter(block.kinds)
        self.lookouts.add_kinds((example, times[kind]) for kind, example in enumerate(block.examples))
        for place, kind in enumerate(block.kinds):
            if self.shown_rows.wants(block.examples[kind], block.first + place):
                self.shown_rows.add(block.row(place))
        self.pulse.add(len(block))
        if isinstance(self.progress, BlockProgress):
            self.progress.advance_by(len(block))
            return
        for row in block.rows():
            self.progress.advance(row)

    def close(self) -> None:
        """Take the questions whose trials were broken off, and wait for what is under way."""
        self._trials.close()
        self.pulse.close()
