"""One column of a row: its name and type, how its value comes from a record, and which values a file may hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from sys import float_info
from typing import Any, Literal

MOST = 1 << 60
"""The largest count, and the largest time in seconds."""

LARGEST = float_info.max
"""The largest finite number."""

ColumnType = Literal["text", "texts", "number", "integer", "flag", "objects"]


@dataclass(frozen=True)
class Column:
    """One column, or one field of the objects in a column.

    Args:
        name: Its name in the file.
        type: What it holds; `texts` and `objects` are lists.
        value: Gives the value of a `Row` and k; of a `Source` and the number of characters of its text; of a `Verdict`.
        fields: Of `objects`, their fields.
        required: Whether no file of evaltrack has null there.
        bounds: Least and largest number.
        choices: The texts that it may hold; empty where any may stand there.
    """

    name: str
    type: ColumnType
    value: Callable[[Any, int], Any]
    _: KW_ONLY
    fields: tuple[Column, ...] = ()
    required: bool = False
    bounds: tuple[float, float] = (0, MOST)
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attribute:
    """The value of a column that is an attribute, such as `question.id`; None where a part on the way to it is None."""

    path: str

    def __call__(self, record: Any, _: int) -> Any:
        """Of one record."""
        for name in self.path.split("."):
            if record is None:
                return None
            record = getattr(record, name)
        return record


@dataclass(frozen=True)
class ScoreOf:
    """The value of a column that is a score of a row; None where it was not measured."""

    name: str

    def __call__(self, row: Any, _: int) -> Any:
        """Of one row."""
        return row.scores.get(self.name)
