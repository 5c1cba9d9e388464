"""Correct in a golden file what is safe to correct."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from evaltrack.api.lint_golden import all_entries, check_codes, fixable_findings, libraries
from evaltrack.errors import GoldenError
from evaltrack.golden.lint.finding import Edit, Finding
from evaltrack.golden.lint.fix import apply_edits
from evaltrack.golden.reader import open_golden
from evaltrack.golden.rewrite import replace_content

MAX_ROUNDS = 4
"""A correction may show another one: an id in its right form may be there twice."""


def fix_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    *,
    target: str | None = None,
    ignore: Collection[str] = (),
) -> list[Finding]:
    """Correct ids in another form where exactly one is meant, ids that are listed twice, and surrounding blanks.

    Every other byte of the file stays as it is. It is replaced as a whole, or not at all. A question that was corrected
    counts as edited: it is compared with no earlier run.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: As of `lint_golden`.
        target: As of `lint_golden`.
        ignore: Codes that are not corrected.

    Returns:
        The findings that were cured, in order. None where lines are bad: these are to be corrected first.

    Raises:
        UsageError: the corpus or the target cannot be read, or a code is unknown.
        GoldenError: the file cannot be written, or was changed meanwhile.
    """
    check_codes(ignore)
    cured: list[Finding] = []
    for _ in range(MAX_ROUNDS):
        try:
            checked = open_golden(path, drafts=True)
        except GoldenError:
            break
        shelves = [library for library, _ in libraries(checked, corpus, target)]
        findings = fixable_findings(all_entries(checked), shelves)
        fixable = _one_a_place(finding for finding in findings if finding.code not in ignore)
        if not fixable:
            break
        _rewrite(checked.path, [finding.edit for finding in fixable if finding.edit])
        cured += fixable
    return cured


def _one_a_place(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each text that can be corrected: the last, which says which id is meant."""
    places: dict[tuple[int, str, int | None], Finding] = {}
    for finding in findings:
        if finding.edit:
            places[finding.edit.number, finding.edit.field, finding.edit.index] = finding
    return [places[place] for place in sorted(places, key=lambda place: (place[0], place[1], place[2] or 0))]


def _rewrite(path: Path, edits: Sequence[Edit]) -> None:
    """Replace the file by its corrected content."""
    replace_content(path, lambda text: apply_edits(text, edits, is_array=path.suffix == ".json"))
