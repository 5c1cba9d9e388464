"""The metrics of a run, from its rows as they come by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaltrack.metrics.exact_mean import ExactMean, exact, exact_sum, exact_sum_of_counts
from evaltrack.metrics.relevance import num_expected
from evaltrack.metrics.run_metrics import MetricTable
from evaltrack.records import Question, Row

SHOWN_ROWS = 20
"""Failed and missed questions kept at most for the renderings; the tables in MLflow hold all."""

LEVELS = ("easy", "medium", "hard")
DOMAIN_PREFIX = "domain-"

PENDING = 10_000
"""Values that wait to be added up together."""


@dataclass(frozen=True)
class _Pending:
    """Values of one score that are still to be added to the means that they enter."""

    means: tuple[ExactMean, ...]
    values: list[float]

    def settle(self) -> None:
        """Add them: their sum is made once for all of these means."""
        if self.values:
            self.add_sum(exact_sum(self.values), len(self.values))
            self.values.clear()

    def add_sum(self, total: int, count: int) -> None:
        """Add at once `count` values whose `exact_sum` is `total`."""
        for mean in self.means:
            mean.add_sum(total, count)


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
        groups = self._count(row, row.question, 1)
        for name, value in row.scores.items():
            self._pending_of(name, groups).values.append(value)
        self._num_pending += len(row.scores)
        if self._num_pending >= PENDING:
            self._settle()
        self._add_judged(row)

    def add_alike(self, row: Row, question: Question, num_tokens: Sequence[int]) -> None:
        """Count rows that nobody judged and that measure what `row` does but for their tokens, a number for each.

        They have the domain and the difficulty of `question`.
        """
        times = len(num_tokens)
        groups = self._count(row, question, times)
        for name, value in row.scores.items():
            if name != "num_tokens":
                self._pending_of(name, groups).add_sum(times * exact(value), times)
        self._pending_of("num_tokens", groups).add_sum(exact_sum_of_counts(num_tokens), times)

    def _count(self, row: Row, question: Question, times: int) -> tuple[str, ...]:
        """Count what so many rows have in common; their groups."""
        self.num_questions += times
        self.num_negatives += times * row.question.negative
        self.num_measured += times * (row.passed is not None)
        self.num_errors += times * (row.failure is not None)
        self.duplicates += times * row.duplicates
        groups = _groups(question.domain, question.difficulty)
        for group in groups:
            self._groups[group]  # it is one also where nothing was measured
        if "precision_at_k" in row.scores:
            reachable = min(self._k, num_expected(row)) / self._k
            self._overall["precision_at_k.max"].add_sum(times * exact(reachable), times)
        return groups

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

    def wants(self, example: Row, position: int) -> bool:
        """Whether a row that ended as `example` and stands at this position would be kept now."""
        rows = self._of_its_kind(example)
        return rows is not None and (len(rows) < SHOWN_ROWS or position < rows[-1].position)

    def _of_its_kind(self, row: Row) -> list[Row] | None:
        return self.errors if row.failure else self.missed if row.passed is False else None

    def add(self, row: Row) -> None:
        """Keep the row if it is one of the first of its kind."""
        rows = self._of_its_kind(row)
        if rows is not None:
            rows.append(row)
            rows.sort(key=lambda row: row.position)
            del rows[SHOWN_ROWS:]
