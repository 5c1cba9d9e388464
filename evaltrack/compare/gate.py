"""Defines the gate's rules (allowed drops of metrics, allowed broken questions, ...) and the settings of `compare`.

`ComparisonConfig` defines the settings of `evaltrack compare` and of `compare_runs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator

from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import DEFAULT_DROPS, LATENCIES, MetricTable
from evaltrack.metrics.metric import Score, Threshold
from evaltrack.records.config import Config, OptionalText, Texts, setting

MIN_COVERAGE = 0.9
"""Default share of the questions that must be left to compare after edits."""

GateKind = Literal["auto", "seed", "evidence"]


@dataclass(frozen=True)
class Gate:
    """The rules. `drops` are for the whole set, `domain_drops` for one domain; `explicit` names those the user wrote.

    `min_coverage` is the share of the questions that must be measured again. With None no question may be lost, and few
    may be edited or removed (`MIN_COVERAGE`). `allow_partial`: runs of a part of the golden set may pass.

    `kind` says when a loss counts:

    - ``auto``: a broken question counts unless it is flaky, and a mean unless answers vary and chance explains it.
    - ``seed``: always; nothing is rerun.
    - ``evidence``: if an exact test shows it; nothing is rerun.
    """

    drops: Mapping[str, Threshold] = field(default_factory=lambda: dict(DEFAULT_DROPS))
    domain_drops: Mapping[str, Mapping[str, Threshold]] = field(default_factory=dict)
    allow_flips: int = 0
    min_coverage: float | None = None
    allow_partial: bool = False
    kind: GateKind = "auto"
    explicit: frozenset[str] = frozenset()

    @property
    def needed(self) -> float:
        """The share of the questions that must be measured again."""
        return MIN_COVERAGE if self.min_coverage is None else self.min_coverage


def parse_drops(
    texts: Iterable[str], table: MetricTable | None = None
) -> tuple[dict[str, Threshold], dict[str, dict[str, Threshold]], frozenset[str]]:
    """Parse thresholds for the whole set and by domain: ``mrr=10%``, ``judge_score=0.05``, ``travel:recall_at_k=2%``.

    If lower is better, the threshold is the allowed rise: ``latency_p95=20%``. The thresholds are added to
    `DEFAULT_DROPS`; ``mrr=off`` removes a rule. The metrics are those of a `table`, by default the built-in ones. The
    third value names the metrics that have their own rule for the whole set.

    Raises:
        UsageError: a text is malformed, its metric is unknown or has no rule, or its number is out of range.
    """
    by_metric = (table or MetricTable()).by_metric | {score.metric: score for score in LATENCIES}
    overall, domains, explicit = dict(DEFAULT_DROPS), dict[str, dict[str, Threshold]](), set[str]()
    for text in texts:
        rule = f"`max_drop={text}`"
        match = re.fullmatch(r"(?:(.+):)?(\w+)=(off|-?\d*\.?\d+(?:[eE][+-]?\d+)?)(%?)", text.strip())
        if match is None:
            raise UsageError(f"{rule}: write METRIC=5%, METRIC=0.05, METRIC=off or DOMAIN:METRIC=5%")
        domain, name, amount, percent = match.groups()
        score = by_metric.get(name)
        if score is None or not score.compared:
            known = sorted(each.metric for each in by_metric.values() if each.compared and each.gates)
            raise UsageError(f"{rule}: no metric `{name}`; known: {', '.join(known)}")
        if not score.gates:
            raise UsageError(f"{rule}: `{name}` is declared with gates=False: it only informs")
        place = domains.setdefault(domain, {}) if domain else overall
        if amount == "off":
            place.pop(name, None)
        else:
            place[name] = _threshold(rule, score, amount, relative=bool(percent))
            explicit |= set() if domain else {name}
    return overall, domains, frozenset(explicit & overall.keys())


def _threshold(rule: str, score: Score, amount: str, *, relative: bool) -> Threshold:
    """Return the threshold of a rule.

    Raises:
        UsageError: it is no number from 0, or so large that no drop can exceed it: `mrr=5` instead of `mrr=5%`.
    """
    value = float(amount) / (100 if relative else 1)
    if not 0 <= value < float("inf"):
        raise UsageError(f"{rule}: `{amount}` is not a number from 0")
    may_fall_below_0 = score.own and score.span is None
    most = (1.0 if score.higher_is_better and not may_fall_below_0 else None) if relative else score.span
    if most is not None and value > most:
        cure = f"write {score.metric}={amount}%, or an amount up to {most:g}"
        raise UsageError(f"{rule}: no drop can exceed it; {'write a share up to 100%' if relative else cure}")
    return Threshold(value, relative)


# Settings


Parts = Annotated[Texts, AfterValidator(lambda parts: tuple(sorted(parts)))]

_gate = partial(setting, group="The gate")


class ComparisonConfig(Config):
    """The settings of one comparison. `of` validates them with errors for people."""

    command = "compare"

    golden: OptionalText = setting(
        "", "Golden set whose newest run to compare, if no run is named.", group="What is compared"
    )
    max_drop: Texts = _gate(
        (),
        "How far a metric may drop (or rise, if lower is better): METRIC=5% of the baseline's value, METRIC=0.05 in"
        " absolute terms, METRIC=off, DOMAIN:METRIC=5%.",
        option="--max-drop",
    )
    allow_flips: int = _gate(0, "Questions that may go from pass to fail.", option="--allow-flips", ge=0)
    max_reruns: int | None = _gate(
        None,
        "Maximum number of target calls for reruns; 0 turns reruns off.  [default: as many calls as the run made]",
        option="--max-reruns",
        ge=0,
    )
    min_coverage: float | None = _gate(
        None,
        "Smallest share of questions that both runs must have measured.  [default: no question may be lost; at most"
        " 10 % may be edited or removed]",
        option="--min-coverage",
        ge=0,
        le=1,
    )
    allow_partial: bool = _gate(
        False, "Accept runs of a part of the golden set (--filter, --sample, interrupted).", option="--allow-partial"
    )
    gate: GateKind = _gate(
        "auto",
        "auto: each question that broke counts, unless reruns show that it is flaky; seed: each counts;"
        " nothing is rerun; evidence: a loss counts only if an exact test finds it significant; nothing is rerun.",
        option="--gate",
    )
    ignore: Parts = _gate(
        (),
        "Setting that may differ between the runs, such as judge; metrics that depend on it are not compared.",
        option="--ignore",
    )

    def rules(self, table: MetricTable) -> Gate:
        """Return the rules of a regression for the metrics of a table.

        Raises:
            UsageError: a tolerated drop cannot be read.
        """
        drops, domain_drops, explicit = parse_drops(self.max_drop, table)
        return Gate(drops, domain_drops, self.allow_flips, self.min_coverage, self.allow_partial, self.gate, explicit)
