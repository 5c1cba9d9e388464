"""Responses gathered earlier: JSON Lines and TREC runs."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
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
from tests.files import data, put

Open = Callable[..., Target]
TABLES = data("targets.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recorded"


@pytest.fixture
def opened(path: Path) -> Open:
    """Opens a recorded target on a file of the given content: text, bytes, or objects, one a line."""

    def open_content(content: str | bytes | list[Any], **settings: str) -> Target:
        if isinstance(content, list):
            content = "\n".join(map(json.dumps, content))
        return open_recorded(str(put(path, content)), settings)

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


def problems(open_content: Open, path: Path, content: Any, **settings: str) -> list[str]:
    """The problems of a bad file, without its name."""
    with pytest.raises(UsageError) as caught:
        open_content(content, **settings)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


# Opening

SPREAD = "holds an object over several lines; write each response on one line, or name their list with `rows=`"
EMPTY = "is empty; write one JSON object a line, or a TREC run"
PRETTY = json.dumps({"id": 1, "answer": "a", "sources": []}, indent=2)
LIST = '[{"id": 1, "answer": "a"}]'


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        *((blank, {}, EMPTY) for blank in (b"", b"\n", b" \r\n\t\n", b"\xef\xbb\xbf\n")),
        *((text.encode(), {}, SPREAD) for text in (PRETTY, f"{PRETTY}\n{PRETTY}")),
        *((LIST[at:].encode(to), {}, "is UTF-16; save it as UTF-8") for at in (0, 1) for to in ("utf-16", "utf-16-be")),
        (gzip.compress(LIST.encode(), mtime=0), {}, "is compressed (gzip); unpack it"),
        (b"1 Q0 a 1 1 t\n", {"answer": "text"}, "is not JSON, so settings cannot find anything in it"),
        (b'{"results": {"n": 1}}', {"rows": "results"}, "`rows` finds an object; it must be a list"),
        (b'{"a": 1}', {"rows": "b"}, "`rows` finds null; it must be a list"),
        (b'{"a": 1}', {"rows": "length(a)"}, "rows: `length(a)`: length() does not take number"),
        (
            b'{"a": []',
            {"rows": "a"},
            "is not JSON: it ends inside an object at column 8; close it with `}` on the same line",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_one_fault(
    opened: Open, path: Path, content: bytes, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        opened(content, **settings)
    assert str(caught.value) == f"recorded target {path}: {message}"


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(UsageError, match=f"^recorded target {path}: cannot be read: {reason}; name a file of resp"):
            open_recorded(str(path), {})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match=r"is not a regular file \(a pipe\?\); save it, it is read twice"):
        open_recorded(str(tmp_path / "pipe"), {})


# JSON Lines


def test_responses_of_questions(opened: Open, path: Path) -> None:
    """A line holds all that a response can hold, in short or long form; all its sources come back, whatever k is."""
    line = (
        '{"id": 1, "answer": "Où? 😀", "abstained": true, "tool_calls": ["search", {"name": "open"}], '
        '"usage": {"prompt_tokens": 3, "completion_tokens": 4}, '
        '"sources": ["a#1:/", 7, {"id": "c", "title": "T", "score": 0.5}]}'
    )
    others = '{"id": "007", "answer": "seven"}\n{"answer": "two", "id": "2", "sources": null}\n{"id": 3, "sources": []}'
    target = opened(f'{line}\n{others}\n{{"id": 4, "sources": ["b", "a", "b", "c"]}}')
    assert ask(target) == Response(
        answer="Où? 😀",
        abstained=True,
        tool_calls=(ToolCall(name="search"), ToolCall(name="open")),
        usage=Usage(prompt_tokens=3, completion_tokens=4),
        sources=(Source(chunk_id="a#1:/"), Source(chunk_id="7"), Source(chunk_id="c", title="T", score=0.5)),
    )
    assert [(ask(target, key).answer, ask(target, key).sources) for key in ("2", "007", "3", "2")] == [
        *[("two", None), ("seven", None), (None, ()), ("two", None)]
    ]
    assert [ranked(ask(target, "4", k)) for k in (1, 1000)] == [["b", "a", "b", "c"]] * 2
    with pytest.raises(NotRecordedError, match=f"^no response in {path}$"):
        ask(target, "7")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_layout_does_not_matter(opened: Open, ending: str) -> None:
    long = "é" * 50_000
    lines = ["\ufeff", "", '  {"id": 1, "answer": "one"}\t', f'{{"id": 2, "answer": "{long}"}}', " "]
    lines += ['\x0c{"id": 3, "abstained": true}', ""]
    target = opened(ending.join(lines))
    assert [ask(target, key).answer for key in "321"] == [None, long, "one"]
    assert ask(opened(b'\xef\xbb\xbf{"id": 1, "answer": "one"}\n')).answer == "one"


NO_RESPONSE = "holds no response; write `answer`, `sources` or both, or `error` where there was none"
LONG = ('{"id": 2, "answer": "' + "x" * MAX_LINE_BYTES + '"}', "is longer than 16,777,216 bytes; shorten the response")
NO_UTF8 = ('{"id": 2, "answer": "\udcff"}', "is not valid UTF-8 at byte 22; save the file as UTF-8")


@pytest.mark.parametrize(("line", "message"), [*TABLES["bad_lines"], NO_UTF8, LONG], ids=lambda each: each[:40])
def test_bad_line(opened: Open, path: Path, line: str, message: str) -> None:
    """A line that cannot be read as a response is reported with its number."""
    content = f'{{"id": 1, "answer": "a"}}\n\n{line}\n{{"id": 3, "sources": []}}'
    assert problems(opened, path, content.encode(errors="surrogateescape")) == [f"3: {message}"]


def test_bad_lines_are_listed_together(opened: Open, path: Path) -> None:
    line = '{"id": 1, "answer": "a"}\n'
    found = problems(opened, path, line * 25)
    said = "id `1` is recorded on line 1 already; keep one of them"
    assert found[:20] == [f"{number}: {said}" for number in range(2, 22)]
    assert found[20:] == [f"... and 4 more problems{SAVED}"]
    with pytest.raises(BadLinesError) as caught:
        open_recorded(str(path), {})
    assert caught.value.message.endswith("\n... and 4 more problems")
    assert [each.rpartition(": ")[0] for each in caught.value.problems] == [f"{path}:{n}" for n in range(2, 26)]
    assert len(problems(opened, path, line * 21)) == 20


def test_a_file_that_changes_is_evaluated_as_it_was_checked(opened: Open, path: Path) -> None:
    target = opened('{"id": 1, "answer": "one"}\n{"id": 2, "answer": "two"}\n')
    path.write_text('{"id": 2, "answer": "one"}\n')
    assert [ask(target, key).answer for key in "12"] == ["one", "two"]


# Failures, and responses to other questions


def test_a_recorded_error_is_a_failure_of_its_question(opened: Open) -> None:
    lines = ['{"id": 1, "error": "timeout after 30 s"}', '{"id": 2, "answer": "Sorry.", "error": {"code": 503}}']
    lines.append('{"id": 4, "sources": [], "status": "error", "message": "no index"}')
    ok = '{"id": 3, "answer": "yes", "error": null}'
    for content in ("\n".join([*lines, ok]), f"[{', '.join([*lines, ok])}]"):
        target = opened(content)
        for key, text in (("1", "timeout after 30 s$"), ("2", '{"code": 503}$')):
            with pytest.raises(FailedElsewhereError, match=f"^the file recorded: {text}"):
                ask(target, key)
        with pytest.raises(FailedElsewhereError, match="no index"):
            ask(target, "4")
        assert ask(target, "3") == Response(answer="yes")


@pytest.mark.parametrize(("content", "note"), TABLES["lines_of_others"])
def test_lines_of_other_questions_are_counted(opened: Open, path: Path, content: str, note: str) -> None:
    whole = f"{path}: {note}; they were ignored" if note else ""
    assert opened(content).note_on_other_questions({"1", "2"}) == whole


def test_other_questions_are_named_before_anything_is_asked(
    opened: Open, path: Path, store_uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Questions that a filter leaves out, and drafts, are no others."""
    opened([{"id": number, "sources": ["b"]} for number in (1, 2, 3, 4)])
    lines = [{"id": key, "question": f"Why {key}?", "expected_chunks": ["b"], "draft": key == 3} for key in (1, 2, 3)]
    golden = put(path.parent / "golden.jsonl", lines)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(golden), "-t", f"recorded:{path}", "--filter", "id=1", "--output", "json"])
    out, err = capsys.readouterr()
    note = f"{path}: responses of no question in the golden set: 1 (`4`); they were ignored"
    assert (ended.value.code, err.count(f"Warning: {note}\n")) == (0, 1)
    assert json.loads(out)["notes"].count(note) == 1


