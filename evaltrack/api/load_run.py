"""The result of a run of before, from what MLflow holds."""

from __future__ import annotations

from evaltrack.api.report_html import stored_result
from evaltrack.evaluation.result import RunResult
from evaltrack.tracking.reader import named_evaluation
from evaltrack.tracking.store import connect_to_read


def load_run(run_id: str, *, tracking_uri: str | None = None, ui_url: str | None = None) -> RunResult:
    """The result of a run that has ended, as `run_eval` returned it; `errors` and `missed` are empty, `rows` has all.

    Args:
        run_id: Its MLflow run: its id, the beginning of it, or the run's name.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Where MLflow's UI is, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.

    Raises:
        UsageError: there is no such run, or it is none of evaltrack's.
        TrackingError: the store is out of reach, or the run or what it held is gone.
    """
    store = connect_to_read(tracking_uri, ui_url)
    return stored_result(store, named_evaluation(store, run_id))
