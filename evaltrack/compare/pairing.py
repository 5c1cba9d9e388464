"""The two sides of a comparison, and their common questions in one frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaltrack.compare.partly_measured import TRIALS, partly_lost, without_results
from evaltrack.compare.run_info import RunInfo
from evaltrack.compare.side_columns import DIGEST, ID, JUDGED_DIGEST, numbers
from evaltrack.errors import Guide, InconclusiveError
from evaltrack.metrics.catalogue import HEADLINES, SCORES, metric_table
from evaltrack.records.amount import count, verb
from evaltrack.rows.columns import own_scores_of
from evaltrack.rows.fingerprints import NUM_EXPECTED, PARTS, nothing
from evaltrack.rows.stored_row import StoredRow

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

ALWAYS = (
    *("id", "position", "digest", "domain", "difficulty", "category", "passed", "error"),
    *("recall_at_k", "reciprocal_rank"),
)
SECONDS = "seconds"
"""Column of the target's time."""

LIGHT_COLUMNS = list(
    dict.fromkeys((*ALWAYS, JUDGED_DIGEST, SECONDS, TRIALS, *(score.name for score in SCORES if score.compared)))
)
"""What is read of every question; the rest only of those that changed. Scores that were not measured are left out."""

MAIN_SCORES = tuple(score.name for score in HEADLINES if score.tells_result)
"""They decide whether a question scores lower or higher, and are shown of one that did not change; the other scores
decide only where these are all the same.
"""


@dataclass(frozen=True)
class Side:
    """One run, ready to be compared: who it is, its light columns, and its rows by id.

    `columns`, `ids` and `fingerprint`, as `SideColumns` makes them, stand in the order of the golden set. `rows` gives
    rows whole, `slim` without the texts of sources, and `brief` what is shown of a question that is identical, in that
    order, too. `trials` gives, without texts, the single trials of questions that were asked several times; a saved
    file has none.
    """

    info: RunInfo
    columns: pd.DataFrame
    ids: Callable[[], pa.Array]
    fingerprint: Callable[[str], NDArray[np.uint64] | None]
    rows: Callable[[Collection[str]], Mapping[str, StoredRow]]
    slim: Callable[[Collection[str]], Mapping[str, StoredRow]]
    brief: Callable[[Collection[str]], Iterable[StoredRow]]
    trials: Callable[[Collection[str]], Mapping[str, Sequence[StoredRow]]] = lambda _ids: {}


class NotComparableError(InconclusiveError):
    """The two runs measured different things; the message names each difference and the cure."""


class Paired:
    """The common questions of both sides: columns of the baseline end in `_b`, those of the candidate in `_c`.

    The column of a part in `PARTS` says whether both sides hold the same. `judged` holds the edited ones too of which
    only the expected sources were edited, for what judges alone say. What one side lacks because it was asked a
    selection of its golden set is `not_selected`, else added or removed; `num_renamed` of these were the same under
    another id. Those `in_part` were measured in less by the candidate than by the baseline, and count as not measured.
    `table` holds the metrics of both sides.
    """

    def __init__(self, baseline: Side, candidate: Side, *, passing: bool = True) -> None:
        self.baseline, self.candidate = baseline, candidate
        self.table = metric_table(*(own_scores_of(side.info.signature) for side in (candidate, baseline)))
        both, removed, added = _paired(baseline, candidate, (*LIGHT_COLUMNS, *self.table.own_names, NUM_EXPECTED))
        self.in_part = partly_lost(baseline, candidate, passing=passing)
        if self.in_part:
            lost = both[ID].isin(self.in_part).to_numpy()
            both = without_results(both, lost, (score.name for score in self.table.scores))
        parts = baseline.info.signature.selection, candidate.info.signature.selection
        self.removed, self.added = () if parts[1] else removed, () if parts[0] else added
        self.not_selected = (removed if parts[1] else ()) + (added if parts[0] else ())
        self.num_renamed = _num_renamed(baseline, candidate, self.removed, self.added)
        for end, side in (("b", baseline), ("c", candidate)):
            _leave_out_times(both, end, recorded=side.info.signature.target.startswith("recorded:"))
        same = both.pop(DIGEST)
        alike = same | both.pop(JUDGED_DIGEST) if JUDGED_DIGEST in both else same
        self.edited = tuple(sorted(both.loc[~same, ID]))
        self.frame = self.judged = both if same.all() else both[same]
        if (alike & ~same).any():
            self.judged = both[alike]
        if self.judged.empty:
            why = f"the runs have no question in common; {_cure(baseline, candidate)}"
            raise NotComparableError(why, guide=Guide.COMPARABLE)

    @property
    def unselected_domains(self) -> frozenset[str]:
        """The domains of which a selection took no question, so that no rule for them can be applied."""
        if not self.not_selected:
            return frozenset()
        sides = self.baseline.columns["domain"], self.candidate.columns["domain"]
        return frozenset(sides[0].unique()).union(sides[1].unique()) - frozenset(self.frame["domain_c"].unique())


