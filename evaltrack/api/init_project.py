"""Begin a project: settings, a first golden set, a target and the file of a CI."""

from __future__ import annotations

import os
from pathlib import Path

from evaltrack.api.project.plan import CI, ProjectChoices, ProjectPlan, plan_project
from evaltrack.errors import UsageError
from evaltrack.system.new_files import new_files


def init_project(
    folder: str | os.PathLike[str] = ".",
    *,
    corpus: str = "",
    target: str = "",
    golden: str = "",
    ci: CI = "none",
    package: str = "",
    force: bool = False,
) -> ProjectPlan:
    """Write `evaltrack.toml`, a first golden set, a target and the file of a CI.

    Args:
        folder: The project's folder, made where there is none. Other paths are relative to it.
        corpus: Folder of pages. The golden set then holds three example questions to edit, which are drafts that no run
            asks; without a corpus it is a sample that can be run at once.
        target: What is asked: a target's name (``http://127.0.0.1:8000/ask``); "" is BM25 over the corpus, with a
            function to begin one's own app with beside it; ``python:evaltrack_target:ask`` is that function.
        golden: A golden set that is there; none is written then.
        ci: Whose file is written: ``github``, ``gitlab``, ``jenkins`` or ``none``.
        package: What the CI installs, as pip takes it; "" is what this installation was made from.
        force: Whether files that are there are replaced.

    Raises:
        UsageError: files are in the way, all of which are named; or a choice is wrong. Nothing was written.
    """
    return write_project(plan_project(Path(folder), ProjectChoices(corpus, target, golden, ci, package)), force=force)


def write_project(plan: ProjectPlan, *, force: bool = False) -> ProjectPlan:
    """Write the files of a plan, all of them or none.

    Raises:
        UsageError: files are in the way, all of which are named, or cannot be written.
    """
    if plan.in_the_way and not force:
        names = ", ".join(plan.in_the_way)
        raise UsageError(f"{plan.folder}: in the way: {names}; move them, or replace them with `force=True`")
    with new_files(force=force) as files:
        for name, text in plan.files.items():
            with files.open(plan.folder / name) as file:
                file.write(text)
    return plan
