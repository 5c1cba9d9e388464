"""Golden sets: every bad file with its message, what is simply read, digests, and reading again."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import GoldenError
from evaltrack.golden.file import MAX_ARRAY_BYTES, MAX_QUESTION_BYTES
from evaltrack.golden.reader import FIELDS, GoldenSet, open_golden
from evaltrack.golden.selection import Selection
from evaltrack.records import Question
from tests.files import data, put

GOOD = '{"id": "good", "question": "Why?"}'
TURN = '{"role": "user", "content": "x"}'
DEEPEST = ('{"a":' * 99 + "1" + "}" * 99, "[" * 99 + "1" + "]" * 99)
ONE, TWO = '{"id": 1, "question": "a"}', '{"id": 2, "question": "b"}'
TOO_LONG = "is longer than 1,048,576 bytes; make it shorter"


def write(folder: Path, content: Any, name: str = "set.jsonl") -> Path:
    return put(folder / name, content)


def problems(path: Path) -> list[str]:
    """The problems that `open_golden` finds in a file, without the file's name."""
    with pytest.raises(GoldenError) as caught:
        open_golden(path)
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert all(problem.startswith(str(path)) for problem in caught.value.problems)
    return [problem.removeprefix(f"{path}:").strip() for problem in caught.value.problems]


def ids(golden: GoldenSet) -> list[str]:
    return [question.id for question in golden]


# The file itself