def _cure(baseline: Side, candidate: Side) -> str:
    """What to do where no question is common: ids may have been renamed, which the digests of questions show."""
    renamed = _num_shared(baseline.fingerprint(DIGEST), candidate.fingerprint(DIGEST))
    if not renamed:
        return "compare runs of the same golden set"
    those = f"{count(renamed, 'question')} {verb(renamed, 'is', 'are')} the same under other ids"
    return f"{those}: give them their earlier ids, or evaluate the baseline again"


def _num_renamed(baseline: Side, candidate: Side, removed: Sequence[str], added: Sequence[str]) -> int:
    """How many of the questions that were added are among those that were removed, but for their ids."""
    if not removed or not added:
        return 0
    return _num_shared(_digests(baseline, removed), _digests(candidate, added))


def _num_shared(was: Any, now: Any) -> int:
    """How many of these numbers both sides have."""
    import numpy as np

    return 0 if was is None or now is None else len(np.intersect1d(was, now))


def _digests(side: Side, ids: Sequence[str]) -> Any:
    """What stands for the questions with these ids; None where the side does not say."""
    import pyarrow as pa
    import pyarrow.compute as pc

    prints = side.fingerprint(DIGEST)
    named = pc.is_in(side.ids(), value_set=pa.array(ids, pa.large_string())).to_numpy(zero_copy_only=False)
    return None if prints is None else prints[named]


def _paired(
    baseline: Side, candidate: Side, light: Sequence[str]
) -> tuple[pd.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """The questions of both, in the order of the candidate, and the ids that only one of them has.

    Where both hold the same questions in the same order, as runs of one golden set do, no value is copied.
    """
    import pandas as pd

    was, now = _pairs(baseline, candidate)
    names = list(dict.fromkeys(name for name in light if name in baseline.columns and name in candidate.columns))
    sides = ((baseline, was, "_b"), (candidate, now, "_c"))
    frames = [_taken(side.columns[names], places).add_suffix(end) for side, places, end in sides]
    both = pd.concat([frame.reset_index(drop=True) for frame in frames], axis="columns")
    ids = candidate.ids()
    both[ID] = _texts(ids if now is None else ids.take(now))
    for name in (DIGEST, JUDGED_DIGEST, *PARTS):
        prints = _taken(baseline.fingerprint(name), was), _taken(candidate.fingerprint(name), now)
        if prints[0] is not None and prints[1] is not None:
            both[name] = prints[0] == prints[1]
            if name == JUDGED_DIGEST:
                both[name] &= prints[0] != nothing()
    return both, _without(baseline, was), _without(candidate, now)


def _pairs(baseline: Side, candidate: Side) -> tuple[Any, Any]:
    """Where the common questions stand in both, in the order of the candidate; None: all, as they are."""
    import numpy as np
    import pyarrow.compute as pc

    if np.array_equal(*(side.fingerprint(ID) for side in (baseline, candidate))):  # type: ignore[arg-type]
        return None, None
    places = pc.fill_null(pc.index_in(candidate.ids(), value_set=baseline.ids()), -1).to_numpy()
    now = np.flatnonzero(places >= 0)
    return places[now], now


def _taken(values: Any, places: Any) -> Any:
    """What stands at these places, of a frame or an array."""
    if values is None or places is None:
        return values
    return values.take(places)


def _without(side: Side, places: Any) -> tuple[str, ...]:
    import numpy as np

    if places is None:
        return ()
    others = np.ones(len(side.columns), dtype=bool)
    others[places] = False
    return tuple(sorted(side.ids().filter(others).to_pylist()))


def _texts(texts: pa.Array) -> Any:
    """Texts as a column, without a copy where pandas has them as Arrow does."""
    import pyarrow as pa

    return pa.table({"text": texts}).to_pandas()["text"]


def _leave_out_times(frame: pd.DataFrame, end: str, *, recorded: bool) -> None:
    """The time of a target that failed is none of an answer, nor is that of reading what was recorded."""
    column = f"{SECONDS}_{end}"
    if column in frame:
        seconds = numbers(frame[column])
        seconds[recorded | frame[f"error_{end}"].notna()] = float("nan")
        frame[column] = seconds


def flipped(frame: pd.DataFrame, *, was: bool) -> Any:
    """Which questions went from `was` (pass or fail) to its opposite; one that was not measured did neither."""
    return (frame["passed_b"] == was).fillna(False) & (frame["passed_c"] == (not was)).fillna(False)
