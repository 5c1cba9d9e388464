"""Candidate against baseline, question by question, with causes (SPEC section 8). Prints nothing, reads no store.

Both sides come as columns (a data frame of the light ones) and a way to get whole rows by id, so that a million
questions are paired in memory while only the few that changed are read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaltrack import statistics
from evaltrack.compare.aims import aims_of
from evaltrack.compare.changes import Changes
from evaltrack.compare.comparison import Change, Comparison, GroupDelta, MetricDelta, Repeat, Verdict
from evaltrack.compare.deltas import METRICS, Measure
from evaltrack.compare.gate import ABOUT_DECLINING, MIN_COVERAGE, Gate
from evaltrack.compare.pairing import NotComparableError, Paired, Side
from evaltrack.criteria import Criterion, check_criteria
from evaltrack.errors import UsageError
from evaltrack.reasoned import DIMENSIONS
from evaltrack.records import Signature

_REASONED = {"reasoning_score", "hypotheses", "shifts", "coupling_violation_rate", *DIMENSIONS}
_JUDGED = {"judge_score", "accuracy", "completeness", "relevance", "judge_spread", "combined_score", "pass_rate"}
_JUDGED |= _REASONED
_RETRIEVED = {"recall_at_k", "precision_at_k", "mrr", "hit_rate", "ndcg_at_k", "combined_score", "pass_rate"}
AFFECTED: dict[str, set[str]] = {
    "k": _RETRIEVED,
    "judge": _JUDGED | {"negative_pass_rate"},
    "judge_prompt": _JUDGED | {"negative_pass_rate"},
    "weights": {"combined_score", "reasoning_score"},
    "rubric": set(METRICS),
    "pass_threshold": {"pass_rate"},
    "metrics_version": set(METRICS),
    "golden": set(METRICS),
}
"""Which metrics a differing part of the signature makes incomparable."""

Again = Callable[[Sequence[str]], Mapping[str, Repeat]]


@dataclass(frozen=True)
class JudgeKnown:
    """What is known besides the rows: the judge's noise by metric, whether it is trusted, what was accepted and why."""

    noise: Mapping[str, float] = field(default_factory=dict)
    trusted: bool = True
    accepted: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def applied(self, flip: Change) -> Change:
        """The flip, with what is known of it."""
        return replace(flip, accepted=self.accepted.get(flip.id), informs=flip.by_judge and not self.trusted)


def differing(baseline: Signature, candidate: Signature) -> dict[str, tuple[Any, Any]]:
    """The parts of the signatures that differ and should not; the target may, and edited questions are listed."""
    return {
        part: (getattr(baseline, part), getattr(candidate, part))
        for part in AFFECTED
        if getattr(baseline, part) != getattr(candidate, part)
    }


