"""Which sources are behind what got worse, in words that are the same in every rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evaltrack.compare.change import CauseKind
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit
from evaltrack.report.comparison.words import CAUSES, clip, count
from evaltrack.report.words import failure_words

HAPPENED = {
    "ids_changed": "has another id now",
    "source_text_changed": "was edited (another text, the same id)",
    "source_lost": "is no longer returned",
    "source_demoted": "is returned lower",
}
MOSTLY = 2 / 3
"""Share of what got worse from which it is said to be in one domain."""

SEEN_ON_PAGE = ("source_text_changed", "source_lost", "ids_changed")
"""What happened to a page itself, and not to the order of several."""

NOVELTIES = {"new": "is new in the results and now", "edited": "has another text and now", None: "now"}


def culprit_words(culprit: Culprit, k: int) -> str:
    """What happened to the page, or to the questions where no page is concerned."""
    if culprit.message:
        return clip(failure_words(culprit.message), 200)
    if culprit.kind == "rose":
        above = culprit.num_above == len(culprit.ids)
        where = "ranks above the expected source" if above else f"among the first {k} sources"
        return f"{NOVELTIES[culprit.novelty]} {where}"
    return HAPPENED[culprit.kind] if culprit.page is not None else CAUSES[culprit.kind]


def behind_words(comparison: Comparison) -> str:
    """What is behind most questions that got worse; empty where nothing did.

    As in ``“promo#1” is new in the results and now ranks above the expected source in 5 of 7 questions that got worse``
    """
    first = next(iter(comparison.culprits), None)
    if first is None:
        return ""
    if (cause := leading_cause(comparison)) is not None:
        return f"{_cause_part(comparison, cause)}{where_words(comparison)}"
    return f"{_culprit_part(comparison, first)}{where_words(comparison)}"


def leading_cause(comparison: Comparison) -> CauseKind | None:
    """What is behind at least half of what got worse, where no one page or error is.

    A page that is new, edited or gone is behind it from a third on: that it changed is seen, and not only inferred.
    """
    cause, questions = max(comparison.causes.items(), key=lambda item: item[1], default=(None, 0))
    first = next(iter(comparison.culprits), None)
    if first is None or 2 * questions < comparison.num_worse:
        return None
    enough = 3 if first.novelty or first.kind in SEEN_ON_PAGE else 2
    return None if enough * len(first.ids) >= comparison.num_worse else cause


def where_words(comparison: Comparison) -> str:
    """``; 14 of them are in “cdc”``, where most of what got worse is in one domain, and most questions are not."""
    domains = {group.name: group.num_questions for group in comparison.groups if group.kind == "domain"}
    worse = Counter(change.domain for change in (*comparison.flips, *comparison.lost, *comparison.drops))
    domain, questions = next(iter(worse.most_common(1)), ("", 0))
    few = 0 < 2 * domains.get(domain, 0) <= sum(domains.values())
    if not few or worse.total() != comparison.num_worse or questions < max(2, MOSTLY * worse.total()):
        return ""
    some = "all" if questions == worse.total() else f"{questions:,}"
    return f"; {some} of them are in {quoted(domain, 60)}"


def quoted(name: str | None, limit: int) -> str:
    """A name that others gave, so that one sees where it ends."""
    words = clip(name, limit)
    return f"“{words}”" if words else ""


def _cause_part(comparison: Comparison, cause: CauseKind) -> str:
    of = f"{comparison.causes[cause]:,} of {count(comparison.num_worse, 'question')} {worse_words(comparison)}"
    return f"{CAUSES[cause]} in {of}{riser_words(comparison.culprits, comparison, cause)}"


def _culprit_part(comparison: Comparison, first: Culprit) -> str:
    name = quoted(first.part or first.page, 120)
    words = f"{name} {culprit_words(first, comparison.candidate.signature.k)}".strip()
    of = f"{len(first.ids):,} of {count(comparison.num_worse, 'question')} {worse_words(comparison)}"
    if first.kind != "rose":
        return f"{words} ({of})"
    some = 0 < first.num_above < len(first.ids)
    return f"{words} in {of}{f', above the expected source in {first.num_above:,} of them' if some else ''}"


def behind_line(comparison: Comparison) -> str:
    """``Behind it: `` and what is; empty where it is no page and no error, as the summary of causes says it then."""
    first = next(iter(comparison.culprits), None)
    if first is None or not (first.page or first.message) or leading_cause(comparison) is not None:
        return ""
    return f"Behind it: {behind_words(comparison)}"


def cause_summary(comparison: Comparison) -> str:
    """Which causes the changes for the worse have, the most frequent first; empty where nothing got worse.

    As in ``7 of 9 questions that got worse: an expected source is returned lower, most often below “fares#refunds” (5);
    2: same sources, another answer``.
    """
    total, behind = comparison.num_worse, comparison.culprits
    parts: list[str] = []
    for kind, questions in sorted(comparison.causes.items(), key=lambda item: -item[1]):
        of = f"{count(total, 'question')} {worse_words(comparison)}"
        of = f"{questions:,}" if parts else f"{questions:,} of {of}"
        parts.append(f"{of}: {CAUSES[kind]}{riser_words(behind, comparison, kind)}")
    apart = total - sum(comparison.causes.values())
    return "; ".join([*parts, f"{apart:,}: not looked at"] if parts and apart > 0 else parts)


def worse_sentence(comparison: Comparison) -> str:
    """Which questions the causes are of: ``What changed first in each of 18 questions that got worse``."""
    return f"What changed first in each of {count(comparison.num_worse, 'question')} {worse_words(comparison)}"


def worse_words(comparison: Comparison) -> str:
    """``that got worse``, of questions that were lost too ``that got worse or were lost``."""
    return "that got worse or were lost" if comparison.lost else "that got worse"


def riser_words(risen: Sequence[Culprit], comparison: Comparison, kind: CauseKind) -> str:
    """``, most often below “promo#1” (5)``: what rose in more than one of the questions with this cause."""
    worse = (*comparison.flips, *comparison.lost, *comparison.drops)
    ids = {change.id for change in worse if change.cause.kind == kind}
    times = {place: len(ids.intersection(each.ids)) for place, each in enumerate(risen) if each.kind == "rose"}
    first = max(times, key=lambda place: times[place], default=0)
    if times.get(first, 0) < 2:
        return ""
    how = "with" if kind == "context_changed" else "below"
    return f", most often {how} {quoted(risen[first].part or risen[first].page, 80)} ({times[first]:,})"
