"""promptfoo: the test cases of a configuration, of a file of their own, or of the results of `promptfoo eval`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError
from evaltrack.golden.importing.drafts import FIELDS, Drafts, ImportSettings, Notes, Preset, drafts, found, unseen
from evaltrack.golden.importing.table import FORMS, Rows, document, read_rows
from evaltrack.golden.importing.values import TEXT_KEYS, is_empty, shown

CASE = Preset("promptfoo", (), {name: (name,) for name in FIELDS})
ANSWER_TYPES = ("factuality", "model-graded-factuality", "context-recall", "equals", "similar")
"""Assertions whose value is a right answer, those that say most first."""

_VARIABLE = re.compile(r"^\{\{\s*(\w+)\s*\}\}$")
_EXPECTED = re.compile(r"^__expected\d*$")
_TYPED = re.compile(r"^([a-z][a-z-]*)(?:\([\d.]+\))?:\s*(.*)$", re.DOTALL)


def shows_in(row: Mapping[str, Any]) -> bool:
    """Whether a row is a test case: it has `vars`, or columns that only promptfoo's CSV has."""
    own = any(_EXPECTED.match(name) or name.startswith("__metadata:") for name in row)
    return own or isinstance(row.get("vars"), dict)


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
        for place, row in _each_test_once(read_rows(path, settings.encoding)):
            yield place, row if isinstance(row, ValueError) or "vars" in row else _case_of_cells(row)
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


def _each_test_once(rows: Rows) -> Rows:
    """Rows of results as their test cases; each test was asked by every prompt of every provider."""
    seen = set[int]()
    for place, row in rows:
        if isinstance(row, ValueError) or not isinstance(row.get("testCase"), dict):
            yield place, row
        elif row.get("testIdx") not in seen:
            seen.add(row.get("testIdx", -len(seen) - 1))
            yield place, {"vars": row.get("vars"), **row["testCase"]}


def _beside(config: Path, name: str) -> Path:
    """A file of tests that a configuration names, in its folder or below."""
    path = config.parent / name.removeprefix("file://")
    if not path.resolve().is_relative_to(config.parent.resolve()):
        raise GoldenError([f"{config}: names tests outside of its folder: {shown(name)}; import that file itself"])
    if path.suffix.lower() not in FORMS or "*" in name:
        raise GoldenError(
            [f"{config}: tests in `{shown(name)}` cannot be read; name files of tests ({', '.join(FORMS)})"]
        )
    return path


def _case_of_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a CSV as a test case: `__expected`, `__metadata:KEY`, `__description`; other columns are variables."""
    asserts = [_assertion(str(cell)) for name, cell in row.items() if _EXPECTED.match(name) and not is_empty(cell)]
    metadata = {}
    for name, cell in row.items():
        if name.startswith("__metadata:") and not is_empty(cell):
            key = name.removeprefix("__metadata:")
            values = [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", str(cell))]
            metadata[key.removesuffix("[]")] = values if key.endswith("[]") else cell
    variables = {name: cell for name, cell in row.items() if not name.startswith("__")}
    return {"vars": variables, "assert": asserts, "metadata": metadata, "description": row.get("__description")}


def _assertion(cell: str) -> dict[str, str]:
    """`similar(0.8): a text`; without a type it is `equals`."""
    match = _TYPED.match(cell.strip())
    return {"type": match[1], "value": match[2]} if match else {"type": "equals", "value": cell}


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
