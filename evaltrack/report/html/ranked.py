"""The ranked sources of a question as its report lists them, each with where it stands on the other side."""

from __future__ import annotations

from itertools import chain
from math import isfinite
from typing import Any

from evaltrack.compare.ranks import by_key, in_order
from evaltrack.report.html.text import safe_link, shown
from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import StoredRow

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
