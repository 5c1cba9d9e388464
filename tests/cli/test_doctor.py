"""`evaltrack doctor` beside a stranger's package of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack.cli import _run


def install(folder: Path, entry_points: str = "") -> None:
    """Put what pip notes down of a package called evaltrack into a folder."""
    about = folder / "evaltrack-2.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evaltrack\nVersion: 2.0\n")
    (about / "entry_points.txt").write_text(entry_points)


@pytest.mark.parametrize(
    ("entry_points", "code"),
    [
        ("[console_scripts]\nevaltrack = evaltrack.main:app\n", 3),
        ("[mlflow.app]\nevaltrack = evaltrack.server.app:a\n", 0),
    ],
)
def test_a_package_of_the_same_name_is_told(
    store_uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    entry_points: str,
    code: int,
) -> None:
    install(tmp_path / "site", entry_points)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    assert _run(["doctor"]) == code
    said = capsys.readouterr().out
    assert ("evaltrack 2.0 is installed, which is somebody else's" in said) == bool(code)
    assert ("pip uninstall -y evaltrack mlflow-evaltrack" in said) == bool(code)
    assert "can be written to" in said
