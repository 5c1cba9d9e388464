"""The ids of a golden set, to tell what was recorded of other questions."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EXAMPLES = 3


class IdHashes:
    """The hashes of ids, in 8 bytes an id; they are those of this process."""

    def __init__(self, hashes: array[int] | None = None) -> None:
        self._hashes = array("q") if hashes is None else hashes

    def values(self) -> npt.NDArray[np.int64]:
        """All hashes, int64, of shape (ids,)."""
        import numpy as np

        return np.frombuffer(self._hashes, dtype=np.int64)

    def others(self, keys: Iterable[str]) -> list[str]:
        """The keys that are none of the ids, in their order."""
        import numpy as np

        keys = list(keys)
        known = np.isin(np.array([hash(key) for key in keys], dtype=np.int64), self.values())
        return [key for key, is_known in zip(keys, known, strict=True) if not is_known]


def strangers_note(path: Path, what: str, count: int, ids: Sequence[str]) -> str:
    """``answers.jsonl: lines of no question in the golden set: 2 (`21`, `22`); …``; nothing where there are none.

    Args:
        path: The recording.
        what: What it holds, in the plural.
        count: How many of them are of other questions.
        ids: The first ids of these.
    """
    if not count:
        return ""
    first = ", ".join(f"`{key[:60]}`" for key in ids[:EXAMPLES]) + (", …" if count > EXAMPLES else "")
    return f"{path}: {what} of no question in the golden set: {count:,} ({first}); nothing was done with them"
