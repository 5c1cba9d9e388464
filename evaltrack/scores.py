"""From a response to scores, from scores to pass or fail, and from rows to the metrics of a run.

`SCORES` is the one table of what is measured: the CLI, the docs and the comparison read names and directions from it.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, fsum

from evaltrack import retrieval
from evaltrack.records import Question, Response, Row


@dataclass(frozen=True)
class Score:
    """A number for one question (`name`), and for a run (`metric`, its mean over the questions measured)."""

    name: str
    metric: str
    meaning: str
    higher_is_better: bool = True
    by_group: bool = False
    retrieval: bool = False


SCORES = (
    Score("recall_at_k", "recall_at_k", "relevant in the first k / relevant", by_group=True, retrieval=True),
    Score("precision_at_k", "precision_at_k", "relevant in the first k / k", retrieval=True),
    Score(
        "reciprocal_rank", "mrr", "1 / rank of the first relevant in the first k, else 0", by_group=True, retrieval=True
    ),
    Score("hit", "hit_rate", "1 if any relevant is in the first k, else 0", retrieval=True),
    Score("ndcg_at_k", "ndcg_at_k", "discounted gain of the first k / that of the ideal list", retrieval=True),
    Score("negative_pass", "negative_pass_rate", "negatives: 1 if the target declined, else 0"),
    Score(
        "false_abstention",
        "false_abstention_rate",
        "answerable: 1 if the target declined, else 0",
        higher_is_better=False,
    ),
    Score("pass", "pass_rate", "1 if the question passed, else 0", by_group=True),
)

BY_NAME = {score.name: score for score in SCORES}

RESERVED_GROUPS = frozenset({"easy", "medium", "hard", "n", "max", "mean", "p95"})

NO_EXPECTATION = "the question has no retrieval expectation"
NEGATIVE = "the question is a negative"
NO_SOURCES = "the target reports no sources"


@dataclass(frozen=True)
class Measured:
    """What one response measures: values, reasons for the scores without one, dropped repeats, pass or fail."""

    scores: Mapping[str, float]
    unmeasured: Mapping[str, str]
    duplicates: int = 0
    passed: bool | None = None


def measure(question: Question, response: Response, k: int) -> Measured:
    """The scores of one response, and whether the question passed (SPEC sections 3 and 6).

    `passed` is None where something that the rule needs was not measured.
    """
    scores, unmeasured, duplicates = _retrieval(question, response, k)
    if question.negative:
        scores["negative_pass"] = float(response.declined)
    elif question.expected is not None:
        scores["false_abstention"] = float(response.declined)
    passed = _passed(question, response, scores)
    if passed is not None:
        scores["pass"] = float(passed)
    return Measured(scores, unmeasured, duplicates, passed)


def _retrieval(question: Question, response: Response, k: int) -> tuple[dict[str, float], dict[str, str], int]:
    """The retrieval scores by name, or for each the reason why it was not measured; and the repeats dropped."""
    if question.expected is None:
        return {}, _all_unmeasured(NO_EXPECTATION), 0
    if question.negative:
        return {}, _all_unmeasured(NEGATIVE), 0
    if response.sources is None:
        return {}, _all_unmeasured(NO_SOURCES), 0
    ranked, duplicates = retrieval.first_occurrences(source_keys(question, response))
    relevant = relevant_keys(question)
    return (
        {
            "recall_at_k": retrieval.recall_at_k(ranked, relevant, k),
            "precision_at_k": retrieval.precision_at_k(ranked, relevant, k),
            "reciprocal_rank": retrieval.reciprocal_rank(ranked, relevant, k),
            "hit": retrieval.hit(ranked, relevant, k),
            "ndcg_at_k": retrieval.ndcg_at_k(ranked, relevant, k),
        },
        {},
        duplicates,
    )


def source_keys(question: Question, response: Response) -> list[str]:
    """What is compared with the expectation, in order of rank: chunk ids, or titles in the form they compare in.

    A source that lacks the one that is compared still takes up its rank.
    """
    sources = response.sources or ()
    if question.by_title:
        return [retrieval.title_key(s.title) if s.title else f"\0{rank}" for rank, s in enumerate(sources)]
    return [s.chunk_id or f"\0{rank}" for rank, s in enumerate(sources)]


def relevant_keys(question: Question) -> frozenset[str]:
    """The keys that are relevant for an answerable question."""
    expected = question.expected or ()
    return frozenset(map(retrieval.title_key, expected) if question.by_title else expected)


def _passed(question: Question, response: Response, scores: Mapping[str, float]) -> bool | None:
    if question.negative:
        return response.declined
    if "hit" not in scores:
        return None
    called = {call.name for call in response.tool_calls}
    return scores["hit"] == 1 and called.issuperset(question.expected_tools)


def _all_unmeasured(reason: str) -> dict[str, str]:
    return {score.name: reason for score in SCORES if score.retrieval}


class ExactMean:
    """A running mean whose value does not depend on the order of what was added (Shewchuk 1997, as in `math.fsum`)."""

    def __init__(self) -> None:
        self.count = 0
        self._partials: list[float] = []

    def add(self, value: float) -> None:
        """Add one value; the sum stays exact."""
        self.count += 1
        kept = 0
        for partial in self._partials:
            large, small = (value, partial) if abs(value) >= abs(partial) else (partial, value)
            value = large + small
            if rest := small - (value - large):
                self._partials[kept] = rest
                kept += 1
        self._partials[kept:] = [value]

    @property
    def mean(self) -> float:
        """The mean of at least one value."""
        return fsum(self._partials) / self.count


class Summary:
    """The metrics of a run, from its rows as they come by; constant memory but for 8 bytes a row of timings."""

    def __init__(self, k: int) -> None:
        self._k = k
        self.num_questions = self.num_measured = self.num_errors = self.num_negatives = self.duplicates = 0
        self._overall: defaultdict[str, ExactMean] = defaultdict(ExactMean)
        self._groups: defaultdict[str, defaultdict[str, ExactMean]] = defaultdict(lambda: defaultdict(ExactMean))
        self._seconds = array("d")

    def add(self, row: Row) -> None:
        """Count one row. A row that failed adds to `num_errors` and to no mean."""
        self.num_questions += 1
        self.num_negatives += row.question.negative
        self.num_measured += row.passed is not None
        self.num_errors += row.failure is not None
        self.duplicates += row.duplicates
        if row.response is not None:
            self._seconds.append(row.seconds)
        groups = [self._groups[group] for group in _groups(row.question)]
        for name, value in row.scores.items():
            score = BY_NAME[name]
            self._overall[score.metric].add(value)
            if score.by_group:
                for group in groups:
                    group[score.metric].add(value)
        if "precision_at_k" in row.scores:
            reachable = min(self._k, len(relevant_keys(row.question))) / self._k
            self._overall["precision_at_k.max"].add(reachable)

    @property
    def metrics(self) -> dict[str, float]:
        """Means by metric name, in the order of `SCORES`; only what was measured."""
        names = [name for score in SCORES for name in (score.metric, f"{score.metric}.max")]
        return {name: self._overall[name].mean for name in names if name in self._overall}

    @property
    def counts(self) -> dict[str, int]:
        """Over how many questions each of `metrics` is."""
        return {name: self._overall[name].count for name in self.metrics}

    @property
    def totals(self) -> dict[str, int]:
        """What was counted over all questions."""
        return {
            "num_questions": self.num_questions,
            "num_measured": self.num_measured,
            "num_errors": self.num_errors,
            "num_negatives": self.num_negatives,
            "duplicates": self.duplicates,
        }

    @property
    def groups(self) -> dict[str, dict[str, tuple[float, int]]]:
        """Mean and count by metric for each domain and difficulty, the largest groups first."""
        sized = sorted(self._groups.items(), key=lambda item: (-_size(item[1]), item[0]))
        return {
            group: {s.metric: (m[s.metric].mean, m[s.metric].count) for s in SCORES if s.metric in m}
            for group, m in sized
        }

    def seconds(self) -> dict[str, float]:
        """Mean and 95th percentile (nearest rank) of the target's time; empty where nothing was answered."""
        if not self._seconds:
            return {}
        ordered = sorted(self._seconds)
        return {
            "target_seconds.mean": fsum(ordered) / len(ordered),
            "target_seconds.p95": ordered[ceil(0.95 * len(ordered)) - 1],
        }


def _groups(question: Question) -> list[str]:
    """The groups of a question: its domain, with a prefix where it would read as something else, and its difficulty."""
    domain = question.domain
    taken = domain in RESERVED_GROUPS or domain.startswith("domain-") or domain.endswith((".n", ".max"))
    name = f"domain-{domain}" if taken else domain
    return [name, question.difficulty] if question.difficulty else [name]


def _size(means: Mapping[str, ExactMean]) -> int:
    return max((mean.count for mean in means.values()), default=0)
