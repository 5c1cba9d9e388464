"""Checks the file of a sweep and lists its configurations: all combinations of target, k and settings.

A list names the values to try; each configuration has one value of each list. For a setting that is a list itself, such
as the judges of a panel, write a list in the list.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from evaltrack import __version__
from evaltrack.errors import BadLinesError, GoldenError, UsageError
from evaltrack.evaluation.plan import planned, target_name
from evaltrack.evaluation.ranking import check_metric
from evaltrack.evaluation.settings import AUTO_TARGET, EvaluationConfig
from evaltrack.evaluation.settings_sources import parsed_toml
from evaltrack.golden.importing.file_types import read_yaml
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.judges import asks_judge, judge_names
from evaltrack.metrics.catalogue import metric_table
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import OwnScore
from evaltrack.records.base import Text
from evaltrack.records.config import did_you_mean
from evaltrack.records.json_text import finding_words
from evaltrack.records.run import MAX_K

SUFFIXES = (".yaml", ".yml", ".json", ".toml")
MAX_CONFIGURATIONS = 200
DIGEST_LENGTH = 16

OF_ALL = ("filter", "sample", "sample_seed", "redact", "scores", "experiment")
"""Settings of the whole sweep, whose lists are not values to try."""

ELSEWHERE = ("k", "run_name", "evaluation_json", "only_failed")
"""Settings of `evaltrack run` that are fields of the file, or are for a single run."""


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _targets(value: Any) -> Any:
    """Return each target as a table."""
    return [{"target": each} if isinstance(each, str) or callable(each) else each for each in _as_list(value)]


class SweepTarget(BaseModel):
    """A target with its own name, and settings for it alone, such as its prices."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    target: Any = Field(json_schema_extra={"type": "string"})
    name: Text = Field("", max_length=200, description="Name in tables.  [default: the target's name]")
    settings: dict[str, Any] = Field({}, description="Settings for this target only; a list names values to try.")

    @field_validator("target")
    @classmethod
    def _is_name_or_function(cls, value: Any) -> Any:
        if isinstance(value, str) or callable(value):
            return value
        raise ValueError("is not a name; write one such as bm25:docs")


