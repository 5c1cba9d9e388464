"""The newest runs of several golden sets, each compared with the baseline of its set."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from evaltrack.api.choose_runs import choose_runs
from evaltrack.api.compare_runs import compare_runs
from evaltrack.compare.comparison import ComparedSet, SetComparisons
from evaltrack.compare.gate import ComparisonConfig
from evaltrack.errors import GoldenError, InconclusiveError, UsageError, listed
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.golden.reader import golden_name, open_golden
from evaltrack.tracking.store import Store, connect_to_read

if TYPE_CHECKING:
    from evaltrack.options import ComparisonOptions


def compare_sets(
    golden_sets: Sequence[str | os.PathLike[str]],
    *,
    experiment: str | None = None,
    log: bool = True,
    tracking_uri: str | None = None,
    say: Callable[[str], object] = lambda _: None,
    ui_url: str | None = None,
    **settings: Unpack[ComparisonOptions],
) -> SetComparisons:
    """Compare the newest run of each golden set with the baseline of that set, question by question.

    A set that cannot be compared, because its newest run failed, is the baseline itself or measured something else, is
    one of which nothing could be told; the others are compared all the same. A rule for a domain is applied to the sets
    that have it.

    Args:
        golden_sets: Golden sets, by their files or names, each once.
        experiment: MLflow experiment to look in; None follows MLflow's own settings.
        log: Whether each comparison is recorded on its candidate's run.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        say: Receives what takes long: which questions are asked again.
        ui_url: Where MLflow's UI is, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.
        **settings: As for `compare_runs`, but for `golden`.

    Raises:
        UsageError: an option is wrong, or a set has no run or no baseline; nothing was compared.
        TrackingError: the store is out of reach.
    """
    paths, config = [os.fspath(each) for each in golden_sets], settings_of(ComparisonConfig, settings)
    _check_names(paths, config)
    store = connect_to_read(tracking_uri, ui_url)
    problems = _problems(store, paths, experiment)
    domains = {path: _domains(path) for path in paths}
    _check_rules(config, domains)
    sets = []
    for path in paths:
        problem, made = problems.get(path, ""), None
        if not problem:
            drops = _rules_for(config.max_drop, domains[path])
            own: ComparisonOptions = {**settings, "golden": path, "max_drop": drops}
            try:
                made = compare_runs(
                    experiment=experiment, log=log, tracking_uri=tracking_uri, say=say, ui_url=ui_url, **own
                )
            except InconclusiveError as error:
                problem = str(error)
        sets.append(ComparedSet(golden_name(path), made, problem))
    return SetComparisons(tuple(sets))


def _check_names(paths: Sequence[str], config: ComparisonConfig) -> None:
    """Each set is named once, and in one way."""
    if not paths:
        raise UsageError("no golden set was named; name at least one")
    if config.golden:
        raise UsageError(f"`golden={config.golden}`: the golden sets are named already; leave it out")
    names = [golden_name(path) for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"golden set `{name}` is named {names.count(name)} times; name it once")


def _problems(store: Store, paths: Sequence[str], experiment: str | None) -> dict[str, str]:
    """Why sets cannot be compared, by path.

    Raises:
        UsageError: some have no run or no baseline; all of them are listed.
    """
    wrong, inconclusive = [], {}
    for path in paths:
        try:
            choose_runs(store, None, None, experiment, baseline_is_file=False, golden=golden_name(path))
        except UsageError as error:
            wrong.append(f"{path}: {error}")
        except InconclusiveError as error:
            inconclusive[path] = str(error)
    if wrong:
        raise UsageError(listed(wrong))
    return inconclusive


def _domains(path: str) -> frozenset[str] | None:
    """The domains of a golden set; None where its file is not here, or cannot be read."""
    try:
        return frozenset(open_golden(path).stats.by["domain"]) if Path(path).is_file() else None
    except GoldenError:
        return None


def _check_rules(config: ComparisonConfig, domains: dict[str, frozenset[str] | None]) -> None:
    """Refuse a rule for a domain that none of the sets has."""
    there = domains.values()
    for domain in config.rules_by_form().domain_drops:
        if all(each is not None and domain not in each for each in there):
            raise UsageError(f"`max_drop=`: no golden set has a question of domain `{domain}`")


def _rules_for(rules: Sequence[str], domains: frozenset[str] | None) -> list[str]:
    """The rules without those for domains of other sets; all of them where its domains are not known."""
    split = [(rule, rule.strip().rpartition(":")[0]) for rule in rules]
    return [rule for rule, domain in split if not domain or domains is None or domain in domains]
