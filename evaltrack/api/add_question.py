"""Add a question to a golden set."""

from __future__ import annotations

import os
from pathlib import Path

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.additions import next_id, with_question
from evaltrack.golden.reader import checked_question, open_golden
from evaltrack.golden.rewrite import replace_content
from evaltrack.records import Question


def add_question(path: str | os.PathLike[str], **fields: object) -> Question:
    """Add a question to a golden set, which is made if it is not there. Every other byte of the file stays.

    Args:
        path: A `.jsonl` or `.json` golden set.
        fields: Those of a golden line: `question`, `expected_chunks`, `expected_answer`, ... What is None is left out.
            Without an `id` it gets one more than the largest that is a whole number.

    Raises:
        UsageError: a field is wrong, or the set has a question with this id or this text.
        GoldenError: lines of the set are bad, or it cannot be written.
    """
    path = Path(path)
    if path.suffix not in (".jsonl", ".json"):
        raise UsageError(f"{path}: a golden set is a .jsonl file (one object a line) or a .json file (one array)")
    is_empty = not path.exists() or path.read_bytes().strip() in (b"", b"[]")
    questions = {} if is_empty else {each.id: each.question for each in open_golden(path, drafts=True)}
    line = {"id": next_id(questions)} | {name: value for name, value in fields.items() if value is not None}
    question = checked_question({"domain": path.stem} | line)
    if not isinstance(question, Question):
        raise UsageError("; ".join(question))
    if question.id in questions:
        raise UsageError(f"{path} has a question `{question.id}`; give another `id=`")
    texts = {_plain(text): key for key, text in questions.items()}
    if (other := texts.get(_plain(question.question))) is not None:
        raise UsageError(f"question `{other}` of {path} asks the same; reword one of them")
    if not path.exists():
        _create(path)
    replace_content(path, lambda text: with_question(text, line, is_array=path.suffix == ".json"))
    return question


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _create(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    except OSError as error:
        raise GoldenError([f"{path}: cannot be written: {error.strerror or error}"]) from None