class SweepFile(BaseModel):
    """The file of a sweep; its settings are checked separately."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    golden: str = Field(min_length=1, description="The golden set, .jsonl or .json.")
    name: Text = Field("", max_length=200, description="Name of the parent run.  [default: golden set and sweep]")
    targets: Annotated[list[SweepTarget], BeforeValidator(_targets)] = Field(
        [SweepTarget(target=AUTO_TARGET)],
        min_length=1,
        description="Targets to try, each a name as for `evaltrack run -t`, or a table with its own settings.",
    )
    k: Annotated[list[Annotated[int, Field(ge=1, le=MAX_K, strict=True)]], BeforeValidator(_as_list)] = Field(
        [5], min_length=1, description="Number of retrieved sources to score."
    )
    settings: dict[str, Any] = Field({}, description="Settings of `evaltrack run`; a list names values to try.")
    rank_by: str = Field("", description="Metric that decides the order.  [default: judge score, else recall]")
    reference: Literal["best", "first"] = Field("best", description="Configuration that the others are compared with.")


def read_sweep(source: str | os.PathLike[str] | Mapping[str, Any]) -> SweepFile:
    """Return the sweep in a YAML, JSON or TOML file, or in a mapping with the same fields.

    Raises:
        UsageError: it cannot be read, or fields are wrong; all of them are listed.
    """
    place = "sweep" if isinstance(source, Mapping) else os.fspath(source)
    raw = source if isinstance(source, Mapping) else _content(Path(place))
    if not isinstance(raw, Mapping):
        raise UsageError(f"{place}: is not a table; write `golden: FILE` and `targets:`, see `evaltrack sweep --help`")
    values = {name: os.fspath(each) if isinstance(each, os.PathLike) else each for name, each in raw.items()}
    problems = []
    try:
        sweep = SweepFile.model_validate(values)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            names = SweepFile.model_fields if len(each["loc"]) == 1 else SweepTarget.model_fields
            problems.append(shown_text(finding_words(each, tuple(names))))
    problems += _of_table("settings", raw.get("settings"), ELSEWHERE)
    for number, target in enumerate(_as_list(raw.get("targets"))):
        if isinstance(target, Mapping):
            problems += _of_table(f"targets.{number}.settings", target.get("settings"), ELSEWHERE + OF_ALL)
    if problems:
        raise GoldenError([f"{place}: {problem}" for problem in problems])
    return sweep


def _content(path: Path) -> Any:
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: is not a sweep file; its name must end in {', '.join(SUFFIXES)}")
    try:
        return parsed_toml(path, path.read_bytes()) if path.suffix == ".toml" else read_yaml(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None


def _of_table(where: str, settings: Any, refused: Sequence[str]) -> Iterator[str]:
    """Yield the problems with a table of settings; some names are refused."""
    for name, value in settings.items() if isinstance(settings, Mapping) else ():
        place = f"`{where}.{shown_text(str(name)[:80])}`"
        if name not in EvaluationConfig.model_fields:
            yield f"{place}: there is no setting `{name}`; {did_you_mean(str(name), EvaluationConfig.model_fields)}"
        elif name in refused:
            yield f"{place}: cannot be set here; write it at the top level of the file, or leave it out"
        elif name == "target_options" and not isinstance(value, Mapping):
            yield f"{place}: write a table of the target's own settings"
        elif value == [] and name not in OF_ALL:
            yield f"{place}: the list is empty; name a value, or leave it out"


def _values(name: str, value: Any) -> list[Any]:
    """Return the values to try of a setting: those of a list, or the only one."""
    return value if isinstance(value, list) and name not in OF_ALL else [value]


@dataclass(frozen=True)
class Configuration:
    """One evaluation of a sweep. `axes` holds its values of the settings that vary, and its name shows them."""

    target: str | Callable[..., Any] | None
    settings: EvaluationConfig
    axes: Mapping[str, str]
    name: str

    @property
    def target_name(self) -> str:
        """The target as text; `auto` is the default one of the golden set."""
        return AUTO_TARGET if self.target is None else target_name(self.target)

    def digest(self, golden_digest: str) -> str:
        """Return a digest that identifies a run of this configuration: golden set, target, judges, settings."""
        judges = judge_names(self.settings.judge)
        parts = [golden_digest, self.target_name, self.settings.shaping(), judges, __version__]
        text = json.dumps(parts, sort_keys=True, default=str)
        return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


@dataclass(frozen=True)
class SweepPlan:
    """The plan of a sweep: its configurations, in the order of its file, over the questions of one golden set."""

    file: SweepFile
    golden: GoldenSet
    configurations: tuple[Configuration, ...]
    store_uri: str | None = None

    @property
    def name(self) -> str:
        """The name of the parent run."""
        return self.file.name or f"{self.golden.name} sweep"

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """The digest of each configuration."""
        return tuple(each.digest(self.golden.digest) for each in self.configurations)

    def target_calls(self, configuration: Configuration) -> int:
        """Return the number of target calls of a configuration."""
        return len(self.golden) * configuration.settings.trials

    def judge_calls(self, configuration: Configuration) -> int:
        """Return the maximum number of judge calls; cached verdicts, and responses without an answer, need none."""
        settings = configuration.settings
        asked = len(judge_names(settings.judge)) + sum(map(asks_judge, settings.scores))
        return self.target_calls(configuration) * asked


def plan_sweep(file: SweepFile, place: str = "sweep", store_uri: str | None = None) -> SweepPlan:
    """Return the plan of a sweep; each configuration is checked as by `evaltrack run`.

    Each target and each judge is opened once.

    Args:
        file: The sweep.
        place: The name of the sweep in errors.
        store_uri: The MLflow store if it is not the default.

    Raises:
        UsageError: the golden set, a target, a judge or a setting is wrong; all of them are listed.
    """
    problems: list[str] = []
    configurations = tuple(_configurations(file, place, problems))
    names = Counter(each.name for each in configurations)
    if repeated := [name for name, times in names.items() if times > 1]:
        words = f"{len(repeated)} configurations appear twice, such as `{repeated[0]}`"
        problems.append(f"{place}: {words}; name each value once, and give targets that differ a `name`")
    settings = configurations[0].settings if configurations else EvaluationConfig()
    try:
        golden = open_golden(file.golden, settings.selection)
        problems += _check_opened(file, configurations, store_uri)
    except UsageError as error:
        problems += _listed(error)
    if problems:
        raise GoldenError(list(dict.fromkeys(problems)))
    return SweepPlan(file, golden, configurations, store_uri)


def _listed(error: UsageError) -> Sequence[str]:
    return error.problems if isinstance(error, BadLinesError) else [str(error)]


def _configurations(file: SweepFile, place: str, problems: list[str]) -> Iterator[Configuration]:
    """Yield every valid configuration; problems with the others are appended to `problems`."""
    combinations = [each for target in file.targets for each in _combinations(file, target)]
    if len(combinations) > MAX_CONFIGURATIONS:
        words = f"{len(combinations):,} configurations; a sweep has {MAX_CONFIGURATIONS:,} at most"
        problems.append(f"{place}: its lists make {words}")
        return
    names = dict.fromkeys(name for _, axes in combinations for name in axes)
    varying = [name for name in names if len({repr(axes.get(name)) for _, axes in combinations}) > 1]
    for target, axes in combinations:
        try:
            settings = EvaluationConfig.of(**_settings(axes))
        except UsageError as error:
            problems += [f"{place}: {shown_text(each)}" for each in str(error).split("\n")]
            continue
        shown = {name: shown_text(_text(axes[name])) for name in varying if name in axes}
        name = " ".join(value if key == "target" else f"{key}={value}" for key, value in shown.items())
        yield Configuration(None if target.target in (AUTO_TARGET, "") else target.target, settings, shown, name)


def _combinations(file: SweepFile, target: SweepTarget) -> Iterator[tuple[SweepTarget, dict[str, Any]]]:
    """Yield the combinations of values for one target: k, settings, options of the target."""
    settings = {**file.settings, **target.settings}
    tables: list[Any] = [each.get("target_options") or {} for each in (file.settings, target.settings)]
    options = tables[0] | tables[1]
    axes: dict[str, list[Any]] = {"target": [target.name or target_name(target.target)], "k": list(file.k)}
    axes |= {name: _values(name, value) for name, value in settings.items() if name != "target_options"}
    axes |= {f"target.{name}": value if isinstance(value, list) else [value] for name, value in options.items()}
    for values in product(*axes.values()):
        yield target, dict(zip(axes, values, strict=True))


def _settings(axes: Mapping[str, Any]) -> dict[str, Any]:
    options = {name.removeprefix("target."): _text(value) for name, value in axes.items() if name.startswith("target.")}
    own = {name: value for name, value in axes.items() if name in EvaluationConfig.model_fields and name != "target"}
    lists = {name: tuple(value) for name, value in own.items() if isinstance(value, list)}
    return {**own, **lists, "target_options": options}


def _text(value: Any) -> str:
    """Return a value of an axis as the command line has it."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_opened(file: SweepFile, configurations: Iterable[Configuration], store_uri: str | None) -> Iterator[str]:
    """Yield problems with targets, judges, scores and the ranking metric; each target and judge is opened once."""
    tried, declared = set[str](), tuple[OwnScore, ...]()
    for each in configurations:
        settings = each.settings
        parts = {str((each.target_name, settings.options_of_target)), str((settings.judge, settings.rubric))}
        if parts <= tried:
            continue
        tried |= parts
        try:
            with planned(file.golden, settings, each.target, settings.selection, store_uri=store_uri) as plan:
                declared += plan.signature.scores
        except UsageError as error:
            yield from _listed(error)
    check_metric(file.rank_by, metric_table(declared))
