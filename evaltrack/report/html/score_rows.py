"""The scores of a question as one table: its name, before, now, by how much it changed, and whether that is better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from evaltrack.compare.comparison import Comparison
from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.metric import Score
from evaltrack.report.words import metric_course, metric_number, metric_title
from evaltrack.rows.stored_row import StoredRow

SCORES_SHOWN = tuple(score for score in SCORES if not score.binary and score.section != "judge")
"""What is neither yes nor no, nor a part of what the judge said."""


Line = tuple[str, str, bool]
"""Name and title of a score, and whether more is better."""


@dataclass(frozen=True)
class ScoreScope:
    """Which scores stand in the table: k, the metrics that are left out, and own scores of which less is better."""

    k: int
    left_out: Sequence[str] = ()
    lower_is_better: frozenset[str] = frozenset()

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Those of our scores that may stand in the table."""
        scores = (score for score in SCORES_SHOWN if score.metric not in self.left_out)
        return tuple((score.name, score_name(score, self.k), score.higher_is_better) for score in scores)

    def lines_of(self, names: tuple[str, ...], own: tuple[str, ...]) -> tuple[Line, ...]:
        """Those of scores with these names, of which some are one's own; many questions have the same."""
        lines = self._lines_of.get((names, own))
        if lines is None:
            lines = tuple(line for line in self.lines if line[0] in names)
            lines += tuple(
                (name, name, name not in self.lower_is_better)
                for name in own
                if name in names and name not in self.left_out
            )
            self._lines_of[names, own] = lines
        return lines

    @cached_property
    def _lines_of(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[Line, ...]]:
        return {}


def compared_scope(comparison: Comparison) -> ScoreScope:
    """That of a comparison; what is not compared is left out."""
    lower = frozenset(metric.name for metric in comparison.metrics if not metric.higher_is_better)
    return ScoreScope(comparison.candidate.signature.k, comparison.left_out, lower)


def score_lines(row: StoredRow, scope: ScoreScope) -> list[list[str]]:
    """Name and value of each score of one side."""
    lines = scope.lines_of(tuple(row.scores), row.own)
    return [[title, _number(name, row.scores[name])] for name, title, _ in lines]


@lru_cache(maxsize=4096)
def _number(name: str, value: float) -> str:
    """Many questions have the same scores."""
    return metric_number(name, value)


def score_changes(before: StoredRow, after: StoredRow, scope: ScoreScope) -> list[list[str]]:
    """Name, before, now, change, and `good` or `bad`; empty where a side has no value or nothing changed."""
    return [
        [title, *_values(before, after, name), *_change(before, after, name, higher_is_better)]
        for name, title, higher_is_better in _scores((before, after), scope)
    ]


def score_name(score: Score, k: int) -> str:
    """What a score of one question is called: its reciprocal rank is no mean of them."""
    return "Reciprocal rank" if score.name == "reciprocal_rank" else metric_title(score.metric, k)


def _scores(rows: Sequence[StoredRow], scope: ScoreScope) -> Iterator[Line]:
    """Name, title, and whether more is better, of what at least one of the rows has."""
    names = dict.fromkeys(chain.from_iterable(row.scores for row in rows))
    own = dict.fromkeys(chain.from_iterable(row.own for row in rows))
    yield from scope.lines_of(tuple(names), tuple(own))


def _values(before: StoredRow, after: StoredRow, name: str) -> list[str]:
    if name in before.scores and name in after.scores:
        return list(metric_course(name, before.scores[name], after.scores[name])[:2])
    return [metric_number(name, row.scores[name]) if name in row.scores else "" for row in (before, after)]


def _change(before: StoredRow, after: StoredRow, name: str, higher_is_better: bool) -> tuple[str, str]:
    if name not in before.scores or name not in after.scores or before.scores[name] == after.scores[name]:
        return "", ""
    was, now = before.scores[name], after.scores[name]
    return metric_course(name, was, now)[2], "good" if (now > was) == higher_is_better else "bad"
