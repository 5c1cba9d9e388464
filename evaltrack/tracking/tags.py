"""What evaltrack keeps in MLflow's tags, read to the letter, as anybody may write there; and its names of metrics.

Metrics that matter first have no section. Counts are below `n/`, tokens, times and cost below `usage/`, domains and
difficulties below their own, and what `compare` found below `delta/`: MLflow makes sections of its charts of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Final, Literal, TypeVar

from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import HEADLINES, SCORES
from evaltrack.records.base import Count, Record
from evaltrack.tracking.rows import CURE, ROWS_VERSION, RowsError, newer

MAX_TAG = 8000
"""Characters of a tag that MLflow keeps; a longer one is none of ours."""

LAST_MOMENT = 253_402_214_400_000
"""The last day of the year 9999, in milliseconds since 1970: no later moment has a date."""

LARGEST = 1e15
"""Above this no metric of evaltrack can be."""

T = TypeVar("T", bound=Record)


def tag_part(text: str) -> str:
    """A text as a part of a tag's name; characters that no tag can have are written by their code: `:23:`."""
    return re.sub(r"[^\w. /-]", lambda sign: f":{ord(sign[0]):x}:", text)


def read_tag(kind: type[T], text: str | None) -> T | None:
    """The record in a tag: every field there, none besides, each of its type, no number that is not finite.

    None where the tag is not there, or was not written by evaltrack.
    """
    if not text or len(text) > MAX_TAG:
        return None
    try:
        return kind.model_validate_json(text, strict=True)
    except ValueError:
        return None


def sound_metric(value: float) -> bool:
    """Whether a number can be a metric: finite, and no larger than any that evaltrack logs."""
    return isfinite(value) and abs(value) <= LARGEST


def sound_count(value: float | None) -> int:
    """A number of questions from a metric; 0 for what is none."""
    return int(value) if value is not None and sound_metric(value) and value > 0 else 0


def sound_moment(milliseconds: int | None) -> int:
    """A moment that has a date, in milliseconds since 1970 (UTC); one before or after that is moved to the end."""
    return min(max(int(milliseconds or 0), 0), LAST_MOMENT)


ROWS: Final = "per_question.parquet"
TRIALS: Final = "trials.parquet"
ROWS_TAG = "evaltrack.rows"

RowsFile = Literal["per_question.parquet", "trials.parquet"]


class RowsTag(Record):
    """The tag `evaltrack.rows`: version of the columns, number of rows, and the SHA-256 of each file.

    `trials_sha256` is empty where every question was asked once.
    """

    version: int
    rows: Count
    sha256: str
    trials_sha256: str = ""


def rows_tag(rows: int, file: Path, trials: Path | None) -> dict[str, str]:
    """The tag of a run that logs these files."""
    tag = RowsTag(
        version=ROWS_VERSION, rows=rows, sha256=file_digest(file), trials_sha256=file_digest(trials) if trials else ""
    )
    return {ROWS_TAG: tag.model_dump_json()}


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_logged(path: Path, name: RowsFile, run_id: str, tag: str) -> None:
    """Refuse a downloaded file that is not the one that the run logged; a run without the tag says nothing of it.

    Raises:
        TrackingError: it is another, or a newer version wrote it, or the tag says nothing.
    """
    if not tag:
        return
    logged = _read(name, run_id, tag)
    digest = logged.sha256 if name == ROWS else logged.trials_sha256
    if (actual := file_digest(path)) != digest:
        problem = f"was changed after the run: its SHA-256 is {actual[:12]}…, and tag `{ROWS_TAG}` says {digest[:12]}…"
        raise RowsError(name, problem, CURE, run_id)


def _read(name: str, run_id: str, tag: str) -> RowsTag:
    try:
        version = json.loads(tag)["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        version = None
    if type(version) is int and version > ROWS_VERSION:
        raise newer(name, version, run_id)
    logged = read_tag(RowsTag, tag)
    if logged is None:
        cure = "evaluate again, or delete the tag, so that the file is checked without it"
        raise TrackingError(f"tag `{ROWS_TAG}` of run {run_id} was not written by evaltrack; {cure}")
    return logged


LONGEST_PART = 100
"""Characters of a domain or a judge within a name; MLflow takes 250 of the whole."""

FIRST_METRICS = tuple(score.metric for score in HEADLINES)
"""Logged before all others: MLflow's pages show metrics as they came."""

ALWAYS = ("num_questions", "num_measured", "num_errors")

_SECTIONS = {score.metric: score.section for score in SCORES}
_USED = ("_tokens", "cached_verdicts", "_seconds.mean", "_seconds.p95", "_cost_usd")


def first_ones_first(names: Iterable[str]) -> list[str]:
    """The names in the order in which they are logged."""
    return sorted(names, key=lambda name: FIRST_METRICS.index(name) if name in FIRST_METRICS else len(FIRST_METRICS))


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
