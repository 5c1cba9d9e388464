"""Rows of a run that are damaged, or that another version or another program wrote: refused with a word, or read right.

Each form is made from the file of a real run and put in its place. The digest that a run holds of its rows would find
all of them, so each is tried on a run of before as well, which holds none: there the reader itself must find it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mlflow
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from evaltrack import Response, RunResult, Source, compare_runs, run_eval
from evaltrack.api.compare_sides import side_of_run
from evaltrack.report.comparison.files import json_text
from evaltrack.report.run.json_form import run_json
from evaltrack.tracking.reader import find_evaluation
from evaltrack.tracking.store import connect
from tests.judging import cli, store_in

QUESTIONS = 6
ROWS = "per_question.parquet"
TAG = "evaltrack.rows"
JUDGE = "likes_rows:judge"


# A store with a baseline and a candidate that lost one question


@dataclass(frozen=True)
class Kept:
    """Two runs in a store, and the candidate's file as it was written."""

    uri: str
    baseline: RunResult
    candidate: RunResult
    table: pa.Table
    path: Path
    tag: str | None

    @property
    def client(self) -> mlflow.MlflowClient:
        """Of the store."""
        return mlflow.MlflowClient(self.uri)


def golden(folder: Path) -> Path:
    """Questions with one expected chunk each, of two domains."""
    path = folder / "few.jsonl"
    lines = [
        {"id": f"{n:02}", "question": f"What is {n}?", "expected_chunks": [f"c{n}"], "domain": "ab"[n % 2]}
        for n in range(QUESTIONS)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def judge_module(folder: Path) -> str:
    """A judge that likes all answers, by its name."""
    (folder / "likes_rows.py").write_text(
        "def judge(question, response):\n"
        "    return {'reasoning': 'so', 'accuracy': 1.0, 'completeness': 1.0, 'relevance': 1.0, 'overall_score': 1.0}\n"
    )
    return JUDGE


def evaluated(folder: Path, uri: str, lost: str = "", **options: Any) -> RunResult:
    """A run that finds all sources but that of one question."""

    def target(question: str, k: int) -> Response:
        number = question.removesuffix("?").rpartition(" ")[2]
        found = "other" if number == lost else f"c{number}"
        return Response(answer="It is so.", sources=(Source(chunk_id=found, text="some text", score=1.5),))

    return run_eval(golden(folder), target=target, traces="off", tracking_uri=uri, **options)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Kept]:
    """The store; whoever changes something there puts it back."""
    folder = tmp_path_factory.mktemp("foreign")
    with store_in(folder, empty_database) as uri, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.syspath_prepend(str(folder))
        judge = judge_module(folder)
        runs = [evaluated(folder, uri, lost, judge=judge) for lost in ("", "3")]
        client = mlflow.MlflowClient(uri)
        run = client.get_run(runs[1].run_id)
        path = Path(run.info.artifact_uri) / ROWS
        yield Kept(uri, runs[0], runs[1], pq.read_table(path), path, run.data.tags.get(TAG))


@pytest.fixture
def here(kept: Kept) -> Iterator[Kept]:
    """The store, whose candidate gets its own rows and tag back at the end."""
    content = kept.path.read_bytes()
    yield kept
    kept.path.parent.mkdir(exist_ok=True)
    kept.path.write_bytes(content)
    if kept.tag is not None:
        kept.client.set_tag(kept.candidate.run_id, TAG, kept.tag)


Compared = tuple[int, str, Mapping[str, Any]]


def compare(kept: Kept, capsys: pytest.CaptureFixture[str], *options: str) -> Compared:
    """Exit code, what was said on stderr, and the comparison."""
    capsys.readouterr()
    names = (kept.candidate.run_id, "--baseline-run", kept.baseline.run_id, "--no-log", "--gate", "seed")
    code = cli("compare", *names, "--output", "json", *options)
    said = capsys.readouterr()
    return code, said.err, json.loads(said.out) if said.out else {}


# The forms


Form = Callable[[pa.Table, Path], object]
"""Writes a file in place of the rows, from these."""

FORMS: dict[str, tuple[Form, str]] = {}
"""Each form by its name, and what is said of it; nothing where the verdict is as before."""


def form(said: str) -> Callable[[Form], Form]:
    """Put a form on the list."""

    def put(made: Form) -> Form:
        FORMS[made.__name__] = (made, said)
        return made

    return put


def with_column(table: pa.Table, name: str, values: Any, kind: pa.DataType | None = None) -> pa.Table:
    """The table with another column in the place of one."""
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)
    return table.set_column(table.column_names.index(name), name, array)


