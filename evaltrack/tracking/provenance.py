"""Which state of the code a run was made of: commit, branch and uncommitted changes, in MLflow's own tags."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from evaltrack.records.run import COMMIT, SETTING_TAGS, commit_words, shown_settings

GIT = "mlflow.source.git."
GIT_COMMIT, GIT_BRANCH, GIT_DIRTY = f"{GIT}commit", f"{GIT}branch", f"{GIT}dirty"
SECONDS = 10
"""After which a repository that does not answer is left alone."""


def caller_folder() -> Path:
    """The working directory, or that in which `mlflow run` was called."""
    return Path(os.environ.get("EVALTRACK_CALLER_FOLDER") or Path.cwd())


def git_tags(folder: Path) -> dict[str, str]:
    """The tags of the repository that holds a folder; none where there is no repository, no commit or no git.

    Files that git does not track make no difference: MLflow's own database often is one of them.
    """
    status = _git(folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    return _tags(status.decode(errors="replace").splitlines())


def work_tree(folder: Path) -> tuple[str, str]:
    """The commit of the repository that holds a folder, and a digest of what is not committed; empty for none."""
    tags = git_tags(folder)
    is_dirty = tags.get(GIT_DIRTY) == "true"
    changes = _git(folder, "diff", "HEAD", "--binary", "--no-ext-diff") if is_dirty else b""
    return tags.get(GIT_COMMIT, ""), sha256(changes).hexdigest()[:12] if is_dirty else ""


def _git(folder: Path, *command: str) -> bytes:
    """What git says of a folder; nothing where there is no git, or it fails."""
    git = shutil.which("git")
    if git is None:
        return b""
    own = {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}  # it only looks
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
    """The tags, from what `git status --porcelain=v2 --branch` writes."""
    head = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# ") and " " in line[2:])
    commit, branch = head.get("branch.oid", ""), head.get("branch.head", "")
    if not commit or commit.startswith("("):  # of a repository without a commit
        return {}
    tags = {GIT_COMMIT: commit, GIT_DIRTY: str(any(not line.startswith("#") for line in lines)).lower()}
    return tags if branch.startswith("(") else tags | {GIT_BRANCH: branch}


def context_tags(folder: Path) -> dict[str, str]:
    """What MLflow says of where a run is made, with the state of `folder`.

    MLflow looks at the repository of the program, which for an installed program is not the user's.
    """
    from mlflow.tracking.context.registry import resolve_tags

    tags = resolve_tags()
    git = git_tags(folder)
    program = tags.get("mlflow.source.name", "")
    if git or Path(program).is_relative_to(sys.prefix):
        tags = {name: value for name, value in tags.items() if not name.startswith(GIT)}
    return {**tags, **git}


def settings_of(params: Mapping[str, str], tags: Mapping[str, str]) -> dict[str, str]:
    """How a run was made: its params by name, its commit, packages and corpus where its tags say them."""
    settings = shown_settings(params)
    settings |= {name: tags[tag] for name, tag in SETTING_TAGS.items() if tags.get(tag)}
    commit = commit_words(tags.get(GIT_COMMIT, ""), tags.get(GIT_BRANCH, ""), dirty=tags.get(GIT_DIRTY) == "true")
    return settings | ({COMMIT: commit} if commit else {})
