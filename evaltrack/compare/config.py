"""The settings of a comparison, each written once: those of `evaltrack compare` and of `compare_runs`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Literal, TypedDict

from pydantic import BeforeValidator

from evaltrack.compare.gate import Gate, GateKind, parse_drops
from evaltrack.metrics.catalogue import MetricTable, metric_table
from evaltrack.records import OwnScore
from evaltrack.records.config import Config, OptionalText, Options, Texts, setting
from evaltrack.records.verdict import NAME_PATTERN

MAX_REPEATS = 100
RepeatFlips = int | Literal["auto"]

Drops = Annotated[Texts, BeforeValidator(lambda value: value if isinstance(value, str) else tuple(value))]
Parts = Annotated[Texts, BeforeValidator(lambda value: value if isinstance(value, str) else tuple(sorted(value)))]


class ComparisonConfig(Config):
    """The settings of one comparison; `of` makes one with errors for people.

    `golden`, `target`, `target_options` and `judge` say what is asked again of a run that was evaluated on another
    machine: what is executed never comes from the tracking store. `golden` also names the set whose newest run is
    compared where no candidate is named.
    """

    max_drop: Drops = setting((), "Tolerated drop: METRIC=5%, METRIC=0.05, METRIC=off, DOMAIN:METRIC=5%.")
    max_rise: Drops = setting(
        (), "The same of metrics of which lower is better: latency_p50, latency_p95 (seconds), cost, num_tokens."
    )
    allow_flips: int = setting(0, "Questions that may go from pass to fail.", strict=True, ge=0)
    repeat_flips: RepeatFlips = setting(
        "auto",
        "Ask each question that went from pass to fail up to N more times, to tell what broke from what scatters; auto:"
        " as often as it takes, 30 times at most; 0: not at all.",
    )
    golden: OptionalText = setting(
        "", "Golden set of what is asked again, where the run was evaluated on another machine."
    )
    target: OptionalText = setting(
        "", "Target that is asked again.  [default: the one kept on this machine]", flag="-t"
    )
    target_options: Options = setting({}, "A setting of the target: KEY=VALUE; repeatable.")
    judge: Texts = setting((), "Who judges what is asked again.  [default: as kept on this machine]")
    require_agreement: float | None = setting(
        None,
        "Judge scores block only if the judge's kappa with people (`evaltrack judge agree`, 20 responses or more) is"
        " this or more, at the lower end of its interval too.",
        ge=-1,
        le=1,
    )
    min_coverage: float | None = setting(
        None,
        "Share of questions that must be compared.  [default: none may be lost, a tenth edited or removed]",
        ge=0,
        le=1,
    )
    gate: GateKind = setting(
        "auto",
        "auto: rules, and evidence where the target's answers scatter; seed: rules alone; evidence: a loss must be"
        " shown by exact tests; significant: shown, whatever its size.",
    )
    ignore: Parts = setting((), "Part that may differ, e.g. judge; metrics it affects are left out.")
    require: str = setting(
        "", "Show criteria for both runs: minimum, target, good, functional, or bounds; informs only."
    )

    def rules_by_form(self) -> Gate:
        """The rules as they read before the runs are known: any name may be that of a score of one's own.

        Raises:
            UsageError: a tolerated drop cannot be read whatever the runs measured.
        """
        names = {  # a name under both is refused when the runs are known
            name: rules is self.max_drop
            for rules in (self.max_drop, self.max_rise)
            for rule in rules
            for name in re.findall(r"(\w+)=", rule)
            if re.fullmatch(NAME_PATTERN, name)
        }
        own = [OwnScore(name=n, computed_by="", digest="", higher_is_better=up) for n, up in sorted(names.items())]
        return self.rules(metric_table(tuple(own)))

    def rules(self, table: MetricTable) -> Gate:
        """What counts as a regression, among the metrics of a table.

        Raises:
            UsageError: a tolerated drop cannot be read.
        """
        drops, domain_drops, explicit = parse_drops(self.max_drop, table.metrics, table, self.max_rise)
        return Gate(drops, domain_drops, self.allow_flips, self.min_coverage, self.gate, explicit)


class ComparisonOptions(TypedDict, total=False):
    """The settings as keyword arguments; `ComparisonConfig` says what each of them is."""

    max_drop: Iterable[str]
    max_rise: Iterable[str]
    allow_flips: int
    repeat_flips: RepeatFlips
    golden: str | os.PathLike[str] | None
    target: str | None
    target_options: Mapping[str, str] | None
    judge: str | Sequence[str]
    require_agreement: float | None
    min_coverage: float | None
    gate: GateKind
    ignore: Collection[str]
    require: str
