"""Responses gathered earlier: JSON Lines and TREC runs."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas
import pytest

from evaltrack import run_eval
from evaltrack.cli import main
from evaltrack.errors import SAVED, BadLinesError, UsageError
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response, Source, Target, ToolCall, Usage
from evaltrack.targets.failures import FailedElsewhereError, NotRecordedError
from evaltrack.targets.recorded import MAX_LINE_BYTES, open_recorded
from tests.conftest import REPO
from tests.files import data

Open = Callable[[str | bytes], Target]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Opens a recorded target on a file of the given content."""

    def open_content(content: str | bytes) -> Target:
        path = tmp_path / "recorded"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return open_recorded(str(path), {})

    return open_content


@pytest.fixture(scope="module")
def real_data() -> Path:
    """The folder of real data."""
    folder = os.environ.get("EVALTRACK_TEST_DATA")
    if not folder:
        pytest.skip("EVALTRACK_TEST_DATA does not name the folder of real data")
    return Path(folder)


def ask(target: Target, key: str = "1", k: int = 5) -> Response:
    async def asked() -> Response:
        return await target(Question(id=key, question="Why?", domain="d"), k)

    return asyncio.run(asked())


def ranked(response: Response) -> list[str | None]:
    assert response.sources is not None
    return [source.chunk_id for source in response.sources]


def problems(open_content: Open, tmp_path: Path, content: str | bytes) -> list[str]:
    """What is said about a bad file, without its name."""
    with pytest.raises(UsageError) as caught:
        open_content(content)
    return [line.removeprefix(f"{tmp_path / 'recorded'}:") for line in str(caught.value).splitlines()]


# Opening


def test_settings_of_a_file_that_is_not_json_are_refused(opened: Open, tmp_path: Path) -> None:
    opened("1 Q0 a 1 1 t\n")
    with pytest.raises(UsageError, match=r"is not JSON, so settings cannot find anything in it$"):
        open_recorded(str(tmp_path / "recorded"), {"answer": "text"})


def test_unreadable(tmp_path: Path) -> None:
    """A file that is not there, or is a directory, is an error with the system's reason."""
    for path, reason in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(UsageError) as caught:
            open_recorded(str(path), {})
        assert str(caught.value) == f"recorded target {path}: cannot be read: {reason}; name a file of responses"


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\t\n", b"\xef\xbb\xbf\n"])
def test_empty(opened: Open, tmp_path: Path, content: bytes) -> None:
    """A file with nothing in it is refused."""
    with pytest.raises(UsageError) as caught:
        opened(content)
    assert str(caught.value) == (
        f"recorded target {tmp_path / 'recorded'}: is empty; write one JSON object a line, or a TREC run"
    )


def test_pipe_is_refused() -> None:
    """A pipe is refused, because the file is read more than once."""
    reading, writing = os.pipe()
    try:
        os.write(writing, b'{"id": 1, "answer": "yes"}\n')
        os.close(writing)
        with pytest.raises(UsageError):
            open_recorded(f"/dev/fd/{reading}", {})
    finally:
        os.close(reading)


