"""Formats numbers, results and failures in words that all renderings share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from evaltrack.compare.differences import first_rank
from evaltrack.compare.pairing import message_kind
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.catalogue import HEADLINES, LATENCIES, SCORES, metric_form, named_score
from evaltrack.metrics.criteria import Checked
from evaltrack.metrics.metric import MINUS, Aim
from evaltrack.metrics.rubric import TIERS, tier_words
from evaltrack.records import Row, Signature
from evaltrack.records.amount import count, first_of
from evaltrack.records.run import NOT_STATED
from evaltrack.records.stored_row import StoredRow, stored_row
from evaltrack.report.escaping import one_line
from evaltrack.report.templates import sentences, speaker

METRIC_TITLES = {score.metric: score.title for score in SCORES} | {"combined_score_best": "Combined, best"}

ROUNDING = 1e-12
"""A smaller difference of means is a rounding error."""

LATENCY_TITLES = {score.metric: score.title for score in LATENCIES}

OWN_IN_GROUPS = 2
"""User-defined scores in the tables of groups. `summary.json` holds all of them."""

MANY_DECLINED = 0.5
"""Share of declined answerable questions from which this is the first hint."""


def model_words(signature: Signature) -> str:
    """Return ``, model gpt-4o-mini``; empty if the target's name already says it."""
    kind = signature.target.partition(":")[0]
    plain = ("", kind, NOT_STATED, signature.target.removeprefix("openai:"))
    return "" if signature.model in plain else f", model {one_line(signature.model)}"


def selection_words(signature: Signature) -> str:
    """Return ``50 of 1,000 questions (sample 50, seed 0)`` for a part of the golden set; else empty."""
    return one_line(signature.selection.words, 400) if signature.selection else ""


def questions_words(result: RunResult) -> str:
    """Return ``63 questions (3 negatives)``, and the selection if it is a part of the golden set."""
    questions, negatives = result.totals["num_questions"], result.totals["num_negatives"]
    words = f"{count(questions, 'question')} ({count(negatives, 'negative')})"
    part = selection_words(result.signature)
    return f"{words}, selected: {part}" if part else words


def metric_title(name: str, k: int) -> str:
    """Return the metric's title for people."""
    return (METRIC_TITLES | LATENCY_TITLES).get(name, name).format(k=k)


def group_metrics(result: RunResult) -> list[str]:
    """Return the metrics that any group of the run has: the main metrics, then the first user-defined scores."""
    names = (*(score.metric for score in HEADLINES), *result.table.own_names[:OWN_IN_GROUPS])
    return [name for name in names if any(name in means for means in result.groups.values())]


FLOOR_CURE = "the floor of bm25: may be too high for this corpus, try bm25:DIR?floor=0"


def low_metrics(metrics: Mapping[str, float], signature: Signature) -> Iterator[str]:
    """Yield a hint for each metric that could be above its good value and is not.

    BM25 has no embedding model to check. A target that declines many answerable questions gets only that hint.
    """
    k, lexical = signature.k, signature.target.startswith("bm25:")
    low = [
        score
        for score in SCORES
        if score.hint and score.metric in metrics
        if metrics[score.metric] <= score.hint.good < metrics.get(f"{score.metric}.max", 1)
    ]
    declined = metrics.get("false_abstention_rate", 0.0)
    fields = {"low": low, "k": k, "lexical": lexical, "declined": declined, "many": MANY_DECLINED, "cure": FLOOR_CURE}
    yield from sentences("hints.txt", **fields)


AIM_TITLES = ("against naive answers", "measured", "aim", "naive", "change", "aimed at")
"""The titles of the table of aims, in every rendering."""


def aim_cells(result: RunResult) -> Iterator[tuple[str, ...]]:
    """Yield each aim of a run on reasoning: measured value, aim, published baseline, and both changes from that."""
    for each in result.aims:
        yield (
            metric_title(each.metric, result.signature.k),
            metric_number(each.metric, each.measured),
            f"{aim_limit(each.metric, each.aim)} {'reached' if each.reached else 'missed'}",
            aim_number(each.metric, each.aim.published),
            change_words(each.improvement),
            change_words(each.aim.improvement),
        )


def aim_limit(metric: str, aim: Aim) -> str:
    """Return ``3.5`` or ``below 10 %``."""
    mean = aim_number(metric, aim.mean)
    return mean if aim.higher_is_better else f"below {mean}"


def aim_number(metric: str, value: float) -> str:
    """Return an aim or a published mean, in per cent for a share."""
    return f"{100 * value:g} %" if metric_form(metric).form == "percent" else f"{value:g}"


