"""A saved `evaltrack run --output json` as one side of a comparison, checked as the rows of a run are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, RootModel

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
from evaltrack.report.run.json_form import RUN_SCHEMA
from evaltrack.tracking.rows import OBJECTS, DamagedError, check_values, schema

HEAD = 200
"""Bytes at the head of a saved run in which it says what it is."""


class _Totals(BaseModel):
    """What a saved run says of its questions, as far as it is shown."""

    model_config = ConfigDict(strict=True)

    num_questions: Count | None = None
    num_errors: Count = 0


class _Settings(RootModel[dict[str, str]]):
    """How a saved run was made; one of before does not say."""

    model_config = ConfigDict(strict=True)


def side_of_file(path: Path) -> Side:
    """A saved `evaltrack run --output json` as one side.

    Raises:
        UsageError: it cannot be read, or is no such file.
    """
    import pyarrow as pa

    try:
        return _side(path.name, _saved(path))
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read: {error.strerror}; save one with: evaltrack run GOLDEN > {path},"
            " or name a run with --baseline-run",
            guide=Guide.BASELINE,
        ) from None
    except DamagedError as error:
        raise UsageError(f"{path}: is damaged: {error}; save it again") from None
    except RecursionError:
        raise UsageError(f"{path}: is damaged: it is nested too deep") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        raise UsageError(f"{path}: is damaged or of another version: {type(error).__name__}: {error}") from None


def _side(name: str, saved: Mapping[str, Any]) -> Side:
    """A saved run whose rows are those that it says it holds, and give its means."""
    import pyarrow as pa

    if (status := saved.get("status", "FINISHED")) != "FINISHED":
        raise DamagedError(f"its run is {status}, and only a FINISHED one is a baseline")
    signature = Signature.model_validate(saved["signature"])
    rows, totals = _list_of_objects(saved["rows"]), _Totals.model_validate(saved.get("totals", {}))
    num_questions = len(rows) if totals.num_questions is None else totals.num_questions
    if len(rows) != num_questions:
        raise DamagedError(f"it holds {len(rows):,} rows, and says that it asked {num_questions:,} questions")
    own = _own_names(signature)
    columns = [_pack(row, own) for row in rows]
    table = pa.Table.from_pylist(columns, schema=schema(own))
    check_values(table)
    stored = [StoredRow.of(each, own) for each in columns]
    info = Run(
        "",
        name,
        signature,
        num_questions=num_questions,
        num_errors=totals.num_errors,
        settings=_Settings.model_validate(saved.get("settings", {})).root,
    )
    _check_rows(stored, info)
    side = side_of_rows(info, stored)
    if metric := other_mean(side.frame, saved.get("metrics", {})):
        raise DamagedError(f"the mean of its rows is not its {metric}")
    return side


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


def _saved(path: Path) -> dict[str, Any]:
    """The object in a file that `evaltrack run` wrote."""
    content, save = path.read_bytes(), "save one with: evaltrack run GOLDEN > baseline.json"
    try:
        saved: Any = json.loads(content)
    except ValueError as error:
        saved = None
        if RUN_SCHEMA.encode() in content[:HEAD]:
            raise UsageError(f"{path}: is a saved run that was cut off ({error}); save it again") from None
    if isinstance(saved, dict) and isinstance(saved.get("sets"), list):
        problem = f"holds the runs of {count(len(saved['sets']), 'golden set')}; {save}, each set in a file of its own"
        raise UsageError(f"{path}: {problem}", guide=Guide.BASELINE)
    if isinstance(saved, dict) and _is_newer(saved.get("schema")):
        raise UsageError(f"{path}: was saved by a newer version of evaltrack; upgrade evaltrack, or save it again")
    if not isinstance(saved, dict) or saved.get("schema") != RUN_SCHEMA:
        raise UsageError(f"{path}: is no saved run ({RUN_SCHEMA}); {save}", guide=Guide.BASELINE)
    return saved


def _is_newer(name: object) -> bool:
    kind, _, version = RUN_SCHEMA.partition("/")
    match = re.fullmatch(rf"{re.escape(kind)}/([0-9]{{1,9}})", name) if isinstance(name, str) else None
    return match is not None and int(match[1]) > int(version)


def _list_of_objects(rows: object) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) and isinstance(row.get("id"), str) for row in rows):
        raise TypeError("`rows` is no list of objects with an `id`")
    return rows


def _own_names(signature: Signature) -> tuple[str, ...]:
    """The scores of its own that a saved run declares, each once and none of a name of ours."""
    names = signature.own_names
    for name in names:
        if names.count(name) > 1 or name in schema().names:
            raise DamagedError(f"it declares a score `{name}`, which is a name of another column")
    return names


def _pack(row: dict[str, Any], own: tuple[str, ...]) -> dict[str, Any]:
    """A saved row in the form the table holds: objects as text, columns that an older version lacked as null."""
    objects = {name: json.dumps(row[name]) if row.get(name) else None for name in OBJECTS}
    return {name: row.get(name) for name in schema(own).names} | objects
