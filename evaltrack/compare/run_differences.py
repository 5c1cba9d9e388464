"""What differs in how two runs were made: params, commit, target, model, settings."""

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
    RESPONSES,
    SETTING_TAGS,
    UNCOMMITTED,
    VERDICTS,
    Run,
    read_packages,
)

PACKAGE = "package "
"""Before the name of a package that differs."""

MODEL, TARGET, PROMPT = "model", "target", "prompt"
"""The settings that are held side by side also where a run says no other; and a part of the names of prompts."""

JUDGE_PROMPT, GOLDEN_SET = "judge prompt", "golden set"
DIGESTS = (JUDGE_PROMPT, GOLDEN_SET)
"""What is told apart by a digest, of which people can only be told that it is another."""

RECORDED = "recorded:"
"""Begins the name of a target whose answers are read from a file: that differs from run to run, and says little."""


@dataclass(frozen=True)
class RunDifference:
    """A setting that differs; None where a run does not have it. `own`: it is a param of the user's own."""

    name: str
    baseline: str | None
    candidate: str | None
    own: bool = False


def run_differences(baseline: Run, candidate: Run) -> tuple[RunDifference, ...]:
    """By weight: model, prompts, params of the user and target, other settings, packages, corpus, commit, files.

    Where a run does not say how it was made, its signature alone is held side by side. Packages, corpus, commit and
    digests differ only where both runs state them.
    """
    both = bool(baseline.settings and candidate.settings)
    names = {*baseline.settings, *candidate.settings} if both else set()
    names -= {*SETTING_TAGS, COMMIT} - (baseline.settings.keys() & candidate.settings.keys())
    was, now = (_settings(run, names) for run in (baseline, candidate))
    unstated = set(DIGESTS) - (was.keys() & now.keys())
    unstated |= set() if _names_model(baseline) and _names_model(candidate) else {MODEL}
    differing = [name for name in {*was, *now} - unstated if was.get(name) != now.get(name)]
    if COMMIT in differing and _code(was[COMMIT]) == _code(now[COMMIT]):
        differing.remove(COMMIT)
    return tuple(
        RunDifference(name.removeprefix(OWN_PARAM), was.get(name), now.get(name), own=name.startswith(OWN_PARAM))
        for name in sorted(differing, key=lambda name: (_weight(name, was.get(name), now.get(name)), name))
    )


def _code(commit: str) -> tuple[str, bool]:
    """The commit without its branch, and whether there are changes on top of it."""
    return commit.partition(" ")[0], UNCOMMITTED in commit


def about_answers(difference: RunDifference) -> bool:
    """Whether it can have made another answer of the same sources: another model, another prompt."""
    return difference.name == MODEL or _is_prompt(difference.name)


def about_sources(difference: RunDifference) -> bool:
    """Whether it can have changed what is there to be returned: another corpus, another of two commits."""
    one, other = ((value or "").partition(" ")[0] for value in (difference.baseline, difference.candidate))
    return not difference.own and (difference.name == CORPUS or (difference.name == COMMIT and one != other))


def _names_model(run: Run) -> bool:
    return run.signature.model not in (NOT_STATED, RECORDED_MODEL)


def _settings(run: Run, names: Collection[str]) -> dict[str, str]:
    part = run.signature.selection
    signed = {TARGET: run.signature.target, MODEL: run.signature.model, JUDGE_PROMPT: run.signature.judge_prompt}
    signed |= {GOLDEN_SET: part.whole_digest if part else run.signature.golden_digest}
    settings = {name: value for name, value in run.settings.items() if name in names}
    installed = read_packages(settings.pop(PACKAGES, ""))
    settings |= {f"{PACKAGE}{name}": release for name, release in installed.items()}
    return settings | {name: value for name, value in signed.items() if value}


def _is_prompt(name: str) -> bool:
    return PROMPT in name and not name.startswith("judge")


def _weight(name: str, was: str | None, now: str | None) -> int:
    """Its place, the weightiest first."""
    plain = name.removeprefix(OWN_PARAM)
    if plain == MODEL or _is_prompt(plain):
        return 0 if plain == MODEL else 1
    if name == TARGET and all((value or RECORDED).startswith(RECORDED) for value in (was, now)):
        return 9
    if name.startswith(OWN_PARAM):
        return 2
    if name == TARGET or name.startswith(f"{TARGET}."):
        return 3 if name == TARGET else 4
    if name.startswith(PACKAGE):
        return 6
    return {CORPUS: 7, COMMIT: 8, **dict.fromkeys((RESPONSES, VERDICTS, *DIGESTS), 9)}.get(name, 5)
