"""Sorts the common questions of two runs into broke, fixed, lower score and so on, with the cause of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from evaltrack.compare.causes import causes_of
from evaltrack.compare.change import BY_URGENCY, WORSE, Change, ChangedQuestions, Fate
from evaltrack.compare.differences import AllSources
from evaltrack.compare.pairing import Paired, error_counts, numbers
from evaltrack.metrics.catalogue import MAIN_SCORES
from evaltrack.records.row import PRINTS, Row
from evaltrack.records.run import CORPUS, Run

FATES: tuple[Fate, ...] = get_args(Fate)

WHOLE_ROWS = 200
"""Changes that hold the rows of both sides with the texts of their sources."""

LISTED = 10_000
"""The most changed questions that are listed, each with its cause."""

SAMPLED = 2000
"""Identical questions that are shown if there are more than `LISTED` leaves room for."""

Moved = tuple[tuple[str, float, float], ...]
"""Scores that moved: name, before, now."""

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
        by_fate[fate] = _worst_first(paired, fate)[:room]
        room -= len(by_fate[fate])
    ids = list(frame.loc[frame["fate"] == "identical", "id"])
    same = tuple(paired.candidate.rows(ids if len(ids) <= room else ids[:SAMPLED], ()).values())
    explainer = _Explainer(paired, k, by_fate, same if len(same) == len(ids) and room else None)
    return ChangedQuestions(
        by_fate={fate: tuple(explainer.change(key, fate) for key in ids) for fate, ids in by_fate.items()},
        fates={fate: int((frame["fate"] == fate).sum()) for fate in FATES},
        same=same,
        gone_pages=explainer.all_sources.gone_pages,
        errors=error_counts(frame),
        failed_again=int((paired.failed("c") & ~frame["lost"]).sum()),
    )


def _pages(run: Run) -> int:
    """Return the number of pages that the run says it searched; 0 if it does not say."""
    number = run.settings.get(CORPUS, "").partition(" ")[0].replace(",", "")
    return int(number) if number.isdecimal() else 0


class _Explainer:
    """Reads the rows of the changed questions, and finds their causes."""

    def __init__(
        self, paired: Paired, k: int, by_fate: Mapping[Fate, Sequence[str]], same: Sequence[Row] | None
    ) -> None:
        self._scores, self._k = paired.telling, k
        ids = [key for listed in by_fate.values() for key in listed]
        sides = (paired.baseline, paired.candidate)
        was, now = (side.rows(ids, frozenset(ids[:WHOLE_ROWS])) for side in sides)
        self._rows = {key: (was[key], now[key]) for key in ids}
        pages_before, pages_now = (_pages(side.info) for side in sides)
        self.all_sources = AllSources.of(was, now, same, fewer_pages=0 < pages_now < pages_before)
        self._light: dict[Any, Any] = paired.frame[paired.frame["id"].isin(ids)].set_index("id").to_dict("index")

    def change(self, key: str, fate: Fate) -> Change:
        """Return the question with its cause."""
        light, (before, after) = self._light[key], self._rows[key]
        dropped, raised = (self._moved(light, worse=worse) for worse in (True, False))
        causes = causes_of(before, after, self._k, worse=fate in WORSE, everywhere=self.all_sources)
        if fate not in WORSE and causes[0].kind == "unknown":
            causes = causes[1:] or causes
        return Change(
            id=key,
            question=after.question,
            domain=str(light["domain_c"]),
            difficulty=after.difficulty,
            category=after.category,
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
