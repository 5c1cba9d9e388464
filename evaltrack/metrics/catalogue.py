"""The one table of metrics: whatever shows, groups, gates, compares or explains a metric derives from its line here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from evaltrack.metrics.metric import Aim, Hint, Part, Score, Tolerance
from evaltrack.metrics.rubric import DIMENSIONS, MODES, TIER_SCORES, TIERS
from evaltrack.records import OwnScore

NOTHING: frozenset[Part] = frozenset()
K: frozenset[Part] = frozenset({"k"})
JUDGE: frozenset[Part] = frozenset({"judge"})
WEIGHTED: frozenset[Part] = frozenset({"judge", "weights"})
PASSING: frozenset[Part] = frozenset({"k", "judge", "pass_threshold"})

RETRIEVAL_SCORES = (
    Score(
        "recall_at_k",
        "recall_at_k",
        "Recall@{k}",
        "relevant in the first k / relevant",
        depends_on=K,
        headline=2,
        retrieval=True,
        tolerance=Tolerance(0.05),
        hint=Hint(
            0.8,
            ("expected chunks might not be indexed", "query terms do not match the documents' vocabulary"),
            of_embeddings=("the embedding model does not capture semantic similarity",),
        ),
    ),
    Score(
        "precision_at_k",
        "precision_at_k",
        "Precision@{k}",
        "relevant in the first k / k",
        depends_on=K,
        retrieval=True,
        hint=Hint(
            0.6, ("too many irrelevant results", "better ranking or filtering is needed", "chunks might be too small")
        ),
    ),
    Score(
        "reciprocal_rank",
        "mrr",
        "MRR",
        "1 / rank of the first relevant in the first k, else 0",
        depends_on=K,
        headline=3,
        retrieval=True,
        tolerance=Tolerance(0.10),
        hint=Hint(0.7, ("the first result is often wrong", "reranking is needed", "the scoring function needs tuning")),
    ),
    Score(
        "hit",
        "hit_rate",
        "Hit rate",
        "1 if any relevant is in the first k, else 0",
        depends_on=K,
        binary=True,
        retrieval=True,
    ),
    Score(
        "ndcg_at_k",
        "ndcg_at_k",
        "nDCG@{k}",
        "discounted gain of the first k / that of the ideal list",
        depends_on=K,
        retrieval=True,
    ),
    Score(
        "judged_at_k",
        "judged_at_k",
        "Judged@{k}",
        "graded questions: graded sources in the first k / returned ones",
        depends_on=K,
        section="retrieval",
        tells_result=False,
    ),
)

NEGATIVE_SCORES = (
    Score(
        "negative_pass",
        "negative_pass_rate",
        "Negatives passed",
        "negatives: 1 if the target declined, else 0",
        depends_on=JUDGE,
        binary=True,
        form="percent",
        tolerance=Tolerance(0.10),
    ),
    Score(
        "false_abstention",
        "false_abstention_rate",
        "False abstentions",
        "answerable: 1 if the target declined, else 0",
        depends_on=NOTHING,
        higher_is_better=False,
        binary=True,
        form="percent",
        tolerance=Tolerance(0.10, relative=False),  # its baseline is often 0
    ),
)


def _judge_scores() -> Iterator[Score]:
    yield Score(
        "overall_score",
        "judge_score",
        "Judge score",
        "the judge's overall score, in [0, 1]",
        depends_on=JUDGE,
        headline=4,
        tolerance=Tolerance(0.10),
    )
    for name, question in (
        ("accuracy", "correctness of the answer's facts"),
        ("completeness", "share of the expected facts in the answer"),
        ("relevance", "how well it answers the question"),
    ):
        yield Score(name, name, name.capitalize(), f"the judge: {question}", depends_on=JUDGE, section="judge")
    yield Score(
        "judge_spread",
        "judge_spread",
        "Judge spread",
        "a panel: highest minus lowest overall score",
        depends_on=JUDGE,
        section="judge",
        higher_is_better=False,
        tells_result=False,
    )


def _agent_scores() -> Iterator[Score]:
    for name, title, meaning, section in (
        ("tools_called", "Tools called", "1 if every expected tool was called, else 0", ""),
        ("tool_invoked", "A tool invoked", "1 if an expected tool was called, else 0", "agent"),
        (
            "tools_coordinated",
            "Tools coordinated",
            "several expected tools: 1 if all of them were called, else 0",
            "agent",
        ),
        (
            "sources_included",
            "Sources included",
            "answerable, with expected tools: 1 if the output holds sources, else 0",
            "agent",
        ),
    ):
        yield Score(name, name, title, meaning, depends_on=NOTHING, section=section, binary=True)


COST_SCORES = (
    Score(
        "num_tokens",
        "num_tokens",
        "Tokens",
        "tokens the target used",
        depends_on=NOTHING,
        section="usage",
        higher_is_better=False,
        tells_result=False,
        span=None,
        form="count",
    ),
    Score(
        "combined_score",
        "combined_score",
        "Combined score",
        "hit^alpha * judge^gamma / (tokens / 1000)^beta",
        depends_on=K | WEIGHTED,
        tells_result=False,
        span=None,
    ),
)

PASS = Score(
    "pass",
    "pass_rate",
    "Pass rate",
    "1 if the question passed, else 0",
    depends_on=PASSING,
    headline=1,
    binary=True,
    tells_result=False,  # `passed` does
    form="percent",
)


def _trial_scores() -> Iterator[Score]:
    for name, metric, title, meaning, higher in (
        ("pass_at_n", "pass_at_n", "Passed in one trial", "trials: 1 if one of the n passed, else 0", True),
        ("pass_hat_n", "pass_hat_n", "Passed in all trials", "trials: 1 if all n passed, else 0", True),
        ("flaky", "flaky_rate", "Flaky", "trials: 1 if some passed and some did not, else 0", False),
    ):
        yield Score(
            name,
            metric,
            title,
            meaning,
            depends_on=PASSING,
            section="trials",
            higher_is_better=higher,
            binary=True,
            form="percent",
        )


def _reasoning_scores() -> Iterator[Score]:
    yield Score(
        "reasoning_score",
        "reasoning_score",
        "Reasoning score",
        "the rubric's score, from 0 to 100",
        depends_on=WEIGHTED,
        headline=5,
        tolerance=Tolerance(0.10),
        span=100.0,
        form="points",
    )
    for name, title, what, aim in (
        ("hypotheses", "Hypotheses", "distinct hypotheses", Aim(3.5, published=1.2)),
        ("shifts", "Perspective shifts", "genuine shifts of perspective", Aim(2.8, published=0.3)),
    ):
        meaning = f"{what} in the response"
        yield Score(name, name, title, meaning, depends_on=JUDGE, section="reasoning", span=None, aim=aim)
    for name in DIMENSIONS:
        title = "H-count (of 10)" if name == "h_count" else name.replace("_", " ").capitalize()
        meaning = f"the rubric's dimension {name.replace('_', ' ')}, from 0 to 10"
        yield Score(name, name, title, meaning, depends_on=JUDGE, section="reasoning", span=10.0)
    yield Score(
        "coupling_violation",
        "coupling_violation_rate",
        "Coupling violations",
        "1 if the claimed confidence exceeds the earned one, else 0; only responses that express confidence",
        depends_on=JUDGE,
        higher_is_better=False,
        binary=True,
        form="percent",
        aim=Aim(0.10, published=0.45),
    )
    yield from _reasoning_shares()


def _reasoning_shares() -> Iterator[Score]:
    """How the responses fall into tiers and modes; runs are compared by the hard fails alone."""
    shares = [
        (name, f"Tier {tier}, {each.label} ({each.action.lower()})", f"the response is of tier {tier}", WEIGHTED)
        for name, (tier, each) in zip(TIER_SCORES, TIERS.items(), strict=True)
    ]
    shares += [(f"mode_{mode}", f"Mode {mode}", f"its mode is {mode}", JUDGE) for mode in MODES]
    for name, title, what, parts in shares:
        hard_fails = name == TIER_SCORES[0]
        yield Score(
            name,
            f"{name}_share",
            title,
            f"1 if {what}, else 0",
            depends_on=parts,
            section="reasoning",
            binary=True,
            form="percent",
            compared=hard_fails,
            higher_is_better=not hard_fails,
            tolerance=Tolerance(0.10, relative=False) if hard_fails else None,
        )


AGENT_SCORES = tuple(_agent_scores())
TRIAL_SCORES = tuple(_trial_scores())
OF_TRIALS = tuple(score.name for score in TRIAL_SCORES)
REASONING_SCORES = tuple(_reasoning_scores())

SCORES = (
    *RETRIEVAL_SCORES,
    *NEGATIVE_SCORES,
    *_judge_scores(),
    *AGENT_SCORES,
    *COST_SCORES,
    PASS,
    *TRIAL_SCORES,
    *REASONING_SCORES,
)

LATENCIES = tuple(
    Score(
        "seconds",
        f"latency_p{round(100 * share)}",
        f"Latency p{round(100 * share)}, s",
        f"seconds within which the target answered {round(100 * share)} % of the questions, by nearest rank",
        depends_on=frozenset(),
        higher_is_better=False,
        tells_result=False,
        span=None,
        quantile=share,
    )
    for share in (0.5, 0.95)
)
"""The median, and what 95 % of the questions take at most."""


HEADLINES = tuple(sorted((score for score in SCORES if score.headline), key=lambda score: score.headline))
"""Shown first, and for each group."""

BY_NAME = {score.name: score for score in SCORES}
BY_METRIC = {score.metric: score for score in SCORES}


def depending_on(part: Part) -> frozenset[str]:
    """The compared metrics that cannot be, between two runs in which this setting differs."""
    return frozenset(score.metric for score in SCORES if score.compared and part in score.depends_on)


_LATENCIES = {score.metric: score for score in LATENCIES}


def named_score(name: str) -> Score | None:
    """The record of a metric or score of ours."""
    return BY_METRIC.get(name) or BY_NAME.get(name) or _LATENCIES.get(name)


@lru_cache(maxsize=256)
def metric_form(name: str) -> Score:
    """The record that writes its values; of one's own one that writes three decimals under its own name."""
    title = name.replace("{", "{{").replace("}", "}}")
    return named_score(name) or Score(name, name, title, "", depends_on=frozenset(), span=None)


