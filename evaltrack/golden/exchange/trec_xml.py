"""TREC's topics in XML, as its tracks publish them since about 2010: `<topics><topic number="1"><query>…`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.errors import GoldenError
from evaltrack.golden.entries import MAX_ARRAY_BYTES
from evaltrack.golden.exchange.row_files import Rows

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NUMBERS = ("number", "num", "id", "qid")
"""Attributes of a topic, or elements in it, that hold its id."""


def xml_topics(path: Path) -> Rows:
    """The topics of a file, each as a row of its elements; a topic of text alone has it as `title`.

    Raises:
        GoldenError: it is no XML, is too large, or has a document type, with which a few lines unpack without end.
    """
    for number, topic in enumerate(_root(path).iter(), start=0):
        if _name(topic) == "topic":
            row = dict(_fields(topic))
            place = f"{path}: topic `{row['num']}`" if "num" in row else f"{path}: element {number}"
            yield place, row


def _root(path: Path) -> Element:
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    if path.stat().st_size > MAX_ARRAY_BYTES:
        raise GoldenError([f"{path}: is larger than {MAX_ARRAY_BYTES:,} bytes; split it"])
    try:
        root: Element = fromstring(path.read_bytes(), forbid_dtd=True)
    except DefusedXmlException:
        raise GoldenError([f"{path}: has a document type (<!DOCTYPE …>), which is not read; remove it"]) from None
    except (ParseError, ValueError, LookupError) as error:
        raise GoldenError([f"{path}: is not XML: {error}"]) from None
    return root


def _fields(topic: Element) -> Iterator[tuple[str, str]]:
    """The id of a topic, and the texts of its elements by their names; the first of a name counts."""
    elements = [] if (topic.text or "").strip() else list(topic)  # else markup inside of a text
    texts = {_name(each): text for each in reversed(elements) if (text := _text(each))}
    texts = dict(reversed(texts.items()))
    key = next((topic.attrib[name] for name in NUMBERS if topic.attrib.get(name)), None)
    key = key or next((texts.pop(name) for name in NUMBERS if name in texts), None)
    if key:
        yield "num", " ".join(key.split())
    yield from texts.items()
    if not texts and (text := _text(topic)):
        yield "title", text


def _name(element: Element) -> str:
    """The name of an element, without its namespace."""
    return str(element.tag).rpartition("}")[2].lower()


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())
