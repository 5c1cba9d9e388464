"""Where the lines of questions stand in a file."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evaltrack.targets.line_index import LineFile, LineIndex


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 3))))
def test_each_key_has_the_offsets_of_its_lines(keys: list[tuple[str, int]]) -> None:
    index = LineIndex((key, 10 * number) for number, key in enumerate(keys))
    for key in keys:
        assert index.offsets(key) == [10 * number for number, other in enumerate(keys) if other == key]
    assert index.offsets(("of no line", 0)) == []
    assert index.shared() == [10 * number for number, key in enumerate(keys) if keys.count(key) > 1]


def test_sixteen_bytes_a_line() -> None:
    index = LineIndex(((f"{number}" * 50, 0), number) for number in range(1000))
    held = [value for value in vars(index).values() if hasattr(value, "nbytes")]
    assert sum(value.nbytes for value in held) == 16_000
    assert all(value.obj.base is None for value in held)
    assert sum(map(sys.getsizeof, vars(index).values())) < 17_000


def test_lines_are_read_at_their_offsets_from_one_open_file(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"\xef\xbb\xbf{1}\n  {2}\r\n{3}")
    file = LineFile(path)
    assert [file.line_at(offset) for offset in (14, 0, 7)] == [b"{3}", b"{1}", b"{2}"]
    file.close()
    file.close()
    assert file.line_at(7) == b"{2}"
    file.close()
