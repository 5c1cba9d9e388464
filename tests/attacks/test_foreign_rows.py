"""Rows of a run that are damaged, or that another version or another program wrote: refused with a word, or read right.

Each form is made from the file of a real run and put in its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from evaltrack import Response, RunResult, Source, compare_runs, run_eval
from evaltrack.report.comparison_files import json_text
from evaltrack.report.run_text import run_json
from tests.files import data, put
from tests.judging import cli, store_in

QUESTIONS = 6
ROWS = "per_question.parquet"
JUDGE = "likes_rows:judge"


@dataclass(frozen=True)
class Kept:
    """Two runs in a store, and the candidate's file as it was written."""

    uri: str
    baseline: RunResult
    candidate: RunResult
    table: pa.Table
    path: Path

    @property
    def client(self) -> mlflow.MlflowClient:
        return mlflow.MlflowClient(self.uri)


def judge_module(folder: Path) -> str:
    names = ("accuracy", "completeness", "relevance", "overall_score")
    verdict = {"reasoning": "so", **dict.fromkeys(names, 1.0)}
    put(folder / "likes_rows.py", f"def judge(question, response):\n    return {verdict}\n")
    return JUDGE


def evaluated(folder: Path, uri: str, lost: str = "", **options: Any) -> RunResult:
    def target(question: str, k: int) -> Response:
        number = question.removesuffix("?").rpartition(" ")[2]
        found = "other" if number == lost else f"c{number}"
        return Response(answer="It is so.", sources=(Source(chunk_id=found, text="some text", score=1.5),))

    lines = [
        {"id": f"{n:02}", "question": f"What is {n}?", "expected_chunks": [f"c{n}"], "domain": "ab"[n % 2]}
        for n in range(QUESTIONS)
    ]
    golden = put(folder / "few.jsonl", lines)
    return run_eval(golden, target=target, traces="off", tracking_uri=uri, **options)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("foreign")
    with store_in(folder, empty_database) as uri, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.syspath_prepend(str(folder))
        judge = judge_module(folder)
        runs = [evaluated(folder, uri, lost, judge=judge) for lost in ("", "3")]
        client = mlflow.MlflowClient(uri)
        run = client.get_run(runs[1].run_id)
        path = Path(run.info.artifact_uri) / ROWS
        yield Kept(uri, runs[0], runs[1], pq.read_table(path), path)


@pytest.fixture
def here(kept: Kept) -> Iterator[Kept]:
    content = kept.path.read_bytes()
    yield kept
    kept.path.parent.mkdir(exist_ok=True)
    kept.path.write_bytes(content)


Compared = tuple[int, str, Mapping[str, Any]]


def compare(kept: Kept, capsys: pytest.CaptureFixture[str], *options: str) -> Compared:
    capsys.readouterr()
    names = (kept.candidate.run_id, "--baseline-run", kept.baseline.run_id, "--no-log", "--gate", "seed")
    code = cli("compare", *names, "--output", "json", *options)
    said = capsys.readouterr()
    return code, said.err, json.loads(said.out) if said.out else {}


Form = Callable[[pa.Table, bytes], pa.Table | bytes]
"""Makes the replacement of the rows, from them and from their file."""


def with_column(table: pa.Table, name: str, values: Any, kind: pa.DataType | None = None) -> pa.Table:
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)
    return table.set_column(table.column_names.index(name), name, array)


def changed(table: pa.Table, name: str, value: object, row: int = 1) -> pa.Table:
    values = table[name].to_pylist()
    values[row] = value
    return with_column(table, name, values, table.schema.field(name).type)


def packed(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())


def holding(name: str, value: object, row: int = 1) -> Form:
    return lambda table, _: changed(table, name, value, row)


def cast(name: str, kind: pa.DataType) -> Form:
    return lambda table, _: with_column(table, name, pc.cast(table[name], kind))


def every(name: str, made: Callable[[Any], object]) -> Form:
    return lambda table, _: with_column(table, name, list(map(made, table[name].to_pylist())))


def lacking(name: str) -> Form:
    return lambda table, _: table.drop_columns([name])


