"""Rows of foreign sets into files, in the form that a suffix names."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.golden.exchange.columnar import write_excel, write_parquet
from evaltrack.golden.exchange.new_files import NewFiles


def write_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], output: Path, files: NewFiles) -> None:
    """Write rows; in CSV, TSV and Excel lists and objects are cells of JSON, and only `columns` are written.

    Raises:
        UsageError: the suffix names no form.
    """
    match output.suffix.lower():
        case ".jsonl":
            with files.open(output) as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        case ".json":
            with files.open(output) as file:
                json.dump(list(rows), file, ensure_ascii=False, indent=2)
                file.write("\n")
        case ".csv" | ".tsv" as suffix:
            with files.open(output) as file:
                writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",")
                writer.writerow(columns)
                writer.writerows(_cells(row, columns) for row in rows)
        case ".xlsx":
            write_excel(files.path(output), columns, (_cells(row, columns) for row in rows))
        case ".parquet":
            write_parquet(files.path(output), [{name: row.get(name) for name in columns} for row in rows])
        case _:
            raise UsageError(
                f"{output}: cannot tell the form; end the name in .jsonl, .json, .csv, .tsv, .xlsx or .parquet"
            )


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    return [_cell(row.get(name)) for name in columns]


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value
