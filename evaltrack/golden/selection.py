"""Which questions of a golden set are asked: those that a filter names, those that failed in a run, a sample of them.

The three combine in this order. They are decided question by question as a set streams by; only the ids that failed
and those of the sample are held.
"""

from __future__ import annotations

import difflib
import hashlib
import heapq
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from unicodedata import normalize

from evaltrack.errors import UsageError
from evaltrack.records import Question
from evaltrack.records.amount import first_of

LABELS = ("domain", "difficulty", "category", "id")
"""Fields of a question that a filter may name, besides the keys of `metadata`."""

METADATA = "metadata."
SHOWN_LABELS = 10
HELD_LABELS = 1000
"""Different labels of a field that are looked at for an error message."""

MAX_WORDS = 300
"""Characters of a selection in words: a tag of MLflow holds them."""


@dataclass(frozen=True)
class Condition:
    """``FIELD=VALUE``, or ``FIELD!=VALUE`` where it is not `equal`."""

    field: str
    value: str
    equal: bool = True

    def holds(self, question: Question) -> bool:
        """True if a question has the label, or has it not; in a list of labels any one counts."""
        return (self.value in labels(question, self.field)) == self.equal


@dataclass(frozen=True)
class FailedQuestions:
    """The ids of the questions that did not pass in an MLflow run."""

    run_id: str
    ids: frozenset[str]


@dataclass(frozen=True)
class Selection:
    """The questions to ask; without values all of them.

    A question is taken where all conditions of any one of `filters` hold and it is among `failed`; of these `sample`
    are drawn (0: all), the same ones for the same `seed` whatever their order.
    """

    filters: tuple[tuple[Condition, ...], ...] = ()
    failed: FailedQuestions | None = None
    sample: int = 0
    seed: int = 0

    @property
    def takes_all(self) -> bool:
        """True if it leaves out nothing, whatever the set."""
        return not (self.filters or self.failed or self.sample)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that its filters name."""
        return tuple(dict.fromkeys(condition.field for each in self.filters for condition in each))

    def admits(self, question: Question) -> bool:
        """True if filter and failed questions take it; the sample is drawn from such."""
        if self.filters and not any(all(one.holds(question) for one in each) for each in self.filters):
            return False
        return self.failed is None or question.id in self.failed.ids

    def words(self) -> str:
        """How the questions were chosen: ``difficulty=hard; not passed in run 4488541a; sample 50, seed 0``."""
        parts = [filter_words(self.filters)] if self.filters else []
        parts += [f"not passed in run {self.failed.run_id[:8]}"] if self.failed else []
        parts += [f"sample {self.sample:,}, seed {self.seed}"] if self.sample else []
        return _bounded("; ".join(parts), MAX_WORDS)


ALL = Selection()
"""Every question."""


def sample(ids: Iterable[str], size: int, seed: int) -> frozenset[str]:
    """Some of any number of ids: those whose hash, with the seed, is smallest."""
    return frozenset(heapq.nsmallest(size, ids, key=lambda key: hashlib.sha256(f"{seed}\t{key}".encode()).digest()))


def parse_filters(texts: Iterable[str]) -> tuple[tuple[Condition, ...], ...]:
    r"""Filters such as ``domain=travel,difficulty!=hard``: the comma is *and*, several texts are *or*.

    A comma that belongs to a value is written ``\,``.

    Raises:
        UsageError: a condition has another form, or names no field.
    """
    return tuple(tuple(_condition(text, part) for part in re.split(r"(?<!\\),", text)) for text in dict.fromkeys(texts))


def _condition(text: str, part: str) -> Condition:
    match = re.fullmatch(r"([^=!]*)(!?=)(.*)", part.replace("\\,", ","), re.DOTALL)
    field, value = (match[1].strip(), normalize("NFC", match[3].strip())) if match else ("", "")
    if match is None or not field or not value:
        problem = f"`{part.strip()}` is no condition" if part.strip() else "a condition is missing"
        cure = "write FIELD=VALUE or FIELD!=VALUE, such as domain=travel,difficulty=hard"
        raise UsageError(f"`filter={text}`: {problem}; {cure}")
    if field not in LABELS and field.removeprefix(METADATA) in ("", field):
        near = difflib.get_close_matches(field, LABELS, n=1)
        cure = f"did you mean `{near[0]}`?" if near else f"write one of {', '.join(LABELS)}, or metadata.KEY"
        raise UsageError(f"`filter={text}`: a question has no label `{field}`; {cure}")
    return Condition(field, value, equal=match[2] == "=")


def filter_words(filters: Iterable[Iterable[Condition]]) -> str:
    """Filters as they are written, several with ``or`` between them."""
    return " or ".join(
        ",".join(f"{one.field}{'=' if one.equal else '!='}{one.value}" for one in each) for each in filters
    )


def labels(question: Question, field: str) -> list[str]:
    """The labels of a question in a field, as text: none where it is left out, each entry of a list."""
    if field.startswith(METADATA):
        value = question.metadata.get(field.removeprefix(METADATA))
    else:
        value = getattr(question, field)
    values = value if isinstance(value, list) else [value]
    return [each if isinstance(each, str) else json.dumps(each) for each in values if each is not None]


def empty_words(selection: Selection, questions: Iterable[Question], total: int) -> str:
    """Why a selection takes none of a set's questions, with the labels that there are."""
    failed = selection.failed
    if failed is not None and not failed.ids:
        return f"`only_failed={failed.run_id}`: every question passed in that run, so there is none to ask"
    if not selection.filters and failed is not None:
        gone = f"{len(failed.ids):,} did not pass in that run, of which none is in the set any more"
        return f"`only_failed={failed.run_id}`: {gone}"
    those = f"its {total:,} questions"
    if failed is not None:
        those = f"the {len(failed.ids):,} that did not pass in run {failed.run_id}"
    none = f"`filter={_bounded(filter_words(selection.filters), MAX_WORDS)}` selects none of {those}"
    return f"{none}; there are: {'; '.join(_labels_words(selection.fields, questions))}"


def _labels_words(fields: tuple[str, ...], questions: Iterable[Question]) -> Iterator[str]:
    """The labels in some fields of a set, the first of them in their order."""
    there: dict[str, dict[str, None]] = {field: {} for field in fields}
    for question in questions:
        for field, values in there.items():
            if len(values) < HELD_LABELS:
                values.update(dict.fromkeys(labels(question, field)))
    for field, values in there.items():
        shown = first_of([_bounded(each, 60) for each in values], SHOWN_LABELS)
        yield f"{field} {shown}" if values else f"no {field}"


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
