"""Markdown pages, read as CommonMark.

The first `# Title` is the page's title, else the `title` of the front matter, which stands between two lines of `---`
and is left out. The highest level of headings below the title starts sections: `##`, or `###` where the page has no
`##`. What stands in code is no heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from evaltrack.golden.corpus.chunkers import Page, Section

MAX_FRONT, MAX_DEPTH = 16 * 2**10, 16
"""Characters of a front matter in which its title is looked for, and how deep they may nest."""


def read_markdown(text: str, name: str) -> Page:
    """The page that a file called `name` holds; the name is the title where the page has none."""
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
    """The `title` of a front matter where it is a string, else nothing; what is no YAML behind it does not matter."""
    import yaml

    resolver: Any = yaml.resolver.Resolver()
    events = _top_level(yaml.parse(front[:MAX_FRONT], yaml.SafeLoader))
    try:
        for key, value in zip(events, events, strict=False):
            if getattr(key, "value", None) == "title" and isinstance(value, yaml.ScalarEvent):
                tag = value.tag or resolver.resolve(yaml.ScalarNode, value.value, value.implicit)
                value.value.encode()
                return " ".join(value.value.split()) if tag == "tag:yaml.org,2002:str" else ""
    except (yaml.YAMLError, ValueError, OverflowError):
        return ""
    return ""


def _top_level(events: Iterable[Any]) -> Iterator[Any]:
    """The events of keys and values of a mapping, in turn; none where the document is something else.

    No values are made of the events, so that a page may refer to itself; what follows deep nesting is not read, as
    PyYAML's time grows with the square of the depth.
    """
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.NodeEvent):
            if depth == 1:
                yield event
            elif depth > MAX_DEPTH or (depth == 0 and not isinstance(event, yaml.MappingStartEvent)):
                return
            depth += isinstance(event, yaml.CollectionStartEvent)


def _headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """First line, line after the last, level and words of each heading outside of lists, quotations and code."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            start, end = token.map
            yield start, end, int(token.tag[1:]), inline.content.strip()
