"""Reads an HTML page as a title and sections of Markdown-like text, each with the page's own id for links.

The text is taken from `<main>`, else from the element with that role, the only `<article>`, or the body. Navigation,
scripts, styles and the links of headings to themselves are left out. The first `<h1>` is the title, else
`<title>`. Each further `<h1>` and each `<h2>` starts a section; links to it use the id that the page gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from evaltrack.golden.corpus.chunkers import Page, PageError, Section

MAX_NESTING = 1_000
"""Maximum depth of nested elements; the parser's time grows with the square of the depth."""

DROPPED = (
    "script, style, template, noscript, iframe, object, svg, canvas, audio, video, dialog, nav, footer, button, select,"
    "textarea, [hidden], [aria-hidden=true], [role=navigation], [role=banner], [role=search], [role=contentinfo],"
    "header:not(:has(h1))"
)
"""CSS selectors of parts that are not text of the page."""

OPEN_AT_WILL = (
    "area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody tfoot colgroup "
    "caption option optgroup rp rt html head body"
)
"""Elements that need no end tag and so do not add to the depth."""

_BLOCKS = (
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure form header "
    "hr html li main menu ol p section summary table tbody td tfoot th thead tr ul"
)
BLOCKS = frozenset(_BLOCKS.split())
HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}


def read_html(text: str, name: str) -> Page:
    """Return the page in an HTML file; `name` (of the file) is the title if the page has none.

    Raises:
        PageError: elements are nested too deeply.
    """
    if _nesting(text) > MAX_NESTING:
        raise PageError(f"its elements are nested deeper than {MAX_NESTING:,}; correct or remove it")
    document = LexborHTMLParser(text)
    if document.body is None:
        return Page(name, ())
    for node in document.css(DROPPED):
        node.decompose()
    title, articles = document.css_first("title"), document.css("article")
    content = document.css_first("main") or document.css_first("[role=main]")
    writer = _Writer()
    sections = tuple(writer.sections(content or (articles[0] if len(articles) == 1 else document.body)))
    return Page(writer.title or (_words(title) if title else "") or name, sections)


def _nesting(text: str) -> int:
    """Return an upper bound of the depth of nested elements."""
    depth, deepest, at_will = 0, 0, frozenset(OPEN_AT_WILL.split())
    for end, tag in re.findall(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)", text):
        if tag.lower() not in at_will:
            depth = max(depth - 1, 0) if end else depth + 1
            deepest = max(deepest, depth)
    return deepest


class _Writer:
    """Writes the text below a node, section by section."""

    def __init__(self) -> None:
        self.title = ""
        self._heading, self._anchor = "", ""
        self._blocks: list[str] = []
        self._line: list[str] = []
        self._sign = ""

    def sections(self, root: LexborNode) -> Iterator[Section]:
        """Yield the sections in their order, the lead first."""
        stack: list[LexborNode | None] = [root]
        while stack:
            node = stack.pop()
            if node is None:
                self._end_block()
            elif HEADINGS.get(node.tag or "", 3) <= 2:
                yield from self._start_section(node)
            elif not self._wrote_whole(node):
                if node.tag in BLOCKS:
                    self._end_block()
                    self._sign = "- " if node.tag == "li" else self._sign
                    stack.append(None)
                stack.extend(reversed(list(node.iter(include_text=True))))
        yield self._section()

    def _start_section(self, node: LexborNode) -> Iterator[Section]:
        if not self.title and node.tag == "h1":
            self.title = _words(node)
            self._end_block()
            return
        yield self._section()
        self._heading, self._anchor, self._blocks = _words(node), _anchor(node), []

    def _section(self) -> Section:
        self._end_block()
        return Section(self._heading, _joined(self._blocks), self._anchor)

    def _wrote_whole(self, node: LexborNode) -> bool:
        """Write a node with everything in it; return False if its children must be written one by one."""
        tag = node.tag or ""
        if node.is_text_node:
            self._line.append(re.sub(r"\s+", " ", _text(node)))
        elif node.is_comment_node:
            pass
        elif tag == "br":
            self._line.append("\n")
        elif tag == "img":
            self._line.append(f" {node.attributes.get('alt') or ''} ")
        elif tag in HEADINGS:
            self._add_block(f"{'#' * HEADINGS[tag]} {_words(node)}")
        elif tag == "pre":
            self._add_block(_fenced(node.text()))
        elif tag == "table" and not _is_layout(node):
            self._add_block("\n".join(_rows(node)))
        else:
            return False
        return True

    def _end_block(self) -> None:
        lines = (" ".join(line.split()) for line in "".join(self._line).split("\n"))
        if text := "\n".join(line for line in lines if line):
            self._blocks.append(self._sign + text)
            self._sign = ""
        self._line = []

    def _add_block(self, text: str) -> None:
        self._end_block()
        self._blocks.append(text)


def _joined(blocks: list[str]) -> str:
    """Join blocks with an empty line between them, and list items without one."""
    text = ""
    for before, block in zip(["", *blocks], blocks, strict=False):
        joint = "\n" if before.startswith("- ") and block.startswith("- ") else "\n\n"
        text += (joint if text else "") + block
    return text


def _text(node: LexborNode) -> str:
    """Return the text of a node; empty for a link's sign, such as the `¶` of headings that link to themselves."""
    text, parent = node.text_content or "", node.parent
    return "" if parent is not None and parent.tag == "a" and not re.search(r"\w", text) else text


def _words(node: LexborNode) -> str:
    """Return the text of a heading or a cell in one line."""
    parts = []
    for each in node.traverse(include_text=True):
        if each.is_text_node:
            parts.append(_text(each))
        elif each.tag in BLOCKS or each.tag == "br":
            parts.append(" ")
        elif each.tag == "img":
            parts.append(f" {each.attributes.get('alt') or ''} ")
    return " ".join("".join(parts).split())


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


def _fenced(code: str) -> str:
    longest = max((len(each) for each in re.findall("`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{code.strip(chr(10)).rstrip()}\n{fence}"
