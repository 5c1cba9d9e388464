"""A saved `evaltrack run --output json` as one side of a comparison, checked as the rows of a run are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evaltrack.api.compare_sides import side_of_rows
from evaltrack.compare.comparison import RunInfo
from evaltrack.compare.deltas import GROUP_METRICS
from evaltrack.compare.pairing import Side
from evaltrack.errors import UsageError
from evaltrack.records import Signature
from evaltrack.records.base import Count
from evaltrack.report.run.json_form import RUN_SCHEMA
from evaltrack.rows.columns import check_columns
from evaltrack.rows.parquet_claims import DamagedError
from evaltrack.rows.table import FlatRow, schema
from evaltrack.rows.values import check_ids, check_values
from evaltrack.scoring.metrics import BY_METRIC

SAME_MEAN = 1e-6
"""Means of the same values that differ by less are the same."""


class _Totals(BaseModel):
    """What a saved run says of its questions, as far as it is shown."""

    model_config = ConfigDict(strict=True)

    num_questions: Count | None = None
    num_errors: Count = 0


def side_of_file(path: Path) -> Side:
    """A saved `evaltrack run --output json` as one side.

    Raises:
        UsageError: it cannot be read, or is no such file.
    """
    import pyarrow as pa

    try:
        saved = _saved(path)
        signature = Signature.model_validate(saved["signature"])
        rows, totals = _list_of_objects(saved["rows"]), _Totals.model_validate(saved.get("totals", {}))
        asked = len(rows) if totals.num_questions is None else totals.num_questions
        info = RunInfo(None, path.name, signature, None, asked, totals.num_errors)
        _check_saved(path, saved, info, rows)
        check_columns(set[str]().union(*rows))
        packed = [_packed(row) for row in rows]
        table = pa.Table.from_pylist(packed, schema=schema())
        check_ids(lambda: [table.select(["id"])])
        check_values(table)
        return side_of_rows(info, packed, table)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except DamagedError as error:
        raise UsageError(f"{path}: is damaged: {error}; save it again") from None
    except RecursionError:
        raise UsageError(f"{path}: is damaged: it is nested too deep") from None
    except (ValueError, KeyError, TypeError, OverflowError, ValidationError, pa.ArrowException) as error:
        raise UsageError(f"{path}: is damaged or of another version: {type(error).__name__}: {error}") from None


def _saved(path: Path) -> dict[str, Any]:
    """The object in a file that `evaltrack run` wrote."""
    try:
        saved: Any = json.loads(path.read_bytes())
    except ValueError:
        saved = None
    if isinstance(saved, dict) and _is_newer(saved.get("schema")):
        raise UsageError(f"{path}: was saved by a newer version of evaltrack; upgrade evaltrack, or save it again")
    if not isinstance(saved, dict) or saved.get("schema") != RUN_SCHEMA:
        raise UsageError(f"{path}: is no saved run ({RUN_SCHEMA}); save one with: evaltrack run GOLDEN > baseline.json")
    return saved


def _is_newer(name: object) -> bool:
    kind, _, version = RUN_SCHEMA.partition("/")
    found = re.fullmatch(rf"{re.escape(kind)}/([0-9]{{1,9}})", name) if isinstance(name, str) else None
    return found is not None and int(found[1]) > int(version)


def _check_saved(path: Path, saved: Mapping[str, Any], info: RunInfo, rows: Sequence[FlatRow]) -> None:
    """Refuse a saved run whose rows are not those that it says it holds, or do not give its means."""
    if len(rows) != info.num_questions:
        said = f"it holds {len(rows):,} rows, and says that it asked {info.num_questions:,} questions"
        raise UsageError(f"{path}: is damaged: {said}; save it again")
    for name in saved.get("metrics", {}).keys() & set(GROUP_METRICS):
        values = [value for row in rows if (value := row.get(BY_METRIC[name].name)) is not None]
        mean = fsum(values) / len(values) if values else None
        if mean is None or abs(mean - saved["metrics"][name]) > SAME_MEAN:
            raise UsageError(f"{path}: is damaged: the mean of its rows is not its {name}; save it again")


def _list_of_objects(rows: object) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) and isinstance(row.get("id"), str) for row in rows):
        raise TypeError("`rows` is no list of objects with an `id`")
    return rows


def _packed(row: dict[str, Any]) -> FlatRow:
    """A saved row in the form the table holds: reasons as text, columns that an older version lacked as null."""
    reasons = row.get("unmeasured")
    return {name: row.get(name) for name in schema().names} | {"unmeasured": json.dumps(reasons) if reasons else None}
