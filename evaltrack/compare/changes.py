"""Sorts the common questions of two runs into broke, fixed, lower score and so on, with the cause of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from evaltrack.compare.causes import ORDER, causes_of
from evaltrack.compare.change import BY_URGENCY, WORSE, Cause, CauseKind, Change, ChangedQuestions, Fate
from evaltrack.compare.differences import AllSources
from evaltrack.compare.pairing import Paired, error_counts, numbers
from evaltrack.metrics.catalogue import MAIN_SCORES
from evaltrack.records import Reasoned
from evaltrack.records.base import count
from evaltrack.records.row import PRINTS, Row, compared_columns

FATES: tuple[Fate, ...] = get_args(Fate)
BETTER: tuple[Fate, ...] = ("fixed", "higher score")
ALWAYS_LISTED: tuple[Fate, ...] = ("broke", "lost", "fixed")

WHOLE_ROWS = 200
"""Changes that hold the rows of both sides with the texts of their sources."""

LISTED = 10_000
"""Questions listed in addition to broken, lost and fixed ones, and changes whose rows are read for causes."""

SAMPLED = 2000
"""Identical questions that are shown if there are more than `LISTED` leaves room for."""

MAX_DISTINCT = 20
"""Distinct trials of one question that are read, the most frequent first."""

TRIED = 1_000
"""Questions of one side whose single trials are read."""

OF_TRIAL = (
    *("answer", "abstained", "error", "sources", "tool_calls", "verdicts"),
    *Reasoned.model_fields,
)
"""The columns of a row that show one of its trials."""

Moved = tuple[tuple[str, float, float], ...]
"""Scores that moved: name, before, now."""

Explained = tuple[Row, Row, list[Cause]]
"""The rows of both sides, showing the trials that have the causes, and the causes."""


# Fates


def add_fates(paired: Paired) -> None:
    """Add the columns `fate`, and `lost`: True if only the baseline measured the question.

    If `pass_rate` is left out, no question breaks or is fixed. If `judge_score` is left out, the judge's words are no
    difference. The candidate's outcome of a lost question that did not break is removed: parts of it were not measured,
    and no mean may rise by it.
    """
    import numpy as np
    import pandas as pd

    frame = paired.frame
    lower, higher = _moved(paired)
    lost = _only_measured_in(paired, "b")
    masks: dict[Fate, Any] = {
        "broke": paired.flipped(was=True) & paired.passing_compared,
        "lost": lost,
        "fixed": paired.flipped(was=False) & paired.passing_compared,
        "lower score": lower,
        "newly measured": _only_measured_in(paired, "c"),
        "higher score": higher,
        "changed": ~_same_content(paired),
    }
    fates = np.select([np.asarray(mask, dtype=bool) for mask in masks.values()], list(masks), "identical")
    blank = lost & ~paired.flipped(was=True)
    paired.frame = frame.assign(
        fate=pd.Categorical(fates, FATES),
        lost=lost.to_numpy(dtype=bool),
        **{name: frame[name].mask(blank) for name in ("passed_c", "pass_c") if name in frame},
    )


def _only_measured_in(paired: Paired, end: str) -> Any:
    """Return a mask of the questions of which only this side measured the outcome, retrieval, or judge's score."""
    frame, other = paired.frame, "b" if end == "c" else "c"
    mask = frame[f"passed_{end}"].notna() & frame[f"passed_{other}"].isna()
    if not paired.passing_compared:
        mask &= paired.failed(other)
    for name in ("recall_at_k",) if "judge_score" in paired.left_out else ("recall_at_k", "overall_score"):
        if f"{name}_{end}" in frame:
            mask |= frame[f"{name}_{end}"].notna() & frame[f"{name}_{other}"].isna()
    return mask


def _moved(paired: Paired) -> tuple[Any, Any]:
    """Return masks of the questions with a lower, and a higher score. If no main score moved, others count."""
    lower = higher = settled = paired.frame["id"].isna()
    for main in (True, False):
        for score in (each for each in paired.telling if (each.name in MAIN_SCORES) == main):
            was, now = (numbers(paired.frame[f"{score.name}_{end}"]) for end in "bc")
            worse, better = (now < was, now > was) if score.higher_is_better else (now > was, now < was)
            lower, higher = lower | (worse & ~settled), higher | (better & ~settled)
        settled = lower | higher
    return lower, higher


def _same_content(paired: Paired) -> Any:
    left_out = {"verdict_print"} if "judge_score" in paired.left_out else set()
    return paired.frame[[name for name in PRINTS if name in paired.frame and name not in left_out]].all(axis=1)


