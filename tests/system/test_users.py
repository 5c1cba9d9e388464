"""Who owns a file and who runs this, also where the system has no numbers for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaltrack.system.users import has_owners, own_number, user_name

NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")


def test_own_files_have_the_own_number(tmp_path: Path) -> None:
    """As `stat` says."""
    assert has_owners()
    assert tmp_path.stat().st_uid == own_number()


def test_windows_has_no_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `stat` says 0 there."""
    monkeypatch.delattr("os.geteuid")
    assert (has_owners(), own_number()) == (False, 0)


@pytest.mark.parametrize(("error", "has_number"), [(ImportError, False), (KeyError, True), (OSError, True)])
def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch, error: type[Exception], has_number: bool) -> None:
    """The number stands for it, where there is one; Windows has no `pwd` module to look it up."""

    def fail() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", fail)
    if not has_number:
        monkeypatch.delattr("os.getuid")
    assert user_name() == (f"uid {os.geteuid()}" if has_number else "unknown")
