"""What looks at the questions of a run as they are measured, for something that its numbers do not say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evaltrack.evaluation.answered_negatives import AnsweredNegatives
from evaltrack.evaluation.inconsistent_verdicts import Misfits
from evaltrack.evaluation.retrieval_gaps import RetrievalGaps
from evaltrack.evaluation.score_gaps import ScoreGaps
from evaltrack.evaluation.small_k import SmallK
from evaltrack.evaluation.unexpected_ids import Returned
from evaltrack.records import Row


class Lookouts:
    """All of them; `warn` is called while the run can still be stopped.

    A run `of_failed` asks only questions that did not pass before, as `only_failed` selects.
    """

    def __init__(
        self, k: int, own_names: Sequence[str], warn: Callable[[str], object], *, of_failed: bool = False
    ) -> None:
        self._returned = Returned(warn, of_failed=of_failed)
        self._of_one_note = (self._returned, Misfits(), SmallK(k), AnsweredNegatives())
        self._of_several = (RetrievalGaps(), ScoreGaps(own_names))

    def add(self, row: Row) -> None:
        """Take one finished question."""
        self.add_kinds(((row, 1),))

    def depend_on_order(self, examples: Sequence[Row]) -> bool:
        """Whether the order of questions of these kinds decides what is said next: then each is added for itself."""
        return self._returned.may_warn_of(examples)

    def add_kinds(self, kinds: Iterable[tuple[Row, int]]) -> None:
        """Take finished questions: an example of each kind of them, and how many there are."""
        for example, times in kinds:
            for each in (*self._of_one_note, *self._of_several):
                each.add(example, times)
        self._returned.warn_once()

    @property
    def notes(self) -> tuple[str, ...]:
        """What they have to say at the end."""
        notes = [each.note for each in self._of_one_note if each.note]
        return (*notes, *(note for each in self._of_several for note in each.notes))
