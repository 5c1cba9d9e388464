"""Candidate against baseline, question by question, with causes. Prints nothing, reads no store.

Both sides come as columns (a data frame of the light ones) and a way to get whole rows by id, so that a million
questions are paired in memory while only the few that changed are read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaltrack.compare.change import Asking, Change, Repeat
from evaltrack.compare.changes import Changes
from evaltrack.compare.comparison import Comparison, MetricDelta, aims_of
from evaltrack.compare.deltas import Measure
from evaltrack.compare.fates import without_lost
from evaltrack.compare.gate import Gate
from evaltrack.compare.pairing import NotComparableError, Paired, Side
from evaltrack.compare.scatter import PROBES, Asker, settle
from evaltrack.compare.verdict import Decided, decide
from evaltrack.errors import EvaltrackError, Guide, UsageError
from evaltrack.metrics.catalogue import BY_METRIC, LATENCIES, depending_on
from evaltrack.metrics.criteria import Checked, Criterion, check_criteria
from evaltrack.records import Signature
from evaltrack.stats.significance import mcnemar_exact

_ALL = frozenset(BY_METRIC)
_JUDGED = depending_on("judge")
AFFECTED: dict[str, frozenset[str]] = {
    "k": depending_on("k"),
    "judge": _JUDGED,
    "judge_prompt": _JUDGED,
    "weights": depending_on("weights"),
    "rubric": _ALL,
    "pass_threshold": depending_on("pass_threshold"),
    "metrics_version": _ALL,
    "golden": _ALL,
}
"""Which metrics a differing part of the signature makes incomparable."""


@dataclass(frozen=True)
class AskAgain:
    """Asks the candidate's target again, each question `most` times (None: as often as it takes), or says why not."""

    asker: Asker | None = None
    most: int | None = None
    why_not: str | None = None


@dataclass(frozen=True)
class JudgeContext:
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
    again: AskAgain | None = None,
    judge: JudgeContext | None = None,
    resamples: int = 10_000,
) -> Comparison:
    """Compare two runs.

    Args:
        baseline: What was.
        candidate: What is.
        gate: The rules; None takes `DEFAULT_DROPS` and no flip.
        ignore: Parts of the signature that may differ; the metrics they affect are left out.
        criteria: Success criteria to hold both sides against.
        again: Asks questions again, to tell real losses from scatter; None asks nothing.
        judge: What is known of the judge, and which questions were accepted.
        resamples: Bootstrap resamples for each interval.

    Raises:
        NotComparableError: parts of the signatures differ that were not ignored, or no question is common.
        UsageError: `ignore` names no part, or a domain of the gate is in neither run.
    """
    judge = judge or JudgeContext()
    gate = replace(gate or Gate(), noise=judge.noise)
    gate = gate if judge.trusted else gate.without(_JUDGED)
    left_out = metrics_left_out(baseline.info.signature, candidate.info.signature, ignore)
    paired = Paired(baseline, candidate, passing="pass_rate" not in left_out)
    others = declared_otherwise(baseline.info.signature, candidate.info.signature)
    left_out |= set(others)
    gate = gate.without_domains(paired.unselected_domains)
    paired.frame = without_lost(paired.frame, left_out)
    table = replace(paired.table, latencies=tuple(each for each in LATENCIES if each.metric in gate.metrics))
    measure = Measure(gate, left_out, candidate.info.signature.k, resamples, table)
    deltas = measure.deltas(paired.frame, gate.drops, judged=paired.judged)
    metrics = tuple(replace(metric, noise=judge.noise.get(metric.name)) for metric in deltas)
    changes = Changes(paired, candidate.info.signature, left_out, judge.noise)
    changes.flips = tuple(judge.applied(flip) for flip in changes.flips)
    asking, repeats = _ask_again(gate, metrics, changes, paired, again)
    settled = (replace(flip, repeat=repeats.get(flip.id)) for flip in changes.flips)
    changes.flips = tuple(sorted(settled, key=lambda flip: flip.repeat is not None and flip.repeat.kind == "scatter"))
    decided = decide(gate, metrics, tuple(measure.groups(paired.frame)), changes, paired, asking)
    comparison = _comparison(paired, changes, decided, left_out, _checked(criteria, decided.metrics))
    notes = judge.notes
    if others:
        what = "its function or declaration" if len(others) == 1 else "their functions or declarations"
        words = f"{', '.join(others)}: {what} changed between the runs; evaluate the baseline again to compare by it"
        notes = (*notes, words)
    return replace(comparison, ignored=tuple(ignore), notes=notes, asking=asking, gate=gate)


def _checked(criteria: tuple[Criterion, ...], metrics: Sequence[MetricDelta]) -> tuple[tuple[Checked, Checked], ...]:
    most = {f"{metric.name}.max": metric.reachable for metric in metrics if metric.reachable is not None}
    sides = ({m.name: m.baseline for m in metrics}, {m.name: m.candidate for m in metrics})
    return tuple(zip(*(check_criteria(criteria, values | most) for values in sides), strict=True))


