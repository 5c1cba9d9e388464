"""Tables of Excel and Parquet, read and written in small parts."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
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


def _damaged(path: Path, error: Exception, what: str) -> GoldenError:
    if isinstance(error, GoldenError):
        return error
    return GoldenError([f"{path}: cannot be read as {what}: {str(error)[:200] or type(error).__name__}"])
