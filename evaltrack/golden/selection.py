"""Selects questions of a golden set: by filter, by failure in an earlier run, or as a sample.

The three are combined in this order. Each question is decided as the set is streamed; only the failed ids and the
sampled ids are held in memory.
"""

from __future__ import annotations

import difflib
import hashlib
import heapq
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import normalize

from evaltrack.errors import UsageError
from evaltrack.records import Question
from evaltrack.records.base import cut

LABELS = ("domain", "difficulty", "category", "id")
"""Fields of a question that a filter may name, besides the keys of `metadata`."""

METADATA = "metadata."

MAX_WORDS = 300
"""Maximum characters of a selection as text, which is stored in an MLflow tag."""


@dataclass(frozen=True)
class Condition:
    """A filter ``FIELD=VALUE``, or ``FIELD!=VALUE`` if `equal` is False."""

    field: str
    value: str
    equal: bool = True

    def holds(self, question: Question) -> bool:
        """Return True if a question fulfils the condition; in a list of labels any one counts."""
        return (self.value in labels(question, self.field)) == self.equal


@dataclass(frozen=True)
class FailedQuestions:
    """The ids of the questions that did not pass in an MLflow run."""

    run_id: str
    ids: frozenset[str]


@dataclass(frozen=True)
class Selection:
    """The questions to select; all of them by default.

    A question is selected if all conditions of any one of `filters` hold and it is among `failed`. Of these, `sample`
    are drawn (0: all). The same `seed` draws the same ones, in any order of the set.
    """

    filters: tuple[tuple[Condition, ...], ...] = ()
    failed: FailedQuestions | None = None
    sample: int = 0
    seed: int = 0

    @property
    def takes_all(self) -> bool:
        """True if it selects all questions of any set."""
        return not (self.filters or self.failed or self.sample)

    def admits(self, question: Question) -> bool:
        """Return True if filters and failed questions admit it; samples are drawn from the admitted ones."""
        if self.filters and not any(all(one.holds(question) for one in each) for each in self.filters):
            return False
        return self.failed is None or question.id in self.failed.ids

    def words(self) -> str:
        """Return the selection as text: ``difficulty=hard; not passed in run 4488541a; sample 50, seed 0``."""
        parts = [filter_words(self.filters)] if self.filters else []
        parts += [f"not passed in run {self.failed.run_id[:8]}"] if self.failed else []
        parts += [f"sample {self.sample:,}, seed {self.seed}"] if self.sample else []
        return cut("; ".join(parts), MAX_WORDS)


ALL = Selection()
"""Selects every question."""


def sample(ids: Iterable[str], size: int, seed: int) -> frozenset[str]:
    """Return a sample of ids: those with the smallest hashes of seed and id."""
    return frozenset(heapq.nsmallest(size, ids, key=lambda key: hashlib.sha256(f"{seed}\t{key}".encode()).digest()))


def parse_filters(texts: Iterable[str]) -> tuple[tuple[Condition, ...], ...]:
    r"""Parse filters such as ``domain=travel,difficulty!=hard``: a comma means *and*, several texts mean *or*.

    A comma inside a value is written ``\,``.

    Raises:
        UsageError: a condition has another form, or names an unknown field.
    """
    return tuple(tuple(_condition(text, part) for part in re.split(r"(?<!\\),", text)) for text in dict.fromkeys(texts))


def _condition(text: str, part: str) -> Condition:
    match = re.fullmatch(r"([^=!]*)(!?=)(.*)", part.replace("\\,", ","), re.DOTALL)
    field, value = (match[1].strip(), normalize("NFC", match[3].strip())) if match else ("", "")
    if match is None or not field or not value:
        problem = f"`{part.strip()}` is not a condition" if part.strip() else "a condition is missing"
        cure = "write FIELD=VALUE or FIELD!=VALUE, such as domain=travel,difficulty=hard"
        raise UsageError(f"`filter={text}`: {problem}; {cure}")
    if field not in LABELS and field.removeprefix(METADATA) in ("", field):
        near = difflib.get_close_matches(field, LABELS, n=1)
        cure = f"did you mean `{near[0]}`?" if near else f"write one of {', '.join(LABELS)}, or metadata.KEY"
        raise UsageError(f"`filter={text}`: a question has no label `{field}`; {cure}")
    return Condition(field, value, equal=match[2] == "=")


def filter_words(filters: Iterable[Iterable[Condition]]) -> str:
    """Return filters as the user writes them, joined with ``or``."""
    return " or ".join(
        ",".join(f"{one.field}{'=' if one.equal else '!='}{one.value}" for one in each) for each in filters
    )


def labels(question: Question, field: str) -> list[str]:
    """Return the labels of a question in a field as text: each entry of a list; empty if the field is left out."""
    if field.startswith(METADATA):
        value = question.metadata.get(field.removeprefix(METADATA))
    else:
        value = getattr(question, field)
    values = value if isinstance(value, list) else [value]
    return [each if isinstance(each, str) else json.dumps(each) for each in values if each is not None]


def empty_words(selection: Selection, total: int) -> str:
    """Return the reason that a selection is empty."""
    failed = selection.failed
    if failed is not None and not selection.filters:
        return f"`only_failed={failed.run_id}`: every question of the set passed in that run, or was not asked in it"
    those = f"the {total:,} questions" if failed is None else f"those that did not pass in run {failed.run_id}"
    return f"`filter={cut(filter_words(selection.filters), MAX_WORDS)}` matches none of {those}; correct it"
