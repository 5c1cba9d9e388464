"""Files in the forms of other tools, imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltrack import Question, open_golden
from evaltrack.api.import_golden import GoldenImport, import_golden
from evaltrack.errors import GoldenError

DATA = Path(__file__).parent / "data"


def imported(folder: Path, *files: Path, form: str = "auto", **options: Any) -> tuple[list[Question], GoldenImport]:
    """The questions of a set that was imported into `folder`, and what the import says."""
    made = import_golden(list(files), folder / "out.jsonl", form, force=True, **options)
    return list(open_golden(made.path)), made


def problems(folder: Path, *files: Path, form: str = "auto", **options: Any) -> list[str]:
    """The problems of an import that is refused, with places as names of files; nothing was written."""
    with pytest.raises(GoldenError) as raised:
        import_golden(list(files), folder / "refused.jsonl", form, **options)
    assert [path.name for path in folder.iterdir() if "refused.jsonl" in path.name] == []
    return [problem.replace(f"{folder}/", "") for problem in raised.value.problems]


def noted(made: GoldenImport, text: str) -> str:
    (note,) = [note for note in made.notes if text in note]
    return note
