"""Blocks of rows: whatever is measured in columns is what it is measured one by one, to the last bit."""

from __future__ import annotations

import json
import os
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaltrack.evaluation import blocks
from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.at_once import AT_ONCE, Numbered
from evaltrack.evaluation.blocks import LEAST, makes_blocks, rows_in_blocks
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.evaluator import evaluator_of
from evaltrack.evaluation.figures import Figures
from evaltrack.evaluation.loop import take_all
from evaltrack.golden.reader import open_golden
from evaltrack.metrics.aggregate import SHOWN_ROWS
from evaltrack.metrics.measure import Rules
from evaltrack.privacy.redaction import MARK, Redactor
from evaltrack.privacy.secret_patterns import SHORTEST, may_hold_secrets
from evaltrack.records import Row
from evaltrack.rows.batch import table_of_rows
from evaltrack.rows.block import RowBlock
from evaltrack.rows.block_table import table_of_block
from evaltrack.rows.fields import SOURCE_TEXT_LIMIT
from evaltrack.rows.table import BATCH, TableWriter
from evaltrack.targets.line_columns import MAX_BYTES
from evaltrack.targets.recorded import open_recorded

K = 3
OF_THE_CLOCK = {"started_at": 0.0, "seconds": 0.0}
KEY = "sk-" + "proj-" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6"
LONG = "é" * (SOURCE_TEXT_LIMIT + 1)


def written(folder: Path, lines: Sequence[dict[str, Any]], responses: Sequence[str | dict[str, Any]]) -> None:
    """A golden set of these lines, whose ids are their places, and a file of responses."""
    golden = [{"id": f"q{number}", "question": "Why?", "domain": "d"} | line for number, line in enumerate(lines)]
    (folder / "golden.jsonl").write_text("".join(json.dumps(line) + "\n" for line in golden))
    texts = [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in responses]
    (folder / "responses.jsonl").write_text("".join(text + "\n" for text in texts))


def evaluator_in(folder: Path, **changes: Any) -> Evaluator:
    """The evaluator of the responses there."""
    config = EvaluationConfig.of(k=K, judge="none")
    target = open_recorded(str(folder / "responses.jsonl"), {})
    evaluator = evaluator_of(config, target, (), (), Redactor())
    return Evaluator(**{**vars(evaluator), **changes})


def numbered(folder: Path) -> Iterator[Numbered]:
    """The questions of the golden set there."""
    return ((*one, 1) for one in enumerate(open_golden(folder / "golden.jsonl")))


def in_blocks(folder: Path, stop: Callable[[], bool] = lambda: False, **changes: Any) -> list[Row | RowBlock]:
    """What a run takes."""
    evaluator, taken = evaluator_in(folder, **changes), list[Row | RowBlock]()

    def rows() -> AsyncGenerator[Row | RowBlock]:
        return rows_in_blocks(numbered(folder), evaluator, stop)

    take_all(rows, taken.append, ())
    evaluator.target.close()
    return taken


def one_by_one(folder: Path, **changes: Any) -> list[Row]:
    """The rows as the evaluator makes them one after the other."""
    evaluator, rows = evaluator_in(folder, **changes), list[Row]()

    async def each() -> AsyncGenerator[Row]:
        for one in numbered(folder):
            yield await evaluator.row(*one)

    take_all(each, rows.append, ())
    evaluator.target.close()
    return rows


