"""What stands at the head of a comparison's page: the gate, whether it can be chance, what differs, what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.comparison import Comparison, GateLine, RuleState
from evaltrack.compare.share_words import p_words
from evaltrack.report.comparison.counts import chance_words
from evaltrack.report.comparison.culprit_words import behind_words
from evaltrack.report.comparison.differences import difference_words
from evaltrack.report.comparison.gate_words import MARKS, gate_lines
from evaltrack.report.comparison.next_steps import next_steps
from evaltrack.report.comparison.verdict_words import BY_RULE
from evaltrack.report.comparison.words import clip
from evaltrack.report.html.edit import EditView, edit_view
from evaltrack.report.html.text import shown
from evaltrack.report.html.worst import WorstGroup, worst_groups

CLASSES: dict[RuleState, str] = {"held": "ok", "broken": "bad", "not shown": "warn", "unknown": "warn"}


@dataclass(frozen=True)
class RuleView:
    """One rule: its mark, how it went for those who do not see it, the class of its style, and a sentence."""

    mark: str
    state: str
    style: str
    text: str


@dataclass(frozen=True)
class FirstScreen:
    """The parts of the first card below its headline.

    `by_rule` says what a regression by the rule is, where it is one; `p_value` by which test it is known of chance.
    """

    by_rule: str
    rules: tuple[RuleView, ...]
    chance: str
    p_value: str
    behind: str
    edit: EditView | None
    steps: tuple[str, ...]
    differs: str
    worst: tuple[WorstGroup, ...]


def first_screen(comparison: Comparison) -> FirstScreen:
    """All of it, in words."""
    return FirstScreen(
        by_rule=BY_RULE[comparison.by_rule] if comparison.by_rule else "",
        rules=tuple(map(_rule, gate_lines(comparison))),
        chance=chance_words(comparison),
        p_value=f"exact McNemar test: {p_words(comparison.mcnemar_p)}",
        behind=shown(behind_words(comparison), 600),
        edit=edit_view(comparison),
        steps=tuple(next_steps(comparison)),
        differs=difference_words(comparison),
        worst=tuple(worst_groups(comparison)),
    )


def difference_lines(comparison: Comparison) -> list[tuple[str, str, str]]:
    """What differs between the runs, with both values in a few words; a dash where a run does not say."""
    return [
        (clip(each.name, 80), clip(each.baseline, 200) or "–", clip(each.candidate, 200) or "–")
        for each in comparison.differences
    ]


def _rule(line: GateLine) -> RuleView:
    return RuleView(MARKS[line.state], line.state, CLASSES[line.state], line.text)