def test_file_is_closed_with_the_target(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text('{"id": 1, "answer": "yes"}\n')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask(open_recorded(str(path), {}))
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


# JSON Lines


def test_response_of_each_question(opened: Open) -> None:
    target = opened('{"id": 1, "answer": "one"}\n{"id": "007", "answer": "seven"}\n{"answer": "two", "id": "2"}')
    assert [ask(target, key).answer for key in ("2", "1", "007", "1")] == ["two", "one", "seven", "one"]


def test_all_fields(opened: Open) -> None:
    """A line holds whatever a response can hold, in short or long form."""
    line = (
        '{"id": 1, "answer": "Où? 😀", "abstained": true, "tool_calls": ["search", {"name": "open"}], '
        '"usage": {"prompt_tokens": 3, "completion_tokens": 4}, '
        '"sources": ["a#1:/", 7, {"id": "c", "title": "T", "score": 0.5}]}'
    )
    assert ask(opened(line)) == Response(
        answer="Où? 😀",
        abstained=True,
        tool_calls=(ToolCall(name="search"), ToolCall(name="open")),
        usage=Usage(prompt_tokens=3, completion_tokens=4),
        sources=(Source(chunk_id="a#1:/"), Source(chunk_id="7"), Source(chunk_id="c", title="T", score=0.5)),
    )


@pytest.mark.parametrize("k", [1, 5, 1000])
def test_all_sources_come_back(opened: Open, k: int) -> None:
    assert ranked(ask(opened('{"id": 1, "sources": ["b", "a", "b", "c"]}'), k=k)) == ["b", "a", "b", "c"]


def test_no_sources_and_none_found(opened: Open) -> None:
    target = opened('{"id": 1, "sources": []}\n{"id": 2, "answer": "a"}\n{"id": 3, "answer": "a", "sources": null}')
    assert [ask(target, key).sources for key in "123"] == [(), None, None]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_layout_does_not_matter(opened: Open, ending: str) -> None:
    long = "é" * 50_000
    lines = ["\ufeff", "", '  {"id": 1, "answer": "one"}\t', f'{{"id": 2, "answer": "{long}"}}', " "]
    lines += ['{"id": 3, "abstained": true}', ""]
    target = opened(ending.join(lines))
    assert [ask(target, key).answer for key in "321"] == [None, long, "one"]


def test_mark_before_the_first_response(opened: Open) -> None:
    assert ask(opened(b'\xef\xbb\xbf{"id": 1, "answer": "one"}\n')).answer == "one"


def test_question_without_response(opened: Open, tmp_path: Path) -> None:
    """A question that was not recorded is a failure that names the file; its id stands in its row anyway."""
    target = opened('{"id": "007", "answer": "seven"}\n')
    with pytest.raises(NotRecordedError) as caught:
        ask(target, "7")
    assert str(caught.value) == f"no response in {tmp_path / 'recorded'}"


NO_RESPONSE = "holds no response; write `answer`, `sources` or both, or `error` where there was none"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *data("targets.json")["bad_lines"],
        (b'{"id": 2, "answer": "\xff"}', "is not valid UTF-8 at byte 22; save the file as UTF-8"),
    ],
)
def test_bad_line(opened: Open, tmp_path: Path, line: str | bytes, message: str) -> None:
    """A line that cannot be read as a response is reported with its number."""
    raw = line if isinstance(line, bytes) else line.encode()
    content = b'{"id": 1, "answer": "a"}\n\n' + raw + b'\n{"id": 3, "sources": []}'
    assert problems(opened, tmp_path, content) == [f"3: {message}"]


def test_bad_lines_are_listed_together(opened: Open, tmp_path: Path) -> None:
    found = problems(opened, tmp_path, '{"id": 1, "answer": "a"}\n' * 25)
    said = "id `1` is recorded on line 1 already; keep one of them"
    assert found[:20] == [f"{number}: {said}" for number in range(2, 22)]
    assert found[20:] == [f"... and 4 more problems{SAVED}"]
    with pytest.raises(BadLinesError) as caught:
        open_recorded(str(tmp_path / "recorded"), {})
    assert caught.value.message.endswith("\n... and 4 more problems")
    assert [each.rpartition(": ")[0] for each in caught.value.problems] == [
        f"{tmp_path / 'recorded'}:{number}" for number in range(2, 26)
    ]
    assert len(problems(opened, tmp_path, '{"id": 1, "answer": "a"}\n' * 21)) == 20


SPREAD = "holds an object over several lines; write each response on one line, or name their list with `rows=`"


@pytest.mark.parametrize("times", [1, 2])
def test_an_object_over_several_lines_is_one_fault(opened: Open, times: int) -> None:
    with pytest.raises(UsageError, match=f"^recorded target .*: {re.escape(SPREAD)}$"):
        opened("\n".join(json.dumps({"id": key, "answer": "a", "sources": []}, indent=2) for key in range(times)))


def test_another_encoding_is_one_fault(opened: Open) -> None:
    for text in ('{"id": 1, "answer": "a"}\n{"id": 2, "answer": "b"}', '[{"id": 1, "answer": "a"}]'):
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            with pytest.raises(UsageError, match=r"^recorded target .*: is UTF-16; save it as UTF-8$"):
                opened(text.encode(encoding))


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz", "r.json", "r.csv"])
def test_a_compressed_file_is_one_fault(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"".join(b'{"id": %d, "answer": "a"}\n' % key for key in range(500))))
    with pytest.raises(UsageError) as caught:
        open_recorded(str(path), {})
    assert str(caught.value) == f"recorded target {path}: is compressed (gzip); unpack it"


