"""Whatever a file holds, an import makes a set that can be read, or is refused with a place."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaltrack import open_golden
from evaltrack.api.import_golden import import_golden
from evaltrack.errors import UsageError
from evaltrack.golden.importing.layouts import FORMATS
from tests.files import put

from .imports import problems

NAMES = [
    *("id", "qid", "_id", "input", "question", "query", "user_input", "vars", "assert", "tests", "examples", "queries"),
    *(
        "relevant_docs",
        "retrieval_gt",
        "generation_gt",
        "expected_chunks",
        "expected_sources",
        "expected_tools",
        "data",
    ),
    *("target", "choices", "metadata", "additional_metadata", "context", "status", "input_a", "output_a", "x", "role"),
    *("messages", "ideal", "reference", "reference_contexts", "evolution_type", "contexts", "domain", "metadata_id"),
    *("expectedOutput", "defaultTest", "scenarios", "description", "__expected", "__metadata:a[]", "difficulty"),
    *("content", "scenario", "corpus", "data"),
]
STRANGE = ["a", "", "[", "['a' 'b']", '{"a": 1}', '["b"]', "A", "user", "file://x", "\0", "{{a}}", '"q"', "[[1,"]
TEXTS = st.sampled_from(STRANGE)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda value: st.lists(value, max_size=3) | st.dictionaries(st.sampled_from(NAMES), value, max_size=4),
    max_leaves=12,
)
ROWS = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6), max_size=3)


BINARY = st.sampled_from(["a.csv", "a.tsv", "a.xlsx", "a.parquet", "a.yaml", "a.json", "a"])
TREES = st.tuples(st.sampled_from(["a.json", "a.jsonl", "a.yaml"]), ROWS | VALUES)
FILES = TREES | st.tuples(BINARY, st.binary(max_size=60))


@pytest.mark.parametrize("examples", [25, pytest.param(250, marks=pytest.mark.long)])
@pytest.mark.parametrize("form", [*FORMATS, "auto"])
def test_any_file_is_a_set_or_an_error(form: str, examples: int) -> None:

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
    )
    @given(FILES)
    def check(file: tuple[str, Any]) -> None:
        name, value = file
        with tempfile.TemporaryDirectory() as folder:
            is_lines = name.endswith(".jsonl") and isinstance(value, list)
            content = value if is_lines or isinstance(value, bytes) else json.dumps(value)
            files = [put(Path(folder) / name, content), put(Path(folder) / "qrels", "1 0 a 1\n")]
            with suppress(UsageError):
                made = import_golden(files[: 1 + isinstance(value, bytes)], Path(folder) / "out.jsonl", form)
                assert len(open_golden(made.path)) == made.questions
            assert {each.name for each in Path(folder).iterdir()} <= {name, "qrels", "out.jsonl"}

    check()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"question\n\xff\n", "a.csv:2: cannot be read as utf-8"),
        ("a.csv", b"question\n" + b"x" * 200_000 + b"\n", "a.csv:2: is not CSV: field larger than field limit"),
        ("a.jsonl", b'{"question": "' + b"x" * 2_000_000 + b'"}\n', "a.jsonl:1: is longer than"),
        ("a.json", b'[{"qid": 1, "query": "q", "retrieval_gt": "[[1,"}]', "`retrieval_gt` begins with `[`"),
    ],
)
def test_what_is_wrong_with_a_file_shows_before_its_format(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    assert message in problems(tmp_path, put(tmp_path / name, content))[0]


def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is not a regular file" in problems(tmp_path, tmp_path / "pipe.csv")[0]
    assert "is not a regular file" in problems(tmp_path, Path("/dev/zero"))[0]
