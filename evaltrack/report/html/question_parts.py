"""The parts of a question in a report: scores and ranks, sources, what judges said, and the turns before it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import isfinite
from typing import Any

from pydantic import ValidationError

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.differences import by_key, first_rank, in_order
from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.rubric import PASS_SCORE
from evaltrack.records import Signature
from evaltrack.records.stored_row import StoredRow, StoredSource, StoredVerdict
from evaltrack.records.verdict import ANSWER_GRADES, Dimensions, Observed
from evaltrack.report.html.page import safe_link, shown
from evaltrack.report.words import metric_course, metric_number, metric_title, score_title

REASONING, JUDGED = "reasoning_score", "overall_score"


def score_scale(signature: Signature) -> dict[str, float]:
    """From which score a question passes, and the highest there is."""
    if signature.rubric == "reasoning":
        return {"threshold": float(PASS_SCORE), "span": 100.0}
    return {"threshold": signature.pass_threshold, "span": 1.0}


def numbers(before: StoredRow | None, after: StoredRow | None, *, judged: bool = True) -> dict[str, Any]:
    """`score` and `ranks`, each of both sides, None for what was not measured; left out where neither side was.

    A rank of 0 says that what is expected was not returned.
    """
    score = [_score(row) if judged else None for row in (before, after)]
    ranks = [_rank(row) for row in (before, after)]
    fields = {"score": score, "ranks": ranks}
    return {name: pair for name, pair in fields.items() if pair != [None, None]}


def _score(row: StoredRow | None) -> float | None:
    if row is None:
        return None
    value = row.scores.get(REASONING, row.scores.get(JUDGED))
    return None if value is None else round(value, 4)


def _rank(row: StoredRow | None) -> int | None:
    """Where the first expected source stands."""
    return None if row is None or not row.expected or row.sources is None else first_rank(row) or 0


LAST_TURNS = 20
"""Turns before a question that a page shows, the last ones."""

TURN_LIMIT = 2000
"""Characters of one turn at most; a page of many questions shows fewer."""


def turns_before(row: StoredRow, limit: int) -> dict[str, Any]:
    """The last turns before the question, each as role and text, and how many stood before these."""
    if not row.history:  # as in most rows
        return {}
    last = row.history[-LAST_TURNS:]
    room = max(100, min(TURN_LIMIT, limit // max(1, len(last))))
    return {
        "turns": [[turn.role, shown(turn.content, room)] for turn in last],
        "turns_left_out": len(row.history) - len(last),
    }


LISTED, MOST = 12, 30
"""Ranks listed at least, and at most; of those behind, and behind k, only expected sources."""

NAME, SNIPPET = 160, 400


def ranked(row: StoredRow, other: StoredRow | None, k: int, *, slim: bool = False) -> list[dict[str, Any]] | None:
    """One object a source, repeats left out as in the scores; None where the target reports no sources.

    It holds `rank`, `name`, and where there are: `title`, `url`, `score`, `text` (its beginning), `expected`, `moved`
    (its rank on the other side, 0 where it is not there) and `changed`: its text is another than on the other side.
    A `slim` one holds neither `title`, `url`, `score` nor `text`.
    """
    if row.sources is None:
        return None
    there = by_key(other) if other is not None and other.sources is not None else None
    expected, last = set(row.expected_keys), max(min(k, MOST), LISTED)
    lines = []
    for rank, keys, source in in_order(row):
        is_expected = not expected.isdisjoint(keys)
        if rank > last and not is_expected:
            continue
        name = row.name_of(source)
        fields = {"rank": rank, "name": shown(name, NAME)}
        if not slim:
            fields |= _source_fields(source, name)
        if is_expected:
            fields["expected"] = True
        if there is not None:
            other_rank, other_source = there.get(keys[0], (0, None))
            fields["moved"] = other_rank
            if _texts_differ(source, other_source):
                fields["changed"] = True
        lines.append(fields)
    return lines


def missing(row: StoredRow) -> list[str]:
    """The expected sources that were not returned at all, as the golden set names them; none where none could be."""
    if row.sources is None or not row.expected or row.scores.get("recall_at_k") == 1:
        return []
    returned = set(chain.from_iterable(row.source_keys))
    names = zip(row.expected_keys, row.expected, strict=True)
    return [shown(name, NAME) for key, name in dict(names).items() if key not in returned]


def expected_alone(row: StoredRow) -> list[str]:
    """What is expected of a row without sources, as of one whose target failed; of others their list tells it."""
    return [] if row.sources is not None else [shown(name, NAME) for name in row.expected or ()]


def source_texts(before: StoredRow, after: StoredRow, name: str | None) -> tuple[str, str] | None:
    """The texts of the source called `name` on both sides, where both kept them and they differ."""
    texts = []
    for row in (before, after):
        sources = (each for each in row.sources or () if row.name_of(each) == name)
        texts.append(next((each.text for each in sources), None))
    return (texts[0], texts[1]) if texts[0] and texts[1] and texts[0] != texts[1] else None


def _source_fields(source: StoredSource, name: str) -> dict[str, Any]:
    """What there is of a source besides its name."""
    fields: dict[str, Any] = {}
    if source.title and source.title != name:
        fields["title"] = shown(source.title, NAME)
    if source.url and (url := safe_link(source.url)):
        fields["url"] = url
    if source.score is not None and (score := _short(source.score)) is not None:
        fields["score"] = score
    if source.text:
        fields["text"] = shown(source.text, SNIPPET)
    return fields


def _short(score: float) -> float | None:
    """Four digits of it; None for what JSON cannot hold, which the largest floats round to."""
    rounded = float(f"{score:.4g}")
    return rounded if isfinite(rounded) else None


def _texts_differ(one: StoredSource, other: StoredSource | None) -> bool:
    if other is None:
        return False
    digests = one.text_digest, other.text_digest
    return None not in digests and digests[0] != digests[1]


JUDGES, SAID, QUOTES, QUOTE = 12, 3000, 16, 300
"""Judges of a response, characters of what one said, its quotes, and characters of a quote; at most."""

OVERALL, *PARTS = ANSWER_GRADES
DIMENSIONS = tuple(Dimensions.model_fields)


def grade_titles(names: Iterable[str]) -> dict[str, list[Any]]:
    """What each of these grades is called, and the highest there is."""
    return {name: [metric_title(name, 0), 10 if name in DIMENSIONS else 1] for name in sorted(set(names))}


def grades_in(question: dict[str, Any]) -> Iterator[str]:
    """The names of the grades in the verdicts of a question."""
    for side in question.get("sides", ()):
        for verdict in side.get("verdicts", ()):
            yield from verdict.get("grades", ())


def verdicts(row: StoredRow) -> list[dict[str, Any]]:
    """One object a judge: `judge`, `said`, and where there are: `score`, `declined`, `grades`, `quotes`, `more_quotes`.

    Behind them what those said whom scores of one's own asked, under the name of the score.
    """
    return [*map(_verdict, row.verdicts[:JUDGES]), *_of_scores(row)]


def more_judges(row: StoredRow) -> int:
    """How many judges of the response `verdicts` leaves out."""
    return max(0, len(row.verdicts) - JUDGES)


def _verdict(verdict: StoredVerdict) -> dict[str, Any]:
    grades = {name: value for name in PARTS if (value := getattr(verdict, name)) is not None}
    observed = _observed(verdict.observed)
    quotes = _quotes(observed) if observed else []
    fields: dict[str, Any] = {
        "judge": shown(verdict.judge, 80),
        "said": shown(verdict.reasoning, SAID),
        "score": verdict.overall_score,
        "declined": verdict.declined,
        "grades": grades | (observed.dimensions.model_dump() if observed else {}),
        "quotes": [shown(quote, QUOTE) for quote in quotes[:QUOTES]],
        "more_quotes": len(quotes[QUOTES:]) or None,
    }
    return {name: value for name, value in fields.items() if value is not None and value not in ({}, [])}


def _observed(text: str | None) -> Observed | None:
    """What a judge of reasoning saw; None where the stored text is none of ours."""
    try:
        return Observed.model_validate_json(text) if text else None
    except ValidationError:
        return None


def _quotes(observed: Observed) -> list[str]:
    """Each of them once, whole."""
    return list(dict.fromkeys(quote for each in observed.quotes.values() for quote in each if quote.strip()))


def _of_scores(row: StoredRow) -> Iterator[dict[str, Any]]:
    if row.score_reasoning is None:
        return
    try:
        reasonings = json.loads(row.score_reasoning)
    except ValueError:
        return
    for name, text in list(reasonings.items())[:JUDGES] if isinstance(reasonings, dict) else ():
        if isinstance(text, str) and text:
            yield {"judge": shown(name, 80), "said": shown(text, SAID)}


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
        return tuple((score.name, score_title(score.name, self.k), score.higher_is_better) for score in scores)

    def lines_of(self, *rows: StoredRow) -> list[Line]:
        """Those of what at least one of the rows has."""
        names = {name for row in rows for name in row.scores}
        own = dict.fromkeys(name for row in rows for name in row.own if name in names and name not in self.left_out)
        ours = [line for line in self.lines if line[0] in names]
        return [*ours, *((name, name, name not in self.lower_is_better) for name in own)]


def compared_scope(comparison: Comparison) -> ScoreScope:
    """That of a comparison; what is not compared is left out."""
    lower = frozenset(metric.name for metric in comparison.metrics if not metric.higher_is_better)
    return ScoreScope(comparison.candidate.signature.k, comparison.left_out, lower)


def score_lines(row: StoredRow, scope: ScoreScope) -> list[list[str]]:
    """Name and value of each score of one side."""
    return [[title, metric_number(name, row.scores[name])] for name, title, _ in scope.lines_of(row)]


def score_changes(before: StoredRow, after: StoredRow, scope: ScoreScope) -> list[list[str]]:
    """Name, before, now, change, and `good` or `bad`; empty where a side has no value or nothing changed."""
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
