"""The page of commands: usage, help, arguments, options and examples of each, as `--help` says them."""

from __future__ import annotations

import re

import click

from evaltrack.cli import cli
from scripts.references.markdown import prose, table

HEAD = """# Commands

Results go to stdout, progress and notes to stderr. `evaltrack COMMAND --help` says the same as this page, which is
written from it. [Exit codes](exit-codes.md) and [settings](../settings.md) have pages of their own.

Wherever a run is named, its id, the beginning of its id or its name will do. Every option and
[setting](../settings.md) can also be set as an environment variable (`EVALTRACK_RUN_K=3`), or as a line under `[run]`
in `evaltrack.toml` or `[tool.evaltrack.run]` in `pyproject.toml` of the working directory, but for a file that another
user put there. `--config FILE` or `EVALTRACK_CONFIG` names another file to read instead:
`evaltrack --config gate.toml compare`.
"""


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
    found = all_commands(cli)
    rows = [(f"[`{name}`](#{name.replace(' ', '-')})", _summary(command)) for name, command in found.items()]
    sections = [_section(name, command) for name, command in found.items()]
    return "\n".join([HEAD, table(("command", "does"), rows), *sections])


def _summary(command: click.Command) -> str:
    first = re.split(r"\n\s*\n", command.help or "")[0]
    return prose(" ".join(first.split()).removesuffix("."))


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = f"{name} {' '.join(command.collect_usage_pieces(context))}"
    lines = [f"\n## {name}\n", f"    {usage}\n"]
    lines += [prose(" ".join(part.split())) + "\n" for part in re.split(r"\n\s*\n", command.help or "")]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    rows = [(_flags(each, context), *_help(each, context)) for each in options]
    if rows:
        lines.append(table(("option", "default", "meaning"), rows))
    if command.epilog:
        lines += ["", *_examples(command.epilog)]
    return "\n".join(lines)


def _flags(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return names
    kind = option.make_metavar(context).strip("[]")
    return f"{names} {kind.replace('|', ' or ')}" if "|" in kind else f"{names} {kind}"


def _help(option: click.Option, context: click.Context) -> tuple[str, str]:
    """Default and meaning; some texts say the default themselves."""
    text, _, own = (option.help or "").partition("  [default: ")
    own, _, bounds = own.partition("]")
    shown = own or option.get_help_extra(context).get("default", "")
    return prose(shown.strip("()")), prose(text + (f" {bounds.strip()}" if bounds.strip() else ""))


def _examples(epilog: str) -> list[str]:
    lines = [line.rstrip() for line in epilog.replace("\b", "").strip("\n").splitlines()]
    return ["Examples:\n", *(f"    {line.strip()}" for line in lines if line.strip() and line.strip() != "Examples:")]