RUNS_AT_ONCE = 64
"""Tables that are held: a page of the server shows some runs, each with scores of its own."""


@dataclass(frozen=True)
class MetricTable:
    """All metrics of a run; `own` are those that it declares, whose score and mean have one name.

    `latencies` are those of the target's time by which runs are compared; a run has none.
    """

    own: tuple[Score, ...] = ()
    latencies: tuple[Score, ...] = ()

    @property
    def scores(self) -> tuple[Score, ...]:
        """Ours, then one's own."""
        return (*SCORES, *self.own)

    @cached_property
    def by_name(self) -> dict[str, Score]:
        """By the name of the score."""
        return {**BY_NAME, **{score.name: score for score in self.own}}

    @cached_property
    def by_metric(self) -> dict[str, Score]:
        """By the name of the mean."""
        return {**BY_METRIC, **{score.metric: score for score in (*self.own, *self.latencies)}}

    @property
    def metrics(self) -> frozenset[str]:
        """The names of the means."""
        return frozenset(self.by_metric)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of one's own."""
        return tuple(score.name for score in self.own)

    def is_share(self, metric: str) -> bool:
        """Whether the mean is the share of questions that have 1."""
        return metric in self.by_metric and self.by_metric[metric].binary


@lru_cache(maxsize=RUNS_AT_ONCE)
def metric_table(*declarations: tuple[OwnScore, ...]) -> MetricTable:
    """The metrics of one run, or of several together, the first of which decides where they declare one name.

    A declaration never takes the place of a metric of ours: it may come from a store that others write to.
    """
    declared = {score.name: score for scores in reversed(declarations) for score in scores}
    order = dict.fromkeys(score.name for scores in declarations for score in scores)
    free = [declared[name] for name in order if name not in BY_NAME and name not in BY_METRIC]
    return MetricTable(tuple(map(_score, free)))


def _score(declared: OwnScore) -> Score:
    return Score(
        declared.name,
        declared.name,
        declared.name,
        f"by {declared.computed_by}",
        depends_on=frozenset(),
        higher_is_better=declared.higher_is_better,
        binary=declared.binary,
        tells_result=declared.gates,
        span=declared.span,
        own=True,
        gates=declared.gates,
    )