def _comparison(
    paired: Paired,
    changes: Changes,
    decided: Decided,
    left_out: set[str],
    checked: tuple[tuple[Checked, Checked], ...],
) -> Comparison:
    num_by_cause = Counter(change.cause.kind for change in (*changes.flips, *changes.lost, *changes.drops))
    candidate = paired.candidate.info
    return Comparison(
        baseline=paired.baseline.info,
        candidate=candidate,
        verdict=decided.verdict,
        reasons=decided.reasons,
        gate_lines=decided.gate_lines,
        metrics=decided.metrics,
        groups=decided.groups,
        flips=changes.flips,
        fixes=changes.fixes,
        drops=changes.drops,
        lost=changes.lost,
        num_common=len(paired.frame),
        mcnemar_p=mcnemar_exact(changes.counts["broke"], changes.counts["fixed"]),
        added=paired.added,
        removed=paired.removed,
        edited=paired.edited,
        not_selected=paired.not_selected,
        num_renamed=paired.num_renamed,
        texts=_texts(paired),
        ignored=(),
        left_out=tuple(sorted(name for name in left_out if _measured(name, paired))),
        causes=dict(num_by_cause.most_common()),
        criteria=checked,
        unchanged=changes.unchanged,
        newly=changes.newly,
        gains=changes.gains,
        others=changes.others,
        same=changes.same,
        fates=changes.counts,
        errors=changes.errors,
        failed_again=changes.failed_again,
        aims=tuple(aims_of(decided.metrics)) if candidate.signature.rubric == "reasoning" else (),
    )


def _texts(paired: Paired) -> dict[str, str]:
    """The questions that are in one run only, or were edited, as they were asked last; none where they are many."""
    new = {*paired.edited, *paired.added, *paired.not_selected}
    old = {*paired.removed, *paired.not_selected}
    if len(new) + len(old) > MOST_TEXTS:
        return {}
    rows = [*(paired.baseline.brief(old) if old else ()), *(paired.candidate.brief(new) if new else ())]
    return {row.id: row.question for row in rows}


MOST_TEXTS = 5_000
"""Questions that are not compared of which the texts are read."""


def _measured(metric: str, paired: Paired) -> bool:
    """Whether a side holds values of the metric; which questions pass is always said to be left out."""
    name = paired.table.by_metric[metric].name
    return metric == "pass_rate" or any(name in side.columns for side in (paired.baseline, paired.candidate))


def declared_otherwise(baseline: Signature, candidate: Signature) -> list[str]:
    """The scores of one's own that both runs have and that are declared, or computed, in another way."""
    was = {score.name: score for score in baseline.scores}
    return [score.name for score in candidate.scores if was.get(score.name, score) != score]


def _ask_again(
    gate: Gate, metrics: Sequence[MetricDelta], changes: Changes, paired: Paired, again: AskAgain | None
) -> tuple[Asking, Mapping[str, Repeat]]:
    """Ask again what decides, where the gate does so and anything got worse."""
    if gate.kind != "auto" or again is None:
        return Asking(), {}
    flips = [flip.id for flip in changes.flips if not (flip.accepted or flip.informs)]
    if not flips and not any(metric.over for metric in metrics):
        return Asking(possible=again.asker is not None, why_not=again.why_not), {}
    if again.asker is None:
        return Asking(why_not=again.why_not), {}
    fixes = [fix.id for fix in changes.fixes]
    others = list(paired.frame.loc[paired.frame["passed_c"].notna(), "id"][:PROBES])
    try:
        repeats = settle(flips, fixes, others, again.asker, most=again.most)
    except EvaltrackError as error:
        if again.most is not None:
            raise
        return Asking(why_not=str(error)), {}
    return Asking(True, repeats.calls, repeats.is_shown, repeats.lucky), repeats.repeats


def metrics_left_out(baseline: Signature, candidate: Signature, ignore: Collection[str]) -> set[str]:
    """The metrics that cannot be compared, after the differences that may be ignored.

    Raises:
        NotComparableError: another part of the signatures differs.
        UsageError: `ignore` names no part.
    """
    ignored = set(ignore) | ({"judge_prompt"} if "judge" in ignore else set())
    if unknown := ignored - set(AFFECTED):
        raise UsageError(f"`ignore={sorted(unknown)[0]}`: write one of {', '.join(AFFECTED)}")
    differences = differing(baseline, candidate)
    refused = [part for part in differences if part not in ignored]
    if refused:
        words = [f"{part} was {differences[part][0]!r} and is {differences[part][1]!r}" for part in refused]
        cure = "Run the candidate again as the baseline was run, or set a new baseline"
        message = f"the runs are not comparable: {'; '.join(words)}. {cure}"
        raise NotComparableError(message, "; or `ignore=` what may differ", guide=Guide.COMPARABLE)
    left_out = set[str]().union(*(AFFECTED[part] for part in differences))
    if "weights" in differences and candidate.rubric == "reasoning":
        left_out.add("pass_rate")  # there the weights decide who passes
    return left_out
