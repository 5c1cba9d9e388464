"""The gate as a list: each rule with its value, and what else the verdict rests on."""

from __future__ import annotations

from evaltrack.compare.comparison import Comparison, GateLine, RuleState
from evaltrack.records.amount import count
from evaltrack.report.comparison.words import SHOWN_REASONS, clip

MARKS: dict[RuleState, str] = {"broken": "✕", "unknown": "?", "not shown": "~", "held": "✓"}
"""What stands before a rule of the gate."""


def gate_lines(comparison: Comparison) -> list[GateLine]:
    """Each rule of the gate with its value, those that were broken first; then what else the verdict rests on."""
    lines = list(comparison.gate_lines)
    texts = {line.text for line in lines}
    others = [text for text in comparison.reasons if text not in texts]
    lines += [GateLine(STATES[comparison.verdict], text) for text in others if text != "no regression"]
    first = [GateLine(line.state, clip(line.text, 300)) for line in lines[:SHOWN_REASONS]]
    if more := len(lines) - len(first):
        first.append(GateLine(first[-1].state, f"… and {count(more, 'more rule')}"))
    return first


STATES: dict[str, RuleState] = {"ok": "held", "regression": "broken", "unknown": "unknown"}
