"""A golden set kept in step with an MLflow evaluation dataset: `push_golden` and `pull_golden`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltrack.api.golden_pair import PLACE_TAG, VERSIONS_TAG, GoldenPair, place_of, read_pair, versions_of
from evaltrack.api.synced_versions import SyncedVersions
from evaltrack.errors import UsageError
from evaltrack.golden.exchange.mlflow_records import DatasetRecord, foreign_names, merged, record_of, version_of
from evaltrack.golden.reader import open_golden
from evaltrack.golden.sync import Kind, Side, places
from evaltrack.golden.update import GoldenUpdate, update_golden
from evaltrack.records import Question
from evaltrack.system.users import user_name
from evaltrack.tracking.dataset_records import (
    Dataset,
    create_dataset,
    delete_records,
    find_dataset,
    no_dataset,
    write_records,
)
from evaltrack.tracking.store import choose_experiment, connect

VERSIONS = 20
"""Versions of a question that its record names."""


@dataclass(frozen=True)
class QuestionChange:
    """What differs of a question, and whether it was carried over.

    Attributes:
        id: The question.
        kind: `added`, `changed` or `removed`, or `conflict`: changed on both sides.
        side: Where that was done: `file`, `dataset` or `both`.
        fields: Those that differ, of a question that both have.
        is_done: Whether the other side has it now; of a dry run, whether it would.
    """

    id: str
    kind: Kind
    side: Side
    fields: tuple[str, ...]
    is_done: bool


@dataclass(frozen=True)
class GoldenSync:
    """The result of a push or a pull.

    `invalid` are the ids of records that hold no valid question and are left; `notes` say what is wrong with them.
    """

    path: Path
    dataset: str
    dataset_id: str
    questions: int
    changes: tuple[QuestionChange, ...]
    notes: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()

    @property
    def conflicts(self) -> int:
        """How many questions were changed on both sides and are left as they are."""
        return sum(each.kind == "conflict" and not each.is_done for each in self.changes)


def push_golden(
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    prune: bool = False,
    force: bool = False,
    dry_run: bool = False,
    experiment: str | None = None,
    tracking_uri: str | None = None,
) -> GoldenSync:
    """Bring an MLflow evaluation dataset up to a golden set: its added and changed questions, drafts among them.

    What was changed in MLflow since the two were the same stays, and is named; so is a conflict.

    Args:
        path: A `.jsonl` or `.json` golden set.
        name: The dataset's name or id; None takes the name of the file. It is created if it is not there.
        prune: Whether questions that were removed from the file are removed from the dataset.
        force: Whether the file decides where both were changed.
        dry_run: Whether nothing is written.
        experiment: MLflow experiment; None follows MLflow's own settings.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        GoldenError: lines of the set are bad, or records with ids of its questions are.
        UsageError: several datasets have the name.
        TrackingError: the store is out of reach, refuses, or has no datasets.
    """
    checked = open_golden(path, drafts=True)
    store = connect(tracking_uri)
    experiment_id = choose_experiment(store, experiment).experiment_id
    name = name or checked.name
    dataset = find_dataset(store, experiment_id, name)
    if dataset is None:
        dataset = Dataset("", name) if dry_run else create_dataset(store, experiment_id, name)
    pair = read_pair(store, dataset, checked.path, {each.id: each for each in checked}, is_push=True)
    changes = _changes(pair, "file", prune=prune, force=force)
    note = None
    if not dry_run:
        _write(pair, changes)
        note = _note_versions(pair, changes, theirs=False)
    return _result(pair, changes, note)


def pull_golden(
    name: str,
    path: str | os.PathLike[str] | None = None,
    *,
    prune: bool = False,
    force: bool = False,
    dry_run: bool = False,
    experiment: str | None = None,
    tracking_uri: str | None = None,
) -> GoldenSync:
    """Bring a golden set up to an MLflow evaluation dataset, in which nothing is changed.

    Lines of questions that are the same stay as they are, byte for byte. What was changed in the file since the two
    were the same stays, and is named; so is a conflict. A record that a person made in MLflow gets an id.
    One that holds no valid question is left and named in the notes, and so is what the file has of it.

    Args:
        name: The dataset's name or id.
        path: A `.jsonl` or `.json` golden set, which is made if it is not there; None takes ``NAME.jsonl``.
        prune: Whether questions that were removed from the dataset are removed from the file.
        force: Whether the dataset decides where both were changed.
        dry_run: Whether the file is left as it is.
        experiment: MLflow experiment; None follows MLflow's own settings.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        GoldenError: lines of the set are bad, all of which are listed; or it cannot be written.
        UsageError: there is no such dataset, or several.
        TrackingError: the store is out of reach, refuses, or has no datasets.
    """
    store = connect(tracking_uri)
    experiment_id = choose_experiment(store, experiment).experiment_id
    dataset = find_dataset(store, experiment_id, name)
    if dataset is None:
        raise no_dataset(store, experiment_id, name)
    update = GoldenUpdate.of(Path(path) if path is not None else _file_of(dataset.name))
    pair = read_pair(store, dataset, update.path, update.questions, is_push=False)
    changes = _changes(pair, "dataset", prune=prune, force=force)
    note = None
    if not dry_run:
        done = [each.id for each in changes if each.is_done]
        update_golden(update, {key: pair.in_dataset.get(key) for key in done})
        note = _note_versions(pair, changes, theirs=True)
    return _result(pair, changes, note)


def _file_of(name: str) -> Path:
    if "/" in name or "\\" in name or name in (".", "..") or "\0" in name:
        raise UsageError(f"the name `{name}` is no name of a file; name the file too")
    return Path(f"{name}.jsonl")


def _changes(pair: GoldenPair, side: Side, *, prune: bool, force: bool) -> list[QuestionChange]:
    """What differs, and what of it is carried over from one side to the other."""
    there = pair.questions if side == "file" else pair.in_dataset
    changes = []
    for key, each in pair.differences(prunes=prune and side == "file"):
        if each.kind != "same":
            wanted = each.side == side or (each.kind == "conflict" and force)
            is_done = wanted and (key in there or prune)
            changes.append(QuestionChange(key, each.kind, each.side, pair.fields(key), is_done))
    return changes


def _result(pair: GoldenPair, changes: Sequence[QuestionChange], note: str | None) -> GoldenSync:
    names = Counter(name for each in pair.records.values() for name in foreign_names(each))
    notes = [f"`{name}` has no field in a golden set; it stays in MLflow ({count})" for name, count in names.items()]
    return GoldenSync(
        path=pair.path,
        dataset=pair.dataset.name,
        dataset_id=pair.dataset.dataset_id,
        questions=len({*pair.questions, *pair.in_dataset}),
        changes=tuple(changes),
        notes=(*pair.notes, *notes, *([note] if note else [])),
        invalid=tuple(pair.invalid),
    )


def _note_versions(pair: GoldenPair, changes: Sequence[QuestionChange], *, theirs: bool) -> str | None:
    """Remember which versions both sides have now; a note where that fails."""
    unsettled = {*pair.invalid, *(each.id for each in changes if not each.is_done)}
    versions = {key: base for key, base in (pair.bases or {}).items() if key in unsettled}
    for key in {*pair.questions, *pair.in_dataset} - unsettled:
        if (version := pair.version(key, theirs=theirs)) is not None:
            versions[key] = version
    return SyncedVersions(pair.path, pair.store.uri, pair.dataset.dataset_id).write(versions)


def _write(pair: GoldenPair, changes: Sequence[QuestionChange]) -> None:
    """Write what a push carries over, and the places and versions of what is the same."""
    todo = {each.id for each in changes if each.is_done}
    unsettled = {each.id for each in changes if not each.is_done}
    before = {key: int(place) for key, each in pair.records.items() if (place := place_of(each)[0]) < 1 << 53}
    taken = {each.identity for key, each in pair.records.items() if key not in todo}
    stale = [pair.records[key] for key in todo if key in pair.records and key not in pair.questions]
    writes: list[DatasetRecord] = []
    for key, place in places([key for key in pair.questions if key not in unsettled], before).items():
        question, held = pair.questions[key], pair.records.get(key)
        tags = _own_tags(question, held, place)
        if held is not None and key not in todo:
            made = replace(held, tags={**held.tags, "id": key, **tags})
        else:
            new = record_of(question, _inputs(question, held, taken))
            made = replace(new, tags={**new.tags, **tags, "mlflow.user": user_name()})
            if held is not None:
                made, is_anew = merged(held, made)
                stale += [held] * is_anew
        if held is None or made != held:
            writes.append(made)
    if stale:  # after a kill between the two requests they are questions that the dataset never had
        pair.bases = {key: base for key, base in (pair.bases or {}).items() if key not in todo}
        SyncedVersions(pair.path, pair.store.uri, pair.dataset.dataset_id).write(pair.bases)
        delete_records(pair.store, pair.dataset, [each.key for each in stale])
    write_records(pair.store, pair.dataset, writes)


def _own_tags(question: Question, held: DatasetRecord | None, place: int) -> dict[str, str]:
    """The tags by which evaltrack finds out what changed, and where the question stands in the file."""
    version = version_of(question)
    earlier = [each for each in versions_of(held) if each != version] if held else []
    return {VERSIONS_TAG: " ".join([*earlier[1 - VERSIONS :], version]), PLACE_TAG: str(place)}


def _inputs(question: Question, held: DatasetRecord | None, taken: set[str]) -> dict[str, Any]:
    """What identifies the record of a question, with its id where another one, whose inputs are `taken`, asks the same.

    A record whose question is worded as before keeps its own.
    """
    inputs = dict(held.inputs) if held and held.text == question.question else {"question": question.question}
    if DatasetRecord(inputs).identity in taken:
        inputs["id"] = question.id
    taken.add(DatasetRecord(inputs).identity)
    return inputs
