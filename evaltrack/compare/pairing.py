"""Defines a side of a comparison, pairs the common questions of two sides in a data frame, counts error messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from evaltrack.errors import Guide, InconclusiveError
from evaltrack.metrics.catalogue import COMPARED_SCORES, metric_table, own_scores_of
from evaltrack.metrics.metric import Score
from evaltrack.records.row import JUDGE_ERROR, PRINTS, Row
from evaltrack.records.run import Run

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ALWAYS = (
    *("id", "position", "digest", "domain", "difficulty", "category", "passed", "error"),
    *("recall_at_k", "reciprocal_rank"),
)
SECONDS = "seconds"
"""The column of the target's time."""

LIGHT_COLUMNS = list(dict.fromkeys((*ALWAYS, SECONDS, "trials", "passes", *COMPARED_SCORES, *PRINTS)))
"""The columns that are read for every question. Other columns are read only for changed questions."""


@dataclass(frozen=True)
class Side:
    """One run, ready to be compared.

    `frame` holds its light columns in the order of the golden set. `rows` reads rows by id, without the texts of their
    sources except for the ids in its second argument.
    """

    info: Run
    frame: pd.DataFrame
    rows: Callable[[Collection[str], Collection[str]], Mapping[str, Row]]


def side_frame(tables: Iterable[pa.Table]) -> pd.DataFrame:
    """Return the frame of a side from its light columns: flags are `boolean`, texts of few values are categories."""
    import pyarrow as pa

    table = pa.concat_tables(tables)
    frame: pd.DataFrame = table.to_pandas()
    for column in table.schema:
        if pa.types.is_boolean(column.type):
            frame[column.name] = frame[column.name].astype("boolean")
        elif pa.types.is_string(column.type) and column.name not in ("id", "digest"):
            frame[column.name] = frame[column.name].astype("category")
    if SECONDS in frame:
        frame[SECONDS] = frame[SECONDS].mask(frame["error"].notna())  # an error is no response
    return frame.sort_values(["position", "id"], ignore_index=True)


def numbers(column: pd.Series) -> Any:
    """Return a new array of the floats of a column, with NaN for missing values."""
    return column.to_numpy(dtype=float, na_value=float("nan"), copy=True)


class NotComparableError(InconclusiveError):
    """The two runs measured different things. The message names each difference and the fix."""


class Paired:
    """The common questions of both sides in a `frame`: columns of the baseline end in `_b`, of the candidate in `_c`.

    A column of `PRINTS` is True if both sides are equal. Questions that one side lacks are `not_selected` if it
    selected a part of its golden set, else `added` or `removed`; `edited` ones have another digest. `table` holds the
    metrics of both sides, `left_out` the metrics that cannot be compared.
    """

    def __init__(self, baseline: Side, candidate: Side, left_out: Collection[str] = ()) -> None:
        self.baseline, self.candidate, self.left_out = baseline, candidate, frozenset(left_out)
        self.table = metric_table(*(own_scores_of(side.info.signature) for side in (candidate, baseline)))
        was, now = baseline.frame, candidate.frame
        old, new = (set(frame["id"].to_numpy()) for frame in (was, now))
        removed, added = tuple(sorted(old - new)), tuple(sorted(new - old))
        was_part, now_part = baseline.info.is_part, candidate.info.is_part
        self.removed, self.added = () if now_part else removed, () if was_part else added
        self.not_selected = (removed if now_part else ()) + (added if was_part else ())
        columns = [name for name in now if name in was or name == "id"]
        both = now[columns].merge(was[columns], on="id", suffixes=("_c", "_b"))
        for name in PRINTS:
            if f"{name}_b" in both:
                both[name] = both.pop(f"{name}_b") == both.pop(f"{name}_c")
        same = both.pop("digest_b") == both.pop("digest_c")
        self.edited = tuple(sorted(both.loc[~same, "id"]))
        self.frame = both[same].reset_index(drop=True)
        if self.frame.empty:
            cure = "the same selection" if self.not_selected else "the same golden set, whose ids stayed the same"
            why = f"the runs have no question in common; compare runs of {cure}"
            raise NotComparableError(why, guide=Guide.COMPARABLE)

    @property
    def passing_compared(self) -> bool:
        """True if passing is compared."""
        return "pass_rate" not in self.left_out

    @cached_property
    def telling(self) -> list[Score]:
        """The compared scores that determine a question's result."""
        scores = [each for each in self.table.scores if each.tells_result]
        return [each for each in scores if f"{each.name}_b" in self.frame and each.metric not in self.left_out]

    def failed(self, end: str) -> Any:
        """Return a mask of the errors of one side. Those of a judge that is not compared do not count."""
        errors = self.frame[f"error_{end}"]
        if self.passing_compared:
            return errors.notna()
        return errors.notna() & ~errors.str.startswith(JUDGE_ERROR).fillna(True).astype(bool)

    def outcomes(self, end: str) -> Any:
        """Return the outcome of each question on one side."""
        import numpy as np

        passed = self.frame[f"passed_{end}"]
        if not self.passing_compared:
            return np.where(self.failed(end), "error", "not compared")
        masks = [self.failed(end), passed.isna(), passed.fillna(False)]
        return np.select([mask.to_numpy(dtype=bool) for mask in masks], ["error", "not measured", "pass"], "fail")

    def flipped(self, *, was: bool) -> Any:
        """Return a mask of the questions that changed from `was` (pass or fail) to its opposite."""
        passed = (self.frame["passed_b"] == was) & (self.frame["passed_c"] == (not was))
        return passed.fillna(False)

    def trials(self) -> Any:
        """Return passes and trials of each question, each of shape (2, questions), baseline first.

        A question that was asked once has one trial. Passes are NaN if it was not measured.
        """
        import numpy as np

        sides = []
        for end in "bc":
            once = [numbers(self.frame[f"passed_{end}"]), np.ones(len(self.frame))]
            columns = [f"passes_{end}", f"trials_{end}"]
            several = [numbers(self.frame[name]) for name in columns] if columns[1] in self.frame else once
            sides.append(np.where(several[1] > 0, several, once))
        return np.stack(sides, axis=1)


_NUMBER = re.compile(r"(?<!\d)(?<!HTTP )(?<!status )(?<!status code )\d+")
"""A number in a message, except the status of a response: 500 is a different error than 503."""

_ECHO = re.compile(r'"input": [^}…]*')
"""The part of a request that FastAPI repeats in its error."""


@dataclass(frozen=True)
class ErrorCount:
    """The number of common questions of one side that ended in errors with this message."""

    side: Literal["baseline", "candidate"]
    message: str
    count: int


def message_kind(message: str) -> str:
    """Return the message without an echo of the request, and with `#` for numbers that may vary, such as a port.

    An HTTP status is kept.
    """
    return _NUMBER.sub("#", _ECHO.sub("", message))


def error_counts(frame: pd.DataFrame) -> tuple[ErrorCount, ...]:
    """Return how often each message ended a common question, baseline first, the most frequent first.

    Messages of one kind count as one; the first of them is shown.
    """
    errors: list[ErrorCount] = []
    whose: Literal["baseline", "candidate"]
    for whose in ("baseline", "candidate"):
        first = dict[str, str]()
        messages = frame[f"error_{whose[0]}"].dropna().astype(str)
        counts = Counter(first.setdefault(message_kind(text), text) for text in messages)
        errors += [ErrorCount(whose, text, count) for text, count in counts.most_common()]
    return tuple(errors)
