"""Whatever a golden set holds comes back from each format that has a place for it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaltrack import export_golden, import_golden, open_golden
from evaltrack.golden.exchange.fields import FIELDS

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(CHARACTERS, min_size=1, max_size=20).filter(lambda text: bool(text.strip()))
IDS = TEXTS.map(str.strip)
KEYS = st.text("abcxyz_ ", min_size=1, max_size=6).filter(lambda key: key not in FIELDS and bool(key.strip()))
VALUES = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, lambda value: st.lists(value, max_size=2))
LINES = st.fixed_dictionaries(
    {"question": TEXTS, "domain": IDS},
    optional={
        "expected_chunks": st.lists(IDS, max_size=3, unique=True),
        "expected_answer": TEXTS,
        "history": st.lists(
            st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS}),
            min_size=1,
            max_size=2,
        ),
        "expected_tools": st.lists(IDS, min_size=1, max_size=2),
        "expected_arguments": st.lists(st.dictionaries(KEYS, VALUES, max_size=2), min_size=2, max_size=2),
        "difficulty": st.sampled_from(["easy", "medium", "hard"]),
        "category": TEXTS,
        "notes": TEXTS,
        "metadata": st.dictionaries(KEYS, VALUES, min_size=1, max_size=2),
    },
).map(
    lambda line: (
        line | {"expected_arguments": line.get("expected_arguments", [])[: len(line.get("expected_tools", ()))]}
    )
)
SETS = st.dictionaries(IDS, LINES, min_size=1, max_size=4)


def judged(sets: st.SearchStrategy[dict[str, dict[str, Any]]]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """The same sets, but each question expects something of retrieval, or is a negative."""
    return sets.map(lambda lines: {key: {"expected_chunks": [], **line} for key, line in lines.items()})


def there_and_back(lines: dict[str, dict[str, Any]], form: str, file: str) -> None:
    """A set is exported, imported again, and the same; BEIR has no place for what expects nothing of retrieval."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        golden = folder / "set.jsonl"
        text = "".join(json.dumps({"id": key, **line}) + "\n" for key, line in lines.items())
        golden.write_text(text, encoding="utf-8")
        export_golden(golden, folder / file, form)
        import_golden(folder / file, folder / "back.jsonl", form)
        assert list(open_golden(folder / "back.jsonl")) == list(open_golden(golden))


@pytest.mark.parametrize(
    ("form", "file"),
    [
        ("table", "a.jsonl"),
        ("table", "a.csv"),
        ("table", "a.tsv"),
        ("table", "a.parquet"),
        ("deepeval", "a.json"),
        ("promptfoo", "a.jsonl"),
        ("promptfoo", "a.yaml"),
        ("langfuse", "a.jsonl"),
        ("inspect", "a.jsonl"),
        ("phoenix", "a.json"),
        ("beir", "folder"),
    ],
)
def test_any_set_comes_back(form: str, file: str) -> None:
    """Texts of all scripts and signs, negatives, tools, metadata."""

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(judged(SETS) if form == "beir" else SETS)
    def check(lines: dict[str, dict[str, Any]]) -> None:
        there_and_back(lines, form, file)

    check()
