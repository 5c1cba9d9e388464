"""Questions and chunks for the tests of lint."""

from __future__ import annotations

from typing import Any

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.finding import Entry, Finding
from evaltrack.golden.lint.library import Library
from evaltrack.records import Question


def entries(*questions: dict[str, Any]) -> list[Entry]:
    """Questions, one a line; what is left out is short."""
    made = []
    for number, fields in enumerate(questions):
        asked = {"id": f"q{number}", "question": f"what {number}?", "domain": "set", **fields}
        made.append(Entry("set.jsonl", number, number + 1, Question.model_validate(asked)))
    return made


def library(**texts: str) -> Library:
    """A library of the given texts by id, where `__` stands for `#`; the title is the page."""
    chunks = []
    for name, text in texts.items():
        key = name.replace("__", "#")
        chunks.append(Chunk(key, key.partition("#")[0], "", key, text))
    return Library("corpus/set", tuple(chunks), frozenset({"set"}))


def brief(findings: Any) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.line) for finding in findings if isinstance(finding, Finding)]
