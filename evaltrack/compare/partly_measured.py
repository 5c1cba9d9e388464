"""Questions that one side measured in fewer trials than the other. Pure.

A question is measured by those of its trials that did not fail; more than half of them must be measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evaltrack.compare.change import Cause, CauseKind
from evaltrack.compare.run_info import RunInfo
from evaltrack.compare.side_columns import numbers
from evaltrack.metrics.catalogue import TRIAL_SCORES
from evaltrack.rows.stored_row import StoredRow

if TYPE_CHECKING:
    import pandas as pd

    from evaltrack.compare.pairing import Side

TRIALS = "trials"
"""Column of how many trials of a question were measured; also the setting of how often each question is asked."""

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
    before = {row.id for row in baseline.brief(ids) if _is_measured(row, times_before)}
    if not passing:
        trials = candidate.trials(ids)
        return frozenset(key for key in before & trials.keys() if not _is_answered(trials[key], times))
    rows = (row for row in candidate.brief(ids) if row.id in before)
    return frozenset(row.id for row in rows if not (_is_measured(row, times) or _fails_anyhow(row, times)))


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
    """How often each question was asked; 1 where the run does not say."""
    text = run.settings.get(TRIALS, "")
    return max(1, int(text)) if text.isdecimal() and len(text) < LONGEST else 1


def _is_measured(row: StoredRow, times: int) -> bool:
    return row.passed is not None if row.trials is None else 2 * row.trials > times


def _is_answered(trials: Sequence[StoredRow], times: int) -> bool:
    return 2 * sum(not trial.target_failed for trial in trials) > times


def _fails_anyhow(row: StoredRow, times: int) -> bool:
    """Whether it would fail, had all of its other trials passed."""
    measured, passes = row.trials or 0, row.passes or 0
    return 2 * (passes + times - measured) <= times


def why_in_part(row: StoredRow, trials: Sequence[StoredRow], times: int) -> Cause:
    """How many of the candidate's trials failed, and how the first of them did."""
    failed = [trial for trial in trials if trial.error]
    share = f"{times - (row.trials or 0):,} of {times:,} trials"
    if not failed:
        return Cause("target_failed", f"{share} failed")
    kind: CauseKind = "target_failed" if failed[0].target_failed else "judge_failed"
    return Cause(kind, f"{failed[0].error} (in {share})")


def without_results(frame: pd.DataFrame, lost: Any, names: Iterable[str]) -> pd.DataFrame:
    """The pairs, of which the candidate has neither an outcome of these questions nor scores of these names."""
    blanked = {}
    for name in (f"{each}_c" for each in ("passed", *names)):
        if name in frame:
            values = frame[name].array.copy()
            values[lost] = None if name == "passed_c" else float("nan")
            blanked[name] = values
    return frame.assign(**blanked)
