"""Lists the settings that differ between two runs (params, commit, target, model, ...), the most important first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from evaltrack.records.run import (
    COMMIT,
    CORPUS,
    NOT_STATED,
    OWN_PARAM,
    PACKAGES,
    RECORDED_MODEL,
    RECORDED_RESPONSES,
    RECORDED_VERDICTS,
    STATES,
    UNCOMMITTED,
    Run,
    read_packages,
)

PACKAGE, CODE = "package ", "file "
"""The prefixes of the names of a package and of a file of the project that differ."""

MODEL, TARGET, PROMPT = "model", "target", "prompt"
"""The settings that are compared even if a run states no others; also a part of the names of prompts."""

JUDGE_PROMPT, GOLDEN_SET = "judge prompt", "golden set"
DIGESTS = (JUDGE_PROMPT, GOLDEN_SET)
"""Settings that are known by their digests: people can only be told that they differ."""

RECORDED = "recorded:"
"""The prefix of a target that reads recorded answers. Its file differs from run to run, and means little."""


@dataclass(frozen=True)
class RunDifference:
    """A setting that differs; None if a run does not have it. `own`: it is a user-defined param."""

    name: str
    baseline: str | None
    candidate: str | None
    own: bool = False


def run_differences(baseline: Run, candidate: Run) -> tuple[RunDifference, ...]:
    """Return the differences, the most important first.

    The order is model, prompts, user's params, target, other settings, packages, corpus, commit, files. If a run does
    not state its settings, only the signatures are compared. Packages, corpus, commit and digests differ only if both
    runs state them.
    """
    names = {*baseline.settings, *candidate.settings} if baseline.settings and candidate.settings else set()
    names -= {*STATES, COMMIT} - (baseline.settings.keys() & candidate.settings.keys())
    was, now = (_settings(run, names) for run in (baseline, candidate))
    unstated = {name for name in was.keys() ^ now.keys() if name in DIGESTS or name.startswith(CODE)}
    if not {baseline.signature.model, candidate.signature.model}.isdisjoint((NOT_STATED, RECORDED_MODEL)):
        unstated.add(MODEL)
    differing = [name for name in {*was, *now} - unstated if was.get(name) != now.get(name)]
    if COMMIT in differing and _code(was[COMMIT]) == _code(now[COMMIT]):
        differing.remove(COMMIT)
    return tuple(
        RunDifference(name.removeprefix(OWN_PARAM), was.get(name), now.get(name), own=name.startswith(OWN_PARAM))
        for name in sorted(differing, key=lambda name: (_weight(name, was.get(name), now.get(name)), name))
    )


def _code(commit: str) -> tuple[str, bool]:
    """Return the commit without its branch, and True if it has uncommitted changes."""
    return commit.partition(" ")[0], UNCOMMITTED in commit


def about_answers(difference: RunDifference) -> bool:
    """Return True if it can change the answer: another model, another prompt, or another floor of a bm25: target."""
    return difference.name == MODEL or _is_prompt(difference.name) or has_other_settings(difference)


def about_sources(difference: RunDifference) -> bool:
    """Return True if it can change the sources: another corpus, commit, code, or setting of a bm25: target."""
    if has_other_settings(difference) or difference.name.startswith(CODE):
        return True
    one, other = ((value or "").partition(" ")[0] for value in (difference.baseline, difference.candidate))
    return not difference.own and (difference.name == CORPUS or (difference.name == COMMIT and one != other))


def has_other_settings(difference: RunDifference) -> bool:
    """Return True if both targets search the same folder with other settings, such as another chunk size."""
    folders = {(value or "").partition("?")[0] for value in (difference.baseline, difference.candidate)}
    return difference.name == TARGET and len(folders) == 1 and folders.pop().startswith("bm25:")


def _settings(run: Run, names: Collection[str]) -> dict[str, str]:
    part = run.signature.selection
    signed = {TARGET: run.signature.target, MODEL: run.signature.model, JUDGE_PROMPT: run.signature.judge_prompt}
    signed |= {GOLDEN_SET: part.whole_digest if part else run.signature.golden_digest}
    settings = {name: value for name, value in run.settings.items() if name in names}
    settings |= {f"{PACKAGE}{name}": release for name, release in read_packages(settings.pop(PACKAGES, "")).items()}
    settings |= {f"{CODE}{name}": digest for name, digest in (run.system.files if run.system else {}).items()}
    return settings | {name: value for name, value in signed.items() if value}


def _is_prompt(name: str) -> bool:
    return PROMPT in name and not name.startswith("judge")


def _weight(name: str, was: str | None, now: str | None) -> int:
    """Return the place of the setting. The most important setting has the lowest."""
    plain = name.removeprefix(OWN_PARAM)
    if plain == MODEL or _is_prompt(plain):
        return 0
    if name == TARGET and all((value or RECORDED).startswith(RECORDED) for value in (was, now)):
        return 9
    if name.startswith(OWN_PARAM):
        return 2
    if name == TARGET or name.startswith(f"{TARGET}."):
        return 3
    if name.startswith(PACKAGE):
        return 6
    return {CORPUS: 7, COMMIT: 8, **dict.fromkeys((RECORDED_RESPONSES, RECORDED_VERDICTS, *DIGESTS), 9)}.get(name, 5)
