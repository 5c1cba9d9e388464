"""Golden sets: every bad file with its message, what is simply read, digests, and reading again."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaltrack.errors import GoldenError
from evaltrack.golden.file import MAX_ARRAY_BYTES, MAX_QUESTION_BYTES
from evaltrack.golden.lines import FIELDS
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.golden.selection import Selection
from evaltrack.records import Question
from tests.files import data

GOOD = '{"id": "good", "question": "Why?"}'
KNOWN = (
    "id, question, history, expected_chunks, expected_sources, expected_passages, grades, relevant_grade, "
    "expected_answer, difficulty, category, notes, domain, expected_tools, expected_arguments, metadata, draft"
)
SUFFIXES = "a golden set is a .jsonl file (one object a line) or a .json file (one array)"
EMPTY = "holds no questions; write one JSON object a line, with `id` and `question`"
TOO_LONG = "is longer than 1,048,576 bytes; make it shorter"


def write(folder: Path, content: str | bytes, name: str = "set.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


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


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    near = write(tmp_path, GOOD, "travel.jsonl")
    write(tmp_path, GOOD, "food.jsonl")
    assert problems(tmp_path / "travl.jsonl") == [f"no such file; did you mean {near}?"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("file.jsonl/more.jsonl", None, "cannot be read: Not a directory"),
        ("a\0b.jsonl", None, "cannot be read: embedded null byte"),
        ("n" * 300 + ".jsonl", None, "cannot be read: File name too long"),
        ("folder.jsonl", None, "is a directory; name a .jsonl or .json file in it"),
        ("pipe.jsonl", None, "is not a regular file (a pipe?); save it to a file, it is read twice"),
        *((name, GOOD, SUFFIXES) for name in ("set.csv", "set", "set.JSONL", "set.jsonl.gz", ".jsonl")),
        *(("set.jsonl", blank, EMPTY) for blank in ("", "\n", " \t\r\n\n  ", "\ufeff", "\ufeff\r\n")),
    ],
)
def test_what_is_no_golden_set(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    """A pipe is not waited for, and an empty file is an error that says what to write."""
    write(tmp_path, GOOD, "file.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    if content is not None:
        write(tmp_path, content, name)
    with pytest.raises(GoldenError) as caught:
        open_golden(tmp_path / name)
    assert caught.value.problems[0].endswith(f": {message}")


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="file names are text there")
def test_a_file_whose_name_is_no_text_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff.jsonl")
    path.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n' * 2)
    with pytest.raises(GoldenError, match=r"bad\\xff\.jsonl': the name of the file is not UTF-8; rename it") as caught:
        open_golden(path)
    assert len(caught.value.problems) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_unreadable_file(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    path.chmod(0)
    assert problems(path) == ["cannot be read: Permission denied"]


# One bad line

NO_WORD = "is not JSON: a word is not in quotes at column 2; write texts in double quotes"

BAD_LINES = {name: (line, message) for name, line, message in data("bad_golden_lines.json")} | {
    "huge integer": (
        f'{{"id": {"1" * 5000}}}',
        "is not JSON: a number is too large at column 4309; write a smaller one",
    ),
    "deep nesting": (
        '{"id": 1, "question": "a", "metadata": {"x": ' + "[" * 100_000 + "]" * 100_000 + "}}",
        "is not JSON: it is nested too deep at column 245; make it flatter",
    ),
}
"""A name, the line (what is no UTF-8 in it as lone surrogates), and what is wrong with it."""


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_bad_line(tmp_path: Path, line: str, message: str) -> None:
    """A bad line is reported with its number, what is wrong, and nothing else."""
    raw = line.encode(errors="surrogateescape")
    path = write(tmp_path, GOOD.encode() + b"\n" + raw + b"\n" + GOOD.replace("good", "fine").encode())
    assert problems(path) == [f"2: {message}"]


def test_every_bad_line_in_one_error(tmp_path: Path) -> None:
    good = GOOD.encode()
    lines = [
        b'{"id": 1',
        b"",
        good,
        b"nope",
        b'{"question": "", "zzz": 1}',
        good,
        b"\xff",
        b'{"id": 2, "question": "b"}',
    ]
    path = write(tmp_path, b"\n".join(lines))
    assert problems(path) == [
        "1: is not JSON: it ends inside an object at column 8; close it with `}` on the same line",
        f"4: {NO_WORD}",
        "5: `id` is missing; every question needs one",
        "5: `question` is empty; write some text",
        f"5: unknown field `zzz`; known fields: {KNOWN}",
        "6: id `good` is already on line 3; ids must be unique: give it another",
        "7: is not valid UTF-8 at byte 1; save the file as UTF-8",
    ]


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    with pytest.raises(GoldenError) as caught:
        open_golden(write(tmp_path, "nope\n" * 203))
    shown = str(caught.value).splitlines()
    assert caught.value.total == 203
    assert len(caught.value.problems) == 203
    assert len(shown) == 21
    assert shown[19].startswith(f"{tmp_path / 'set.jsonl'}:20: ")
    command = f"evaltrack golden lint {tmp_path / 'set.jsonl'} --output json"
    assert shown[20] == f"... and 183 more problems; `{command}` lists all"


def test_the_repeat_of_an_id_is_found_on_bad_lines_too(tmp_path: Path) -> None:
    lines = [GOOD, '{"id": "7"}', "", '{"id": 7, "question": "b"}', '{"id": 7, "question": ""}']
    lines += ['{"id": [8], "question": "c"}', '{"id": [8], "question": "c"}']
    assert problems(write(tmp_path, "\n".join(lines)))[:5] == [
        "2: `question` is missing; every question needs one",
        "4: id `7` is already on line 2; ids must be unique: give it another",
        "5: `question` is empty; write some text",
        "5: id `7` is already on line 2; ids must be unique: give it another",
        "6: `id` is an array; write a whole number or a text",
    ]


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
    try:
        found = problems(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [f"2: {TOO_LONG}", f"3: {NO_WORD}"]
    assert peak < 8 * MAX_QUESTION_BYTES


@pytest.mark.parametrize(
    "content",
    [
        r'{"id": 1, "question": "a", "x\ny": 1}',
        '{"id": "x\\ny", "question": "a"}\n{"id": "x\\ny", "question": "b"}',
        r'{"id": 1, "question": "a", "\u001b[2Jx": 1}',
    ],
)
def test_one_problem_is_one_printable_line(tmp_path: Path, content: str) -> None:
    assert [problem.isprintable() for problem in problems(write(tmp_path, content))] == [True]


# An array


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": 1}', "holds an object; a .json golden set is one array of objects"),
        ('"Why?"', "holds a string; a .json golden set is one array of objects"),
        ("5", "holds a number; a .json golden set is one array of objects"),
        ("true", "holds a boolean; a .json golden set is one array of objects"),
        ("null", "holds null; a .json golden set is one array of objects"),
        ("", "is not JSON: it ends before a value at column 0; write one on the same line"),
        ("[NaN]", "is not JSON: there is no value at column 2; write a text in quotes, a number, true, false or null"),
        (
            r'[{"question": "\ud800"}]',
            "is not JSON: a `\\u` escape is cut off or half of a pair at column 22; write it whole",
        ),
        (b'[{"question": "\xff"}]', "is not valid UTF-8 at byte 16; save the file as UTF-8"),
        (b'[{"question": "\0"}]', "holds a NUL byte; remove it"),
        ('[{"question": "a", "question": "b"}]', "`question` is given twice; keep one of them"),
        ("[" * 100_000 + "]" * 100_000, "is not JSON: it is nested too deep at column 202; make it flatter"),
    ],
)
def test_no_array(tmp_path: Path, content: str | bytes, message: str) -> None:
    """A `.json` file that is not one array of JSON is refused."""
    assert problems(write(tmp_path, content, "set.json")) == [f"1: {message}"]


def test_bad_elements_have_the_line_they_start_on(tmp_path: Path) -> None:
    content = r"""
