"""Sums up the rows of a run: mean scores with counts, tokens, calls and seconds, the first failed and missed rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from statistics import fmean
from typing import Literal

from evaltrack.metrics.catalogue import HEADLINES, MetricTable
from evaltrack.records import Row, Usage

SHOWN_ROWS = 20
"""The most failed, and the most missed, questions that reports list; the tables in MLflow hold all."""

BEST = "combined_score_best"
TOTALS = ("num_questions", "num_measured", "num_errors", "num_negatives", "duplicates", "num_judged", "judge_errors")
"""Counts over all questions."""

LEVELS = ("easy", "medium", "hard")
DOMAIN_PREFIX = "domain-"

Values = defaultdict[str, list[float]]
"""The values of each metric."""


class Summary:
    """The metrics of a run, from one row per question. It stores each value of each group."""

    def __init__(self, k: int, table: MetricTable | None = None) -> None:
        self._k, self._table = k, table or MetricTable()
        self.num_questions = self.num_measured = self.num_errors = self.num_negatives = self.duplicates = 0
        self._overall, self._judges = Values(list), Values(list)
        self._groups = defaultdict[str, Values](lambda: Values(list))
        self.num_judged = self.judge_errors = 0

    def add(self, row: Row) -> None:
        """Count one row. A row whose target failed enters no mean. One whose judge failed enters no mean of a judge."""
        self.num_questions += 1
        self.num_negatives += row.negative
        self.num_measured += row.passed is not None
        self.num_errors += bool(row.error)
        self.duplicates += row.duplicates
        groups = [self._groups[name] for name in _groups(row.domain, row.difficulty)]
        for name, value in row.scores.items():
            score = self._table.by_name[name]
            for values in (self._overall, *(groups if score.by_group else ())):
                values[score.metric].append(value)
        if "precision_at_k" in row.scores:
            self._overall["precision_at_k.max"].append(min(self._k, row.num_expected or 0) / self._k)
        self.num_judged += bool(row.verdicts) and not row.error
        self.judge_errors += row.judge_failed
        for verdict in row.verdicts:
            if verdict.overall_score is not None and "overall_score" in row.scores:
                self._judges[verdict.judge].append(verdict.overall_score)

    @property
    def measures_anything(self) -> bool:
        """True if any question could pass or fail, or has one of the user's own scores."""
        return self.num_measured > 0 or any(name in self._overall for name in self._table.own_names)

    @property
    def by_judge(self) -> dict[str, tuple[float, int]]:
        """Mean overall score and count of each judge of a panel, by name. Empty with fewer than two judges."""
        if len(self._judges) < 2:
            return {}
        return {name: (fmean(values), len(values)) for name, values in sorted(self._judges.items())}

    @property
    def metrics(self) -> dict[str, float]:
        """Means by metric name, in the order of the metric table. Only metrics that were measured."""
        names = [name for score in self._table.scores for name in (score.metric, f"{score.metric}.max")]
        means = {name: fmean(self._overall[name]) for name in names if name in self._overall}
        if "combined_score" in means:
            means[BEST] = max(self._overall["combined_score"])
        return means

    @property
    def counts(self) -> dict[str, int]:
        """The number of questions behind each of `metrics`."""
        return {name: len(self._overall["combined_score" if name == BEST else name]) for name in self.metrics}

    @property
    def totals(self) -> dict[str, int]:
        """Counts over all questions."""
        return {name: getattr(self, name) for name in TOTALS}

    @property
    def groups(self) -> dict[str, dict[str, tuple[float, int]]]:
        """Mean and count by metric for each group: domains first, the largest first, then difficulties."""

        def place(item: tuple[str, Values]) -> tuple[int, int, str]:
            group, values = item
            level = LEVELS.index(group) + 1 if group in LEVELS else 0
            return level, -max(map(len, values.values()), default=0), group

        return {
            group: {s.metric: (fmean(m[s.metric]), len(m[s.metric])) for s in self._table.scores if s.metric in m}
            for group, m in sorted(self._groups.items(), key=place)
        }


def _groups(domain: str, difficulty: str | None) -> tuple[str, ...]:
    """Return a question's domain and difficulty. A domain that reads as a difficulty gets a prefix."""
    is_reserved = domain in LEVELS or domain.startswith(DOMAIN_PREFIX)
    name = DOMAIN_PREFIX + domain if is_reserved else domain
    return (name, difficulty) if difficulty else (name,)


