"""Why questions got worse, by cause with their texts, and where: what broke and was fixed by domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaltrack.compare.change import CauseKind
from evaltrack.compare.comparison import Comparison, GroupDelta
from evaltrack.report.comparison.culprit_words import riser_words
from evaltrack.report.comparison.words import CAUSES, clip
from evaltrack.report.html.plots import flip_bars
from evaltrack.report.html.text import shown
from evaltrack.report.words import metric_number

TEXTS, DOMAINS = 2, 12


@dataclass(frozen=True)
class CauseView:
    """One cause: its code, which filters, its words, how many questions have it, and the first of them."""

    code: CauseKind
    words: str
    count: int
    questions: tuple[tuple[str, str], ...]

    @property
    def more(self) -> int:
        """Questions that are not named."""
        return self.count - len(self.questions)


@dataclass(frozen=True)
class PlaceView:
    """One domain: its pass rate on both sides, and its bars."""

    name: str
    was: str
    now: str
    worse: bool
    bars: str


def cause_views(comparison: Comparison) -> list[CauseView]:
    """All causes, the most frequent first."""
    worse, behind = [*comparison.flips, *comparison.lost, *comparison.drops], comparison.culprits
    return [
        CauseView(
            kind,
            f"{CAUSES[kind][:1].upper()}{CAUSES[kind][1:]}{riser_words(behind, comparison, kind)}",
            number,
            tuple((shown(e.id, 200), shown(e.question, 160)) for e in worse if e.cause.kind == kind)[:TEXTS],
        )
        for kind, number in sorted(comparison.causes.items(), key=lambda item: -item[1])
    ]


def place_views(comparison: Comparison) -> list[PlaceView]:
    """At most `DOMAINS` in which a question broke or was fixed, the worst first."""
    flipped = _flipped(comparison)[:DOMAINS]
    most = max((max(group.pass_to_fail, group.fail_to_pass) for group in flipped), default=0)
    return [_place(group, most) for group in flipped]


def num_places(comparison: Comparison) -> int:
    """How many there are, also those that are left out."""
    return len(_flipped(comparison))


def _flipped(comparison: Comparison) -> list[GroupDelta]:
    domains = [group for group in comparison.groups if group.kind == "domain"]
    if not comparison.passing_compared or len(domains) < 2:
        return []
    return sorted(
        (group for group in domains if group.pass_to_fail or group.fail_to_pass),
        key=lambda group: (group.fail_to_pass - group.pass_to_fail, -group.pass_to_fail),
    )


def _place(group: GroupDelta, most: int) -> PlaceView:
    was, now = next(_rates(group), ("–", "–"))
    bars = flip_bars(group.pass_to_fail, group.fail_to_pass, most)
    return PlaceView(clip(group.name, 40), was, now, group.pass_to_fail > group.fail_to_pass, bars)


def _rates(group: GroupDelta) -> Iterator[tuple[str, str]]:
    for metric in group.metrics:
        if metric.name == "pass_rate":
            yield metric_number("pass_rate", metric.baseline), metric_number("pass_rate", metric.candidate)
