"""Why a question of several trials changed: each trial that failed, beside the passing one that is most like it. Pure.

The row of such a question is a mean, and shows one of its trials. Trials vary, so that any two of them may differ in
something that explains nothing: what a passing trial shares with a failing one is not why it failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evaltrack.compare.causes import ORDER, causes_of
from evaltrack.compare.change import Cause
from evaltrack.compare.differences import AllSources
from evaltrack.records import Reasoned
from evaltrack.records.stored_row import StoredRow

Trials = Mapping[str, Sequence[StoredRow]]
"""The rows of single trials, by question."""

Moved = Sequence[tuple[str, float, float]]
"""Scores that fell: name, before, now."""

MAX_DISTINCT = 20
"""Trials of one question that are looked at, of those that are not the same; the most frequent."""

MAX_ROWS = 20_000
"""Rows of trials that are read of one side."""

CONTENT = (
    "answer",
    "abstained",
    "error",
    "retrieval_digest",
    "sources",
    "tool_calls",
    "verdicts",
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
    everywhere: AllSources | None = None,
) -> Explained | None:
    """The cause that most of the worse trials have; of equally many the earliest in the flow.

    Args:
        before: The baseline's row of the question.
        after: The candidate's.
        trials: The trials behind them; empty where the row is of one.
        moved: Scores of the question that fell; of a gain those that rose.
        k: How many sources are scored.
        worse: Whether a loss is to be explained; else it is a gain, which is the loss the other way round.
        everywhere: What all changed questions show of the sources.

    Returns:
        None where no trial of the candidate is worse than the baseline, of a gain none of the baseline.
    """
    sides = [rows or [row] for rows, row in zip(trials, (before, after), strict=True)]
    good, bad = sides if worse else sides[::-1]
    failed, what = _worse_trials(good, bad, moved if worse else [(name, high, low) for name, low, high in moved])
    if not failed:
        return None
    passing = _distinct([each for each in good if each.passed] or good)

    def departure(row: StoredRow) -> tuple[StoredRow, StoredRow, list[Cause]]:
        """The other side's trial from which this one departs last in the flow, and why."""
        pairs = [(other, row) if worse else (row, other) for other, _ in passing]
        read = [(*pair, causes_of(*pair, k, worse=worse, everywhere=everywhere)) for pair in pairs]
        return max(read, key=lambda each: (ORDER.index(each[2][0].kind), -len(each[2])))

    departures = [(*departure(row), times) for row, times in _distinct(failed)]
    votes = Counter[tuple[str, str | None]]()
    for *_, causes, times in departures:
        votes[causes[0].kind, causes[0].source] += times
    winner = max(votes, key=lambda vote: (votes[vote], -ORDER.index(vote[0])))
    was, now, causes, _ = next(each for each in departures if (each[2][0].kind, each[2][0].source) == winner)
    if len(bad) > 1:
        share = f"{_share(votes[winner], len(failed))} {what}{'' if worse else ' before'}"
        causes = [replace(causes[0], detail=f"{causes[0].detail}, in {share}"), *causes[1:]]
    return Explained(_showing(before, was), _showing(after, now), causes)


def _worse_trials(good: Sequence[StoredRow], bad: Sequence[StoredRow], drops: Moved) -> tuple[list[StoredRow], str]:
    """The trials that failed, where a larger share does than on the good side; else those of which a score fell."""
    if _failing(bad) > _failing(good):
        return [row for row in bad if row.passed is False], "that failed"

    def fell(row: StoredRow, name: str, was: float, now: float) -> bool:
        value = row.scores.get(name)
        return value is not None and (value < was if now < was else value > was)

    return [row for row in bad if any(fell(row, *score) for score in drops)], "with a lower score"


def _failing(trials: Sequence[StoredRow]) -> float:
    measured = [row.passed for row in trials if row.passed is not None]
    return measured.count(False) / len(measured) if measured else 0.0


def _share(times: int, total: int) -> str:
    if total == 1:
        return "the one trial"
    every = "both trials" if total == 2 else f"all {total} trials"
    return every if times == total else f"{times} of the {total} trials"


def _distinct(trials: Sequence[StoredRow]) -> list[tuple[StoredRow, int]]:
    """Trials of different content, each with how many are the same, the most frequent first.

    The same are those whose sources and verdicts are and say the same, whatever their scores and tokens.
    """
    first, counts = dict[str, StoredRow](), Counter[str]()
    for row in trials:
        sources = row.sources and [(each.chunk_id, each.title, each.text_digest) for each in row.sources]
        verdicts = [(each.judge, each.overall_score, each.declined) for each in row.verdicts]
        others = [getattr(row, name) for name in CONTENT if name not in ("sources", "verdicts")]
        key = repr((row.passed, sources, verdicts, others))
        counts[key] += 1
        first.setdefault(key, row)
    return [(first[key], times) for key, times in counts.most_common(MAX_DISTINCT)]


def _showing(row: StoredRow, trial: StoredRow) -> StoredRow:
    """The row, with this trial as the one it shows; texts of sources that it holds already stay."""
    if row is trial:
        return row
    texts = {source.text_digest: source.text for source in row.sources or ()}
    sources = trial.sources and tuple(replace(each, text=texts.get(each.text_digest)) for each in trial.sources)
    return replace(row, **{name: getattr(trial, name) for name in CONTENT} | {"sources": sources})
