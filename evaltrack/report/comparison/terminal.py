"""A comparison as text for a terminal: the verdict first. Rich leaves out colours where the output is not one.

No line begins with foreign text: a CI runner takes a line that begins with ``::`` as a command.
"""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.records.amount import count
from evaltrack.report.ci_commands import BREAK, without_any_commands
from evaltrack.report.comparison.counts import (
    changed_groups,
    counts_words,
    group_regressed,
    group_sentence,
    sections,
    shown_groups,
)
from evaltrack.report.comparison.culprit_words import behind_line, several_causes
from evaltrack.report.comparison.headline import difference_words, verdict_sentence
from evaltrack.report.comparison.notes import note_words
from evaltrack.report.comparison.rules import MARKS, reruns_words, rules_words
from evaltrack.report.comparison.words import (
    TONES,
    Tone,
    answers,
    cause_rest,
    cause_words,
    change_words,
    criteria_words,
    delta_cell,
    delta_words,
    dropped_words,
    interval_words,
    piece_words,
    shown_metrics,
    sides_words,
)
from evaltrack.report.word_diff import condensed, word_diff
from evaltrack.report.words import clip, metric_course, metric_title

SHOWN = 10
SHOWN_OTHERS = 3
"""Questions shown of those that got neither worse nor better."""

WORST_GROUPS = 5
DIFFS = 3
"""Flips whose answers are shown word by word."""

STYLES: dict[Tone, str] = {"ok": "bold green", "bad": "bold red", "warn": "bold yellow"}
RULE_STYLES = {"broken": "bold red", "unknown": "bold yellow", "not shown": "yellow", "held": "green"}
FATE_STYLES = {
    "broke": "bold red",
    "lost": "yellow",
    "lower score": "yellow",
    "fixed": "green",
    "higher score": "green",
}
EDITS = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
"""As wdiff writes them, so that they are seen without colours too."""


def print_comparison(comparison: Comparison, console: Console, *, all_groups: bool = False) -> None:
    """The verdict, the rules of the gate, metrics, groups, then the questions that changed, broken and lost ones first.

    On a terminal lines end where its width does, between words; nothing is cut. `all_groups` shows every group, else
    the five worst of those that changed.
    """
    _line(console, verdict_sentence(comparison), STYLES[TONES[comparison.verdict]])
    if behind := behind_line(comparison):
        _line(console, behind)
    _line(console, sides_words(comparison))
    if differences := difference_words(comparison):
        _line(console, f"What differs: {differences}")
    for state, words in rules_words(comparison):
        _line(console, words, RULE_STYLES[state] if state != "held" else "", f"{MARKS[state]} ")
    for words in filter(None, (reruns_words(comparison), several_causes(comparison))):
        _line(console, words)
    if comparison.metrics:
        console.print(_metrics(comparison))
    _line(console, counts_words(comparison))
    _print_groups(comparison, console, all_groups=all_groups)
    for pair in comparison.criteria:
        _line(console, criteria_words(pair), {True: "green", False: "bold red", None: "yellow"}[pair[1].met])
    for note in note_words(comparison):
        _line(console, note, "dim")
    _print_changes(comparison, console)
    if comparison.compare_link:
        _plain_line(console, f"side by side in MLflow: {clip(comparison.compare_link, 1000)}")


