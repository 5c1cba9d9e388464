"""Commands that read find no store where there is none, and make none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judging import cli


@pytest.mark.parametrize(
    "command",
    [
        "resume abc",
        "compare",
        "compare set.jsonl",
        "report -o x.html",
        "report a b -o x.html",
        "judge replay a",
        "baseline list",
    ],
)
def test_a_store_that_is_not_there_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    (tmp_path / "set.jsonl").write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
    assert cli(*command.split()) == 2
    words = "mlflow.db: there is no such file; evaluate first (evaltrack run GOLDEN), run this where that was done, or"
    assert words in capsys.readouterr().err
    assert not (tmp_path / "mlflow.db").exists()
