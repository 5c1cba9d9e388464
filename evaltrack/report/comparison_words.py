"""How a comparison is worded, the same in every rendering: verdict, rules, metrics, questions. Text is on one line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from evaltrack.compare.change import CAUSES, WORSE, Cause, Change, Fate, Outcome
from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta
from evaltrack.compare.differences import in_order
from evaltrack.compare.run_differences import DIGESTS, RECORDED, TARGET, RunDifference
from evaltrack.metrics.catalogue import metric_form
from evaltrack.metrics.metric import MINUS
from evaltrack.records.amount import count, verb
from evaltrack.records.run import COMMIT, RESPONSES, UNCOMMITTED, Run
from evaltrack.records.run import VERDICTS as RECORDED_VERDICTS
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.escaping import clip
from evaltrack.report.gate_words import allowed_words, drop_share, rerun_words
from evaltrack.report.words import (
    LATENCY_TITLES,
    METRIC_TITLES,
    OWN_IN_GROUPS,
    failure_words,
    metric_change,
    metric_course,
    metric_number,
    metric_title,
    score_title,
    selection_words,
)

VERDICTS = {"ok": "No regression", "regression": "Regression", "unknown": "Could not tell"}

Tone = Literal["ok", "bad", "warn"]
"""Green, red, or amber."""

TONES: dict[str, Tone] = {"ok": "ok", "regression": "bad", "unknown": "warn"}

PARTS = {
    "retrieval": "recall_at_k",
    "pass": "pass_rate",
    "judge score": "judge_score",
    "reasoning score": "reasoning_score",
}
"""What a verdict can be about, each with the metric that stands for it."""


def verdict_words(comparison: Comparison) -> str:
    """The verdict: ``No regression``, or ``No regression in retrieval; pass and judge score not compared``.

    Of runs of a part of their golden set: ``No regression in a selection of 50 of 1,000 questions``.
    """
    verdict, other_rubric = VERDICTS[comparison.verdict], "reasoning score"
    if comparison.candidate.signature.rubric == "reasoning":
        other_rubric = "judge score"
    apart = [part for part, name in PARTS.items() if name in comparison.left_out and part != other_rubric]
    part = _part_words(comparison)
    if not apart:
        return f"{verdict}{part}"
    measured = {metric.name for metric in comparison.metrics}
    within = [part for part, name in PARTS.items() if name in measured]
    where = f" in {_and(within)}" if within and comparison.verdict != "unknown" else ""
    return f"{verdict}{where}{part}; {_and(apart)} not compared"


def _part_words(comparison: Comparison) -> str:
    """How much of the golden set each side was asked; empty where it was all of it."""
    was, now = comparison.baseline.signature.selection, comparison.candidate.signature.selection
    words = f" in a selection of {now.questions:,} of {count(now.total, 'question')}" if now else ""
    return words + (f" against a baseline of {was.questions:,} of {count(was.total, 'question')}" if was else "")


def selections_words(comparison: Comparison) -> str:
    """``, candidate: 50 of 1,000 questions (sample 50, seed 0)`` of each side that was asked a part of the set."""
    sides = {"candidate": comparison.candidate, "baseline": comparison.baseline}
    parts = {whose: selection_words(run.signature) for whose, run in sides.items()}
    return "".join(f", {whose}: {words}" for whose, words in parts.items() if words)


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def sides_words(comparison: Comparison) -> str:
    """Which run is held against which, over how many questions."""
    candidate, baseline = comparison.candidate, comparison.baseline
    sides = f"{run_words(candidate, baseline)} against {run_words(baseline, candidate)}"
    golden = clip(comparison.candidate.signature.golden, 80)
    apart = len(comparison.edited) + len(comparison.removed)
    common = comparison.num_common
    whole = count(common + apart, "question")
    questions = f"compares {common:,} of {whole}" if apart else count(common, "common question")
    return f"{sides}, {golden}, {questions}{selections_words(comparison)}"


def run_words(run: Run, other: Run | None = None) -> str:
    """The run's name, or its id where it has none; its id too where the `other` run has the same name."""
    name = clip(run.name or run.run_id or "a saved run", 80)
    return f"{name} ({run.run_id[:8]})" if run.run_id and other and run.name == other.name else name


Way = Literal["better", "worse", "same"]
NO_CHANGE = "no change"


