"""What differs in how two runs were made, as a sentence that begins a comparison."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.run_info import RECORDED, TARGET, RunDifference
from evaltrack.records.settings import COMMIT, RESPONSES, UNCOMMITTED, VERDICTS
from evaltrack.report.comparison.words import clip

SHOWN = 12
"""Settings that are named; of very many the JSON holds all."""

SHOWN_VALUE = 100


def difference_words(comparison: Comparison) -> str:
    """``chunk_size 400 to 600; commit 1a2b3c4d5e6f (main) to 9f8e7d6c5b4a (main)``.

    Empty where no difference is known and a run does not say how it was made.
    """
    differences = [each for each in comparison.differences if not _names_a_digested_file(each, comparison)]
    parts = [*map(_words, differences[:SHOWN]), *_same_but_changed(comparison)]
    if len(differences) > SHOWN:
        parts.append(f"{len(differences) - SHOWN:,} more")
    stated = comparison.baseline.settings and comparison.candidate.settings
    if parts or not stated:
        return "; ".join(parts)
    if comparison.candidate.signature.target.startswith(RECORDED) and not _digests_responses(comparison):
        return "nothing that the runs recorded, which is the name of the file of responses and not its content"
    return "nothing that the runs recorded"


def _words(difference: RunDifference) -> str:
    if difference.name in (RESPONSES, VERDICTS):
        return f"other {difference.name}"
    if _names_files(difference):
        return f"other {RESPONSES}"  # the names of their files say nothing of what was asked
    was, now = (_value(value) for value in (difference.baseline, difference.candidate))
    return f"{clip(difference.name, 80)} {was} to {now}"


def _names_files(difference: RunDifference) -> bool:
    """Whether it is the names of two files of recorded responses."""
    values = (difference.baseline or "", difference.candidate or "")
    return difference.name == TARGET and all(value.startswith(RECORDED) for value in values)


def _names_a_digested_file(difference: RunDifference, comparison: Comparison) -> bool:
    """Whether it is these names alone, and digests say whether the responses are others."""
    return _names_files(difference) and _digests_responses(comparison)


def _digests_responses(comparison: Comparison) -> bool:
    """Whether both runs say which recorded responses they read."""
    return all(RESPONSES in run.settings for run in (comparison.baseline, comparison.candidate))


def _value(value: str | None) -> str:
    if value is None:
        return "(none)"
    return clip(value, SHOWN_VALUE) or "(empty)"


def _same_but_changed(comparison: Comparison) -> Iterator[str]:
    """That both runs have changes on top of one commit, so that the code may differ all the same."""
    commits = [run.settings.get(COMMIT) for run in (comparison.baseline, comparison.candidate)]
    if commits[0] and commits[0] == commits[1] and UNCOMMITTED in commits[0]:
        yield f"perhaps the code: both have {UNCOMMITTED} on top of {clip(commits[0].partition(' ')[0], 20)}"