def timeless(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as objects, without what the clock says."""
    return [row.model_dump() | OF_THE_CLOCK for row in rows]


def each_row(taken: Sequence[Row | RowBlock]) -> list[Row]:
    """The rows of blocks and those beside them, in their order."""
    return [row for each in taken for row in (each.rows() if isinstance(each, RowBlock) else (each,))]


def timeless_table(table: pa.Table) -> pa.Table:
    """The table without what the clock says."""
    return table.drop_columns(list(OF_THE_CLOCK))


def added(taken: Sequence[Row | RowBlock]) -> tuple[Figures, list[str]]:
    """What a run adds up of these, and what it warns of on the way."""
    warnings = list[str]()
    figures = Figures(K, (), warnings.append)
    for each in taken:
        if isinstance(each, RowBlock):
            figures.add_block(each)
        else:
            figures.add_trial(each)
            figures.add_question(each)
    return figures, warnings


def every_figure(taken: Sequence[Row | RowBlock]) -> dict[str, Any]:
    """Every figure, note and warning of a run."""
    figures, warnings = added(taken)
    summary, ledger = figures.summary, figures.ledger
    names = ("metrics", "counts", "totals", "groups", "by_judge", "measures_anything", "num_measured")
    calls = (ledger.calls, ledger.reports, ledger.models, ledger.unread, ledger.num_empty, ledger.num_responses)
    shown = (timeless(figures.shown_rows.errors), timeless(figures.shown_rows.missed))
    return {name: getattr(summary, name) for name in names} | {
        "ledger": (*calls, ledger.num_empty_answers, ledger.totals),
        "notes": (figures.lookouts.notes, warnings, shown),
    }


def check_alike(folder: Path, **changes: Any) -> list[Row | RowBlock]:
    """Rows, tables and figures are those of rows that are made one by one; returns what a run takes."""
    taken, rows = in_blocks(folder, **changes), one_by_one(folder, **changes)
    assert timeless(each_row(taken)) == timeless(rows)
    for block in taken:
        if isinstance(block, RowBlock):
            own = list(block.rows())
            expected = timeless_table(table_of_rows(own, K, ("own",)))
            assert timeless_table(table_of_block(block, K, ("own",))).equals(expected)
            assert all(each.seconds == own[0].seconds and each.started_at == own[0].started_at for each in own)
    assert every_figure(taken) == every_figure(rows)
    return taken


TEXTS = st.sampled_from(
    ["", "a", "An answer of 7 words, or some.", "naïve 漢字 😀", "tab\tand\nline", LONG, "null", "  "]
)
CHUNKS = st.sampled_from(["a", "b", "c", "d", "é", "null"])
TITLES = st.sampled_from(["Fare zones", "fare_zones", "Refunds", "漢字", "-", "", "null"])
MORE = {
    "url": TEXTS,
    "text": TEXTS | st.none(),
    "score": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3),
}
SOURCE = st.fixed_dictionaries({"chunk_id": CHUNKS}, optional={"title": TITLES | st.none(), **MORE})
TITLED = st.fixed_dictionaries({"title": TITLES}, optional=MORE)
SOURCES = st.lists(SOURCE, max_size=6) | st.lists(SOURCE | TITLED, max_size=6)
PLAIN = st.fixed_dictionaries(
    {"sources": SOURCES},
    optional={"answer": TEXTS, "abstained": st.booleans(), "model": st.sampled_from(["m", "gpt-4o"])},
)
OTHER = st.sampled_from(
    [
        {"error": "it is down"},
        {"answer": "yes"},
        {"answer": None, "sources": ["a"]},
        {"sources": ["a", {"title": "A"}]},
        {"sources": [{"chunk_id": 5}]},
        {"sources": [{"chunk_id": "a"}], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        {"sources": [{"chunk_id": "a"}], "other": 1},
        {"sources": [{"chunk_id": "a", "text": f"the key is {KEY}"}]},
        {"sources": [{"chunk_id": "a", "text": "NUL \0"}]},
        {"sources": [], "tool_calls": [{"name": "t"}]},
        {"answer": f"{KEY}", "sources": []},
    ]
)
GOLDEN = st.fixed_dictionaries(
    {"domain": st.sampled_from(["d", "e", "easy"])},
    optional={
        "difficulty": st.sampled_from(["easy", "hard"]),
        "category": TEXTS,
        "expected_answer": TEXTS,
        "expected_chunks": st.lists(CHUNKS, max_size=4) | st.dictionaries(CHUNKS, st.integers(1, 2), min_size=1),
    },
)
TITLED_GOLDEN = st.fixed_dictionaries({"expected_sources": st.lists(TITLES.filter(bool), max_size=3)})
OTHER_GOLDEN = st.sampled_from(
    [
        {"expected_passages": [{"quote": "is"}]},
        {"expected_passages": []},
        {"expected_chunks": ["a"], "expected_tools": ["t"]},
        {"history": [{"role": "user", "content": "Before that."}]},
        {"expected_chunks": ["a", "b"], "expected_sources": ["Refunds"]},
    ]
)


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_figure_is_that_of_rows_made_one_by_one(tmp_path: Path, data: st.DataObject) -> None:
    """Of any golden set and any responses, among which some are not plain."""
    lines = data.draw(st.lists(GOLDEN | GOLDEN | TITLED_GOLDEN | OTHER_GOLDEN, min_size=1, max_size=40))
    kinds = PLAIN if data.draw(st.booleans()) else PLAIN | PLAIN | PLAIN | OTHER
    responses = [{"id": f"q{number}"} | data.draw(kinds) for number in range(len(lines))]
    if data.draw(st.booleans()):
        responses = data.draw(st.permutations(responses))[: data.draw(st.integers(1, len(responses)))]
    written(tmp_path, lines, responses)
    check_alike(tmp_path)


def plain(number: int, **changes: Any) -> dict[str, Any]:
    """A plain response to the question of this number."""
    sources = [{"chunk_id": f"c{rank}", "text": f"Text {rank}."} for rank in range(5)]
    return {"id": f"q{number}", "answer": f"It is {number}.", "sources": sources} | changes


def expecting(size: int) -> list[dict[str, Any]]:
    """Golden lines, of which one in seven expects a chunk that comes back at each rank, or not at all."""
    return [{"expected_chunks": [f"c{number % 7}"]} for number in range(size)]


def test_plain_responses_are_in_blocks(tmp_path: Path) -> None:
    """All of them, at most `AT_ONCE` in each, and of few kinds."""
    size = AT_ONCE + 100
    written(tmp_path, expecting(size), [plain(number) for number in range(size)])
    taken = check_alike(tmp_path)
    assert [len(each) for each in taken if isinstance(each, RowBlock)] == [AT_ONCE, 100]
    assert [len(each.examples) for each in taken if isinstance(each, RowBlock)] == [6, 6]


@pytest.mark.parametrize("most", [0, 3, 2000])
def test_a_kind_that_an_earlier_block_had_is_measured_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """However many examples are remembered: ids, texts, labels and tokens are those of each question."""
    monkeypatch.setattr(blocks, "MOST_EXAMPLES", most)
    draw = random.Random(most)
    lines, responses = list[dict[str, Any]](), list[dict[str, Any]]()
    for number in range(3 * AT_ONCE):
        ids = [f"c{draw.randrange(12)}" for _ in range(draw.randrange(5))]
        sources = [{"chunk_id": each, "text": f"Text {number}."} for each in ids]
        answer = draw.choice([None, "", " ", f"  It is {number}.", LONG])
        responses.append(plain(number, sources=sources, answer=answer, abstained=draw.random() < 0.2))
        expected = [f"c{draw.randrange(12)}" for _ in range(draw.randrange(3))]
        lines.append({"expected_chunks": expected, "domain": draw.choice("de")})
    written(tmp_path, lines, responses)
    taken = check_alike(tmp_path)
    assert [len(each) for each in taken if isinstance(each, RowBlock)] == [AT_ONCE] * 3


ODD = {
    "an error": {"error": "down"},
    "a number as id": {"sources": [{"chunk_id": 7}]},
    "a field that nobody reads": {"other": 1},
    "a key": {"answer": f"use {KEY}"},
    "an id alone": {"sources": ["c1"]},
    "no sources": {"sources": None},
}


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_response_leaves_the_others_in_blocks(tmp_path: Path, odd: str) -> None:
    """At most `LEAST` questions around it are asked one by one."""
    responses = [plain(number) | (ODD[odd] if number == 77 else {}) for number in range(200)]
    if odd == "an error":
        responses[77] = {"id": "q77", "error": "down"}
    written(tmp_path, expecting(200), responses)
    taken = check_alike(tmp_path)
    assert 0 < sum(isinstance(each, Row) for each in taken) < 2 * LEAST


def test_a_question_of_another_kind_stands_between_blocks(tmp_path: Path) -> None:
    """One with tools, say; those before and after it are in blocks."""
    lines = [{"expected_tools": ["t"]} if number == 50 else line for number, line in enumerate(expecting(100))]
    written(tmp_path, lines, [plain(number) for number in range(100)])
    assert [len(each) if isinstance(each, RowBlock) else each.position for each in check_alike(tmp_path)] == [
        50,
        50,
        49,
    ]


def test_times_are_those_of_each_row(tmp_path: Path) -> None:
    """Of blocks and of rows beside them."""
    responses = [plain(n) if n % 100 else {"id": f"q{n}", "error": "down"} for n in range(2 * AT_ONCE)]
    written(tmp_path, expecting(len(responses)), responses)
    taken = in_blocks(tmp_path)
    ledger, whole = added(taken)[0].ledger, added(each_row(taken))[0].ledger
    assert ledger.seconds() == whole.seconds()
    assert ledger.num_responses == whole.num_responses == len(responses) - 6


@pytest.mark.parametrize(("first_hit", "size", "num_warnings"), [(10, 40, 1), (9, 40, 0), (40, 40, 1), (299, 300, 1)])
def test_ids_of_another_form_are_said_at_the_tenth_question(
    tmp_path: Path, first_hit: int, size: int, num_warnings: int
) -> None:
    """While the run can still be stopped, whatever the rest of its block holds."""
    ids = ["x" if number < first_hit else "c1" for number in range(size)]
    responses = [plain(number, sources=[{"chunk_id": key}]) for number, key in enumerate(ids)]
    written(tmp_path, [{"expected_chunks": ["c1"]}] * size, responses)
    _, warnings = added(check_alike(tmp_path))
    expected = "no expected source of 10 questions ever came back"
    assert [words.startswith(expected) for words in warnings] == [True] * num_warnings


def test_titles_and_ids_are_in_one_block(tmp_path: Path) -> None:
    """Also negatives of both, and sources that have a title alone."""
    answerable, negative = [{"expected_sources": ["T2"]}, {"expected_chunks": ["c1"]}], {"expected_sources": []}
    kinds = [*answerable, negative, {"expected_chunks": []}]
    responses = [plain(n) if n % 2 else plain(n, sources=[{"title": "T1"}, {"title": "t2"}]) for n in range(40)]
    written(tmp_path, [kinds[number // 2 % 4] for number in range(40)], responses)
    (block,) = check_alike(tmp_path)
    assert [row.scores.get("reciprocal_rank") for row in each_row([block])][:4] == [0.5, 0.0, 0.0, 0.5]


def test_a_question_without_a_response_fails(tmp_path: Path) -> None:
    """And no other does."""
    written(tmp_path, expecting(100), [plain(number) for number in range(100) if number != 30])
    rows = each_row(check_alike(tmp_path))
    assert [row.position for row in rows if row.failure] == [30]


def rows_of_changed(folder: Path, content: str, *, same_time: bool) -> dict[str, str]:
    """The failures by question of 64 responses, in whose place `content` is written before they are asked for."""
    written(folder, expecting(64), [plain(number) for number in range(64)])
    path, rows = folder / "responses.jsonl", list[Row | RowBlock]()
    evaluator, before = evaluator_in(folder), path.stat()
    path.write_text(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + (not same_time)))
    take_all(lambda: rows_in_blocks(numbered(folder), evaluator, lambda: False), rows.append, ())
    evaluator.target.close()
    return {row.question.id: str(row.failure) for row in each_row(rows) if row.failure}


def test_a_response_that_was_changed_meanwhile_fails(tmp_path: Path) -> None:
    """No response is read from a file that was written to; where its time says nothing, none of another question."""
    written(tmp_path, expecting(64), [plain(number) for number in range(64)])
    lines = (tmp_path / "responses.jsonl").read_text().splitlines(keepends=True)
    content = "".join([*lines[:20], lines[21], lines[20], *lines[22:]])
    failures = rows_of_changed(tmp_path, content, same_time=False)
    assert len(failures) == 64
    some = rows_of_changed(tmp_path, content, same_time=True)
    assert some.keys() == {"q20", "q21"}
    assert all("was changed during the run" in text for text in (*failures.values(), *some.values()))


def test_a_file_that_is_gone_fails_each_question(tmp_path: Path) -> None:
    """As it does where they are asked one by one."""
    written(tmp_path, expecting(20), [plain(number) for number in range(20)])
    evaluator, rows = evaluator_in(tmp_path), list[Row | RowBlock]()
    (tmp_path / "responses.jsonl").unlink()
    take_all(lambda: rows_in_blocks(numbered(tmp_path), evaluator, lambda: False), rows.append, ())
    assert [row.failure and row.failure.kind for row in each_row(rows)] == ["target_error"] * 20


def test_responses_too_large_for_a_block_are_measured_all_the_same(tmp_path: Path) -> None:
    """Fewer at a time."""
    text = "word " * (MAX_BYTES // 5 // 20)
    responses = [plain(number, sources=[{"chunk_id": "c1", "text": text}]) for number in range(32)]
    written(tmp_path, expecting(32), responses)
    sizes = [len(each) for each in check_alike(tmp_path) if isinstance(each, RowBlock)]
    assert sum(sizes) == 32
    assert max(sizes) < 20


def test_a_secret_is_taken_out(tmp_path: Path) -> None:
    """What may hold one is asked one by one, and its words are gone."""
    written(tmp_path, expecting(64), [plain(n, **({"answer": KEY} if n == 5 else {})) for n in range(64)])
    rows = each_row(check_alike(tmp_path))
    assert [row.response and row.response.answer for row in rows][5] == MARK


def test_words_of_secrets_in_texts_apart_are_none(tmp_path: Path) -> None:
    """A text that names a key and another with a long word hold no secret together."""
    texts = ["api_key secret token", "x1" * (SHORTEST // 2 + 1)]
    assert [may_hold_secrets(text) for text in (*texts, "\n".join(texts))] == [False, False, True]
    responses = [plain(n, sources=[{"chunk_id": "c1", "text": text} for text in texts]) for n in range(64)]
    written(tmp_path, expecting(64), responses)
    assert [type(each) for each in check_alike(tmp_path)] == [RowBlock]


def test_patterns_of_ones_own_leave_no_block(tmp_path: Path) -> None:
    """They may match anywhere."""
    written(tmp_path, expecting(32), [plain(number) for number in range(32)])
    taken = check_alike(tmp_path, redactor=Redactor(["It is"]))
    assert {type(each) for each in taken} == {Row}


def test_reasoning_and_judges_make_no_blocks(tmp_path: Path) -> None:
    """Their rows are made one by one."""
    written(tmp_path, expecting(1), [plain(0)])
    evaluator = evaluator_in(tmp_path)
    assert makes_blocks(evaluator)
    assert not makes_blocks(Evaluator(**{**vars(evaluator), "count": None}))
    weights: Any = object()
    assert not makes_blocks(Evaluator(**{**vars(evaluator), "rules": Rules(reasoning=weights)}))
    judge: Any = object()
    assert not makes_blocks(Evaluator(**{**vars(evaluator), "judges": (judge,)}))


def test_nothing_more_is_asked_once_it_is_to_stop(tmp_path: Path) -> None:
    """The block under way is finished."""
    written(tmp_path, expecting(3 * AT_ONCE), [plain(number) for number in range(3 * AT_ONCE)])
    times = count()
    assert list(map(len, in_blocks(tmp_path, lambda: next(times) == 2))) == [AT_ONCE, AT_ONCE]  # type: ignore[arg-type]


def test_the_first_rows_that_did_not_pass_are_shown(tmp_path: Path) -> None:
    """As many as are kept, from several blocks, in their order."""
    size = 2 * AT_ONCE
    lines = [{"expected_chunks": ["gone" if number % 20 == 0 else "c1"]} for number in range(size)]
    written(tmp_path, lines, [plain(number) for number in range(size)])
    figures, _ = added(check_alike(tmp_path))
    assert [row.position for row in figures.shown_rows.missed] == [20 * number for number in range(SHOWN_ROWS)]


def test_a_file_of_blocks_and_rows_holds_all_in_order(tmp_path: Path) -> None:
    """Whatever stands between blocks, and also where a block comes before its turn."""
    size = BATCH + 2 * AT_ONCE
    written(tmp_path, expecting(size), [plain(n) if n % 1000 else {"id": f"q{n}", "error": "x"} for n in range(size)])
    taken = in_blocks(tmp_path)
    for number, order in enumerate((taken, [*taken[1:], taken[0]])):
        path = tmp_path / f"{number}.parquet"
        writer = TableWriter(path, K)
        for each in order:
            (writer.add_block if isinstance(each, RowBlock) else writer.add)(each)  # type: ignore[operator]
        writer.close()
        assert writer.rows == size
        table = pq.read_table(path)
        assert table["position"].to_pylist() == list(range(size))
        assert timeless_table(table).equals(timeless_table(table_of_rows(each_row(taken), K)), check_metadata=False)
