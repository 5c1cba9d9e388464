"""A golden file and an MLflow evaluation dataset side by side, each question with its versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltrack.api.synced_versions import SyncedVersions
from evaltrack.errors import GoldenError
from evaltrack.golden.exchange.mlflow_records import DatasetRecord, question_of, version_of
from evaltrack.golden.lines import line_of
from evaltrack.golden.sync import Difference, difference, likely_base
from evaltrack.records import Question
from evaltrack.tracking.dataset_records import Dataset, read_records
from evaltrack.tracking.store import Store

VERSIONS_TAG, PLACE_TAG = "evaltrack.versions", "evaltrack.place"


@dataclass
class GoldenPair:
    """A golden file and a dataset, each question with its versions."""

    path: Path
    store: Store
    dataset: Dataset
    questions: dict[str, Question]
    records: dict[str, DatasetRecord]
    in_dataset: dict[str, Question]
    bases: Mapping[str, str] | None
    notes: Sequence[str] = ()
    invalid: Sequence[str] = ()
    """Ids of records that hold no valid question; they and what the file has of these questions are left."""

    def differences(self, *, prunes: bool = False) -> Iterator[tuple[str, Difference]]:
        """Each question with what differs: those of the file first, in their order."""
        for key in dict.fromkeys((*self.questions, *self.in_dataset)):
            if key in self.invalid:
                continue
            ours, theirs = self.version(key), self.version(key, theirs=True)
            yield key, difference(ours, theirs, self._base(key, ours, prunes))

    def version(self, key: str, *, theirs: bool = False) -> str | None:
        """The digest of a question in the file, or in the dataset; None where it is not there."""
        question = (self.in_dataset if theirs else self.questions).get(key)
        return None if question is None else version_of(question)

    def _base(self, key: str, ours: str | None, prunes: bool) -> str | None:
        if self.bases is not None and (ours is None or key in self.bases):
            return self.bases.get(key)
        if ours is None and not prunes:
            return None  # whether the file ever had it is not known
        return likely_base(ours, versions_of(self.records[key])) if key in self.records else None

    def fields(self, key: str) -> tuple[str, ...]:
        """The fields of a question that differ; none where one side lacks it."""
        if key not in self.questions or key not in self.in_dataset:
            return ()
        ours, theirs = line_of(self.questions[key]), line_of(self.in_dataset[key])
        return tuple(name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))


def versions_of(record: DatasetRecord) -> list[str]:
    """The versions of a question that were pushed, the last one last."""
    return str(record.tags.get(VERSIONS_TAG, "")).split()


def read_pair(
    store: Store, dataset: Dataset, path: Path, questions: dict[str, Question], *, is_push: bool
) -> GoldenPair:
    """Read the dataset, and hold it beside the questions of a golden file.

    Args:
        store: Where the dataset is.
        dataset: One without an id is not there yet.
        path: The golden file.
        questions: What it holds, by id.
        is_push: Whether a record that is no valid question is an error where the file has its question, as it would be
            written over; else it is left, with a note.

    Raises:
        GoldenError: a push would write over records that are no valid questions; all of them are listed.
        TrackingError: the store does not answer, or refuses.
    """
    records = read_records(store, dataset) if dataset.dataset_id else []
    named, nameless = _named(records, questions)
    notes, problems, invalid = list[str](), list[str](), list[str]()
    in_dataset = dict[str, Question]()
    for key, record in list(named.items()):
        question = question_of(record, key, path.stem)
        if isinstance(question, Question):
            in_dataset[key] = question
            if key in nameless and key not in questions:
                notes.append(f"record {record.key} was made in MLflow; its question is `{key}`")
        elif not is_push or key not in questions:
            notes.append(f"record {record.key} holds no question: {'; '.join(question)}")
            invalid.append(key)
            del named[key]
        else:
            problems += [f"dataset {dataset.name}, record {record.key}: {problem}" for problem in question]
    if problems:
        raise GoldenError(problems)
    bases = SyncedVersions(path, store.uri, dataset.dataset_id).read() if questions else None
    return GoldenPair(path, store, dataset, questions, named, in_dataset, bases, notes, invalid)


def _named(
    records: Sequence[DatasetRecord], questions: Mapping[str, Question]
) -> tuple[dict[str, DatasetRecord], set[str]]:
    """Each record under the id of its question, in the order of their places; and the ids that no record has.

    A record without an id is the question of the file that asks the same, else it gets an id out of MLflow's. Of
    several with one id, as copies in MLflow's page are, the first keeps it.
    """
    named: dict[str, DatasetRecord] = {}
    others: list[DatasetRecord] = []
    for record in sorted(records, key=place_of):
        key = str(record.tags.get("id") or "")
        if key and key not in named:
            named[key] = record
        else:
            others.append(record)
    texts = {question.question: key for key, question in questions.items() if key not in named}
    nameless: set[str] = set()
    for record in others:
        key = texts.pop(record.text or "", "") or _made_id(record, named)
        tags = {name: value for name, value in record.tags.items() if name not in ("id", VERSIONS_TAG)}
        named[key] = replace(record, tags=tags)
        nameless.add(key)
    return named, nameless


def place_of(record: DatasetRecord) -> tuple[float, int, str]:
    """What records are ordered by: the place of their question in the file that was pushed, then their age."""
    try:
        place = float(record.tags.get(PLACE_TAG, "inf"))
    except (TypeError, ValueError):
        place = float("inf")
    return (place, record.created, record.key)


def _made_id(record: DatasetRecord, named: Mapping[str, DatasetRecord]) -> str:
    """An id that stays the same for as long as the record does."""
    digits = record.key.removeprefix("dr-")
    sizes = range(8, len(digits) + 1)
    return next((key for size in sizes if (key := f"mlflow-{digits[:size]}") not in named), f"mlflow-{digits}")
