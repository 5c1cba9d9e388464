"""Which commit is evaluated: MLflow's own tag for it, which its UI shows beside the run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress

COMMIT_TAG = "mlflow.source.git.commit"
OF_CI = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION")
"""Variables in which GitHub, GitLab, Jenkins and Azure name the commit, for where there is no repository."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def commit_tags() -> dict[str, str]:
    """The tag of the commit of the working directory; empty where neither git nor a CI names one."""
    found = next((each for each in (_of_git(), *map(os.environ.get, OF_CI)) if each and _COMMIT.fullmatch(each)), None)
    return {COMMIT_TAG: found} if found else {}


def commit_of(tags: Mapping[str, str]) -> str:
    """The commit that a run's tags name; empty where they name none, or what is none."""
    commit = tags.get(COMMIT_TAG, "")
    return commit if _COMMIT.fullmatch(commit) else ""


def _of_git() -> str:
    """The commit that is checked out; `rev-parse` runs no hook and no program of the repository."""
    if git := shutil.which("git"):
        with suppress(OSError, subprocess.TimeoutExpired):
            command = [git, "rev-parse", "--verify", "--quiet", "HEAD"]
            answer = subprocess.run(  # noqa: S603 - git alone, with fixed arguments
                command, capture_output=True, text=True, errors="replace", check=False, timeout=10
            )
            return answer.stdout.strip()
    return ""