def _worst_first(paired: Paired, fate: Fate) -> list[str]:
    """Return the ids of questions by loss: of the judge's score, then of recall, then of rank. Large gains are first.

    A value that was not measured is no loss.
    """
    import numpy as np

    frame, there = paired.frame, {score.name for score in paired.telling}
    places = np.flatnonzero(frame["fate"] == fate)
    sign = 1 if fate in ("fixed", "newly measured", "higher score") else -1
    keys: list[Any] = [np.zeros(len(places))]
    for name in ("reciprocal_rank", "recall_at_k", "overall_score", "reasoning_score"):
        if name in there:
            was, now = (np.nan_to_num(numbers(frame[f"{name}_{end}"])[places]) for end in "bc")
            keys.append(sign * np.round(was - now, 9))
    if fate == "newly measured":  # failing questions are first
        keys.append((frame["passed_c"] != False).fillna(True).to_numpy(dtype=bool)[places])  # noqa: E712
    return list(frame["id"].to_numpy()[places[np.lexsort(keys)]])


# The questions that changed


def changed_questions(paired: Paired, k: int) -> ChangedQuestions:
    """Return the questions by the fates of `add_fates`, each with its cause."""
    frame, by_fate = paired.frame, dict[Fate, list[str]]()
    frame = paired.frame = frame.assign(outcome_b=paired.outcomes("b"), outcome_c=paired.outcomes("c"))
    room = LISTED
    for fate in BY_URGENCY:
        by_fate[fate] = _worst_first(paired, fate)
        if fate not in ALWAYS_LISTED:
            by_fate[fate] = by_fate[fate][:room]
            room -= len(by_fate[fate])
    same = list(frame.loc[frame["fate"] == "identical", "id"])
    explainer = _Explainer(paired, k, by_fate)
    return ChangedQuestions(
        by_fate={fate: tuple(explainer.change(key, fate) for key in ids) for fate, ids in by_fate.items()},
        fates={fate: int((frame["fate"] == fate).sum()) for fate in FATES},
        same=tuple(paired.candidate.rows(same if len(same) <= room else same[:SAMPLED], ()).values()),
        errors=error_counts(frame),
        failed_again=int((paired.failed("c") & ~frame["lost"]).sum()),
    )


