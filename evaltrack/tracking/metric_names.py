"""What a mean is called among MLflow's metrics: names with `/` make the sections of its charts.

The few that matter first have no section. Counts are below `n/`, tokens, times and cost below `usage/`, domains and
difficulties below their own, and what `compare` found below `delta/`.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from evaltrack.metrics.catalogue import HEADLINES, SCORES

LONGEST_PART = 100
"""Characters of a domain or a judge within a name; MLflow takes 250 of the whole."""

FIRST = tuple(score.metric for score in HEADLINES)
"""Logged before all others: MLflow's pages show metrics as they came."""

ALWAYS = ("num_questions", "num_measured", "num_errors")

_SECTIONS = {score.metric: score.section for score in SCORES}
_USED = ("_tokens", "cached_verdicts", "_seconds.mean", "_seconds.p95", "_cost_usd")


def metric_name(name: str) -> str:
    """The name as MLflow takes it: characters it refuses become `_`; at most 250 characters."""
    return _safe(name, "_-. /")[:250]


def logged_name(name: str) -> str:
    """What a mean, a total or another number of a whole run is called among MLflow's metrics."""
    if name in ALWAYS:
        return name
    if name in _SECTIONS:
        return f"{_SECTIONS[name]}/{name}".removeprefix("/")
    if name.endswith(".max"):
        return f"reachable/{name.removesuffix('.max')}"
    if name.endswith("_best"):
        return f"best/{name.removesuffix('_best')}"
    return f"usage/{name}" if name.endswith(_USED) else f"n/{name}"


_LOGGED = tuple((score.metric, logged_name(score.metric)) for score in SCORES)


def names_within(names: Iterable[str]) -> dict[str, str]:
    """Each of several domains or judges as a part of a metric's name, no two the same, in letters of any case.

    Of those that MLflow or a database would take for one, all but the one that can stay as it is end in a digest.
    """
    parts = {name: _safe(name, "_-. ").strip(" .")[:LONGEST_PART] for name in names}
    alike = Counter(_folded(part) for part in parts.values())
    as_they_are = Counter(_folded(part) for name, part in parts.items() if part == name)
    return {
        name: part
        if part and (alike[_folded(part)] == 1 or (part == name and as_they_are[_folded(part)] == 1))
        else f"{part}-{_digest(name)}".removeprefix("-")
        for name, part in parts.items()
    }


def means_of(metrics: Mapping[str, float]) -> dict[str, float]:
    """The means of a run by the names of `SCORES`."""
    return {metric: metrics[logged] for metric, logged in _LOGGED if logged in metrics}


def _safe(text: str, others: str) -> str:
    """The text with `_` for what MLflow refuses; letters of every script are taken."""
    return "".join(c if c.isalnum() or c in others else "_" for c in text)


def _folded(part: str) -> str:
    """What databases that ignore case and accents compare."""
    plain = unicodedata.normalize("NFKD", part)
    return "".join(c for c in plain if not unicodedata.combining(c)).casefold()


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
