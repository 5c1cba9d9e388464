"""Recorded responses and verdicts: each line names its question, which may be none of the golden set."""

from __future__ import annotations

import re
from array import array
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evaltrack.errors import printable
from evaltrack.records.amount import first_of
from evaltrack.records.finding_words import id_words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EXAMPLES = 3

Key = TypeVar("Key", bound=Hashable)


class IdHashes:
    """The hashes of the ids of questions, in 8 bytes each; those of this process."""

    def __init__(self, hashes: array[int] | None = None) -> None:
        self._hashes = array("q") if hashes is None else hashes

    def values(self) -> npt.NDArray[np.int64]:
        """All hashes, int64, of shape (ids,)."""
        import numpy as np

        return np.frombuffer(self._hashes, dtype=np.int64)

    def others(self, keys: Iterable[Key]) -> list[Key]:
        """The keys that are no question's id, in their order."""
        import numpy as np

        keys = list(keys)
        known = np.isin(np.array([hash(key) for key in keys], dtype=np.int64), self.values())
        return [key for key, is_known in zip(keys, known, strict=True) if not is_known]


def strangers_note(path: Path, what: str, count: int, ids: Sequence[str]) -> str:
    """``answers.jsonl: responses of no question in the golden set: 2 (`21`, `22`); …``; nothing where there are none.

    Args:
        path: The recording.
        what: What it holds, in the plural.
        count: How many of them are of other questions.
        ids: The first of these, as they are named.
    """
    if not count:
        return ""
    first = first_of(ids, EXAMPLES, count)
    those = f"{what} of no question in the golden set"
    return printable(f"{path}: {those}: {count:,} ({first}); nothing was done with them")


def shown_id(key: str) -> str:
    """The id of a question, between backticks, of bounded length."""
    return f"`{key[:60]}`"


ID_NAME = re.compile(r"(?i)(?:^|[_-])id$|^q(?:uestion)?id$")
"""Names of a field that may hold the id of a question."""


class RecordedLineError(ValueError):
    """A line does not say which question it is of."""


def take_id(line: dict[str, Any], deed: str) -> str:
    """Take the question's id out of a line; `deed` is what was done with the question.

    Raises:
        RecordedLineError: it has no id.
    """
    if "id" not in line:
        near = next((name for name in line if ID_NAME.search(name)), "")
        meant = f"rename `{near}`" if near else f"name the question that was {deed}"
        raise RecordedLineError(f"`id` is missing; {meant}")
    key = line.pop("id")
    if isinstance(key, bool) or not isinstance(key, str | int) or key == "":
        raise RecordedLineError(id_words(key))
    return str(key)
