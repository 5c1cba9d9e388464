"""A comparison as text for a terminal: the verdict first. Rich leaves out colours where the output is not one.

No line begins with foreign text: a CI runner takes a line that begins with ``::`` as a command.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.records.amount import count, verb
from evaltrack.report.ci_commands import BREAK, without_any_commands
from evaltrack.report.comparison.counts import (
    changed_groups,
    counts_words,
    group_regressed,
    group_sentence,
    sections,
    shown_groups,
)
from evaltrack.report.comparison.culprit_words import behind_line, next_steps, several_causes
from evaltrack.report.comparison.headline import difference_words, verdict_sentence
from evaltrack.report.comparison.notes import note_words
from evaltrack.report.comparison.rules import MARKS, reruns_words, rules_words
from evaltrack.report.comparison.words import (
    TONES,
    WAYS,
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
    question_name,
    remark_words,
    shown_metrics,
    sides_words,
)
from evaltrack.report.word_diff import condensed, word_diff
from evaltrack.report.words import clip, failure_words, metric_course, metric_title

SHOWN = 10
SHOWN_OTHERS = 3
"""Questions shown of those that got neither worse nor better."""

DIFFS = 3
"""Questions that broke whose answers are shown word by word."""

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


def print_comparison(comparison: Comparison, console: Console, *, everything: bool = False) -> None:
    """The verdict, what is behind it, broken rules, broken questions, metrics that moved, and what to do next.

    `everything` shows all rules, metrics, groups, notes and changed questions. On a terminal lines end where its width
    does, between words; nothing is cut.
    """
    _line(console, verdict_sentence(comparison), STYLES[TONES[comparison.verdict]])
    if behind := behind_line(comparison):
        _line(console, behind)
    _line(console, sides_words(comparison))
    if differences := difference_words(comparison):
        _line(console, f"What differs: {differences}")
    _print_rules(comparison, console, everything=everything)
    if words := reruns_words(comparison):
        _line(console, words)
    if everything:
        _print_rest(comparison, console)
    else:
        _print_worse(comparison, console)
        if metrics := [metric for metric in shown_metrics(comparison) if metric.changed or metric.regressed]:
            console.print(_metrics(comparison, metrics))
        _line(console, counts_words(comparison))
        for step in next_steps(comparison):
            _line(console, step, "", "→ ")
        _line(console, "--all shows each rule, metric, domain and changed question", "dim")
    if comparison.compare_link:
        _plain_line(console, f"side by side in MLflow: {clip(comparison.compare_link, 1000)}")


def _print_rules(comparison: Comparison, console: Console, *, everything: bool) -> None:
    """Each rule that is not held, and how many others hold; of `everything` all of them."""
    rules = rules_words(comparison)
    shown = rules if everything else [rule for rule in rules if rule[0] != "held"]
    for state, words in shown:
        _line(console, words, RULE_STYLES[state] if state != "held" else "", f"{MARKS[state]} ")
    if held := len(rules) - len(shown):
        _line(console, f"{count(held, 'other rule' if shown else 'rule')} {verb(held, 'holds', 'hold')}", "", "✓ ")


def _print_worse(comparison: Comparison, console: Console) -> None:
    """The questions that broke and were lost, each in two lines."""
    for fate in ("broke", "lost"):
        changes = comparison.by_fate[fate]
        for change in changes[:SHOWN]:
            words = f"{question_name(change)} {WAYS[fate]}: {clip(failure_words(change.cause.detail), 160)}"
            _line(console, f"{words}{remark_words(change)}", FATE_STYLES[fate], "- ")
            _line(console, clip(change.question, 90), "dim", indent=4)
        _more(console, comparison.count(fate), SHOWN, f"question that {WAYS[fate]}", len(changes))


def _print_rest(comparison: Comparison, console: Console) -> None:
    if words := several_causes(comparison):
        _line(console, words)
    if comparison.metrics:
        console.print(_metrics(comparison, shown_metrics(comparison)))
    _line(console, counts_words(comparison))
    for group in [
        *(changed := changed_groups(comparison)),
        *(g for g in shown_groups(comparison)[0] if g not in changed),
    ]:
        words = group_sentence(group, comparison.candidate.signature.k, flips=comparison.passing_compared)
        _line(console, words, "red" if group_regressed(group) else "", "- ")
    for pair in comparison.criteria:
        _line(console, criteria_words(pair), {True: "green", False: "bold red", None: "yellow"}[pair[1].met])
    for note in note_words(comparison):
        _line(console, note, "dim")
    _print_changes(comparison, console)


def comparison_text(comparison: Comparison, width: int = 120, *, everything: bool = True) -> str:
    """The same as plain text, without colours."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=False, color_system=None, legacy_windows=False)
    print_comparison(comparison, console, everything=everything)
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


def _metrics(comparison: Comparison, metrics: Sequence[MetricDelta]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("metric", overflow="fold")
    for name in ("baseline", "candidate", "change", "95 % interval", "n"):
        table.add_column(name, justify="right", overflow="fold")
    for metric in metrics:
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
