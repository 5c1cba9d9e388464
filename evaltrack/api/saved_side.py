"""A saved `evaltrack run --output json` as one side of a comparison, checked as the rows of a run are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from evaltrack.api.compare_sides import other_mean, side_of_rows
from evaltrack.compare.pairing import Side
from evaltrack.errors import Guide, UsageError, listed, printable
from evaltrack.metrics.measure import NO_OVERALL, passes
from evaltrack.records import Signature
from evaltrack.records.amount import count
from evaltrack.records.base import Count
from evaltrack.records.row import Tally
from evaltrack.records.run import Run
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.run_json import RUN_SCHEMA
from evaltrack.tracking.rows import OBJECTS, DamagedError, check_values, schema

HEAD = 200
"""Bytes at the head of a saved run in which it says what it is."""

SAVE = "save one with: evaltrack run GOLDEN > baseline.json"


class _Totals(BaseModel):
    model_config = ConfigDict(strict=True)

    num_questions: Count | None = None
    num_errors: Count = 0


class _Saved(BaseModel):
    """What is read of a saved run."""

    signature: Signature
    rows: list[dict[str, Any]]
    status: str = "FINISHED"
    totals: _Totals = _Totals()
    metrics: dict[str, Any] = {}
    settings: dict[str, str] = {}


def side_of_file(path: Path) -> Side:
    """A saved `evaltrack run --output json` as one side.

    Raises:
        UsageError: it cannot be read, or is no such file.
    """
    import pyarrow as pa

    try:
        return _side(path.name, _Saved.model_validate(_object_in(path)))
    except OSError as error:
        problem = f"cannot be read: {error.strerror}; {SAVE}, or name a run with --baseline-run"
        raise UsageError(f"{path}: {problem}", guide=Guide.BASELINE) from None
    except DamagedError as error:
        raise UsageError(f"{path}: is damaged: {error}; save it again") from None
    except RecursionError:
        raise UsageError(f"{path}: is damaged: it is nested too deep") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        raise UsageError(f"{path}: is damaged or of another version: {type(error).__name__}: {error}") from None


def _object_in(path: Path) -> dict[str, Any]:
    """The object in a file that `evaltrack run` wrote."""
    content = path.read_bytes()
    try:
        saved: Any = json.loads(content)
    except ValueError as error:
        saved = None
        if RUN_SCHEMA.encode() in content[:HEAD]:
            raise DamagedError(f"it was cut off ({error})") from None
    if isinstance(saved, dict) and isinstance(saved.get("sets"), list):
        problem = f"holds the runs of {count(len(saved['sets']), 'golden set')}; {SAVE}, each set in a file of its own"
        raise UsageError(f"{path}: {problem}", guide=Guide.BASELINE)
    if not isinstance(saved, dict) or saved.get("schema") != RUN_SCHEMA:
        raise UsageError(f"{path}: is no saved run ({RUN_SCHEMA}); {SAVE}", guide=Guide.BASELINE)
    return saved


def _side(name: str, saved: _Saved) -> Side:
    """A saved run whose rows are those that it says it holds, and give its means."""
    import pyarrow as pa

    if saved.status != "FINISHED":
        raise DamagedError(f"its run is {saved.status}, and only a FINISHED one is a baseline")
    totals, signature = saved.totals, saved.signature
    num_questions = len(saved.rows) if totals.num_questions is None else totals.num_questions
    if len(saved.rows) != num_questions:
        raise DamagedError(f"it holds {len(saved.rows):,} rows, and says that it asked {num_questions:,} questions")
    own = signature.own_names
    for score in own:
        if own.count(score) > 1 or score in schema().names:
            raise DamagedError(f"it declares a score `{score}`, which is a name of another column")
    columns = [_pack(row, own) for row in saved.rows]
    table = pa.Table.from_pylist(columns, schema=schema(own))
    check_values(table)
    stored = [StoredRow.of(each, own) for each in columns]
    info = Run(
        "",
        name,
        signature,
        num_questions=num_questions,
        num_errors=totals.num_errors,
        settings=saved.settings,
    )
    _check_rows(stored, info)
    side = side_of_rows(info, stored)
    if metric := other_mean(side.frame, saved.metrics):
        raise DamagedError(f"the mean of its rows is not its {metric}")
    return side


def _pack(row: dict[str, Any], own: tuple[str, ...]) -> dict[str, Any]:
    """A saved row in the form the table holds: objects as text."""
    if not isinstance(row.get("id"), str):
        raise TypeError("`rows` is no list of objects with an `id`")
    objects = {name: json.dumps(row[name]) if row.get(name) else None for name in OBJECTS}
    return {name: row.get(name) for name in schema(own).names} | objects


def _check_rows(rows: Sequence[StoredRow], run: Run) -> None:
    """Refuse rows that are there twice, that pass against their scores, or that are not of the golden set."""
    times = Counter(row.id for row in rows)
    problems = [f"`{key}` is there {number} times" for key, number in times.items() if number > 1]
    problems += [
        f"`{row.id}`: `passed` is {json.dumps(row.passed)}, and by its scores {json.dumps(due)}"
        for row in rows
        if row.passed != (due := _passed(row, run))
    ]
    lines = "".join(f"{row.id}\t{row.digest}\n" for row in sorted(rows, key=lambda row: row.position))
    if not problems and sha256(lines.encode()).hexdigest() != run.signature.golden_digest:
        problems.append("its questions are not those of the golden set that it names (`golden_digest`)")
    if problems:
        raise DamagedError(listed(list(map(printable, problems))))


def _passed(row: StoredRow, run: Run) -> bool | None:
    """Whether a row passes by its scores, or by its trials; None where something was not measured."""
    if row.trials is not None:
        return Tally(trials=int(run.settings["trials"]), measured=row.trials, passed=row.passes or 0).majority
    if row.error or NO_OVERALL in (row.unmeasured or ""):
        return None
    empty = row.answer is not None and not row.answer.strip()
    return passes(row.scores, run.signature.pass_threshold, negative=row.negative, empty=empty)
