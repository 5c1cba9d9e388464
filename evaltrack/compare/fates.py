"""What became of each common question, and which of them are worst: over columns, a million questions at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, get_args

from evaltrack.compare.change import Fate
from evaltrack.compare.pairing import MAIN_SCORES, flipped
from evaltrack.compare.partly_measured import without_results
from evaltrack.compare.side_columns import numbers
from evaltrack.metrics.catalogue import MetricTable
from evaltrack.metrics.metric import Score
from evaltrack.rows.fingerprints import PARTS
from evaltrack.rows.stored_row import JUDGE_ERROR

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

ORDER: tuple[Fate, ...] = get_args(Fate)


def result_scores(frame: pd.DataFrame, left_out: Collection[str], table: MetricTable) -> list[Score]:
    """The scores of the result that both sides have and that may be compared, the main ones first."""
    there = [
        score
        for score in table.scores
        if score.compared
        and score.tells_result
        and score.metric not in left_out
        and f"{score.name}_b" in frame
        and f"{score.name}_c" in frame
    ]
    return sorted(there, key=lambda score: score.name not in MAIN_SCORES)


class Fates:
    """Exactly one fate for each common question, so that their counts add up.

    With `pass_rate` among the metrics that are left out no question breaks or is fixed; with `judge_score` among them
    what the judges said is no difference.
    """

    def __init__(self, frame: pd.DataFrame, left_out: Collection[str], table: MetricTable) -> None:
        self._frame, self._left_out, self._table = frame, left_out, table
        self.unmeasured = only_measured_in("b", frame, left_out)
        self._fates = self._first_of_each()

    def _first_of_each(self) -> NDArray[np.int8]:
        """The place of each question's fate in `ORDER`: where several hold it is the first."""
        import numpy as np

        lower, higher = self._moved()
        masks: dict[Fate, Any] = {
            "broke": self._flipped(was=True),
            "lost": self.unmeasured,
            "fixed": self._flipped(was=False),
            "lower score": lower,
            "newly measured": only_measured_in("c", self._frame, self._left_out),
            "higher score": higher & ~lower,
            "other content": ~self._same_content(),
        }
        fates = np.full(len(self._frame), ORDER.index("identical"), np.int8)
        for fate, mask in reversed(masks.items()):
            fates[np.asarray(mask, dtype=bool)] = ORDER.index(fate)
        return fates

    @property
    def failed_again(self) -> int:
        """How many questions ended in errors in the candidate, and were not measured in the baseline either."""
        return int((self._failed("c") & ~self.unmeasured).sum())

    @property
    def failed_before(self) -> int:
        """How many questions ended in errors in the baseline, so that nothing of them can be compared."""
        return int((self._failed("b") & ~self.unmeasured).sum())

    def count(self, fate: Fate) -> int:
        """How many questions have it."""
        return int((self._fates == ORDER.index(fate)).sum())

    def part(self, fate: Fate, most: int | None = None) -> Any:
        """The columns of the questions that have it, or of the first of them, in the order of the golden set."""
        import numpy as np

        return self._frame.take(np.flatnonzero(self._fates == ORDER.index(fate))[:most])

    def worst_first(self, fate: Fate) -> list[str]:
        """Their ids by loss: of the judge's score, then of recall, then of the rank; of gains the largest first."""
        import numpy as np

        part = self.part(fate)
        sign = 1 if fate in ("fixed", "newly measured", "higher score") else -1
        keys = [sign * loss for loss in _losses(part, self._left_out)]
        if fate == "newly measured":
            keys.insert(0, (part["passed_c"] != False).fillna(True).to_numpy(dtype=bool))  # noqa: E712 - those that fail
        return list(part["id"].to_numpy()[np.lexsort(keys[::-1])]) if len(part) else []

    def _flipped(self, *, was: bool) -> Any:
        mask = flipped(self._frame, was=was)
        return mask & ("pass_rate" not in self._left_out)

    def _failed(self, side: str) -> Any:
        """Which questions ended in errors; where a judge is not compared, in those of the target."""
        failed = self._frame[f"error_{side}"].notna()
        if "pass_rate" in self._left_out:  # as of those that are lost
            failed &= ~_by_judge(self._frame, side)
        return failed

    def _moved(self) -> tuple[Any, Any]:
        """Which questions have a lower, and which a higher score; of the lesser scores where no main one moved."""
        none = self._frame["id"].isna()
        lower, higher = none.copy(), none.copy()
        settled = none
        for main in (True, False):
            for score in result_scores(self._frame, self._left_out, self._table):
                if (score.name in MAIN_SCORES) == main:
                    was, now = (numbers(self._frame[f"{score.name}_{side}"]) for side in "bc")
                    less, more = (now < was), (now > was)
                    lower |= (less if score.higher_is_better else more) & ~settled
                    higher |= (more if score.higher_is_better else less) & ~settled
            settled = lower | higher
        return lower, higher

    def _same_content(self) -> Any:
        same = self._frame["id"].notna()
        for name in PARTS:
            if name in self._frame and (name != "verdict_print" or "judge_score" not in self._left_out):
                same &= self._frame[name]
        return same


def only_measured_in(side: str, frame: pd.DataFrame, left_out: Collection[str]) -> Any:
    """Which questions only this side measured: their outcome, their retrieval, or the score of their judge.

    One whose target gives no answer passes by its retrieval alone, and has no score of a judge.
    """
    other = "b" if side == "c" else "c"
    mask = frame[f"passed_{side}"].notna() & frame[f"passed_{other}"].isna()
    if "pass_rate" in left_out:  # whether a judge failed that is not compared says nothing
        mask &= ~_by_judge(frame, other)
    names = ("recall_at_k",) if "judge_score" in left_out else ("recall_at_k", "overall_score")
    for name in names:
        if f"{name}_{side}" in frame:
            gone = frame[f"{name}_{other}"].isna() if f"{name}_{other}" in frame else True
            mask |= frame[f"{name}_{side}"].notna() & gone
    return mask


def without_lost(frame: pd.DataFrame, left_out: Collection[str]) -> pd.DataFrame:
    """The pairs, of which the candidate has no outcome of those that are lost.

    That such a question passes may be for what is not measured any more: no mean may rise by it.
    """
    lost = only_measured_in("b", frame, left_out) & ~flipped(frame, was=True)
    return without_results(frame, lost.to_numpy(), ("pass",)) if lost.any() else frame


def _by_judge(frame: pd.DataFrame, side: str) -> Any:
    return frame[f"error_{side}"].str.startswith(JUDGE_ERROR).fillna(True).astype(bool)


def _losses(part: pd.DataFrame, left_out: Collection[str]) -> Iterator[np.ndarray]:
    """How much each question lost of the judge's score, of recall and of the rank; what is not measured counts 0."""
    import numpy as np

    names = {score.name for score in result_scores(part, left_out, MetricTable())}
    for kinds in (("overall_score", "reasoning_score"), ("recall_at_k",), ("reciprocal_rank",)):
        loss = np.zeros(len(part))
        for name in names.intersection(kinds):
            was, now = (np.nan_to_num(numbers(part[f"{name}_{side}"])) for side in "bc")
            loss += was - now  # a run has one rubric, so that scales never mix
        yield np.round(loss, 9)