def test_line_above_the_limit(opened: Open, tmp_path: Path) -> None:
    content = b'{"id": 1, "answer": "a"}\n{"id": 2, "answer": "' + b"x" * MAX_LINE_BYTES + b'"}'
    assert problems(opened, tmp_path, content) == ["2: is longer than 16,777,216 bytes; shorten the response"]


def test_what_was_checked_can_be_read(opened: Open) -> None:
    target = opened(b'{"id": 1, "answer": "one"}\n\x0c{"id": 2, "answer": "two"}\n')
    assert ask(target, "2").answer == "two"


def test_a_file_that_changes_is_evaluated_as_it_was_checked(opened: Open, tmp_path: Path) -> None:
    target = opened('{"id": 1, "answer": "one"}\n{"id": 2, "answer": "two"}\n')
    (tmp_path / "recorded").write_text('{"id": 2, "answer": "one"}\n')
    assert [ask(target, key).answer for key in "12"] == ["one", "two"]


# What was recorded beside responses


def test_a_recorded_error_is_a_failure_of_its_question(opened: Open, tmp_path: Path) -> None:
    lines = ['{"id": 1, "error": "timeout after 30 s"}', '{"id": 2, "answer": "Sorry.", "error": {"code": 503}}']
    target = opened("\n".join([*lines, '{"id": 3, "answer": "yes", "error": null}']))
    for key, text in (("1", "timeout after 30 s"), ("2", '{"code": 503}')):
        with pytest.raises(FailedElsewhereError) as caught:
            ask(target, key)
        assert str(caught.value) == f"the file recorded: {text}"
    assert ask(target, "3") == Response(answer="yes")
    with pytest.raises(FailedElsewhereError, match="no index"):
        ask(opened('{"id": 1, "sources": [], "status": "error", "message": "no index"}'))
    (tmp_path / "array.json").write_text(f"[{', '.join(lines)}]")
    with pytest.raises(FailedElsewhereError, match="the file recorded: timeout after 30 s"):
        ask(open_recorded(str(tmp_path / "array.json"), {}))


@pytest.mark.parametrize(("content", "note"), data("targets.json")["lines_of_others"])
def test_lines_of_other_questions_are_counted(opened: Open, tmp_path: Path, content: str, note: str) -> None:
    whole = f"{tmp_path / 'recorded'}: {note}; they were ignored" if note else ""
    assert opened(content).note_on_other_questions({"1", "2"}) == whole


