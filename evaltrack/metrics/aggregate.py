"""The metrics of a run, from its rows as they come by."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, fsum
from typing import Literal

from evaltrack.metrics.empty_response import holds_nothing
from evaltrack.metrics.exact_mean import ExactMean, exact_sum
from evaltrack.metrics.relevance import num_expected
from evaltrack.metrics.run_metrics import MetricTable
from evaltrack.records import Row, Usage

SHOWN_ROWS = 20
"""Failed and missed questions kept at most for the renderings; the tables in MLflow hold all."""

LEVELS = ("easy", "medium", "hard")
DOMAIN_PREFIX = "domain-"
Whose = Literal["target", "judge"]


PENDING = 10_000
"""Values that wait to be added up together."""

MAX_MODELS = 10
"""Models that a run names; further ones are left out."""
MAX_UNREAD = 20
"""Fields of responses that a run says it has not read."""


class Ledger:
    """What the asking took, over every trial: tokens, verdicts, failures, seconds; 8 bytes a trial of timings."""

    def __init__(self) -> None:
        self.target_usage = self.judge_usage = Usage(prompt_tokens=0, completion_tokens=0)
        self.total_tokens = self.cached_verdicts = self.trial_errors = self.num_unanswered = 0
        self.num_empty = self.num_empty_answers = 0
        self.calls = {"target": 0, "judge": 0}
        self.reports = {"target": 0, "judge": 0}
        self._seconds = array("d")
        self.models: set[str] = set()
        self.unread: dict[str, int] = {}

    def add(self, row: Row) -> None:
        """Enter one trial. What a failed call cost is in the ledger of whom it was asked."""
        failure, response = row.failure, row.response
        self.trial_errors += failure is not None
        self.total_tokens += row.tokens.count if row.tokens else 0
        if response is not None:
            self._seconds.append(row.seconds)
            self.num_unanswered += response.answer is None
            self.num_empty += holds_nothing(response)
            self.num_empty_answers += response.answer_is_empty
            if response.model and len(self.models) < MAX_MODELS:
                self.models.add(response.model)
            for name in response.unread:
                if name in self.unread or len(self.unread) < MAX_UNREAD:
                    self.unread[name] = self.unread.get(name, 0) + 1
            self._enter("target", response.usage)
        for verdict in (*row.verdicts, *row.score_verdicts.values()):
            self.cached_verdicts += verdict.cached
            if not verdict.cached:
                self._enter("judge", verdict.usage)
        if row.score_usage is not None:
            self._enter("judge", row.score_usage)
        if failure is not None and failure.usage is not None:
            self._enter("judge" if failure.kind == "judge_error" else "target", failure.usage)

    def _enter(self, whose: Whose, usage: Usage | None) -> None:
        self.calls[whose] += 1
        if usage is None:
            return
        self.reports[whose] += 1
        if whose == "judge":
            self.judge_usage += usage
        else:
            self.target_usage += usage

    @property
    def totals(self) -> dict[str, int]:
        """What was counted over all trials."""
        in_batches = (self.judge_usage.batch_prompt_tokens or 0) + (self.judge_usage.batch_completion_tokens or 0)
        return {
            "total_tokens": self.total_tokens,
            "judge_tokens": self.judge_usage.total_tokens,
            "cached_tokens": self.target_usage.cached_tokens or 0,
            "reasoning_tokens": self.target_usage.reasoning_tokens or 0,
            "judge_cached_tokens": self.judge_usage.cached_tokens or 0,
            "judge_reasoning_tokens": self.judge_usage.reasoning_tokens or 0,
            "cached_verdicts": self.cached_verdicts,
            "num_unanswered": self.num_unanswered,
            "trial_errors": self.trial_errors,
        } | ({"judge_batch_tokens": in_batches} if in_batches else {})

    @property
    def num_responses(self) -> int:
        """Trials that a response came back of."""
        return len(self._seconds)

    def seconds(self) -> dict[str, float]:
        """Mean and 95th percentile (nearest rank) of the target's time; empty where nothing was answered."""
        if not self._seconds:
            return {}
        import numpy as np

        count, ascending = len(self._seconds), np.sort(np.frombuffer(self._seconds))
        return {
            "target_seconds.mean": fsum(self._seconds) / count,
            "target_seconds.p95": float(ascending[ceil(0.95 * count) - 1]),
        }


@dataclass(frozen=True)
class _Pending:
    """Values of one score that are still to be added to the means that they enter."""

    means: tuple[ExactMean, ...]
    values: list[float]

    def settle(self) -> None:
        """Add them: their sum is made once for all of these means."""
        if self.values:
            total = exact_sum(self.values)
            for mean in self.means:
                mean.add_sum(total, len(self.values))
            self.values.clear()


