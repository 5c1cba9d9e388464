"""What stands at the head of a comparison's page: the gate, whether it can be chance, what differs, what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.gate_rules import GateRule, RuleState, gate_rules
from evaltrack.report.comparison.differences import difference_words
from evaltrack.report.comparison.next_steps import next_steps
from evaltrack.report.comparison.sentences import MARKS, STATES, chance_sentence, rule_cells
from evaltrack.report.comparison.words import clip, reason_words

CLASSES: dict[RuleState, str] = {"holds": "ok", "broken": "bad", "not shown": "warn", "unclear": "warn"}


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
        differs=difference_words(comparison),
    )


def difference_lines(comparison: Comparison) -> list[tuple[str, str, str]]:
    """What differs between the runs, with both values in a few words; a dash where a run does not say."""
    return [
        (clip(each.name, 80), clip(each.baseline, 200) or "–", clip(each.candidate, 200) or "–")
        for each in comparison.differences
    ]


def _rule(rule: GateRule, comparison: Comparison) -> RuleView:
    what, value, limit = rule_cells(rule, comparison)
    return RuleView(MARKS[rule.state], CLASSES[rule.state], what, value, limit, STATES[rule.state])