def changed(table: pa.Table, name: str, value: object, row: int = 1) -> pa.Table:
    """The table with another value in one row."""
    values = table[name].to_pylist()
    values[row] = value
    return with_column(table, name, values, table.schema.field(name).type)


def put(name: str, value: object) -> Form:
    """A form with another value in one row."""
    return lambda table, path: pq.write_table(changed(table, name, value), path)


def lacking(name: str) -> Form:
    """A form without a column."""
    return lambda table, path: pq.write_table(table.drop_columns([name]), path)


def cast(name: str, kind: pa.DataType) -> Form:
    """A form with a column of another type."""
    return lambda table, path: pq.write_table(with_column(table, name, pc.cast(table[name], kind)), path)


for column in (
    "id",
    "recall_at_k",
    "passed",
    "digest",
    "answer",
    "sources",
    "verdicts",
    "expected",
    "question",
    "unmeasured",
):
    FORMS[f"no column {column}"] = (lacking(column), f"no column `{column}`")

for column, kind in (("id", pa.int64()), ("id", pa.float64()), ("id", pa.binary()), ("position", pa.string())):
    FORMS[f"{column} as {kind}"] = (cast(column, kind), f"column `{column}` holds {kind}, not")
for column in ("recall_at_k", "overall_score", "reciprocal_rank", "num_tokens"):
    FORMS[f"{column} as text"] = (cast(column, pa.string()), f"column `{column}` holds string, not double")
FORMS["ids as whole numbers, named by the run"] = (cast("id", pa.int32()), "ids are text, as `5` and `05` differ")
FORMS["recall_at_k as whole numbers"] = (
    lambda table, path: pq.write_table(with_column(table, "recall_at_k", [1] * QUESTIONS), path),
    "column `recall_at_k` holds int64, not double",
)
FORMS["passed as text"] = (cast("passed", pa.string()), "column `passed` holds string, not bool")
FORMS["passed as numbers"] = (cast("passed", pa.int8()), "column `passed` holds int8, not bool")
FORMS["recall_at_k as nothing"] = (
    lambda table, path: pq.write_table(with_column(table, "recall_at_k", pa.nulls(QUESTIONS)), path),
    "column `recall_at_k` holds null, not double",
)

for column, value in (
    ("recall_at_k", math.inf),
    ("recall_at_k", -math.inf),
    ("recall_at_k", math.nan),
    ("overall_score", math.inf),
    ("num_tokens", math.inf),
    ("seconds", math.nan),
    ("recall_at_k", 2.0),
    ("reciprocal_rank", -0.5),
    ("overall_score", 100.0),
    ("pass", 7.0),
    ("num_tokens", -1.0),
    ("seconds", -1.0),
    ("position", -1),
    ("duplicates", -1),
    ("tier", 9),
    ("prompt_tokens", -1),
):
    FORMS[f"{column} is {value}"] = (put(column, value), f"column `{column}` holds {value:g}")

for column, text in (("difficulty", "impossible"), ("mode", "sleep"), ("tokens_known", "guessed")):
    FORMS[f"{column} is {text}"] = (put(column, text), f"column `{column}` holds `{text}` in row `01`")
for column in ("id", "question", "domain", "digest"):
    FORMS[f"{column} is empty"] = (put(column, ""), f"column `{column}` is empty in some rows")
for column in ("id", "position", "by_title", "seconds", "started_at"):
    FORMS[f"{column} is null"] = (put(column, None), f"column `{column}` is empty in some rows")


@form("several rows have one id: `01`, `02`;")
def the_first_rows_twice(table: pa.Table, path: Path) -> None:
    """Two of the rows in the place of two others: their count is right."""
    pq.write_table(pa.concat_tables([table.slice(0, 4), table.slice(1, 2)]), path)


@form(f"{2 * QUESTIONS} rows")
def all_rows_twice(table: pa.Table, path: Path) -> None:
    """As somebody does who appends to a file."""
    pq.write_table(pa.concat_tables([table, table]), path)


@form("several rows have one id: `02`;")
def another_id_twice(table: pa.Table, path: Path) -> None:
    """In two row groups."""
    pq.write_table(changed(table, "id", "02", row=5), path, row_group_size=2)


@form("2 rows")
def some_rows(table: pa.Table, path: Path) -> None:
    """Those that failed are gone."""
    pq.write_table(table.slice(0, 2), path)


@form("0 rows")
def no_rows(table: pa.Table, path: Path) -> None:
    """The columns alone."""
    pq.write_table(table.slice(0, 0), path)


