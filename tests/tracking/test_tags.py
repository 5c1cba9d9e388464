"""The state of the working directory in git, in MLflow's own tags."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evaltrack.tracking.tags import context_tags, git_tags, logged_settings_of, work_tree

COMMIT, BRANCH, DIRTY = (f"mlflow.source.git.{name}" for name in ("commit", "branch", "dirty"))


def git(folder: Path, *arguments: str) -> str:
    own = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_state_of_a_repository(tmp_path: Path) -> None:
    """Commit and branch, from a folder below it too; a tracked file that was changed makes it dirty, a new one not."""
    folder = tmp_path / "below"
    folder.mkdir()
    assert git_tags(folder) == {}
    git(tmp_path, "init", "-q")
    assert git_tags(folder) == {}  # there is no commit yet
    (folder / "app.py").write_text("1")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "mlflow.db").write_text("")
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    assert git_tags(folder) == {COMMIT: commit, BRANCH: "main", DIRTY: "false"}
    git(tmp_path, "checkout", "-q", "--detach")
    (folder / "app.py").write_text("2")
    assert git_tags(folder) == {COMMIT: commit, DIRTY: "true"}
    assert context_tags(folder)[COMMIT] == commit


def test_what_is_not_committed_has_a_digest(tmp_path: Path) -> None:
    assert work_tree(tmp_path) == ("", "")
    git(tmp_path, "init", "-q")
    (tmp_path / "app.py").write_text("1")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    commit, changes = work_tree(tmp_path)
    assert changes == ""
    seen = set()
    for text in ("22", "333", "22"):
        (tmp_path / "app.py").write_text(text)
        seen.add(work_tree(tmp_path))
    assert len(seen - {(commit, "")}) == 2


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_tags(tmp_path) == {}
    (tmp_path / "git").write_text("no program")
    (tmp_path / "git").chmod(0o755)
    assert git_tags(tmp_path) == {}


def test_logged_settings_of_a_run() -> None:
    params = {"golden": "a.jsonl", "alpha": "'2.0'", "evaltrack.alpha": "2", "param.x": "1"}
    assert logged_settings_of(params, {COMMIT: "0123456789abcdef", BRANCH: "main", DIRTY: "true"}) == {
        "alpha": "2",
        "param.x": "1",
        "commit": "0123456789ab (main, uncommitted changes)",
    }
    assert logged_settings_of({}, {COMMIT: "0123"}) == {"commit": "0123"}
