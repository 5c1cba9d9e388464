"""Reads an HTML page as a title and sections of Markdown-like text, each with the page's own id for links.

The text is taken from `<main>`, else from the element with that role, the only `<article>`, or the body. Navigation,
scripts, styles and the links of headings to themselves are left out. The first `<h1>` is the title, else
`<title>`. Each further `<h1>` and each `<h2>` starts a section; links to it use the id that the page gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from evaltrack.golden.corpus import Page, Section

DROPPED = (
    "script, style, template, noscript, iframe, object, svg, canvas, audio, video, dialog, nav, footer, button, select,"
    "textarea, [hidden], [aria-hidden=true], [role=navigation], [role=banner], [role=search], [role=contentinfo],"
    "header:not(:has(h1))"
)
"""CSS selectors of parts that are not text of the page."""

_BLOCKS = (
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure form header "
    "hr html li main menu ol p section summary table tbody td tfoot th thead tr ul"
)
BLOCKS = frozenset(_BLOCKS.split())
HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])

BREAK, ITEM, WHOLE = "\0", "\1", "\2"
"""Signs in a text: the border of a block, the beginning of a list item, and of a block that is laid out already."""


def read_html(text: str, name: str) -> Page:
    """Return the page in an HTML file; `name` (of the file) is the title if the page has none."""
    document = LexborHTMLParser(text)
    if document.body is None:
        return Page(name, ())
    for node in document.css(DROPPED):
        node.decompose()
    articles = document.css("article")
    content = document.css_first("main") or document.css_first("[role=main]")
    content = content or (articles[0] if len(articles) == 1 else document.body)
    title, heading, anchor = "", "", ""
    sections, pieces = list[Section](), list[str]()
    for piece in _pieces(content):
        if isinstance(piece, str):
            pieces.append(piece)
        elif piece.tag == "h1" and not title:
            title = _words(piece)
            pieces.append(BREAK)
        elif piece.tag in ("h1", "h2"):
            sections.append(Section(heading, _laid_out(pieces), anchor))
            heading, anchor, pieces = _words(piece), _anchor(piece), []
        else:
            pieces.append(BREAK + WHOLE + _whole(piece) + BREAK)
    sections.append(Section(heading, _laid_out(pieces), anchor))
    named = document.css_first("title")
    return Page(title or (_words(named) if named else "") or name, tuple(sections))


def _pieces(root: LexborNode) -> Iterator[str | LexborNode]:
    """Yield the text below a node with `BREAK` and `ITEM`, and headings, code and tables as nodes."""
    stack: list[str | LexborNode] = [*reversed(list(root.iter(include_text=True)))]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif node.is_text_node:
            yield re.sub(r"\s+", " ", _text(node))
        elif node.tag == "br":
            yield "\n"
        elif node.tag == "img":
            yield f" {node.attributes.get('alt') or ''} "
        elif node.tag in HEADINGS or node.tag == "pre" or (node.tag == "table" and not _is_layout(node)):
            yield node
        else:
            border = BREAK if node.tag in BLOCKS else ""
            begin = border + ITEM if node.tag == "li" else border
            stack += [border, *reversed(list(node.iter(include_text=True))), begin]


def _laid_out(pieces: Iterable[str]) -> str:
    """Return the text of pieces: an empty line between blocks, and none between list items."""
    text, before, is_item = "", "", False
    for part in "".join(pieces).split(BREAK):
        is_item |= ITEM in part
        lines = (" ".join(line.split()) for line in part.replace(ITEM, "").split("\n"))
        block = part.removeprefix(WHOLE) if part.startswith(WHOLE) else "\n".join(filter(None, lines))
        if is_item and block and not part.startswith(WHOLE):
            block, is_item = f"- {block}", False
        if block:
            joint = "\n" if before.startswith("- ") and block.startswith("- ") else "\n\n"
            text += (joint if text else "") + block
            before = block
    return text


def _whole(node: LexborNode) -> str:
    """Return a heading, a table or code as Markdown."""
    if node.tag in HEADINGS:
        return f"{'#' * int(node.tag[1])} {_words(node)}"
    if node.tag == "table":
        return "\n".join(_rows(node))
    code = node.text()
    fence = "`" * max((len(each) + 1 for each in re.findall("`{3,}", code)), default=3)
    return f"{fence}\n{code.strip(chr(10)).rstrip()}\n{fence}"


def _text(node: LexborNode) -> str:
    """Return the text of a node; empty for a link's sign, such as the `¶` of headings that link to themselves."""
    text, parent = node.text_content or "", node.parent
    return "" if parent is not None and parent.tag == "a" and not re.search(r"\w", text) else text


def _words(node: LexborNode) -> str:
    """Return the text of a heading or a cell in one line."""
    pieces = (each if isinstance(each, str) else f" {_words(each)} " for each in _pieces(node))
    return " ".join("".join(pieces).replace(BREAK, " ").replace(ITEM, " ").split())


def _anchor(heading: LexborNode) -> str:
    """Return the id for links to a heading: its own, one inside it, or the id of the section that it opens."""
    named = heading if heading.attributes.get("id") else heading.css_first("[id]")
    parent, before = heading.parent, heading.prev
    while before is not None and before.is_text_node and not (before.text_content or "").strip():
        before = before.prev
    if named is None and before is None:
        named = parent
    return (named.attributes.get("id") if named is not None else "") or ""


def _is_layout(table: LexborNode) -> bool:
    """Return True if a table holds content that does not fit a text row: headings, code, or another table."""
    return table.css_first("h1, h2, h3, h4, h5, h6, pre") is not None or len(table.css("table")) > 1


def _rows(table: LexborNode) -> Iterator[str]:
    for row in table.css("caption, tr"):
        if row.tag == "caption":
            yield _words(row)
        elif cells := [_words(cell) for cell in row.css("td, th")]:
            yield f"| {' | '.join(cells)} |"