@dataclass(frozen=True)
class MetricLine:
    """One metric in words; the numbers of one table have as many decimals as its metrics need.

    `change` is the difference, or that there is none, or that it is not one of the whole; `drop` how much that is of
    the baseline's value; `allowed` what drop is tolerated; `on` which questions the means are over where these are not
    all; `way` whether it got better or worse, as far as that may be said.
    """

    metric: MetricDelta
    title: str
    was: str
    now: str
    change: str
    drop: str
    interval: str
    allowed: str
    on: str
    way: Way

    @property
    def words(self) -> str:
        """``Recall@5 0.803 → 0.750, −0.053 (6.6 % worse), 95 % interval −0.102 to −0.004, n 22, allowed 5 %``."""
        interval = f"95 % interval {self.interval}" if self.interval else ""
        allowed = f"allowed {self.allowed}" if self.allowed else ""
        parts = (f"{self.change}{self.drop}", interval, f"n {self.metric.n:,}", self.on, allowed)
        return f"{self.title} {self.was} → {self.now}, {', '.join(filter(None, parts))}"


def metric_lines(comparison: Comparison, metrics: Iterable[MetricDelta] | None = None) -> list[MetricLine]:
    """A line for each of the metrics, or for all, those by which people know a run first."""
    shown = comparison.metrics if metrics is None else metrics
    shown = sorted(shown, key=lambda metric: metric_form(metric.name).headline or len(METRIC_TITLES))
    more: dict[str, int] = defaultdict(int)
    for metric in shown:
        form = metric_form(metric.name)
        more[form.form] = max(more[form.form], form.decimals(metric.baseline, metric.candidate))
    return [_metric_line(comparison, metric, more[metric_form(metric.name).form]) for metric in shown]


def _metric_line(comparison: Comparison, metric: MetricDelta, more: int) -> MetricLine:
    was, now, change = metric_course(metric.name, metric.baseline, metric.candidate, more)
    if change == "0" or (was == now and not metric.shows_change):
        change = NO_CHANGE
    elif not metric.shows_change:
        change = f"left out, {metric.num_lost:,} lost"
    title = metric_title(metric.name, comparison.candidate.signature.k)
    on = both_words(metric) if metric.partial or comparison.verdict == "unknown" else ""
    words = (change, drop_words(metric), interval_words(metric), allowed_words(metric), on)
    return MetricLine(metric, title, was, now, *words, "same" if change == "≈ 0" else way_of(comparison, metric))


def way_of(comparison: Comparison, metric: MetricDelta) -> Way:
    """Whether it got better or worse; of an unknown verdict, or of a part, neither."""
    if not metric.delta or not metric.shows_change or (comparison.verdict == "unknown" and not metric.regressed):
        return "same"
    return "worse" if metric.is_worse else "better"


def both_words(metric: MetricDelta) -> str:
    """Which questions both means are over: ``on the 146 measured in both``."""
    return f"on the {metric.n:,} measured in both"


def drop_words(metric: MetricDelta) -> str:
    """`` (6.6 % worse)``; empty where nothing changed, the baseline is 0, or the change is not one of the whole."""
    if not metric.drop or not metric.shows_change:
        return ""
    percent = 100 * abs(metric.drop)
    share = drop_share(metric).removesuffix(".0") if percent >= 0.05 else "less than 0.1"
    return f" ({share} % {'worse' if metric.drop > 0 else 'better'})"


def interval_words(metric: MetricDelta) -> str:
    """The interval of the difference, ``−0.102 to −0.004``; empty where there is none, or no difference is shown."""
    if metric.interval is None or not metric.shows_change:
        return ""
    low, high = (metric_change(metric.name, end) for end in metric.interval)
    unit = " points" if high.endswith(" points") else ""
    return f"{low.removesuffix(unit)} to {high}"


# Questions

WAYS: dict[Fate, str] = {
    "broke": "broke",
    "lost": "was lost",
    "lower score": "scores lower",
    "fixed": "was fixed",
    "newly measured": "is newly measured",
    "higher score": "scores higher",
    "changed": "changed",
}
"""What became of a question, as its verb."""

ENDS: dict[Outcome, str] = {"pass": "passes", "fail": "fails"}


def change_words(change: Change) -> str:
    """One changed question: ``7 (travel) broke: an expected source is returned lower``."""
    still = f" ({change.now} as before)" if change.was == change.now and change.now != "not compared" else ""
    if change.fate == "newly measured" and change.now in ENDS:
        still = f" and {ENDS[change.now]}"
    return f"{question_name(change)} {WAYS[change.fate]}{still}: {cause_title(change)}{remark_words(change)}"


def cause_title(change: Change) -> str:
    """What the cause means: ``the target failed``, of a newly measured question ``the target failed before``.

    Where the result is the same there is nothing to explain.
    """
    kind = change.cause.kind
    if kind == "unknown" and change.fate in UNCHANGED:
        return "the result is the same"
    before = kind in ("target_failed", "judge_failed") and change.fate not in WORSE and change.now != "error"
    return f"{CAUSES[kind].title}{' before' * before}"


UNCHANGED: tuple[Fate, ...] = ("changed", "identical")
"""What became of questions with the same result."""


