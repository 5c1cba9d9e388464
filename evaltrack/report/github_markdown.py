"""GitHub-flavoured Markdown out of foreign text: inert, linked only where a link is safe, and below a size limit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from evaltrack.report.run.markdown import plain
from evaltrack.report.word_diff import Piece
from evaltrack.report.words import clip

BREAK = "&#8203;"
"""A zero-width space. GitHub looks for mentions and references once Markdown is rendered, when backslashes are gone."""

_TAGS = {"same": ("", ""), "removed": ("<del>", "</del>"), "added": ("<ins>", "</ins>")}
_REFERENCE = re.compile(r"#|(?<![^\W_])GH(?=\\?-)", re.IGNORECASE)
_LINK = re.compile(r"@|:(?=//)|(?<![^\W_])www(?=\\?\.)", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>\\]+", re.IGNORECASE)


def inert(text: str | None, limit: int = 160) -> str:
    """Foreign text on one line, in which GitHub sees no markup, link, mention, reference, or formula."""
    escaped = re.sub(r"^(\d+)\.", r"\1\\.", plain(clip(text, limit), limit))  # else it begins a list
    return _unlinked(_REFERENCE.sub(rf"\g<0>{BREAK}", escaped))


def code(text: str | None, limit: int = 160) -> str:
    """Foreign text as code, also inside a table. GitHub looks for no references there, so ids can stay as they are."""
    escaped = _unlinked(plain(clip(text, limit), limit))
    return f"<code>{escaped}</code>" if escaped else ""


def raw_html(text: str, limit: int = 300) -> str:
    """Foreign text inside an HTML block of the page, where Markdown is not read."""
    return _unlinked(_REFERENCE.sub(rf"\g<0>{BREAK}", escape(clip(text, limit), quote=False)))


def _unlinked(escaped: str) -> str:
    """What makes a link, a mention or a formula even where it is escaped, broken up."""
    return _LINK.sub(rf"\g<0>{BREAK}", escaped).replace("$", "<span>$</span>")


def sentence(text: str, limit: int = 300) -> str:
    """A sentence of ours around foreign names in backticks: the names as code, all of it inert."""
    parts = clip(text, limit).split("`")
    if len(parts) % 2 == 0:  # a name holds a backtick itself, or was cut off
        return inert(text, limit)
    return "".join(code(part, limit) if place % 2 else _spaced(part) for place, part in enumerate(parts))


def _spaced(text: str) -> str:
    """Inert, with the spaces at both ends that `inert` takes away."""
    before = " " if text[:1].isspace() else ""
    after = " " if text[1:] and text[-1].isspace() else ""
    return f"{before}{inert(text, 300)}{after}"


def address(url: str | None, words: str) -> str:
    """A foreign address behind a space: linked if it is one of the web, else as code; empty where there is none."""
    if not url:
        return ""
    linked = link(words, url)
    return f" ({linked if linked != words else code(url, 200)})"


def link(words: str, url: str | None) -> str:
    """`words`, which are Markdown, linked to a foreign address if that is one of the web; else alone."""
    if url is None or len(url) > 2000 or not url.isprintable() or not _URL.fullmatch(url):
        return words
    return f"[{words}](<{url.replace('&', '&amp;').replace('|', '%7C').replace('`', '%60').replace('##', '#%23')}>)"


def diff_markdown(pieces: Iterable[Piece]) -> str:
    """A word diff, what was removed struck out and what was added underlined."""
    parts = []
    for kind, text in pieces:
        opening, closing = _TAGS[kind]
        words = inert(text, 500) or "\N{REPLACEMENT CHARACTER}"
        before, after = (" " if end.isspace() else "" for end in (text[:1], text[-1:]))
        parts.append(f"{before}{opening}{words}{closing}{after}")
    return "".join(parts).strip()


class Page:
    """Blocks of Markdown that together stay below a number of bytes. A block that does not fit is not added."""

    def __init__(self, limit: int) -> None:
        self._blocks: list[str] = []
        self.room = limit - 1

    def add(self, block: str, reserve: int = 0) -> bool:
        """Add the block with an end of line, unless fewer than `reserve` bytes would remain; whether it was added."""
        size = len(block.encode()) + 1
        if size + reserve > self.room:
            return False
        self._blocks.append(block)
        self.room -= size
        return True

    def __str__(self) -> str:
        return "".join(f"{block}\n" for block in self._blocks)
