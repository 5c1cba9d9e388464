"""A store that something is read from, and that must be there already."""

from __future__ import annotations

from importlib.util import find_spec

from evaltrack.errors import UsageError
from evaltrack.privacy.addresses import shown_url
from evaltrack.tracking.sqlite_lock import database_file
from evaltrack.tracking.store import Store, connect


def connect_to_read(uri: str | None = None, ui_url: str | None = None) -> Store:
    """As `connect`, for what is there already: a SQLite store that is not is no new one.

    Raises:
        UsageError: there is no such file; or as `connect`.
        TrackingError: as `connect`.
    """
    check_is_there(uri)
    return connect(uri, ui_url)


def check_is_there(uri: str | None = None) -> None:
    """Refuse a SQLite store that is not there, which `connect` would make.

    Raises:
        UsageError: there is no such file.
    """
    import mlflow

    uri = uri or mlflow.get_tracking_uri()
    path = database_file(uri)
    if path is not None and not path.exists() and find_spec("sqlalchemy"):  # else no database can be opened at all
        cure = "evaluate first (evaltrack run GOLDEN), run this where that was done, or set MLFLOW_TRACKING_URI"
        raise UsageError(f"MLflow store {shown_url(uri)}: there is no such file; {cure}")
