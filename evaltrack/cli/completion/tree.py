"""The commands and options that are completed: written down from the real ones, and made into light ones."""

from __future__ import annotations

import json
from functools import partial
from importlib.resources import files
from typing import Any

import click
from click.shell_completion import CompletionItem

FILE = "tree.json"

PARAMETERS = {
    "golden": "golden",
    "paths": "golden",
    "target": "target",
    "targets": "target",
    "new_target": "target",
    "old_target": "target",
    "judge": "judge",
    "run": "run",
    "resume": "run",
    "only_failed": "run",
    "baseline_run": "run",
    "unjudged": "run",
    "runs": "run or golden",
    "experiment": "experiment",
    "require": "criterion",
    "corpus": "folder",
    "new_corpus": "folder",
    "old_corpus": "folder",
    "folder": "folder",
    "config": "file",
    "evaluation_json": "file",
    "labels": "file",
}
"""What stands in an option or argument, by its name."""

OF_COMMANDS = {
    "golden": {"file": "golden", "files": "golden"},
    "sweep": {"file": "sweep"},
    "schema": {"name": "schema"},
}
"""The same for those of one command, or of the commands of one group."""


def command_tree(command: click.Command, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """A command with its options and the commands below it, as JSON."""
    context = click.Context(command)
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    tree: dict[str, Any] = {
        "help": command.get_short_help_str(80),
        "params": [_parameter(each, path) for each in shown],
    }
    if isinstance(command, click.Group):
        below = {name: command.get_command(context, name) for name in command.list_commands(context)}
        tree["commands"] = {name: command_tree(each, (*path, name)) for name, each in below.items() if each is not None}
    return tree


def _parameter(parameter: click.Parameter, path: tuple[str, ...]) -> dict[str, Any]:
    own = next((OF_COMMANDS[name] for name in path if name in OF_COMMANDS), {})
    name = parameter.name or ""
    kind = own.get(name) or PARAMETERS.get(name) or ("file" if isinstance(parameter.type, click.Path) else "")
    tree: dict[str, Any] = {"name": name, "opts": [*parameter.opts], "kind": kind}
    if isinstance(parameter.type, click.Choice):
        tree["choices"] = list(map(str, parameter.type.choices))
    if isinstance(parameter, click.Argument):
        return tree | {"nargs": parameter.nargs}
    if isinstance(parameter, click.Option):
        tree |= {"no": [*parameter.secondary_opts], "flag": parameter.is_flag, "help": _first(parameter.help)}
        tree["multiple"] = parameter.multiple
    return tree


def _first(text: str | None) -> str:
    return (text or "").partition("  [")[0][:80]


def light_commands() -> click.Command:
    """The commands of the file, which do nothing."""
    text = files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return _command("evaltrack", json.loads(text))


def _command(name: str, tree: dict[str, Any]) -> click.Command:
    params = [_light(each) for each in tree["params"]]
    settings: dict[str, Any] = {"params": params, "help": tree["help"]}
    if "commands" not in tree:
        return click.Command(name, **settings)
    below = {each: _command(each, part) for each, part in tree["commands"].items()}
    return InOrder(name, commands=below, **settings)


class InOrder(click.Group):
    """A group whose commands are offered in the order in which people need them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        """The names."""
        return list(self.commands)


def _light(tree: dict[str, Any]) -> click.Parameter:
    kind = click.Choice(tree["choices"]) if "choices" in tree else None
    completer = partial(_values, tree["kind"]) if tree["kind"] and kind is None else None
    shared: dict[str, Any] = {"type": kind, "shell_complete": completer}
    if "nargs" in tree:
        return click.Argument([tree["name"]], nargs=tree["nargs"], required=False, **shared)
    declared = "/".join([tree["opts"][-1], *tree["no"][-1:]]) if tree["flag"] and tree["no"] else tree["opts"][-1]
    names = [tree["name"], *tree["opts"][:-1], declared]
    if tree["flag"]:
        return click.Option(names, is_flag=True, help=tree["help"], expose_value=False)
    return click.Option(names, multiple=tree["multiple"], help=tree["help"], **shared)


def _values(kind: str, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    from evaltrack.cli.completion.values import KINDS

    given = ctx.params.get(param.name or "") or ()
    taken = set(given) if isinstance(given, tuple | list) else set()
    return [each for each in KINDS[kind](incomplete) if each.value not in taken]
