"""TREC: topics (`<top>` blocks, XML, lines `id<tab>text`, or JSON Lines) and qrels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evaltrack.errors import GoldenError
from evaltrack.golden.entries import MAX_ARRAY_BYTES
from evaltrack.golden.exchange.fields import RowForm, drafts
from evaltrack.golden.exchange.judgements import HEADER, judged, read_judgements
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, bad_encoding, open_text, read_rows
from evaltrack.golden.exchange.trec_xml import xml_topics

FORM = RowForm(
    {
        **dict.fromkeys(("_id", "id", "qid", "query_id", "num", "number"), "id"),
        **dict.fromkeys(("text", "query", "title", "question"), "question"),
        "metadata": "metadata",
    }
)
TOPIC_FORM = RowForm({"num": "id", "title": "question"})

SAMPLE_LINES, SAMPLE_LENGTH = 20, 10_000
"""Lines, and characters of each, by which judgements are told from topics."""

_TOP = re.compile(r"<top>(.*?)(?:</top>|(?=<top>)|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?([A-Za-z]\w{0,30})>")
_LABEL = re.compile(r"^(?:Number|Topic|Title|Description|Narrative)\s*:\s*", re.IGNORECASE)


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """The topics with what was judged relevant of each.

    Raises:
        GoldenError: topics or judgements are missing, or lines are no judgements.
    """
    judgement_files = [path for path in files if is_judgements(path, settings)]
    topic_files = [path for path in files if path not in judgement_files]
    if not topic_files or not judgement_files:
        what = "topics: `<top>` blocks, XML, `id<tab>text` or JSON Lines" if judgement_files else "judgements (qrels)"
        raise GoldenError([f"{', '.join(map(str, files))}: none of these files holds {what}; name both"])
    grades = read_judgements(judgement_files, settings, notes)
    yield from judged(_topics(topic_files, settings, notes), grades, settings, notes)


def is_judgements(path: Path, settings: ImportSettings) -> bool:
    """Whether the first lines of a file are judgements: BEIR's header, or four columns with a grade.

    A line with one tab is a topic, even if its text has three words and ends in a number.
    """
    if has_beir_header(path, settings):
        return True
    lines = [line for line in _first_lines(path, settings) if line.strip() and not line.startswith("#")]
    return bool(lines) and all(map(_is_judgement, lines))


def has_beir_header(path: Path, settings: ImportSettings) -> bool:
    """Whether a file begins as BEIR's judgements do."""
    return any(tuple(line.strip().split("\t")) == HEADER for line in _first_lines(path, settings)[:1])


def _first_lines(path: Path, settings: ImportSettings) -> list[str]:
    """The first lines of a text; none of what is no text in this encoding. A line may be long."""
    with open_text(path, settings) as file:
        try:
            return [file.readline(SAMPLE_LENGTH) for _ in range(SAMPLE_LINES)]
        except UnicodeError:
            return []


def _is_judgement(line: str) -> bool:
    columns = line.split()
    return line.strip().count("\t") != 1 and len(columns) == 4 and columns[3].lstrip("+-").isdigit()


def _topics(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    for path in files:
        if path.suffix.lower() in (".jsonl", ".json", ".ndjson", ".parquet"):
            yield from drafts(read_rows(path, settings), FORM, settings, notes)
        elif _begins_with(path, "<topics", settings):
            yield from drafts(xml_topics(path), FORM, settings, notes)
        elif _begins_with(path, "<top>", settings):
            yield from drafts(_blocks(path, settings), TOPIC_FORM, settings, notes)
        else:
            yield from drafts(_lines(path, settings), TOPIC_FORM, settings, notes)


def _begins_with(path: Path, tag: str, settings: ImportSettings) -> bool:
    """Whether a tag stands in the first part of a file; `<topics` is none of `<top>`."""
    with open_text(path, settings) as file:
        try:
            return tag in file.read(SAMPLE_LENGTH).lower()
        except UnicodeError:  # XML says itself in which encoding it is
            pass
    with path.open("rb") as raw:
        return tag.encode() in raw.read(SAMPLE_LENGTH).lower()


def _lines(path: Path, settings: ImportSettings) -> Rows:
    with open_text(path, settings) as file:
        try:
            for number, line in enumerate(file, start=1):
                key, tab, text = line.strip("\r\n").partition("\t")
                if tab and key.strip():
                    yield f"{path}:{number}", {"num": key.strip(), "title": text.strip()}
                elif line.strip():
                    yield f"{path}:{number}", ValueError("is no topic; write the id, a tab, and the text")
        except UnicodeError as error:
            yield bad_encoding(path, error)


def _blocks(path: Path, settings: ImportSettings) -> Rows:
    if path.stat().st_size > MAX_ARRAY_BYTES:
        raise GoldenError([f"{path}: is larger than {MAX_ARRAY_BYTES:,} bytes; split it"])
    with open_text(path, settings) as file:
        try:
            text = file.read()
        except UnicodeError as error:
            place, problem = bad_encoding(path, error)
            raise GoldenError([f"{place}: {problem}"]) from None
    line, at = 1, 0
    for block in _TOP.finditer(text):
        line, at = line + text.count("\n", at, block.start()), block.start()
        yield f"{path}:{line}", dict(_fields(block[1]))


def _fields(block: str) -> Iterator[tuple[str, str]]:
    """The tags of a topic with their texts; most are not closed."""
    tags = list(_TAG.finditer(block))
    ends = [*(tag.start() for tag in tags[1:]), len(block)]
    for tag, end in zip(tags, ends, strict=True):
        text = _LABEL.sub("", " ".join(block[tag.end() : end].split()))
        if text and not tag[0].startswith("</"):
            yield tag[1].lower(), text
