"""`evaltrack init`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaltrack.errors import UsageError

if TYPE_CHECKING:
    from evaltrack.api.init_project import ProjectChoices, ProjectPlan

EXAMPLES = """\b
Examples:
  evaltrack init                                          asks what there is
  evaltrack init --yes                                    takes what is found: docs/, golden/
  evaltrack init --yes --corpus handbook --ci github
  evaltrack init --yes -t http://127.0.0.1:8000/ask       your own server
"""
APPS = {"none": "", "function": "python:package.module:function", "http": "http://…", "openai": "openai:MODEL"}
"""Kinds of apps that are asked for, and the form of their targets."""

CI_CHOICE = click.Choice(["github", "gitlab", "jenkins", "none"])


@click.command(epilog=EXAMPLES)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--corpus", default=None, help="Folder of your pages, in FOLDER.  [default: docs/ or the like]")
@click.option("-t", "--target", default=None, help="Your app, as `evaltrack run -t` takes it.  [default: none yet]")
@click.option("--golden", default=None, help="A golden set that is there.  [default: the only one in golden/]")
@click.option("--ci", default=None, type=CI_CHOICE, help="Whose file to write.")
@click.option("--package", default="", help="What the CI installs, as pip takes it.  [default: as installed here]")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: take what is given, and what is found.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
def init(folder: Path, yes: bool, force: bool, **options: Any) -> None:
    """Begin a project in FOLDER: settings, a first golden set, a target and the file of a CI.

    Without pages and without a golden set it writes a sample that can be run at once. Nothing is overwritten without
    asking.
    """
    from evaltrack.api.init_project import plan_project, write_project

    try:
        choices = _choices(folder, asks=not yes, **options)
        plan = plan_project(folder, choices)
        if plan.in_the_way and not (yes or force):
            names = ", ".join(plan.in_the_way)
            force = click.confirm(f"{names}: there already; replace", default=False, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise UsageError("nobody is there to answer; --yes takes what is given, and what is found") from None
    write_project(plan, force=force)
    _print_end(plan)


def _choices(folder: Path, *, asks: bool, **options: Any) -> ProjectChoices:
    """What there is: from options, else asked for, else as it is found."""
    from evaltrack.api.init_project import ProjectChoices, find_corpus, find_golden

    corpus, target, golden, ci = (options[name] for name in ("corpus", "target", "golden", "ci"))
    if golden is None:
        golden = find_golden(folder)
        golden = _asked("golden set, empty: write a new one", golden) if asks and golden else golden
    if corpus is None:
        corpus = find_corpus(folder)
        corpus = _asked("folder of your pages, empty: a sample", corpus) if asks else corpus
    if target is None:
        target = _asked_app() if asks else ""
    if ci is None:
        ci = click.prompt("CI", default="none", type=CI_CHOICE, err=True) if asks else "none"
    return ProjectChoices(corpus, target, golden, ci, options["package"])


def _asked(question: str, default: str) -> str:
    """A text; a blank or `-` is none, where Enter takes the default."""
    shown = bool(default)
    answer: str = click.prompt(question + (" (- for that)" * shown), default=default, show_default=shown, err=True)
    return "" if answer.strip() in ("", "-") else answer.strip()


def _asked_app() -> str:
    kind = click.prompt("your app", default="none", type=click.Choice(list(APPS)), err=True)
    if kind == "none":
        return ""
    answer: str = click.prompt(f"its name, {APPS[kind]}", err=True).strip()
    prefix = {"function": "python:", "http": "http", "openai": "openai:"}[kind]
    return answer if answer.startswith(prefix) else ("http://" if kind == "http" else prefix) + answer


def _print_end(plan: ProjectPlan) -> None:
    """What was written, and what to do next."""
    from evaltrack.cli.wording import with_options
    from evaltrack.privacy.addresses import shown_text
    from evaltrack.system.commands import quoted

    for name in plan.files:
        click.echo(shown_text(str(plan.folder / name)))
    if plan.examples:
        review = f"evaltrack golden review {quoted(plan.examples)}"
        click.echo(f"{plan.examples} holds examples, which no run asks; edit them, or review them: {review}", err=True)
    for note in plan.notes:
        click.echo(with_options(shown_text(note)), err=True)
    there = "" if plan.folder == Path() else f"cd {quoted(str(plan.folder))} && "
    click.echo(f"Next:           {there}evaltrack run && evaltrack baseline set", err=True)
    click.echo("After a change: evaltrack run && evaltrack compare", err=True)
