"""A comparison into a file, in the form that its suffix names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from evaltrack.compare.comparison import Comparison
from evaltrack.errors import UsageError
from evaltrack.report.ci_commands import json_without_commands
from evaltrack.report.comparison.ci import comparison_junit
from evaltrack.report.comparison.json_form import comparison_json
from evaltrack.report.comparison.markdown import comparison_markdown
from evaltrack.report.comparison.terminal import comparison_text
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.system.files import check_result_file, write_result_file


def json_text(comparison: Comparison) -> str:
    """`comparison_json` as text that ends in a new line."""
    text = json.dumps(comparison_json(comparison), ensure_ascii=False, allow_nan=False, indent=2)
    return json_without_commands(text) + "\n"


FORMS: dict[str, Callable[[Comparison], str]] = {
    ".md": comparison_markdown,
    ".json": json_text,
    ".xml": comparison_junit,
    ".txt": comparison_text,
    ".html": comparison_html,
}
"""The rendering for each suffix: Markdown, JSON, JUnit XML, text as a terminal shows it, and a page."""


def form_of(path: Path | str) -> Callable[[Comparison], str]:
    """The rendering that the suffix of `path` names; call it before long work, so that a wrong one costs nothing.

    Raises:
        UsageError: the suffix names none; the message lists those that do.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMS:
        raise UsageError(f"{path}: cannot tell the form; end the name in one of {', '.join(FORMS)}")
    return FORMS[suffix]


def write_comparison(comparison: Comparison, path: Path | str) -> None:
    """Write the comparison to `path` in UTF-8, over what is there, in the form that its suffix names.

    Folders that are missing are made.

    Raises:
        UsageError: the suffix names no form, or the file can never be written.
        InconclusiveError: the disk is full or fails; what was there before is whole.
    """
    form = form_of(path)
    check_result_file(Path(path))
    write_result_file(Path(path), [form(comparison)])
