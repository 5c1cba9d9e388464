"""promptfoo: the test cases of a configuration, or of a file of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError
from evaltrack.golden.importing.drafts import FIELDS, Drafts, ImportSettings, Notes, Preset, drafts, found, unseen
from evaltrack.golden.importing.table import Rows, document, read_rows
from evaltrack.golden.importing.values import TEXT_KEYS, shown

CASE = Preset("promptfoo", (), {name: (name,) for name in FIELDS})
ANSWER_TYPES = ("factuality", "model-graded-factuality", "context-recall", "equals", "similar")
"""Assertions whose value is a right answer, those that say most first."""

FORMS = (".json", ".jsonl", ".yaml", ".yml")
"""Endings of files with test cases."""

_VARIABLE = re.compile(r"^\{\{\s*(\w+)\s*\}\}$")


def shows_in(row: Mapping[str, Any]) -> bool:
    """Whether a row is a test case."""
    return isinstance(row.get("vars"), dict) and "testCase" not in row


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each test case as a golden line."""
    for path in files:
        yield from drafts(_rows(path, settings, notes), CASE, replace(settings, fields={}), notes)


def _rows(path: Path, settings: ImportSettings, notes: Notes) -> Rows:
    """A row by fields of a golden line for each test; a list of questions makes several tests, as in promptfoo."""
    seen, place = set[str](), str(path)
    for place, case in _cases(path, settings, notes):
        if isinstance(case, ValueError):
            yield place, case
            continue
        variables = _object(case, "vars")
        seen.update(variables)
        name, question = _question(variables, settings)
        if question is None:
            names = ", ".join(map(shown, variables)) or "none"
            cure = "name it: `fields=question=NAME`"
            yield place, ValueError(f"cannot tell the question among the variables ({names}); {cure}")
        for text in question if isinstance(question, list) else [] if question is None else [question]:
            if isinstance(text, str) and text.startswith("file://"):
                yield place, ValueError(f"`{shown(name)}` is a file, {shown(text)}; write the question itself")
            else:
                rest = {key: item for key, item in variables.items() if key != name}
                yield place, {"question": text, **_expectations(place, case, rest, settings, notes)}
    named = [name for field, name in settings.fields.items() if field != "question" and name.isidentifier()]
    yield from ((place, problem) for problem in unseen(named, seen))


def _question(variables: Mapping[str, Any], settings: ImportSettings) -> tuple[str, Any]:
    """The variable that holds the question, and its value."""
    if name := settings.fields.get("question"):
        return name, found(name, variables)
    usual = [name for name in TEXT_KEYS if name in variables] or (list(variables) if len(variables) == 1 else [])
    return (usual[0], variables[usual[0]]) if usual else ("", None)


def _cases(path: Path, settings: ImportSettings, notes: Notes) -> Rows:
    """The test cases that a file holds, or names in files beside it."""
    value = document(path)
    if not is_config(value):
        yield from read_rows(path, settings.encoding)
        return
    tests = value["tests"]
    common = _object(value, "defaultTest")
    for number, test in enumerate(tests if isinstance(tests, list) else [tests], start=1):
        place = f"{path}: tests[{number}]"
        if isinstance(test, str):
            yield from ((at, _with_defaults(case, common)) for at, case in _cases(_beside(path, test), settings, notes))
        elif isinstance(test, dict) and "path" in test:
            notes.add("tests that a program makes: left out", place)
        else:
            yield place, _with_defaults(test if isinstance(test, dict) else ValueError("is no test case"), common)
    if value.get("scenarios"):
        notes.add("`scenarios`: left out; write their tests under `tests`", str(path))


def is_config(value: Any) -> bool:
    """Whether a document is a configuration of promptfoo."""
    return isinstance(value, dict) and "tests" in value


def _beside(config: Path, name: str) -> Path:
    """A file of tests that a configuration names, in its folder or below."""
    path = config.parent / name.removeprefix("file://")
    if not path.resolve().is_relative_to(config.parent.resolve()):
        raise GoldenError([f"{config}: names tests outside of its folder: {shown(name)}; import that file itself"])
    if path.suffix.lower() not in FORMS or "*" in name:
        cure = f"name files of tests ({', '.join(FORMS)})"
        raise GoldenError([f"{config}: tests in `{shown(name)}` cannot be read; {cure}"])
    return path


def _with_defaults(case: dict[str, Any] | ValueError, common: Mapping[str, Any]) -> dict[str, Any] | ValueError:
    if isinstance(case, ValueError) or not common:
        return case
    merged = {name: {**_object(common, name), **_object(case, name)} for name in ("vars", "metadata")}
    return {**common, **case, **merged, "assert": [*_list(case, "assert"), *_list(common, "assert")]}


def _object(case: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = case.get(name)
    return value if isinstance(value, dict) else {}


def _list(case: Mapping[str, Any], name: str) -> list[Any]:
    value = case.get(name)
    return value if isinstance(value, list) else []


def _expectations(
    place: str, case: Mapping[str, Any], variables: dict[str, Any], settings: ImportSettings, notes: Notes
) -> dict[str, Any]:
    """The other fields of a test case: variables called as fields, an asserted answer, the description as notes."""
    row = {field: value for field, path in settings.fields.items() if (value := found(path, variables)) is not None}
    row |= {name: variables[name] for name in FIELDS if name in variables and name not in (*row, "metadata")}
    variables = {name: value for name, value in variables.items() if name not in {*settings.fields.values(), *row}}
    asserts = [_filled(each, {**variables, **row}) for each in _list(case, "assert") if isinstance(each, dict)]
    right = [each for each in asserts if each.get("type") in ANSWER_TYPES]
    right.sort(key=lambda each: ANSWER_TYPES.index(each["type"]))
    if right and "expected_answer" not in row and isinstance(right[0].get("value"), str | int | float):
        row["expected_answer"] = str(right[0]["value"])
        asserts.remove(right[0])
        variables = {name: value for name, value in variables.items() if value != row["expected_answer"]}
    metadata = dict(_object(case, "metadata"))
    if asserts:
        kinds = ", ".join(sorted({shown(each.get("type")) for each in asserts})[:5])
        notes.add(f"assertions that are no expected answer ({kinds}): kept in `metadata`", place)
        metadata["assert"] = asserts
    if variables:
        notes.add("variables that are no field of a golden set: kept in `metadata`", place)
        metadata["vars"] = variables
    if case.get("description") and "notes" not in row:
        row["notes"] = case["description"]
    return {**row, "metadata": metadata}


def _filled(assertion: dict[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """An assertion whose value is one variable, with that variable's value."""
    match = _VARIABLE.match(str(assertion.get("value", "")).strip())
    return {**assertion, "value": variables[match[1]]} if match and match[1] in variables else assertion
