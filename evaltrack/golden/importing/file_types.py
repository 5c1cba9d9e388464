"""Reads the rows of CSV, TSV, Excel, Parquet, JSON Lines, JSON and YAML, and the ids of a corpus, for an import."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from io import StringIO
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_core import from_json

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.corpus import read_corpus
from evaltrack.golden.file import MAX_ARRAY_BYTES, array_entries, check_file, line_entries
from evaltrack.golden.importing.values import is_empty, plain, shown
from evaltrack.records.base import as_key
from evaltrack.records.json_text import InvalidJsonError, kind_of, parsed

LISTS = ("tests", "samples", "rows", "examples", "data.examples")
"""Keys of the list of rows in an object; else its first list of objects is used."""

Row: TypeAlias = tuple[str, dict[str, Any] | ValueError]
"""A place (`mine.csv:7`), and the row by column, or the error that says why it is no row."""

Rows: TypeAlias = Iterator[Row]


def read_rows(path: Path, encoding: str = "") -> Rows:
    """Yield the rows of a file in the format of its suffix.

    Raises:
        GoldenError: the file cannot be read, or its suffix is not supported.
    """
    check_file(path)
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise GoldenError([f"{path}: unknown format; the name must end in one of {', '.join(READERS)}"])
    try:
        for place, value in read(path, encoding):
            is_row = isinstance(value, dict | ValueError)
            yield place, value if is_row else ValueError(f"is {kind_of(value)}; a row is a JSON object")
    except OSError as error:
        raise GoldenError([f"{path}: cannot be read: {error.strerror or error}"]) from None


def read_yaml(path: Path) -> Any:
    """Return the one document of a YAML file; plain words follow YAML 1.2 (`yes` and `2024-01-01` are text).

    Raises:
        GoldenError: it is too large, no YAML, or nested without end.
    """
    import yaml

    try:
        return plain(yaml.load(_bytes(path), _yaml_loader()))  # noqa: S506 - made from the safe loader # nosec B506
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise GoldenError([f"{path}{line}: is not YAML: {error.problem or error.context}"]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise GoldenError([f"{path}: cannot be read as YAML: {error}"]) from None
    except RecursionError:
        raise GoldenError([f"{path}: cannot be read as YAML: it is nested too deeply"]) from None


def _yaml_loader() -> Any:
    """Return PyYAML's safe loader with JSON's rules for plain words."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {"<": yaml.SafeLoader.yaml_implicit_resolvers["<"]}  # noqa: RUF012 - PyYAML's own

    def word(_: Any, node: Any) -> Any:
        if node.style is None and node.value in ("", "~"):
            return None
        with suppress(ValueError):
            return node.value if node.style else from_json(node.value.lower(), allow_inf_nan=False)
        return node.value

    Loader.add_constructor("tag:yaml.org,2002:str", word)
    return Loader


def _bytes(path: Path) -> bytes:
    check_file(path)
    if path.stat().st_size > MAX_ARRAY_BYTES:
        raise GoldenError([f"{path}: is larger than {MAX_ARRAY_BYTES:,} bytes; split it, or write it as .jsonl"])
    return path.read_bytes()