@form("it is not a Parquet file")
def half_a_file(table: pa.Table, path: Path) -> None:
    """A copy that was broken off."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@form("it is not a Parquet file")
def an_empty_file(table: pa.Table, path: Path) -> None:
    """Nothing was written."""
    path.write_bytes(b"")


@form("it is not a Parquet file")
def a_csv(table: pa.Table, path: Path) -> None:
    """Another format under the same name."""
    path.write_text("id,recall_at_k\n01,1.0\n")


@form("was not written by evaltrack")
def bytes_overwritten(table: pa.Table, path: Path) -> None:
    """A part of the pages is zero, as on a disk that lost it."""
    content = path.read_bytes()
    path.write_bytes(content[:200] + bytes(2000) + content[2200:])


@form("two of its columns have one name")
def a_column_twice(table: pa.Table, path: Path) -> None:
    """A second `recall_at_k`."""
    pq.write_table(table.append_column("recall_at_k", pa.array([0.0] * QUESTIONS)), path)


@form("column `sources` holds string, not lists")
def sources_as_text(table: pa.Table, path: Path) -> None:
    """As JSON, which a spreadsheet makes of them."""
    texts = [json.dumps(each) for each in table["sources"].to_pylist()]
    pq.write_table(with_column(table, "sources", texts), path)


@form("column `sources` holds string, not objects")
def sources_as_names(table: pa.Table, path: Path) -> None:
    """A list of ids."""
    names = [[each["chunk_id"] for each in sources] for sources in table["sources"].to_pylist()]
    pq.write_table(with_column(table, "sources", names), path)


@form("a list in column `sources` holds nothing where something belongs")
def a_source_that_is_nothing(table: pa.Table, path: Path) -> None:
    """A null inside of the list."""
    pq.write_table(changed(table, "sources", [None]), path)


@form("column `sources.score` holds inf")
def a_source_of_endless_score(table: pa.Table, path: Path) -> None:
    """Infinity inside of a list."""
    pq.write_table(changed(table, "sources", [{"chunk_id": "c1", "score": math.inf}]), path)


@form("column `verdicts.overall_score` holds 7")
def a_verdict_off_the_scale(table: pa.Table, path: Path) -> None:
    """Seven of one."""
    verdict = table["verdicts"].to_pylist()[1][0] | {"overall_score": 7.0}
    pq.write_table(changed(table, "verdicts", [verdict]), path)


def without_field(name: str, field: str) -> Form:
    """A form whose objects lack a field."""

    def write(table: pa.Table, path: Path) -> None:
        objects = [[{k: v for k, v in each.items() if k != field} for each in row] for row in table[name].to_pylist()]
        fields = [each for each in table.schema.field(name).type.value_type if each.name != field]
        pq.write_table(with_column(table, name, objects, pa.list_(pa.struct(fields))), path)

    return write


for column, field in (("sources", "text_digest"), ("sources", "chunk_id"), ("sources", "score")):
    FORMS[f"no {field} in {column}"] = (without_field(column, field), f"it has no column `{column}.{field}`")


@form("column `verdicts.overall_score` holds string, not double")
def verdicts_of_another_kind(table: pa.Table, path: Path) -> None:
    """Their scores are texts."""
    verdicts = [[{"judge": "j", "overall_score": "1.0"}]] * QUESTIONS
    pq.write_table(with_column(table, "verdicts", verdicts), path)


@form("column `unmeasured` holds a text that is no object in JSON")
def reasons_that_are_no_json(table: pa.Table, path: Path) -> None:
    """Why nothing was measured, cut."""
    pq.write_table(changed(table, "unmeasured", '{"hit": "be'), path)


@form("written by a newer version of evaltrack (rows of version 2, and this one")
def a_newer_version(table: pa.Table, path: Path) -> None:
    """Its file says so."""
    pq.write_table(table.replace_schema_metadata({"evaltrack.rows": "2"}), path)


@form("")
def columns_in_another_order(table: pa.Table, path: Path) -> None:
    """By name."""
    pq.write_table(table.select(sorted(table.column_names)), path)


@form("")
def a_column_more(table: pa.Table, path: Path) -> None:
    """Of a later version, or somebody's own."""
    pq.write_table(table.append_column("colour", pa.array(["red"] * QUESTIONS)), path)


@form("")
def another_compression(table: pa.Table, path: Path) -> None:
    """In row groups of two."""
    pq.write_table(table, path, compression="gzip", row_group_size=2, data_page_version="2.0")


@form("")
def rows_in_another_order(table: pa.Table, path: Path) -> None:
    """The last first."""
    pq.write_table(table.take(list(reversed(range(QUESTIONS)))), path)


