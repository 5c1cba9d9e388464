"""Responses gathered earlier: JSON Lines and TREC runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.cli import main
from evaltrack.errors import SAVED, BadLinesError, UsageError
from evaltrack.records import Question, Response, Target
from evaltrack.targets.failures import FailedElsewhereError, NotRecordedError
from evaltrack.targets.recorded import MAX_LINE_BYTES, open_recorded
from tests.actors import asked, ranked
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


def ask(target: Target, key: str = "1", k: int = 5) -> Response:
    return asked(target, Question(id=key, question="Why?", domain="d"), k)


def problems(open_content: Open, path: Path, content: Any, **settings: str) -> list[str]:
    """The problems of a bad file, without its name."""
    with pytest.raises(UsageError) as caught:
        open_content(content, **settings)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


CASES = data("recorded.json")
"""Texts of files, settings, and responses or errors by question id, or the problems of the file."""


@pytest.mark.parametrize(("text", "settings", "outcomes"), CASES.values(), ids=CASES)
def test_responses_in_files(opened: Open, path: Path, text: str, settings: dict[str, str], outcomes: Any) -> None:
    """In JSON Lines, lists and TREC runs: responses in any form, of other tools, and recorded errors."""
    content = text.encode(errors="surrogateescape")
    if isinstance(outcomes, list):
        with pytest.raises(UsageError) as caught:
            opened(content, **settings)
        assert str(caught.value).replace(str(path), "FILE").splitlines() == outcomes
        return
    target = opened(content, **settings)
    for key, expected in outcomes.items():
        if isinstance(expected, dict):
            assert ask(target, key).model_dump(mode="json", exclude_defaults=True) == expected
        else:
            with pytest.raises((FailedElsewhereError, NotRecordedError)) as failed:
                ask(target, key)
            assert f"{failed.type.__name__}: {failed.value}".replace(str(path), "FILE") == expected


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "no such file; name a file of responses"), (tmp_path, "is a folder")):
        with pytest.raises(UsageError, match=f"^{path}: {reason}"):
            open_recorded(str(path), {})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match=r"is not a regular file \(a pipe\?\); save it to a file, it is read twice"):
        open_recorded(str(tmp_path / "pipe"), {})


# JSON Lines


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_layout_does_not_matter(opened: Open, ending: str) -> None:
    long = "é" * 50_000
    lines = ["\ufeff", "", '  {"id": 1, "answer": "one"}\t', f'{{"id": 2, "answer": "{long}"}}', " "]
    lines += ['\x0c{"id": 3, "abstained": true}', ""]
    target = opened(ending.join(lines))
    assert [ask(target, key).answer for key in "321"] == [None, long, "one"]
    assert ask(opened(b'\xef\xbb\xbf{"id": 1, "answer": "one"}\n')).answer == "one"


LONG = ('{"id": 2, "answer": "' + "x" * MAX_LINE_BYTES + '"}', "is longer than 16,777,216 bytes; make it shorter")
NO_UTF8 = ('{"id": 2, "answer": "\udcff"}', "is not valid UTF-8 at byte 22; save the file as UTF-8")


@pytest.mark.parametrize(("line", "message"), [*TABLES["bad_lines"], NO_UTF8, LONG], ids=lambda each: each[:40])
def test_bad_line(opened: Open, path: Path, line: str, message: str) -> None:
    """A line that cannot be read as a response is reported with its number."""
    content = f'{{"id": 1, "answer": "a"}}\n\n{line}\n{{"id": 3, "sources": []}}'
    message = message.replace("FILE", str(path))
    assert problems(opened, path, content.encode(errors="surrogateescape")) == [f"3: {message}"]


def test_bad_lines_are_listed_together(opened: Open, path: Path) -> None:
    line = '{"id": 1, "answer": "a"}\n'
    found = problems(opened, path, line * 25)
    said = f"id `1` is recorded at {path}:1 already; keep one of them"
    assert found[:20] == [f"{number}: {said}" for number in range(2, 22)]
    assert found[20:] == [f"... and 4 more problems{SAVED}"]
    with pytest.raises(BadLinesError) as caught:
        open_recorded(str(path), {})
    assert caught.value.message.endswith("\n... and 4 more problems")
    assert [each.rpartition(": ")[0] for each in caught.value.problems] == [f"{path}:{n}" for n in range(2, 26)]
    assert len(problems(opened, path, line * 21)) == 20


# Responses to other questions, and runs


@pytest.mark.parametrize(("content", "note"), TABLES["lines_of_others"])
def test_lines_of_other_questions_are_counted(opened: Open, path: Path, content: str, note: str) -> None:
    whole = f"{path}: {note}" if note else ""
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
    note = f"{path}: 1 response matches no question in the golden set and was ignored: `4`"
    assert (ended.value.code, err.count(f"Warning: {note}\n")) == (0, 1)
    assert json.loads(out)["notes"].count(note) == 1


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


def test_a_run_over_results_that_a_tool_wrote(tmp_path: Path, store_uri: str) -> None:
    lines = [json.loads(line) for line in (REPO / "golden/travel.jsonl").read_text().splitlines()]
    questions = [lines[at] for at in (0, 2, 22)]
    questions[0]["expected_passages"] = [{"quote": "is an offence under national law"}]
    golden, results = (
        put(tmp_path / "golden.jsonl", questions),
        REPO / "tests/golden/importing/data/promptfoo_results.json",
    )
    shared = {"judge": "none", "tracking_uri": store_uri, "traces": "off"}
    made = run_eval(golden, target=f"recorded:{results}", target_options=TABLES["promptfoo"], **shared)
    rows = {row.id: row for row in made.read_rows()}
    assert (rows["1"].scores["recall_at_k"], rows["1"].scores["reciprocal_rank"]) == (1, 0.5)
    assert (rows["1"].prompt_tokens, rows["1"].completion_tokens) == (20, 10)
    assert rows["23"].scores["negative_pass"] == 1
    assert rows["3"].error == "target_error: the target returned an error: no connection"


# TREC runs


@pytest.mark.parametrize(("lines", "expected", "agree"), TABLES["rankings"].values(), ids=TABLES["rankings"])
def test_scores_rank_and_ranks_break_ties_in_any_order_of_lines(
    opened: Open, path: Path, lines: list[str], expected: list[str], agree: bool
) -> None:
    decided = "the scores decide, ties by document id, as in trec_eval"
    note = f"{path}: ranks and scores disagree in query `1`, of 2; {decided}"
    many = opened("".join(f"{query} Q0 a 1 1 t\n{query} Q0 b 2 2 t\n" for query in range(300)))
    assert next(iter(many.notes)).startswith(f"{path}: ranks and scores disagree in 300 queries, `0` first, of 300; ")
    for order in permutations(lines):
        target = opened("\n".join(["2 Q0 x 1 9 t", *order, "2 Q0 y 2 8 t"]))
        assert ranked(ask(target)) == expected
        assert ranked(ask(target, "2")) == ["x", "y"]
        assert list(target.notes) == ([] if agree else [note])


@pytest.mark.parametrize(("line", "message"), TABLES["bad_trec_lines"])
def test_bad_trec_line(opened: Open, path: Path, line: str, message: str) -> None:
    """A line of another form, or with a score that is no number, is reported with its number."""
    assert problems(opened, path, f"1 Q0 d 1 1 t\n\n{line}\n1 Q0 e 2 1 t") == [f"3: {message}"]


def test_a_file_that_changes_is_evaluated_as_it_was_checked(opened: Open, path: Path) -> None:
    target = opened('{"id": 1, "answer": "one"}\n{"id": 2, "answer": "two"}\n')
    path.write_text('{"id": 2, "answer": "one"}\n')
    assert [ask(target, key).answer for key in "12"] == ["one", "two"]
