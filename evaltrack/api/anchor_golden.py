"""Adds quotations to a golden set with chunk ids, so that it stays valid under another chunking."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaltrack.api.lint_golden import all_entries, libraries
from evaltrack.golden.file import digest_of, read_objects, write_objects
from evaltrack.golden.findings import Library
from evaltrack.golden.quotes import QuoteChooser
from evaltrack.golden.reader import open_golden
from evaltrack.records import Question


@dataclass(frozen=True)
class Anchor:
    """The quotation chosen for one expected chunk of a question. `doubt` says why a person should check it."""

    question: str
    chunk: str
    quote: str
    doubt: str = ""


@dataclass(frozen=True)
class Anchored:
    """The added quotations, and `(question, reason)` for each question with chunk ids that got none."""

    anchors: Sequence[Anchor]
    left: Sequence[tuple[str, str]]


def anchor_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    *,
    target: str | None = None,
    dry_run: bool = False,
) -> Anchored:
    """Add to `expected_passages` a quotation of each expected chunk of the questions that have ids but no passages.

    A quotation consists of the sentences with the most words of the expected answer and the question. Sentences that
    are in no other chunk are preferred. The ids stay, for targets that return no texts. A question that got
    quotations counts as edited.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: As in `lint_golden`.
        target: As in `lint_golden`.
        dry_run: True leaves the file unchanged.

    Raises:
        GoldenError: lines are bad, or the file cannot be written or was changed in the meantime.
        UsageError: the corpus or the target cannot be read.
    """
    digest = digest_of(Path(path))
    checked = open_golden(path, drafts=True)
    objects = read_objects(checked.path)
    entries = [
        each for each in all_entries(checked) if each.question.expected_chunks and not each.question.expected_passages
    ]
    anchors: list[Anchor] = []
    left = {each.question.id: "no corpus has its expected chunks" for each in entries}
    for library, _ in libraries(checked.path, checked.stats.domains, corpus, target):
        chooser = QuoteChooser(library)
        for entry in library.entries(entries):
            chosen = _quotes(entry.question, library, chooser)
            if isinstance(chosen, str):
                left[entry.question.id] = chosen
                continue
            del left[entry.question.id]
            anchors += chosen
            passages = [{"quote": each.quote, "source": library.by_id[each.chunk].title} for each in chosen]
            objects[entry.number]["expected_passages"] = passages
    if anchors and not dry_run:
        write_objects(checked.path, objects, digest)
    return Anchored(anchors, list(left.items()))


def _quotes(question: Question, library: Library, chooser: QuoteChooser) -> list[Anchor] | str:
    """Return a quotation of each expected chunk, or the reason that there is none."""
    anchors: list[Anchor] = []
    for key in dict.fromkeys(question.expected_chunks or ()):
        if key not in library.by_id:
            return f"`{key}` is not in {library.name}"
        if (choice := chooser.choose(library.by_id[key], question)) is None:
            return f"`{key}` has no words"
        anchors.append(Anchor(question.id, key, *choice))
    return anchors