def read_text(path: Path, encoding: str = "") -> str:
    """Read a text file in the given encoding, else that of its byte-order mark, else UTF-8.

    Raises:
        GoldenError: the file is too large, or has another encoding.
    """
    raw = _bytes(path)
    name = encoding or ("utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    try:
        return raw.decode(name)
    except LookupError:
        raise GoldenError([f"encoding: there is no `{shown(encoding)}`; write e.g. utf-8 or cp1252"]) from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        cure = "name its encoding with `encoding=`, e.g. cp1252"
        raise GoldenError([f"{path}:{line}: cannot be read as {name.removesuffix('-sig')}; {cure}"]) from None


def _json_lines(path: Path, _: str) -> Iterator[tuple[str, Any]]:
    return ((f"{path}:{number}", value) for number, value in line_entries(path))


def _items(path: Path, _: str) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a JSON file (with NaN, as some tools write it) or YAML file: its array, or a list in it."""
    import jmespath

    is_json = path.suffix.lower() == ".json"
    try:
        value = parsed(_bytes(path), allow_nan=True, may_repeat=True) if is_json else read_yaml(path)
    except InvalidJsonError as error:
        raise GoldenError([f"{path}: {error}"]) from None
    if isinstance(value, list) and is_json:
        yield from ((f"{path}:{line}", item) for line, item in array_entries(path))
        return
    if isinstance(value, dict) and all(isinstance(value.get(name), dict) for name in ("queries", "relevant_docs")):
        for key, text in value["queries"].items():
            yield f"{path}: query {key}", {"id": key, "query": text, "relevant_docs": value["relevant_docs"].get(key)}
        return
    name, items = "item", value if isinstance(value, list) else []
    if isinstance(value, dict):
        lists = [(place, jmespath.search(place, value)) for place in LISTS] + list(value.items())
        name, items = next(((place, each) for place, each in lists if _is_list_of_objects(each)), ("", []))
    if not items:
        raise GoldenError([f"{path}: holds no list of objects; write one"])
    for number, item in enumerate(items, start=1):
        yield f"{path}: {shown(name)}[{number}]", item


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _separated(path: Path, encoding: str) -> Iterator[tuple[str, Any]]:
    """Yield the lines of a CSV or TSV with a header; a CSV's separator is the most frequent one in its header."""
    text = read_text(path, encoding)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=text.partition("\n")[0].count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = list[tuple[str, list[str]]]()
    try:
        names = _header(path, next(reader, []))
        line = reader.line_num
        for cells in reader:
            place, line = f"{path}:{line + 1}", reader.line_num
            if any(map(str.strip, cells)):
                rows.append((place, cells))
    except csv.Error as error:
        cure = "put cells with separators, quotes or breaks in quotes"
        raise GoldenError([f"{path}:{reader.line_num}: is not CSV: {error}; {cure}"]) from None
    floats = {at for at, cells in enumerate(zip_longest(*(cells for _, cells in rows))) if _are_floats(cells)}
    for place, cells in rows:
        values = [float(each) if at in floats and each.strip() else each for at, each in enumerate(cells)]
        yield place, _cells(names, values)


def _are_floats(cells: Iterable[str | None]) -> bool:
    """Return True if a column holds whole numbers as `7.0`, as tools write them if one of its cells is empty."""
    texts = [(cell or "").strip() for cell in cells]
    return "" in texts and all(re.fullmatch(r"-?\d+\.0", text) for text in texts if text)


def _header(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip().removeprefix("\ufeff") for cell in cells]
    twice = {name for name in names if name and names.count(name) > 1}
    if not any(names):
        raise GoldenError([f"{path}:1: holds no header; write the names of the columns in its first line"])
    if twice:
        raise GoldenError([f"{path}:1: two columns are called `{shown(min(twice))}`; rename one"])
    return names


def _cells(names: list[str], cells: list[Any]) -> dict[str, Any] | ValueError:
    if len(cells) > len(names) and not all(map(is_empty, cells[len(names) :])):
        return ValueError(
            f"has {len(cells)} cells, but the header has {len(names)}; put cells with separators in quotes"
        )
    return {name: cell for name, cell in zip(names, cells, strict=False) if name}


def _excel(path: Path, _: str) -> Iterator[tuple[str, Any]]:
    """Yield the rows of the first sheet, with the values of formulas."""
    try:
        import openpyxl
    except ImportError:
        raise UsageError(
            "Excel files need the package openpyxl; install it (pip install openpyxl), or save the sheet as CSV"
        ) from None
    try:
        sheet = openpyxl.load_workbook(path, read_only=True, data_only=True).worksheets[0]
        sheet.reset_dimensions()
        header, *rows = list(sheet.iter_rows()) or [()]
    except Exception as error:  # noqa: BLE001 - a damaged workbook raises whatever its parts raise
        raise _damaged(path, error, "an Excel workbook") from None
    names = _header(path, ["" if is_empty(cell.value) else str(cell.value) for cell in header])
    for number, row in enumerate(rows, start=2):
        values = [cell.value for cell in row]
        errors = [f"{cell.coordinate} holds the error {cell.value}" for cell in row if cell.data_type == "e"]
        if errors:
            yield f"{path}:{number}", ValueError(f"cell {errors[0]}; correct its formula")
        elif not all(map(is_empty, values)):
            yield f"{path}:{number}", _cells(names, [*values, *[None] * (len(names) - len(values))])


def _parquet(path: Path, _: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the rows of a Parquet file; lists and objects are kept."""
    import pyarrow
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            rows = chain.from_iterable(batch.to_pylist() for batch in file.iter_batches(batch_size=1000))
            for number, row in enumerate(rows, start=1):
                yield f"{path}: row {number}", row
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error, "Parquet") from None


def _damaged(path: Path, error: Exception, what: str) -> GoldenError:
    return GoldenError([f"{path}: cannot be read as {what}: {str(error)[:200] or type(error).__name__}"])


READERS: Mapping[str, Callable[[Path, str], Iterator[tuple[str, Any]]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _items,
    ".csv": _separated,
    ".tsv": _separated,
    ".xlsx": _excel,
    ".parquet": _parquet,
    ".yaml": _items,
    ".yml": _items,
}
"""The reader for each suffix."""


ID_KEYS = ("_id", "id", "doc_id", "docno", "chunk_id")
PASSAGE_KEYS = ("text", "contents", "content")


class CorpusIds:
    """The ids of all passages of a corpus, and a lookup by text."""

    def __init__(self, path: Path) -> None:
        """Read a folder of pages, or a table of passages (`_id`, `text`), such as `.jsonl` or `.parquet`.

        Raises:
            GoldenError: lines are not passages.
            UsageError: the folder holds no pages.
        """
        self.ids: set[str] = set()
        self._by_text: dict[str, str] = {}
        for key, text in _passages(path):
            self.ids.add(key)
            self._by_text.setdefault(" ".join(text.split()), key)
        if not self.ids:
            raise GoldenError([f"{path}: holds no passages; write one JSON object a line, with `_id` and `text`"])

    def of_text(self, text: str) -> str | None:
        """Return the id of the passage with this text, ignoring whitespace; None if there is none."""
        return self._by_text.get(" ".join(text.split()))


def _passages(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        yield from ((chunk.id, chunk.text) for chunk in read_corpus(path))
        return
    problems = list[str]()
    for place, row in read_rows(path):
        keys = [as_key(row.get(name)) for name in ID_KEYS] if isinstance(row, dict) else []
        if isinstance(row, ValueError):
            problems.append(f"{place}: {row}")
        elif named := [key for key in keys if isinstance(key, str)]:
            yield named[0], next((row[name] for name in PASSAGE_KEYS if isinstance(row.get(name), str)), "")
        else:
            cure = f"write an object with `_id` (or {', '.join(ID_KEYS[1:])}) and `text`"
            problems.append(f"{place}: has no id; {cure}")
    if problems:
        raise GoldenError(problems)
