"""The configurations of a sweep: each target with each k, each value of each setting, and each seed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import product
from typing import Any

from evaltrack import __version__
from evaltrack.compare.ranking import check_metric
from evaltrack.errors import GoldenError, UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.opening import open_judges
from evaltrack.evaluation.plan import planned
from evaltrack.evaluation.sweep_file import SweepFile, SweepTarget, values_of
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.judges import judge_names
from evaltrack.judges.own_scores import asks_judge
from evaltrack.metrics.catalogue import metric_table
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import OwnScore

MAX_CONFIGURATIONS = 200
SEED = "{seed}"
"""Stands for the seed in the name of a target and in its options."""

DIGEST_LENGTH = 16


@dataclass(frozen=True)
class Configuration:
    """One evaluation of a sweep. `axes` holds its value of each part that differs between configurations.

    `name` is without the seed: those that differ by it alone are one line of the leaderboard.
    """

    target: str | Callable[..., Any] | None
    settings: EvaluationConfig
    axes: Mapping[str, str]
    name: str
    seed: int | None = None

    @property
    def label(self) -> str:
        """Its name, with its seed."""
        return self.name if self.seed is None else f"{self.name} seed={self.seed}".strip()

    @property
    def target_name(self) -> str:
        """The target as a text; `auto` is the default one of the golden set."""
        if self.target is None or isinstance(self.target, str):
            return self.target or "auto"
        return f"python:{self.target.__module__}:{getattr(self.target, '__qualname__', type(self.target).__name__)}"

    def digest(self, golden_digest: str) -> str:
        """What tells a run of this configuration: golden set, target, judges, seed, and what shapes its rows."""
        judges = judge_names(self.settings.judge)
        parts = [golden_digest, self.target_name, self.settings.shaping(), judges, self.seed, __version__]
        text = json.dumps(parts, sort_keys=True, default=str)
        return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep will do: its configurations, in the order of its file, over the questions of one golden set."""

    file: SweepFile
    golden: GoldenSet
    configurations: tuple[Configuration, ...]
    store_uri: str | None = None

    @property
    def name(self) -> str:
        """Of the parent run."""
        return self.file.name or f"{self.golden.name} sweep"

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """The digest of each configuration."""
        return tuple(each.digest(self.golden.digest) for each in self.configurations)

    @property
    def digest(self) -> str:
        """What tells the same sweep again: its configurations, whatever their order."""
        return sha256("".join(sorted(self.digests)).encode()).hexdigest()[:DIGEST_LENGTH]

    def target_calls(self, configuration: Configuration) -> int:
        """How often a configuration asks its target."""
        return len(self.golden) * configuration.settings.trials

    def judge_calls(self, configuration: Configuration) -> int:
        """How often it asks judges at most; verdicts of the cache, and responses without an answer, take none."""
        settings = configuration.settings
        asked = len(judge_names(settings.judge)) + sum(map(asks_judge, settings.scores))
        return self.target_calls(configuration) * asked


def plan_sweep(file: SweepFile, place: str = "sweep", store_uri: str | None = None) -> SweepPlan:
    """The configurations of a sweep, each of them checked as `evaltrack run` would.

    Each target is opened once, and each judge.

    Args:
        file: The sweep.
        place: What errors name.
        store_uri: The MLflow store, where it is not the usual one.

    Raises:
        UsageError: the golden set, a target, a judge or a setting is wrong; all of them are listed.
    """
    problems: list[str] = []
    configurations = tuple(_configurations(file, place, problems))
    problems += _check_names(configurations, place)
    settings = configurations[0].settings if configurations else EvaluationConfig()
    golden = None
    try:
        golden = open_golden(file.golden, settings.selection)
    except GoldenError as error:
        problems += error.problems
    except UsageError as error:
        problems.append(str(error))
    if golden is not None:
        problems += _check_opened(file, configurations, store_uri)
    if problems or golden is None:
        raise GoldenError(list(dict.fromkeys(problems)))
    return SweepPlan(file, golden, configurations, store_uri)


def _configurations(file: SweepFile, place: str, problems: list[str]) -> Iterator[Configuration]:
    """Every configuration whose settings fit together; what is wrong with the others is added to `problems`."""
    combinations = [each for target in file.targets for each in _combinations(file, target)]
    if len(combinations) > MAX_CONFIGURATIONS:
        words = f"{len(combinations):,} configurations; a sweep has {MAX_CONFIGURATIONS:,} at most"
        problems.append(f"{place}: its lists make {words}")
        return
    varying = _varying([axes for _, axes in combinations])
    for target, axes in combinations:
        try:
            settings = EvaluationConfig.of(**_settings(target, axes))
        except (UsageError, TypeError) as error:
            problems.append(f"{place}: {shown_text(str(error))}")
            continue
        shown = {name: _text(target, name, axes[name]) for name in varying if name in axes}
        named = shown | ({"target": target.name} if target.name and "target" in shown else {})
        name = " ".join(value if key == "target" else f"{key}={value}" for key, value in named.items() if key != "seed")
        yield Configuration(_target(target, axes), settings.with_(run_name=""), shown, name, axes.get("seed"))


