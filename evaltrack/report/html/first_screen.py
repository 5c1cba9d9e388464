"""What stands at the head of a comparison's page: the gate, whether it can be chance, what differs, what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.comparison import Comparison, GateLine, RuleState
from evaltrack.report.comparison.counts import chance_words
from evaltrack.report.comparison.culprit_words import behind_words
from evaltrack.report.comparison.differences import difference_words
from evaltrack.report.comparison.gate_words import MARKS, gate_lines
from evaltrack.report.comparison.next_steps import next_steps
from evaltrack.report.comparison.words import clip
from evaltrack.report.html.text import shown
from evaltrack.report.html.worst import WorstView, worst_views

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
    """The parts of the first card below its headline."""

    rules: tuple[RuleView, ...]
    chance: str
    behind: str
    steps: tuple[str, ...]
    differs: str
    worst: tuple[WorstView, ...]
    num_broke: int


def first_screen(comparison: Comparison) -> FirstScreen:
    """All of it, in words."""
    return FirstScreen(
        rules=tuple(map(_rule, gate_lines(comparison))),
        chance=chance_words(comparison),
        behind=shown(behind_words(comparison), 400),
        steps=tuple(next_steps(comparison)),
        differs=difference_words(comparison),
        worst=tuple(worst_views(comparison)),
        num_broke=comparison.count("broke"),
    )


def difference_lines(comparison: Comparison) -> list[tuple[str, str, str]]:
    """What differs between the runs, with both values in a few words; a dash where a run does not say."""
    return [
        (clip(each.name, 80), clip(each.baseline, 200) or "–", clip(each.candidate, 200) or "–")
        for each in comparison.differences
    ]


def _rule(line: GateLine) -> RuleView:
    return RuleView(MARKS[line.state], line.state, CLASSES[line.state], line.text)
