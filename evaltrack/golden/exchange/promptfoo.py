"""promptfoo: the test cases of a configuration, of a file of their own, or of the results of `promptfoo eval`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError
from evaltrack.golden.exchange.fields import FIELDS, RowForm, drafts, unseen_columns
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes, shown
from evaltrack.golden.exchange.row_files import FORMS, Row, Rows, read_json, read_rows
from evaltrack.golden.exchange.values import TEXT_KEYS, is_empty
from evaltrack.golden.exchange.yaml_files import read_yaml

FORM = RowForm({name: name for name in FIELDS})
ANSWER_TYPES = ("factuality", "model-graded-factuality", "context-recall", "equals", "similar")
"""Assertions whose value is a right answer, those that say most first."""

_VARIABLE = re.compile(r"^\{\{\s*(\w+)\s*\}\}$")
_EXPECTED = re.compile(r"^__expected\d*$")
_TYPED = re.compile(r"^([a-z][a-z-]*)(?:\([\d.]+\))?:\s*(.*)$", re.DOTALL)


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each test case as a golden line."""
    for path in files:
        yield from drafts(_rows(path, settings, notes), FORM, replace(settings, columns={}), notes)


def _rows(path: Path, settings: ImportSettings, notes: Notes) -> Rows:
    seen, place = set[str](), str(path)
    for place, case in _cases(path, settings, notes):
        seen.update({} if isinstance(case, ValueError) else _object(case, "vars"))
        yield from _golden_rows((place, case), settings, notes)
    columns = [column for name, column in settings.columns.items() if name != "question"]
    yield from ((place, problem) for problem in unseen_columns(columns, seen))


def _cases(path: Path, settings: ImportSettings, notes: Notes) -> Rows:
    """The test cases that a file holds, or names in files beside it."""
    value = _config(path)
    if value is None:
        for place, row in _each_test_once(read_rows(path, settings)):
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


def _each_test_once(rows: Rows) -> Rows:
    """Rows of results as their test cases; each test was asked by every prompt of every provider."""
    seen = set[int]()
    for place, row in rows:
        if isinstance(row, ValueError) or not isinstance(row.get("testCase"), dict):
            yield place, row
        elif row.get("testIdx") not in seen:
            seen.add(row.get("testIdx", -len(seen) - 1))
            yield place, {"vars": row.get("vars"), **row["testCase"]}


def _config(path: Path) -> dict[str, Any] | None:
    """A configuration; None for a file of test cases."""
    suffix = path.suffix.lower()
    value = read_yaml(path) if suffix in (".yaml", ".yml") else read_json(path) if suffix == ".json" else None
    return value if isinstance(value, dict) and "tests" in value else None


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


def _golden_rows(case: Row, settings: ImportSettings, notes: Notes) -> Rows:
    """A row by fields of a golden line; a list of questions makes several tests, as in promptfoo."""
    place, value = case
    if isinstance(value, ValueError):
        yield case
        return
    variables = _object(value, "vars")
    name = _question_name(variables, settings)
    if not name:
        names = ", ".join(map(shown, variables)) or "none"
        yield (
            place,
            ValueError(f"cannot tell the question among the variables ({names}); name it: `columns=question=NAME`"),
        )
        return
    texts = variables[name] if isinstance(variables[name], list) else [variables[name]]
    for text in texts:
        if isinstance(text, str) and text.startswith("file://"):
            yield place, ValueError(f"`{shown(name)}` is a file, {shown(text)}; write the question itself")
        else:
            rest = {key: item for key, item in variables.items() if key != name}
            yield place, {"question": text, **_expectations(place, value, rest, settings, notes)}


def _question_name(variables: Mapping[str, Any], settings: ImportSettings) -> str:
    if "question" in settings.columns:
        return settings.columns["question"] if settings.columns["question"] in variables else ""
    usual = [name for name in TEXT_KEYS if name in variables]
    return (usual or (list(variables) if len(variables) == 1 else [""]))[0]


def _expectations(
    place: str, case: Mapping[str, Any], variables: dict[str, Any], settings: ImportSettings, notes: Notes
) -> dict[str, Any]:
    row: dict[str, Any] = {field: variables.pop(name) for field, name in settings.columns.items() if name in variables}
    own = [name for name in FIELDS if name in variables and name not in (*row, "metadata")]
    row |= {name: variables.pop(name) for name in own}
    asserts = [_filled(each, {**variables, **row}) for each in _list(case, "assert") if isinstance(each, dict)]
    right = sorted((each for each in asserts if each.get("type") in ANSWER_TYPES), key=_weight)
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


def _weight(assertion: Mapping[str, Any]) -> int:
    return ANSWER_TYPES.index(assertion["type"])


def _filled(assertion: dict[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """An assertion whose value is one variable, with that variable's value."""
    match = _VARIABLE.match(str(assertion.get("value", "")).strip())
    return {**assertion, "value": variables[match[1]]} if match and match[1] in variables else assertion


def columns_of(row: Mapping[str, Any]) -> Iterator[str]:
    """The columns of a CSV that only promptfoo has."""
    return (name for name in row if _EXPECTED.match(name) or name.startswith("__metadata:"))