def change_words(change: float) -> str:
    """Return ``+192 %``."""
    return f"{100 * change:+.0f} %".replace("-", MINUS)


def number(value: float) -> str:
    """Return a number of unknown unit: three decimals, none from 100."""
    digits = f"{abs(value):.3f}" if abs(value) < 100 else f"{abs(value):,.0f}"
    return f"{MINUS}{digits}" if value < 0 and digits.strip("0.") else digits


def headlines_first(means: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the means in the order of every report: pass rate, the other main metrics, then the rest."""
    order = {score.metric: place for place, score in enumerate(HEADLINES)}
    return sorted(means.items(), key=lambda pair: order.get(pair[0], len(order)))


@lru_cache(maxsize=4096)
def metric_number(name: str, value: float) -> str:
    """Return the value of a metric or score in the format of `Score.shown`: ``71.3 %``, ``0.803``, ``1,251``."""
    return metric_form(name).shown(value)


def metric_change(name: str, value: float) -> str:
    """Return the difference of two values in the format of `Score.change`: ``−3.5 points``, ``+0.053``."""
    return metric_form(name).change(value)


def metric_course(name: str, was: float, now: float, least: int = 0) -> tuple[str, str, str]:
    """Return two values of a metric and their difference with consistent rounding, in the format of `Score.course`."""
    return metric_form(name).course(was, now, least)


def score_title(name: str, k: int | None) -> str:
    """Return the title of a question's score: ``Recall@5``, or ``Recall@k`` if k is None. MRR is a mean of several."""
    if name == "reciprocal_rank":
        return "Reciprocal rank"
    score = named_score(name)
    return score.title.format(k="k" if k is None else k) if score else name


def errors_words(totals: Mapping[str, int]) -> str:
    """Return ``72 errors are in no mean``. Errors of the judge are only left out of the judge's means."""
    return _say("left_out", totals, count(totals["num_errors"], "error"), " ")


def warning_words(totals: Mapping[str, int]) -> str:
    """Return the warning ``2 of 63 questions ended in errors and are in no mean``."""
    of = f"{totals['num_errors']:,} of {count(totals['num_questions'], 'question')}"
    return _say("left_out", totals, f"{of} ended in errors", " and ")


def grouped_errors(errors: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each kind of message with the first ids of its questions, the most frequent first.

    `errors` are pairs of id and message. Example: ``70 × the target took too long: no response within 60 s (q1, q2,
    …)``.
    """
    groups: dict[str, tuple[str, list[str]]] = {}
    for key, message in errors:
        groups.setdefault(message_kind(message), (message, []))[1].append(key)
    lines = []
    for message, ids in sorted(groups.values(), key=lambda each: -len(each[1])):
        lines.append(f"{len(ids):,} × {one_line(failure_words(message), 200)} ({first_ids(ids, 60)})")
    return lines


FAILURES: dict[str, str] = {
    "target_error": "the target failed",
    "target_timeout": "the target took too long",
    "target_invalid": "the response of the target cannot be read",
    "judge_error": "the judge failed",
}
"""The meaning of each kind of failure."""


OWN_ERRORS = (
    "CommandTargetError",
    "EmptyIndexError",
    "FailedElsewhereError",
    "HttpTargetError",
    "InvalidResponseError",
    "NotJudgedError",
    "NotRecordedError",
    "ProcessEndedError",
    "UnreadableVerdictError",
)
"""Exception classes of evaltrack whose messages need no class name."""


def failure_words(error: str) -> str:
    """Return the error of a row for people: ``the target took too long: no response within 60 s``."""
    kind, colon, _ = error.partition(": ")
    return f"{FAILURES[kind]}: {failure_message(error)}" if colon and kind in FAILURES else error


def failure_message(error: str) -> str:
    """Return the error of a row without its kind and without an evaltrack class: ``no response within 60 s``."""
    kind, colon, message = error.partition(": ")
    if not colon or kind not in FAILURES:
        return error
    name, named, rest = message.partition(": ")
    return rest if named and name in OWN_ERRORS else message


def first_ids(ids: Sequence[str], limit: int) -> str:
    """Return ``q1, q2, q3, …``: the first three, each in at most `limit` characters."""
    return first_of([one_line(key, limit) for key in ids[:3]], 3, len(ids))


def first_errors_words(result: RunResult) -> str:
    """Return ``; the first 20 by reason`` if a run had more errors than are listed; else empty."""
    num_shown = len(result.errors)
    return f"; the first {num_shown} by reason" if result.totals["num_errors"] > num_shown else ""


def first_errors(result: RunResult) -> list[str]:
    """Return the lines of `grouped_errors` for the listed errors of a run."""
    return grouped_errors((row.question.id, str(row.failure)) for row in result.errors)


def judge_words(result: RunResult) -> str:
    """Return the judge with its numbers of verdicts, tokens and errors, or the reason that there are no verdicts."""
    return _say("judge", result)


def cost_words(result: RunResult) -> str:
    """Return the cost of the run in USD; empty if prices or tokens are unknown."""
    return ", ".join(f"{whose} {usd:,.4f} USD" for whose, usd in result.cost_usd.items())


def criterion_words(checked: Checked) -> str:
    """Return a criterion in the syntax of `--require` and its state: ``hit_rate > 0.8: missed (0.750)``.

    It adds the highest reachable value if it is limited: ``not reachable (0.209 of at most 0.282)``.
    """
    return _say("criterion", checked)


def missed_words(row: Row, k: int) -> str:
    """Return what was expected and what happened, for a question that did not pass."""
    return failed_words(stored_row(row, k), k, row.question.expected_tools)


def failed_words(row: StoredRow, k: int, expected_tools: Iterable[str] = ()) -> str:
    """Return the same for a row of the table, which does not hold the expected tools.

    For several trials it says how many passed and why the first failed trial failed. The row holds that trial's answer,
    sources and verdicts: ``passed 1 of 3 trials; the first that failed: not in the first 5: fares#refunds``.
    """
    if (row.trials or 0) <= 1:
        return _reasoned_words(row) if "reasoning_score" in row.scores else _answer_words(row, k, expected_tools)
    passed = f"passed {row.passes} of {count(row.trials or 0, 'trial')}"
    return passed if row.passed is not False else f"{passed}; the first that failed: {_trial(row, k, expected_tools)}"


def _trial(row: StoredRow, k: int, expected_tools: Iterable[str]) -> str:
    """Return the reason that the row's trial failed. The scores are means of all trials, and cannot tell."""
    if "reasoning_score" in row.scores:
        return _observed_words(row)
    if row.negative or row.declined or not _found(row, k):
        return _retrieval_words(row, k)
    missing = [tool for tool in expected_tools if tool not in (row.tool_calls or ())]
    grades = [verdict.overall_score for verdict in row.verdicts if verdict.overall_score is not None]
    if missing or not grades or row.scores.get("tools_called", 1) == 0:
        return _tool_words(missing)
    return _judged_words(row, sum(grades) / len(grades))


def _found(row: StoredRow, k: int) -> bool:
    """Return True if an expected source is among the first k, if none is expected, or if that was not measured."""
    if not row.expected or row.sources is None:
        return row.scores.get("hit", 1.0) > 0
    return (first_rank(row) or k + 1) <= k


def _answer_words(row: StoredRow, k: int, expected_tools: Iterable[str]) -> str:
    judged = row.scores.get("overall_score")
    hit = row.scores.get("hit", not row.expected)  # no source is missing if none is expected
    if row.negative or row.declined or not hit:
        return _retrieval_words(row, k)
    if row.scores.get("tools_called", 1) == 1 and judged is not None:
        if row.answer is not None and not row.answer.strip():
            return "the answer is empty"
        return _judged_words(row, judged)
    return _tool_words([tool for tool in expected_tools if tool not in (row.tool_calls or ())])


def _retrieval_words(row: StoredRow, k: int) -> str:
    if row.negative:
        return "answered, but should have declined"
    if row.declined:
        how = "declined" if row.abstained else "returned no sources, which counts as declining"
        return f"{how}, but has an answer"
    return f"not in the first {k}: " + ", ".join(row.expected or ())


def _judged_words(row: StoredRow, grade: float) -> str:
    grade_words = f"judged {number(grade)}"  # a table from elsewhere may lack the verdict
    return f"{grade_words}: {row.verdicts[0].reasoning}" if row.verdicts else grade_words


def _tool_words(missing: list[str]) -> str:
    return f"not called: {', '.join(missing)}" if missing else "an expected tool was not called"


def _reasoned_words(row: StoredRow) -> str:
    """Return the rubric's score and tier, and the reason for lost points: hard fails, or overconfidence."""
    return f"scored {row.scores['reasoning_score']:.0f}, {_observed_words(row)}"


def _observed_words(row: StoredRow) -> str:
    """Return the tier and the reason for lost points."""
    parts = [tier_words(row.tier, row.hard_fails) if row.tier is not None and row.tier in TIERS else "no tier"]
    if row.hard_fails:
        parts.append(", ".join(row.hard_fails))
    elif row.penalty:
        bands = count(row.coupling_gap or 0, "band")
        parts.append(f"{MINUS}{count(row.penalty, 'point')}: it claims {bands} more confidence than it earned")
    return "; ".join(parts)


_say = speaker("run_sentences.txt")
