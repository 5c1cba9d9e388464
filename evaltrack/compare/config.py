"""The settings of a comparison, each written once: those of `evaltrack compare` and of `compare_runs`."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from pydantic import AfterValidator

from evaltrack.compare.gate import Gate, GateKind, parse_drops
from evaltrack.metrics.catalogue import MetricTable, metric_table
from evaltrack.records import OwnScore
from evaltrack.records.config import Config, OptionalText, Texts, setting
from evaltrack.records.verdict import NAME_PATTERN

Parts = Annotated[Texts, AfterValidator(lambda parts: tuple(sorted(parts)))]

_gate = partial(setting, group="The gate")


class ComparisonConfig(Config):
    """The settings of one comparison; `of` makes one with errors for people."""

    command = "compare"

    golden: OptionalText = setting(
        "", "Golden set whose newest run to compare, if no run is named.", group="What is compared"
    )
    max_drop: Texts = _gate(
        (),
        "Allowed drop of a metric (rise, where lower is better): METRIC=5%, METRIC=0.05, METRIC=off, DOMAIN:METRIC=5%.",
        option="--max-drop",
    )
    allow_flips: int = _gate(0, "Questions that may go from pass to fail.", option="--allow-flips", ge=0)
    max_reruns: int | None = _gate(
        None,
        "Most calls to rerun questions that broke; 0: rerun nothing.  [default: as many as the run made]",
        option="--max-reruns",
        ge=0,
    )
    min_coverage: float | None = _gate(
        None,
        "Share of questions that must be compared.  [default: none may be lost, a tenth edited or removed]",
        option="--min-coverage",
        ge=0,
        le=1,
    )
    allow_partial: bool = _gate(False, "Let runs of a part of the golden set pass.", option="--allow-partial")
    gate: GateKind = _gate(
        "auto",
        "auto: each question that broke counts, unless reruns show that it is flaky; seed: each counts, without"
        " reruns; evidence: an exact test must show the loss, without reruns.",
        option="--gate",
    )
    ignore: Parts = _gate((), "Part that may differ, such as judge; affected metrics are left out.", option="--ignore")
    require: str = _gate(
        "",
        "Show criteria for both runs (minimum, target, good, functional, or bounds); does not change the verdict.",
        option="--require",
    )

    def rules_by_form(self) -> Gate:
        """The rules as they read before the runs are known: any name may be that of a score of one's own.

        Raises:
            UsageError: a tolerated drop cannot be read whatever the runs measured.
        """
        names = {name for rule in self.max_drop for name in re.findall(r"(\w+)=", rule)}
        named = sorted(name for name in names if re.fullmatch(NAME_PATTERN, name))
        return self.rules(metric_table(tuple(OwnScore(name=name, computed_by="", digest="") for name in named)))

    def rules(self, table: MetricTable) -> Gate:
        """What counts as a regression, among the metrics of a table.

        Raises:
            UsageError: a tolerated drop cannot be read.
        """
        drops, domain_drops, explicit = parse_drops(self.max_drop, table)
        return Gate(drops, domain_drops, self.allow_flips, self.min_coverage, self.allow_partial, self.gate, explicit)
