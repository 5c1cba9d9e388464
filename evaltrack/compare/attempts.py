"""Questions that are asked again: by whom, how often, and how that went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Record:
    """How often a question failed before, in trials and runs of the baseline's kind."""

    failed: int = 0
    times: int = 0


@dataclass(frozen=True)
class Again:
    """One answer to a question that was asked again: did it pass, and is it the `same` as the candidate's."""

    passed: bool | None
    same: bool


class Asker(Protocol):
    """Asks the candidate's target again."""

    @property
    def deterministic(self) -> bool:
        """Whether target and judge are known to answer the same way always, so that nothing need be asked."""

    def records(self, ids: Sequence[str]) -> Mapping[str, Record]:
        """The records of questions; those without one may be missing."""

    def ask(self, ids: Sequence[str], times: int) -> Mapping[str, Sequence[Again]]:
        """Ask each of these questions so many times again."""


@dataclass
class Tally:
    """How often a question was asked again, and how that went; the rest of `times` was not measured."""

    passed: int = 0
    failed: int = 0
    times: int = 0

    def add(self, answer: Again) -> None:
        """Count one answer."""
        self.times += 1
        self.passed += answer.passed is True
        self.failed += answer.passed is False


@dataclass
class Attempts:
    """All answers of before, and whether each was the same."""

    asker: Asker
    most: int
    tallies: dict[str, Tally] = field(default_factory=dict)
    calls: int = 0
    same: bool = True

    def ask(self, ids: Iterable[str], times: int) -> None:
        """Ask so many times more, within what is allowed."""
        open_ids = [key for key in ids if self.tally(key).times + times <= self.most]
        if not open_ids or times < 1:
            return
        for key, answers in self.asker.ask(open_ids, times).items():
            self.calls += len(answers)
            self.same &= all(answer.same for answer in answers)
            for answer in answers:
                self.tally(key).add(answer)

    def up_to(self, ids: Iterable[str], times: int) -> None:
        """Ask until each was asked so many times."""
        by_missing: dict[int, list[str]] = {}
        for key in ids:
            by_missing.setdefault(times - self.tally(key).times, []).append(key)
        for missing, those in by_missing.items():
            self.ask(those, missing)

    def tally(self, key: str) -> Tally:
        """That of one question."""
        return self.tallies.setdefault(key, Tally())