LATER = ["model", "tool_invoked", "tools_coordinated", "sources_included"]
ZERO, RED = pa.array([0.0] * QUESTIONS), pa.array(["red"] * QUESTIONS)
NO_PARQUET, NOT_OURS = "it is not a Parquet file", "was not written by evaltrack"
NEWER = "written by a newer version of evaltrack (rows of version 2, and this one"
FORMS: dict[str, tuple[Form, str]] = {
    "ids as whole numbers": (cast("id", pa.int32()), "ids are text, as `5` and `05` differ"),
    "recall_at_k as whole numbers": (every("recall_at_k", lambda _: 1), "column `recall_at_k` holds int64, not double"),
    "recall_at_k as nothing": (every("recall_at_k", lambda _: None), "column `recall_at_k` holds null, not double"),
    "some rows twice": (lambda table, _: pa.concat_tables([table, table.slice(1, 2)]).slice(2), "rows have one id: `0"),
    "all rows twice": (lambda table, _: pa.concat_tables([table, table]), f"{2 * QUESTIONS} rows"),
    "an id in two row groups": (
        lambda each, _: packed(changed(each, "id", "02", 5), row_group_size=2),
        "one id: `02`;",
    ),
    "some rows": (lambda table, _: table.slice(0, 2), "2 rows"),
    "no rows": (lambda table, _: table.slice(0, 0), "0 rows"),
    "half a file": (lambda _, content: content[: len(content) // 2], NO_PARQUET),
    "an empty file": (lambda *_: b"", NO_PARQUET),
    "a CSV file": (lambda *_: b"id,recall_at_k\n01,1.0\n", NO_PARQUET),
    "bytes overwritten": (lambda _, content: content[:200] + bytes(2000) + content[2200:], NOT_OURS),
    "a column twice": (lambda table, _: table.append_column("recall_at_k", ZERO), "two of its columns have one name"),
    "sources as lists": (every("sources", json.loads), "column `sources` holds list<element: struct<"),
    "sources as ids": (every("sources", lambda _: '["c"]'), "column `sources.0`: Input should be a valid dictionary"),
    "a source that is nothing": (
        holding("sources", "[null]", 3),
        "column `sources.0`: Input should be a valid dictionary",
    ),
    "a source of endless score": (
        holding("sources", '[{"chunk_id": "c", "score": 1e999}]', 3),
        "column `sources.0.score`: Input should be a finite number",
    ),
    "a verdict off the scale": (
        holding("verdicts", '[{"judge": "j", "reasoning": "", "overall_score": 7.0}]', 3),
        "column `verdicts.0.overall_score`: Input should be less than or equal to 1",
    ),
    "verdicts of another kind": (
        every("verdicts", lambda _: '[{"judge": "j", "reasoning": "", "overall_score": "high"}]'),
        "column `verdicts.0.overall_score`: Input should be a valid number",
    ),
    "reasons that are cut": (holding("unmeasured", '{"hit": "be', 3), "column `unmeasured` holds a text that is not J"),
    "a text nested without end": (holding("sources", "[" * 100_000, 3), "column `sources` holds a text that is not J"),
    "a newer version": (lambda table, _: table.replace_schema_metadata({"evaltrack.rows": "2"}), NEWER),
    "columns in another order": (lambda table, _: table.select(sorted(table.column_names)), ""),
    "a column more": (lambda table, _: table.append_column("colour", RED), ""),
    "another compression": (lambda table, _: packed(table, compression="gzip", row_group_size=2), ""),
    "rows in another order": (lambda table, _: table.take(list(reversed(range(QUESTIONS)))), ""),
    "columns that are optional": (lambda table, _: table.drop_columns(LATER), ""),
}
"""Each form by its name, and the message on it; empty if the verdict is as before."""

for column in ("id", "recall_at_k", "passed", "digest", "question"):
    FORMS[f"no column {column}"] = (lacking(column), f"no column `{column}`")
for column, kind, wanted in (
    *(("id", pa.int64(), ""), ("id", pa.float64(), ""), ("id", pa.binary(), ""), ("position", pa.string(), "")),
    *((name, pa.string(), " double") for name in ("recall_at_k", "overall_score", "reciprocal_rank", "num_tokens")),
    *(("passed", pa.string(), " bool"), ("passed", pa.int8(), " bool")),
):
    FORMS[f"{column} as {kind}"] = (cast(column, kind), f"column `{column}` holds {kind}, not{wanted}")
for column, value in data("attacks.json")["wrong_cells"]:
    shown = f"`{value}` in row `01`" if isinstance(value, str) else f"{value:g}"
    FORMS[f"{column} is {value}"] = (holding(column, value), f"column `{column}` holds {shown}")
for column in ("id", "question", "domain", "digest"):
    FORMS[f"{column} is empty"] = (holding(column, ""), f"column `{column}` is empty in some rows")
for column in ("id", "position", "by_title", "seconds", "started_at"):
    FORMS[f"{column} is null"] = (holding(column, None), f"column `{column}` is empty in some rows")


def spoil(here: Kept, name: str) -> str:
    form, said = FORMS[name]
    made = form(here.table, here.path.read_bytes())
    here.path.write_bytes(made if isinstance(made, bytes) else packed(made))
    return said


def none_internal(said: str) -> None:
    assert said.startswith("Error: ")
    assert "internal" not in said
    assert "Traceback" not in said
    assert said.count("\n") == 1


@pytest.fixture(scope="module")
def honest(kept: Kept) -> Mapping[str, Any]:
    made = compare_runs(kept.candidate.run_id, kept.baseline.run_id, gate="seed", log=False)
    assert made.verdict == "regression"
    return json.loads(json_text(made))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", FORMS)
def test_rows_of_others_are_refused_or_read_right(
    here: Kept, honest: Mapping[str, Any], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    said = spoil(here, name)
    code, told, made = compare(here, capsys)
    if not said:
        assert (code, made) == (1, honest)
        return
    none_internal(told)
    assert (code, made) == (3, {})
    assert told.startswith(f"Error: per_question.parquet of run {here.candidate.run_id} ")
    assert said in told


DOORS = [*((verb, "an id in two row groups") for verb in ("report", "accept", "replay", "agree"))]
DOORS += [("report", "recall_at_k is nan"), ("replay", "overall_score is 100.0"), ("accept", "tier is 9")]


@pytest.mark.parametrize(("verb", "name"), DOORS)
def test_every_command_reads_rows_through_one_door(
    here: Kept, capsys: pytest.CaptureFixture[str], verb: str, name: str
) -> None:
    run, page = here.candidate.run_id, here.path.parent / "x.html"
    command = {
        "report": ["report", run, "-o", str(page)],
        "accept": ["judge", "accept", run, "03", "--why", "so"],
        "replay": ["judge", "replay", run, "--times", "2", "--judge", JUDGE],
        "agree": ["judge", "agree", run, "--run", here.baseline.run_id],
    }[verb]
    said = spoil(here, name)
    capsys.readouterr()
    assert cli(*command) == 3
    told = capsys.readouterr().err
    none_internal(told)
    assert said in told
    assert run in told
    assert not page.exists()


def test_a_file_of_rows_has_a_version(kept: Kept) -> None:
    assert kept.table.schema.metadata == {b"evaltrack.rows": b"1"}


def test_rows_are_held_against_the_metrics_of_the_run(here: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    table = here.table
    for name in ("recall_at_k", "reciprocal_rank", "precision_at_k", "hit", "ndcg_at_k", "pass"):
        table = changed(table, name, 1.0, row=3)
    pq.write_table(changed(table, "passed", True, row=3), here.path)
    code, told, _ = compare(here, capsys)
    none_internal(told)
    assert code == 3
    assert "the mean of its rows is not the run's " in told


INFINITE = ({"num_tokens": math.inf}, "column `scores.num_tokens`: Input should be a finite number; save it again")


@pytest.mark.parametrize(("fields", "said"), [*data("attacks.json")["saved_runs"], INFINITE])
def test_a_saved_run_is_checked_as_rows_are(
    kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, object], said: str
) -> None:
    saved = json.loads("".join(run_json(kept.baseline)))
    saved["metrics"] = {}
    saved["rows"][1] |= fields
    put(tmp_path / "saved.json", saved)
    capsys.readouterr()
    assert cli("compare", kept.candidate.run_id, "--baseline", str(tmp_path / "saved.json"), "--no-log") == 2
    told = capsys.readouterr().err.partition("See https:")[0]
    none_internal(told)
    assert said in told
