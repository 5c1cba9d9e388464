"""Foreign text in each form: on one line and bounded, without commands of CI runners, and inert in Markdown.

GitHub's runner and Azure's agent look at every line that a step prints. ``##[`` and ``##vso[`` begin a command wherever
they stand, ``::`` where a line begins. All of them are broken by a zero-width space, which people do not see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

BREAK = "\u200b"

_ANYWHERE = re.compile(r"##(?=\[|vso)", re.IGNORECASE)
_BEGINS_LINE = re.compile(r"(?:\A|(?<=[\r\n]))([^\S\r\n]*:)(?=:)")

SCANNED = 10_000
"""Characters of a foreign text that are looked at; no rendering shows as many."""


def clip(text: str | None, limit: int = 160) -> str:
    """Foreign text on one line, bounded; quick also for texts of megabytes."""
    text = text or ""
    if len(text) <= limit and text.isprintable():
        return without_commands(" ".join(text.split()))
    return one_line(text if len(text) <= SCANNED else text[:SCANNED] + "…", limit)


def one_line(text: str, limit: int = 160) -> str:
    """Foreign text on one line, bounded, without control characters or marks that reorder what is around them, and
    without commands of CI runners; of those the limit does not count the breaks.
    """
    line = "".join(c if c.isprintable() else " " for c in text.replace(BREAK, ""))
    line = " ".join(line.split())
    return without_commands(line if len(line) <= limit else line[: limit - 1] + "…")


def without_commands(text: str) -> str:
    """The text with every command that stands anywhere in a line broken."""
    return _ANYWHERE.sub(f"##{BREAK}", text) if "##" in text else text


def without_any_commands(text: str) -> str:
    """The same for whole lines: also what is a command only where a line begins."""
    commandless = without_commands(text)
    return _BEGINS_LINE.sub(rf"\1{BREAK}", commandless) if "::" in text else commandless


def json_without_commands(text: str) -> str:
    """JSON that reads back as the same data: a hash is written as its escape."""
    return _ANYWHERE.sub(r"#\\u0023", text) if "##" in text else text


def plain(text: str, limit: int = 160) -> str:
    """Foreign text as text: on one line, bounded, with everything Markdown or HTML would read escaped."""
    line = one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"([\\`*_{}\[\]()#+!|~:@-])", r"\\\1", line)
    return re.sub(r"^(\d+)\.", r"\1\\.", line)


def described(text: str, limit: int = 160) -> str:
    """As `plain`, for MLflow's descriptions, which show a backslash before a colon or an at sign, and make a link of
    what begins with ``www``.
    """
    line = re.sub(r"\\:(?=\s|$)", ":", plain(text, limit)).replace("\\:", "&#58;").replace("\\@", "&#64;")
    return re.sub(r"(?i)\b(www)\.", r"\1&#46;", line)


def within(lines: Iterable[str], limit: int, rest: str = "\n… more stands in the report\n") -> str:
    """The lines that fit, whole, and a last one that says so where some do not."""
    note = ""
    for line in lines:
        if len(note) + len(line) + 1 > limit - len(rest):
            return note + rest
        note += f"{line}\n"
    return note


# GitHub

UNSEEN = "&#8203;"
"""A zero-width space. GitHub looks for mentions and references once Markdown is rendered, when backslashes are gone."""

_MARKUP = re.compile(
    r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])|^[#=]|^[+-](?=[\s-]|$)|(?:(?<=^\d)|(?<=^\d\d)|(?<=^\d{3}))[.)](?=\s|$)"
)
_TAG = re.compile(r"<(?=[a-z/!?])|^>|&(?=[#\w])", re.IGNORECASE)
_REFERENCE = re.compile(r"#(?=\d)|(?<![^\W_])GH(?=-\d)", re.IGNORECASE)
_LINK = re.compile(r"(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|:(?=//)|(?<![^\W_])www(?=\.)", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>\\]+", re.IGNORECASE)


def inert(text: str | None, limit: int = 160) -> str:
    """Foreign text on one line, in which GitHub sees no markup, link, mention, reference, or formula."""
    return _unlinked(_REFERENCE.sub(rf"\g<0>{UNSEEN}", _escaped(clip(text, limit))))


def _escaped(line: str) -> str:
    """What Markdown or HTML would read, as text; marks that begin something at the start of a line alone only there."""
    return _TAG.sub(lambda found: escape(found[0]), _MARKUP.sub(r"\\\g<0>", line))


def _unlinked(escaped: str) -> str:
    """What makes a link, a mention or a formula even where it is escaped, broken up."""
    return _LINK.sub(rf"\g<0>{UNSEEN}", escaped).replace("$", "<span>$</span>")


def code(text: str | None, limit: int = 160) -> str:
    """Foreign text as code, also inside a table. GitHub looks for no references there, so ids can stay as they are."""
    line = clip(text, limit)
    if not line or not re.search(r"[`|$\\<]", line):
        return f"`{line}`" if line else ""
    return f"<code>{_unlinked(_escaped(line))}</code>"


def raw_html(text: str, limit: int = 300) -> str:
    """Foreign text inside an HTML block of the page, where Markdown is not read."""
    return _unlinked(_REFERENCE.sub(rf"\g<0>{UNSEEN}", escape(clip(text, limit), quote=False)))


def sentence(text: str, limit: int = 300) -> str:
    """A sentence of ours around foreign names in backticks: the names as code, all of it inert."""
    parts = clip(text, limit).split("`")
    if len(parts) % 2 == 0:  # a name holds a backtick itself, or was cut off
        return inert(text, limit)
    return "".join(code(part, limit) if place % 2 else spaced(part) for place, part in enumerate(parts))


def spaced(text: str) -> str:
    """Inert, with the spaces at both ends that `inert` takes away."""
    before, after = text[:1].isspace(), text[1:] and text[-1].isspace()
    return f"{' ' * before}{inert(text, 2_000)}{' ' * bool(after)}"


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