# A list in a JSON file


def test_responses_in_an_array(opened: Open, path: Path) -> None:
    target = opened(json.dumps([{"id": 1, "answer": "one"}, {"id": "2", "sources": ["b"]}], indent=1))
    assert (ask(target, "1").answer, ranked(ask(target, "2"))) == ("one", ["b"])
    with pytest.raises(UsageError) as caught:
        opened(json.dumps([{"id": 1, "answer": "a"}, {"id": 2}, {"id": 1, "answer": "b"}, 7]))
    assert str(caught.value).splitlines() == [
        f"{path}: item 2: {NO_RESPONSE}",
        f"{path}: item 3: id `1` is recorded in item 1 already; keep one of them",
        f"{path}: item 4: is a number; a response is a JSON object",
    ]


# Fields that other tools wrote


def test_fields_are_found_by_expressions(opened: Open) -> None:
    response = {"text": "90 days", "hits": [{"doc": "a", "rank": 1}, {"doc": "b"}]}
    line = {"question": {"key": 7}, "response": response, "tokens": {"in": 3, "out": 4}, "unknown": 1}
    maps = {"id": "question.key", "answer": "response.text", "sources": "response.hits", "chunk_id": "doc"}
    target = opened([line], **maps, prompt_tokens="tokens.in", completion_tokens="tokens.out")
    usage = Usage(prompt_tokens=3, completion_tokens=4)
    assert ask(target, "7") == Response(
        answer="90 days", sources=(Source(chunk_id="a"), Source(chunk_id="b")), usage=usage
    )
    rows = {"rows": [{"id": 1, "answer": "a", "usage": {"input_tokens": 3, "output_tokens": 4}}]}
    assert ask(opened(json.dumps(rows), rows="rows")) == Response(answer="a", usage=usage)