def comparison_text(comparison: Comparison, width: int = 120) -> str:
    """The same as plain text, without colours."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=False, color_system=None, legacy_windows=False)
    print_comparison(comparison, console)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _line(console: Console, text: Text | str, style: str = "", mark: str = "", indent: int = 0) -> None:
    """A line behind its mark. On a terminal it goes on below its own text; no part of it begins with a command."""
    line = text if isinstance(text, Text) else Text(text, style=style)
    before = " " * indent + mark
    wide = max(console.width - len(before), 20)
    for place, part in enumerate(line.wrap(console, wide) if console.is_terminal else [line]):
        part.rstrip()
        harmless = part if without_any_commands(part.plain) == part.plain else Text.assemble(BREAK, part)
        head = before if place == 0 else " " * len(before)
        console.print(Text.assemble((head, style), harmless), soft_wrap=True)


def _plain_line(console: Console, text: str, style: str = "") -> None:
    """A line that is to be copied: the terminal breaks it where it ends, wherever that is."""
    console.print(Text(text, style=style), soft_wrap=True)


def _more(console: Console, total: int, num_shown: int, noun: str, num_listed: int) -> None:
    if total > num_shown:
        where = "them all" if num_listed == total else f"the first {num_listed:,}"
        _line(console, f"… and {count(total - num_shown, f'more {noun}')}; the JSON holds {where}", "dim", indent=2)


def _metrics(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("metric", overflow="fold")
    for name in ("baseline", "candidate", "change", "95 % interval", "n"):
        table.add_column(name, justify="right", overflow="fold")
    for metric in shown_metrics(comparison):
        was, now, _ = metric_course(metric.name, metric.baseline, metric.candidate)
        cells = (
            Text(metric_title(metric.name, comparison.candidate.signature.k)),
            Text(was),
            Text(now),
            Text(delta_cell(metric), style=_delta_style(metric)),
            Text(interval_words(metric)),
            Text(f"{metric.n:,}"),
        )
        table.add_row(*cells, style="bold" if metric.regressed else None)
    return table


def _delta_style(metric: MetricDelta) -> str:
    """Green for better, red for worse."""
    if delta_words(metric) in ("", "0", "≈ 0"):
        return ""
    return "green" if (metric.delta > 0) == metric.higher_is_better else "red"


def _print_groups(comparison: Comparison, console: Console, *, all_groups: bool) -> None:
    """The groups that changed, the worst first, or all of them."""
    everyone, changed = shown_groups(comparison)[0], changed_groups(comparison)
    groups = [*changed, *(group for group in everyone if group not in changed)] if all_groups else changed
    first = groups if all_groups else groups[:WORST_GROUPS]
    for group in first:
        style = "red" if group_regressed(group) else ""
        words = group_sentence(group, comparison.candidate.signature.k, flips=comparison.passing_compared)
        _line(console, words, style, "- ")
    if len(everyone) > len(first):
        more = len(changed) - len(first)
        changes = f"{more:,} of them changed" if more > 0 else "without a change"
        words = f"… and {count(len(everyone) - len(first), 'more group')}, {changes}; --all-groups shows them all"
        _line(console, words, "dim", indent=2)


def _print_changes(comparison: Comparison, console: Console) -> None:
    for fate, title, changes, total in sections(comparison):
        _line(console, f"{title}: {total:,}", FATE_STYLES.get(fate, ""))
        limit = SHOWN if fate in FATE_STYLES else SHOWN_OTHERS
        for place, change in enumerate(changes[:limit]):
            with_diff = fate == "broke" and place < DIFFS
            _print_change(change, console, comparison, with_diff=with_diff)
        _more(console, total, limit, "question", len(changes))


def _print_change(change: Change, console: Console, comparison: Comparison, *, with_diff: bool) -> None:
    _line(console, change_words(change), "", "- ")
    if change.question:
        _line(console, f"asked: {clip(change.question)}", "dim", indent=4)
    if cause_rest(change)[1]:
        _line(console, f"why: {cause_words(change)}", indent=4)
    if change.cause.link:
        _plain_line(console, f"    see: {clip(change.cause.link, 500)}", "dim")
    if scores := dropped_words(change, comparison.candidate.signature.k):
        _line(console, f"scores: {scores}", "dim", indent=4)
    if with_diff and (pair := answers(change)):
        _line(console, _diff(*pair), indent=4)


def _diff(before: str, after: str) -> Text:
    """The answers word by word, on one line."""
    line = Text("answer: ", style="dim")
    styles = {"same": "", "removed": "red", "added": "green"}
    for kind, text in condensed(word_diff(before, after)):
        opening, closing = EDITS[kind]
        space, words, more = piece_words(text)
        line.append(f"{space}{opening}{words}{closing}{more}", style=styles[kind])
    return line
