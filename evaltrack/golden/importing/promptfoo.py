"""promptfoo: the test cases of a configuration, or of a file of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaltrack.golden.importing.drafts import FIELDS, Notes, Preset
from evaltrack.golden.importing.table import Rows, document, read_rows
from evaltrack.golden.importing.values import TEXT_KEYS, shown

ANSWER_TYPES = ("factuality", "model-graded-factuality", "context-recall", "equals", "similar")
"""Assertions whose value is a right answer, those that say most first."""

CASE = Preset(
    name="promptfoo",
    shown_by=({"vars"},),
    not_with="testCase",
    fields={
        **{name: (name,) for name in FIELDS},
        "question": TEXT_KEYS,
        "expected_answer": ("expected_answer", *(f"assert[?type=='{kind}'].value | [0]" for kind in ANSWER_TYPES)),
        "notes": ("notes", "description"),
    },
)

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def is_config(value: Any) -> bool:
    """Whether a document is a configuration of promptfoo."""
    return isinstance(value, dict) and "tests" in value


def read(notes: Notes, path: Path, encoding: str) -> Rows:
    """The test cases that a file holds, as rows of their variables."""
    config = document(path)
    common = _object(config, "defaultTest") if is_config(config) else {}
    for place, case in _cases(path, config["tests"]) if is_config(config) else read_rows(path, encoding):
        yield place, case if isinstance(case, ValueError) else _row(case, common)
    if is_config(config) and config.get("scenarios"):
        notes.add("`scenarios`: left out; write their tests under `tests`", str(path))


def _cases(path: Path, tests: Any) -> Rows:
    for number, test in enumerate(tests if isinstance(tests, list) else [tests], start=1):
        named = f"is in a file of its own, {shown(test)}; import that file" if isinstance(test, str) else ""
        is_case = isinstance(test, dict)
        yield f"{path}: tests[{number}]", test if is_case else ValueError(named or "is no test case")


def _object(case: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = case.get(name)
    return value if isinstance(value, dict) else {}


def _row(case: dict[str, Any], common: Mapping[str, Any]) -> dict[str, Any] | ValueError:
    """A test case with the variables as columns; assertions that are one variable have its value."""
    variables, metadata = ({**_object(common, name), **_object(case, name)} for name in ("vars", "metadata"))
    asserts = [
        {**each, "value": variables.get(match[1])} if match else each
        for test in (case, common)
        for each in (test["assert"] if isinstance(test.get("assert"), list) else [])
        if isinstance(each, dict)
        for match in [_VARIABLE.fullmatch(str(each.get("value")).strip())]
    ]
    for name, value in variables.items():
        if str(value).startswith("file://"):
            return ValueError(f"`{shown(name)}` is a file, {shown(value)}; write its text")
    rest = {name: value for name, value in {**common, **case, "metadata": metadata}.items() if name != "vars"}
    row = {**{f"vars.{name}" if name in rest else name: value for name, value in variables.items()}, **rest}
    if len(variables) == 1 and not row.keys() & set(TEXT_KEYS):
        row["question"] = row.pop(next(iter(variables)), None)
    return {**row, "assert": asserts}
