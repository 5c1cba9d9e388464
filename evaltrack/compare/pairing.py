"""The two sides of a comparison, and their common questions in one frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaltrack.compare.run_info import RunInfo
from evaltrack.errors import Guide, InconclusiveError
from evaltrack.metrics.catalogue import HEADLINES, SCORES
from evaltrack.metrics.run_metrics import metric_table
from evaltrack.rows.columns import own_scores_of
from evaltrack.rows.fingerprints import NUM_EXPECTED, PARTS
from evaltrack.rows.stored_row import StoredRow

if TYPE_CHECKING:
    import pandas as pd

ALWAYS = (
    *("id", "position", "digest", "domain", "difficulty", "category", "passed", "error"),
    *("recall_at_k", "reciprocal_rank"),
)
JUDGED_DIGEST = "judged_digest"
"""Column of what a judge goes by; runs of before have none."""

SECONDS = "seconds"
"""Column of the target's time."""

LIGHT_COLUMNS = list(
    dict.fromkeys((*ALWAYS, JUDGED_DIGEST, SECONDS, *(score.name for score in SCORES if score.compared)))
)
"""What is read of every question; the rest only of those that changed. Scores that were not measured are left out."""

MAIN_SCORES = tuple(score.name for score in HEADLINES if score.tells_result)
"""They decide whether a question scores lower or higher, and are shown of one that did not change; the other scores
decide only where these are all the same.
"""


@dataclass(frozen=True)
class Side:
    """One run, ready to be compared: who it is, its light columns, and its rows by id.

    The columns stand in the order of the golden set. `rows` gives rows whole, `slim` without the texts of sources, and
    `brief` what is shown of a question that is identical, in that order, too. `trials` gives, without texts, the single
    trials of questions that were asked several times; a saved file has none.
    """

    info: RunInfo
    columns: pd.DataFrame
    rows: Callable[[Collection[str]], Mapping[str, StoredRow]]
    slim: Callable[[Collection[str]], Mapping[str, StoredRow]]
    brief: Callable[[Collection[str]], Iterable[StoredRow]]
    trials: Callable[[Collection[str]], Mapping[str, Sequence[StoredRow]]] = lambda _ids: {}


class NotComparableError(InconclusiveError):
    """The two runs measured different things; the message names each difference and the cure."""


class Paired:
    """The common questions of both sides: columns of the baseline end in `_b`, those of the candidate in `_c`.

    `judged` holds the edited ones too of which only the expected sources were edited, for what judges alone say. What
    one side lacks because it was asked a selection of its golden set is `not_selected`, else added or removed. `table`
    holds the metrics of both sides.
    """

    def __init__(self, baseline: Side, candidate: Side) -> None:
        self.baseline, self.candidate = baseline, candidate
        self.table = metric_table(*(own_scores_of(side.info.signature) for side in (candidate, baseline)))
        light = (*LIGHT_COLUMNS, *self.table.own_names, *PARTS, NUM_EXPECTED)
        both_have = [name for name in light if name in baseline.columns and name in candidate.columns]
        old, new = baseline.columns[both_have], candidate.columns[both_have]
        both, removed, added = _paired(old, new)
        parts = baseline.info.signature.selection, candidate.info.signature.selection
        self.removed, self.added = () if parts[1] else removed, () if parts[0] else added
        self.not_selected = (removed if parts[1] else ()) + (added if parts[0] else ())
        for end, side in (("b", baseline), ("c", candidate)):
            _leave_out_times(both, end, recorded=side.info.signature.target.startswith("recorded:"))
        same = both["digest_b"] == both["digest_c"]
        self.edited = _in_order(both.loc[~same, "id"])
        self.frame = self.judged = both if same.all() else both[same]
        if JUDGED_DIGEST in both_have and not same.all():
            alike = same | (both[f"{JUDGED_DIGEST}_b"] == both[f"{JUDGED_DIGEST}_c"]).fillna(False)
            self.judged = both[alike]
        if self.judged.empty:
            why = "the runs have no question in common; compare runs of the same golden set"
            raise NotComparableError(why, guide=Guide.COMPARABLE)

    @property
    def unselected_domains(self) -> frozenset[str]:
        """The domains of which a selection took no question, so that no rule for them can be applied."""
        if not self.not_selected:
            return frozenset()
        sides = self.baseline.columns["domain"], self.candidate.columns["domain"]
        return frozenset(sides[0]).union(sides[1]) - frozenset(self.frame["domain_c"])


def _paired(old: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """The questions of both, in the order of `new`, and the ids that only one of them has.

    Where both hold the same questions in the same order, as runs of one golden set do, no value is copied.
    """
    import numpy as np
    import pandas as pd

    places, order = _places(old["id"], new["id"]), golden_order(new)
    pairs = order[places[order] >= 0]
    gone = np.ones(len(old), dtype=bool)
    gone[places[pairs]] = False
    sides = (_taken(old, places[pairs]).add_suffix("_b"), _taken(new, pairs).add_suffix("_c"))
    both = pd.concat([each.reset_index(drop=True) for each in sides], axis="columns")
    both = both.drop(columns="id_b").rename(columns={"id_c": "id"})
    return both, _in_order(old.loc[gone, "id"]), _in_order(new.loc[places < 0, "id"])


def _places(old: pd.Series, new: pd.Series) -> Any:
    """For each id of `new` where it stands in `old`; -1 where it does not."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    olds, news = (pa.chunked_array(pa.array(ids, pa.large_string())) for ids in (old, new))
    if news.equals(olds):
        return np.arange(len(new))
    return pc.fill_null(pc.index_in(news, value_set=olds), -1).to_numpy()


def golden_order(frame: pd.DataFrame) -> Any:
    """Where the rows stand in the order of the golden set; those of one position stand by their ids."""
    import numpy as np

    positions = frame["position"].to_numpy()
    order = np.argsort(positions, kind="stable")
    ascending = positions[order]
    if (ascending[1:] > ascending[:-1]).all():
        return order
    return np.lexsort((frame["id"].to_numpy(dtype=object), positions))


def _taken(frame: pd.DataFrame, places: Any) -> pd.DataFrame:
    """The rows at these places; the frame itself where these are all in their order."""
    import numpy as np

    return frame if np.array_equal(places, np.arange(len(frame))) else frame.take(places)


def _in_order(ids: pd.Series) -> tuple[str, ...]:
    """The ids by their characters."""
    return tuple(sorted(ids))


def _leave_out_times(frame: pd.DataFrame, end: str, *, recorded: bool) -> None:
    """The time of a target that failed is none of an answer, nor is that of reading what was recorded."""
    column = f"{SECONDS}_{end}"
    if column in frame:
        frame[column] = float("nan") if recorded else frame[column].where(frame[f"error_{end}"].isna())


def flipped(frame: pd.DataFrame, *, was: bool) -> Any:
    """Which questions went from `was` (pass or fail) to its opposite; one that was not measured did neither."""
    return (frame["passed_b"] == was).fillna(False) & (frame["passed_c"] == (not was)).fillna(False)