class _Explainer:
    """Reads the rows of the changed questions, and finds their causes."""

    def __init__(self, paired: Paired, k: int, by_fate: Mapping[Fate, Sequence[str]]) -> None:
        self._scores, self._k = paired.telling, k
        ids = [key for listed in by_fate.values() for key in listed]
        sides = (paired.baseline, paired.candidate)
        was, now = (side.rows(ids[:LISTED], frozenset(ids[:WHOLE_ROWS])) for side in sides)
        self._rows = {key: (was[key], now[key]) for key in ids[:LISTED]}
        self._all_sources = AllSources.of(was, now)
        moved = [key for fate in (*WORSE, *BETTER) for key in by_fate[fate] if key in self._rows]
        several = [[key for key in moved if rows[key].trials][:TRIED] for rows in (was, now)]
        self._trials = [side.trials(ids) if ids else {} for side, ids in zip(sides, several, strict=True)]
        self._light: dict[Any, Any] = paired.frame[paired.frame["id"].isin(ids)].set_index("id").to_dict("index")

    def change(self, key: str, fate: Fate) -> Change:
        """Return the question with its cause."""
        light, before, after = self._light[key], None, None
        dropped, raised = (self._moved(light, worse=worse) for worse in (True, False))
        causes = [Cause("unknown", f"its rows were not read: more than {LISTED} questions changed")]
        if key in self._rows:
            before, after, causes = self._explain(*self._rows[key], fate, dropped if fate in WORSE else raised)
        return Change(
            id=key,
            question=after.question if after else "",
            domain=str(light["domain_c"]),
            difficulty=after.difficulty if after else None,
            category=after.category if after else None,
            was=light["outcome_b"],
            now=light["outcome_c"],
            cause=causes[0],
            also=tuple(causes[1:]),
            dropped=dropped,
            raised=raised,
            before=before,
            after=after,
            fate=fate,
        )

    def _moved(self, light: Mapping[str, Any], *, worse: bool) -> Moved:
        """Return the main scores that fell, or rose; the other scores if no main score did."""
        moves = []
        for score in self._scores:
            was, now = float(light[f"{score.name}_b"]), float(light[f"{score.name}_c"])
            if now < was if score.higher_is_better == worse else now > was:  # False if either is NaN
                moves.append((score.name, was, now))
        return tuple([each for each in moves if each[0] in MAIN_SCORES] or moves)

    def _explain(self, before: Row, after: Row, fate: Fate, moved: Moved) -> Explained:
        """Return the rows to show, and the causes. With several trials, the failed ones are explained."""
        worse = fate in WORSE
        if not after.error and not (fate in BETTER and before.error):
            made = self._explain_trials(before, after, moved, worse=worse)
            if made and (worse or made[2][0].kind != "unknown"):
                return made
        causes = self._causes(before, after, worse=worse)
        if not worse and causes[0].kind == "unknown":
            causes = causes[1:] or causes
        return before, after, causes

    def _causes(self, before: Row, after: Row, *, worse: bool) -> list[Cause]:
        return causes_of(before, after, self._k, worse=worse, everywhere=self._all_sources)

    def _explain_trials(self, before: Row, after: Row, moved: Moved, *, worse: bool) -> Explained | None:
        """Return the cause of most of the worse trials, each compared with the most similar passing trial.

        That is the trial from which it differs latest in the flow.

        The row of such a question holds means and shows one of its trials. Trials vary, so that two of them may differ
        in ways that explain nothing: what a passing trial shares with a failing one is not the reason. If several
        causes are equally frequent, it is the earliest in the flow. A gain is a loss with the sides exchanged. None
        without several trials, or if none is worse than those of the good side.
        """
        sides = [trials.get(before.id) or [row] for trials, row in zip(self._trials, (before, after), strict=True)]
        if not any(before.id in trials for trials in self._trials):
            return None
        good, bad = sides if worse else sides[::-1]
        failed, what = _worse_trials(good, bad, moved if worse else tuple((name, now, was) for name, was, now in moved))
        passing = _distinct([each for each in good if each.passed] or good)
        votes, explained = Counter[tuple[CauseKind, str | None]](), dict[tuple[CauseKind, str | None], Explained]()
        for row, times in _distinct(failed):
            pairs = [(other, row) if worse else (row, other) for other, _ in passing]
            read = [(*pair, self._causes(*pair, worse=worse)) for pair in pairs]
            latest = max(read, key=lambda each: (ORDER.index(each[2][0].kind), -len(each[2])))
            vote = latest[2][0].kind, latest[2][0].source
            votes[vote] += times
            explained.setdefault(vote, latest)
        if not votes:
            return None
        winner = max(votes, key=lambda vote: (votes[vote], -ORDER.index(vote[0])))
        was, now, causes = explained[winner]
        if len(bad) > 1:
            share = f"{votes[winner]} of {count(len(failed), 'trial')} {what}{'' if worse else ' before'}"
            causes[0] = replace(causes[0], detail=f"{causes[0].detail}, in {share}")
        return _showing(before, was), _showing(after, now), causes


# Several trials


def _worse_trials(good: Sequence[Row], bad: Sequence[Row], drops: Moved) -> tuple[list[Row], str]:
    """Return the failed trials if their share is larger than on the good side; else the trials with a lower score."""
    if _failing(bad) > _failing(good):
        return [row for row in bad if row.passed is False], "that failed"

    def fell(row: Row, name: str, was: float, now: float) -> bool:
        value = row.scores.get(name)
        return value is not None and (value < was if now < was else value > was)

    return [row for row in bad if any(fell(row, *score) for score in drops)], "with a lower score"


def _failing(trials: Sequence[Row]) -> float:
    measured = [row.passed for row in trials if row.passed is not None]
    return measured.count(False) / len(measured) if measured else 0.0


def _distinct(trials: Sequence[Row]) -> list[tuple[Row, int]]:
    """Return trials with distinct contents, each with its frequency, the most frequent first."""
    alike = defaultdict[object, list[Row]](list)
    for row in trials:
        alike[row.passed, *compared_columns(row).values()].append(row)
    most = sorted(alike.values(), key=len, reverse=True)[:MAX_DISTINCT]
    return [(rows[0], len(rows)) for rows in most]


def _showing(row: Row, trial: Row) -> Row:
    """Return the row with the columns of this trial. Known texts of sources are kept."""
    texts = {source.text_digest: source.text for source in row.sources or () if source.text is not None}
    sources = trial.sources and tuple(
        each.model_copy(update={"text": texts.get(each.text_digest)}) for each in trial.sources
    )
    return row.model_copy(update={name: getattr(trial, name) for name in OF_TRIAL} | {"sources": sources})
