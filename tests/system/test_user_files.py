"""Who runs this, also where the system has no name for them."""

from __future__ import annotations

import os

import pytest

from evaltrack.system.files import user_name


@pytest.mark.parametrize(("error", "has_number"), [(ImportError, False), (KeyError, True), (OSError, True)])
def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch, error: type[Exception], has_number: bool) -> None:
    def fail() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", fail)
    if not has_number:
        monkeypatch.delattr("os.getuid")
    assert user_name() == (f"uid {os.geteuid()}" if has_number else "unknown")
