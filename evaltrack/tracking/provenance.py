"""Records the state of the code that a run was made with: commit, branch and uncommitted changes, in MLflow's tags."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from evaltrack.records.run import COMMIT, SETTING_TAGS, commit_words, shown_settings

GIT = "mlflow.source.git."
GIT_COMMIT, GIT_BRANCH, GIT_DIRTY = f"{GIT}commit", f"{GIT}branch", f"{GIT}dirty"
SECONDS = 10
"""Seconds after which a git command is stopped."""


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
    git = shutil.which("git")
    if git is None:
        return b""
    own = {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}  # read only
    try:
        answer = subprocess.run(  # noqa: S603 - git alone, with fixed arguments
            [git, "-c", "core.fsmonitor=false", *command],
            cwd=folder,
            env=os.environ | own,
            capture_output=True,
            check=False,
            timeout=SECONDS,
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


def settings_of(params: Mapping[str, str], tags: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a run: its params by name, and commit, packages and corpus from its tags."""
    settings = shown_settings(params)
    settings |= {name: tags[tag] for name, tag in SETTING_TAGS.items() if tags.get(tag)}
    commit = commit_words(tags.get(GIT_COMMIT, ""), tags.get(GIT_BRANCH, ""), dirty=tags.get(GIT_DIRTY) == "true")
    return settings | ({COMMIT: commit} if commit else {})
