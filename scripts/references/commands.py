"""The page of commands: usage, help, arguments, options and examples of each, as `--help` says them."""

from __future__ import annotations

import re

import click

from evaltrack.cli import cli
from evaltrack.compare.gate import ComparisonConfig
from evaltrack.evaluation.settings import EvaluationConfig
from scripts.references.markdown import prose, table

HEAD = """# Commands

`evaltrack COMMAND --help` shows these options with examples. Results go to stdout, progress and notes to stderr;
[exit codes](exit-codes.md) has the codes. Name a run by its id, the beginning of its id, or its run name.

`evaltrack --config FILE COMMAND` reads its [settings](../settings.md) from FILE instead of `evaltrack.toml` or
`pyproject.toml`.
"""
SETTINGS = {"evaltrack run": EvaluationConfig, "evaltrack compare": ComparisonConfig}
"""Commands whose options are settings, which have a page of their own."""


def all_commands(group: click.Group, prefix: str = "evaltrack") -> dict[str, click.Command]:
    """Every command by its full name."""
    found: dict[str, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found |= all_commands(command, f"{prefix} {name}")
        elif command is not None:
            found[f"{prefix} {name}"] = command
    return found


def commands_page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(name, command) for name, command in all_commands(cli).items())])


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    first = " ".join(re.split(r"\n\s*\n", command.help or "")[0].split())
    lines = [f"## {name}\n", f"    {name} {' '.join(command.collect_usage_pieces(context))}\n", f"{prose(first)}\n"]
    settings = SETTINGS[name].model_fields if name in SETTINGS else ()
    options = [
        each
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden and each.name not in settings
    ]
    if settings:
        lines.append("Each [setting](../settings.md) is an option, or `--set NAME=VALUE`. The other options:\n")
    if options:
        rows = [(_flags(each, context), _meaning(each, context)) for each in options]
        lines.append(table(("option", "meaning"), rows) + "\n")
    return "\n".join(lines)


def _flags(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return names
    kind = option.make_metavar(context).strip("[]")
    return f"{names} {kind.replace('|', ', ')}"


def _meaning(option: click.Option, context: click.Context) -> str:
    """The help of an option and its default; some texts say the default themselves."""
    text, _, own = (option.help or "").partition("  [default: ")
    shown = own.partition("]")[0] or option.get_help_extra(context).get("default", "").strip("()")
    text = text.partition(" Settings without an option of their own:")[0]
    return prose(f"{text} Default: {shown}." if shown else text)