[
  {"question": "a"},
  5, {"question": ""},
  {"question": "],[{}\"\n\u007b", "metadata": {"deep": [1,
    [2, {}]]}},
  {"question": "b", "id": 1}, null,


  {
    "question": "c", "zzz": 1
  }]
"""
    assert problems(write(tmp_path, content.replace("\n", "\r\n"), "set.json")) == [
        "4: `question` is empty; write some text",
        "4: is a number; a question is a JSON object",
        "7: id `1` is already on line 3; ids must be unique: give it another",
        "7: is null; a question is a JSON object",
        f"10: unknown field `zzz`; known fields: {KNOWN}",
    ]


def test_array_ids_default_to_the_position(tmp_path: Path) -> None:
    content = '\ufeff[{"question": "a"}, {"question": "b", "id": "x"}, {"question": "c"}]'
    assert ids(open_golden(write(tmp_path, content, "set.json"))) == ["1", "x", "3"]


def test_array_above_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    with path.open("wb") as file:
        file.truncate(MAX_ARRAY_BYTES + 1)
    assert problems(path) == ["1: is larger than 67,108,864 bytes; write it as .jsonl, one object a line"]


@pytest.mark.parametrize("broken", [b'{"question" "b"}', b'{"question": "\xff"}', b'{"question": "\0"}'])
def test_broken_array_names_the_line(tmp_path: Path, broken: bytes) -> None:
    path = write(tmp_path, b'[\n{"question": "a"},\n' + broken + b"\n]", "set.json")
    assert [problem.split(":")[0] for problem in problems(path)] == ["3"]


# What is simply read


@pytest.mark.parametrize(
    "content",
    [
        b'{"id": 1, "question": "a"}\n{"id": 2, "question": "b"}\n',
        b'{"id": 1, "question": "a"}\n{"id": 2, "question": "b"}',
        b'\xef\xbb\xbf{"id": 1, "question": "a"}\r\n{"id": 2, "question": "b"}\r\n',
        b'\n\n  {"id": 1, "question": "a"}\t\n \t \r\n\n{"id": "2", "question": "b"}\n\n',
        b'\xef\xbb\xbf\n{"question": "a", "id": "1"}\n{"notes": null, "id": 2, "question": "b"}',
    ],
)
def test_layout_does_not_matter(tmp_path: Path, content: bytes) -> None:
    plain = open_golden(write(tmp_path, '{"id": 1, "question": "a"}\n{"id": 2, "question": "b"}\n', "plain.jsonl"))
    golden = open_golden(write(tmp_path, content))
    assert ids(golden) == ["1", "2"]
    assert golden.digest == plain.digest


def test_all_fields_are_read(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "id": "007",
        "question": "Où est-ce? 😀",
        "history": [{"role": "user", "content": "Bonjour."}],
        "expected_chunks": ["a", 5],
        "expected_sources": ["A title"],
        "expected_passages": [{"quote": "Ici, rue de Rome.", "any_of": [], "source": "Plan", "share": 0.75}],
        "grades": {"a": 3, "5": 1},
        "relevant_grade": 1,
        "expected_answer": "Ici.",
        "difficulty": "hard",
        "category": "places",
        "notes": "a note",
        "domain": "travel",
        "expected_tools": ["search"],
        "expected_arguments": [{"query": {"a": [None]}}],
        "metadata": {"nested": [1, {"a": None}]},
        "draft": True,
    }
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


def test_domain_defaults_to_the_stem(tmp_path: Path) -> None:
    content = '{"id": 1, "question": "a"}\n{"id": 2, "question": "b", "domain": "food"}'
    assert [q.domain for q in open_golden(write(tmp_path, content, "travel.v2.jsonl"))] == ["travel.v2", "food"]


def test_stats(tmp_path: Path) -> None:
    """A set counts its questions, negatives, judged-only questions, and each domain and category."""
    questions: list[dict[str, Any]] = [
        {"expected_chunks": ["a"], "difficulty": "easy", "expected_answer": "yes"},
        {"expected_chunks": [], "difficulty": "easy", "category": "x"},
        {"expected_sources": [], "domain": "other", "expected_answer": ""},
        {"category": "x"},
    ]
    golden = open_golden(
        write(tmp_path, "\n".join(json.dumps({"id": i, "question": "a"} | q) for i, q in enumerate(questions)))
    )
    stats = golden.stats
    assert len(golden) == stats.questions == 4
    assert (stats.negatives, stats.judged_only) == (2, 1)
    assert stats.domains == {"set": 3, "other": 1}
    assert stats.negatives_by_domain == Counter({"set": 1, "other": 1})


# Digests


def digest(folder: Path, **fields: Any) -> str:
    return open_golden(write(folder, json.dumps({"id": 1, "question": "a", "expected_chunks": ["c"]} | fields))).digest


EVALUATED: list[dict[str, Any]] = [
    *({"id": 2}, {"question": "a "}, {"expected_chunks": ["c", "d"]}, {"expected_chunks": []}),
    *({"expected_chunks": None}, {"expected_chunks": None, "expected_sources": ["c"]}, {"expected_sources": ["T"]}),
    *({"expected_answer": "b"}, {"expected_answer": ""}, {"expected_tools": ["search"]}),
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


@pytest.mark.parametrize(
    "changed",
    [
        '{"id": 1, "question": "a"}\n',
        '{"id": 1, "question": "a"}\n{"id": 2, "question": "c"}\n',
        '{"id": 1, "question": "a"}\nnope\n',
        '{"id": 1, "question": "a"}\n{"id": 2, "question": "b"}\n{"id": 3, "question": "c"}\n',
        "",
    ],
)
def test_a_file_that_changed_or_went_is_an_error_at_the_end_of_its_reading(tmp_path: Path, changed: str) -> None:
    path = write(tmp_path, '{"id": 1, "question": "a"}\n{"id": 2, "question": "b"}\n')
    golden = open_golden(path)
    path.write_text(changed)
    with pytest.raises(GoldenError, match="changed while it was read; run again"):
        list(golden)
    path.unlink()
    with pytest.raises(GoldenError, match="no such file"):
        list(golden)


def test_notes_may_change_while_a_set_is_read(tmp_path: Path) -> None:
    golden = open_golden(write(tmp_path, '{"id": 1, "question": "a"}\n'))
    golden.path.write_text('\n{"notes": "new", "id": "1", "question": "a"}')
    assert [question.notes for question in golden] == ["new"]


def test_memory_does_not_grow_with_the_set(tmp_path: Path) -> None:
    lines = 25_000
    text = "x" * 400
    with (path := tmp_path / "set.jsonl").open("w") as file:
        file.writelines(f'{{"id": {i}, "question": "{text}"}}\n' for i in range(lines))
    open_golden(write(tmp_path, GOOD, "warm.jsonl"))  # what is imported on the way is not measured
    tracemalloc.start()
    try:
        golden = open_golden(path)
        assert sum(1 for _ in golden) == lines
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(golden) == lines
    assert peak < 4_500_000 < lines * len(text) / 2


# Anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
FIELD_VALUES = JSON | st.text(max_size=5) | st.lists(st.integers() | st.text(max_size=2), max_size=3)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), FIELD_VALUES, max_size=5)
QUESTIONS = st.builds(lambda i, fields: {"id": i, "question": "a"} | fields, st.integers(0, 5), OBJECTS)
VALUES = st.one_of(QUESTIONS, OBJECTS, JSON)
LINES = VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=30)
FILES = st.one_of(
    st.tuples(st.just(".jsonl"), st.lists(LINES, max_size=6).map(b"\n".join)),
    st.tuples(st.just(".json"), st.lists(LINES, max_size=6).map(lambda lines: b"[" + b",\n".join(lines) + b"]")),
    st.tuples(st.sampled_from([".jsonl", ".json"]), st.binary(max_size=60)),
)


@given(FILES)
@example((".json", b'[{"question": "a", "metadata": {"x": 1e999, "y": -0, "z": ' + b"1" * 4300 + b"}}]"))
@example((".json", b'[{"question": "a\x7f"}]'))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, file: tuple[str, bytes]) -> None:
    """Whatever a file holds, it is either a golden set that reads as it was checked, or a `GoldenError`."""
    suffix, content = file
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content)
    try:
        golden, found = open_golden(path), None
    except GoldenError as error:
        golden, found = None, error.problems
    if golden is None:
        assert found
        assert all(problem.startswith(f"{path}:") for problem in found)
    else:
        assert len(ids(golden)) == len(golden) == len(set(ids(golden)))


@given(st.lists(QUESTIONS, min_size=1, max_size=4))
@settings(deadline=None, derandomize=True)
def test_line_numbers_of_lines_and_arrays_agree(
    tmp_path_factory: pytest.TempPathFactory, questions: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    lines = [json.dumps(question) for question in questions]
    as_lines = write(folder, "\n" + "\n".join(lines), "agree.jsonl")
    as_array = write(folder, "[\n" + ",\n".join(lines) + "]", "agree.json")
    outcomes = []
    for path in (as_lines, as_array):
        try:
            outcomes.append(open_golden(path).digest.splitlines())
        except GoldenError as error:
            outcomes.append([problem.removeprefix(str(path)) for problem in error.problems])
    if any("is not JSON" in problem for problem in outcomes[0]):  # one such element spoils the whole array
        return
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(("opened", "closed"), [('{"a":', "}"), ("[", "]")])
def test_metadata_too_deep_to_be_kept(tmp_path: Path, opened: str, closed: str) -> None:
    line = '{"id": 1, "question": "Why?", "metadata": {"m": %s1%s}}'
    bad = write(tmp_path, line % (opened * 150, closed * 150))
    assert problems(bad) == ["1: `metadata` is nested deeper than 100; make it flatter"]
    good = write(tmp_path, line % (opened * 99, closed * 99))
    assert ids(open_golden(good)) == ["1"]


def test_turns_of_a_history(tmp_path: Path) -> None:
    line = '{"id": 1, "question": "a", "history": %s}'
    turn = '{"role": "user", "content": "x"}'
    assert problems(write(tmp_path, line % f"[{', '.join([turn] * 1001)}]")) == [
        "1: `history` has 1,001 entries; write at most 1,000"
    ]
    assert len(problems(write(tmp_path, line % f'[{{"role": "x", "content": ""}}, {turn}, {{}}]'))) == 4
    assert ids(open_golden(write(tmp_path, line % "[]"))) == ["1"]