@form("")
def without_what_came_later(table: pa.Table, path: Path) -> None:
    """As the first version wrote it."""
    pq.write_table(table.drop_columns(["model", "tool_invoked", "tools_coordinated", "sources_included"]), path)


# What is said of them


def none_internal(said: str) -> None:
    """One error of evaltrack's own, no traceback."""
    assert said.startswith("Error: ")
    assert "internal" not in said
    assert "Traceback" not in said
    assert said.count("\n") == 1


@pytest.fixture(scope="module")
def honest(kept: Kept) -> Mapping[str, Any]:
    """The comparison of the runs as they are."""
    made = json.loads(comparison_json_of(kept))
    assert made["verdict"] == "regression"
    return made


def comparison_json_of(kept: Kept) -> str:
    """Without a log, in JSON."""
    made = compare_runs(kept.candidate.run_id, kept.baseline.run_id, gate="seed", log=False)
    return json_text(made)


@pytest.mark.parametrize("name", FORMS)
def test_rows_of_a_run_that_says_nothing_of_them(
    here: Kept, honest: Mapping[str, Any], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The reader names what is wrong, and exits 3; a form without harm gives the same verdict, to the letter."""
    make, said = FORMS[name]
    here.client.delete_tag(here.candidate.run_id, TAG)
    make(here.table, here.path)
    code, told, made = compare(here, capsys)
    if not said:
        assert (code, made) == (1, honest)
        return
    none_internal(told)
    assert (code, made) == (3, {})
    assert told.startswith(f"Error: per_question.parquet of run {here.candidate.run_id} ")
    assert said in told


LOGGED = (
    *("no column recall_at_k", "id as int64", "recall_at_k is inf", "recall_at_k is nan", "another_id_twice"),
    *("half_a_file", "a_column_more", "another_compression"),
)


@pytest.mark.parametrize("name", LOGGED)
def test_rows_of_a_run_that_logged_their_digest(here: Kept, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Any other file than the one that was logged is refused, whatever is in it."""
    FORMS[name][0](here.table, here.path)
    code, told, made = compare(here, capsys)
    none_internal(told)
    assert (code, made) == (3, {})
    run = f"per_question.parquet of run {here.candidate.run_id}"
    assert told.startswith(f"Error: {run} was changed after the run: its SHA-256 is ")
    assert told.endswith("; restore the file, or evaluate again\n")


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        *(
            (verb, name)
            for verb in ("report", "accept", "replay", "agree")
            for name in ("another_id_twice", "some_rows")
        ),
        *(("report", "recall_at_k is nan"), ("replay", "overall_score is 100.0"), ("accept", "tier is 9")),
    ],
)
def test_every_command_reads_rows_through_one_door(
    here: Kept, capsys: pytest.CaptureFixture[str], verb: str, name: str
) -> None:
    """With the digest, and without it."""
    run, page = here.candidate.run_id, here.path.parent / "x.html"
    command = {
        "report": ["report", run, "-o", str(page)],
        "accept": ["judge", "accept", run, "03", "--why", "so"],
        "replay": ["judge", "replay", run, "--times", "2", "--judge", JUDGE],
        "agree": ["judge", "agree", run, "--run", here.baseline.run_id],
    }[verb]
    make, said = FORMS[name]
    make(here.table, here.path)
    for expected in ("was changed after the run", said):
        capsys.readouterr()
        assert cli(*command) == 3
        told = capsys.readouterr().err
        none_internal(told)
        assert expected in told
        assert run in told
        if expected != said:
            here.client.delete_tag(run, TAG)
    assert not page.exists()


# What else a run and its files may say


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        (
            '{"version": 2, "rows": 6, "digest": "of another kind"}',
            "was written by a newer version of evaltrack (rows of",
        ),
        ("{}", "tag `evaltrack.rows` of run RUN was not written by evaltrack; evaluate again, or delete the tag"),
        ("x", "tag `evaltrack.rows` of run RUN was not written by evaltrack"),
        ("[" * 5000, "tag `evaltrack.rows` of run RUN was not written by evaltrack"),
        ('{"version": true}', "tag `evaltrack.rows` of run RUN was not written by evaltrack"),
        ('{"version": 1, "rows": "6", "sha256": "x"}', "tag `evaltrack.rows` of run RUN was not written by evaltrack"),
    ],
)
def test_a_tag_of_another_version_or_of_others(
    here: Kept, capsys: pytest.CaptureFixture[str], tag: str, said: str
) -> None:
    """Has its own message; it never counts as no tag."""
    here.client.set_tag(here.candidate.run_id, TAG, tag)
    code, told, _ = compare(here, capsys)
    none_internal(told)
    assert code == 3
    assert said.replace("RUN", here.candidate.run_id) in told


