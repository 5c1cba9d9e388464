"""A replay as JSON for machines, and as text for a terminal."""

from __future__ import annotations

from typing import Any

from evaltrack.records.amount import count, verb
from evaltrack.report.words import number, one_line
from evaltrack.stats.repeatability import Replay

REPLAY_SCHEMA = "evaltrack.replay/1"
SHOWN = 10


def replay_json(replay: Replay) -> dict[str, Any]:
    """The whole replay, response by response."""
    return {
        "schema": REPLAY_SCHEMA,
        "run_id": replay.run_id,
        "judge": replay.judge,
        "judge_prompt": replay.judge_prompt,
        "score": replay.score,
        "times": replay.times,
        "num_responses": len(replay.rows),
        "left_out": replay.left_out,
        "num_errors": replay.failed,
        "share_within": replay.share_within,
        "mean_spread": replay.mean_spread,
        "num_changed": replay.num_changed,
        "noise": replay.noise,
        "judge_tokens": replay.usage_tokens,
        "rows": [
            {
                "id": row.id,
                "score": row.score,
                "again": list(row.again),
                "spread": row.spread,
                "tier": row.tier,
                "tiers_again": list(row.tiers_again),
                "passed": row.passed,
                "passed_again": list(row.passed_again),
            }
            for row in replay.rows
        ],
    }


def replay_lines(replay: Replay) -> list[str]:
    """What a person reads: how stable the judge is, and which responses it is least sure of."""
    times = f"{replay.times} times" if replay.times > 1 else "once"
    judged = f"{count(len(replay.rows), 'response')} judged {times} again, {count(replay.usage_tokens, 'token')}"
    lines = [f"{one_line(replay.judge)}: {judged}"]
    if replay.left_out:
        lines.append(f"left out without a score: {count(replay.left_out, 'row')}")
    if replay.failed:
        of = f"{replay.failed:,} of {count(replay.num_verdicts, 'verdict')}"
        lines.append(f"{of} failed and {verb(replay.failed, 'is', 'are')} in no number")
    if replay.share_within is not None and replay.mean_spread is not None and replay.noise is not None:
        lines.append(f"within 5 % of the run's score: {100 * replay.share_within:.1f} %")
        lines.append(f"mean spread of a response: {number(replay.mean_spread)}")
        lines.append(f"changed tier or outcome: {replay.num_changed} of {len(replay.rows)}")
        lines.append(f"noise of the judge: two runs' means differ by up to {number(replay.noise)} by it alone (95 %)")
    widest = sorted((row for row in replay.rows if row.spread), key=lambda row: -row.spread)
    for row in widest[:SHOWN]:
        again = ", ".join("error" if value is None else number(value) for value in row.again)
        lines.append(f"  {one_line(row.id, 60)}: {number(row.score)}, again {again}")
    return [*lines, *([f"  … and {count(more, 'more response')}"] if (more := len(widest) - SHOWN) > 0 else [])]
