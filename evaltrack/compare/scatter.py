"""Whether questions that went from pass to fail broke, or whether the answers of the target scatter. Pure.

Questions are asked again by whoever is handed in. A target that gives the same answers again is deterministic, and what
it fails now it fails for good. Of a target whose answers scatter, a question broke if it fails more often than its own
record says. Without a record to hold it against, a question that fails every time may have been lucky in the baseline;
as many questions are then lucky in the candidate, so that those tell how much of it scatter explains. Of those that
fail most times too many are no scatter either.

The levels of the tests add up, with that of `evaltrack.compare.gate`, to at most 5 % for a target as good as the
baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from evaltrack.compare.change import Repeat, RepeatKind
from evaltrack.stats.significance import mcnemar_exact, worse_than_record


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


MOST = 30
"""Times that one question is asked again at most."""

LOOKS = (5, 10, 30)
"""After so many answers the record is consulted."""

PERSISTENT = 10
"""Times after which a question without a record is asked no more."""

MOSTLY_LEVEL = 0.25
"""Two-sided level of the test of questions that fail most times, from which on they are unsettled: 3 against none."""

PROBES = 100
"""Answers that must all be the same before a target counts as deterministic: it then scatters in less than 3 %."""

DOUBT_LEVEL = 0.05
"""Below it a question that is not shown to be broken is not called scatter either, but unsettled."""

RECORD_LEVEL = 0.015
"""Chance that of all questions any is called broken though it fails no more often than its record says."""

LUCKY_LEVEL = 0.02
"""Two-sided level of the test of questions that fail every time against those that were lucky in the candidate."""


@dataclass(frozen=True)
class Scatter:
    """The result of asking again.

    `is_shown`: the answers scatter; `repeats` says of each question that went from pass to fail what came of it;
    `lucky` counts questions that went from fail to pass and failed every time again; `calls` were made.
    """

    is_shown: bool
    repeats: Mapping[str, Repeat]
    calls: int = 0
    lucky: int = 0


def settle(
    flips: Sequence[str], fixes: Sequence[str], others: Sequence[str], asker: Asker, *, most: int | None = None
) -> Scatter:
    """Ask again until it is settled which questions broke.

    Args:
        flips: Questions that went from pass to fail.
        fixes: Questions that went from fail to pass.
        others: Questions that may be asked besides, to find out whether the answers scatter at all.
        asker: Asks them again.
        most: Times that one question is asked again at most; None chooses.
    """
    if asker.deterministic:
        return Scatter(is_shown=False, repeats={key: Repeat(0, 0, 0, "real") for key in flips})
    attempts = Attempts(asker, most or MOST)
    deterministic = _is_deterministic(flips, fixes, others, attempts)
    records = asker.records(flips)
    if deterministic:
        return Scatter(
            is_shown=False, repeats=_repeats(flips, attempts, _now_fixed(flips, records), records), calls=attempts.calls
        )
    kinds = _against_records(flips, records, attempts)
    undecided = [key for key in flips if key not in kinds]
    lucky = 0
    if persistent := _persistent(undecided, attempts):
        lucky = len(_persistent(fixes, attempts))
        kinds |= dict.fromkeys(persistent, _explained(len(persistent), lucky))
    kinds |= dict.fromkeys(_doubted_together(undecided, fixes, kinds, attempts), "unsettled")
    kinds |= {key: "scatter" for key in undecided if key not in kinds}
    return Scatter(is_shown=True, repeats=_repeats(flips, attempts, kinds, records), calls=attempts.calls, lucky=lucky)


def _now_fixed(flips: Sequence[str], records: Mapping[str, Record]) -> dict[str, RepeatKind]:
    """Of answers that are the same again: a question broke, unless it failed before too.

    Then its pass in the baseline was luck that is too rare to be seen again, or it was mended just before.
    """
    return {key: "unsettled" if records.get(key, Record()).failed else "real" for key in flips}


def _is_deterministic(flips: Sequence[str], fixes: Sequence[str], others: Sequence[str], attempts: Attempts) -> bool:
    """Whether all answers are the same again; asked first are the questions whose answers are needed anyway."""
    attempts.ask(flips, 1)
    probes = list(dict.fromkeys((*flips, *fixes, *others)))[:PROBES]
    needed, times = min(attempts.most, ceil(PROBES / max(1, len(probes)))), 1
    while attempts.same and times < needed:
        attempts.up_to(probes, times)
        times *= 2
    attempts.up_to(probes if attempts.same else (), needed)
    return attempts.same


def _against_records(flips: Sequence[str], records: Mapping[str, Record], attempts: Attempts) -> dict[str, RepeatKind]:
    """The questions that their records decide: broken where they fail more often now, else scatter.

    What may well fail more often, and is not shown to with so many flips and looks, is unsettled.
    """
    looks = list(dict.fromkeys(min(look, attempts.most) for look in LOOKS))
    level = RECORD_LEVEL / (len(looks) * max(1, len(flips)))
    doubt = DOUBT_LEVEL / max(1, len(flips))
    failed_before = [key for key in flips if records.get(key, Record()).failed]
    faint = [key for key in failed_before if not _can_be_shown(records[key], Tally(), attempts.most, level)]
    kinds = _of_faint_records([key for key in flips if key in faint], records, attempts, doubt)
    open_ = [k for k in flips if k not in kinds and _can_be_shown(records.get(k), Tally(), attempts.most, level)]
    for look in dict.fromkeys((1, *looks)):
        attempts.up_to(open_, look)
        for key in open_:
            tally, record = attempts.tally(key), records[key]
            if look in looks and worse_than_record(tally.failed, tally.times, record.failed, record.times) < level:
                kinds[key] = "real"
            elif not _can_be_shown(record, tally, attempts.most, level):
                kinds[key] = _doubted(tally, record, len(flips))
        open_ = [key for key in open_ if key not in kinds]
    return kinds | {key: _doubted(attempts.tally(key), records[key], len(flips)) for key in open_}


def _of_faint_records(
    flips: Sequence[str], records: Mapping[str, Record], attempts: Attempts, doubt: float
) -> dict[str, RepeatKind]:
    """The questions that failed before, in so few of so few answers that failing each time now would not be shown.

    Where it would be doubted they are asked as long as they fail, and are unsettled if they always do.
    """
    open_ = list(flips)
    for look in dict.fromkeys((1, *(min(look, attempts.most) for look in LOOKS))):
        open_ = [k for k in open_ if _can_be_shown(records[k], attempts.tally(k), attempts.most, doubt)]
        attempts.up_to(open_, look)
    doubted = {k for k in open_ if _can_be_shown(records[k], attempts.tally(k), attempts.tally(k).times, doubt)}
    return {key: "unsettled" if key in doubted else "scatter" for key in flips}


def _doubted(tally: Tally, record: Record, flips: int) -> RepeatKind:
    """What a question is that is not shown to fail more often than its record."""
    p = worse_than_record(tally.failed, tally.times, record.failed, record.times)
    return "unsettled" if p < DOUBT_LEVEL / flips else "scatter"


def _can_be_shown(record: Record | None, tally: Tally, most: int, level: float) -> bool:
    """Whether a question would be called broken if it failed each time that it can still be asked."""
    if record is None:
        return False
    room = most - tally.times
    return (
        worse_than_record(tally.failed + room, tally.passed + tally.failed + room, record.failed, record.times) < level
    )


def _persistent(ids: Sequence[str], attempts: Attempts) -> list[str]:
    """The questions that fail every time they are asked again; one that passes once is asked no more."""
    failing = _failing(ids, attempts, lambda tally: not tally.passed, first=1)
    return [key for key in failing if attempts.tally(key).failed]


def _mostly_failing(ids: Sequence[str], attempts: Attempts) -> list[str]:
    return _failing(ids, attempts, lambda tally: tally.failed > tally.passed, first=5)


def _failing(ids: Sequence[str], attempts: Attempts, fails: Callable[[Tally], bool], first: int) -> list[str]:
    """The questions that still fail so after each look; others are asked no more."""
    most = min(PERSISTENT, attempts.most)
    for times in dict.fromkeys((min(first, most), min(5, most), most)):
        attempts.up_to(ids, times)
        ids = [key for key in ids if fails(attempts.tally(key))]
    return list(ids)


def _doubted_together(
    undecided: Sequence[str], fixes: Sequence[str], kinds: Mapping[str, RepeatKind], attempts: Attempts
) -> list[str]:
    """The questions without a record that fail most times, where more do than were fixed by luck.

    Of two equal systems a question that fails most times goes from pass to fail as often as the other way round.
    """
    if mcnemar_exact(len(undecided), 0) > MOSTLY_LEVEL:
        return []
    worse = _mostly_failing(undecided, attempts)
    if mcnemar_exact(len(worse), 0) > MOSTLY_LEVEL:
        return []
    lucky = _mostly_failing(fixes, attempts)
    more = len(worse) > len(lucky) and mcnemar_exact(len(worse), len(lucky)) <= MOSTLY_LEVEL
    return [key for key in worse if key not in kinds] if more else []


def _explained(persistent: int, lucky: int) -> RepeatKind:
    """What questions without a record are that fail every time, of which scatter explains about as many as `lucky`."""
    if persistent > lucky and mcnemar_exact(persistent, lucky) < LUCKY_LEVEL:
        return "real"
    return "unsettled" if persistent > 2 * lucky else "scatter"


def _repeats(
    flips: Sequence[str], attempts: Attempts, kinds: Mapping[str, RepeatKind], records: Mapping[str, Record]
) -> dict[str, Repeat]:
    repeats = {}
    for key in flips:
        tally, record = attempts.tally(key), records.get(key, Record())
        kind: RepeatKind = kinds[key] if tally.passed + tally.failed else "not measured"
        repeats[key] = Repeat(tally.times, tally.passed, tally.failed, kind, record.failed, record.times)
    return repeats
