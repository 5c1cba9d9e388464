"""Ranks of sources that come again, and tools that were called."""

from __future__ import annotations

import pytest

from evaltrack.compare.causes import causes_of
from evaltrack.compare.differences import by_key
from evaltrack.records import Response, Source, ToolCall
from tests.compared import found, question, row

TEN = [question(f"q{number}") for number in range(10)]


def test_a_repeat_takes_no_rank() -> None:
    """A source that comes again keeps its first rank, and those behind it are not pushed down."""
    flat = row(TEN[0], found("x", "x", "a", "x", "b"))
    assert {key: rank for key, (rank, _) in by_key(flat).items()} == {"x": 1, "a": 2, "b": 3}
    unnamed = Response(answer="so", sources=(Source(title="t"), Source(chunk_id="a"), Source(title="t")))
    ranks = {key: rank for key, (rank, _) in by_key(row(TEN[0], unnamed)).items()}
    assert list(ranks.values()) == [1, 2, 3], "a source without the key that is compared still takes up its place"


def called(*tools: str) -> Response:
    return found("q0!", tool_calls=tuple(ToolCall(name=tool) for tool in tools))


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        (("search", "read"), ("read", "search"), "verdict_changed"),
        (("search",), ("search",), "verdict_changed"),
        (("search",), ("search", "search"), "tools_changed"),
        (("search",), ("read",), "tools_changed"),
        (("search",), (), "tools_changed"),
        ((), ("search",), "tools_changed"),
    ],
)
def test_tools_are_compared_by_what_was_called_and_how_often(
    was: tuple[str, ...], now: tuple[str, ...], kind: str
) -> None:
    """In whatever order; other tools are the cause before another verdict is."""
    before, after = row(TEN[0], called(*was), score=0.9), row(TEN[0], called(*now), score=0.2)
    assert causes_of(before, after, 5)[0].kind == kind
