"""Rows as columns: what is in them, in which order they are written, and what comes back."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records import (
    Dimensions,
    Failure,
    Observed,
    Question,
    Reasoned,
    Response,
    Row,
    Source,
    Tally,
    Tokens,
    ToolCall,
    Turn,
    Usage,
    Verdict,
)
from evaltrack.records.trace_place import TracePlace
from evaltrack.rows.columns import flatten, schema
from evaltrack.rows.fields import SOURCE_TEXT_LIMIT, TEXT_LIMIT, USAGE_PARTS
from evaltrack.rows.reader import check_rows, count_rows, read_table, stored_rows
from evaltrack.rows.table import BATCH, GROUP_BYTES, WINDOW, TableWriter

REASONING = (
    *("reasoning_score", "hypotheses", "shifts", "h_count", "oscillation", "crux", "epistemic_honesty"),
    *("process_integrity", "actionability", "brevity", "format", "coupling_violation"),
    *("tier_0", "tier_1", "tier_2", "tier_3", "mode_explore", "mode_converge", "mode_hybrid"),
)
REASONED = ("tier", "claimed_band", "earned_band", "coupling_gap", "penalty", "hard_fails", "mode")
COLUMNS = [
    *("id", "question", "answer", "expected_answer", "domain", "difficulty", "category", "passed", "error"),
    *("recall_at_k", "precision_at_k", "reciprocal_rank", "hit", "ndcg_at_k", "judged_at_k"),
    *("negative_pass", "false_abstention", "overall_score", "accuracy", "completeness", "relevance", "judge_spread"),
    *("tools_called", "tool_invoked", "tools_coordinated", "sources_included"),
    *("num_tokens", "combined_score", "pass", "pass_at_n", "pass_hat_n", "flaky"),
    *REASONING,
    *("unmeasured", "score_reasoning"),
    *("expected", "by_title", "by_passage", "sources", "abstained", "model", "retrieval_digest"),
    "duplicates",
    "tool_calls",
    *("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "tokens_known"),
    *REASONED,
    *("verdicts", "seconds", "started_at", "digest", "judged_digest", "position", "trial", "trials", "passes"),
    *("history", "traceback", "trace_id", "root_span_id"),
]


def row(position: int = 0, **fields: Any) -> Row:
    made: dict[str, Any] = {
        "question": Question(id=str(position), question="Why?", domain="d"),
        "started_at": 0.0,
        "seconds": 0.0,
    }
    return Row(position=position, **made | fields)


def write(path: Path, rows: Iterable[Row], k: int = 5, trials: int = 1) -> list[dict[str, Any]]:
    """What is read back from a file that holds `rows`."""
    writer = TableWriter(path, k, trials)
    for each in rows:
        writer.add(each)
    writer.close()
    return list(read_table(path))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


OBSERVED = Observed(
    dimensions=Dimensions.model_validate(dict.fromkeys(Dimensions.model_fields, 8)),
    hypotheses=5,
    shifts=4,
    crux_treatment="justified",
    uncertainty_treatment="caveats",
    mode="converge",
    quotes={"crux": ("Là 😀",)},
)

TRACE = TracePlace(trace_id=f"tr-{'0a' * 16}", span_id="0b" * 8)
FULL = row(
    3,
    question=Question(
        id="007",
        question="Où? 😀",
        history=(Turn(role="user", content="Là 😀"), Turn(role="tool", content="{}")),
        expected_chunks=("a", "05"),
        expected_sources=("T",),
        expected_answer="Ici.",
        difficulty="hard",
        category="places",
        notes="not in the table",
        domain="travel",
        expected_tools=("search",),
        metadata={"not": "in the table"},
    ),
    response=Response(
        trace=TRACE,
        answer="Là.",
        sources=(
            Source(chunk_id="05", title="T", url="t.md", text="some text", score=1.5),
            Source(title="U", text=""),
        ),
        abstained=True,
        model="gpt-4o",
        tool_calls=(ToolCall(name="search", arguments={"not": "in the table"}), ToolCall(name="open")),
        usage=Usage(prompt_tokens=3, completion_tokens=4, cached_tokens=2, reasoning_tokens=0),
    ),
    verdicts=(
        Verdict(
            judge="openai:m",
            reasoning="Là: ça va. 😀",
            accuracy=0.25,
            completeness=0.5,
            relevance=0.75,
            overall_score=1.0,
            usage=Usage(prompt_tokens=30, completion_tokens=40, reasoning_tokens=35),
            cached=True,
        ),
        Verdict(judge="recorded", reasoning="", declined=False, observed=OBSERVED),
    ),
    score_verdicts={"held": Verdict(judge="openai:m", reasoning="1 of 2 é")},
    scores={score.name: number / 64 for number, score in enumerate(SCORES)},
    tokens=Tokens(count=7, known="reported"),
    reasoned=Reasoned(
        tier=0,
        claimed_band=4,
        earned_band=1,
        coupling_gap=3,
        penalty=25,
        hard_fails=("HF1", "HF5"),
        mode="converge",
    ),
    duplicates=2,
    passed=True,
    trial=None,
    tally=Tally(trials=4, measured=3, passed=2),
    started_at=1_700_000_000.125,
    seconds=0.5,
)
FULL_FLAT: dict[str, Any] = {
    "id": "007",
    "question": "Où? 😀",
    "answer": "Là.",
    "expected_answer": "Ici.",
    "domain": "travel",
    "difficulty": "hard",
    "category": "places",
    "passed": True,
    "error": None,
    "recall_at_k": 0.0,
    "precision_at_k": 0.015625,
    "reciprocal_rank": 0.03125,
    "hit": 0.046875,
    "ndcg_at_k": 0.0625,
    "judged_at_k": 0.078125,
    "negative_pass": 0.09375,
    "false_abstention": 0.109375,
    "overall_score": 0.125,
    "accuracy": 0.140625,
    "completeness": 0.15625,
    "relevance": 0.171875,
    "judge_spread": 0.1875,
    "tools_called": 0.203125,
    "tool_invoked": 0.21875,
    "tools_coordinated": 0.234375,
    "sources_included": 0.25,
    "num_tokens": 0.265625,
    "combined_score": 0.28125,
    "pass": 0.296875,
    "pass_at_n": 0.3125,
    "pass_hat_n": 0.328125,
    "flaky": 0.34375,
    **{name: number / 64 for number, name in enumerate(REASONING, start=23)},
    "unmeasured": None,
    "score_reasoning": '{"held": "1 of 2 \\u00e9"}',
    "expected": ["a", "05"],
    "by_title": False,
    "by_passage": False,
    "sources": [
        {
            "chunk_id": "05",
            "title": "T",
            "url": "t.md",
            "score": 1.5,
            "text": "some text",
            "text_digest": sha("some text"),
            "finds": None,
        },
        {
            **dict.fromkeys(("chunk_id", "url", "score", "text", "text_digest", "finds")),
            "title": "U",
        },
    ],
    "abstained": True,
    "model": "gpt-4o",
    "retrieval_digest": sha('[["05", "T"], [null, "U"]]'),
    "duplicates": 2,
    "tool_calls": ["search", "open"],
    "prompt_tokens": 3,
    "completion_tokens": 4,
    "cached_tokens": 2,
    "reasoning_tokens": 0,
    "tokens_known": "reported",
    "tier": 0,
    "claimed_band": 4,
    "earned_band": 1,
    "coupling_gap": 3,
    "penalty": 25,
    "hard_fails": ["HF1", "HF5"],
    "mode": "converge",
    "verdicts": [
        {
            "judge": "openai:m",
            "reasoning": "Là: ça va. 😀",
            "accuracy": 0.25,
            "completeness": 0.5,
            "relevance": 0.75,
            "overall_score": 1.0,
            "declined": None,
            "observed": None,
            "cached": True,
            "prompt_tokens": 30,
            "completion_tokens": 40,
            "cached_tokens": None,
            "reasoning_tokens": 35,
        },
        {
            "judge": "recorded",
            "reasoning": "",
            "accuracy": None,
            "completeness": None,
            "relevance": None,
            "overall_score": None,
            "declined": False,
            "observed": OBSERVED.model_dump_json(),
            "cached": False,
            "prompt_tokens": None,
            "completion_tokens": None,
            "cached_tokens": None,
            "reasoning_tokens": None,
        },
    ],
    "seconds": 0.5,
    "started_at": 1_700_000_000.125,
    "digest": FULL.question.digest,
    "judged_digest": FULL.question.judged_digest,
    "position": 3,
    "trial": None,
    "trials": 3,
    "passes": 2,
    "history": [{"role": "user", "content": "Là 😀"}, {"role": "tool", "content": "{}"}],
    "traceback": None,
    "trace_id": TRACE.trace_id,
    "root_span_id": TRACE.span_id,
}

FAILED = row(
    1,
    question=Question(id="5", question="Why?", domain="d", expected_sources=()),
    failure=Failure(kind="target_timeout", message="no response within 60 s", traceback="File é"),
    unmeasured={"hit": "é"},
)
FAILED_FLAT: dict[str, Any] = dict.fromkeys(COLUMNS) | {
    "id": "5",
    "question": "Why?",
    "domain": "d",
    "error": "target_timeout: no response within 60 s",
    "traceback": "File é",
    "unmeasured": '{"hit": "\\u00e9"}',
    "score_reasoning": None,
    "expected": [],
    "by_title": True,
    "by_passage": False,
    "duplicates": 0,
    "verdicts": [],
    "seconds": 0.0,
    "started_at": 0.0,
    "digest": FAILED.question.digest,
    "judged_digest": FAILED.question.judged_digest,
    "position": 1,
    "trial": 1,
}


# One row


@pytest.mark.parametrize(
    ("made", "flat"),
    [
        pytest.param(
            FULL,
            FULL_FLAT,
            id="full",
        ),
        pytest.param(FAILED, FAILED_FLAT, id="failed"),
    ],
)
def test_columns(made: Row, flat: dict[str, Any]) -> None:
    """A row has every column in the order in which people read them; what there is not is null."""
    found = flatten(made, 5)
    assert found == flat
    assert list(found) == COLUMNS


def test_schema_has_the_columns() -> None:
    """The file has the columns of a flat row, in that order, and a column for each score."""
    assert schema().names == COLUMNS
    assert {score.name for score in SCORES} <= set(COLUMNS)


@pytest.mark.parametrize(("made", "flat"), [(FULL, FULL_FLAT), (FAILED, FAILED_FLAT)], ids=["full", "failed"])
def test_round_trip(tmp_path: Path, made: Row, flat: dict[str, Any]) -> None:
    """Every column comes back from the file, and through JSON, as it was."""
    assert write(tmp_path / "t.parquet", [made]) == [flat]
    assert json.loads(json.dumps(flatten(made, 5))) == flat


@pytest.mark.parametrize("key", ["007", "7", "1e5", "true", "null", "a\tb", "0x10", "1.0"])
def test_ids_stay_strings(tmp_path: Path, key: str) -> None:
    """Ids that look like numbers come back letter by letter."""
    made = row(
        question=Question(id=key, question="Why?", domain=key, expected_chunks=(key,)),
        response=Response(sources=(Source(chunk_id=key),), tool_calls=(ToolCall(name=key),)),
    )
    (flat,) = write(tmp_path / "t.parquet", [made])
    assert (flat["id"], flat["domain"], flat["expected"], flat["tool_calls"]) == (key, key, [key], [key])
    assert flat["sources"][0]["chunk_id"] == key


@pytest.mark.parametrize(
    ("response", "sources"),
    [(None, None), (Response(), None), (Response(sources=()), []), (Response(answer=""), None)],
)
def test_nothing_found_is_not_nothing_looked_for(
    tmp_path: Path, response: Response | None, sources: list[Any] | None
) -> None:
    """An empty list of sources and no list are told apart, and so are an empty answer and none."""
    (flat,) = write(tmp_path / "t.parquet", [row(response=response)])
    assert flat["sources"] == sources
    assert flat["answer"] == (response.answer if response else None)


def test_texts_of_sources_are_cut() -> None:
    """The text of the first k sources is kept up to its limit, below k none is; the digest is of all of it."""
    texts = ["a" * SOURCE_TEXT_LIMIT, "b" * (SOURCE_TEXT_LIMIT + 1), "c", "c"]
    made = row(response=Response(sources=tuple(Source(chunk_id="x", text=text) for text in texts)))
    found = flatten(made, 3)["sources"]
    assert [source["text"] for source in found] == [texts[0], "b" * SOURCE_TEXT_LIMIT, "c", None]
    assert [source["text_digest"] for source in found] == [sha(text) for text in texts]


def test_a_long_answer_is_cut_and_says_how_much_is_left_out() -> None:
    """One that just fits stays as it is."""
    fits, cut = (row(response=Response(answer="ü" * (TEXT_LIMIT + more))) for more in (0, 12))
    assert flatten(fits, 1)["answer"] == "ü" * TEXT_LIMIT
    assert flatten(cut, 1)["answer"] == "ü" * TEXT_LIMIT + " [... characters left out: 12]"


def ranked(*names: str) -> tuple[Source, ...]:
    """Sources with these chunk ids."""
    return tuple(Source(chunk_id=name) for name in names)


def test_the_same_ranked_list_has_the_same_digest() -> None:
    """What a source is called and its rank make the digest of a list; text, score and what lies below k do not."""

    def digest(*sources: Source, k: int = 2) -> str | None:
        found: str | None = flatten(row(response=Response(sources=sources)), k)["retrieval_digest"]
        return found

    first = digest(*ranked("a", "b"))
    assert first == digest(*ranked("a", "b", "c")) == digest(Source(chunk_id="a", text="t", score=1), *ranked("b", "z"))
    others = [
        digest(),
        digest(*ranked("a")),
        digest(*ranked("b", "a")),
        digest(*ranked("a", "c")),
        digest(Source(title="a"), *ranked("b")),
        digest(Source(chunk_id="a", title="T"), *ranked("b")),
        digest(*ranked("a", "b", "c"), k=3),
    ]
    assert len({first, *others}) == 8
    assert flatten(row(response=Response(answer="Paris.")), 2)["retrieval_digest"] is None


@pytest.mark.parametrize("known", ["reported", "counted", "estimated"])
def test_how_tokens_are_known(tmp_path: Path, known: str) -> None:
    """How the tokens are known stands in words, and null where they are not; only a target's report has parts."""
    used = Tokens.model_validate({"count": 7, "known": known})
    counted, unknown = write(tmp_path / "t.parquet", [row(tokens=used, scores={"num_tokens": 7.0}), row(1)])
    assert (counted["tokens_known"], counted["num_tokens"], counted["prompt_tokens"]) == (known, 7, None)
    assert (counted["cached_tokens"], counted["reasoning_tokens"]) == (None, None)
    assert (unknown["tokens_known"], unknown["num_tokens"]) == (None, None)


