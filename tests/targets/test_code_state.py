"""The state of the file of a function, read without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack.targets.code_state import code_state


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a module, and a package with one; none of them can be imported."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "app/__init__.py", "app/rag.py", "plain/rag.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise SystemExit\n")
    return tmp_path


@pytest.mark.parametrize(
    ("place", "file"),
    [
        ("mine:ask", "mine.py"),
        ("app.rag:ask", "app/rag.py"),
        ("app:ask", "app/__init__.py"),
        ("plain.rag:a", "plain/rag.py"),
    ],
)
def test_it_changes_with_the_file_that_holds_the_function(folder: Path, place: str, file: str) -> None:
    before = code_state(place)
    assert len(before) == 12
    (folder / "other.py").write_text("")
    assert code_state(place) == before
    (folder / file).write_text("raise SystemExit  # edited\n")
    assert code_state(place) not in (before, "")


@pytest.mark.parametrize("place", ["gone:ask", "app.gone:ask", "mine.gone:ask", "gone.rag:ask", "sys:exit", ""])
def test_what_has_no_file_has_no_state(folder: Path, place: str) -> None:
    assert code_state(place) == ""
