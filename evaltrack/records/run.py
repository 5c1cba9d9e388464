"""A run: what shaped its numbers and must agree before two are compared, how it was made, and the record of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from evaltrack.records.amount import first_of, verb
from evaltrack.records.base import Count, Record, Text
from evaltrack.records.row import Traced
from evaltrack.records.verdict import MOST_SCORES, OwnScore

METRICS_VERSION = 1
"""Raised by one whenever the definition of a score changes; two runs compare only within one version."""


MAX_K = 1000
"""The largest cut-off; a retriever that returns more is asked for another purpose."""


class SelectedPart(Record):
    """Which part of a golden set was asked: so many `questions` of its `total`, chosen `by` filter, run or sample.

    `whole_digest` is that of the whole set, from which they were chosen.
    """

    questions: Count
    total: Count
    by: Text = Field(max_length=1000)
    whole_digest: str

    @property
    def words(self) -> str:
        """``50 of 1,000 questions (sample 50, seed 0)``."""
        return f"{self.questions:,} of {self.total:,} questions ({self.by})"


class Signature(Record):
    """What must agree before two runs may be compared (target and model may differ: they are compared).

    `golden_digest` is of the questions that were asked; where these are not the whole set `selection` says which.
    `scores` declares the scores of one's own; one that is declared otherwise in two runs is not compared.
    """

    golden: str
    golden_digest: str
    k: int = Field(ge=1, le=MAX_K)
    metrics_version: int = METRICS_VERSION
    target: str
    judge: str = "none"
    judge_prompt: str = ""
    weights: str = ""
    pass_threshold: float = Field(default=0.75, ge=0, le=1)
    rubric: str = "answer"
    model: str = ""
    selection: SelectedPart | None = None
    scores: tuple[OwnScore, ...] = Field(default=(), max_length=MOST_SCORES)

    @model_serializer(mode="wrap")
    def _without_empty_parts(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A run of a whole set has no `selection` in JSON, one without scores of its own no `scores`."""
        dumped: dict[str, Any] = dump(self)
        if self.selection is None:
            dumped.pop("selection", None)
        scores = dumped.pop("scores", ())
        return dumped | ({"scores": list(scores)} if scores else {})

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of the scores of one's own."""
        return tuple(score.name for score in self.scores)

    def unjudged(self) -> Signature:
        """The same where there was nothing to judge: any judge would have said as much."""
        return self.model_copy(update={"judge": "none", "judge_prompt": ""})


class Weights(Record):
    """The exponents of the combined score."""

    alpha: float = Field(default=2.0, ge=0)
    beta: float = Field(default=0.5, ge=0)
    gamma: float = Field(default=1.5, ge=0)


OWN_PARAM = "param."
"""How the names of a user's own params begin in MLflow, so that none is that of a setting."""

COMMIT = "commit"
"""The name under which the state of the working directory in git stands among the settings."""

UNCOMMITTED = "uncommitted changes"

PACKAGES = "packages"
"""The name under which the installed packages of the target's environment stand among the settings."""

PACKAGES_TAG = "evaltrack.packages"
"""The tag of a run that holds them."""

CORPUS = "corpus"
"""The name under which the state of the pages that a target searches stands among the settings."""

CORPUS_TAG = "evaltrack.corpus"
"""The tag of a run that holds it."""

NOT_STATED, RECORDED_MODEL = "not stated", "recorded"
"""The model of a target that does not name it, as `model` does, and of recorded responses that name none."""

RESPONSES, VERDICTS = "recorded responses", "recorded verdicts"
"""The names under which the digests of the files of recorded responses and verdicts stand among the settings."""

RESPONSES_TAG, VERDICTS_TAG = "evaltrack.recorded_responses", "evaltrack.recorded_verdicts"
"""The tags of a run that hold them."""

CODE = "code of the target"
"""The name of the state of the files that a target had imported when it was opened."""

SYSTEM_TAG = "evaltrack.system"
"""The tag of a run that holds the `System` that it evaluated."""

THEN = " → "
"""Between the states in which the rows of a run were made, where it was gone on with after one had changed."""

SETTING_TAGS = {
    PACKAGES: PACKAGES_TAG,
    CORPUS: CORPUS_TAG,
    RESPONSES: RESPONSES_TAG,
    VERDICTS: VERDICTS_TAG,
}
"""The settings that are tags of a run and no params; a run may lack any of them."""

LONGEST_PACKAGES = 7500
"""Characters: a tag of MLflow holds 8,000."""

OTHERS = "others"
"""In the place of the packages for which there was no room; its version is a digest of all."""