@pytest.mark.parametrize(("name", "content", "message"), data("golden.json")["no_golden_sets"])
def test_what_is_no_golden_set(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    """A pipe is not waited for, and an empty file is an error that says what to write."""
    write(tmp_path, GOOD, "file.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    if content is not None:
        write(tmp_path, content, name)
    with pytest.raises(GoldenError) as caught:
        open_golden(tmp_path / name.format(long="n" * 300))
    assert caught.value.problems[0].endswith(f": {message.format(folder=tmp_path)}")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_unreadable_file(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    path.chmod(0)
    assert problems(path) == ["cannot be read: Permission denied"]


# One bad line

NO_WORD = "invalid JSON: expected ident at column 2; correct it"

BAD_LINES = {name: (line, message) for name, line, message in data("bad_golden_lines.json")} | {
    "huge integer": (
        f'{{"id": {"1" * 5000}}}',
        "invalid JSON: number out of range at column 4309; correct it",
    ),
    "deep nesting": (
        '{"id": 1, "question": "a", "metadata": {"x": ' + "[" * 100_000 + "]" * 100_000 + "}}",
        "invalid JSON: recursion limit exceeded at column 245; correct it",
    ),
}
"""A name, the line (what is no UTF-8 in it as lone surrogates), and what is wrong with it."""


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_bad_line(tmp_path: Path, line: str, message: str) -> None:
    """A bad line is reported with its number, what is wrong, and nothing else."""
    raw = line.encode(errors="surrogateescape")
    path = write(tmp_path, GOOD.encode() + b"\n" + raw + b"\n" + GOOD.replace("good", "fine").encode())
    assert problems(path) == [f"2: {message}"]


TOO_DEEP = ("[" * 100_000 + "]" * 100_000, "invalid JSON: recursion limit exceeded at column 202; correct it")
MANY_TURNS = f'{{"id": 1, "question": "a", "history": [{", ".join([TURN] * 1001)}]}}'
BAD_SETS = data("golden.json")["bad_sets"] | {
    "too deep": ["set.json", TOO_DEEP[0], [f"1: {TOO_DEEP[1]}"]],
    "too many turns": ["set.jsonl", MANY_TURNS, ["1: `history` has 1,001 entries; write at most 1,000"]],
}


@pytest.mark.parametrize(("name", "text", "found"), BAD_SETS.values(), ids=BAD_SETS)
def test_all_problems_of_a_file_are_one_error(tmp_path: Path, name: str, text: str, found: list[str]) -> None:
    """Each is one printable line with the number of the line, or of that on which an element of an array starts."""
    path = write(tmp_path, text.encode(errors="surrogateescape"), name)
    assert problems(path) == found
    assert all(map(str.isprintable, found))


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "nope\n" * 203)
    with pytest.raises(GoldenError) as caught:
        open_golden(path)
    *_, last, rest = shown = str(caught.value).splitlines()
    assert (len(caught.value.problems), len(shown)) == (203, 21)
    assert last.startswith(f"{path}:20: ")
    assert rest == f"... and 183 more problems; `evaltrack golden lint {path} --output json` lists all"


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_the_limit_of_a_line(tmp_path: Path, ending: bytes) -> None:
    frame = b'{"id": 1, "question": "%s"}'
    text = b"x" * (MAX_QUESTION_BYTES - len(frame % b""))
    assert ids(open_golden(write(tmp_path, frame % text + ending))) == ["1"]
    more = b"nope" if ending else b""
    after = [f"2: {NO_WORD}"] if ending else []
    assert problems(write(tmp_path, frame % (text + b"x") + ending + more)) == [f"1: {TOO_LONG}", *after]


def test_enormous_line_in_bounded_memory(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.encode() + b'\n{"id": 2, "question": "' + b"x" * 50_000_000 + b'"}\nnope\n')
    tracemalloc.start()
    found = problems(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MAX_QUESTION_BYTES
    assert found == [f"2: {TOO_LONG}", f"3: {NO_WORD}"]


# An array


def test_ids_of_an_array_default_to_the_position_and_domains_to_the_stem(tmp_path: Path) -> None:
    content = '\ufeff[{"question": "a"}, {"question": "b", "id": "x", "domain": "food"}, {"question": "c"}]'
    golden = open_golden(write(tmp_path, content, "travel.v2.json"))
    assert [(each.id, each.domain) for each in golden] == [("1", "travel.v2"), ("x", "food"), ("3", "travel.v2")]


def test_array_above_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    with path.open("wb") as file:
        file.truncate(MAX_ARRAY_BYTES + 1)
    assert problems(path) == ["1: is larger than 67,108,864 bytes; write it as .jsonl, one object a line"]


# What is simply read


@pytest.mark.parametrize(
    "content",
    [
        f"{ONE}\n{TWO}",
        f"\ufeff{ONE}\r\n{TWO}\r\n",
        f"\n\n  {ONE}\t\n \t \r\n\n{TWO}\n\n",
        '\ufeff\n{"question": "a", "id": "1"}\n{"notes": null, "id": "2", "question": "b"}',
    ],
)
def test_layout_does_not_matter(tmp_path: Path, content: str) -> None:
    golden = open_golden(write(tmp_path, content))
    assert ids(golden) == ["1", "2"]
    assert golden.digest == open_golden(write(tmp_path, f"{ONE}\n{TWO}\n", "plain.jsonl")).digest


def test_all_fields_are_read(tmp_path: Path) -> None:
    fields = dict(data("golden.json")["all_fields"])
    assert tuple(fields) == FIELDS
    (question,) = open_golden(write(tmp_path, json.dumps(fields)), drafts=True)
    assert question == Question(**fields)
    assert question.model_dump(mode="json") == fields | {"expected_chunks": ["a", "5"]}


def test_graded_chunks_are_read(tmp_path: Path) -> None:
    line = '{"id": 1, "question": "a", "relevant_grade": 2, "expected_chunks": '
    (one,) = open_golden(write(tmp_path, line + '{"5": 2, "b": 1, "c": 3}}'))
    (other,) = open_golden(write(tmp_path, line + '{"c": 3, "5": 2, "b": 1}}'))
    assert (one.expected, dict(one.grades)) == (("5", "c"), {"5": 2, "b": 1, "c": 3})
    assert Question.model_validate_json(one.model_dump_json()) == one
    plain = one.model_copy(update={"grades": {}})
    assert len({one.digest, plain.digest}) == 2
    assert other.model_copy(update={"expected_chunks": one.expected_chunks}).digest == one.digest


def test_drafts_are_checked_and_not_given(tmp_path: Path) -> None:
    confirmed = '{"id": 1, "question": "a"}\n'
    draft = '{"id": 2, "question": "b", "draft": true}\n'
    path = write(tmp_path, draft + confirmed)
    with_it = open_golden(path)
    assert (ids(with_it), len(with_it), with_it.stats.drafts) == (["1"], 1, 1)
    both = open_golden(path, drafts=True)
    assert [(each.number, each.line, each.question.id) for each in both.numbered()] == [(0, 1, "2"), (1, 2, "1")]
    assert ids(open_golden(path, Selection(sample=5))) == ["1"]
    assert with_it.digest == open_golden(write(tmp_path, confirmed)).digest != both.digest
    with pytest.raises(GoldenError, match=r"holds only drafts \(1\)"):
        open_golden(write(tmp_path, draft))
    with pytest.raises(GoldenError, match="`question` is empty"):
        open_golden(write(tmp_path, confirmed + '{"id": 2, "question": "", "draft": true}'))


def test_stats(tmp_path: Path) -> None:
    """A set counts its questions, negatives, judged-only questions, and those of each domain."""
    made: list[dict[str, Any]] = [
        *({"expected_chunks": ["a"], "difficulty": "easy", "expected_answer": "yes"}, {"expected_chunks": []}),
        *({"expected_sources": [], "domain": "other", "expected_answer": ""}, {"category": "x"}),
    ]
    golden = open_golden(write(tmp_path, [{"id": n, "question": "a"} | each for n, each in enumerate(made)]))
    stats = golden.stats
    assert len(golden) == stats.questions == 4
    assert (stats.negatives, stats.judged_only) == (2, 1)
    assert (stats.domains, stats.negatives_by_domain) == ({"set": 3, "other": 1}, {"set": 1, "other": 1})


# Digests


def digest(folder: Path, **fields: Any) -> str:
    return open_golden(write(folder, json.dumps({"id": 1, "question": "a", "expected_chunks": ["c"]} | fields))).digest


EVALUATED: list[dict[str, Any]] = [
    {"id": 2},
    {"question": "a "},
    {"expected_chunks": ["c", "d"]},
    {"expected_answer": ""},
]
LABELS: list[dict[str, Any]] = [
    *({"id": "1"}, {"notes": "n"}, {"category": "c"}, {"difficulty": "hard"}, {"domain": "other"}),
    *({"metadata": {"a": 1}}, {"expected_tools": []}, {"expected_answer": None}),
]


@pytest.mark.parametrize("changed", [*EVALUATED, *LABELS])
def test_digest_follows_what_is_evaluated_and_no_labels(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert (digest(tmp_path, **changed) != digest(tmp_path)) == (changed in EVALUATED)


def test_digest_is_stable(tmp_path: Path) -> None:
    """The digest of a set is the same in every release, because finished runs hold it."""
    assert digest(tmp_path) == "090b17a08f53c2d402fb8773a22b95bf4ee708ead6c277eb42ed22d3161bb59d"


# Reading again


@pytest.mark.parametrize("second", ["", '{"id": 2, "question": "c"}', "nope", f"{TWO}\n{GOOD}"])
def test_a_file_that_changed_or_went_is_an_error_at_the_end_of_its_reading(tmp_path: Path, second: str) -> None:
    path = write(tmp_path, f"{ONE}\n{TWO}\n")
    golden = open_golden(path)
    for changed in (f"{ONE}\n{second}", ""):
        path.write_text(changed)
        with pytest.raises(GoldenError, match="changed while it was read; run again"):
            list(golden)
    path.unlink()
    with pytest.raises(GoldenError, match="no such file"):
        list(golden)


def test_notes_may_change_while_a_set_is_read(tmp_path: Path) -> None:
    golden = open_golden(write(tmp_path, ONE))
    golden.path.write_text('\n{"notes": "new", "id": "1", "question": "a"}')
    assert [question.notes for question in golden] == ["new"]


@pytest.mark.parametrize("more", ['"history": []', *(f'"metadata": {{"m": {each}}}' for each in DEEPEST)])
def test_the_deepest_metadata_and_an_empty_history_are_read(tmp_path: Path, more: str) -> None:
    assert ids(open_golden(write(tmp_path, f'{{"id": 1, "question": "Why?", {more}}}'))) == ["1"]
