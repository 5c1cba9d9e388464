"""Loads Jinja templates, each output format with its own escaping, and prints those for the terminal, wrapped.

A line of a template for a terminal is ``style¦beginning¦text``. On a terminal the text wraps below itself. A line whose
style has the word ``copy`` never wraps. No line begins with a command of a CI runner.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from evaltrack.records.base import count, first_of, verb
from evaltrack.report import escaping
from evaltrack.report.escaping import BREAK, one_line, spaced, without_any_commands

if TYPE_CHECKING:
    from jinja2 import Environment


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


class Ours(str):
    """Text of evaltrack, which templates insert without escaping."""

    __slots__ = ()


def environment(escaped: Callable[[str], str]) -> Environment:
    """Return the templates of one text format. Each value except `Ours` is escaped; `clip` bounds it before."""
    return loaded(finalize=lambda value: value if isinstance(value, Ours) else escaped(str(value)))


def loaded(package: str = "evaltrack.report", **escaping: Any) -> Environment:
    """Return the templates of a package; `escaping` are the arguments of `Environment` that escape their values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(  # noqa: S701 - `escaping` does it # nosec B701
        loader=PackageLoader(package), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **escaping
    )
    made.filters |= {"amount": "{:,}".format, "clip": one_line, "count": count, "ours": Ours}
    made.globals |= helpers()
    made.filters["number"] = made.globals["number"]
    return made


@cache
def helpers() -> dict[str, Any]:
    """Return the functions and constants that templates of all formats may use."""
    from evaltrack.compare import change, culprits, differences, run_differences
    from evaltrack.metrics import rubric
    from evaltrack.records import row, run
    from evaltrack.report import comparison_words, words

    modules = (row, rubric, run, change, culprits, differences, run_differences, words, comparison_words)
    names = {name: value for module in modules for name, value in vars(module).items()}
    return names | {"first_of": first_of, "verb": verb, "say": say}


_plain = cache(partial(environment, str))


@cache
def markdown() -> Environment:
    """Return the Markdown templates: of comments on GitHub, of MLflow's descriptions, and of artifacts."""
    made = environment(spaced)
    names = ("address", "code", "link", "raw_html", "sentence")
    made.globals |= {name: _ours(getattr(escaping, name)) for name in names}
    return made


def _ours(function: Callable[..., str]) -> Callable[..., Ours]:
    """Wrap a function whose result is already escaped."""
    return lambda *given: Ours(function(*given))


def sentences(name: str, **fields: Any) -> list[str]:
    """Return the lines of a template that are not blank. Nothing in them is escaped."""
    return [line for line in _plain().get_template(name).render(fields).split("\n") if line.strip()]


class _Sentences:
    """The macros of the templates in `sentences` as functions. Each returns one line; nothing in it is escaped."""

    def __getattr__(self, name: str) -> Callable[..., str]:
        macro = _macros().get(name)
        if macro is None:
            raise AttributeError(name)
        return lambda *given: " ".join(macro(*given).split())


@cache
def _macros() -> dict[str, Callable[..., str]]:
    """Return the macros of the templates in `sentences` by name. They are cached: a large report has many sentences."""
    modules = (_plain().get_template(f"sentences/{file}.txt").module for file in ("run", "comparison", "gate"))
    return {name: macro for module in modules for name, macro in vars(module).items() if callable(macro)}


say = _Sentences()


@cache
def _terminal() -> Environment:
    return environment(lambda text: escape(_CONTROLS.sub(" ", text)))


Line = tuple[str, str, Text]
"""A line for a terminal: its style, its beginning, and its text."""


def print_template(
    console: Console, name: str, rooms: Sequence[int] = (0,), height: int = 0, width: int = 0, **fields: Any
) -> None:
    """Print the rendered template. `few` is the first of the `rooms` for which the lines fit the `height`.

    Lines wrap at `width`, or at the width of the terminal if it is 0.
    """
    template = _terminal().get_template(name)
    for room in rooms:
        text = template.render(columns=columns, table=table, few=room, **fields)
        lines = list(_wrapped(map(_parsed, filter(None, text.split("\n"))), console, width))
        if len(lines) <= height:
            break
    for line in lines:
        console.print(line, soft_wrap=True)


def printed(show: Callable[[Console], object], width: int) -> str:
    """Return what a function prints, without colours and blanks at the ends of lines."""
    out = io.StringIO()
    show(Console(file=out, width=width, force_terminal=False, color_system=None, legacy_windows=False))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def table(rows: Sequence[Sequence[str]], body: Sized) -> Ours:
    """Return the lines of a table for a template, its head first; empty without a body."""
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


def columns(rows: Iterable[Sequence[str]], left: Collection[int] = (0,)) -> list[list[str]]:
    """Return the rows with each cell padded to the width of its column. The columns `left` are left-aligned.

    Cells are never cut: a cut number is wrong.
    """
    lines = list(rows)
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return [
        [_padded(cell, width, left=place in left) for place, (cell, width) in enumerate(zip(row, widths, strict=True))]
        for row in lines
    ]


def _padded(cell: str, width: int, *, left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if left else blanks + cell
