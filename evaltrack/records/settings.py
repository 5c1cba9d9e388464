"""How a run was made, as texts by name: the settings that a comparison holds side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

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
