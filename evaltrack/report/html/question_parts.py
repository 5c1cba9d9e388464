"""Converts one question's scores, ranks, sources, verdicts and earlier turns to JSON for an HTML report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.differences import first_rank, in_order, source_id
from evaltrack.metrics.catalogue import BY_NAME, SCORES
from evaltrack.metrics.rubric import PASS_SCORE
from evaltrack.records import Signature
from evaltrack.records.row import Row, RowSource
from evaltrack.records.verdict import ANSWER_GRADES, Dimensions, Observed, Verdict
from evaltrack.report.html.page import safe_link, shown
from evaltrack.report.words import metric_course, metric_number, score_title

REASONING, JUDGED = "reasoning_score", "overall_score"


def score_scale(signature: Signature) -> dict[str, float]:
    """Return the score from which a question passes, and the highest score."""
    if signature.rubric == "reasoning":
        return {"threshold": float(PASS_SCORE), "span": 100.0}
    return {"threshold": signature.pass_threshold, "span": 1.0}


def numbers(before: Row | None, after: Row | None, scope: ScoreScope) -> dict[str, Any]:
    """Return `score` and `ranks` of both sides, None if not measured; left out if neither side was measured.

    A rank of 0 means that the expected source was not returned.
    """
    judged = "judge_score" not in scope.left_out
    score = [_score(row) if judged else None for row in (before, after)]
    ranks = [_rank(row) for row in (before, after)]
    fields = {"score": score, "ranks": ranks}
    return {name: pair for name, pair in fields.items() if pair != [None, None]}


def _score(row: Row | None) -> float | None:
    if row is None:
        return None
    value = row.scores.get(REASONING, row.scores.get(JUDGED))
    return None if value is None else round(value, 4)


def _rank(row: Row | None) -> int | None:
    """Return the rank of the first expected source."""
    return None if row is None or not row.expected or row.sources is None else first_rank(row) or 0


LAST_TURNS = 20
"""Last turns before a question that a page shows."""


def turns_before(row: Row, limit: int) -> dict[str, Any]:
    """Return the last turns before the question as role and text, and the number of earlier ones."""
    last = row.history[-LAST_TURNS:]
    room = max(100, limit // max(1, len(last)))
    return {
        "turns": [[turn.role, shown(turn.content, room)] for turn in last],
        "turns_left_out": len(row.history) - len(last),
    }


LISTED, MOST = 12, 30
"""Ranks listed at least, and at most. After these and after k, only expected sources are listed."""

NAME, SNIPPET = 160, 400


def ranked(row: Row, other: Row | None, k: int) -> list[dict[str, Any]] | None:
    """Return one object for each source, without repeats; None if the target reports no sources.

    It holds `rank`, `name`, and if known: `title`, `url`, `score`, `text` (its beginning), `expected`, `moved` (its
    rank on the other side, 0 if it is not there) and `changed` (its text differs from the other side).
    """
    if row.sources is None:
        return None
    ids = {source_id(source) for _, _, source in in_order(row)}
    other_places = _places(other, ids) if other and other.sources is not None else None
    expected, last = set(row.expected_keys), max(min(k, MOST), LISTED)
    lines = []
    for rank, keys, source in in_order(row):
        is_expected = not expected.isdisjoint(keys)
        if rank > last and not is_expected:
            continue
        name = row.name_of(source)
        other_rank, other_source = None, None
        if other_places is not None:
            match = other_places.get(("id", source_id(source))) or other_places.get(("key", keys[0]))
            other_rank, other_source = match or (0, None)
        fields = {
            "rank": rank,
            "name": shown(name, NAME),
            "title": shown(source.title, NAME) if source.title != name else "",
            "url": safe_link(source.url),
            "score": None if source.score is None else _short(source.score),
            "text": shown(source.text, SNIPPET),
            "expected": is_expected or None,
            "moved": other_rank,
            "changed": _texts_differ(source, other_source) or None,
        }
        lines.append({field: value for field, value in fields.items() if value is not None and value != ""})
    return lines


def _places(row: Row, other_ids: Set[str]) -> dict[tuple[str, str], tuple[int, RowSource]]:
    """Return rank and source by its id, marked `id`, if the other side has this id, else by its keys, marked `key`.

    An edited source may no longer contain an expected passage, which is its key.
    """
    places: dict[tuple[str, str], tuple[int, RowSource]] = {}
    for rank, keys, source in in_order(row):
        own_id = source_id(source)
        marked = [("id", own_id)] if own_id and own_id in other_ids else [("key", key) for key in keys]
        places |= dict.fromkeys(marked, (rank, source))
    return places


def missing(row: Row) -> list[str]:
    """Return the expected sources that were not returned, in the golden set's names; empty if nothing is known."""
    if row.sources is None or not row.expected or row.scores.get("recall_at_k") == 1:
        return []
    returned = set(chain.from_iterable(row.source_keys))
    names = zip(row.expected_keys, row.expected, strict=True)
    return [shown(name, NAME) for key, name in dict(names).items() if key not in returned]