def test_fields_that_responses_lack(opened: Open, path: Path) -> None:
    """Sources that one response lacks are not measured; those that all lack, and a missing field, are bad lines."""
    maps = {"answer": "text", "sources": "context"}
    lines = [{"id": 1, "text": "a", "context": None}, {"id": 2, "text": "b", "context": ["x"]}]
    target = opened(lines, **maps)
    assert (ask(target, "1").sources, ask(target, "2").sources) == (None, (Source(chunk_id="x"),))
    nowhere = problems(opened, path, lines[:1], **maps)
    assert nowhere == [" sources: `context` finds nothing in any response"]
    lines = [{"id": 1}, {"key": 2, "text": "a"}, {"id": 3, "failure": "down"}, {"id": 4, "text": "b"}]
    assert problems(opened, path, lines, answer="text", error="failure") == [
        "1: holds none of answer, sources, tool_calls, abstained",
        "2: `id` is missing; name the question that was answered",
    ]


def test_responses_are_found_by_the_text_of_their_question(opened: Open, path: Path) -> None:
    target = opened([{"asked": " WHY?", "answer": "so"}, {"asked": "How?", "answer": "thus"}], question="asked")
    assert ask(target, "any").answer == "so"
    assert target.note_on_other_questions({"1"}) == ""
    lines = [{"asked": "why?", "answer": "so"}, {"asked": "Why?", "answer": "no"}, {"asked": "", "answer": ""}]
    assert problems(opened, path, lines, question="asked") == [
        "2: question `why?` is recorded on line 1 already; keep one of them",
        "3: question: `asked` finds no text",
    ]


