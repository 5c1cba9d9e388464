"""The common questions of two sides, in one frame."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.compare.pairing import Paired, error_counts, message_kind
from evaltrack.records.row import Row
from tests.compared import found, patched, question, row, side

IDS = [*"abcdefg", "é", "Z", "10", "9"]


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Some questions in any order of rows, some edited, some at one position."""
    ids = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=8))
    asked = [question(key, **({"expected_chunks": ["new"]} if draw(st.booleans()) else {})) for key in [*ids, "both"]]
    made = [row(one, found(draw(st.sampled_from(["x", f"{one.id}!"]))), draw(st.integers(0, 4))) for one in asked]
    return draw(st.permutations(made))


@settings(max_examples=25, deadline=None)
@given(was=rows(), now=rows())
def test_questions_are_paired_by_id_in_the_order_of_the_candidate(was: list[Row], now: list[Row]) -> None:
    """Whatever the order of the rows; what one side lacks or has otherwise is listed by its characters."""
    both_have = [one for one in was if one.id == "both"][:1]
    now = [patched(one, digest=both_have[0].digest) if one.id == "both" else one for one in now]
    paired, old, new = Paired(side(was), side(now)), {one.id: one for one in was}, {one.id: one for one in now}
    common = [one for one in now if one.id in old]
    alike = [one for one in common if old[one.id].digest == one.digest]
    alike.sort(key=lambda one: (one.position, one.id))
    assert paired.added == tuple(sorted(new.keys() - old.keys()))
    assert paired.removed == tuple(sorted(old.keys() - new.keys()))
    assert paired.edited == tuple(sorted({one.id for one in common} - {one.id for one in alike}))
    assert list(paired.frame["id"]) == [one.id for one in alike]
    for end, sides in (("b", old), ("c", new)):
        assert list(paired.frame[f"recall_at_k_{end}"]) == [sides[one.id].scores["recall_at_k"] for one in alike]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("refused at port 4711", "refused at port 80", True),
        ("no answer within 5 s", "no answer within 12 s", True),
        ("HTTP 503", "HTTP 500", False),
        ("status 429: slow down", "status 401: slow down", False),
        ("HTTP 503 after 2 s", "HTTP 503 after 30 s", True),
        ('422: {"msg": "No", "input": {"q": "a…; cure', '422: {"msg": "No", "input": {"q": "b…; cure', True),
        ('422: {"msg": "No", "input": {"q": "a?"}}; cure', '422: {"msg": "No", "input": {"q": "b?"}}; cure', True),
        ('status 422: {"msg": "No", "input": "a"}', 'status 422: {"msg": "Bad", "input": "a"}', False),
    ],
)
def test_numbers_and_echoes_make_no_other_error_but_the_status_of_a_response(one: str, other: str, alike: bool) -> None:
    assert (message_kind(one) == message_kind(other)) is alike
    frame = pd.DataFrame({"error_b": [one, other, one], "error_c": [None] * 3})
    found = [(each.side, each.message, each.count) for each in error_counts(frame)]
    assert found == [("baseline", one, 3)] if alike else [("baseline", one, 2), ("baseline", other, 1)]
