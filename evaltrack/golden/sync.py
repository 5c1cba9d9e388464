"""What becomes of a question of which a golden file and a dataset hold a version each. Pure.

As in version control, both are held against the version that was the same on both sides last: the side that still has
it did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["same", "added", "changed", "removed", "conflict"]
Side = Literal["file", "dataset", "both"]


@dataclass(frozen=True)
class Difference:
    """How the versions of a question differ: what was done to it, and on which side."""

    kind: Kind
    side: Side = "both"


def difference(in_file: str | None, in_dataset: str | None, base: str | None) -> Difference:
    """How the versions of a question differ.

    Args:
        in_file: Digest of the version in the file; None where the question is not in it.
        in_dataset: Likewise of the dataset.
        base: Digest of the version that both had last; None where they are not known to have had one.
    """
    if in_file == in_dataset:
        return Difference("same")
    if base is None:
        if in_dataset is None:
            return Difference("added", "file")
        return Difference("added", "dataset") if in_file is None else Difference("conflict")
    if in_dataset == base:
        return Difference("removed" if in_file is None else "changed", "file")
    if in_file == base:
        return Difference("removed" if in_dataset is None else "changed", "dataset")
    return Difference("conflict")


def likely_base(in_file: str | None, versions: Sequence[str]) -> str | None:
    """The version that both sides had last, as far as the record alone can say.

    Args:
        in_file: Digest of the version in the file; None where the question is not in it.
        versions: Digests of the versions that were pushed, the last one last.
    """
    if in_file in versions:
        return in_file
    return versions[-1] if versions else None


def places(keys: Sequence[str], before: dict[str, int]) -> dict[str, int]:
    """A growing number for each question in the order of the file; as few as possible are other than before."""
    made: dict[str, int] = {}
    last = 0
    for key in keys:
        last = max(before.get(key, 0), last + 1)
        made[key] = last
    return made
