"""The file of a sweep: which configurations of target, k and settings are evaluated on one golden set.

A list names the values to try; each configuration has one of each list. What is in lists of its own, as several judges
of a panel, is a list in a list.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, ValidationError

from evaltrack.errors import GoldenError, UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.golden.importing.table import read_yaml
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.signature import MAX_K

MAX_BYTES = 1 << 20
"""Of the file of a sweep."""

SUFFIXES = (".yaml", ".yml", ".json", ".toml")

OF_QUESTIONS = ("filter", "sample", "sample_seed")
"""Settings that choose the questions: they are the same for every configuration."""

OF_ALL = (*OF_QUESTIONS, "redact", "scores", "experiment")
"""Settings of the whole sweep, whose lists are no values to try."""

ELSEWHERE = {
    "k": "write it outside of `settings`",
    "run_name": "write `name` outside of `settings`",
    "evaluation_json": "it is of one run",
    "only_failed": "it is of one run",
}
"""Settings that cannot stand among those of a sweep, and why."""

Value = StrictBool | StrictInt | StrictFloat | str
Values = Value | list[Value]
Setting = Value | list[Value | list[Value]] | dict[str, Values] | None


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _targets(value: Any) -> Any:
    """Each target as a table."""
    return [{"target": each} if isinstance(each, str) or callable(each) else each for each in _as_list(value)]


class SweepTarget(BaseModel):
    """A target with a name of its own, and settings that hold for it alone, such as its prices."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    target: str | Annotated[Callable[..., Any], Field(json_schema_extra={})]
    name: str = Field("", max_length=200, description="What it is called in tables; else what `target` says.")
    settings: dict[str, Setting] = Field({}, description="Settings of this target alone; a list names values to try.")


