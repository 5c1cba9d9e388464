"""What stands at the head of a comparison's page: the gate, whether it can be chance, what differs, what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.gate_rules import GateRule, RuleState, gate_rules
from evaltrack.compare.run_differences import RunDifference, run_differences
from evaltrack.report.comparison.next_steps import next_steps
from evaltrack.report.comparison.sentences import MARKS, STATES, chance_sentence, rule_cells
from evaltrack.report.comparison.words import clip, reason_words
from evaltrack.report.html.text import minus

CLASSES: dict[RuleState, str] = {"holds": "ok", "broken": "bad", "not shown": "warn", "unclear": "warn"}
NAMED = 4
"""Differences between the runs that are named at the head; the table below has all."""

SHORT = ("commit", "author", "model", "judge", "target", "prompt")
"""What is named at the head where it differs."""


@dataclass(frozen=True)
class RuleView:
    """One rule: its mark, what it is about, what was measured, what is allowed, and how it went in words."""

    mark: str
    state: str
    what: str
    value: str
    limit: str
    words: str


@dataclass(frozen=True)
class FirstScreen:
    """The parts of the first card below its headline."""

    rules: tuple[RuleView, ...]
    reasons: tuple[str, ...]
    chance: str
    steps: tuple[str, ...]
    differs: str


def first_screen(comparison: Comparison) -> FirstScreen:
    """All of it, in words."""
    return FirstScreen(
        rules=tuple(_rule(rule, comparison) for rule in gate_rules(comparison)),
        reasons=tuple(reason_words(comparison)),
        chance=chance_sentence(comparison),
        steps=tuple(next_steps(comparison)),
        differs=_differs(comparison),
    )


def difference_lines(comparison: Comparison) -> list[RunDifference]:
    """What differs between the runs, each side in a few words; a dash where a run does not say."""
    return [
        RunDifference(clip(each.name, 80), *(clip(value, 200) or "–" for value in each[1:]))
        for each in run_differences(comparison)
    ]


def _rule(rule: GateRule, comparison: Comparison) -> RuleView:
    what, value, limit = rule_cells(rule, comparison)
    return RuleView(MARKS[rule.state], CLASSES[rule.state], what, minus(value), limit, STATES[rule.state])


def _differs(comparison: Comparison) -> str:
    """``commit a1f9c2e0 → b7d3e9a1, author ada → root``: the first that say most."""
    named = [each for each in run_differences(comparison) if each.name in SHORT][:NAMED]
    return ", ".join(f"{each.name} {_short(each, each.was)} → {_short(each, each.now)}" for each in named)


def _short(each: RunDifference, value: str | None) -> str:
    return clip(value, 8 if each.name == "commit" else 40).rstrip("…") if value else "–"