def test_a_run_says_what_it_logged(kept: Kept) -> None:
    """Version, number of rows, and the digest that anybody can check."""
    assert kept.tag is not None
    digest = hashlib.sha256(kept.path.read_bytes()).hexdigest()
    assert json.loads(kept.tag) == {"version": 1, "rows": QUESTIONS, "sha256": digest, "trials_sha256": ""}
    assert kept.table.schema.metadata == {b"evaltrack.rows": b"1"}


@pytest.mark.parametrize("tagged", [True, False])
def test_rows_are_held_against_the_metrics_of_the_run(
    here: Kept, capsys: pytest.CaptureFixture[str], tagged: bool
) -> None:
    """A lost question that was made a found one, every value of it on its scale."""
    table = here.table
    for name in ("recall_at_k", "reciprocal_rank", "precision_at_k", "hit", "ndcg_at_k", "pass"):
        table = changed(table, name, 1.0, row=3)
    pq.write_table(changed(table, "passed", True, row=3), here.path)
    if not tagged:
        here.client.delete_tag(here.candidate.run_id, TAG)
    code, told, _ = compare(here, capsys)
    none_internal(told)
    assert code == 3
    said = "was changed after the run" if tagged else "the mean of its rows is not the run's "
    assert said in told


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[tuple[str, RunResult]]:
    """A run of three trials of each question, and the store it is in."""
    folder = tmp_path_factory.mktemp("tried")
    with store_in(folder, empty_database) as uri:
        yield uri, evaluated(folder, uri, "3", trials=3)


@pytest.mark.parametrize("logged", [True, False])
def test_trials_of_others_are_none(tried: tuple[str, RunResult], tmp_path: Path, logged: bool) -> None:
    """The rows hold the scores without them: trials that were changed, or stand there twice, are left out."""
    uri, result = tried
    store = connect(uri)
    run = find_evaluation(store, result.run_id)
    path = Path(store.client.get_run(run.run_id).info.artifact_uri) / "trials.parquet"
    content, table = path.read_bytes(), pq.read_table(path)
    assert len(side_of_run(store, run, tmp_path).trials(["03"])["03"]) == 3
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)
    side = side_of_run(store, run if logged else replace(run, rows_tag=""), tmp_path)
    assert side.trials(["03"]) == {}
    path.write_bytes(content)


# A saved run


def infinite(saved: dict[str, Any]) -> None:
    saved["rows"][1]["num_tokens"] = math.inf


def twice(saved: dict[str, Any]) -> None:
    saved["rows"][1] = saved["rows"][0]


def without_a_digest(saved: dict[str, Any]) -> None:
    saved["rows"][1]["digest"] = None


def off_the_scale(saved: dict[str, Any]) -> None:
    saved["rows"][1]["ndcg_at_k"] = 3


def in_words(saved: dict[str, Any]) -> None:
    saved["rows"][1]["ndcg_at_k"] = "1.0"


def of_tomorrow(saved: dict[str, Any]) -> None:
    saved["schema"] = "evaltrack.run/2"


SAVED: tuple[tuple[Callable[[dict[str, Any]], None], str], ...] = (
    (infinite, "is damaged: column `num_tokens` holds inf in row `01`; save it again"),
    (twice, "is damaged: several rows have one id: `00`; save it again"),
    (without_a_digest, "is damaged: column `digest` is empty in some rows; save it again"),
    (off_the_scale, "is damaged: column `ndcg_at_k` holds 3 in row `01`; save it again"),
    (in_words, "is damaged or of another version: ArrowInvalid"),
    (of_tomorrow, "was saved by a newer version of evaltrack; upgrade evaltrack, or save it again"),
)


@pytest.mark.parametrize(("spoil", "said"), SAVED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_saved_run_is_checked_as_rows_are(
    kept: Kept,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[dict[str, Any]], None],
    said: str,
) -> None:
    """It is a file that was named: exit code 2."""
    saved = json.loads("".join(run_json(kept.baseline)))
    saved["metrics"] = {}
    spoil(saved)
    (tmp_path / "saved.json").write_text(json.dumps(saved))
    capsys.readouterr()
    assert cli("compare", kept.candidate.run_id, "--baseline", str(tmp_path / "saved.json"), "--no-log") == 2
    told = capsys.readouterr().err
    none_internal(told)
    assert said in told
