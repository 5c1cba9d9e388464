"""The formats of foreign golden sets: the module that reads each, and what shows that a file is of one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.exchange.records import ImportSettings

FORMATS = {
    "trec": "evaltrack.golden.exchange.trec",
    "beir": "evaltrack.golden.exchange.beir",
    "table": "evaltrack.golden.exchange.table",
    "promptfoo": "evaltrack.golden.exchange.promptfoo",
    "ragas": "evaltrack.golden.exchange.ragas",
    "deepeval": "evaltrack.golden.exchange.deepeval",
    "llamaindex": "evaltrack.golden.exchange.llamaindex",
    "autorag": "evaltrack.golden.exchange.autorag",
    "phoenix": "evaltrack.golden.exchange.phoenix",
    "langfuse": "evaltrack.golden.exchange.langfuse",
    "inspect": "evaltrack.golden.exchange.inspect",
}
"""Each format and its module, with `read(files, settings, notes)`."""


def format_module(name: str) -> ModuleType:
    """The module of a format.

    Raises:
        UsageError: there is no such format.
    """
    if name not in FORMATS:
        raise UsageError(f"`form=`: there is no format `{name}`; formats are {', '.join(FORMATS)}")
    return import_module(FORMATS[name])


def detected_format(files: list[Path], settings: ImportSettings) -> str:
    """The format that the content of files shows; a column that the user named makes it a table, where nothing does.

    Raises:
        GoldenError: a file cannot be read.
        UsageError: the content shows no format, or more than one.
    """
    from evaltrack.golden.exchange import beir, trec
    from evaltrack.golden.exchange.row_files import check_file

    if any(map(beir.is_folder, files)):
        return "beir"
    for path in files:
        check_file(path)
    texts = [path for path in files if path.suffix.lower() not in (".parquet", ".xlsx", ".eval")]
    judgements = [path for path in texts if trec.is_judgements(path, settings)]
    if judgements:
        return "beir" if any(trec.has_beir_header(path, settings) for path in judgements) else "trec"
    shown_formats = {_by_content(path, settings) for path in files}
    if len(shown_formats) == 1 and (only := shown_formats.pop()):
        return only
    if settings.columns:
        return "table"
    raise UsageError(f"{files[0]}: its content does not show its format; name it with `form=`: {', '.join(FORMATS)}")


def _by_content(path: Path, settings: ImportSettings) -> str:
    from evaltrack.golden.exchange import llamaindex
    from evaltrack.golden.exchange.row_files import FORMS, read_json, read_rows
    from evaltrack.golden.exchange.yaml_files import read_yaml

    suffix = path.suffix.lower()
    if suffix not in FORMS:
        return ""
    value = read_json(path) if suffix == ".json" else read_yaml(path) if suffix in (".yaml", ".yml") else None
    if llamaindex.is_pairs(value) or llamaindex.is_examples(value):
        return "llamaindex"
    if isinstance(value, dict) and "tests" in value:
        return "promptfoo"
    for place, row in read_rows(path, settings):
        if isinstance(row, ValueError):
            raise GoldenError([f"{place}: {row}"])
        return _by_columns(row)
    return ""


def _by_columns(row: dict[str, Any]) -> str:
    """The one format that has these columns or keys; empty where none has."""
    from evaltrack.golden.exchange import deepeval
    from evaltrack.golden.exchange.promptfoo import columns_of
    from evaltrack.golden.exchange.table import field_name

    names = set(row)
    shows = {
        "promptfoo": isinstance(row.get("vars"), dict) or any(columns_of(row)),
        "ragas": "user_input" in names or {"question", "ground_truth", "contexts"} <= names,
        "autorag": {"qid", "query", "retrieval_gt"} <= names,
        "deepeval": bool(names & {"input", "scenario"})
        and bool(names & {"retrieval_context", "additional_metadata", *deepeval.RUN_KEYS}),
        "langfuse": {"input", "expectedOutput"} <= names and not names & deepeval.RUN_KEYS,
        "phoenix": "example_id" in names
        or {"messages", "ideal"} <= names
        or ({"input", "output"} <= names and "epoch" not in names),
        "inspect": {"input", "target"} <= names,
        "table": any(field_name(name) == "question" for name in names),
    }
    claims = [name for name, is_shown in shows.items() if is_shown]
    return next(iter(claims), "") if len(set(claims) - {"table"}) <= 1 else ""
