"""The ids and texts of a corpus, to look up what a foreign set expects."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError
from evaltrack.golden.corpus.folder import read_corpus
from evaltrack.golden.words import plain_form
from evaltrack.records.base import as_key
from evaltrack.records.json_text import InvalidJsonError, parsed

MAX_LINE_BYTES = 8 << 20
"""Of one passage of a corpus."""

ID_KEYS = ("_id", "id", "doc_id", "docno", "chunk_id")
TEXT_KEYS = ("text", "contents", "content")


class CorpusIds:
    """The ids of all passages, and which passage has a given text; texts are held as digests of 8 bytes."""

    def __init__(self, path: Path) -> None:
        """Read a folder of pages, or a file of passages (`_id`, `text`): `.jsonl`, `.jsonl.gz` or `.parquet`.

        Raises:
            GoldenError: lines are no passages.
            UsageError: the folder holds no pages.
        """
        self.path = path
        self.ids: set[str] = set()
        self._by_text: dict[bytes, str] = {}
        for key, text in _passages(path):
            self.ids.add(key)
            self._by_text.setdefault(_digest(text), key)
        if not self.ids:
            raise GoldenError([f"{path}: holds no passages; write one JSON object a line, with `_id` and `text`"])
        self._loose: dict[str, str] | None = None

    def of_text(self, text: str) -> str | None:
        """The id of the passage with this text, whatever its spaces; None where there is none."""
        return self._by_text.get(_digest(text))

    def nearest(self, key: str) -> str | None:
        """An id that differs from `key` in its form alone."""
        if self._loose is None:
            self._loose = {plain_form(key): key for key in self.ids}
        return self._loose.get(plain_form(key))


def _digest(text: str) -> bytes:
    return blake2b(" ".join(text.split()).encode("utf-8", "replace"), digest_size=8).digest()


def _passages(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        yield from ((chunk.id, chunk.text) for chunk in read_corpus(path))
        return
    problems = list[str]()
    try:
        for place, value in _rows(path) if path.suffix.lower() == ".parquet" else _lines(path):
            passage = value if isinstance(value, ValueError) else _passage(value)
            if isinstance(passage, ValueError):
                problems.append(f"{place}: {passage}")
            else:
                yield passage
    except (OSError, EOFError) as error:
        raise GoldenError([f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"]) from None
    if problems:
        raise GoldenError(problems)


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows of a table, such as AutoRAG's `corpus.parquet` (`doc_id`, `contents`)."""
    from evaltrack.golden.importing.table import read_rows

    return read_rows(path)


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for number, raw in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), start=1):
            if len(raw) > MAX_LINE_BYTES:
                raise GoldenError(
                    [f"{path}:{number}: is longer than {MAX_LINE_BYTES:,} bytes; write one passage a line"]
                )
            if raw.strip():
                try:
                    yield f"{path}:{number}", parsed(raw.removeprefix(b"\xef\xbb\xbf"))
                except InvalidJsonError as error:
                    yield f"{path}:{number}", error


def _passage(value: Any) -> tuple[str, str] | ValueError:
    keys = [key for name in ID_KEYS if isinstance(value, dict) and isinstance(key := as_key(value.get(name)), str)]
    if not keys:
        return ValueError(f"has no id; write an object with `_id` (or {', '.join(ID_KEYS[1:])}) and `text`")
    return keys[0], next((str(value[name]) for name in TEXT_KEYS if isinstance(value.get(name), str)), "")
