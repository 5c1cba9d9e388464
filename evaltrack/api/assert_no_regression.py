"""The gate as an assertion, for tests."""

from __future__ import annotations

import os
from typing import Unpack

from evaltrack.api.compare_runs import compare_runs
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.config import ComparisonOptions
from evaltrack.evaluation.result import RunResult
from evaltrack.report.comparison.terminal import comparison_text


def assert_no_regression(
    candidate: RunResult | str | None = None,
    baseline: RunResult | str | None = None,
    *,
    baseline_file: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    tracking_uri: str | None = None,
    **settings: Unpack[ComparisonOptions],
) -> Comparison:
    """Compare two runs, and fail unless it is shown that nothing got worse.

    Args:
        candidate: A result, or as of `compare_runs`.
        baseline: A result, or as of `compare_runs`: None takes the run that was set as the baseline of the golden set.
        baseline_file: As of `compare_runs`.
        experiment: As of `compare_runs`.
        tracking_uri: As of `compare_runs`.
        **settings: As of `compare_runs`, such as `max_drop`, `allow_flips` or `gate`.

    Raises:
        AssertionError: something got worse, or it could not be told; the message is the comparison, with the causes.
        UsageError: an option is wrong, there is no baseline, or a run is none of evaltrack's.
        InconclusiveError: the runs are not comparable, or one has not ended.
        TrackingError: the store is out of reach, or a run or its rows are gone.
    """
    __tracebackhide__ = True
    run, other = (each.run_id if isinstance(each, RunResult) else each for each in (candidate, baseline))
    comparison = compare_runs(
        run, other, baseline_file=baseline_file, experiment=experiment, tracking_uri=tracking_uri, **settings
    )
    if comparison.verdict != "ok":
        raise AssertionError(comparison_text(comparison))
    return comparison
