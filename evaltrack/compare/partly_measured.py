"""Questions that one side measured in fewer wordings, or trials, than the other. Pure.

A question is measured by those of its trials that did not fail. Where the candidate has no response to a wording that
the baseline measured, what is left says nothing of that wording, and a mean over the others is another mean. Of trials
in the same words most must be measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evaltrack.compare.change import Cause, CauseKind
from evaltrack.compare.run_info import RunInfo
from evaltrack.compare.side_columns import numbers
from evaltrack.compare.trial_causes import wordings_words
from evaltrack.metrics.catalogue import TRIAL_SCORES
from evaltrack.rows.stored_row import StoredRow

if TYPE_CHECKING:
    import pandas as pd

    from evaltrack.compare.pairing import Side

TRIALS = "trials"
"""Column of how many trials of a question were measured; also the setting of how often each wording is asked."""

LONGEST = 10
"""Digits past which no number is read: the setting may come from a store that others write to."""

ALL_MEASURED = TRIAL_SCORES[0].name
"""A score that a question has only where all of its trials were measured."""


def partly_lost(baseline: Side, candidate: Side, *, passing: bool = True) -> frozenset[str]:
    """The ids of the questions that the candidate measured in part, and in less than the baseline did.

    A question that would fail even if all of its other trials passed is left out, as its outcome is certain. With
    `passing` false the outcomes of questions are not compared, and a trial counts as measured if only its judge failed.
    """
    ids = _measured_in_part(candidate)
    if not ids:
        return frozenset()
    times, times_before = times_asked(candidate.info), times_asked(baseline.info)
    was = {row.id: _measured_wordings(row, times_before) for row in baseline.brief(ids)}
    if not passing:
        trials = candidate.trials(ids)
        return frozenset(key for key in trials if was.get(key, set()) - _answered_wordings(trials[key], times))
    return frozenset(
        row.id
        for row in candidate.brief(ids)
        if was.get(row.id, set()) - _measured_wordings(row, times) and not _fails_anyhow(row, times)
    )


def _measured_in_part(side: Side) -> set[str]:
    """The ids of the questions of which some trials were measured, and others not."""
    import numpy as np

    columns = side.columns
    if TRIALS not in columns:
        return set()
    several = ~np.isnan(numbers(columns[TRIALS])) & columns["passed"].notna().to_numpy()
    if ALL_MEASURED in columns:
        several &= np.isnan(numbers(columns[ALL_MEASURED]))
    return set(side.ids().filter(several).to_pylist()) if several.any() else set()


def times_asked(run: RunInfo) -> int:
    """How often each wording was asked; 1 where the run does not say."""
    text = run.settings.get(TRIALS, "")
    return max(1, int(text)) if text.isdecimal() and len(text) < LONGEST else 1


def _measured_wordings(row: StoredRow, times: int) -> set[int]:
    """The places of the wordings of which more than half of the trials were measured."""
    if row.wordings:
        return {place for place, wording in enumerate(row.wordings) if 2 * wording.trials > times}
    if row.trials is None:
        return set() if row.passed is None else {0}
    return {0} if 2 * row.trials > times else set()


def _answered_wordings(trials: Sequence[StoredRow], times: int) -> set[int]:
    """The places of the wordings of which the target answered more than half of the trials."""
    answered = Counter(trial.wording or 0 for trial in trials if not trial.target_failed)
    return {place for place, number in answered.items() if 2 * number > times}


def _fails_anyhow(row: StoredRow, times: int) -> bool:
    """Whether it would fail, had all of its other trials passed."""
    total = times * max(1, len(row.wordings))
    measured, passes = row.trials or 0, row.passes or 0
    return 2 * (passes + total - measured) <= total


def why_in_part(row: StoredRow, trials: Sequence[StoredRow], times: int) -> Cause:
    """How many of the candidate's trials failed, in which wordings, and how the first of them did."""
    total = times * max(1, len(row.wordings))
    failed = [trial for trial in trials if trial.error]
    share = f"{total - (row.trials or 0):,} of {total:,} trials"
    if not failed:
        return Cause("target_failed", f"{share} failed")
    where = f", {wordings_words(failed)}" if row.wordings else ""
    kind: CauseKind = "target_failed" if failed[0].target_failed else "judge_failed"
    return Cause(kind, f"{failed[0].error} (in {share}{where})")


def without_results(frame: pd.DataFrame, lost: Any, names: Iterable[str]) -> pd.DataFrame:
    """The pairs, of which the candidate has neither an outcome of these questions nor scores of these names."""
    blanked = {}
    for name in (f"{each}_c" for each in ("passed", *names)):
        if name in frame:
            values = frame[name].array.copy()
            values[lost] = None if name == "passed_c" else float("nan")
            blanked[name] = values
    return frame.assign(**blanked)