def compare(
    baseline: Side,
    candidate: Side,
    gate: Gate | None = None,
    *,
    ignore: Collection[str] = (),
    criteria: tuple[Criterion, ...] = (),
    again: Again | None = None,
    known: JudgeKnown | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare two runs.

    Args:
        baseline: What was.
        candidate: What is.
        gate: The rules; None takes the defaults of seed 004.
        ignore: Parts of the signature that may differ; the metrics they affect are left out.
        criteria: Success criteria to hold both sides against.
        again: Asks the questions with these ids again; those that pass every time then count as no regression.
        known: What is known of the judge, and which questions were accepted.
        resamples: Bootstrap resamples for each interval.
        seed: Of the bootstrap.

    Raises:
        NotComparableError: parts of the signatures differ that were not ignored, or no question is common.
        UsageError: `ignore` names no part, or a domain of the gate is in neither run.
    """
    known = known or JudgeKnown()
    gate = replace(gate or Gate(), noise=known.noise)
    gate = gate if known.trusted else gate.without(_JUDGED | {"negative_pass_rate"})
    left_out = metrics_left_out(baseline.info.signature, candidate.info.signature, ignore)
    paired = Paired(baseline, candidate)
    measure = Measure(gate, left_out, candidate.info.signature.k, resamples, seed)
    metrics = tuple(replace(m, noise=known.noise.get(m.name)) for m in measure.deltas(paired.frame, gate.drops))
    groups = tuple(measure.groups(paired.frame))
    changes = Changes(paired, candidate.info.signature, left_out, known.noise)
    changes.flips = tuple(known.applied(flip) for flip in _repeated(changes.flips, again))
    metrics = tuple(_without_gone(metrics, changes, measure, paired, gate))
    p_value = statistics.mcnemar_exact(changes.counts["broke"], changes.counts["fixed"])
    verdict, reasons = _verdict(gate, metrics, groups, changes, p_value, paired)
    sides = ({m.name: m.baseline for m in metrics}, {m.name: m.candidate for m in metrics})
    checked = tuple(zip(*(check_criteria(criteria, values) for values in sides), strict=True))
    counted = Counter(change.cause.kind for change in (*changes.flips, *changes.lost, *changes.drops))
    return Comparison(
        baseline=baseline.info,
        candidate=candidate.info,
        verdict=verdict,
        reasons=reasons,
        metrics=metrics,
        groups=groups,
        flips=changes.flips,
        fixes=changes.fixes,
        drops=changes.drops,
        lost=changes.lost,
        num_common=len(paired.frame),
        mcnemar_p=p_value,
        added=paired.added,
        removed=paired.removed,
        edited=paired.edited,
        ignored=tuple(ignore),
        left_out=tuple(sorted(left_out)),
        causes=dict(counted.most_common()),
        criteria=checked,
        notes=known.notes,
        unchanged=changes.unchanged,
        newly=changes.newly,
        gains=changes.gains,
        others=changes.others,
        same=changes.same,
        fates=changes.counts,
        errors=changes.errors,
        aims=tuple(aims_of(metrics)) if candidate.info.signature.rubric == "reasoning" else (),
    )


def _repeated(flips: tuple[Change, ...], again: Again | None) -> tuple[Change, ...]:
    if again is None or not flips:
        return flips
    repeats = again([flip.id for flip in flips])
    return tuple(replace(flip, repeat=repeats.get(flip.id)) for flip in flips)


def _without_gone(
    metrics: Sequence[MetricDelta], changes: Changes, measure: Measure, paired: Paired, gate: Gate
) -> Iterator[MetricDelta]:
    """The metrics; what is a regression only by questions that passed every time they were asked again is none."""
    gone = [flip.id for flip in changes.flips if flip.repeat is not None and flip.repeat.kind == "gone"]
    if not gone:
        yield from metrics
        return
    others = paired.frame[~paired.frame["id"].isin(gone)]
    still = {m.name for m in measure.deltas(others, gate.drops, gate.drops) if m.regressed}
    yield from (replace(metric, regressed=metric.regressed and metric.name in still) for metric in metrics)


def metrics_left_out(baseline: Signature, candidate: Signature, ignore: Collection[str]) -> set[str]:
    """The metrics that cannot be compared, after the differences that may be ignored.

    Raises:
        NotComparableError: another part of the signatures differs.
        UsageError: `ignore` names no part.
    """
    ignored = set(ignore) | ({"judge_prompt"} if "judge" in ignore else set())
    if unknown := ignored - set(AFFECTED):
        raise UsageError(f"--ignore {sorted(unknown)[0]}: write one of {', '.join(AFFECTED)}")
    found = differing(baseline, candidate)
    refused = [part for part in found if part not in ignored]
    if refused:
        told = [f"{part} was {found[part][0]!r} and is {found[part][1]!r}" for part in refused]
        cure = "run the candidate again as the baseline was run, set a new baseline, or --ignore what may differ"
        raise NotComparableError(f"the runs are not comparable: {'; '.join(told)}. {cure[0].upper()}{cure[1:]}")
    left_out = set[str]().union(*(AFFECTED[part] for part in found))
    if "weights" in found and candidate.rubric == "reasoning":
        left_out.add("pass_rate")  # there the weights decide who passes
    return left_out


def _verdict(
    gate: Gate,
    metrics: Sequence[MetricDelta],
    groups: Sequence[GroupDelta],
    changes: Changes,
    p_value: float,
    paired: Paired,
) -> tuple[Verdict, tuple[str, ...]]:
    """A regression that was found outweighs what was not compared, which makes the verdict unknown."""
    worse = [_metric_reason(metric, "") for metric in metrics if metric.regressed]
    worse += [_metric_reason(m, f" in {group.name}") for group in groups for m in group.metrics if m.regressed]
    flips, fixes, lost = sum(flip.counts for flip in changes.flips), len(changes.fixes), changes.num_lost
    if gate.too_many_flips(flips, fixes, p_value):
        allowed = f" ({gate.allow_flips} allowed)" if gate.allow_flips else ""
        worse.append(f"{flips} question{'s' * (flips > 1)} went from pass to fail{allowed}")
    unsure = [*_uncovered(gate, metrics, lost, paired)]
    if not metrics:
        unsure.append("no metric was measured on both sides")
    unsure += _no_rule(gate, metrics, groups, _may_flip(changes, paired))
    if worse:
        return "regression", (*worse, *unsure)
    return ("unknown", tuple(unsure)) if unsure else ("ok", ("no regression",))


def _uncovered(gate: Gate, metrics: Sequence[MetricDelta], lost: int, paired: Paired) -> Iterator[str]:
    """Too many questions that were measured in the baseline and cannot be compared: lost ones, and edited ones."""
    measured = metrics[-1].n + lost if metrics else lost
    if lost and (gate.min_coverage is None or 1 - lost / max(measured, 1) < gate.min_coverage):
        were = "questions" if lost > 1 else "question"
        yield f"{lost} {were} measured in the baseline, and not in the candidate"
    edited, common = len(paired.edited), len(paired.frame)
    needed = MIN_COVERAGE if gate.min_coverage is None else gate.min_coverage
    if edited and (common - lost) / (common + edited) < needed:
        left = f"{common - lost:,} of {common + edited:,} questions are left to compare"
        yield f"{left}: {edited:,} edited, {lost:,} lost (--min-coverage {needed:g})"


def _may_flip(changes: Changes, paired: Paired) -> bool:
    """Whether any question could have flipped: it passed or failed on both sides."""
    frame = paired.frame
    return changes.counted and bool((frame["passed_b"].notna() & frame["passed_c"].notna()).any())


def _no_rule(gate: Gate, metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta], flips: bool) -> Iterator[str]:
    """Rules that were asked for and could not be applied, or none at all: that is never a pass."""
    measured = {metric.name for metric in metrics}
    for name in sorted(gate.asked - measured):
        yield f"{name} has a rule and was not measured on both sides"
    for group in groups:
        if group.kind == "domain":
            there = {metric.name for metric in group.metrics}
            for name in sorted(set(gate.domain_drops.get(group.name, ())) - there):
                yield f"{name} has a rule for {group.name} and was not measured there on both sides"
    deciding = [m for m in metrics if m.name in gate.asked or m.name not in ABOUT_DECLINING]
    ruled = any(m.threshold for m in deciding) or any(m.threshold for g in groups for m in g.metrics)
    if metrics and not ruled and not flips:
        yield "no rule of the gate could be applied: what they are about is not compared"


def _metric_reason(metric: MetricDelta, where: str) -> str:
    change = f"{metric.baseline:.3f} to {metric.candidate:.3f}"
    drop = f", {100 * metric.drop:.1f} % worse" if metric.drop is not None else ""
    return f"{metric.name}{where} went from {change}{drop} (tolerated: {metric.threshold})"
