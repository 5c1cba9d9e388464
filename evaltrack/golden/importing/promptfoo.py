"""promptfoo: the test cases of a configuration, or of a file of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError
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

FORMS = (".json", ".jsonl", ".yaml", ".yml")
"""Endings of files with test cases."""

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def is_config(value: Any) -> bool:
    """Whether a document is a configuration of promptfoo."""
    return isinstance(value, dict) and "tests" in value


def read(notes: Notes, path: Path, encoding: str) -> Rows:
    """The test cases that a file holds, or names in files beside it, as rows of their variables."""
    config = document(path)
    common = _object(config, "defaultTest") if is_config(config) else {}
    for place, case in _cases(path, config["tests"], encoding) if is_config(config) else read_rows(path, encoding):
        yield place, case if isinstance(case, ValueError) else _row(case, common)
    if is_config(config) and config.get("scenarios"):
        notes.add("`scenarios`: left out; write their tests under `tests`", str(path))


def _cases(path: Path, tests: Any, encoding: str) -> Rows:
    for number, test in enumerate(tests if isinstance(tests, list) else [tests], start=1):
        if isinstance(test, str):
            yield from read_rows(_named(path, test), encoding)
        else:
            yield f"{path}: tests[{number}]", test if isinstance(test, dict) else ValueError("is no test case")


def _named(config: Path, name: str) -> Path:
    """A file of tests that a configuration names, in its folder or below."""
    path = config.parent / name.removeprefix("file://")
    if not path.resolve().is_relative_to(config.parent.resolve()):
        raise GoldenError([f"{config}: names tests outside of its folder: {shown(name)}; import that file itself"])
    if path.suffix.lower() not in FORMS or "*" in name:
        cure = f"name files of tests ({', '.join(FORMS)})"
        raise GoldenError([f"{config}: tests in `{shown(name)}` cannot be read; {cure}"])
    return path


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
