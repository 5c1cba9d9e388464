"""Adds questions to a golden set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from evaltrack.api.lint_golden import libraries
from evaltrack.errors import UsageError
from evaltrack.golden.file import digest_of, is_empty_file, only_writer, read_objects, write_objects
from evaltrack.golden.findings import Entry
from evaltrack.golden.lines import checked_question
from evaltrack.golden.lint_expectations import check_ids
from evaltrack.golden.reader import open_golden
from evaltrack.golden.words import text_key
from evaltrack.records import Question


def add_question(
    path: str | os.PathLike[str],
    *,
    corpus: str | os.PathLike[str] | None = None,
    **fields: object,
) -> Question:
    """Add a question to a golden set. The set is made if it is missing.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: As in `lint_golden`. If there is a corpus, it must hold what the question expects, unless the question
            is a draft.
        fields: The fields of a golden line: `question`, `expected_chunks`, `expected_answer`, ... None values are left
            out. Without an `id` the question gets one more than the largest whole-number id.

    Raises:
        UsageError: a field is wrong, the corpus does not hold what is expected, or the set has a question with this id
            or this text.
        GoldenError: lines of the set are bad, or it cannot be written.
    """
    domain = str(fields.get("domain") or Path(path).stem)
    question = checked_question({"id": "new", "domain": domain} | _given(fields))
    if isinstance(question, Question) and question.expected and not question.draft:
        for library, _ in libraries(Path(path), [domain], corpus):
            if missing := list(check_ids([Entry(str(path), 0, 0, question)], library)):
                cure = "or add it as a draft (`draft=True`)"
                raise UsageError("\n".join(f"{each.message}; {each.cure}, {cure}" for each in missing))
    (made,) = _added(Path(path), [fields], repeats_allowed=False)
    return made


def add_questions(path: str | os.PathLike[str], lines: Iterable[Mapping[str, object]]) -> list[Question]:
    """Add several questions in one write. Questions whose text the set already has are left out.

    Raises:
        UsageError: a field is wrong, or the set has a question with this id.
        GoldenError: lines of the set are bad, or it cannot be written.
    """
    return _added(Path(path), lines, repeats_allowed=True)


def _added(path: Path, lines: Iterable[Mapping[str, object]], *, repeats_allowed: bool) -> list[Question]:
    if path.suffix not in (".jsonl", ".json"):
        raise UsageError(f"{path}: a golden set is a .jsonl file (one object a line) or a .json file (one array)")
    added: list[tuple[Question, Mapping[str, object]]] = []
    with only_writer(path):  # two processes that add at once would take the same id
        digest, is_empty = digest_of(path), is_empty_file(path)
        questions = {} if is_empty else {each.id: each.question for each in open_golden(path, drafts=True)}
        texts = {text_key(text): key for key, text in questions.items()}
        for fields in lines:
            line = {"id": _next_id(questions)} | _given(fields)
            question = checked_question({"domain": path.stem} | line)
            if not isinstance(question, Question):
                raise UsageError("; ".join(question))
            if question.id in questions:
                raise UsageError(f"{path} has a question `{question.id}`; give another `id=`")
            if (other := texts.get(text_key(question.question))) is None:
                questions[question.id], texts[text_key(question.question)] = question.question, question.id
                added.append((question, line))
            elif not repeats_allowed:
                raise UsageError(f"question `{other}` of {path} asks the same; reword one of them")
        if added:
            objects = [] if is_empty else read_objects(path)
            write_objects(path, [*objects, *(line for _, line in added)], digest)
    return [question for question, _ in added]


def _given(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _next_id(ids: Iterable[str]) -> int:
    """Return one more than the largest whole-number id; 1 if there is none."""
    return 1 + max((int(key) for key in ids if key.isascii() and key.isdigit() and len(key) < 16), default=0)
