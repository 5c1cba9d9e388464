"""Why questions that broke are no scatter and are not shown to be broken either, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evaltrack.compare.change import Change
from evaltrack.compare.repeats import Asking, Repeat
from evaltrack.records.amount import count, first_of, verb

NAMED = 3
RECORD = "evaluate the baseline with --trials 5, or several times, so that there is a record"
LONGER_RECORD = "evaluate the baseline with more trials, or more often"


def unsettled_words(flips: Iterable[Change], asking: Asking) -> Iterator[str]:
    """A sentence on those that fail every time, one on those that fail most times, one on those with a record.

    Where there are several kinds one on all of them comes first.
    """
    unsettled = [(flip, flip.repeat) for flip in flips if flip.repeat is not None and flip.repeat.kind == "unsettled"]
    recorded: list[tuple[Change, Repeat]] = []
    always: list[tuple[Change, Repeat]] = []
    mostly: list[tuple[Change, Repeat]] = []
    for flip, repeat in unsettled:
        has_record = asking.scatter is not False and repeat.record_times
        (recorded if has_record else mostly if repeat.passed else always).append((flip, repeat))
    sentences = [_without_record(those, asking) for those in (always, mostly) if those]
    sentences += [_with_record(recorded)] if recorded else []
    if len(sentences) > 1:
        yield f"{_those(unsettled)} may have broken, or scatter: asking again does not tell"
    yield from sentences


def _without_record(unsettled: Sequence[tuple[Change, Repeat]], asking: Asking) -> str:
    times = "every time" if not unsettled[0][1].passed else "most times"
    fails = f"{_those(unsettled)} {verb(len(unsettled), 'fails', 'fail')} {times} again and passed once in the baseline"
    why = "answers scatter, or it was mended just before" if asking.scatter is False else "answers scatter"
    lucky = f"{asking.lucky:,} of the questions that were fixed fail every time too; " if asking.lucky else ""
    return f"{fails}; {why}; {lucky}{RECORD}"


def _with_record(unsettled: Sequence[tuple[Change, Repeat]]) -> str:
    repeats = [repeat for _, repeat in unsettled]
    again = f"{sum(each.failed for each in repeats):,} of {count(sum(each.times for each in repeats), 'time')}"
    before = f"{sum(each.record_failed for each in repeats):,} of {sum(each.record_times for each in repeats):,}"
    fails = f"{_those(unsettled)} failed {again} again, and {before} before"
    return f"{fails}; that {verb(len(unsettled), 'it fails', 'they fail')} more often is not shown; {LONGER_RECORD}"


def _those(unsettled: Sequence[tuple[Change, Repeat]]) -> str:
    """``4 questions (a, b, c, …)``."""
    ids = [flip.id for flip, _ in unsettled]
    return f"{count(len(ids), 'question')} ({first_of(ids, NAMED)})"