def test_a_judge_error_keeps_what_there_is(tmp_path: Path) -> None:
    """A row whose judge failed holds the answer, the other judge's verdict and the error."""
    made = row(
        response=Response(answer="Paris."),
        verdicts=(Verdict(judge="one", reasoning="Right.", overall_score=0.5),),
        failure=Failure(kind="judge_error", message="two: no JSON"),
    )
    (flat,) = write(tmp_path / "t.parquet", [made])
    assert (flat["answer"], flat["error"], flat["passed"]) == ("Paris.", "judge_error: two: no JSON", None)
    assert [(verdict["judge"], verdict["overall_score"]) for verdict in flat["verdicts"]] == [("one", 0.5)]
    assert flat["overall_score"] is None


def test_reasons_are_json() -> None:
    """Why scores were not measured is one JSON object by name."""
    reasons = {"hit": 'a "reason"', "ndcg_at_k": "é\n"}
    assert json.loads(flatten(row(unmeasured=reasons), 5)["unmeasured"]) == reasons


# The file


def test_empty_file(tmp_path: Path) -> None:
    """A file without rows has its columns and reads as none."""
    path = tmp_path / "t.parquet"
    assert write(path, []) == []
    assert count_rows(path) == 0
    assert pq.read_schema(path).names == COLUMNS


