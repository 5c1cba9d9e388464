"""Compares two runs: pairs questions, computes metrics and causes, has questions rerun, and applies the gate.

Each side is a data frame of light columns and a function that reads whole rows by id, so that only the few changed
questions are read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from evaltrack.compare.changes import add_fates, changed_questions
from evaltrack.compare.comparison import Comparison, GroupDelta, GroupKind, MetricDelta
from evaltrack.compare.gate import Gate
from evaltrack.compare.pairing import NotComparableError, Paired, Side, numbers
from evaltrack.compare.reruns import Questions, Rerun, Rerunner, Reruns, rerun_questions
from evaltrack.compare.verdict import NET_LEVEL, decide
from evaltrack.errors import EvaltrackError, Guide, UsageError
from evaltrack.metrics.catalogue import BY_METRIC, GROUP_METRICS, LATENCIES, depending_on
from evaltrack.metrics.metric import Score, Threshold
from evaltrack.records import Signature
from evaltrack.stats.intervals import paired_interval, quantile, quantile_interval, swap_test
from evaltrack.stats.significance import PairedTest, flaky_by_chance, p_of_lost_passes, sign_flip

if TYPE_CHECKING:
    import pandas as pd

AFFECTED: dict[str, frozenset[str]] = {
    "k": depending_on("k"),
    "judge": depending_on("judge"),
    "judge_prompt": depending_on("judge"),
    "weights": depending_on("weights"),
    "pass_threshold": depending_on("pass_threshold"),
    **dict.fromkeys(("rubric", "metrics_version", "golden"), frozenset(BY_METRIC)),
}
"""The metrics that become incomparable if a part of the signature differs."""


def compare(
    baseline: Side,
    candidate: Side,
    gate: Gate | None = None,
    *,
    ignore: Collection[str] = (),
    rerunner: Rerunner | str = "",
    accepted: Mapping[str, str] | None = None,
    resamples: int = 10_000,
) -> Comparison:
    """Compare two runs.

    Args:
        baseline: The earlier run.
        candidate: The later run.
        gate: The rules; None is `DEFAULT_DROPS` and no flip.
        ignore: Parts of the signature that may differ; the metrics they affect are left out.
        rerunner: Reruns questions of the candidate to find flaky ones; or the reason that none can be rerun.
        accepted: The questions that people accepted in spite of their outcome, by id, and why.
        resamples: Bootstrap resamples for each interval.

    Raises:
        NotComparableError: the signatures differ in parts that are not ignored, or no question is common.
        UsageError: `ignore` names no part, or a domain of the gate is in neither run.
    """
    gate, accepted = gate or Gate(), accepted or {}
    was, now = baseline.info.signature, candidate.info.signature
    declared = {score.name: score for score in was.scores}
    redeclared = tuple(score.name for score in now.scores if declared.get(score.name, score) != score)
    paired = Paired(baseline, candidate, metrics_left_out(was, now, ignore) | set(redeclared))
    add_fates(paired)
    measure = _Measure(paired, gate, resamples)
    metrics, groups = tuple(measure.deltas(paired.frame, gate.drops)), tuple(measure.groups())
    changed = changed_questions(paired, now.k)
    columns = {*baseline.frame, *candidate.frame}
    measured = {metric for metric, score in paired.table.by_metric.items() if score.name in columns} | {"pass_rate"}
    made = Comparison(
        **vars(changed),
        baseline=baseline.info,
        candidate=candidate.info,
        gate=gate,
        loss=_loss(paired, accepted),
        metrics=metrics,
        groups=groups,
        num_common=len(paired.frame),
        added=paired.added,
        removed=paired.removed,
        edited=paired.edited,
        not_selected=paired.not_selected,
        ignored=tuple(ignore),
        left_out=tuple(sorted(paired.left_out & measured)),
        causes=dict(Counter(change.cause.kind for change in changed.worse).most_common()),
        redeclared=redeclared,
    )
    reruns = _reruns(made, paired, rerunner, accepted)
    flips = [replace(flip, accepted=accepted.get(flip.id), rerun=reruns.by_id.get(flip.id)) for flip in made.flips]
    flips.sort(key=lambda flip: not flip.counts)
    return decide(replace(made, reruns=reruns, by_fate={**made.by_fate, "broke": tuple(flips)}), paired)


# Comparability


def metrics_left_out(baseline: Signature, candidate: Signature, ignore: Collection[str]) -> set[str]:
    """Return the metrics that cannot be compared because of ignored differences.

    The target may differ, and edited questions are listed.

    Raises:
        NotComparableError: another part of the signatures differs.
        UsageError: `ignore` names no part.
    """
    ignored = set(ignore) | ({"judge_prompt"} if "judge" in ignore else set())
    ignorable = [part for part in AFFECTED if part != "golden"]
    if unknown := ignored.difference(ignorable):
        raise UsageError(f"`ignore={sorted(unknown)[0]}`: write one of {', '.join(ignorable)}")
    parts = {part: (getattr(baseline, part), getattr(candidate, part)) for part in AFFECTED}
    differing = {part: values for part, values in parts.items() if values[0] != values[1]}
    refused = {part: values for part, values in differing.items() if part not in ignored}
    if refused:
        named = {part.replace("_", " ").replace("golden", "golden set"): refused[part] for part in refused}
        words = [f"the baseline's {name} is `{was}`, the candidate's is `{now}`" for name, (was, now) in named.items()]
        options = " ".join(f"`ignore={part}`" for part in refused)
        cure = f"Rerun the candidate with the baseline's settings, set a new baseline, or add {options}"
        cure = "Compare runs of the same golden set" if "golden" in refused else cure
        raise NotComparableError(f"the runs cannot be compared: {'; '.join(words)}. {cure}", guide=Guide.COMPARABLE)
    left_out = set[str]().union(*(AFFECTED[part] for part in differing))
    if "weights" in differing and candidate.rubric == "reasoning":
        left_out.add("pass_rate")  # its weights decide which questions pass
    return left_out


# Metrics of both sides


class _Measure:
    """Computes means, intervals and counts over pairs."""

    def __init__(self, paired: Paired, gate: Gate, resamples: int) -> None:
        self._paired, self._gate, self._resamples = paired, gate, resamples
        gated = set(gate.drops).union(*gate.domain_drops.values())
        latencies = tuple(each for each in LATENCIES if each.metric in gated)
        self._table = replace(paired.table, latencies=latencies)

    def deltas(
        self,
        frame: pd.DataFrame,
        drops: Mapping[str, Threshold],
        names: Collection[str] | None = None,
        *,
        intervals: bool = True,
    ) -> Iterator[MetricDelta]:
        """Yield each metric that both sides measured on at least one common question."""
        for name, score in self._table.by_metric.items():
            if score.compared and name not in self._paired.left_out and (names is None or name in names):
                delta = self._delta(frame, score, drops.get(name), intervals=intervals)
                if delta is not None:
                    yield delta

    def groups(self) -> Iterator[GroupDelta]:
        """Yield the metrics of each domain, difficulty and category."""
        frame, sides = self._paired.frame, (self._paired.baseline.frame, self._paired.candidate.frame)
        selectable = [side["domain"] for side in sides if self._paired.not_selected]
        unknown = set(self._gate.domain_drops).difference(frame["domain_c"], *selectable)
        if unknown:
            raise UsageError(f"`max_drop=`: no question in both runs is of domain `{sorted(unknown)[0]}`")
        for kind in get_args(GroupKind):
            for name, part in frame.groupby(f"{kind}_c", observed=True):
                drops = self._gate.domain_drops.get(str(name), {}) if kind == "domain" else {}
                names = {*GROUP_METRICS, *self._table.own_names, *drops}
                broke, fixed = (int((part["fate"] == fate).sum()) for fate in ("broke", "fixed"))
                metrics = tuple(self.deltas(part, drops, names, intervals=kind != "category"))
                yield GroupDelta(kind, str(name), len(part), metrics, broke, fixed)

    def _delta(
        self, frame: pd.DataFrame, score: Score, threshold: Threshold | None, *, intervals: bool
    ) -> MetricDelta | None:
        from numpy import isnan

        if f"{score.name}_b" not in frame:
            return None
        was, now = (numbers(frame[f"{score.name}_{end}"]) for end in "bc")
        pairs = ~(isnan(was) | isnan(now))
        if not pairs.any():
            return None
        measured = int((~isnan(was)).sum()), int((~isnan(now)).sum())
        was, now = was[pairs], now[pairs]
        before, after = _of_run(was, score), _of_run(now, score)
        drop = before - after if score.higher_is_better else after - before
        better = int((now > was if score.higher_is_better else now < was).sum())
        changed = int((now != was).sum())
        has_interval = changed and (intervals or threshold is not None)
        interval, method = self._interval(was, now, before, score) if has_interval else (None, None)
        return MetricDelta(
            name=score.metric,
            baseline=before,
            candidate=after,
            n=len(was),
            drop=drop / abs(before) if before else None,
            wins=better,
            losses=changed - better,
            interval=interval,
            threshold=threshold,
            over=bool(threshold and threshold.exceeded(before, after, higher_is_better=score.higher_is_better)),
            method=method,
            p_value=self._p_value(was, now, score, worse=drop > 0) if threshold else None,
            changed=changed,
            measured=measured,
            higher_is_better=score.higher_is_better,
            own=score.own,
        )

    def _interval(
        self, was: Any, now: Any, before: float, score: Score
    ) -> tuple[tuple[float, float] | None, str | None]:
        """Return the interval of the difference, limited to possible values of the mean, and its method."""
        if score.quantile is not None:
            made = quantile_interval(was, now, score.quantile, resamples=self._resamples)
        else:
            made = paired_interval(was, now, span=score.span, resamples=self._resamples)
        if made is None:
            return None, None
        most = float("inf") if score.span is None else score.span - before
        return (made.low, made.high) if score.own else (max(made.low, -before), min(made.high, most)), made.method

    def _p_value(self, was: Any, now: Any, score: Score, *, worse: bool) -> float:
        """Return the one-sided p of the loss, half of the two-sided one: both statistics are symmetric about 0."""
        if score.quantile is None:
            p = sign_flip(was, now).p
        else:
            p = swap_test(was, now, score.quantile, resamples=self._resamples)
        return p / 2 if worse else 1.0


def _of_run(values: Any, score: Score) -> float:
    """Return the mean of the values, or their quantile."""
    return float(values.mean()) if score.quantile is None else quantile(values, score.quantile)


# Questions


def _loss(paired: Paired, accepted: Collection[str]) -> PairedTest:
    """Return the exact one-sided test of lost passes over all questions but the accepted ones."""
    if not paired.passing_compared:
        return PairedTest()
    frame = paired.frame
    measured = frame["passed_b"].notna() & frame["passed_c"].notna() & ~frame["id"].isin(accepted)
    passes, trials = paired.trials()[..., measured.to_numpy(dtype=bool)].astype(int)
    shares = passes / trials
    return PairedTest(p_of_lost_passes(passes, trials), int((shares[0] != shares[1]).sum()))


def _reruns(made: Comparison, paired: Paired, rerunner: Rerunner | str, accepted: Collection[str]) -> Reruns:
    """Rerun the questions that decide, if the gate does so. Trials also show if answers vary."""
    frame, (passes, trials) = paired.frame, paired.trials()
    varied = bool(((passes > 0) & (passes < trials)).any()) or None
    broke = [flip.id for flip in made.flips if flip.id not in accepted]
    metrics = [*made.metrics, *(metric for group in made.groups for metric in group.metrics)]
    means_fell = any(metric.over for metric in metrics)
    if made.gate.kind != "auto" or not rerunner or made.loss.p < NET_LEVEL or not (broke or means_fell):
        return Reruns(varied=varied)
    if isinstance(rerunner, str):
        return Reruns(dict.fromkeys(broke, Rerun("not rerun")), varied=varied, why_not=rerunner)
    rows = [flip.after for flip in made.flips]
    ids = {fate: [change.id for change in listed] for fate, listed in made.by_fate.items()}
    questions = Questions(
        broke=broke,
        fixed=ids["fixed"],
        failing=list(frame.loc[(~frame["passed_b"] & ~frame["passed_c"]).fillna(False), "id"]),
        changed=[*ids["lower score"], *ids["higher score"], *ids["changed"]],
        fell=[*broke, *ids["lower score"]] if means_fell else (),
        trials={row.id: (row.passes or 0, row.trials) for row in rows if row and row.trials and row.trials > 1},
        by_chance=flaky_by_chance(len(broke), passes, trials) if broke else 0.0,
    )
    try:
        reruns = rerun_questions(questions, rerunner)
    except EvaltrackError as error:
        return Reruns(dict.fromkeys(broke, Rerun("not rerun")), varied=varied, why_not=str(error))
    return replace(reruns, varied=varied or reruns.varied)
