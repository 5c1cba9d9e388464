"""A comparison as JSON for machines, versioned by `schema`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from math import isfinite
from typing import Any, get_args

from evaltrack.compare.change import Cause, Change
from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta
from evaltrack.compare.culprits import Culprit
from evaltrack.compare.fate_kinds import Fate
from evaltrack.compare.gate import Gate
from evaltrack.compare.repeats import Repeat
from evaltrack.compare.run_info import RunInfo
from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.criteria import Checked
from evaltrack.report.comparison.culprit_words import culprit_words
from evaltrack.report.comparison.verdict_words import reasons, verdict_words
from evaltrack.rows.stored_row import StoredRow

COMPARISON_SCHEMA = "evaltrack.comparison/1"

LISTS: dict[Fate, str] = {
    "broke": "flips",
    "lost": "lost",
    "lower score": "drops",
    "fixed": "fixes",
    "newly measured": "newly_measured",
    "higher score": "gains",
    "other content": "others",
}
"""The list that holds the questions of each fate."""

SIDES = 2000
"""Questions whose rows of both sides are there."""

CULPRITS = 100
"""Sources behind what got worse, of which very many have one question each."""

SIDE_COLUMNS = ("answer", "error", "passed", "abstained", "tool_calls", *(score.name for score in SCORES))
"""What of a changed question's row stands in the JSON, besides its sources without their texts."""


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as an object that `json.dumps(…, allow_nan=False)` takes and UTF-8 can hold.

    Metrics, here and in groups, are by name. A `drop` is a share of the baseline's value, positive where the candidate
    is worse, null where that value is 0; `interval` and `detectable` are in the unit of the metric; a `threshold` has
    an `amount` that is a share where `relative` is true; `measured` is how many common questions each side measured.
    `questions` counts the common questions by what became of them. `flips` (broke), `lost`, `drops` (lower score),
    `fixes` (fixed), `newly_measured`, `gains` (higher score) and `others` (other content) hold one object for each, of
    very many the worst; the first 2,000 of all hold both sides. `added`, `removed`, `edited` and
    `not_selected` hold ids. A number that is not finite is null.
    `culprits` holds the sources behind what got worse, or the errors, each with its questions, the 100 with the most.
    `gate` holds the rules that were applied, `gate_lines` what each of them came to. The `history`
    of a question has a letter for each of `history_runs`, oldest first: p(assed), f(ailed), e(rror), n(ot measured),
    d(ifferent, as its line was edited), - (not asked).
    """
    storable: dict[str, Any] = _storable(_whole(comparison))
    return storable


def _whole(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema": COMPARISON_SCHEMA,
        "verdict": comparison.verdict,
        "headline": verdict_words(comparison),
        "exit_code": comparison.exit_code,
        "reasons": reasons(comparison),
        "gate_lines": [asdict(line) for line in comparison.gate_lines],
        "gate": _gate(comparison.gate),
        "baseline": _run(comparison.baseline),
        "candidate": _run(comparison.candidate),
        "differences": [asdict(each) for each in comparison.differences],
        "compare_link": comparison.compare_link,
        "num_common": comparison.num_common,
        "metrics": _metrics(comparison.metrics),
        "mcnemar_p": comparison.mcnemar_p if comparison.passing_compared else None,
        "asked_again": asdict(comparison.asking),
        "causes": dict(comparison.causes),
        "culprits": [_culprit(each, comparison.candidate.signature.k) for each in comparison.culprits[:CULPRITS]],
        "questions": {fate: comparison.count(fate) for fate in get_args(Fate)},
        **_changes(comparison),
        "num_drops": comparison.count("lower score"),
        "errors": [asdict(each) for each in comparison.errors],
        "added": list(comparison.added),
        "removed": list(comparison.removed),
        "edited": list(comparison.edited),
        "not_selected": list(comparison.not_selected),
        "domains": _groups(comparison, "domain"),
        "difficulties": _groups(comparison, "difficulty"),
        "categories": _groups(comparison, "category"),
        "ignored": list(comparison.ignored),
        "left_out": list(comparison.left_out),
        "notes": list(comparison.notes),
        "aims": [asdict(aim) for aim in comparison.aims],
        "criteria": [
            {
                "criterion": str(candidate.criterion),
                "baseline": _checked(baseline),
                "candidate": _checked(candidate),
            }
            for baseline, candidate in comparison.criteria
        ],
    }


def _culprit(culprit: Culprit, k: int) -> dict[str, Any]:
    """What is behind some of the questions that got worse, in the words of the other renderings too."""
    return asdict(culprit) | {"words": culprit_words(culprit, k)}


def _checked(checked: Checked) -> dict[str, float | bool | None]:
    return {"value": checked.value, "met": checked.met, "reachable": checked.reachable}


def _gate(gate: Gate | None) -> dict[str, Any] | None:
    """The rules that were applied: tolerated drops by metric, and by domain and metric."""
    if gate is None:
        return None
    return {
        "kind": gate.kind,
        "allow_flips": gate.allow_flips,
        "min_coverage": gate.min_coverage,
        "max_drop": {name: asdict(drop) for name, drop in gate.drops.items()},
        "domain_max_drop": {
            domain: {name: asdict(drop) for name, drop in drops.items()} for domain, drops in gate.domain_drops.items()
        },
    }


def _changes(comparison: Comparison) -> dict[str, list[dict[str, Any]]]:
    lists: dict[str, list[dict[str, Any]]] = {}
    place = 0
    for fate, changes in comparison.by_fate.items():
        lists[LISTS[fate]] = [_change(change, whole=place + n < SIDES) for n, change in enumerate(changes)]
        place += len(changes)
    return lists


def _run(run: RunInfo) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "name": run.name,
        "link": run.link,
        "num_questions": run.num_questions,
        "num_errors": run.num_errors,
        "signature": run.signature.model_dump(),
    }


def _metrics(metrics: Iterable[MetricDelta]) -> dict[str, Any]:
    return {
        metric.name: {
            "baseline": metric.baseline,
            "candidate": metric.candidate,
            "delta": metric.delta,
            "drop": metric.drop,
            "interval": None if metric.interval is None else list(metric.interval),
            "interval_method": metric.method,
            "p_value": metric.p_value,
            "threshold": None
            if metric.threshold is None
            else {"amount": metric.threshold.amount, "relative": metric.threshold.relative},
            "regressed": metric.regressed,
            "n": metric.n,
            "measured": None
            if metric.measured is None
            else dict(zip(("baseline", "candidate"), metric.measured, strict=True)),
            "wins": metric.wins,
            "ties": metric.ties,
            "losses": metric.losses,
            "detectable": metric.detectable,
            "judge_noise": metric.noise,
        }
        for metric in metrics
    }


def _groups(comparison: Comparison, kind: str) -> dict[str, Any]:
    return {group.name: _group(group) for group in comparison.groups if group.kind == kind}


def _group(group: GroupDelta) -> dict[str, Any]:
    return {
        "num_questions": group.num_questions,
        "pass_to_fail": group.pass_to_fail,
        "fail_to_pass": group.fail_to_pass,
        "p_value": group.p_value,
        "metrics": _metrics(group.metrics),
    }


def _change(change: Change, *, whole: bool) -> dict[str, Any]:
    cause = _cause(change.cause)
    return {
        "id": change.id,
        "fate": change.fate,
        "question": change.question,
        "domain": change.domain,
        "difficulty": change.difficulty,
        "category": change.category,
        "from": change.was,
        "to": change.now,
        "cause": cause.pop("kind"),
        **cause,
        "also": [_cause(other) for other in change.also],
        "dropped": {name: {"baseline": was, "candidate": now} for name, was, now in change.dropped},
        "same_retrieval": change.same_retrieval,
        "repeat": _repeat(change.repeat),
        "accepted": change.accepted,
        "by_judge": change.by_judge,
        "informs": change.informs,
        "counts": change.counts,
        "raised": {name: {"baseline": was, "candidate": now} for name, was, now in change.raised},
        "borderline": None if change.borderline is None else asdict(change.borderline),
        "before": _side(change.before if whole else None),
        "after": _side(change.after if whole else None),
    }


def _repeat(repeat: Repeat | None) -> dict[str, Any] | None:
    if repeat is None:
        return None
    counts = {"times": repeat.times, "passed": repeat.passed, "failed": repeat.failed}
    return {"kind": repeat.kind} | counts | {"record": {"times": repeat.record_times, "failed": repeat.record_failed}}


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind,
        "detail": cause.detail,
        "source": cause.source,
        "rank_before": cause.rank_before,
        "rank_after": cause.rank_after,
        "displaced_by": cause.displaced_by,
        "link": cause.link,
    }


def _side(row: StoredRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    columns = row.columns()
    names = ("chunk_id", "title", "url", "score")
    sources = columns["sources"] and [{name: source[name] for name in names} for source in columns["sources"]]
    return {name: columns[name] for name in (*SIDE_COLUMNS, *row.own)} | {"sources": sources}


def _storable(value: Any) -> Any:
    """The value with null for what is no number, and with the replacement character for half of a surrogate pair."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return value