def test_texts_without_ids_are_looked_into_and_are_no_miss_where_ids_are_expected(
    opened: Open, path: Path, store_uri: str
) -> None:
    opened([{"id": key, "answer": "a", "contexts": ["90 days", "an offence", "90 days"]} for key in range(6)])
    expectations: tuple[dict[str, Any], ...] = (
        *(
            {"expected_passages": [{"quote": "an offence"}]},
            {"expected_chunks": ["a"]},
            {"expected_sources": ["Visas"]},
        ),
        {"expected_passages": [{"quote": "an offence"}, {"any_of": ["a"]}]},
        *({"expected_passages": [{"any_of": ["a"]}]}, {"expected_chunks": []}),
    )
    golden = [{"id": key, "question": f"Why {key}?", **expected} for key, expected in enumerate(expectations)]
    made = run_eval(golden, target=f"recorded:{path}", judge="none", tracking_uri=store_uri, traces="off")
    assert [(row["recall_at_k"], row["passed"]) for row in made.rows] == [(1, True), *[(None, None)] * 4, (None, False)]
    assert made.counts["recall_at_k"] == 1
    assert any("of 3 of 5 questions was not measured: chunk ids are expected" in note for note in made.notes)
    assert any("of 1 of 5 questions was not measured: titles are expected" in note for note in made.notes)


RAGAS = {"question": "user_input", "answer": "response", "sources": "retrieved_contexts", "text": "@"}


@pytest.mark.parametrize("tool", ["promptfoo", "ragas"])
def test_a_run_over_results_that_a_tool_wrote(tmp_path: Path, store_uri: str, tool: str) -> None:
    results = REPO / "tests/golden/importing/data" / f"{tool}_results"
    path, settings = results.with_suffix(".json"), TABLES["promptfoo"]
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


@pytest.mark.parametrize(("lines", "expected", "agree"), TABLES["rankings"].values(), ids=TABLES["rankings"])
def test_scores_rank_and_ranks_break_ties_in_any_order_of_lines(
    opened: Open, path: Path, lines: list[str], expected: list[str], agree: bool
) -> None:
    decided = "the scores decide, ties by document id, as in trec_eval"
    note = f"{path}: ranks and scores disagree in query `1`, of 2; {decided}"
    for order in permutations(lines):
        target = opened("\n".join(["2 Q0 x 1 9 t", *order, "2 Q0 y 2 8 t"]))
        assert ranked(ask(target)) == expected
        assert ranked(ask(target, "2")) == ["x", "y"]
        assert list(target.notes) == ([] if agree else [note])


def test_queries_whose_ranks_contradict_their_scores_are_counted(opened: Open, path: Path) -> None:
    run = "".join(f"{query} Q0 a 1 1 t\n{query} Q0 b 2 2 t\n" for query in range(300))
    target = opened(run)
    (note,) = target.notes
    assert note.startswith(f"{path}: ranks and scores disagree in 300 queries, `0` first, of 300; ")


def test_a_query_without_a_line_in_the_run_retrieved_nothing(opened: Open, path: Path) -> None:
    target = opened("01 Q0 d 1 1 t\nＱ2 Q0 d 1 1 t\ncafe\u0301 Q0 d 1 1 t")
    assert ask(target, "3") == Response(sources=())
    assert ranked(ask(target, "caf\u00e9")) == ["d"]
    for key, hint in (("1", "it has `01`: write `1`"), ("Q2", "it has `'\\uff312'`: write `'Q2'`")):
        with pytest.raises(NotRecordedError) as caught:
            ask(target, key)
        assert str(caught.value) == f"no response in {path}; {hint}"


@pytest.mark.parametrize(("line", "message"), TABLES["bad_trec_lines"])
def test_bad_trec_line(opened: Open, path: Path, line: str, message: str) -> None:
    """A line of another form, or with a score that is no number, is reported with its number."""
    assert problems(opened, path, f"1 Q0 d 1 1 t\n\n{line}\n1 Q0 e 2 1 t") == [f"3: {message}"]


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