def remark_words(change: Change) -> str:
    """In brackets what its reruns showed, and who accepted it; most often empty."""
    return rerun_words(change) + accepted_words(change)


def question_name(change: Change) -> str:
    """``7 (travel)``: its id and its domain."""
    return f"{clip(change.id, 80)} ({clip(change.domain, 40)})"


def accepted_words(change: Change) -> str:
    """Who accepted the question in spite of the flip, in brackets after a space."""
    return f" [{clip(change.accepted, 200)}]" if change.accepted else ""


def cause_words(change: Change) -> str:
    """The cause in its own sentence, without its title where it begins with that, and the others that apply."""
    also = "; ".join(map(_also_words, change.also))
    words = failure_words(change.cause.detail).removeprefix(f"{CAUSES[change.cause.kind].title}: ")
    return clip(words, 300) + (f" (also: {also})" if also else "")


def cause_rest(change: Change) -> tuple[str, str]:
    """What joins the sentence on the cause to its title, and what it says besides; both empty where it says no more.

    As in ``: `` and ``the tool `search` is called now``, or a space and ``(also: the target failed)``.
    """
    words, title = cause_words(change), CAUSES[change.cause.kind].title
    if words == title:
        return "", ""
    joint = next((each for each in (", ", " ") if words.startswith(title + each)), "")
    return (joint, words[len(title) + len(joint) :]) if joint else (": ", words)


def _also_words(cause: Cause) -> str:
    """What the cause means; of sources which ones, as the cause before names others."""
    if cause.source is None and cause.kind not in ("context_changed", "verdict_changed"):
        return CAUSES[cause.kind].title
    words = cause.detail.removesuffix(f"; `{cause.displaced_by}` took its place")
    return clip(words or CAUSES[cause.kind].title, 200)


def dropped_words(change: Change, k: int | None = None) -> str:
    """The scores that fell, else those that rose: ``Recall@5 1.000 → 0.500``."""
    moves = change.dropped or change.raised
    pairs = ((score_title(name, k), metric_number(name, was), metric_number(name, now)) for name, was, now in moves)
    return ", ".join(f"{title} {was} → {now}" for title, was, now in pairs)


def ranked_sources(row: StoredRow | None, limit: int) -> list[tuple[str, bool]]:
    """The first `limit` sources by rank, repeats left out as in the scores: name, and whether it was expected."""
    if row is None:
        return []
    expected = set(row.expected_keys)
    first = islice(in_order(row), limit)
    return [(clip(row.name_of(source), 80), not expected.isdisjoint(keys)) for _, keys, source in first]


def answers(change: Change) -> tuple[str, str] | None:
    """The answers before and after, where both sides' rows are there and the answers differ."""
    if change.before is None or change.after is None:
        return None
    before, after = change.before.answer or "", change.after.answer or ""
    return (before, after) if before != after else None


def piece_words(text: str) -> tuple[str, str, str]:
    """A piece of a word diff as a line, between its spaces; what cannot be shown is a replacement character."""
    before, after = (" " if end.isspace() else "" for end in (text[:1], text[-1:]))
    return before, clip(text, 500) or "\N{REPLACEMENT CHARACTER}", after


# What differs between the runs

SHOWN = 12
"""Settings that are named; of very many the JSON holds all."""

SHOWN_VALUE = 100


def difference_words(comparison: Comparison) -> str:
    """``chunk_size 400 to 600; commit 1a2b3c4d5e6f (main) to 9f8e7d6c5b4a (main)``.

    Empty where no difference is known and a run does not say how it was made.
    """
    differences = [each for each in comparison.differences if not _names_a_digested_file(each, comparison)]
    parts = [*map(_words, differences[:SHOWN]), *_same_but_changed(comparison)]
    if len(differences) > SHOWN:
        parts.append(f"{len(differences) - SHOWN:,} more")
    stated = comparison.baseline.settings and comparison.candidate.settings
    if parts or not stated:
        return "; ".join(parts)
    if comparison.candidate.signature.target.startswith(RECORDED) and not _digests_responses(comparison):
        return "nothing that the runs recorded, which is the name of the file of responses and not its content"
    return "nothing that the runs recorded"


def _words(difference: RunDifference) -> str:
    if difference.name in (RESPONSES, RECORDED_VERDICTS, *DIGESTS):
        return f"other {difference.name}"
    if _names_files(difference):
        return f"other {RESPONSES}"  # the names of their files say nothing of what was asked
    was, now = (_value(value) for value in (difference.baseline, difference.candidate))
    return f"{clip(difference.name, 80)} {was} to {now}"


def _names_files(difference: RunDifference) -> bool:
    """Whether it is the names of two files of recorded responses."""
    values = (difference.baseline or "", difference.candidate or "")
    return difference.name == TARGET and all(value.startswith(RECORDED) for value in values)