class Summary:
    """The metrics of a run, from one row for each question as they come by; its space does not grow with them."""

    def __init__(self, k: int, table: MetricTable | None = None) -> None:
        self._k, self._table = k, table or MetricTable()
        self.num_questions = self.num_measured = self.num_errors = self.num_negatives = self.duplicates = 0
        self._overall: defaultdict[str, ExactMean] = defaultdict(ExactMean)
        self._groups: defaultdict[str, defaultdict[str, ExactMean]] = defaultdict(lambda: defaultdict(ExactMean))
        self._pending: dict[tuple[str, tuple[str, ...]], _Pending] = {}
        self._num_pending = 0
        self._judges: defaultdict[str, ExactMean] = defaultdict(ExactMean)
        self._best: float | None = None
        self.num_judged = self.judge_errors = 0

    def add(self, row: Row) -> None:
        """Count one row. If its target failed it is in no mean; if its judge failed, in none of a judge."""
        self.num_questions += 1
        self.num_negatives += row.question.negative
        self.num_measured += row.passed is not None
        self.num_errors += row.failure is not None
        self.duplicates += row.duplicates
        groups = _groups(row.question.domain, row.question.difficulty)
        for group in groups:
            self._groups[group]  # it is one also where nothing was measured
        for name, value in row.scores.items():
            self._pending_of(name, groups).values.append(value)
        self._num_pending += len(row.scores)
        if self._num_pending >= PENDING:
            self._settle()
        self._add_judged(row)
        if "precision_at_k" in row.scores:
            reachable = min(self._k, num_expected(row)) / self._k
            self._overall["precision_at_k.max"].add(reachable)

    def _pending_of(self, name: str, groups: tuple[str, ...]) -> _Pending:
        """Where a score of a question in these groups waits: it enters means of the run, and of those groups."""
        pending = self._pending.get((name, groups))
        if pending is None:
            score = self._table.by_name[name]
            holders = [self._overall, *(self._groups[group] for group in groups if score.by_group)]
            pending = _Pending(tuple(holder[score.metric] for holder in holders), [])
            self._pending[name, groups] = pending
        return pending

    def _settle(self) -> None:
        """Add up what waits, before a mean or a count is read."""
        for pending in self._pending.values() if self._num_pending else ():
            pending.settle()
        self._num_pending = 0

    def _add_judged(self, row: Row) -> None:
        combined = row.scores.get("combined_score")
        if combined is not None:
            self._best = combined if self._best is None else max(self._best, combined)
        self.num_judged += bool(row.verdicts) and row.failure is None
        self.judge_errors += row.failure is not None and row.failure.kind == "judge_error"
        for verdict in row.verdicts:
            if verdict.overall_score is not None and "overall_score" in row.scores:
                self._judges[verdict.judge].add(verdict.overall_score)

    @property
    def measures_anything(self) -> bool:
        """Whether any question could pass or fail, or has a score of one's own."""
        return self.num_measured > 0 or any(name in self._overall for name in self._table.own_names)

    @property
    def by_judge(self) -> dict[str, tuple[float, int]]:
        """Mean overall score and count of each judge of a panel, by name; empty where there is one judge or none."""
        if len(self._judges) < 2:
            return {}
        return {name: (mean.mean, mean.count) for name, mean in sorted(self._judges.items())}

    @property
    def metrics(self) -> dict[str, float]:
        """Means by metric name, in the order of their table; only what was measured."""
        self._settle()
        names = [name for score in self._table.scores for name in (score.metric, f"{score.metric}.max")]
        means = {name: self._overall[name].mean for name in names if name in self._overall}
        return means if self._best is None else {**means, "combined_score_best": self._best}

    @property
    def counts(self) -> dict[str, int]:
        """Over how many questions each of `metrics` is."""
        self._settle()
        best = self._overall["combined_score"].count if self._best is not None else 0
        return {name: best if name == "combined_score_best" else self._overall[name].count for name in self.metrics}

    @property
    def totals(self) -> dict[str, int]:
        """What was counted over all questions."""
        return {
            "num_questions": self.num_questions,
            "num_measured": self.num_measured,
            "num_errors": self.num_errors,
            "num_negatives": self.num_negatives,
            "duplicates": self.duplicates,
            "num_judged": self.num_judged,
            "judge_errors": self.judge_errors,
        }

    @property
    def groups(self) -> dict[str, dict[str, tuple[float, int]]]:
        """Mean and count by metric for each domain, the largest first, then each difficulty."""
        self._settle()
        sized = sorted(self._groups.items(), key=lambda item: (_level(item[0]), -_size(item[1]), item[0]))
        return {
            group: {s.metric: (m[s.metric].mean, m[s.metric].count) for s in self._table.scores if s.metric in m}
            for group, m in sized
        }


def _groups(domain: str, difficulty: str | None) -> tuple[str, ...]:
    """The groups of a question: its domain, with a prefix where it would read as a difficulty, and its difficulty."""
    is_reserved = domain in LEVELS or domain.startswith(DOMAIN_PREFIX)
    name = DOMAIN_PREFIX + domain if is_reserved else domain
    return (name, difficulty) if difficulty else (name,)


def domain_of(group: str) -> str | None:
    """The domain that a group is; None for a difficulty."""
    return None if group in LEVELS else group.removeprefix(DOMAIN_PREFIX)


def _level(group: str) -> int:
    """Domains first, then the difficulties from easy to hard."""
    return LEVELS.index(group) + 1 if group in LEVELS else 0


def _size(means: Mapping[str, ExactMean]) -> int:
    return max((mean.count for mean in means.values()), default=0)


class Kept:
    """The first rows that failed or did not pass, in the order of the golden set, for the renderings."""

    def __init__(self) -> None:
        self.errors: list[Row] = []
        self.missed: list[Row] = []

    def add(self, row: Row) -> None:
        """Keep the row if it is one of the first of its kind."""
        rows = self.errors if row.failure else self.missed if row.passed is False else None
        if rows is not None:
            rows.append(row)
            rows.sort(key=lambda row: row.position)
            del rows[SHOWN_ROWS:]
