"""A replay as JSON for machines, and as text for a terminal."""

from __future__ import annotations

from typing import Any

from evaltrack.records.amount import count, verb
from evaltrack.report.schemas.judges import ReplayForm, ReplayRow
from evaltrack.report.words import number, one_line
from evaltrack.stats.repeatability import Replay

REPLAY_SCHEMA = "evaltrack.replay/1"
SHOWN = 10


def replay_json(replay: Replay) -> dict[str, Any]:
    """The whole replay, response by response."""
    return ReplayForm.of(
        replay,
        schema=REPLAY_SCHEMA,
        num_responses=len(replay.rows),
        num_errors=replay.failed,
        judge_tokens=replay.usage_tokens,
        rows=list(map(ReplayRow.of, replay.rows)),
    )


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
