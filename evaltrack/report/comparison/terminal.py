"""A comparison as text for a terminal: the verdict first. Rich leaves out colours where the output is not one.

No line begins with foreign text: a CI runner takes a line that begins with ``::`` as a command.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaltrack.compare.comparison import Change, Comparison
from evaltrack.report.comparison.counts import counts_words, flips_words, sections
from evaltrack.report.comparison.differences import difference_words
from evaltrack.report.comparison.group_words import group_cell, group_flips, group_regressed, group_words, shown_groups
from evaltrack.report.comparison.notes import note_words
from evaltrack.report.comparison.words import (
    answers,
    cause_summary,
    cause_words,
    change_words,
    clip,
    criteria_words,
    delta_words,
    dropped_words,
    interval_words,
    piece_words,
    reason_words,
    threshold_words,
    verdict_sentence,
)
from evaltrack.report.word_diff import condensed, word_diff
from evaltrack.report.words import metric_title, metric_value

SHOWN = 10
SHOWN_OTHERS = 3
"""Questions shown of those that got neither worse nor better."""

SHOWN_GROUPS = 20
DIFFS = 3
"""Flips whose answers are shown word by word."""

STYLES = {"ok": "bold green", "regression": "bold red", "unknown": "bold yellow"}
FATE_STYLES = {
    "broke": "bold red",
    "lost": "yellow",
    "lower score": "yellow",
    "fixed": "green",
    "higher score": "green",
}
MARKS = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
"""As wdiff writes them, so that they are seen without colours too."""


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Verdict and reasons, metrics, groups, then the questions that changed, those lost and flipped first."""
    _line(console, verdict_sentence(comparison), STYLES[comparison.verdict])
    if differences := difference_words(comparison):
        _line(console, f"What differs: {differences}")
    for reason in reason_words(comparison):
        _line(console, f"- {reason}")
    if summary := cause_summary(comparison):
        _line(console, summary)
    if comparison.metrics:
        console.print(_metrics(comparison))
    _line(console, counts_words(comparison))
    _line(console, flips_words(comparison))
    groups, names = shown_groups(comparison)
    if groups:
        console.print(_groups(comparison, names))
        _more(console, len(groups), SHOWN_GROUPS, "groups", len(groups))
    for pair in comparison.criteria:
        _line(console, criteria_words(pair), {True: "green", False: "bold red", None: "yellow"}[pair[1].met])
    for note in note_words(comparison):
        _line(console, note, "dim")
    _print_changes(comparison, console)
    if comparison.compare_link:
        _line(console, f"side by side in MLflow: {clip(comparison.compare_link, 1000)}")


def comparison_text(comparison: Comparison, width: int = 120) -> str:
    """The same as plain text, without colours."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=False, color_system=None, legacy_windows=False)
    print_comparison(comparison, console)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _more(console: Console, total: int, num_shown: int, noun: str, num_listed: int) -> None:
    if total > num_shown:
        where = "them all" if num_listed == total else f"the first {num_listed:,}"
        _line(console, f"  … and {total - num_shown:,} more {noun}; the JSON holds {where}", "dim")


def _metrics(comparison: Comparison) -> Table:
    table = _table("metric", "baseline", "candidate", "change", "95 % interval", "n", "tolerated", gap=1)
    for metric in comparison.metrics:
        cells = (
            metric_title(metric.name, comparison.candidate.signature.k),
            metric_value(metric.name, metric.baseline),
            metric_value(metric.name, metric.candidate),
            delta_words(metric),
            interval_words(metric),
            f"{metric.n:,}",
            threshold_words(metric),
        )
        table.add_row(*map(Text, cells), style="bold red" if metric.regressed else None)
    return table


def _groups(comparison: Comparison, names: Sequence[str]) -> Table:
    k = comparison.candidate.signature.k
    flips = ("flips",) if comparison.passing_compared else ()
    table = _table("group", "questions", *(metric_title(name, k) for name in names), *flips)
    for group in shown_groups(comparison)[0][:SHOWN_GROUPS]:
        cells = [f"{group.num_questions:,}", *(group_cell(group, name) for name in names)]
        cells += [group_flips(group)] if flips else []
        style = "red" if group_regressed(group) else None
        table.add_row(Text(group_words(group)), *map(Text, cells), style=style)
    return table


def _table(first: str, *others: str, gap: int = 2) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, gap, 0, 0))
    table.add_column(first, no_wrap=True, overflow="ellipsis", max_width=34)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _print_changes(comparison: Comparison, console: Console) -> None:
    for fate, title, changes, total in sections(comparison):
        _line(console, f"{title}: {total:,}", FATE_STYLES.get(fate, ""))
        limit = SHOWN if fate in FATE_STYLES else SHOWN_OTHERS
        for place, change in enumerate(changes[:limit]):
            _print_change(change, console, diff=fate == "broke" and place < DIFFS)
        _more(console, total, limit, "questions", len(changes))


def _print_change(change: Change, console: Console, *, diff: bool) -> None:
    _line(console, f"- {change_words(change)}")
    if change.question:
        _line(console, f"    asked: {clip(change.question)}", "dim")
    _line(console, f"    why: {cause_words(change)}")
    if change.cause.link:
        _line(console, f"    see: {clip(change.cause.link, 500)}", "dim")
    if scores := dropped_words(change):
        _line(console, f"    scores: {scores}", "dim")
    if diff and (pair := answers(change)):
        console.print(_diff(*pair), soft_wrap=True)


def _diff(before: str, after: str) -> Text:
    """The answers word by word, on one line."""
    line = Text("    answer: ", style="dim")
    styles = {"same": "", "removed": "red", "added": "green"}
    for kind, text in condensed(word_diff(before, after)):
        opening, closing = MARKS[kind]
        words, space = piece_words(text)
        line.append(f"{opening}{words}{closing}{space}", style=styles[kind])
    return line