def expected_alone(row: Row) -> list[str]:
    """Return the expected sources of a row without sources. The list of sources shows them for other rows."""
    return [] if row.sources is not None else [shown(name, NAME) for name in row.expected or ()]


def _short(score: float) -> float | None:
    """Return four digits of the score; None if JSON cannot hold it, as the largest floats round to infinity."""
    rounded = float(f"{score:.4g}")
    return rounded if isfinite(rounded) else None


def _texts_differ(one: RowSource, other: RowSource | None) -> bool:
    if other is None:
        return False
    digests = one.text_digest, other.text_digest
    return None not in digests and digests[0] != digests[1]


SAID, QUOTE = 3000, 300
"""Characters of a judge's reasoning, and of a quote."""

OVERALL, *PARTS = ANSWER_GRADES
DIMENSIONS = tuple(Dimensions.model_fields)


def verdicts(row: Row) -> list[dict[str, Any]]:
    """Return an object for each judge.

    It holds `judge`, `said`, and if known `score`, `declined`, `grades` and `quotes`. The reasoning of the judges of
    user-defined scores follows, under the names of the scores.
    """
    of_scores = [
        {"judge": shown(name, 80), "said": shown(verdict.reasoning, SAID)}
        for name, verdict in row.score_verdicts.items()
        if verdict.reasoning
    ]
    return [*map(_verdict, row.verdicts), *of_scores]


def _verdict(verdict: Verdict) -> dict[str, Any]:
    grades = {name: value for name in PARTS if (value := getattr(verdict, name)) is not None}
    observed = verdict.observed
    quotes = _quotes(observed) if observed else []
    fields: dict[str, Any] = {
        "judge": shown(verdict.judge, 80),
        "said": shown(verdict.reasoning, SAID),
        "score": verdict.overall_score,
        "declined": verdict.declined,
        "grades": grades | (observed.dimensions.model_dump() if observed else {}),
        "quotes": [shown(quote, QUOTE) for quote in quotes],
    }
    return {name: value for name, value in fields.items() if value is not None and value not in ({}, [])}


def _quotes(observed: Observed) -> list[str]:
    return list(dict.fromkeys(quote for each in observed.quotes.values() for quote in each if quote.strip()))


SCORES_SHOWN = tuple(
    score for score in SCORES if not score.binary and score.name not in (*PARTS, *DIMENSIONS, "judge_spread")
)
"""Scores that are not yes or no, and not a part of the verdict."""


@dataclass(frozen=True)
class ScoreScope:
    """The scores of the table: k, the left-out metrics, and the user-defined scores of which lower is better."""

    k: int
    left_out: Sequence[str] = ()
    lower_is_better: frozenset[str] = frozenset()

    def lines_of(self, *rows: Row) -> Iterator[tuple[str, str, bool]]:
        """Yield name and title of each score that one of the rows has, and True if higher is better."""
        names = {name for row in rows for name in row.scores}
        for score in SCORES_SHOWN:
            if score.name in names and score.metric not in self.left_out:
                yield score.name, score_title(score.name, self.k), score.higher_is_better
        for name in sorted(names - BY_NAME.keys()):
            if name not in self.left_out:
                yield name, name, name not in self.lower_is_better


def compared_scope(comparison: Comparison) -> ScoreScope:
    """Return the scores of a comparison. Metrics that are not compared are left out."""
    lower = frozenset(metric.name for metric in comparison.metrics if not metric.higher_is_better)
    return ScoreScope(comparison.candidate.signature.k, comparison.left_out, lower)


def score_lines(row: Row, scope: ScoreScope) -> list[list[str]]:
    """Return title and value of each score of one side."""
    return [[title, metric_number(name, row.scores[name])] for name, title, _ in scope.lines_of(row)]


def score_changes(before: Row, after: Row, scope: ScoreScope) -> list[list[str]]:
    """Return title, before, now, change, and `good` or `bad`; empty if a side has no value or nothing changed."""
    lines = []
    for name, title, higher_is_better in scope.lines_of(before, after):
        was, now = before.scores.get(name), after.scores.get(name)
        if was is None or now is None:
            values, change = ["" if each is None else metric_number(name, each) for each in (was, now)], ["", ""]
        else:
            *values, difference = metric_course(name, was, now)
            way = "good" if (now > was) == higher_is_better else "bad"
            change = ["", ""] if now == was else [difference, way]
        lines.append([title, *values, *change])
    return lines
