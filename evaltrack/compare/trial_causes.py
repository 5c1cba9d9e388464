"""Why a question of several trials changed: each trial that failed, beside the passing one that is most like it.

Of one that got worse they failed in the candidate, of one that got better in the baseline.

The row of such a question is a mean, and shows one of its trials. Trials scatter, so that any two of them may differ in
something that explains nothing: what a passing trial of the baseline shares with a failing one is not why it failed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evaltrack.compare.causes import ORDER, causes_of
from evaltrack.compare.change import Cause
from evaltrack.records import Reasoned
from evaltrack.rows.stored_parts import StoredSource, StoredVerdict
from evaltrack.rows.stored_row import StoredRow

Trials = Mapping[str, Sequence[StoredRow]]
"""The rows of single trials, by question."""

Moved = Sequence[tuple[str, float, float]]
"""Scores that fell: name, before, now."""

MAX_DISTINCT = 20
"""Trials of one question that are looked at, of those that are not the same; the most frequent."""

MAX_ROWS = 20_000
"""Rows of trials that are read of one side."""

CONTENT = (
    *("answer", "abstained", "error", "retrieval_digest", "sources", "tool_calls", "verdicts"),
    *Reasoned.model_fields,
)
"""What a row shows of one of its trials."""


@dataclass(frozen=True)
class Explained:
    """The rows of both sides, showing the trials that the causes are read from."""

    before: StoredRow
    after: StoredRow
    causes: list[Cause]


def trials_of(rows: Mapping[str, StoredRow], ids: Collection[str], read: Callable[[Collection[str]], Trials]) -> Trials:
    """The trials of those of the questions that have several, as far as `MAX_ROWS` goes."""
    ids_to_read, room = [], MAX_ROWS
    for key in ids:
        count = (rows[key].trials or 0) if key in rows else 0
        if 0 < count <= room:
            ids_to_read.append(key)
            room -= count
    return read(ids_to_read) if ids_to_read else {}


def explain_by_trials(
    before: StoredRow,
    after: StoredRow,
    trials: tuple[Sequence[StoredRow], Sequence[StoredRow]],
    moved: Moved,
    k: int,
    *,
    worse: bool = True,
) -> Explained | None:
    """The cause that most of the worse trials have; of equally many the earliest in the flow.

    Args:
        before: The baseline's row of the question.
        after: The candidate's.
        trials: The trials behind them; empty where the row is of one.
        moved: Scores of the question that fell; of a gain those that rose.
        k: How many sources are scored.
        worse: Whether a loss is to be explained; else it is a gain, which is the loss the other way round.

    Returns:
        None where no trial of the candidate is worse than the baseline, of a gain none of the baseline.
    """
    sides = [rows or [row] for rows, row in zip(trials, (before, after), strict=True)]
    better, lower = sides if worse else sides[::-1]
    drops = moved if worse else [(name, high, low) for name, low, high in moved]
    failed, what = _worse(better, lower, drops)
    if not failed:
        return None
    read = [(*_closest(row, _passing(better), k, worse=worse), times) for row, times in _distinct(failed)]
    votes = Counter[tuple[str, str | None]]()
    for _, _, causes, times in read:
        votes[_vote(causes)] += times
    winner = max(votes, key=lambda vote: (votes[vote], -ORDER.index(vote[0])))
    old, new, causes, _ = next(each for each in read if _vote(each[2]) == winner)
    if len(lower) > 1:
        share = f"{_share(votes[winner], len(failed))} {what}{'' if worse else ' before'}"
        detail = f"{causes[0].detail}, in {share}"
        causes = [replace(causes[0], detail=detail), *causes[1:]]
    return Explained(_showing(before, old), _showing(after, new), causes)


def _passing(others: Sequence[StoredRow]) -> Sequence[StoredRow]:
    return [each for each in others if each.passed] or others


def _worse(was: Sequence[StoredRow], now: Sequence[StoredRow], drops: Moved) -> tuple[list[StoredRow], str]:
    """The trials that failed, where a larger share does than before; else those of which a score fell."""
    if _failing(now) > _failing(was):
        return [row for row in now if row.passed is False], "that failed"
    return [row for row in now if any(_beyond(row, *score) for score in drops)], "with a lower score"


def _share(times: int, total: int) -> str:
    if total == 1:
        return "the one trial"
    return (
        ("both" if total == 2 else f"all {total}") + " trials" if times == total else f"{times} of the {total} trials"
    )


def _failing(trials: Sequence[StoredRow]) -> float:
    measured = [row.passed for row in trials if row.passed is not None]
    return measured.count(False) / len(measured) if measured else 0.0


def _beyond(row: StoredRow, name: str, before: float, now: float) -> bool:
    """Whether the trial's score lies on the side of the baseline's to which the question's moved."""
    value = row.scores.get(name)
    return value is not None and (value < before if now < before else value > before)


def _closest(
    row: StoredRow, others: Sequence[StoredRow], k: int, *, worse: bool
) -> tuple[StoredRow, StoredRow, list[Cause]]:
    """The other side's trial from which this one departs last in the flow, both in their order, and why it does."""
    ordered = [(other, row) if worse else (row, other) for other, _ in _distinct(others)]
    pairs = [(old, new, causes_of(old, new, k, worse=worse)) for old, new in ordered]
    return max(pairs, key=lambda pair: (ORDER.index(pair[2][0].kind), -len(pair[2])))


def _vote(causes: Sequence[Cause]) -> tuple[str, str | None]:
    return causes[0].kind, causes[0].source


def _distinct(trials: Sequence[StoredRow]) -> list[tuple[StoredRow, int]]:
    """Trials of other content, each with how many are the same, the most frequent first."""
    counts, first = Counter[str](), dict[str, StoredRow]()
    for row in trials:
        key = json.dumps([row.passed, *(_plain(getattr(row, name)) for name in CONTENT)])
        counts[key] += 1
        first.setdefault(key, row)
    return [(first[key], times) for key, times in counts.most_common(MAX_DISTINCT)]


def _plain(value: object) -> object:
    """Of sources what they are, of verdicts what they say; not their scores, tokens or whether they were cached."""
    return [_identity(each) for each in value] if isinstance(value, tuple) else value


def _identity(item: object) -> object:
    if isinstance(item, StoredSource):
        return [item.chunk_id, item.title, item.text_digest]
    return [item.judge, item.overall_score, item.declined] if isinstance(item, StoredVerdict) else item


def _showing(row: StoredRow, trial: StoredRow) -> StoredRow:
    """The row, with this trial as the one it shows; texts of sources that it holds already stay."""
    if row is trial:
        return row
    texts = {source.text_digest: source.text for source in row.sources or ()}
    sources = trial.sources
    if sources is not None:
        sources = tuple(replace(source, text=texts.get(source.text_digest)) for source in sources)
    return replace(row, **{name: getattr(trial, name) for name in CONTENT} | {"sources": sources})
