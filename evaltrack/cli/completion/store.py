"""Names of runs and experiments without MLflow, whose import alone takes seconds.

A SQLite database is read by a query of its own, read-only and with little patience; a store of another schema, or a
server, gives nothing. Then it is the runs that were made on this machine, whose commands the state folder holds.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

RUNS = 50
SECONDS = 0.1
"""How long a database that is locked is waited for."""

STEPS = 2_000_000
"""Instructions of SQLite until a query is given up: a fraction of a second."""

RUN_QUERY = """
SELECT run_uuid, coalesce(name, ''), coalesce(status, '') FROM runs
WHERE lifecycle_stage = 'active' AND EXISTS
    (SELECT 1 FROM tags WHERE tags.key = 'evaltrack.golden' AND tags.run_uuid = runs.run_uuid)
ORDER BY start_time DESC LIMIT ?
"""
EXPERIMENT_QUERY = "SELECT name FROM experiments WHERE lifecycle_stage = 'active' ORDER BY experiment_id DESC LIMIT ?"


@dataclass(frozen=True)
class StoredRun:
    """A run by its id and its name; `shown` tells a person which one it is."""

    id: str
    name: str = ""
    shown: str = ""


@dataclass(frozen=True)
class Store:
    """Runs, the newest first, and experiments."""

    runs: Sequence[StoredRun] = ()
    experiments: Sequence[str] = ()


def stored_names() -> Store:
    """The names in the store that MLflow's variables choose, else those that this machine knows."""
    path = _database(os.environ.get("MLFLOW_TRACKING_URI", ""))
    if path is not None and path.is_file():
        with suppress(sqlite3.Error, OSError, ValueError):
            return _read(path)
    return Store(_of_this_machine())


def _database(uri: str) -> Path | None:
    """The file of a SQLite store; MLflow's own choice is `mlflow.db` in the working directory."""
    if not uri:
        return Path("mlflow.db")
    found = re.fullmatch(r"sqlite:///([^?]+)(?:\?.*)?", uri)
    return Path(found[1]) if found else None


def _read(path: Path) -> Store:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=SECONDS)) as database:
        database.set_progress_handler(lambda: 1, STEPS)
        rows = database.execute(RUN_QUERY, (RUNS,)).fetchall()
        runs = [StoredRun(str(key), str(name), _shown(name, status)) for key, name, status in rows]
        return Store(runs, [str(name) for (name,) in database.execute(EXPERIMENT_QUERY, (RUNS,))])


def _of_this_machine() -> list[StoredRun]:
    """The runs whose commands are kept in the state folder, by their files; what is in these is not read."""
    from evaltrack.system.folders import state_folder

    with suppress(OSError):
        files = [(path.stat().st_mtime, path.stem) for path in (state_folder() / "commands").glob("*.json")]
        return [StoredRun(name, shown="run on this machine") for _, name in sorted(files, reverse=True)[:RUNS]]
    return []


def _shown(*texts: str) -> str:
    """Texts on one line, for a shell that shows a description beside a word."""
    text = " ".join(" ".join(str(each).split()) for each in texts).strip()
    return "".join(sign for sign in text if sign.isprintable())[:80]
