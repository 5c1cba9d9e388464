"""Defines a run's tags (golden set, signature, system, git), checks its row files, and fits metric names to MLflow."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from evaltrack.metrics.catalogue import HEADLINES, SCORES
from evaltrack.records.base import Record
from evaltrack.records.row import Traced
from evaltrack.records.run import COMMIT, PACKAGES, System, commit_words, shown_settings

GOLDEN_TAG = "evaltrack.golden"
"""The tag by which the runs of a golden set are found."""

SIGNATURE_TAG, SYSTEM_TAG = "evaltrack.signature", "evaltrack.system"
"""The tags with the records `Signature` and `System` of a run, as JSON."""

TRACES_TAG = "evaltrack.traces"
"""The tag with the questions of a run that have traces."""

PACKAGES_TAG = "evaltrack.packages"
"""The tag with the packages of the target's environment, which may fill a tag alone."""

LAST_MOMENT = 253_402_214_400_000
"""The last day of the year 9999, in milliseconds since 1970. No later moment has a date."""

LARGEST = 1e15
"""The largest absolute value of a metric of evaltrack."""

T = TypeVar("T", bound=Record)


def tag_part(text: str) -> str:
    """Return a text as part of a tag's name. Characters that are not allowed are written by their code: `:23:`."""
    return re.sub(r"[^\w. /-]", lambda sign: f":{ord(sign[0]):x}:", text)


def read_tag(kind: type[T], text: str | None) -> T | None:
    """Read the record in a tag strictly: all fields, no others, each of its type, only finite numbers.

    None if the tag is missing, or was not written by evaltrack.
    """
    try:
        return kind.model_validate_json(text or "", strict=True)
    except ValueError:
        return None


def read_traced(tags: Mapping[str, str]) -> Traced:
    """Return which questions of a run have traces."""
    traced: Any = tags.get(TRACES_TAG)
    return traced if traced in get_args(Traced) else "off"


def sound_count(value: float | None) -> int:
    """Return a number of questions from a metric; 0 if it is not valid."""
    return int(value) if value is not None and 0 < value <= LARGEST else 0


def sound_moment(milliseconds: int | None) -> int:
    """Return a moment that has a date, in milliseconds since 1970 (UTC). Moments outside the range are clipped."""
    return min(max(int(milliseconds or 0), 0), LAST_MOMENT)


ROWS: Final = "per_question.parquet"
TRIALS: Final = "trials.parquet"

LONGEST_PART = 100
"""The most characters of a domain or a judge within a name. MLflow allows 250 for the whole."""

FIRST_METRICS = tuple(score.metric for score in HEADLINES)
"""Logged before all others: MLflow's pages show metrics in the order of logging."""

MAIN = frozenset(score.metric for score in SCORES if score.main)
"""The means that MLflow's charts show."""


def first_ones_first(names: Iterable[str]) -> list[str]:
    """Return the names in the order in which they are logged."""
    return sorted(names, key=lambda name: FIRST_METRICS.index(name) if name in FIRST_METRICS else len(FIRST_METRICS))


def metric_name(name: str) -> str:
    """Return the name in MLflow's form: characters that it refuses become `_`; at most 250 characters."""
    return _safe(name, "_-. /")[:250]


def names_within(names: Iterable[str]) -> dict[str, str]:
    """Return each domain or judge as a part of a metric's name.

    Parts that differ in nothing or in case only, which some databases ignore, end in a digest.
    """
    parts = {name: _safe(name, "_-. ").strip(" .")[:LONGEST_PART] for name in names}
    alike = Counter(part.casefold() for part in parts.values())
    return {
        name: part if part and alike[part.casefold()] == 1 else f"{part}-{_digest(name)}".removeprefix("-")
        for name, part in parts.items()
    }


def _safe(text: str, others: str) -> str:
    """Return the text with `_` for characters that MLflow refuses. Letters of every script are allowed."""
    return "".join(c if c.isalnum() or c in others else "_" for c in text)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


GIT = "mlflow.source.git."
GIT_COMMIT, GIT_BRANCH, GIT_DIRTY = f"{GIT}commit", f"{GIT}branch", f"{GIT}dirty"
GIT_SECONDS = 10


def caller_folder() -> Path:
    """Return the working directory, or the directory in which `mlflow run` was called."""
    return Path(os.environ.get("EVALTRACK_CALLER_FOLDER") or Path.cwd())


def git_tags(folder: Path) -> dict[str, str]:
    """Return the tags of the repository that holds a folder; empty without repository, commit or git.

    Untracked files are ignored: MLflow's own database is often one of them.
    """
    status = _git(folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    return _tags(status.decode(errors="replace").splitlines())


def work_tree(folder: Path) -> tuple[str, str]:
    """Return the commit of the repository that holds a folder, and a digest of uncommitted changes; empty for none."""
    tags = git_tags(folder)
    is_dirty = tags.get(GIT_DIRTY) == "true"
    changes = _git(folder, "diff", "HEAD", "--binary", "--no-ext-diff") if is_dirty else b""
    return tags.get(GIT_COMMIT, ""), sha256(changes).hexdigest()[:12] if is_dirty else ""


def _git(folder: Path, *command: str) -> bytes:
    """Return the output of a git command in a folder; empty if there is no git, or it fails."""
    program = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")
    try:
        answer = subprocess.run(  # noqa: S603 - git alone, with fixed arguments
            [*program, *command], cwd=folder, capture_output=True, check=False, timeout=GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return answer.stdout if answer.returncode == 0 else b""


def _tags(lines: list[str]) -> dict[str, str]:
    """Return the tags from the output of `git status --porcelain=v2 --branch`."""
    head = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# ") and " " in line[2:])
    commit, branch = head.get("branch.oid", ""), head.get("branch.head", "")
    if not commit or commit.startswith("("):  # a repository without a commit
        return {}
    tags = {GIT_COMMIT: commit, GIT_DIRTY: str(any(not line.startswith("#") for line in lines)).lower()}
    return tags if branch.startswith("(") else tags | {GIT_BRANCH: branch}


def context_tags(folder: Path) -> dict[str, str]:
    """Return MLflow's tags on the context of a run, with the git state of `folder`.

    MLflow would read the repository of the program, which for an installed program is not the user's.
    """
    from mlflow.tracking.context.git_context import GitRunContext
    from mlflow.tracking.context.registry import resolve_tags

    tags: dict[str, str] = resolve_tags(ignore=[GitRunContext])  # type: ignore[list-item] # MLflow takes classes
    return tags | git_tags(folder)


def logged_settings_of(params: Mapping[str, str], tags: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a run: its params by name, and from its tags `STATES` and the commit."""
    system = read_tag(System, tags.get(SYSTEM_TAG)) or System()
    commit = commit_words(tags.get(GIT_COMMIT, ""), tags.get(GIT_BRANCH, ""), dirty=tags.get(GIT_DIRTY) == "true")
    states = {**system.states, PACKAGES: tags.get(PACKAGES_TAG, ""), COMMIT: commit}
    return shown_settings(params) | {name: state for name, state in states.items() if state}