class SweepFile(BaseModel):
    """The file of a sweep, checked but for its settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    golden: str = Field(min_length=1, description="The golden set, .jsonl or .json.")
    name: str = Field("", max_length=200, description="Name of the parent run.  [default: golden set and sweep]")
    targets: Annotated[list[SweepTarget], BeforeValidator(_targets)] = Field(
        [SweepTarget(target="auto")],
        min_length=1,
        description="Targets to try, each a name as of `evaltrack run -t`, or a table with settings of its own.",
    )
    k: Annotated[list[Annotated[int, Field(ge=1, le=MAX_K, strict=True)]], BeforeValidator(_as_list)] = Field(
        [5], min_length=1, description="Number of retrieved sources to score."
    )
    seeds: list[StrictInt] = Field(
        [], description="Each configuration is evaluated once with each; `{seed}` in a target or an option is the seed."
    )
    settings: dict[str, Setting] = Field({}, description="Settings of `evaltrack run`; a list names values to try.")
    rank_by: str = Field("", description="Metric that decides the order.  [default: judge score, else recall]")
    reference: Literal["best", "first"] = Field("best", description="What the others are compared with.")


def read_sweep(source: str | os.PathLike[str] | Mapping[str, Any]) -> SweepFile:
    """The sweep in a YAML, JSON or TOML file, or in a mapping of the same fields.

    Raises:
        UsageError: it cannot be read, or fields are wrong; all of them are listed.
    """
    place = "sweep" if isinstance(source, Mapping) else os.fspath(source)
    raw = source if isinstance(source, Mapping) else _content(Path(place))
    if not isinstance(raw, Mapping):
        raise UsageError(f"{place}: holds no table; write `golden: FILE` and `targets:`, see `evaltrack sweep --help`")
    values = {name: os.fspath(each) if isinstance(each, os.PathLike) else each for name, each in raw.items()}
    try:
        sweep, problems = SweepFile.model_validate(values), []
    except ValidationError as error:
        problems = list(dict.fromkeys(_words(each) for each in error.errors(include_url=False)))
        sweep = SweepFile(golden="none")
    problems += _of_settings(raw)
    if problems:
        raise GoldenError([f"{place}: {problem}" for problem in problems])
    return sweep


def _content(path: Path) -> Any:
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: is no file of a sweep; its name ends in {', '.join(SUFFIXES)}")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path}: is larger than {MAX_BYTES:,} bytes; a sweep takes some lines")
        return _toml(path) if path.suffix == ".toml" else read_yaml(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None


def _toml(path: Path) -> Any:
    import tomllib

    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except ValueError as error:
        raise UsageError(f"{path}: is not TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: is not TOML that can be read: it is nested too deep") from None


def _words(error: Any) -> str:
    """One problem of a field, with its cure."""
    place = ".".join(str(each) for each in error["loc"] if isinstance(each, int) or each in _FIELDS)
    where, name = f"`{shown_text(place or str(error['loc'][0])[:80])}`", str(error["loc"][-1])
    if error["type"] == "missing":
        return f"{where} is missing; write it"
    if error["type"] == "extra_forbidden":
        known = SweepFile.model_fields if len(error["loc"]) == 1 else SweepTarget.model_fields
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
        return f"there is no field `{shown_text(name[:80])}`; {hint}"
    shown = shown_text(json.dumps(error["input"], default=str)[:80])
    return f"{where} is {shown}; {_CURES.get(str(error['loc'][0]), 'write a text')}"


_FIELDS = {*SweepFile.model_fields, *SweepTarget.model_fields}
_CURES = {
    "targets": "write targets as of `evaltrack run -t`, or tables of `target`, `name` and `settings`",
    "k": f"write a whole number from 1 to {MAX_K:,}, or a list of such",
    "seeds": "write a list of whole numbers",
    "settings": "write a table of settings, each with a value or a list of values",
    "reference": "write best or first",
    "golden": "write the path of a golden set",
}


def _of_settings(raw: Mapping[str, Any]) -> list[str]:
    """What is wrong with single settings and their values, of the whole sweep and of each target."""
    problems = list(_of_table("settings", raw.get("settings")))
    targets = raw.get("targets")
    for place, target in enumerate(targets if isinstance(targets, list) else [targets]):
        if isinstance(target, Mapping):
            own = target.get("settings")
            problems += _of_table(f"targets.{place}.settings", own)
            whole = [name for name in OF_ALL if isinstance(own, Mapping) and name in own]
            problems += [f"`targets.{place}.settings.{name}`: it is of the whole sweep; move it up" for name in whole]
    return problems


def _of_table(where: str, settings: Any) -> Iterator[str]:
    for name, value in settings.items() if isinstance(settings, Mapping) else ():
        place = f"`{where}.{shown_text(str(name)[:80])}`"
        if name in ELSEWHERE:
            yield f"{place}: {ELSEWHERE[name]}"
        elif name not in EvaluationConfig.model_fields:
            near = difflib.get_close_matches(str(name), EvaluationConfig.model_fields, n=1)
            hint = f"did you mean `{near[0]}`?" if near else "`evaltrack run --help` lists them"
            yield f"{place}: there is no such setting; {hint}"
        elif name == "target_options":
            if not isinstance(value, Mapping):
                yield f"{place}: write a table of the target's own settings"
        else:
            yield from _of_values(place, name, value)


def _of_values(place: str, name: str, value: Any) -> Iterator[str]:
    """What is wrong with each value of a setting."""
    if value == [] and name not in OF_ALL:
        yield f"{place}: the list is empty; name a value, or leave it out"
    for each in values_of(name, value):
        if name.endswith(("price_in", "price_out")) and isinstance(each, int | float):
            continue  # they come in pairs, which are looked at together
        try:
            EvaluationConfig.of(**{name: tuple(each) if isinstance(each, list) else each})
        except (UsageError, TypeError) as error:
            yield f"{place}: {shown_text(str(error))}"


def values_of(name: str, value: Any) -> list[Any]:
    """The values to try of a setting: those of a list, or the one."""
    return value if isinstance(value, list) and name not in OF_ALL else [value]
