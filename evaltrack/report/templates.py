"""The templates of texts, and how a terminal shows them. What is put into one is escaped in one place for each form.

A line of a template for a terminal is ``style¦beginning¦text``: on a terminal the text goes on below itself. A line
whose style has the word ``copy`` is never broken. No line begins with a command of a CI runner.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import cache
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from evaltrack.records.amount import count
from evaltrack.report.escaping import BREAK, clip, without_any_commands

if TYPE_CHECKING:
    from jinja2 import Environment


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


class Ours(str):
    """Text of a template or of ours, which is put in as it is."""

    __slots__ = ()


def environment(escaped: Callable[[str], str]) -> Environment:
    """The templates of one form: each value but `Ours` is escaped; `clip` bounds it before."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(  # noqa: S701 - no HTML; `finalize` escapes
        loader=PackageLoader("evaltrack.report"),
        finalize=lambda value: value if isinstance(value, Ours) else escaped(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"clip": clip, "count": count, "ours": Ours}
    return made


@cache
def _terminal() -> Environment:
    return environment(lambda text: escape(_CONTROLS.sub(" ", text)))


Line = tuple[str, str, Text]
"""A line for a terminal: its style, what it begins with, and its text."""


def print_template(
    console: Console, name: str, rooms: Sequence[int] = (0,), height: int = 0, width: int = 0, **fields: Any
) -> None:
    """Print what the template makes of the fields, with the first of the `rooms`, as `few`, that fits the `height`.

    Lines are broken at `width`, without one where a terminal ends.
    """
    template = _terminal().get_template(name)
    for room in rooms:
        text = template.render(columns=columns, table=table, few=room, **fields)
        lines = list(_wrapped(map(_parsed, filter(None, text.split("\n"))), console, width))
        if len(lines) <= height:
            break
    for line in lines:
        console.print(line, soft_wrap=True)


def print_lines(console: Console, lines: Iterable[tuple[str, str]]) -> None:
    """Print lines that are not empty, each with its style."""
    for line in _wrapped(((style, "", Text(text)) for style, text in lines if text), console, 0):
        console.print(line, soft_wrap=True)


def table(rows: Sequence[Sequence[str]], body: Sized) -> Ours:
    """The lines of a table in a template, its head first; nothing where it has no body."""
    lines = [escape(_CONTROLS.sub(" ", "  ".join(cells))) for cells in columns(rows)] if body else []
    return Ours("\n".join(f"copy{'' if place else ' dim'}¦¦{line}" for place, line in enumerate(lines)))


def _parsed(line: str) -> Line:
    style, head, marked = line.split("¦", 2)
    return style, head, Text.from_markup(marked, emoji=False)


def _wrapped(lines: Iterable[Line], console: Console, width: int) -> Iterator[Text]:
    for style, head, text in lines:
        kinds = style.split()
        text.style = " ".join(each for each in kinds if each != "copy")
        ends = min(console.width, width or console.width) if console.is_terminal else width
        room = max(ends - len(head), 20)
        for place, part in enumerate(text.wrap(console, room) if ends and "copy" not in kinds else [text]):
            part.rstrip()
            harmless = part if without_any_commands(part.plain) == part.plain else Text.assemble(BREAK, part)
            yield Text.assemble((head if place == 0 else " " * len(head), text.style), harmless)


def columns(rows: Iterable[Sequence[str]], left: int = 1) -> list[list[str]]:
    """The rows, each cell padded to the width of its column: the first ones to the left, others to the right.

    A number that is cut says nothing, so none is.
    """
    lines = list(rows)
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return [
        [_padded(cell, width, left=place < left) for place, (cell, width) in enumerate(zip(row, widths, strict=True))]
        for row in lines
    ]


def _padded(cell: str, width: int, *, left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if left else blanks + cell
