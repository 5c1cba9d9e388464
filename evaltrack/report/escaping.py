"""Escapes untrusted text for CI logs, Markdown and MLflow's descriptions: one short line, no markup, no commands.

GitHub's runner and Azure's agent read every line that a step prints. ``##[`` and ``##vso[`` begin a command anywhere in
a line, ``::`` at its start. A zero-width space, which people do not see, breaks these commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape

BREAK = "\u200b"

_ANYWHERE = re.compile(r"##(?=\[|vso)", re.IGNORECASE)
_BEGINS_LINE = re.compile(r"(?:\A|(?<=[\r\n]))([^\S\r\n]*:)(?=:)")

SCANNED = 10_000
"""Characters of a foreign text that are read. No rendering shows as many."""


def one_line(text: str | None, limit: int = 160) -> str:
    """Return foreign text as one line of at most `limit` characters.

    Control characters and marks that reorder text are removed, and commands of CI runners are broken. The zero-width
    spaces that break commands do not count for the limit.
    """
    text = text or ""
    text = text if len(text) <= SCANNED else text[:SCANNED] + "…"
    line = "".join(c if c.isprintable() else " " for c in text.replace(BREAK, ""))
    line = " ".join(line.split())
    # not `cut`: each start of the command line imports this module, and would import all records with it
    return without_commands(line if len(line) <= limit else line[: limit - 1] + "…")


def without_commands(text: str) -> str:
    """Break every command that can begin anywhere in a line."""
    return _ANYWHERE.sub(f"##{BREAK}", text) if "##" in text else text


def without_any_commands(text: str) -> str:
    """Break every command in whole lines, also those that begin only at the start of a line."""
    commandless = without_commands(text)
    return _BEGINS_LINE.sub(rf"\1{BREAK}", commandless) if "::" in text else commandless


def json_without_commands(text: str) -> str:
    """Break commands in JSON: a hash becomes its escape, so that the data stays the same."""
    return _ANYWHERE.sub(r"#\\u0023", text) if "##" in text else text


def json_document(value: object) -> str:
    """Return a value as indented JSON without commands, which ends with a new line."""
    return json_without_commands(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)) + "\n"


def within(lines: Iterable[str], limit: int, rest: str = "\n… more in the report\n") -> str:
    """Join the lines that fit the limit. If some do not fit, `rest` is the last line."""
    note = ""
    for line in lines:
        if len(note) + len(line) + 1 > limit - len(rest):
            return note + rest
        note += f"{line}\n"
    return note


# Markdown

UNSEEN = "&#8203;"
"""A zero-width space. GitHub looks for mentions and references after it rendered Markdown and dropped backslashes.
MLflow shows a backslash before a colon, and makes links of addresses.
"""

_MARKUP = re.compile(
    r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])|^[#=]|^[+-](?=[\s-]|$)|(?:(?<=^\d)|(?<=^\d\d)|(?<=^\d{3}))[.)](?=\s|$)"
)
_TAG = re.compile(r"<(?=[a-z/!?])|^>|&(?=[#\w])", re.IGNORECASE)
_REFERENCE = re.compile(r"#(?=\d)|(?<![^\W_])GH(?=-\d)", re.IGNORECASE)
_LINK = re.compile(r"(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|:(?=//)|(?<![^\W_])www(?=\.)", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>\\]+", re.IGNORECASE)


def inert(text: str | None, limit: int = 160) -> str:
    """Return foreign text as one line, in which no renderer sees markup, a link, mention, reference, or formula."""
    return _unlinked(_REFERENCE.sub(rf"\g<0>{UNSEEN}", _escaped(one_line(text, limit))))


def _escaped(line: str) -> str:
    """Escape Markdown and HTML. Marks that work only at the start of a line are escaped only there."""
    return _TAG.sub(lambda found: escape(found[0]), _MARKUP.sub(r"\\\g<0>", line))


def _unlinked(escaped: str) -> str:
    """Break links, mentions and formulas, which work even if escaped."""
    return _LINK.sub(rf"\g<0>{UNSEEN}", escaped).replace("$", "<span>$</span>")


def code(text: str | None, limit: int = 160) -> str:
    """Return foreign text as code, also inside a table. GitHub finds no references in code, so ids need no escapes."""
    line = one_line(text, limit)
    if not line or not re.search(r"[`|$\\<]", line):
        return f"`{line}`" if line else ""
    return f"<code>{_unlinked(_escaped(line))}</code>"


def raw_html(text: str, limit: int = 300) -> str:
    """Return foreign text for an HTML block of the page, where Markdown is not parsed."""
    return _unlinked(_REFERENCE.sub(rf"\g<0>{UNSEEN}", escape(one_line(text, limit), quote=False)))


def sentence(text: str, limit: int = 800) -> str:
    """Return a sentence of evaltrack, with foreign names in backticks as code. All of it is inert."""
    parts = one_line(text, limit).split("`")
    if len(parts) % 2 == 0:  # a name holds a backtick, or was cut
        return inert(text, limit)
    return "".join(code(part, limit) if place % 2 else spaced(part) for place, part in enumerate(parts))


def spaced(text: str) -> str:
    """Return `inert` text with its leading and trailing space."""
    before, after = text[:1].isspace(), text[1:] and text[-1].isspace()
    return f"{' ' * before}{inert(text, 3_000)}{' ' * bool(after)}"


def address(url: str | None, words: str) -> str:
    """Return a foreign address after a space: a link if it is a web address, else code; empty without an address."""
    if not url:
        return ""
    linked = link(words, url)
    return f" ({linked if linked != words else code(url, 200)})"


def link(words: str, url: str | None) -> str:
    """Return the Markdown `words`, linked if `url` is a web address."""
    if url is None or len(url) > 2000 or not url.isprintable() or not _URL.fullmatch(url):
        return words
    return f"[{words}](<{url.replace('&', '&amp;').replace('|', '%7C').replace('`', '%60').replace('##', '#%23')}>)"
