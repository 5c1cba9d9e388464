"""The commit that a run says it is of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from evaltrack.tracking.commit import COMMIT_TAG, OF_CI, commit_of, commit_tags

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No repository around, and no CI."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in OF_CI:
        monkeypatch.delenv(name, raising=False)


def test_what_is_checked_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a folder below, and whatever a CI says."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("GITHUB_SHA", SHA)
    assert commit_tags() == {COMMIT_TAG: head}


@pytest.mark.parametrize(("value", "tags"), [(SHA, {COMMIT_TAG: SHA}), ("main; rm -rf", {}), ("", {})])
def test_without_a_repository_a_ci_names_it(value: str, tags: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that is a commit."""
    monkeypatch.setenv("CI_COMMIT_SHA", value)
    assert commit_tags() == tags


def test_without_git_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run needs no git."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert commit_tags() == {}


def test_a_tag_that_names_no_commit_is_passed_over() -> None:
    """Anybody may write one."""
    assert commit_of({COMMIT_TAG: SHA}) == SHA
    assert commit_of({COMMIT_TAG: "<script>"}) == ""
    assert commit_of({}) == ""