def both_states(was: str, now: str) -> str:
    """``3fa1c9d2 → 804fbdba``, or the one state where it is the same as the last."""
    return was if last_state(was) == now else f"{was}{THEN}{now}" if was else now


def last_state(states: str) -> str:
    """The state in which the last rows were made."""
    return states.rpartition(THEN)[2]


def packages_text(packages: Mapping[str, str]) -> str:
    """``langchain-core 1.7.2, numpy 2.4.6``; of very many the first, and a digest of all."""
    entries = [f"{name} {release}" for name, release in sorted(packages.items())]
    whole = ", ".join(entries)
    if len(whole) <= LONGEST_PACKAGES:
        return whole
    held = whole[:LONGEST_PACKAGES].rpartition(", ")[0]
    return f"{held}, {OTHERS} {hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def read_packages(text: str) -> dict[str, str]:
    """The packages in such a text, which anybody may have written."""
    parts = (entry.strip().partition(" ") for entry in text.split(","))
    return {name: release for name, _, release in parts if name and release}


def commit_words(commit: str, branch: str, *, dirty: bool) -> str:
    """``1a2b3c4d5e6f (main, uncommitted changes)``; empty where there is no commit."""
    remarks = ", ".join(filter(None, (branch, UNCOMMITTED if dirty else "")))
    return commit and f"{commit[:12]}{f' ({remarks})' if remarks else ''}"


def shown_settings(params: Mapping[str, str]) -> dict[str, str]:
    """Params of a run, as they are compared: where MLflow logged one in its own spelling, in that of evaltrack."""
    own = {name.removeprefix("evaltrack."): value for name, value in params.items() if name.startswith("evaltrack.")}
    rest = {name: value for name, value in params.items() if not name.startswith("evaltrack.")}
    return {name: value for name, value in (rest | own).items() if name != "golden"}


LONGEST_SYSTEM = 7900
"""Characters of a record; a tag of MLflow holds 8,000."""


class System(Record):
    """A target as it was evaluated. Environment variables are no part of it.

    `changes` is a digest of what was not committed, empty in a clean work tree. `files` holds path and digest of each
    file of the project that it runs; of very many the first. `settings` are the options of the target, and its model.
    """

    commit: str = ""
    changes: str = ""
    corpus: str = ""
    settings: Mapping[str, str] = {}
    files: Mapping[str, str] = {}

    @property
    def is_committed(self) -> bool:
        """Whether the commit says all of what is in the work tree."""
        return bool(self.commit) and not self.changes

    def with_files(self, files: Mapping[str, str]) -> System:
        """The same with more files, as long as there is room. A file that it holds stays as it was."""
        held, room = dict(self.files), LONGEST_SYSTEM - len(self.model_dump_json())
        for name, digest in files.items():
            room -= len(json.dumps([name, digest])) if name not in held else 0
            if room >= 0:
                held.setdefault(name, digest)
        return self.model_copy(update={"files": held})


def why_another_system(one: System, other: System) -> str | None:
    """Why the second is another system than the first, which a run evaluated; None where it is the same."""
    changed = [f"`{name}`" for name, was in one.files.items() if other.files.get(name, was) != was]
    if changed:
        return f"{first_of(changed, 3)} {verb(len(changed), 'was', 'were')} changed"
    if one.corpus != other.corpus:
        return "the corpus was changed"
    for name in sorted({*one.settings, *other.settings}):
        if one.settings.get(name) != other.settings.get(name):
            return f"the setting `{name}` differs"
    if one.commit != other.commit:
        return "the commit is another"
    if one.changes != other.changes:
        return f"the work tree {'was not clean when the run was made' if one.changes else 'has changes since'}"
    return None


@dataclass(frozen=True)
class Run:
    """One evaluation: an MLflow run that evaltrack wrote, or a saved file, whose `run_id` is empty.

    `link` is its page in MLflow's UI; `trace_link`, with the id of a trace behind it, leads there. `traces` says which
    questions have one. `means` are those that it logged, by the names of metrics; `settings` are its params by name and
    the commit of the working directory, empty where it does not say. `system` is what it evaluated, where it says so.
    `started_at` and `ended_at` are in milliseconds since 1970, 0 where it did not. `rows_tag` is what it says of its
    files of rows.
    """

    run_id: str
    name: str
    signature: Signature
    link: str | None = None
    num_questions: int = 0
    num_errors: int = 0
    traces: Traced = "off"
    trace_link: str | None = None
    means: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    experiment_id: str = ""
    status: str = "FINISHED"
    started_at: int = 0
    ended_at: int = 0
    rows_tag: str = ""
    system: System | None = None