def _names_a_digested_file(difference: RunDifference, comparison: Comparison) -> bool:
    """Whether it is these names alone, and digests say whether the responses are others."""
    return _names_files(difference) and _digests_responses(comparison)


def _digests_responses(comparison: Comparison) -> bool:
    """Whether both runs say which recorded responses they read."""
    return all(RESPONSES in run.settings for run in (comparison.baseline, comparison.candidate))


def _value(value: str | None) -> str:
    if value is None:
        return "(none)"
    return clip(value, SHOWN_VALUE) or "(empty)"


def _same_but_changed(comparison: Comparison) -> Iterator[str]:
    """That both runs have changes on top of one commit, so that the code may differ all the same."""
    commits = [run.settings.get(COMMIT) for run in (comparison.baseline, comparison.candidate)]
    if commits[0] and commits[0] == commits[1] and UNCOMMITTED in commits[0]:
        yield f"perhaps the code: both have {UNCOMMITTED} on top of {clip(commits[0].partition(' ')[0], 20)}"


# Groups


def shown_groups(comparison: Comparison) -> list[GroupDelta]:
    """The groups worth showing, the worst first: those that broke a rule, then by the questions that broke beyond those
    that were fixed, and by how far their first metric fell.

    Of a kind of which there is only one, which says the same as the whole, it is shown where it broke a rule.
    """
    kinds = Counter(group.kind for group in comparison.groups)

    def badness(group: GroupDelta) -> tuple[bool, int, float]:
        first_drop = next((metric.drop or 0.0 for metric in group.metrics), 0.0)
        return not group_regressed(group), group.fail_to_pass - group.pass_to_fail, -first_drop

    return sorted((each for each in comparison.groups if kinds[each.kind] > 1 or group_regressed(each)), key=badness)


def group_metrics(groups: Sequence[GroupDelta]) -> list[str]:
    """The metrics that the groups have, in the order of every table, and of one's own scores the first."""
    measured = {metric.name: metric for group in groups for metric in group.metrics}
    own = [name for name, metric in measured.items() if metric.own]
    return [*(name for name in (*METRIC_TITLES, *LATENCY_TITLES) if name in measured), *own[:OWN_IN_GROUPS]]


def group_regressed(group: GroupDelta) -> bool:
    """Whether a rule for this group was broken."""
    return any(metric.regressed for metric in group.metrics)


def group_changed(group: GroupDelta) -> bool:
    """Whether a question of the group flipped, or a mean moved by as much as is written."""
    return bool(group.pass_to_fail or group.fail_to_pass) or any(map(_moved, group.metrics))


def _moved(metric: MetricDelta) -> bool:
    return metric_change(metric.name, metric.delta) not in ("0", "≈ 0")


def group_words(group: GroupDelta) -> str:
    """``domain travel``."""
    return f"{group.kind} {clip(group.name, 40)}"


def group_flips(group: GroupDelta) -> str:
    """How many of its questions flipped each way: ``−2 +1``."""
    if not group.pass_to_fail and not group.fail_to_pass:
        return "0"
    return f"{MINUS}{group.pass_to_fail:,} +{group.fail_to_pass:,}"


def group_sentence(group: GroupDelta, k: int, *, flips: bool) -> str:
    """``domain travel, 26 questions: 4 broke, 1 was fixed; Pass rate 73.1 % → 57.7 %, Recall@5 0.812 → 0.750``."""
    moved = [
        f"{metric_title(metric.name, k)} {course_words(metric)}{' (rule broken)' if metric.regressed else ''}"
        for metric in group.metrics
        if metric.regressed or _moved(metric)
    ]
    broke, fixed = group.pass_to_fail, group.fail_to_pass
    parts = [f"{broke:,} broke, {fixed:,} {verb(fixed, 'was', 'were')} fixed"] if flips and broke + fixed else []
    parts += [", ".join(moved)] if moved else []
    return f"{group_words(group)}, {count(group.num_questions, 'question')}: {'; '.join(parts) or 'no change'}"


def course_words(metric: MetricDelta) -> str:
    """``0.803 → 0.750``, for a line without their difference, which alone can take more decimals."""
    return f"{metric_number(metric.name, metric.baseline)} → {metric_number(metric.name, metric.candidate)}"


def group_cell(group: GroupDelta, name: str) -> str:
    """A metric of a group: what it is now and by how much it changed, ``0.750 (−0.053)``."""
    metric = next((metric for metric in group.metrics if metric.name == name), None)
    if metric is None:
        return "–"
    now, difference = metric_number(name, metric.candidate), metric_change(name, metric.delta)
    change = f" ({difference})" if metric.delta and metric.shows_change else ""
    return f"{now}{change}{' FAIL' if metric.regressed else ''}"
