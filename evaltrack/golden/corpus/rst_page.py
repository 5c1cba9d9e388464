"""Reads a reStructuredText page as a title and sections: docutils finds the headings, and texts are kept as written.

This keeps Sphinx's directives and roles, which docutils does not know. docutils sees no directive at all: disabling
those that read files is not enough, because an option (`:parser:`) can import any module. The text inside a paragraph
is not interpreted either, so no role runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from docutils.frontend import get_default_settings
from docutils.nodes import Node, Text, section, system_message
from docutils.parsers.rst import Parser
from docutils.parsers.rst.states import Inliner
from docutils.utils import new_document

from evaltrack.golden.corpus import Page, PageError, Section

SAFE_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "syntax_highlight": "none",
    "report_level": 5,  # errors of Sphinx's directives do not matter
    "halt_level": 6,
    "warning_stream": False,
    "line_length_limit": sys.maxsize,  # limits the parsing of paragraphs, which are not parsed
}

DIRECTIVE_SIGN = re.compile("(?<!:)::(?!:)")
"""The sign of a directive of explicit markup. Replaced by another sign of the same width, it is a comment.

Literal blocks lose their sign too and are read as quotations, which hold no headings either.
"""

SEPARATORS = dict.fromkeys(map(ord, "\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")
"""Characters that docutils takes for line ends and this reader does not."""


def read_rst(text: str, name: str) -> Page:
    """Return the page in an RST file; `name` (of the file) is the title if the page has no heading.

    The first heading is the title. Headings of the first two levels start a section.

    Raises:
        PageError: docutils cannot read the page.
    """
    lines, starts, ends, words = text.split("\n"), [0], list[int](), [""]
    title = None
    for first, end, level, heading in _headings(text, lines):
        if title is None:
            title = heading
            lines[first:end] = [""] * (end - first)
        elif level <= 2:
            ends.append(first)
            starts.append(end)
            words.append(heading)
    bodies = (_without_targets("\n".join(lines[a:b])) for a, b in zip(starts, [*ends, len(lines)], strict=True))
    return Page(name if title is None else title, tuple(map(Section, words, bodies)))


def _headings(text: str, lines: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield first line, line after the last, level and text of each heading."""
    settings = get_default_settings(Parser())
    vars(settings).update(SAFE_SETTINGS)
    document = new_document("page", settings)
    try:
        Parser(inliner=_PlainInliner()).parse(DIRECTIVE_SIGN.sub("··", text.translate(SEPARATORS)), document)
    except Exception as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else f"{type(error).__name__}: {error}"
        raise PageError(f"docutils cannot read it: {why}; correct it, or rename it to .txt") from None
    levels = dict[Node | None, int]()
    for each in document.findall(section):
        levels[each] = levels.get(each.parent, 0) + 1
        underline = (each.line or 2) - 1
        over = underline > 1 and lines[underline - 2].rstrip() == lines[underline].rstrip()
        yield underline - 1 - over, underline + 1, levels[each], _words(lines[underline - 1])


class _PlainInliner(Inliner):
    """Keeps each paragraph as written."""

    def init_customizations(self, settings: object) -> None:
        plain = Inliner()  # it looks at the attributes of its exact class
        plain.init_customizations(settings)
        vars(self).update(vars(plain))

    def parse(self, text: str, *_: object) -> tuple[list[Node], list[system_message]]:
        return [Text(text)], []


def _words(heading: str) -> str:
    """Return a heading without markup: ``:func:`open <io.open>``` becomes `open`; backquotes are removed."""
    heading = re.sub(r":[\w:.+-]{1,100}:(?=`)", "", heading)
    return re.sub(r"`+([^`<]*[^`<\s])(?:\s*<[^`>]*>)?`+_*", r"\1", heading).strip()


def _without_targets(text: str) -> str:
    """Return a text without link targets, which readers of the page do not see."""
    return re.sub(r"^\.\. _(?:`[^`\n]+`|[^:\n]+):[ \t]*$", "", text, flags=re.MULTILINE).strip()
