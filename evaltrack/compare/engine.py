"""Candidate against baseline, question by question, with causes. Prints nothing, reads no store.

Both sides come as a data frame of light columns and a way to get whole rows by id, so that only the few questions that
changed are read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaltrack.compare.changes import Changes, Fates, without_lost
from evaltrack.compare.comparison import Comparison, MetricDelta, OutcomeTable, aims_of
from evaltrack.compare.deltas import Measure
from evaltrack.compare.gate import Gate
from evaltrack.compare.pairing import NotComparableError, Paired, Side, pass_shares, trial_counts
from evaltrack.compare.reruns import Questions, Rerun, Rerunner, Reruns, rerun_questions
from evaltrack.compare.verdict import Loss, decide
from evaltrack.errors import EvaltrackError, Guide, UsageError
from evaltrack.metrics.catalogue import BY_METRIC, LATENCIES, depending_on
from evaltrack.metrics.criteria import Checked, Criterion, check_criteria
from evaltrack.records import Signature
from evaltrack.stats.significance import one_sided, sign_flip

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

MOST_TEXTS = 5_000
"""Questions that are not compared of which the texts are read."""


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
    rerunner: Rerunner | str = "",
    accepted: Mapping[str, str] | None = None,
    resamples: int = 10_000,
) -> Comparison:
    """Compare two runs.

    Args:
        baseline: The run that was.
        candidate: The run that is.
        gate: The rules; None takes `DEFAULT_DROPS` and no flip.
        ignore: Parts of the signature that may differ; the metrics they affect are left out.
        criteria: Success criteria to hold both sides against.
        rerunner: Reruns questions of the candidate, to tell broken from flaky ones; or says why none can be rerun.
        accepted: The questions that people accepted in spite of their outcome, by id, and why.
        resamples: Bootstrap resamples for each interval.

    Raises:
        NotComparableError: parts of the signatures differ that were not ignored, or no question is common.
        UsageError: `ignore` names no part, or a domain of the gate is in neither run.
    """
    gate = gate or Gate()
    was, now = baseline.info.signature, candidate.info.signature
    redeclared = _declared_otherwise(was, now)
    paired = Paired(baseline, candidate, metrics_left_out(was, now, ignore) | set(redeclared))
    gate = gate.without_domains(paired.unselected_domains)
    fates = Fates(paired)
    paired.frame = without_lost(paired, fates.unmeasured)
    table = replace(paired.table, latencies=tuple(each for each in LATENCIES if each.metric in gate.metrics))
    measure = Measure(gate, set(paired.left_out), now.k, resamples, table)
    metrics = tuple(measure.deltas(paired.frame, gate.drops))
    groups = tuple(measure.groups(paired.frame))
    changes = Changes(paired, fates, now.k)
    loss = _loss(paired) if changes.counted else Loss()
    accepted = accepted or {}
    over = any(metric.over for each in (metrics, *(group.metrics for group in groups)) for metric in each)
    reruns = _reruns(gate, changes, paired, loss, rerunner, accepted, means_fell=over)
    flips = [replace(flip, accepted=accepted.get(flip.id), rerun=reruns.by_id.get(flip.id)) for flip in changes.flips]
    changes.by_fate["broke"] = tuple(sorted(flips, key=lambda flip: not flip.counts))
    decided = decide(gate, metrics, groups, changes, paired, reruns, loss)
    return Comparison(
        baseline=baseline.info,
        candidate=candidate.info,
        verdict=decided.verdict,
        rules=decided.rules,
        gate=gate,
        reruns=reruns,
        loss_p=loss.p,
        metrics=decided.metrics,
        groups=decided.groups,
        by_fate=changes.by_fate,
        fates=changes.counts,
        outcomes=_outcome_table(paired) if changes.counted else None,
        num_common=len(paired.frame),
        added=paired.added,
        removed=paired.removed,
        edited=paired.edited,
        not_selected=paired.not_selected,
        ignored=tuple(ignore),
        left_out=tuple(sorted(name for name in paired.left_out if _measured(name, paired))),
        causes=dict(Counter(change.cause.kind for change in changes.worse).most_common()),
        criteria=_checked(criteria, decided.metrics),
        notes=_notes(redeclared),
        aims=tuple(aims_of(decided.metrics)) if now.rubric == "reasoning" else (),
        unchanged=changes.unchanged,
        same=changes.same,
        errors=changes.errors,
        failed_again=changes.failed_again,
        texts=_texts(paired),
    )


def _notes(redeclared: Sequence[str]) -> tuple[str, ...]:
    if not redeclared:
        return ()
    what = "its function or declaration" if len(redeclared) == 1 else "their functions or declarations"
    cure = "evaluate the baseline again to compare by it"
    return (f"{', '.join(redeclared)}: {what} changed between the runs; {cure}",)


def _loss(paired: Paired) -> Loss:
    """The test of the pass shares of all questions."""
    was, now = pass_shares(paired.frame)
    test = sign_flip(was, now)
    return Loss(one_sided(test.p, worse=now.sum() < was.sum()), test.changed)


def _reruns(
    gate: Gate,
    changes: Changes,
    paired: Paired,
    loss: Loss,
    rerunner: Rerunner | str,
    accepted: Collection[str],
    *,
    means_fell: bool,
) -> Reruns:
    """Rerun what decides, where the gate does so; whether anything varies is known from trials too."""
    ends = [trial_counts(paired.frame, end) for end in "bc"]
    varied = any(0 < passes < trials for counts in ends for passes, trials in counts.values()) or None
    if gate.kind != "auto" or loss.is_shown:
        return Reruns(varied=varied)
    broke = [flip.id for flip in changes.flips if flip.id not in accepted]
    if not broke and not means_fell:
        return Reruns(varied=varied)
    if isinstance(rerunner, str):
        by_id = dict.fromkeys(broke, Rerun("not rerun")) if rerunner else {}
        return Reruns(by_id, varied=varied, why_not=rerunner or None)
    fixed, changed, lower, higher = (
        [change.id for change in changes.by_fate[fate]] for fate in ("fixed", "changed", "lower score", "higher score")
    )
    frame = paired.frame
    failing = frame.loc[(~frame["passed_b"]).fillna(False) & (~frame["passed_c"]).fillna(False), "id"]
    questions = Questions(
        broke=broke,
        fixed=fixed,
        failing=list(failing),
        changed=[*changed, *lower, *higher],
        fell=[*broke, *lower] if means_fell else (),
        trials=ends[1],
    )
    try:
        made = rerun_questions(questions, rerunner)
    except EvaltrackError as error:
        return Reruns(dict.fromkeys(broke, Rerun("not rerun")), varied=varied, why_not=str(error))
    return replace(made, varied=varied or made.varied)


def _outcome_table(paired: Paired) -> OutcomeTable:
    """How many questions pass and fail on either side."""
    was, now = (paired.frame[f"passed_{end}"] for end in "bc")
    flips = (was & now, was & ~now, ~was & now, ~was & ~now)
    gaps = (was.notna() & now.isna(), was.isna() & now.notna(), was.isna() & now.isna())
    return OutcomeTable(*(int(mask.fillna(False).sum()) for mask in (*flips, *gaps)))


def _checked(criteria: tuple[Criterion, ...], metrics: Sequence[MetricDelta]) -> tuple[tuple[Checked, Checked], ...]:
    most = {f"{metric.name}.max": metric.reachable for metric in metrics if metric.reachable is not None}
    sides = ({m.name: m.baseline for m in metrics}, {m.name: m.candidate for m in metrics})
    return tuple(zip(*(check_criteria(criteria, values | most) for values in sides), strict=True))


def _texts(paired: Paired) -> dict[str, str]:
    """The questions that are in one run only, or were edited, as they were asked last; none where they are many."""
    new = {*paired.edited, *paired.added, *paired.not_selected}
    old = {*paired.removed, *paired.not_selected}
    if len(new) + len(old) > MOST_TEXTS:
        return {}
    rows = {**paired.baseline.rows(old, False), **paired.candidate.rows(new, False)}
    return {key: row.question for key, row in rows.items()}


def _measured(metric: str, paired: Paired) -> bool:
    """Whether a side holds values of the metric; which questions pass is always said to be left out."""
    name = paired.table.by_metric[metric].name
    return metric == "pass_rate" or any(name in side.frame for side in (paired.baseline, paired.candidate))


def _declared_otherwise(baseline: Signature, candidate: Signature) -> list[str]:
    """The scores of one's own that both runs have and that are declared, or computed, in another way."""
    was = {score.name: score for score in baseline.scores}
    return [score.name for score in candidate.scores if was.get(score.name, score) != score]


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
