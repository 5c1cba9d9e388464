"""The two sides of a comparison, from MLflow or from a saved file, and the choice of which runs they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evaltrack.compare.comparison import RunInfo
from evaltrack.compare.pairing import ALWAYS, LIGHT_COLUMNS, SHOWN_SCORES, Side
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.records import Signature
from evaltrack.records.base import Count
from evaltrack.report.machine import RUN_SCHEMA
from evaltrack.table import FlatRow, read_table, schema, without_texts
from evaltrack.tracking.baselines import get_baseline
from evaltrack.tracking.reader import EvaluationRun, fetch_rows, find_evaluation, newest_evaluation
from evaltrack.tracking.store import Store, choose_experiment

if TYPE_CHECKING:
    import pyarrow as pa


def choose_runs(
    store: Store, run_id: str | None, baseline_run_id: str | None, experiment: str | None, *, baseline_is_file: bool
) -> tuple[EvaluationRun, EvaluationRun | None]:
    """Candidate and baseline: those named, else the newest finished run, and the baseline of its golden set.

    The baseline is None where a file takes its place.

    Raises:
        UsageError: there is no run, or no baseline was set.
        InconclusiveError: one of them has not ended.
        TrackingError: the store does not answer, or holds no such run.
    """
    named = find_evaluation(store, baseline_run_id) if baseline_run_id else None
    if run_id:
        candidate: EvaluationRun | None = find_evaluation(store, run_id)
    else:
        where = named.experiment_id if named else choose_experiment(store, experiment).experiment_id
        golden, but = (named.signature.golden, named.run_id) if named else (None, "")
        candidate = newest_evaluation(store, where, golden, but=but)
    if candidate is None:
        raise UsageError("no finished run to compare; evaluate first: evaltrack run GOLDEN")
    baseline = named if named or baseline_is_file else _tagged(store, candidate)
    for side in filter(None, (candidate, baseline)):
        if side.status in ("RUNNING", "SCHEDULED"):
            raise InconclusiveError(f"run {side.run_id} is still {side.status}; compare when it has ended")
    return candidate, baseline


def _tagged(store: Store, candidate: EvaluationRun) -> EvaluationRun:
    golden = candidate.signature.golden
    found = get_baseline(store, candidate.experiment_id, golden)
    if found is None:
        cure = "set one (evaltrack baseline set RUN), or name one with --baseline-run or --baseline"
        raise UsageError(f"golden set `{golden}` has no baseline in this experiment; {cure}")
    return find_evaluation(store, found.run_id)


def side_of_run(store: Store, run: EvaluationRun, folder: Path) -> Side:
    """A run as one side; its rows are downloaded into `folder`, which must stay until the comparison is done.

    Raises:
        TrackingError: its rows are not there.
    """
    import pyarrow.parquet as pq

    local = folder / run.run_id
    local.mkdir(exist_ok=True)
    path = fetch_rows(store, run.run_id, local)

    def rows(ids: Collection[str]) -> Mapping[str, FlatRow]:
        if not ids:
            return {}
        table = pq.read_table(path, filters=[("id", "in", list(ids))])
        return {row["id"]: row for row in table.to_pylist()}

    link = store.run_link(run.experiment_id, run.run_id)
    info = RunInfo(
        run_id=run.run_id,
        name=run.name,
        signature=run.signature,
        link=link,
        num_questions=run.num_questions,
        num_errors=run.num_errors,
        traces=run.traces,
        trace_link=store.trace_link(run.experiment_id, run.run_id),
    )
    return Side(info, _frame(pq.read_table(path, columns=_measured(path))), rows, partial(_brief, path))


BRIEF_COLUMNS = [
    *("id", "question", "answer", "domain", "difficulty", "category", "passed", "error", "by_title", "expected"),
    *SHOWN_SCORES,
    *(f"sources.list.element.{name}" for name in ("chunk_id", "title", "url", "score")),
]


def _brief(path: Path, ids: Collection[str]) -> Iterator[FlatRow]:
    """The rows with these ids without the texts of their sources; nothing is read behind the last of them."""
    return islice(read_table(path, BRIEF_COLUMNS, ids), len(ids))


def _measured(path: Path) -> list[str]:
    """The light columns but for scores without a single value, as the file's own statistics tell."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(path)
    filled = set(ALWAYS)
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            told = column.statistics
            if told is None or not told.has_null_count or told.null_count < column.num_values:
                filled.add(column.path_in_schema)
    return [name for name in LIGHT_COLUMNS if name in filled]


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
        saved: Any = json.loads(path.read_bytes())
        if not isinstance(saved, dict) or saved.get("schema") != RUN_SCHEMA:
            raise UsageError(f"{path}: is no {RUN_SCHEMA}; save one with: evaltrack run GOLDEN --output json > {path}")
        signature = Signature.model_validate(saved["signature"])
        rows, totals = _list_of_objects(saved["rows"]), _Totals.model_validate(saved.get("totals", {}))
        asked = len(rows) if totals.num_questions is None else totals.num_questions
        info = RunInfo(None, path.name, signature, None, asked, totals.num_errors)
        return side_of_rows(info, [_packed(row) for row in rows])
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path}: is damaged: it is nested too deep") from None
    except (ValueError, KeyError, TypeError, OverflowError, ValidationError, pa.ArrowException) as error:
        raise UsageError(f"{path}: is damaged or of another version: {type(error).__name__}: {error}") from None


def _list_of_objects(rows: object) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) and isinstance(row.get("id"), str) for row in rows):
        raise TypeError("`rows` is no list of objects with an `id`")
    return rows


def side_of_rows(info: RunInfo, rows: list[FlatRow]) -> Side:
    """Rows held in memory as one side."""
    import pyarrow as pa

    held = {row["id"]: row for row in rows}
    table = pa.Table.from_pylist(rows, schema=schema()).select(LIGHT_COLUMNS)
    return Side(
        info,
        _frame(table),
        rows=lambda ids: {key: held[key] for key in ids if key in held},
        brief=lambda ids: [without_texts(row) for row in rows if row["id"] in ids],
    )


def _packed(row: dict[str, Any]) -> FlatRow:
    """A saved row in the form the table holds: reasons as text, columns that an older version lacked as null."""
    reasons = row.get("unmeasured")
    return {name: row.get(name) for name in schema().names} | {"unmeasured": json.dumps(reasons) if reasons else None}


def _frame(table: pa.Table) -> Any:
    """The light columns as a data frame whose `passed` knows a missing value."""
    frame = table.to_pandas()
    frame["passed"] = frame["passed"].astype("boolean")
    for name in ("difficulty", "category", "error"):
        frame[name] = frame[name].astype("str")
    return frame
