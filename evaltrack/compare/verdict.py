"""The verdict of a comparison, and the sentences that say why. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evaltrack.compare.change import Asking, scatter_kind
from evaltrack.compare.changes import Changes
from evaltrack.compare.comparison import GateLine, GroupDelta, MetricDelta, Verdict
from evaltrack.compare.gate import ABOUT_DECLINING, FLIPS, MIN_COVERAGE, Gate, rule_name, shown_losses
from evaltrack.compare.pairing import Paired
from evaltrack.compare.rule_words import RuleWords, all_words, share_words, unsettled_words
from evaltrack.records.amount import count, verb


@dataclass(frozen=True)
class Decided:
    """Metrics and groups with what regressed, the verdict, why, and each rule with its value."""

    metrics: tuple[MetricDelta, ...]
    groups: tuple[GroupDelta, ...]
    verdict: Verdict
    reasons: tuple[str, ...]
    gate_lines: tuple[GateLine, ...] = ()


def decide(
    gate: Gate,
    metrics: Sequence[MetricDelta],
    groups: Sequence[GroupDelta],
    changes: Changes,
    paired: Paired,
    asking: Asking,
) -> Decided:
    """The verdict; a regression that was found outweighs what was not compared, which makes it unknown."""
    broke, fixed = _eligible(changes), changes.counts["fixed"]
    counted = changes.counts["broke"] - sum(not flip.counts for flip in changes.flips)
    wants_evidence = gate.wants_evidence or (gate.kind == "auto" and asking.scatter is True)
    shown = shown_losses(metrics, groups, broke, fixed) if wants_evidence else None
    metrics = tuple(_settled(gate, metric, None, shown) for metric in metrics)
    groups = tuple(
        replace(group, metrics=tuple(_settled(gate, m, group, shown) for m in group.metrics)) for group in groups
    )
    words = RuleWords(gate, paired.candidate.info.signature.k)
    broken = list(_flip_reasons(gate, changes, counted, shown is not None and FLIPS in shown, asking))
    worse = [*words.broken(metrics, groups), *broken]
    unsure = [*unsettled_words(changes.flips, asking), *_uncovered(gate, changes, paired)]
    if not metrics:
        unsure.append("no metric was measured on both sides")
    unsure += _no_rule(gate, metrics, groups, _may_flip(changes, paired))
    not_shown = [words.not_shown(metric) for metric in metrics if metric.over and not metric.regressed]
    not_shown += [] if broken else _flips_not_shown(gate, changes, counted)
    allowed = [] if broken else list(_flips_allowed(gate, changes, counted))
    part = words.left_out(metrics, groups)
    open_rules, held_rules = (part, []) if _too_many_lost(gate, changes.num_lost, paired) else ([], part)
    held = [*allowed, *([] if broken else _no_flips(gate, changes, counted)), *words.held(metrics, groups), *held_rules]
    states = (("broken", worse), ("unknown", [*unsure, *open_rules]), ("not shown", not_shown), ("held", held))
    lines = tuple(GateLine(state, text) for state, texts in states for text in texts)  # type: ignore[arg-type]
    tolerated = (*not_shown, *allowed)
    if worse:
        reasons = (*_moved_reasons(changes), *worse, *tolerated, *unsure)
        return Decided(metrics, groups, "regression", reasons, lines)
    reasons = (*(unsure or (_no_regression(changes),)), *tolerated)
    return Decided(metrics, groups, "unknown" if unsure else "ok", reasons, lines)


def _no_flips(gate: Gate, changes: Changes, counted: int) -> Iterator[str]:
    """The rule on questions that broke, where none did that counts."""
    if changes.counted and not counted and gate.kind != "significant":
        yield f"{_spared_words(changes)}; {gate.allow_flips:,} allowed"


def _spared_words(changes: Changes) -> str:
    """That no question broke, or why none of those that did counts."""
    broke = changes.counts["broke"]
    if not broke:
        return "no question broke"
    scatter = scatter_kind((flip.repeat for flip in changes.flips), broke)
    if scatter == "passed again":
        those = "it passed when it was" if broke == 1 else f"{all_words(broke)} passed when they were"
        return f"no question that broke counts: {those} asked again"
    if scatter:
        return f"no question that broke counts: {'it is' if broke == 1 else f'{all_words(broke)} are'} scatter"
    return f"{count(broke, 'question')} broke, and {'does not count' if broke == 1 else 'none of them counts'}"


def _eligible(changes: Changes) -> int:
    """Questions that broke, without those that were accepted or that only an untrusted judge failed."""
    return changes.counts["broke"] - sum(bool(flip.accepted or flip.informs) for flip in changes.flips)


def _settled(gate: Gate, metric: MetricDelta, group: GroupDelta | None, shown: frozenset[str] | None) -> MetricDelta:
    """The metric, and whether it regressed: over its threshold, and where `shown` is given one of these losses."""
    over = metric.threshold is not None and (metric.over or gate.kind == "significant")
    return replace(metric, regressed=over and (shown is None or rule_name(metric, group) in shown))


def _moved_reasons(changes: Changes) -> Iterator[str]:
    """Said before anything else where ids or texts of the expected sources moved under what got worse."""
    worse = [change for change in (*changes.flips, *changes.drops) if change.cause.kind != "unknown"]
    for kind, words in (
        ("ids_changed", "the expected sources came back under other ids with the same texts; are ids made anew?"),
        ("source_text_changed", "the expected sources have the same ids and other texts: the corpus was edited"),
    ):
        num_moved = sum(change.cause.kind == kind for change in worse)
        if num_moved and 2 * num_moved >= len(worse):
            total = changes.counts["broke"] + changes.counts["lower score"]
            yield f"{share_words(num_moved, total)} that got worse: {words}"


def _flip_reasons(gate: Gate, changes: Changes, counted: int, shown: bool, asking: Asking) -> Iterator[str]:
    """Questions that went from pass to fail, beside those that went the other way."""
    broke, fixed = _eligible(changes), changes.counts["fixed"]
    if gate.wants_evidence:
        if shown and (counted > gate.allow_flips or gate.kind == "significant"):
            yield f"{_went(counted, fixed, gate)}: a net loss is shown"
    elif counted > gate.allow_flips:
        yield f"{_went(counted, fixed, gate)}{_what_asking_told(changes, asking)}"
    elif shown and broke > gate.allow_flips:
        yield f"{_went(broke, fixed, gate)}: a net loss is shown, though each may be scatter"


def _what_asking_told(changes: Changes, asking: Asking) -> str:
    """Why these questions are no scatter; empty where nothing could be asked again, or answers do not vary."""
    kinds = Counter(flip.repeat.kind for flip in changes.flips if flip.repeat is not None)
    if not asking.possible or not asking.scatter:
        return ""
    found = [", which scatter does not explain"] * bool(kinds["real"])
    found += [f"; {kinds['not measured']:,} of them could not be measured again"] * bool(kinds["not measured"])
    found += [f"; {kinds['scatter']:,} more {verb(kinds['scatter'], 'is', 'are')} scatter"] * bool(kinds["scatter"])
    return "".join(found)


def _went(broke: int, fixed: int, gate: Gate) -> str:
    """``3 questions broke, 52 were fixed``, with how many are allowed where that is any."""
    allowed = f" ({gate.allow_flips} allowed)" if gate.allow_flips else ""
    other = f", {fixed:,} {verb(fixed, 'was', 'were')} fixed" if fixed else ""
    return f"{count(broke, 'question')} broke{allowed}{other}"


def _flips_allowed(gate: Gate, changes: Changes, counted: int) -> Iterator[str]:
    """Questions that broke and are no more than what is allowed."""
    if 0 < counted <= gate.allow_flips:
        yield _went(counted, changes.counts["fixed"], gate)


def _flips_not_shown(gate: Gate, changes: Changes, counted: int) -> Iterator[str]:
    """More questions broke than is allowed, and they are no evidence of a loss where evidence is wanted."""
    if counted > gate.allow_flips and gate.wants_evidence:
        yield f"{_went(counted, changes.counts['fixed'], gate)}, which is not shown to be more than chance"


def _no_regression(changes: Changes) -> str:
    scatter = sum(flip.repeat is not None and flip.repeat.kind == "scatter" for flip in changes.flips)
    if not scatter:
        return "no regression"
    return f"no regression: {count(scatter, 'question')} that broke {verb(scatter, 'is', 'are')} scatter"


def _uncovered(gate: Gate, changes: Changes, paired: Paired) -> Iterator[str]:
    """Too many questions that cannot be compared: lost, edited and removed ones, and those that failed before."""
    lost, failed = changes.num_lost, changes.failed_before
    if _too_many_lost(gate, lost, paired):
        those = f"{count(lost, 'question')} {verb(lost, 'was', 'were')}"
        yield f"{those} lost: measured in the baseline, not in the candidate"
    edited, removed, common = len(paired.edited), len(paired.removed), len(paired.frame)
    if not common:
        yield "no question is left of which everything can be compared"
    needed = MIN_COVERAGE if gate.min_coverage is None else gate.min_coverage
    in_both, fewer = common + edited, min(len(side.columns) for side in (paired.baseline, paired.candidate))
    if paired.not_selected and in_both / fewer < needed:
        those = f"the selections have {in_both:,} of {count(fewer, 'question')} in common"
        yield f"{those} ({100 * needed:g} % must be, see --min-coverage); select the same ones of both runs"
    whole, left = common + edited + removed, common - lost - failed
    apart = {"edited": edited, "lost": lost, "removed": removed, "failed in the baseline": failed}
    if (edited or removed or failed) and left / whole < needed:
        gone = ", ".join(f"{number:,} {what}" for what, number in apart.items() if number)
        those = f"{left:,} of {count(whole, 'question')} {verb(left, 'is', 'are')} left to compare"
        yield f"{those}: {gone} ({100 * needed:g} % must be left, see --min-coverage)"


def _too_many_lost(gate: Gate, lost: int, paired: Paired) -> bool:
    """Whether more questions were lost than `min_coverage` allows; without it no question may be lost."""
    measured = int((paired.frame["passed_b"].notna() | paired.frame["recall_at_k_b"].notna()).sum())
    return bool(lost) and (gate.min_coverage is None or 1 - lost / max(measured, 1) < gate.min_coverage)


def _may_flip(changes: Changes, paired: Paired) -> bool:
    """Whether any question could have flipped: it passed or failed on both sides."""
    frame = paired.frame
    return changes.counted and bool((frame["passed_b"].notna() & frame["passed_c"].notna()).any())


def _no_rule(gate: Gate, metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta], flips: bool) -> Iterator[str]:
    """Rules that were asked for and could not be applied, or none at all: that is never a pass."""
    measured = {metric.name for metric in metrics}
    for name in sorted(gate.explicit - measured):
        yield f"{name} has a rule and was not measured on both sides"
    for group in groups:
        if group.kind == "domain":
            there = {metric.name for metric in group.metrics}
            for name in sorted(set(gate.domain_drops.get(group.name, ())) - there):
                yield f"{name} has a rule for {group.name} and was not measured there on both sides"
    deciding = [m for m in metrics if m.name in gate.explicit or m.name not in ABOUT_DECLINING]
    ruled = any(m.threshold for m in deciding) or any(m.threshold for g in groups for m in g.metrics)
    if metrics and not ruled and not flips:
        yield "no rule on scores or on questions that broke could be applied: what they are about is not compared"
