"""One side of a comparison, and what differs in how two were made: params, commit, target, model, settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evaltrack.records import Signature
from evaltrack.records.settings import COMMIT, CORPUS, OWN_PARAM, PACKAGES, read_packages

if TYPE_CHECKING:
    from evaltrack.records.row import Traced

FIRST = (COMMIT, CORPUS, "target", "model")
PACKAGE = "package "
"""Before the name of a package that differs."""


@dataclass(frozen=True)
class RunInfo:
    """One side of a comparison. `run_id` is None for a saved file.

    `traces` says which questions have a trace; `trace_link`, with its id behind it, leads there. `means` are those that
    the run logged, which its rows must give; `settings` how it was made, empty where it does not say.
    """

    run_id: str | None
    name: str
    signature: Signature
    link: str | None = None
    num_questions: int = 0
    num_errors: int = 0
    traces: Traced = "off"
    trace_link: str | None = None
    means: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunDifference:
    """A setting that differs; None where a run does not have it. `own`: it is a param of the user's own."""

    name: str
    baseline: str | None
    candidate: str | None
    own: bool = False


def run_differences(baseline: RunInfo, candidate: RunInfo) -> tuple[RunDifference, ...]:
    """The user's params first, then commit, target and model, then the other settings by name, then packages.

    Where a run does not say how it was made, target and model alone are held side by side; packages and corpus where
    both say which there are.
    """
    both = bool(baseline.settings and candidate.settings)
    names = {*baseline.settings, *candidate.settings} if both else set()
    names -= {PACKAGES, CORPUS} - (baseline.settings.keys() & candidate.settings.keys())
    was, now = (_settings(run, names) for run in (baseline, candidate))
    return tuple(
        RunDifference(name.removeprefix(OWN_PARAM), was.get(name), now.get(name), own=name.startswith(OWN_PARAM))
        for name in sorted({*was, *now}, key=_place)
        if was.get(name) != now.get(name)
    )


def _settings(run: RunInfo, names: Collection[str]) -> dict[str, str]:
    signed = {"target": run.signature.target, "model": run.signature.model}
    settings = {name: value for name, value in run.settings.items() if name in names}
    installed = read_packages(settings.pop(PACKAGES, ""))
    settings |= {f"{PACKAGE}{name}": release for name, release in installed.items()}
    return settings | {name: value for name, value in signed.items() if value}


def _place(name: str) -> tuple[bool, int, str]:
    last = len(FIRST) + name.startswith(PACKAGE)
    return not name.startswith(OWN_PARAM), FIRST.index(name) if name in FIRST else last, name
