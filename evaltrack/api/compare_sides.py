"""Loads a side of a comparison from an MLflow run or a saved JSON result, and refuses rows that are damaged."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from evaltrack.compare.pairing import ALWAYS, LIGHT_COLUMNS, SECONDS, Side, numbers, side_frame
from evaltrack.errors import Guide, UsageError, listed, printable
from evaltrack.metrics.catalogue import BY_METRIC, GROUP_METRICS, own_scores_of
from evaltrack.metrics.measure import NO_OVERALL, passes
from evaltrack.records.base import count
from evaltrack.records.row import PRINTS, Row, majority
from evaltrack.records.run import Run
from evaltrack.report.run_text import RUN_SCHEMA
from evaltrack.report.schemas.run import RunForm
from evaltrack.tracking.find_runs import fetch_artifact
from evaltrack.tracking.rows import (
    BATCH,
    DamagedError,
    RowsError,
    check_rows,
    columns_with,
    damaged,
    file_columns,
    file_schema,
    read_groups,
    rows_of_run,
    stored_rows,
    value_problem,
)
from evaltrack.tracking.store import Store

if TYPE_CHECKING:
    import pandas as pd


def side_of_run(store: Store, run: Run, folder: Path) -> Side:
    """Return a run as one side. Its rows are downloaded into `folder`, which is needed until the comparison is done.

    Raises:
        TrackingError: its rows are gone.
    """
    local = folder / run.run_id
    local.mkdir(exist_ok=True)
    return side_of_table(run, fetch_artifact(store, run, local))


def side_of_table(info: Run, path: Path) -> Side:
    """Return the rows in a Parquet file as one side. The file is needed until the comparison is done.

    Raises:
        TrackingError: the file is damaged, was not written by evaltrack, or lacks rows that the run declares.
    """
    whose = partial(rows_of_run, info.run_id)

    def rows(ids: Collection[str], whole: Collection[str]) -> Mapping[str, Row]:
        with whose():
            read = stored_rows(path, ids=ids) if ids else ()
            return {row.id: row if row.id in whole else row.without_texts() for row in read}

    with whose():
        check_rows(path, info.num_questions, (*ALWAYS, *PRINTS))
        frame = side_frame(read_groups(path, light_columns(info)))
        if (errors := int(frame["error"].count())) != info.num_errors:
            raise damaged(path.name, f"{count(errors, 'row')} ended in errors, and the run counts {info.num_errors:,}")
        if name := other_mean(frame, info.means):
            raise damaged(path.name, f"the mean of its rows is not the run's {name}")
    return Side(info, frame, rows)


def light_columns(run: Run) -> list[str]:
    """Return the columns of a run that are read for every question."""
    columns = [*LIGHT_COLUMNS, *(score.name for score in own_scores_of(run.signature))]
    if run.signature.target.startswith("recorded:"):
        columns.remove(SECONDS)  # the time to read a recording is not that of an answer
    return columns


SAME_MEAN = 1e-6
"""Largest difference between two means of the same values, from the order of summation."""


def other_mean(frame: pd.DataFrame, means: Mapping[str, float]) -> str | None:
    """Return the first main metric whose mean differs from the mean of its column; None if all agree."""
    import numpy as np

    for name in (each for each in GROUP_METRICS if each in means):
        column = BY_METRIC[name].name
        if column not in frame:
            return name
        values = numbers(frame[column])
        measured = values[~np.isnan(values)]
        if not len(measured) or not abs(measured.mean() - means[name]) <= SAME_MEAN:
            return name
    return None


# The rows of a saved `evaltrack run --output json` become a Parquet file, and get the same checks as those of a run

SAVE = "save one with: evaltrack run GOLDEN > {}"


def side_of_file(path: Path, folder: Path) -> Side:
    """Return a saved `evaltrack run --output json` as one side. `folder` is needed until the comparison is done.

    Raises:
        UsageError: the file cannot be read, or is not a saved run.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        info, rows = _checked(path.name, _read(path))
        table = pa.Table.from_pylist(list(map(file_columns, rows)), schema=file_schema(info.signature.own_names))
        pq.write_table(table, folder / "baseline.parquet", row_group_size=BATCH)
        side = side_of_table(info, folder / "baseline.parquet")
        _check_rows(rows, info)
    except RowsError as error:
        raise UsageError(f"{path}: {error.problem}; save it again") from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror}; {SAVE.format(path)}, or name a run with --baseline-run"
        raise UsageError(f"{path}: {problem}", guide=Guide.BASELINE) from None
    except DamagedError as error:
        raise UsageError(f"{path}: is damaged: {error}; save it again") from None
    except ValidationError as error:
        raise UsageError(f"{path}: is damaged or of another version: {value_problem(error)}; save it again") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        raise UsageError(f"{path}: is damaged or of another version: {type(error).__name__}: {error}") from None
    return side


def _read(path: Path) -> RunForm:
    content = path.read_bytes()
    try:
        return RunForm.model_validate_json(content, strict=True)
    except ValidationError:
        if RUN_SCHEMA.encode() not in content:
            raise UsageError(
                f"{path}: is not a saved run ({RUN_SCHEMA}); {SAVE.format(path)}", guide=Guide.BASELINE
            ) from None
        if b'"evaltrack.runs/' in content:
            problem = "holds the runs of several golden sets; save each set in its own file"
            raise UsageError(f"{path}: {problem}", guide=Guide.BASELINE) from None
        raise


def _checked(name: str, saved: RunForm) -> tuple[Run, list[Row]]:
    """Return a saved run and its rows, after a check of its status and of the names of its scores."""
    if saved.status != "FINISHED":
        raise DamagedError(f"its run is {saved.status}, and only a FINISHED one is a baseline")
    own, names = saved.signature.own_names, {column.name for column in columns_with()}
    for score in own:
        if own.count(score) > 1 or score in names:
            raise DamagedError(f"it declares a score `{score}`, which is a name of another column")
    if not all(isinstance(row.get("id"), str) for row in saved.rows):
        raise TypeError("`rows` is not a list of objects with an `id`")
    names |= {*own}
    rows = [Row.of({name: row[name] for name in row if name in names}) for row in saved.rows]
    info = Run(
        "",
        name,
        saved.signature,
        num_questions=saved.totals["num_questions"],
        num_errors=saved.totals["num_errors"],
        means=saved.metrics,
        settings=saved.settings,
    )
    return info, rows


def _check_rows(rows: Sequence[Row], run: Run) -> None:
    """Refuse rows whose `passed` contradicts their scores, and rows of another golden set."""
    problems = [
        f"`{row.id}`: `passed` is {json.dumps(row.passed)}, and by its scores {json.dumps(due)}"
        for row in rows
        if row.passed != (due := _passed(row, run))
    ]
    lines = "".join(f"{row.id}\t{row.digest}\n" for row in sorted(rows, key=lambda row: row.position))
    if not problems and sha256(lines.encode()).hexdigest() != run.signature.golden_digest:
        problems.append("its questions are not those of the golden set that it names (`golden_digest`)")
    if problems:
        raise DamagedError(listed(list(map(printable, problems))))


def _passed(row: Row, run: Run) -> bool | None:
    """Return True if a row passes by its scores or trials; None if something was not measured."""
    if row.trials is not None:
        return majority(row.passes or 0, row.trials, int(run.settings["trials"]))
    if row.error or NO_OVERALL in row.unmeasured.values():
        return None
    return passes(row.scores, run.signature.pass_threshold, negative=row.negative, empty=row.answer_is_empty)