def domain_of(group: str) -> str | None:
    """Return the domain of a group; None for a difficulty."""
    return None if group in LEVELS else group.removeprefix(DOMAIN_PREFIX)


class Kept:
    """The first rows that failed or did not pass, in the order of the golden set, for reports."""

    def __init__(self) -> None:
        self.errors: list[Row] = []
        self.missed: list[Row] = []

    def add(self, row: Row) -> None:
        """Store the row if it is among the first of its kind."""
        rows = self.errors if row.error else self.missed if row.passed is False else None
        if rows is not None:
            rows.append(row)
            rows.sort(key=lambda row: row.position)
            del rows[SHOWN_ROWS:]


Means = Mapping[str, tuple[float, int]]
"""Mean and count by metric."""


def worst_domains(groups: Mapping[str, Means]) -> list[tuple[str, Means]]:
    """Return the domains among the groups, the worst first.

    They are sorted by pass rate, then by score, then by size (larger first). Domains without a measurement come last.
    """

    def order(item: tuple[str, Means]) -> tuple[object, ...]:
        name, means = item
        values = [means[score.metric][0] if score.metric in means else float("inf") for score in HEADLINES]
        return values, -max((count for _, count in means.values()), default=0), name

    return sorted((item for item in groups.items() if item[0] not in LEVELS), key=order)


class Ledger:
    """Tokens, verdicts, failures and seconds over every trial.

    `num_empty` counts responses that hold nothing. `num_empty_answers` counts responses whose answer is empty but that
    hold something else.
    """

    def __init__(self) -> None:
        self.usage = dict.fromkeys(("target", "judge"), Usage(prompt_tokens=0, completion_tokens=0))
        self.total_tokens = self.cached_verdicts = self.trial_errors = self.num_unanswered = 0
        self.num_empty = self.num_empty_answers = 0
        self.calls, self.reports = Counter[str](), Counter[str]()
        self._seconds = list[float]()
        self.models: set[str] = set()
        self.unread = Counter[str]()

    def add(self, row: Row) -> None:
        """Add one trial. The tokens of a failed call count for the target or the judge that was called."""
        self.trial_errors += bool(row.error)
        self.total_tokens += round(row.scores.get("num_tokens", 0))
        if not row.target_failed:
            self._count(row)
        if row.usage is not None or not row.target_failed:
            self._enter("target", row.usage)
        for verdict in (*row.verdicts, *row.score_verdicts.values()):
            self.cached_verdicts += verdict.cached
            if not verdict.cached:
                self._enter("judge", verdict.usage)
        if row.judge_usage is not None:
            self._enter("judge", row.judge_usage)

    def _count(self, row: Row) -> None:
        self._seconds.append(row.seconds)
        self.num_unanswered += row.answer is None
        self.num_empty += row.holds_nothing
        self.num_empty_answers += row.answer_is_empty and not row.holds_nothing
        if row.model:
            self.models.add(row.model)
        self.unread.update(row.unread)

    def _enter(self, whose: Literal["target", "judge"], usage: Usage | None) -> None:
        self.calls[whose] += 1
        if usage is not None:
            self.reports[whose] += 1
            self.usage[whose] += usage

    @property
    def totals(self) -> dict[str, int]:
        """Counts over all trials."""
        target, judge = self.usage["target"], self.usage["judge"]
        return {
            "total_tokens": self.total_tokens,
            "judge_tokens": judge.total_tokens,
            "cached_tokens": target.cached_tokens or 0,
            "reasoning_tokens": target.reasoning_tokens or 0,
            "judge_cached_tokens": judge.cached_tokens or 0,
            "judge_reasoning_tokens": judge.reasoning_tokens or 0,
            "cached_verdicts": self.cached_verdicts,
            "num_unanswered": self.num_unanswered,
            "empty_answers": self.num_empty + self.num_empty_answers,
            "trial_errors": self.trial_errors,
        }

    @property
    def num_responses(self) -> int:
        """The number of trials with a response."""
        return len(self._seconds)

    def seconds(self) -> dict[str, float]:
        """Return mean and 95th percentile (nearest rank) of the target's seconds; empty without a response."""
        if not self.num_responses:
            return {}
        import numpy as np

        p95 = float(np.quantile(self._seconds, 0.95, method="inverted_cdf"))
        return {"target_seconds.mean": fmean(self._seconds), "target_seconds.p95": p95}
