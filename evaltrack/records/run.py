"""Defines a run: its signature (settings that compared runs must share), other settings, and the evaluated system."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field

from evaltrack.records.base import Count, Record, Text, first_of, verb
from evaltrack.records.row import Traced
from evaltrack.records.verdict import MOST_SCORES, OwnScore

METRICS_VERSION = 1
"""The version of the scores' definitions, raised by one for each change. Only runs of one version are compared."""


MAX_K = 1000
"""The largest cut-off. A retriever that returns more has another purpose."""


class SelectedPart(Record):
    """The part of a golden set that was asked: `questions` of its `total`, chosen `by` filter, run or sample.

    `whole_digest` is the digest of the whole set.
    """

    questions: Count
    total: Count
    by: Text = Field(max_length=1000)
    whole_digest: str

    @property
    def words(self) -> str:
        """The part in words: ``50 of 1,000 questions (sample 50, seed 0)``."""
        return f"{self.questions:,} of {self.total:,} questions ({self.by})"


class Signature(Record):
    """The settings that two compared runs must share, with the target and the model, which may differ.

    `golden_digest` is the digest of the questions that were asked. If these are not the whole set, `selection` says
    which. `scores` declares the user's own scores; a score with different declarations is not compared.
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

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of the user's own scores."""
        return tuple(score.name for score in self.scores)


class Weights(Record):
    """The exponents of the combined score."""

    alpha: float = Field(default=2.0, ge=0)
    beta: float = Field(default=0.5, ge=0)
    gamma: float = Field(default=1.5, ge=0)


OWN_PARAM = "param."
"""Prefix of the names of a user's own params in MLflow, so that none equals a setting."""

COMMIT = "commit"
"""The setting that holds the state of the working directory in git."""

UNCOMMITTED = "uncommitted changes"

PACKAGES = "packages"
"""The setting that holds the installed packages of the target's environment."""

CORPUS = "corpus"
"""The setting that holds the state of the pages that a target searches."""

NOT_STATED, RECORDED_MODEL = "not stated", "recorded"
"""The values of `model` for a target that does not name its model, and for recorded responses that name none."""

RECORDED_RESPONSES, RECORDED_VERDICTS = "recorded responses", "recorded verdicts"
"""The settings that hold the digests of the files of recorded responses and verdicts."""

CODE = "code"
"""The setting that holds the state of the files that target and judges had imported when they were opened."""

THEN = " → "
"""Separates the states in which a run's rows were made, if a state had changed when the run was resumed."""

STATES = (PACKAGES, CORPUS, RECORDED_RESPONSES, RECORDED_VERDICTS)
"""The settings that are not params, because they may change while a run is interrupted. A run may lack any of them."""

LONGEST_PACKAGES = 7500
"""The most characters of the packages; a tag of MLflow holds 8,000."""

OTHERS = "others"
"""The name that replaces packages that do not fit. Its version is a digest of all packages."""


def both_states(was: str, now: str) -> str:
    """Return ``3fa1c9d2 → 804fbdba``, or one state if it equals the last."""
    return was if last_state(was) == now else f"{was}{THEN}{now}" if was else now


def last_state(states: str) -> str:
    """Return the state in which the last rows were made."""
    return states.rpartition(THEN)[2]


def packages_text(packages: Mapping[str, str]) -> str:
    """Return ``langchain-core 1.7.2, numpy 2.4.6``. If they do not all fit, a digest of all replaces the rest."""
    entries = [f"{name} {release}" for name, release in sorted(packages.items())]
    whole = ", ".join(entries)
    if len(whole) <= LONGEST_PACKAGES:
        return whole
    held = whole[:LONGEST_PACKAGES].rpartition(", ")[0]
    return f"{held}, {OTHERS} {hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def read_packages(text: str) -> dict[str, str]:
    """Read the packages from such a text, which anybody may have written."""
    parts = (entry.strip().partition(" ") for entry in text.split(","))
    return {name: release for name, _, release in parts if name and release}


