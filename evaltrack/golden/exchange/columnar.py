"""Tables of Excel and Parquet, read and written in small parts."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError, UsageError

MAX_UNPACKED_BYTES = 1 << 29
"""Bytes of a workbook or table once unpacked."""

BATCH = 1000


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        raise UsageError(
            "Excel files need the package openpyxl; install it (pip install openpyxl), or save the sheet as CSV"
        ) from None
    return openpyxl


def excel_rows(path: Path) -> Iterator[tuple[int, Sequence[Any]]]:
    """The rows of the first sheet with their numbers, values instead of formulas.

    Raises:
        GoldenError: it is no workbook, or too large.
        UsageError: openpyxl is missing.
    """
    openpyxl = _openpyxl()
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(part.file_size for part in packed.infolist())
        if size > MAX_UNPACKED_BYTES:
            raise GoldenError([f"{path}: unpacks to more than {MAX_UNPACKED_BYTES:,} bytes; save the sheet as CSV"])
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except GoldenError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged workbook raises whatever its parts raise
        raise _damaged(path, error, "an Excel workbook") from None
    try:
        yield from enumerate(book.worksheets[0].iter_rows(values_only=True), start=1)
    except Exception as error:  # noqa: BLE001 - likewise, where it is read row by row
        raise _damaged(path, error, "an Excel workbook") from None
    finally:
        book.close()


def write_excel(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a workbook of one sheet; no cell is a formula.

    Raises:
        UsageError: openpyxl is missing, or a text holds what a workbook cannot.
    """
    openpyxl = _openpyxl()
    lines = [header, *rows]
    illegal = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE
    if any(isinstance(value, str) and illegal.search(value) for values in lines for value in values):
        raise UsageError("a text holds a control character, which Excel cannot; export a .csv")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("golden")
    for values in lines:
        cells = [openpyxl.cell.WriteOnlyCell(sheet, value) for value in values]
        for cell in cells:
            if isinstance(cell.value, str):
                cell.data_type = "s"
        sheet.append(cells)
    packed = BytesIO()
    book.save(packed)  # into a file on a full disk it would end twice, the second time where nobody catches it
    path.write_bytes(packed.getbuffer())


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file; lists and objects stay what they are.

    Raises:
        GoldenError: it is no Parquet file, or too large.
    """
    import pyarrow
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            footer = file.metadata
            size = sum(footer.row_group(at).total_byte_size for at in range(footer.num_row_groups))
            if size > MAX_UNPACKED_BYTES:
                raise GoldenError([f"{path}: unpacks to more than {MAX_UNPACKED_BYTES:,} bytes; split it"])
            for batch in file.iter_batches(batch_size=BATCH):
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error, "Parquet") from None


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as a Parquet file; types are those of the values."""
    import pyarrow
    import pyarrow.parquet as pq

    pq.write_table(pyarrow.Table.from_pylist(rows), path)


def _damaged(path: Path, error: Exception, what: str) -> GoldenError:
    if isinstance(error, GoldenError):
        return error
    return GoldenError([f"{path}: cannot be read as {what}: {str(error)[:200] or type(error).__name__}"])
