"""A comparison as annotations of a GitHub job: workflow commands, one a line."""

from collections.abc import Iterator

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison
from evaltrack.records.amount import count
from evaltrack.report.comparison.counts import chance_words
from evaltrack.report.comparison.culprit_words import behind_line, several_causes
from evaltrack.report.comparison.headline import verdict_sentence
from evaltrack.report.comparison.words import (
    cause_words,
    change_words,
    clip,
    reason_words,
    sides_words,
)

SHOWN = 10
"""GitHub shows ten errors and ten warnings of a step, and drops what comes after without a word."""


def annotations(comparison: Comparison) -> Iterator[str]:
    """Lines to print: the verdict with its reasons, and the first questions that flipped or were lost.

    A regression is an ``::error``, as are its flips; that it could not be told, lost questions, and flips that the gate
    tolerates are each a ``::warning``. Nothing where nothing is wrong. At most ten of each.
    """
    failed = comparison.verdict == "regression"
    verdict = [] if comparison.verdict == "ok" else [_verdict(comparison)]
    blocking = [change for change in comparison.flips if change.counts and failed]
    others = [change for change in comparison.flips if not (change.counts and failed)]
    errors = [*verdict, *map(_question, blocking[:SHOWN])] if failed else []
    warnings = [*([] if failed else verdict), *map(_question, (*others[:SHOWN], *comparison.lost[:SHOWN]))]
    yield from _commands("error", errors, len(verdict) + len(blocking) if failed else 0)
    yield from _commands("warning", warnings, len(others) + len(comparison.lost) + (0 if failed else len(verdict)))


def _verdict(comparison: Comparison) -> tuple[str, str]:
    lines = (
        behind_line(comparison),
        sides_words(comparison),
        *reason_words(comparison),
        chance_words(comparison),
        several_causes(comparison),
    )
    return verdict_sentence(comparison), "\n".join(filter(None, lines))


def _question(change: Change) -> tuple[str, str]:
    return change_words(change), f"{cause_words(change)}\nasked: {clip(change.question)}"


def _commands(level: str, messages: list[tuple[str, str]], total: int) -> Iterator[str]:
    """The first messages; where there are more, the last one says how many."""
    first = messages if total <= SHOWN else messages[: SHOWN - 1]
    for title, message in first:
        yield f"::{level} title={_property(title)}::{_data(message)}"
    if total > len(first):
        yield f"::{level} title=evaltrack::and {count(total - len(first), 'question')} more"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
