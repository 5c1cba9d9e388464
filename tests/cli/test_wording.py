"""Messages of the package name settings; the command line shows them as options."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack import run_eval
from evaltrack.cli import _run
from evaltrack.cli.wording import with_options
from evaltrack.errors import UsageError
from tests.conftest import REPO


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("name one with `judge=`", "name one with --judge"),
        ("`judge=recorded:FILE` or `baseline_file=`", "--judge recorded:FILE or --baseline"),
        ("(`force=True` insists)", "(--force insists)"),
        ("`retry_errors=True` asks again", "--retry-errors asks again"),
        ("`colour=red` and `judge` and `x` stay", "`colour=red` and `judge` and `x` stay"),
    ],
)
def test_settings_are_shown_as_options(message: str, shown: str) -> None:
    assert with_options(message) == shown


def test_the_same_error_in_both_languages(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    golden = REPO / "golden/travel.jsonl"
    with pytest.raises(UsageError, match=r"^`require=`: no metric `recal`"):
        run_eval(golden, require="recal > 0.5")
    assert _run(["run", str(golden), "--require", "recal > 0.5"]) == 2
    assert "Error: --require: no metric `recal`" in capsys.readouterr().err
