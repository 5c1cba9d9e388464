"""Reads a Markdown page (CommonMark, with front matter) as a title and sections.

The first `# Title` is the page's title, else the `title` of the front matter. Front matter is enclosed by two lines
of `---` and is left out. The highest level of headings below the title starts sections: `##`, or `###` if the page
has no `##`. Text in code is no heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from evaltrack.golden.corpus import Page, Section


def read_markdown(text: str, name: str) -> Page:
    """Return the page in a Markdown file; `name` (of the file) is the title if the page has none."""
    front = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
    if front:
        text = text[front.end() :]
    lines, headings = text.split("\n"), list(_headings(text))
    title = next((words for _, _, level, words in headings if level == 1), None)
    if title is None:
        title = (_front_title(front[1]) if front else "") or name
    for start, end, level, _ in headings:
        if level == 1:
            lines[start:end] = [""] * (end - start)
    highest = min((level for _, _, level, _ in headings if level > 1), default=2)
    sections = [(start, end, words) for start, end, level, words in headings if level == highest]
    starts = [0, *(end for _, end, _ in sections)]
    ends = [*(start for start, _, _ in sections), len(lines)]
    words = ["", *(words for *_, words in sections)]
    bodies = ("\n".join(lines[start:end]).strip() for start, end in zip(starts, ends, strict=True))
    return Page(title, tuple(map(Section, words, bodies)))


def _front_title(front: str) -> str:
    """Return the `title` of a front matter if it is a string, else an empty text. Its other entries are not parsed."""
    import yaml

    entry = re.search(r"^title[ \t]*:.*(?:\n[ \t]+.*)*", front, re.MULTILINE)
    with suppress(yaml.YAMLError):
        title = yaml.safe_load(entry[0])["title"] if entry else None
        return " ".join(title.split()) if isinstance(title, str) else ""
    return ""


def _headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield first line, line after the last, level and text of each heading outside of lists, quotations and code."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            start, end = token.map
            yield start, end, int(token.tag[1:]), inline.content.strip()