def test_what_is_of_no_question_is_said_before_anything_is_asked(
    opened: Open, tmp_path: Path, store_uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened("".join(f'{{"id": {number}, "sources": ["b"]}}\n' for number in (1, 2)))
    golden = tmp_path / "golden.jsonl"
    line = {"id": 1, "question": "Why?", "expected_chunks": ["b"]}
    golden.write_text(json.dumps(line))
    target = f"recorded:{tmp_path / 'recorded'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(golden), "-t", target, "--judge", "none", "--output", "json"])
    out, err = capsys.readouterr()
    note = f"{tmp_path / 'recorded'}: responses of no question in the golden set: 1 (`2`)"
    assert (ended.value.code, err.count(f"Warning: {note}; they were ignored\n")) == (0, 1)
    assert [each.startswith(note) for each in json.loads(out)["notes"]].count(True) == 1


def test_a_selection_makes_no_line_a_stranger(opened: Open, tmp_path: Path, store_uri: str) -> None:
    opened("".join(f'{{"id": {key}, "sources": ["b"]}}\n' for key in (1, 2, 3, 4)))
    golden = tmp_path / "golden.jsonl"
    lines = [{"id": key, "question": f"Why {key}?", "expected_chunks": ["b"], "draft": key == 3} for key in (1, 2, 3)]
    golden.write_text("\n".join(map(json.dumps, lines)))
    made = run_eval(
        golden,
        target=f"recorded:{tmp_path / 'recorded'}",
        filter=["id=1"],
        judge="none",
        tracking_uri=store_uri,
        traces="off",
    )
    assert [note for note in made.notes if "of no question" in note] == [
        f"{tmp_path / 'recorded'}: responses of no question in the golden set: 1 (`4`); they were ignored"
    ]


# A list in a JSON file


def test_responses_in_an_array(opened: Open) -> None:
    target = opened(json.dumps([{"id": 1, "answer": "one"}, {"id": "2", "sources": ["b"]}], indent=1))
    assert (ask(target, "1").answer, ranked(ask(target, "2"))) == ("one", ["b"])
    assert ask(target, "1").answer == "one"


def test_bad_items_of_an_array(opened: Open, tmp_path: Path) -> None:
    items = [{"id": 1, "answer": "a"}, {"id": 2}, {"id": 1, "answer": "b"}, 7]
    with pytest.raises(UsageError) as caught:
        opened(json.dumps(items))
    path = tmp_path / "recorded"
    assert str(caught.value).splitlines() == [
        f"{path}: item 2: {NO_RESPONSE}",
        f"{path}: item 3: id `1` is recorded in item 1 already; keep one of them",
        f"{path}: item 4: is a number; a response is a JSON object",
    ]


@pytest.mark.parametrize(
    ("content", "rows", "why"),
    [
        ('{"results": {"n": 1}}', "results", "`rows` finds an object; it must be a list"),
        ('{"results": []', "results", "is not JSON: it ends inside an object at column 14; close it with `}`"),
        ('{"a": 1}', "b", "`rows` finds null; it must be a list"),
        ('{"a": 1}', "length(a)", "rows: `length(a)`: length() does not take number"),
    ],
)
def test_a_list_that_is_not_there(tmp_path: Path, content: str, rows: str, why: str) -> None:
    path = tmp_path / "recorded.json"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        open_recorded(str(path), {"rows": rows})
    assert str(caught.value).startswith(f"recorded target {path}: {why}")


# Fields that other tools wrote


def test_fields_are_found_by_expressions(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text(
        json.dumps(
            {
                "question": {"key": 7},
                "response": {"text": "90 days", "hits": [{"doc": "a", "rank": 1}, {"doc": "b"}]},
                "tokens": {"in": 3, "out": 4},
                "unknown": 1,
            }
        )
    )
    maps = {"id": "question.key", "answer": "response.text", "sources": "response.hits", "chunk_id": "doc"}
    target = open_recorded(str(path), {**maps, "prompt_tokens": "tokens.in", "completion_tokens": "tokens.out"})
    assert ask(target, "7") == Response(
        answer="90 days",
        sources=(Source(chunk_id="a"), Source(chunk_id="b")),
        usage=Usage(prompt_tokens=3, completion_tokens=4),
    )


def test_a_setting_that_finds_nothing_in_any_response_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text('{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n')
    with pytest.raises(UsageError, match="`context` finds nothing in any response"):
        open_recorded(str(path), {"answer": "text", "sources": "context"})


def test_sources_that_one_response_lacks_are_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text('{"id": 1, "text": "a", "context": null}\n{"id": 2, "text": "b", "context": ["x"]}\n')
    target = open_recorded(str(path), {"answer": "text", "sources": "context"})
    assert (ask(target, "1").sources, ask(target, "2").sources) == (None, (Source(chunk_id="x"),))


def test_settings_that_find_no_field_leave_the_response_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    path.write_text('{"rows": [{"id": 1, "answer": "a", "usage": {"input_tokens": 10, "output_tokens": 5}}]}')
    target = open_recorded(str(path), {"rows": "rows"})
    assert ask(target, "1").usage == Usage(prompt_tokens=10, completion_tokens=5)


def test_a_field_that_is_not_found_is_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text('{"id": 1}\n{"key": 2, "text": "a"}\n{"id": 3, "failure": "down"}\n{"id": 4, "text": "b"}\n')
    with pytest.raises(UsageError) as caught:
        open_recorded(str(path), {"answer": "text", "error": "failure"})
    assert str(caught.value).splitlines() == [
        f"{path}:1: holds none of answer, sources, tool_calls, abstained",
        f"{path}:2: `id` is missing; name the question that was answered",
    ]


def test_responses_are_found_by_the_text_of_their_question(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text('{"asked": " WHY?", "answer": "so"}\n{"asked": "How?", "answer": "thus"}\n')
    target = open_recorded(str(path), {"question": "asked"})
    assert ask(target, "any").answer == "so"
    assert target.note_on_other_questions({"1"}) == ""
    path.write_text('{"asked": "why?", "answer": "so"}\n{"asked": "Why?", "answer": "no"}\n{"asked": "", "answer": ""}')
    with pytest.raises(UsageError) as caught:
        open_recorded(str(path), {"question": "asked"})
    assert str(caught.value).splitlines() == [
        f"{path}:2: question `why?` is recorded on line 1 already; keep one of them",
        f"{path}:3: question: `asked` finds no text",
    ]


def test_texts_without_ids_are_looked_into_and_are_no_miss_where_ids_are_expected(
    tmp_path: Path, store_uri: str
) -> None:
    path = tmp_path / "recorded.jsonl"
    texts = {"contexts": ["90 days", "an offence", "90 days"]}
    path.write_text("".join(json.dumps({"id": key, "answer": "a", **texts}) + "\n" for key in range(6)))
    expectations: tuple[dict[str, Any], ...] = (
        {"expected_passages": [{"quote": "an offence"}]},
        {"expected_chunks": ["a"]},
        {"expected_sources": ["Visas"]},
        {"expected_passages": [{"quote": "an offence"}, {"any_of": ["a"]}]},
        {"expected_passages": [{"any_of": ["a"]}]},
        {"expected_chunks": []},
    )
    golden = [{"id": key, "question": f"Why {key}?", **expected} for key, expected in enumerate(expectations)]
    made = run_eval(golden, target=f"recorded:{path}", judge="none", tracking_uri=store_uri, traces="off")
    assert [(row["recall_at_k"], row["passed"]) for row in made.rows] == [(1, True), *[(None, None)] * 4, (None, False)]
    assert made.counts["recall_at_k"] == 1
    assert any("of 3 of 5 questions was not measured: chunk ids are expected" in note for note in made.notes)
    assert any("of 1 of 5 questions was not measured: titles are expected" in note for note in made.notes)


PROMPTFOO = data("targets.json")["promptfoo"]
RAGAS = {"question": "user_input", "answer": "response", "sources": "retrieved_contexts", "text": "@"}


@pytest.mark.parametrize("tool", ["promptfoo", "ragas"])
def test_a_run_over_results_that_a_tool_wrote(tmp_path: Path, store_uri: str, tool: str) -> None:
    results = REPO / "tests/golden/importing/data" / f"{tool}_results"
    path, settings = results.with_suffix(".json"), PROMPTFOO
    if tool == "ragas":
        path, settings = tmp_path / "ragas.jsonl", RAGAS
        pandas.read_parquet(results.with_suffix(".parquet")).to_json(path, orient="records", lines=True)
    lines = [json.loads(line) for line in (REPO / "golden/travel.jsonl").read_text().splitlines()]
    questions = [lines[at] for at in (0, 2, 22)]
    questions[0]["expected_passages"] = [{"quote": "is an offence under national law"}]
    golden = tmp_path / "golden.jsonl"
    golden.write_text("\n".join(map(json.dumps, questions)))
    made = run_eval(
        golden, target=f"recorded:{path}", target_options=settings, judge="none", tracking_uri=store_uri, traces="off"
    )
    rows = {row.id: row for row in made.read_rows()}
    assert rows["1"].scores["recall_at_k"] == 1
    assert rows["1"].scores["reciprocal_rank"] == 0.5
    assert rows["23"].scores["negative_pass"] == 1
    failed = "target_error: FailedElsewhereError: the file recorded: no connection"
    assert rows["3"].error == (failed if tool == "promptfoo" else None)
    if tool == "promptfoo":
        assert (rows["1"].prompt_tokens, rows["1"].completion_tokens) == (20, 10)


def test_ids_that_a_table_made_floats_are_whole_numbers_in_every_file(tmp_path: Path, store_uri: str) -> None:
    golden, answers, verdicts = (tmp_path / name for name in ("mine.json", "answers.jsonl", "verdicts.jsonl"))
    golden.write_text('[{"id": 1.0, "question": "Why?", "expected_chunks": [7.0, "8"]}]')
    answers.write_text('{"id": 1.0, "answer": "a", "sources": [7.0, {"chunk_id": 8.0}]}\n')
    verdicts.write_text('{"id": 1.0, "accuracy": 1, "completeness": 1, "relevance": 1, "overall_score": 1}\n')
    made = run_eval(
        golden, target=f"recorded:{answers}", judge=f"recorded:{verdicts}", tracking_uri=store_uri, traces="off"
    )
    (row,) = made.rows
    assert (row["id"], row["recall_at_k"], row["overall_score"], row["passed"]) == ("1", 1, 1, True)


# TREC runs


def test_trec_run(opened: Open) -> None:
    """A run gives each query its documents with their scores, and no answer."""
    target = opened("1 Q0 d2 1 7.5 tag\n1\tQ0\td1\t2\t-3e-1\ttag\r\n\n007 Q0 a#1:/ 1 0 tag")
    assert ask(target) == Response(sources=(Source(chunk_id="d2", score=7.5), Source(chunk_id="d1", score=-0.3)))
    assert ranked(ask(target, "007")) == ["a#1:/"]


def test_queries_that_a_table_made_floats_are_whole_numbers(opened: Open) -> None:
    assert ranked(ask(opened("1.0 Q0 d2 1 7.5 tag\n2.0 Q0 d1 1 7.5 tag"), "2")) == ["d1"]


RANKINGS: dict[str, tuple[list[str], list[str], bool]] = data("targets.json")["rankings"]


@pytest.mark.parametrize(("lines", "expected", "agree"), RANKINGS.values(), ids=RANKINGS)
def test_scores_rank_and_ranks_break_ties_in_any_order_of_lines(
    opened: Open, tmp_path: Path, lines: list[str], expected: list[str], agree: bool
) -> None:
    decided = "the scores decide, ties by document id, as in trec_eval"
    note = f"{tmp_path / 'recorded'}: ranks and scores disagree in query `1`, of 2; {decided}"
    for order in permutations(lines):
        target = opened("\n".join(["2 Q0 x 1 9 t", *order, "2 Q0 y 2 8 t"]))
        assert ranked(ask(target)) == expected
        assert ranked(ask(target, "2")) == ["x", "y"]
        assert list(target.notes) == ([] if agree else [note])


def test_queries_whose_ranks_contradict_their_scores_are_counted(opened: Open, tmp_path: Path) -> None:
    run = "".join(f"{query} Q0 a 1 1 t\n{query} Q0 b 2 2 t\n" for query in range(300))
    target = opened(run)
    (note,) = target.notes
    assert note.startswith(f"{tmp_path / 'recorded'}: ranks and scores disagree in 300 queries, `0` first, of 300; ")


def test_a_query_without_a_line_in_the_run_retrieved_nothing(opened: Open, tmp_path: Path) -> None:
    target = opened("01 Q0 d 1 1 t\nＱ2 Q0 d 1 1 t\ncafe\u0301 Q0 d 1 1 t")
    assert ask(target, "3") == Response(sources=())
    assert ranked(ask(target, "caf\u00e9")) == ["d"]
    for key, hint in (("1", "it has `01`: write `1`"), ("Q2", "it has `'\\uff312'`: write `'Q2'`")):
        with pytest.raises(NotRecordedError) as caught:
            ask(target, key)
        assert str(caught.value) == f"no response in {tmp_path / 'recorded'}; {hint}"


@pytest.mark.parametrize(("line", "message"), data("targets.json")["bad_trec_lines"])
def test_bad_trec_line(opened: Open, tmp_path: Path, line: str, message: str) -> None:
    """A line of another form, or with a score that is no number, is reported with its number."""
    assert problems(opened, tmp_path, f"1 Q0 d 1 1 t\n\n{line}\n1 Q0 e 2 1 t") == [f"3: {message}"]


@pytest.mark.parametrize("order", ["as it is", "by rank", "backwards"])
def test_real_run_in_any_order(real_data: Path, opened: Open, order: str) -> None:
    lines = (real_data / "trec_eval" / "results.test").read_text().splitlines()
    if order != "as it is":
        lines.sort(key=lambda line: (line.split()[0], int(line.split()[3])), reverse=order == "backwards")
    target = opened("\n".join(lines))
    relevant: defaultdict[str, list[str]] = defaultdict(list)
    for line in (real_data / "trec_eval" / "qrels.test").read_text().splitlines():
        query, _, document, grade = line.split()
        if int(grade) > 0:
            relevant[query].append(document)
    printed = [line.split() for line in (real_data / "trec_eval" / "out.test.aq").read_text().splitlines()]
    measures = {"P_5": (5, "precision_at_k"), "P_100": (100, "precision_at_k"), "recip_rank": (1000, "reciprocal_rank")}
    for name_of, (k, score) in measures.items():
        expected = {query: float(value) for name, query, value in printed if name == name_of and query != "all"}
        found = {}
        for query in expected:
            question = Question(id=query, question="Why?", domain="d", expected_chunks=tuple(relevant[query]))
            found[query] = measure(question, ask(target, query), Rules(k)).scores[score]
        assert found == pytest.approx(expected, abs=5e-5)
        assert found["302"] > 0
    assert not target.notes