def test_some_columns(tmp_path: Path) -> None:
    """Only the columns that are asked for are read."""
    write(tmp_path / "t.parquet", [FULL, FAILED])
    assert list(read_table(tmp_path / "t.parquet", ["position", "id"])) == [
        {"id": "5", "position": 1},
        {"id": "007", "position": 3},
    ]


def test_batches(tmp_path: Path) -> None:
    """Rows reach the file a batch at a time, each batch as one row group."""
    path = tmp_path / "t.parquet"
    write(path, map(row, range(2 * BATCH + 1)))
    assert [pq.ParquetFile(path).metadata.row_group(number).num_rows for number in range(3)] == [BATCH, BATCH, 1]
    assert count_rows(path) == 2 * BATCH + 1
    assert [flat["position"] for flat in read_table(path)] == list(range(2 * BATCH + 1))


@given(st.permutations(range(12)))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_order_is_restored(tmp_path_factory: pytest.TempPathFactory, order: list[int]) -> None:
    """In whatever order rows finish, the file has the order of the golden set."""
    path = tmp_path_factory.getbasetemp() / "order.parquet"
    assert [flat["position"] for flat in write(path, map(row, order))] == sorted(order)


def places(path: Path, order: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Position and trial of what a file holds to which trials came in this order."""
    order = list(order)
    made = write(path, (row(place, trial=n) for place, n in order), trials=max(n for _, n in order))
    return [(flat["position"], flat["trial"]) for flat in made]


def test_trials_that_wait_are_written_in_order(tmp_path: Path) -> None:
    """Trials whose question waits for its predecessors are in the file by question, and then by their number."""
    came = [(2, 1), (1, 3), (1, 1), (2, 2), (1, 2), (0, 1)]
    assert places(tmp_path / "t.parquet", came) == sorted(came)


def test_trials_are_all_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    """In whatever order trials finish, each is in the file once, and its columns are those of a row."""
    path = tmp_path_factory.getbasetemp() / "trials.parquet"
    came = [(place, trial) for trial in (3, 1, 2) for place in (4, 0, 2, 1, 3)]
    assert sorted(places(path, came)) == sorted(came)
    assert pq.read_schema(path).names == COLUMNS


@pytest.mark.parametrize(
    "came",
    [[(0, 2), (0, 1), (1, 1), (1, 2)], [(0, 1), (1, 1), (0, 2), (1, 2)], [(1, 1), (0, 1), (1, 2), (0, 2)]],
    ids=["second trial first", "in turns", "next question first"],
)
def test_trials_are_in_the_order_of_the_golden_set(tmp_path: Path, came: list[tuple[int, int]]) -> None:
    """In whatever order trials finish, the file has the order of the golden set, and in it that of the trials."""
    assert places(tmp_path / "t.parquet", came) == sorted(came)


def test_gaps_stay_in_order(tmp_path: Path) -> None:
    """Rows whose predecessors never come are written in order when the file is closed."""
    assert [flat["position"] for flat in write(tmp_path / "t.parquet", map(row, [9, 4, 0, 7]))] == [0, 4, 7, 9]


def test_order_is_restored_up_to_the_window(tmp_path: Path) -> None:
    """A first row that comes after as many as are held back is still the first of the file."""
    order = [*range(1, WINDOW + 1), 0]
    assert [flat["position"] for flat in write(tmp_path / "t.parquet", map(row, order))] == sorted(order)


def test_order_is_given_up_past_the_window(tmp_path: Path) -> None:
    """A row later than that is written late, after rows that no longer waited; none is lost, and the order resumes."""
    path = tmp_path / "t.parquet"
    writer = TableWriter(path, 5)
    for position in range(1, WINDOW + 2):
        writer.add(row(position))
    assert writer.rows == 1
    writer.add(row(0))
    for position in range(WINDOW + 10, WINDOW + 1, -1):
        writer.add(row(position))
    writer.close()
    positions = list(range(1, WINDOW + 11))
    found = [flat["position"] for flat in read_table(path)]
    assert [position for position in found if position] == positions
    assert sorted(found) == [0, *positions]
    assert found.index(0) > WINDOW


def test_file_cannot_be_made(tmp_path: Path) -> None:
    """A file that cannot be written is an error at once, not after the run."""
    with pytest.raises(FileNotFoundError):
        TableWriter(tmp_path / "none" / "t.parquet", 5)


def test_other_readers_see_the_types(tmp_path: Path) -> None:
    """Pandas, DuckDB and others find text, numbers and lists where these are, also in columns that are all null."""
    path = tmp_path / "t.parquet"
    write(path, [FAILED])
    types = {field.name: field.type for field in pq.read_schema(path)}
    assert {name for name, kind in types.items() if pa.types.is_null(kind)} == set()
    assert types["id"] == pa.string()
    assert {types[score.name] for score in SCORES} == {pa.float64()}
    assert types["expected"].value_type == types["tool_calls"].value_type == types["tokens_known"] == pa.string()
    verdicts = {field.name: field.type for field in types["verdicts"].value_type}
    assert {name for name, kind in verdicts.items() if kind == pa.float64()} == {
        *("accuracy", "completeness", "relevance", "overall_score")
    }
    assert verdicts["declined"] == verdicts["cached"] == pa.bool_()
    counts = {name for name, kind in types.items() if kind == pa.int64()}
    bands = {"tier", "claimed_band", "earned_band", "coupling_gap", "penalty"}
    assert counts == {"duplicates", "position", "trial", "trials", "passes", *USAGE_PARTS, *bands}
    assert (types["hard_fails"].value_type, types["mode"], verdicts["observed"]) == (pa.string(),) * 3
    assert {name for name, kind in verdicts.items() if kind == pa.int64()} == set(USAGE_PARTS)


def distinct_texts(rows: int, length: int) -> Iterable[Row]:
    for position in range(rows):
        text = f"{position:08}" * (length // 8)
        yield row(position, response=Response(sources=(Source(chunk_id="a", text=text),)))


def test_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    """Of texts that are written, nothing is held: 240 MB go through in what one part of the file takes."""
    write(tmp_path / "warm.parquet", distinct_texts(10, 80))
    tracemalloc.start()
    try:
        writer = TableWriter(tmp_path / "t.parquet", 5)
        for each in distinct_texts(2 * BATCH, 30_000):
            writer.add(each)
        writer.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert writer.rows == 2 * BATCH
    assert peak < 2 * GROUP_BYTES


def test_trials_keep_their_order(tmp_path: Path) -> None:
    """Those of a question follow one another, whichever finished first."""
    questions = [Question(id=str(position), question="Why?", domain="d") for position in range(3)]
    rows = [row(each, question=question, trial=trial) for each, question in enumerate(questions) for trial in (1, 2, 3)]
    came = [rows[place] for place in (3, 6, 0, 1, 2, 4, 5, 8, 7)]
    read = write(tmp_path / "t.parquet", came, trials=3)
    assert [(each["position"], each["trial"]) for each in read] == [(each.position, each.trial) for each in rows]


def test_a_column_that_a_file_lacks_was_not_measured(tmp_path: Path) -> None:
    """A file without a score, or without the columns of conversations, is read, and says nothing of them."""
    path = tmp_path / "t.parquet"
    write(path, [FULL])
    pq.write_table(pq.read_table(path).drop_columns(["recall_at_k", "history"]), path)
    check_rows(path)
    (read,) = stored_rows(path)
    assert read.history == ()
    assert "recall_at_k" not in read.scores


def test_a_foreign_role_is_refused(tmp_path: Path) -> None:
    """A file of rows may hold the roles that turns have, and no other."""
    flat = FULL_FLAT | {"history": [{"role": "<script>", "content": "x"}]}
    pq.write_table(pa.Table.from_pylist([flat], schema=schema()), tmp_path / "t.parquet")
    with pytest.raises(TrackingError, match=r"column `history\.role` holds `<script>`"):
        list(read_table(tmp_path / "t.parquet"))
