"""What a Parquet file claims, held against what pyarrow says of sound files, and damaged in every byte."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaltrack.rows.parquet_claims import DamagedError, pages, row_groups


def written(path: Path, **options: object) -> Path:
    """A file of three row groups with texts, numbers, lists and nulls."""
    table = pa.table(
        {
            "id": [str(n) for n in range(25)],
            "score": [None if n % 3 else n / 10 for n in range(25)],
            "sources": [[{"chunk_id": f"c{n}", "rank": n}] * (n % 4) for n in range(25)],
            "flag": [True, False, None, True, False] * 5,
        }
    )
    pq.write_table(table, path, row_group_size=10, **options)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "use_dictionary": False},
        {"data_page_version": "2.0"},
        {"data_page_size": 64, "write_statistics": False},
        {"write_page_index": True, "compression": "gzip"},
    ],
)
def test_claims_are_what_pyarrow_says(tmp_path: Path, options: dict[str, object]) -> None:
    """Rows, columns, values, nulls, and the size of all pages with their headers."""
    path = written(tmp_path / "x.parquet", **options)
    footer, groups = pq.read_metadata(path), row_groups(path)
    assert [group.rows for group in groups] == [10, 10, 5]
    with path.open("rb") as file:
        for number, group in enumerate(groups):
            for place, chunk in enumerate(group.chunks):
                theirs = footer.row_group(number).column(place)
                assert (chunk.path, chunk.values) == (theirs.path_in_schema, theirs.num_values)
                assert chunk.nulls == (theirs.statistics.null_count if theirs.statistics else None)
                claimed = pages(file, chunk)
                assert claimed.values == theirs.num_values
                assert 0 < claimed.size <= theirs.total_uncompressed_size


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 3, b"x" * 1000, b"\xff\xff\xff\x7fPAR1"])
def test_what_is_no_parquet_file_is_told(tmp_path: Path, content: bytes) -> None:
    """Whatever its length."""
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    with pytest.raises(DamagedError):
        row_groups(path)


@pytest.mark.parametrize("footer", [b"\x00", b"\x15\x02\x00", b"\x45\x02\x00", b"\x49\x15\x02\x00"])
def test_a_footer_without_row_groups_is_damaged(tmp_path: Path, footer: bytes) -> None:
    """None, no list in their place, or a list of numbers."""
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DamagedError, match="its footer cannot be read"):
        row_groups(path)


def test_the_row_groups_of_a_large_file_take_little(tmp_path: Path) -> None:
    """The footer's tree is never held whole: the peak is less than three times what stays."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"column {n}": range(200) for n in range(20)}), path, row_group_size=1)
    tracemalloc.start()
    groups = row_groups(path)
    left, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(groups) == 200
    assert peak < 3 * left


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.integers(0, 3))
def test_damage_is_an_error_of_its_own_or_another_claim(tmp_path: Path, place: int, byte: int, cut: int) -> None:
    """One byte is another, or the end is missing: never another exception."""
    content = bytearray(written(tmp_path / "x.parquet").read_bytes())
    content[place % len(content)] = byte
    path = tmp_path / f"{place}-{byte}-{cut}.parquet"
    path.write_bytes(content[: len(content) - cut * 7])
    try:
        with path.open("rb") as file:
            for group in row_groups(path):
                for chunk in group.chunks:
                    pages(file, chunk)
    except DamagedError:
        pass
    finally:
        path.unlink()
