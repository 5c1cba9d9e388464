"""Markdown pages, read as CommonMark.

The first `# Title` is the page's title, and each `## Heading` starts a section. A front matter between two lines of
`---` is left out. What stands in code is no heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from evaltrack.golden.corpus.chunk import Page, Section


def read_markdown(text: str, name: str) -> Page:
    """The page that a file called `name` holds; the name is the title where the page has none."""
    if front := re.match(r"---\n.*?\n---\n", text, re.DOTALL):
        text = text[front.end() :]
    lines, headings = text.split("\n"), list(_headings(text))
    title = next((words for _, _, level, words in headings if level == 1), name)
    for start, end, level, _ in headings:
        if level == 1:
            lines[start:end] = [""] * (end - start)
    sections = [(start, end, words) for start, end, level, words in headings if level == 2]
    starts = [0, *(end for _, end, _ in sections)]
    ends = [*(start for start, _, _ in sections), len(lines)]
    words = ["", *(words for *_, words in sections)]
    bodies = ("\n".join(lines[start:end]).strip() for start, end in zip(starts, ends, strict=True))
    return Page(title, tuple(map(Section, words, bodies)))


def _headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """First line, line after the last, level and words of each heading outside of lists, quotations and code."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            start, end = token.map
            yield start, end, int(token.tag[1:]), inline.content.strip()
