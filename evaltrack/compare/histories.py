"""How questions went over the last runs of their golden set, and which of them are flaky. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

PASSED, FAILED, ERROR, UNMEASURED, EDITED, ABSENT = "pfend-"
"""Outcomes of a question in a run, each a letter: it passed, failed, ended in an error, was not measured, was another
question then (its line was edited since), or was not asked."""

FLAKY_SWITCHES = 2
"""Changes between pass and fail from which a question is called flaky: one that broke, or was mended, has one."""

BAD_SHARE, BAD_LEAST = 0.05, 3
"""Share of the questions, and their number, that fail in a run alone from which it is called bad."""


@dataclass(frozen=True)
class HistoryRun:
    """A run as one column.

    `started_at` is in milliseconds since 1970 (UTC), `commit` as git names it, or empty, `target` what was asked.
    """

    run_id: str
    name: str
    started_at: int = 0
    commit: str = ""
    target: str = ""


class AskedQuestion(NamedTuple):
    """One question of a run, with the letter of its outcome."""

    id: str
    digest: str
    outcome: str


def letter_of(passed: bool | None, error: str | None) -> str:
    """The letter of an outcome."""
    if error:
        return ERROR
    return UNMEASURED if passed is None else PASSED if passed else FAILED


@dataclass(frozen=True)
class Histories:
    """The outcomes of questions over `runs`, oldest first: for each question as many letters as there are runs.

    Where runs of several targets stand here, what is concluded (since when a question fails, how often it switched,
    which runs are bad) is of those of the last run's target alone.
    """

    runs: tuple[HistoryRun, ...] = ()
    outcomes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def own(self) -> tuple[int, ...]:
        """The places of the runs of the last run's target."""
        return tuple(place for place, run in enumerate(self.runs) if run.target == self.runs[-1].target)

    def strip(self, question_id: str) -> str:
        """The letters of a question, oldest first; empty where it is in none of the runs."""
        return self.outcomes.get(question_id, "")

    def first_broke(self, question_id: str) -> HistoryRun | None:
        """The run since which the question fails; None where it does not fail now, or no pass is known before.

        What was not measured in between neither ends nor begins a streak.
        """
        since: int | None = None
        letters = self.strip(question_id)
        for place in reversed(self.own if letters else ()):
            letter = letters[place]
            if letter == PASSED:
                return None if since is None else self.runs[since]
            since = place if letter == FAILED else since
        return None

    @cached_property
    def bad_runs(self) -> frozenset[str]:
        """Runs in which many questions fail that pass in the runs before and after, or in which many end in errors."""
        own = [self.runs[place] for place in self.own]
        alone, measured = [0] * len(own), [0] * len(own)
        for all_letters in self.outcomes.values():
            letters = "".join(all_letters[place] for place in self.own)
            for place, letter in enumerate(letters):
                measured[place] += letter not in (ABSENT, EDITED)
                alone[place] += letter in (FAILED, ERROR) and _passed_around(letters, place)
        bad = (count >= max(BAD_LEAST, BAD_SHARE * of) for count, of in zip(alone, measured, strict=True))
        return frozenset(run.run_id for run, is_bad in zip(own, bad, strict=True) if is_bad)


def switches(letters: str) -> int:
    """How often a question went from pass to fail or back, what was not measured left out."""
    return sum(one != other for one, other in pairwise([each for each in letters if each in (PASSED, FAILED)]))


def _passed_around(letters: str, place: int) -> bool:
    """Whether it passed in the runs beside this one; at an end in the one beside it, which must have one."""
    beside = letters[max(place - 1, 0) : place] + letters[place + 1 : place + 2]
    return len(beside) > 1 and set(beside) == {PASSED}


def histories(runs: Sequence[tuple[HistoryRun, Iterable[AskedQuestion]]]) -> Histories:
    """The histories of the questions of the last run, from all `runs`, oldest first."""
    if not runs:
        return Histories()
    last = {each.id: each for each in runs[-1][1]}
    columns = []
    for _, questions in runs[:-1]:
        column = {
            each.id: each.outcome if each.digest == last[each.id].digest else EDITED
            for each in questions
            if each.id in last
        }
        columns.append(column)
    columns.append({key: each.outcome for key, each in last.items()})
    outcomes = {key: "".join(column.get(key, ABSENT) for column in columns) for key in last}
    return Histories(tuple(run for run, _ in runs), outcomes)


@dataclass(frozen=True)
class MatrixRow:
    """One question over the runs; `switches` leaves out the bad runs, in which many failed."""

    id: str
    letters: str
    switches: int

    @property
    def is_flaky(self) -> bool:
        """Whether it went both ways."""
        return self.switches >= FLAKY_SWITCHES


@dataclass(frozen=True)
class Matrix:
    """Questions by runs, the most telling questions first; `more` failed or changed and are not among the rows."""

    runs: tuple[HistoryRun, ...]
    rows: tuple[MatrixRow, ...]
    bad_runs: frozenset[str]
    more: int
    steady: int
    flaky: int


def matrix(made: Histories, most: int) -> Matrix:
    """The flaky questions first, then those that fail now, then those that failed; `most` of them in all.

    Questions that passed in every run that measured them are counted as `steady`.
    """
    sound = [place for place in made.own if made.runs[place].run_id not in made.bad_runs]
    rows = [
        MatrixRow(key, letters, switches("".join(letters[place] for place in sound)))
        for key, letters in made.outcomes.items()
    ]
    telling = [row for row in rows if set(row.letters) & {FAILED, ERROR}]
    telling.sort(key=lambda row: (-row.switches if row.is_flaky else 0, row.letters[-1] == PASSED, -_failed(row)))
    flaky = sum(row.is_flaky for row in rows)
    return Matrix(
        made.runs, tuple(telling[:most]), made.bad_runs, max(len(telling) - most, 0), len(rows) - len(telling), flaky
    )


def _failed(row: MatrixRow) -> int:
    return row.letters.count(FAILED) + row.letters.count(ERROR)
