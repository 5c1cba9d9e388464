"""The golden set as the input of a run, also where several runs name it at the same moment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from evaltrack.system.retries import NAMED_AT_ONCE
from evaltrack.tracking.runs import Dataset, log_dataset
from evaltrack.tracking.store import Store

TRIES = NAMED_AT_ONCE.calls or 0
RACE = "(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.experiment_id, datasets.name, datasets.digest"


def calls_of(errors: list[str]) -> int:
    """How often a store is asked that fails with these errors first."""
    left, calls = list(errors), []

    def log_inputs(*arguments: Any) -> None:
        calls.append(arguments)
        if left:
            raise MlflowException(left.pop(0))

    try:
        log_dataset(Store("sqlite://", SimpleNamespace(log_inputs=log_inputs)), "run", Dataset("a", "d" * 64, "p", 1))  # type: ignore[arg-type]
    finally:
        assert {arguments[0] for arguments in calls} == {"run"}
        assert {arguments[1][0].dataset.digest for arguments in calls} == {"d" * 36}
        errors[:] = [str(len(calls))]
    return len(calls)


@pytest.mark.parametrize("races", range(TRIES))
def test_a_set_that_another_run_just_named_is_named_again(races: int) -> None:
    assert calls_of([RACE] * races) == races + 1


@pytest.mark.parametrize(("errors", "calls"), [([RACE] * TRIES, TRIES), (["disk full"], 1)])
def test_other_refusals_are_raised(errors: list[str], calls: int) -> None:
    with pytest.raises(MlflowException):
        calls_of(errors)
    assert errors == [str(calls)]
