"""Which side changed a question, and in which order questions stand."""

from __future__ import annotations

import pytest

from evaltrack.golden.sync import Difference, difference, likely_base, places


@pytest.mark.parametrize(
    ("in_file", "in_dataset", "base", "expected"),
    [
        ("a", "a", None, Difference("same")),
        ("b", "b", "a", Difference("same")),
        (None, None, "a", Difference("same")),
        ("a", None, None, Difference("added", "file")),
        (None, "a", None, Difference("added", "dataset")),
        ("a", "b", None, Difference("conflict")),
        ("b", "a", "a", Difference("changed", "file")),
        ("a", "b", "a", Difference("changed", "dataset")),
        (None, "a", "a", Difference("removed", "file")),
        ("a", None, "a", Difference("removed", "dataset")),
        ("b", "c", "a", Difference("conflict")),
        ("b", None, "a", Difference("conflict")),
        (None, "b", "a", Difference("conflict")),
    ],
)
def test_the_side_without_the_common_version_changed(
    in_file: str | None, in_dataset: str | None, base: str | None, expected: Difference
) -> None:
    """What neither side has any more is a conflict, unless both made the same of it."""
    assert difference(in_file, in_dataset, base) == expected


def test_a_record_says_which_versions_there_were() -> None:
    """An earlier version in a file is an old file, and no change."""
    assert likely_base("old", ["old", "new"]) == "old"
    assert likely_base("mine", ["old", "new"]) == "new"
    assert likely_base(None, ["old", "new"]) == "new"
    assert likely_base("mine", []) is None


@pytest.mark.parametrize(
    ("keys", "before", "after"),
    [
        ("abc", {}, {"a": 1, "b": 2, "c": 3}),
        ("acd", {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 3, "d": 4}),
        ("axb", {"a": 1, "b": 2}, {"a": 1, "x": 2, "b": 3}),
        ("ba", {"a": 1, "b": 2}, {"b": 2, "a": 3}),
    ],
)
def test_places_grow_and_stay_where_they_can(keys: str, before: dict[str, int], after: dict[str, int]) -> None:
    """A question at the end, or one less, moves no other."""
    assert places(list(keys), before) == after
