"""Options that several commands have, and what stands in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

import click
from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from evaltrack.errors import Guide, UsageError
from evaltrack.records.config import Config, traits

OTHERS = "Options"
HEADINGS = (
    *("What is evaluated", "What is compared", "The gate", "Judges and scores", "Result", "A part of the set"),
    *("Asking again", "In MLflow", "Execution", "Going on", "Tokens, cost and secrets", OTHERS),
)
"""The headings of options in help texts, what is used most first."""

EVALUATION = {
    "What is evaluated": "target_options target_error k",
    "Judges and scores": (
        "judge judge_prompt scores rubric rubric_weights pass_threshold judge_timeout call_timeout verdict_cache"
    ),
    "Result": "require evaluation_json",
    "A part of the set": "filter only_failed sample sample_seed",
    "In MLflow": "experiment run_name param tag note traces",
    "Execution": ("trials concurrency timeout workers target_memory in_process engine engine_address engine_workers"),
    "Tokens, cost and secrets": ("model alpha beta gamma price_in price_out judge_price_in judge_price_out redact"),
}
COMPARISON = {
    "What is compared": "golden",
    "The gate": "max_drop allow_flips gate max_reruns min_coverage allow_partial ignore require",
}
"""The headings of the settings of an evaluation and of a comparison."""


def heading_of(setting: str, headings: Mapping[str, str]) -> str:
    """The heading of a setting; "" where it has none."""
    return next((heading for heading, names in headings.items() if setting in names.split()), "")


class GroupedOption(click.Option):
    """An option that the help of a `GroupedCommand` lists under a heading."""

    def __init__(self, *arguments: Any, group: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings, in the order of `HEADINGS`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each heading; options of none are at the end, with --help."""
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                sections[getattr(parameter, "group", "") or OTHERS].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def in_group(heading: str) -> dict[str, Any]:
    """The keyword arguments of `click.option` for an option under this heading."""
    return {"cls": GroupedOption, "group": heading}


ui_option = click.option(
    "--ui-url",
    default="",
    help="Where MLflow's UI is, for links.  [default: EVALTRACK_UI_URL, else a server itself]",
    **in_group("In MLflow"),
)


def output_option(*others: str, default: Literal["table", "auto"] = "table") -> Callable[[Any], Any]:
    """`--output table|json`, and other forms that a command has; by default `auto` is JSON where stdout is a file."""
    auto = default == "auto"
    return click.option(
        "--output",
        default=default,
        show_default=True,
        type=click.Choice([*["auto"] * auto, "table", "json", *others]),
        help="What is printed on stdout" + ("; auto: a table, or JSON where stdout is a file." if auto else "."),
        **in_group("Result"),
    )


PAIRS = {"target_options": "--target-option", "param": "--param", "tag": "--tag"}
"""Settings of which each value is a pair ``KEY=VALUE``, with their options."""


def no_empty_name(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """The value of an argument that may be left out, for its callback.

    Raises:
        UsageError: an empty text was typed, as a shell makes of a variable that is not set.
    """
    typed = param.name and ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    if typed and (value == "" or (isinstance(value, tuple) and "" in value)):
        raise UsageError("an argument is empty (a variable that is not set?); write a name, or leave it out")
    return value


def config_options(record: type[Config], headings: Mapping[str, str] = MappingProxyType({})) -> Callable[[Any], Any]:
    """An option for each setting of a record, in their order, under its heading."""

    def decorate(command: Any) -> Any:
        for name, field in reversed(record.model_fields.items()):
            command = config_option(name, field, heading_of(name, headings))(command)
        return command

    return decorate


def config_option(name: str, field: FieldInfo, heading: str = "") -> Callable[[Any], Any]:
    """The option of a setting, with the type, the default and the help of its field."""
    option, flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}", traits(field).flag
    shared: dict[str, Any] = {"help": field.description, **in_group(heading)}
    kind = field.annotation
    if name in PAIRS:
        return click.option(PAIRS[name], name, multiple=True, **shared)
    if kind is bool:
        return click.option(f"{option}/{flag}" if flag else option, is_flag=True, default=field.default, **shared)
    if get_origin(kind) is tuple:
        default = list(field.default)
        return click.option(
            flag or option, name, multiple=True, default=default, show_default=",".join(default) or False, **shared
        )
    if get_origin(kind) is Literal:
        shared["type"] = click.Choice(get_args(kind))
    elif int in get_args(kind):
        shared["type"] = click.IntRange(min=0)
    elif kind in (int, float, str):
        shared["type"] = kind
    else:  # a number or nothing
        bounds = {type(each): each for each in field.metadata}
        shared["type"] = click.FloatRange(bounds[Ge].ge, bounds[Le].le)
    show_default = field.default not in ("", None)
    return click.option(*filter(None, [flag, option]), default=field.default, show_default=show_default, **shared)


def pairs_of(options: Sequence[str], option: str = "--target-option") -> dict[str, str]:
    """Each ``KEY=VALUE`` as an entry.

    Raises:
        click.UsageError: one is of another form; it may be a secret, and is not repeated.
    """
    pairs = [option.partition("=") for option in options]
    if not all(key and sign for key, sign, _ in pairs):
        raise click.UsageError(f"{option}: one has no `=`, or nothing before it; write KEY=VALUE")
    return {key: value for key, _, value in pairs}


def default_golden(folder: Path = Path("golden")) -> str:
    """The path of the only golden set in a folder.

    Raises:
        UsageError: there is none, or there are several.
    """
    paths = sorted(each for pattern in ("*.jsonl", "*.json") for each in folder.glob(pattern))
    if len(paths) == 1:
        return str(paths[0])
    if not paths:
        cure = "name one: evaltrack run GOLDEN, or begin with: evaltrack init"
        raise UsageError(f"no golden set was named, and {folder}/ holds none; {cure}", guide=Guide.GOLDEN_FILE)
    names = ", ".join(map(str, paths[:5])) + (", …" if len(paths) > 5 else "")
    cure = "name one, or set `golden` under [run] in evaltrack.toml"
    raise UsageError(f"no golden set was named, and there are {len(paths)}: {names}; {cure}")


def from_caller(name: str) -> str:
    """A file, ``recorded:FILE`` or ``bm25:DIR`` of the folder in which `mlflow run` was called, if not of this one.

    MLflow changes to the project's folder; `scripts/mlproject.sh` says where it came from.
    """
    caller = os.environ.get("EVALTRACK_CALLER_FOLDER")
    kind, colon, place = name.rpartition(":")
    path, question_mark, settings = place.partition("?")
    if not caller or kind not in ("", "recorded", "bm25") or not path or Path(path).exists():
        return name
    there = Path(caller) / path
    return f"{kind}{colon}{there}{question_mark}{settings}" if there.exists() else name
