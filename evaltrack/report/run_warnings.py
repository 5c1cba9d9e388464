"""Warns, during and after a run, about problems that its means hide: ids of another form, a small k, ..."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from evaltrack.errors import Guide
from evaltrack.golden.words import plain_form, told_apart
from evaltrack.metrics.measure import NO_SOURCES
from evaltrack.metrics.retrieval import NO_IDS, NO_TEXTS, NO_TITLES
from evaltrack.metrics.rubric import misfits
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Row
from evaltrack.records.base import cut
from evaltrack.records.row import NAMELESS, failure_message
from evaltrack.report.templates import sentences

SHOWN = 3
"""Number of questions that a warning names."""

ENOUGH = 10
"""Number of questions after which a warning about misses or unmeasured retrieval is given."""

LONGEST = 60
"""Maximum characters of an id or a text of a source."""

REASONS = {NO_TEXTS: "no texts", NO_SOURCES: "no sources", NO_IDS: "no ids", NO_TITLES: "no titles"}
"""The reasons that retrieval was not measured."""

ABOVE_ONE = "less than or equal to 1"
"""A part of the error about a judge's score above 1."""


@dataclass
class Noticed:
    """The questions with one problem: their number, the first ids, and the problem of the first."""

    number: int = 0
    ids: list[str] = field(default_factory=list)
    example: str = ""

    def add(self, row: Row, problem: str) -> None:
        """Add a question."""
        self.number += 1
        self.ids += [shown_text(row.id)] * (len(self.ids) < SHOWN)
        self.example = self.example or shown_text(problem)


class RunWarnings:
    """All warnings of a run; `warn` is called while the run can still be stopped.

    A run `of_failed` asks only questions that did not pass before.
    """

    def __init__(
        self, k: int, own_names: Sequence[str], warn: Callable[[str], object], *, of_failed: bool = False
    ) -> None:
        self.k, self.own_names, self._warn = k, own_names, warn
        self.noticed: dict[str, Noticed] = defaultdict(Noticed)
        self.counts = Counter[str]()
        self.came_back = of_failed
        """True if an expected source was returned once; sources beyond the first k count, too."""

        self.most_expected = 0
        self._failed_trials: dict[int, str] = {}

    def add_trial(self, row: Row) -> None:
        """Add one trial of a question."""
        if row.error:
            self.counts["failed trials"] += 1
            self._failed_trials.setdefault(row.position, row.error)

    def add(self, row: Row) -> None:
        """Add one finished question, after its trials."""
        expecting = "hit" in row.scores or row.unmeasured.get("hit") in REASONS
        self.counts["expecting"] += expecting
        self.counts["measured"] += "hit" in row.scores
        self.counts["answered"] += not row.target_failed
        self.counts["judged 1"] += any(verdict.overall_score == 1 for verdict in row.verdicts)
        for kind, problem in self._problems(row):
            self.noticed[kind].add(row, problem)
        if expecting and self.counts["expecting"] == ENOUGH:
            for text in self.texts(early=True):
                self._warn(text)

    def texts(self, *, early: bool = False) -> list[str]:
        """Return all warnings, or the `early` ones: those that no later question is likely to change."""
        return sentences("run_warnings.txt", w=self, early=early, enough=ENOUGH, shown=SHOWN, Guide=Guide)

    def _problems(self, row: Row) -> Iterator[tuple[str, str]]:
        """Yield the kind and an example of each problem of a question."""
        error = self._failed_trials.pop(row.position, "")
        if error and row.passed is not None:  # the other trials measure it
            yield "failed trials", error
        if row.error and ABOVE_ONE in row.error:
            yield "above 1", failure_message(row.error)
        observed = (verdict.observed for verdict in row.verdicts if verdict.observed is not None)
        if words := "; ".join(words for each in observed for words in misfits(each)):
            yield "impossible grades", words
        expected = () if row.by_passage else row.expected or ()
        self.most_expected = max(self.most_expected, len(expected))
        if len(expected) > self.k:  # passages do not count: a chunk may hold several
            yield "small k", ""
        yield from self._unmeasured(row)
        if "hit" in row.scores and not row.target_failed:
            yield from self._misses(row)

    def _unmeasured(self, row: Row) -> Iterator[tuple[str, str]]:
        why = row.unmeasured.get("hit", "")
        needs_sources = not (row.declined or row.holds_nothing)
        if not row.target_failed and why in REASONS and (why != NO_SOURCES or needs_sources):
            yield REASONS[why], why
        for name in self.own_names:
            if name in row.unmeasured:
                yield f"score {name}", row.unmeasured[name]

    def _misses(self, row: Row) -> Iterator[tuple[str, str]]:
        """Yield an expected and a returned source, if no expected one came back so far; and ids that nearly match."""
        if self.came_back and row.scores["recall_at_k"] == 1:
            return
        relevant, keys = set(row.expected_keys), [key for found in row.source_keys for key in found]
        self.came_back |= not relevant.isdisjoint(keys)
        named = [] if row.by_passage else [key for key in keys if not key.startswith(NAMELESS)]
        texts = [source.text for source in row.sources or () if source.text]
        if not self.came_back and named:
            pair = [cut(name, LONGEST) for name in told_apart(min(row.expected_keys), named[0])]
            yield "other ids", "expected {}, returned e.g. {}".format(*pair)
        elif not self.came_back and texts:
            text = f"“{cut(' '.join(texts[0].split()), LONGEST)}”"
            yield "other texts", f"expected {row.expected_keys[0]}, returned e.g. {text}"
        forms = {plain_form(key): key for key in named}
        near = ((key, forms.get(plain_form(key))) for key in relevant.difference(keys) if named)
        if pair_of_ids := next(((key, other) for key, other in near if other), None):
            yield "near ids", "expected {}, returned {}".format(*told_apart(*pair_of_ids))