def commit_words(commit: str, branch: str, *, dirty: bool) -> str:
    """Return ``1a2b3c4d5e6f (main, uncommitted changes)``; empty if there is no commit."""
    remarks = ", ".join(filter(None, (branch, UNCOMMITTED if dirty else "")))
    return commit and f"{commit[:12]}{f' ({remarks})' if remarks else ''}"


def shown_settings(params: Mapping[str, str]) -> dict[str, str]:
    """Return the params of a run for comparisons. evaltrack's own spelling replaces MLflow's."""
    own = {name.removeprefix("evaltrack."): value for name, value in params.items() if name.startswith("evaltrack.")}
    rest = {name: value for name, value in params.items() if not name.startswith("evaltrack.")}
    return {name: value for name, value in (rest | own).items() if name != "golden"}


LONGEST_SYSTEM = 7900
"""The most characters of a `System`; a tag of MLflow holds 8,000."""


class System(Record):
    """The evaluated state of a target. Environment variables are not part of it.

    `changes` is a digest of uncommitted changes, empty in a clean work tree. `states` holds the corpus and digests of
    recorded files, as in `STATES`. `files` holds path and digest of each file of the project that it and its judges
    run, as far as there is room. `settings` holds the options of the target and its model. `version` is evaltrack's.
    """

    version: str = ""
    commit: str = ""
    changes: str = ""
    states: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}
    files: Mapping[str, str] = {}

    @property
    def is_committed(self) -> bool:
        """True if the work tree has no uncommitted changes."""
        return bool(self.commit) and not self.changes

    def with_files(self, files: Mapping[str, str]) -> System:
        """Return the system with more files, as long as there is room. Files that it holds do not change."""
        held, room = dict(self.files), LONGEST_SYSTEM - len(self.model_dump_json())
        for name, digest in files.items():
            room -= len(json.dumps([name, digest])) if name not in held else 0
            if room >= 0:
                held.setdefault(name, digest)
        return self.model_copy(update={"files": held})


def why_another_system(one: System, other: System) -> str | None:
    """Return the reason why the second system differs from the first, which a run evaluated; None if it does not."""
    changed = [f"`{name}`" for name, was in one.files.items() if other.files.get(name, was) != was]
    if changed:
        return f"{first_of(changed, 3)} {verb(len(changed), 'was', 'were')} changed"
    if one.states.get(CORPUS) != other.states.get(CORPUS):
        return "the corpus was changed"
    for name in sorted({*one.settings, *other.settings}):
        if one.settings.get(name) != other.settings.get(name):
            return f"the setting `{name}` differs"
    if one.commit != other.commit:
        return "the commit differs"
    if one.changes != other.changes:
        return f"the work tree {'was not clean when the run was made' if one.changes else 'has changes since'}"
    return None


@dataclass(frozen=True)
class Run:
    """One evaluation: an MLflow run of evaltrack, or a saved file, whose `run_id` is empty.

    `link` is its page in MLflow's UI. `trace_link` followed by the id of a trace is the address of the trace. `means`
    are its logged means by the names of metrics. `settings` are its params by name and the commit of the working
    directory; empty if it has none. `system` is the evaluated system, if known. `user` made it; empty if unknown.
    `started_at` and `ended_at` are in milliseconds since 1970; 0 if unknown. `traces` are the questions that have
    traces.
    """

    run_id: str
    name: str
    signature: Signature
    link: str | None = None
    num_questions: int = 0
    num_errors: int = 0
    trace_link: str | None = None
    means: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    experiment_id: str = ""
    status: str = "FINISHED"
    user: str = ""
    started_at: int = 0
    ended_at: int = 0
    traces: Traced = "off"
    system: System | None = None

    @property
    def is_part(self) -> bool:
        """True if it asked only a part of its golden set: a selection, or the questions before an interruption."""
        return self.signature.selection is not None or self.status == "KILLED"