def _combinations(file: SweepFile, target: SweepTarget) -> Iterator[tuple[SweepTarget, dict[str, Any]]]:
    """The values of each axis for one target: k, settings, options of the target, seed."""
    settings = {**file.settings, **target.settings}
    options = {**_options(file.settings), **_options(target.settings)}
    axes: dict[str, list[Any]] = {"target": [target.name or target.target], "k": list(file.k)}
    axes |= {name: values_of(name, value) for name, value in settings.items() if name != "target_options"}
    axes |= {f"target.{name}": value if isinstance(value, list) else [value] for name, value in options.items()}
    axes |= {"seed": list(file.seeds)} if file.seeds else {}
    for values in product(*axes.values()):
        yield target, dict(zip(axes, values, strict=True))


def _options(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    options = settings.get("target_options")
    return options if isinstance(options, Mapping) else {}


def _varying(combinations: Sequence[Mapping[str, Any]]) -> list[str]:
    """The axes of which two configurations have another value, or one has none, in the order in which they stand."""
    names = dict.fromkeys(name for axes in combinations for name in axes)
    return [name for name in names if len({repr(axes.get(name)) for axes in combinations}) > 1]


def _settings(target: SweepTarget, axes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of one configuration."""
    options = {
        name.removeprefix("target."): _seeded(_plain(value), axes)
        for name, value in axes.items()
        if name.startswith("target.")
    }
    own = {name: value for name, value in axes.items() if not name.startswith("target") and name != "seed"}
    own = {name: tuple(value) if isinstance(value, list) else value for name, value in own.items()}
    own |= {"target_memory": axes["target_memory"]} if "target_memory" in axes else {}
    if options and callable(target.target):
        names = ", ".join(options)
        raise UsageError(f"target options ({names}) are of targets that are named, not of a function in this process")
    return own | {"target_options": options}


def _target(target: SweepTarget, axes: Mapping[str, Any]) -> str | Callable[..., Any] | None:
    if not isinstance(target.target, str):
        return target.target
    return None if target.target == "auto" else _seeded(target.target, axes)


def _seeded(text: str, axes: Mapping[str, Any]) -> str:
    return text.replace(SEED, str(axes["seed"])) if "seed" in axes else text


def _plain(value: Any) -> str:
    """A value as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(target: SweepTarget, name: str, value: Any) -> str:
    """A value of an axis for people, and for MLflow."""
    if name == "target":
        value = target.name or (target.target if isinstance(target.target, str) else _function_name(target.target))
    return shown_text(",".join(map(_plain, value)) if isinstance(value, list) else _plain(value))


def _function_name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _check_names(configurations: Iterable[Configuration], place: str) -> Iterator[str]:
    """Each configuration stands there once, under a name of its own."""
    labels = Counter(each.label for each in configurations)
    if repeated := [label for label, times in labels.items() if times > 1]:
        words = f"{len(repeated)} configurations stand there twice, such as `{repeated[0]}`"
        yield f"{place}: {words}; name each value once, and give targets that differ a `name`"


def _check_opened(file: SweepFile, configurations: Iterable[Configuration], store_uri: str | None) -> Iterator[str]:
    """What is wrong with targets, judges, scores and what is ranked by; each target and judge is opened once."""
    tried: dict[str, str] = {}
    declared: tuple[OwnScore, ...] = ()
    for each in configurations:
        target = json.dumps([each.target_name, each.settings.options_of_target], sort_keys=True)
        judge = json.dumps([each.settings.judge, each.settings.rubric])
        if target in tried and (judge in tried or tried[target]):
            continue
        tried |= {target: "", judge: ""}
        try:
            selection = each.settings.selection
            with planned(file.golden, each.settings, each.target, selection, store_uri=store_uri) as plan:
                declared = plan.signature.scores
        except UsageError as error:
            tried[target] = str(error)
            yield from error.problems if isinstance(error, GoldenError) else [str(error)]
            yield from _check_judges(each, store_uri)
    try:
        if not any(tried.values()):
            check_metric(file.rank_by, metric_table(declared))
    except UsageError as error:
        yield str(error)


def _check_judges(configuration: Configuration, store_uri: str | None) -> Iterator[str]:
    """What is wrong with judges that were not opened, because the target could not be."""
    settings = configuration.settings
    try:
        for judge in open_judges(judge_names(settings.judge), settings, None, store_uri=store_uri):
            judge.close()
    except UsageError as error:
        yield str(error)
