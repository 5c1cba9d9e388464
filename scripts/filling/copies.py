"""Many runs from a few: the rows that evaltrack wrote, copied by the database itself under other ids and names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Engine, text

EVALUATED = 6
QUESTIONS = 26
SETS_OF_EACH = 20
"""Golden sets of an experiment: all of them have a line on the overview page."""

PROMOTED_EACH = 10
"""Every so manieth run of a golden set was its baseline once."""

FIRST_SHARE = 20
"""One run in so many is of the first golden set, whose history is the longest."""

HOUR = 3_600_000
TABLES = ("runs", "tags", "params", "metrics", "latest_metrics", "inputs")


@dataclass(frozen=True)
class Filled:
    """What the lookups are measured on: the golden set with most runs, and its experiment."""

    experiment_id: str
    experiment: str
    golden: str


def golden_name(number: int) -> str:
    """All of one length, so that rows can be copied by replacing it."""
    return f"set-{number:04}"


def experiment_name(number: int) -> str:
    """The experiment of a golden set."""
    return f"team-{number // SETS_OF_EACH:02}"


def evaluate(address: str, folder: Path) -> None:
    """A few real runs of the first golden set, one of them its baseline."""
    import evaltrack

    golden = folder / f"{golden_name(0)}.jsonl"
    lines = ({"id": n, "question": f"What is {n}?", "expected_chunks": [f"chunk {n}"]} for n in range(QUESTIONS))
    golden.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    for number in range(EVALUATED):

        def target(question: str, _k: int, number: int = number) -> list[str]:
            key = int(question.removeprefix("What is ").rstrip("?"))
            return [f"chunk {key + (key % 7 == number)}", "chunk 99"]

        options = {"judge": "none", "traces": "off", "experiment": experiment_name(0), "tracking_uri": address}
        run = evaltrack.run_eval(golden, target=target, run_name=f"run {number}", **options)
        if number == 0:
            evaltrack.set_baseline(run.run_id, tracking_uri=address, reason="the first")


def multiply(engine: Engine, runs: int, golden_sets: int) -> Filled:
    """Copies until there are so many runs in so many golden sets, each with a baseline; older than the evaluated."""
    with engine.begin() as connection:
        own = connection.scalars(text("select run_uuid from runs where not run_uuid like 'c0%' order by start_time"))
        _plan(connection, list(own), runs, golden_sets)
        for name in TABLES:
            _copy(connection, name)
        _promote(connection)
        connection.execute(text("drop table copies"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("vacuum analyze"))
        where = text("select experiment_id from experiments where name = :name")
        first = str(connection.scalar(where, {"name": experiment_name(0)}))
    return Filled(first, experiment_name(0), golden_name(0))


def _plan(connection: Connection, own: list[str], runs: int, golden_sets: int) -> None:
    """The table `copies`: which run is copied, under which id, golden set, experiment, and how much earlier it was."""
    add = text(
        "insert into experiments (name, artifact_location, lifecycle_stage, creation_time, last_update_time, workspace)"
        " select :name, artifact_location, lifecycle_stage, creation_time, last_update_time, workspace"
        " from experiments where name = :first on conflict do nothing"
    )
    for name in sorted({experiment_name(number) for number in range(golden_sets)}):
        connection.execute(add, {"name": name, "first": experiment_name(0)})
    ids: dict[str, int] = {
        each.name: each.experiment_id for each in connection.execute(text("select * from experiments"))
    }
    connection.execute(
        text(
            "create temporary table copies (own text, copy text, golden text, experiment int, earlier bigint, was bool)"
        )
    )
    there: int = connection.scalar(text("select count(*) from runs")) or 0
    planned = [_copy_of(number, own, golden_sets, ids) for number in range(there - len(own), runs - len(own))]
    statement = "insert into copies values (:own, :copy, :golden, :experiment, :earlier, :was)"
    connection.execute(text(statement), planned)
    connection.execute(text("create index on copies (own)"))
    connection.execute(text("analyze copies"))


def _copy_of(number: int, own: list[str], golden_sets: int, ids: dict[str, int]) -> dict[str, Any]:
    golden = 0 if number % FIRST_SHARE == 0 else number % golden_sets
    nth = number // FIRST_SHARE if golden == 0 else number // golden_sets
    return {
        "own": own[number % len(own)],
        "copy": f"c0{(number * 0x9E3779B97F4A7C15F39CC0605CEDC835 + 1) % 16**30:030x}",
        "golden": golden_name(golden),
        "experiment": ids[experiment_name(golden)],
        "earlier": (number + 1) * HOUR,
        "was": nth % PROMOTED_EACH == 0,
    }


def _copy(connection: Connection, table: str) -> None:
    """The rows of a table that are of a run that is copied; promotions belong to one run and are left out."""
    columns = [each["name"] for each in sqlalchemy.inspect(connection).get_columns(table)]
    key = "destination_id" if table == "inputs" else "run_uuid"
    values = {
        key: "copies.copy",
        "input_uuid": "md5(copies.copy || rows.input_uuid)",
        "experiment_id": "copies.experiment",
        "start_time": "rows.start_time - copies.earlier",
        "end_time": "rows.end_time - copies.earlier",
    }
    if table in ("tags", "params"):
        values["value"] = f"replace(rows.value, '{golden_name(0)}', copies.golden)"
    chosen = ", ".join(values.get(name, f"rows.{name}") for name in columns)
    but = " where rows.key not like 'evaltrack.promoted%'" if table == "tags" else ""
    source = f"from {table} rows join copies on copies.own = rows.{key}{but}"
    connection.execute(text(f"insert into {table} ({', '.join(columns)}) select {chosen} {source}"))


def _promote(connection: Connection) -> None:
    """Tags of runs that were baselines, and of experiments, each of which names its golden sets and their baselines."""
    moment = "to_char(to_timestamp((start_time + 60000) / 1000), 'YYYY-MM-DD\"T\"HH24:MI:SS') || '+00:00'"
    parts = f"'golden', golden, 'run_id', copy, 'by', 'somebody', 'at', {moment}, 'reason', 'release'"
    said = f"json_build_object({parts})::text"
    chosen = "from copies join runs on run_uuid = copy"
    for key in ("evaltrack.promoted", "evaltrack.promoted.20260101-000000-000000"):
        values = f"select '{key}', {said}, copy {chosen} where was"
        connection.execute(text(f"insert into tags (key, value, run_uuid) {values}"))
    for values in (
        "select distinct 'evaltrack.golden_set.' || golden, golden, experiment from copies",
        f"select distinct on (golden) 'evaltrack.baseline.' || golden, {said}, experiment {chosen}"
        " where was order by golden, start_time desc",
    ):
        add = f"insert into experiment_tags (key, value, experiment_id) {values} on conflict do nothing"
        connection.execute(text(add))


def in_one_experiment(engine: Engine, filled: Filled) -> None:
    """Move all golden sets into the first experiment."""
    first = {"first": int(filled.experiment_id)}
    others = "from experiment_tags where experiment_id <> :first"
    with engine.begin() as connection:
        connection.execute(text("update runs set experiment_id = :first"), first)
        connection.execute(
            text(
                "insert into experiment_tags (key, value, experiment_id)"
                f" select distinct key, value, cast(:first as int) {others} on conflict do nothing"
            ),
            first,
        )
        connection.execute(text(f"delete {others}"), first)
