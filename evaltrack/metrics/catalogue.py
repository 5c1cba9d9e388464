"""Defines the table of all metrics, built-in and user-defined, from which reports, gates and comparisons read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

from evaltrack.metrics.metric import Aim, Part, Score, Threshold
from evaltrack.metrics.rubric import DIMENSIONS, MODES, TIER_SCORES, TIERS
from evaltrack.records import OwnScore, Signature
from evaltrack.records.row import FIELDS

K: frozenset[Part] = frozenset({"k"})
JUDGE: frozenset[Part] = frozenset({"judge"})
WEIGHTED: frozenset[Part] = frozenset({"judge", "weights"})
PASSING: frozenset[Part] = frozenset({"k", "judge", "pass_threshold"})

_Retrieval = partial(Score, depends_on=K, retrieval=True)
_Judged = partial(Score, depends_on=JUDGE, main=False)
_Agent = partial(Score, main=False, binary=True)
_Usage = partial(Score, tells_result=False, span=None)
_Share = partial(Score, binary=True, form="percent")
_Trials = partial(_Share, depends_on=PASSING, main=False)
_Reasoning = partial(Score, depends_on=JUDGE, main=False)
_ReasoningShare = partial(_Share, main=False)

AGENT_SCORES = (
    _Agent("tools_called", "Tools called", "1 if every expected tool was called, else 0", main=True),
    _Agent("tool_invoked", "A tool invoked", "1 if an expected tool was called, else 0"),
    _Agent("tools_coordinated", "Tools coordinated", "several expected tools: 1 if all of them were called, else 0"),
    _Agent(
        "sources_included", "Sources included", "answerable, with expected tools: 1 if the output holds sources, else 0"
    ),
)

TRIAL_SCORES = (
    _Trials("pass_at_n", "Passed in one trial", "trials: 1 if one of the n passed, else 0"),
    _Trials("pass_hat_n", "Passed in all trials", "trials: 1 if all n passed, else 0"),
    _Trials(
        "flaky", "Flaky", "trials: 1 if some passed and some did not, else 0", mean="flaky_rate", higher_is_better=False
    ),
)
OF_TRIALS = tuple(score.name for score in TRIAL_SCORES)

REASONING_SCORES = (
    Score(
        "reasoning_score",
        "Reasoning score",
        "the rubric's score, from 0 to 100",
        depends_on=WEIGHTED,
        headline=5,
        max_drop=Threshold(0.10),
        span=100.0,
        form="points",
    ),
    _Reasoning(
        "hypotheses", "Hypotheses", "distinct hypotheses in the response", span=None, aim=Aim(3.5, published=1.2)
    ),
    _Reasoning(
        "shifts",
        "Perspective shifts",
        "genuine shifts of perspective in the response",
        span=None,
        aim=Aim(2.8, published=0.3),
    ),
    *(
        _Reasoning(
            name,
            "H-count (of 10)" if name == "h_count" else name.replace("_", " ").capitalize(),
            f"the rubric's dimension {name.replace('_', ' ')}, from 0 to 10",
            span=10.0,
        )
        for name in DIMENSIONS
    ),
    _Share(
        "coupling_violation",
        "Coupling violations",
        "1 if the claimed confidence exceeds the earned one, else 0; only responses that express confidence",
        mean="coupling_violation_rate",
        depends_on=JUDGE,
        higher_is_better=False,
        aim=Aim(0.10, published=0.45, higher_is_better=False),
    ),
    *(
        _ReasoningShare(
            name,
            f"Tier {tier}, {each.label} ({each.action.lower()})",
            f"1 if the response is of tier {tier}, else 0",
            mean=f"{name}_share",
            depends_on=WEIGHTED,
            compared=tier == 0,  # hard fails
            higher_is_better=tier != 0,
            max_drop=None if tier else Threshold(0.10, relative=False),
        )
        for name, (tier, each) in zip(TIER_SCORES, TIERS.items(), strict=True)
    ),
    *(
        _ReasoningShare(
            f"mode_{mode}",
            f"Mode {mode}",
            f"1 if its mode is {mode}, else 0",
            mean=f"mode_{mode}_share",
            depends_on=JUDGE,
            compared=False,
        )
        for mode in MODES
    ),
)

SCORES = (
    _Retrieval("recall_at_k", "Recall@{k}", "relevant in the first k / relevant", headline=2, max_drop=Threshold(0.05)),
    _Retrieval("precision_at_k", "Precision@{k}", "relevant in the first k / k"),
    _Retrieval(
        "reciprocal_rank",
        "MRR",
        "1 / rank of the first relevant in the first k, else 0",
        mean="mrr",
        headline=3,
        max_drop=Threshold(0.10),
    ),
    _Retrieval("hit", "Hit rate", "1 if any relevant is in the first k, else 0", mean="hit_rate", binary=True),
    _Retrieval("ndcg_at_k", "nDCG@{k}", "discounted gain of the first k / that of the ideal list"),
    Score(
        "judged_at_k",
        "Judged@{k}",
        "graded questions: graded sources in the first k / returned ones",
        depends_on=K,
        main=False,
        tells_result=False,
    ),
    _Share(
        "negative_pass",
        "Negatives passed",
        "negatives: 1 if the target declined, else 0",
        mean="negative_pass_rate",
        depends_on=JUDGE,
        max_drop=Threshold(0.10),
    ),
    _Share(
        "false_abstention",
        "False abstentions",
        "answerable: 1 if the target declined, else 0",
        mean="false_abstention_rate",
        higher_is_better=False,
        max_drop=Threshold(0.10, relative=False),  # its baseline is often 0
    ),
    Score(
        "overall_score",
        "Judge score",
        "the judge's overall score, in [0, 1]",
        mean="judge_score",
        depends_on=JUDGE,
        headline=4,
        max_drop=Threshold(0.10),
    ),
    _Judged("accuracy", "Accuracy", "the judge: correctness of the answer's facts"),
    _Judged("completeness", "Completeness", "the judge: share of the expected facts in the answer"),
    _Judged("relevance", "Relevance", "the judge: how well it answers the question"),
    _Judged(
        "judge_spread",
        "Judge spread",
        "a panel: highest minus lowest overall score",
        higher_is_better=False,
        tells_result=False,
    ),
    *AGENT_SCORES,
    _Usage("num_tokens", "Tokens", "tokens the target used", main=False, higher_is_better=False, form="count"),
    _Usage(
        "combined_score", "Combined score", "hit^alpha * judge^gamma / (tokens / 1000)^beta", depends_on=K | WEIGHTED
    ),
    _Share(
        "pass",
        "Pass rate",
        "1 if the question passed, else 0",
        mean="pass_rate",
        depends_on=PASSING,
        headline=1,
        tells_result=False,  # `passed` does
    ),
    *TRIAL_SCORES,
    *REASONING_SCORES,
)

LATENCIES = tuple(
    _Usage(
        "seconds",
        f"Latency p{percent}, s",
        f"seconds within which the target answered {percent} % of the questions, by nearest rank",
        mean=f"latency_p{percent}",
        higher_is_better=False,
        quantile=percent / 100,
    )
    for percent in (50, 95)
)
"""The median, and the time within which 95 % of the questions are answered."""


HEADLINES = tuple(sorted((score for score in SCORES if score.headline), key=lambda score: score.headline))
"""The metrics that are shown first, and for each group."""

GROUP_METRICS = tuple(score.metric for score in HEADLINES)
"""The metrics of each group."""

MAIN_SCORES = tuple(score.name for score in HEADLINES if score.tells_result)
"""The scores that decide if a question scores lower or higher. Other scores decide only if these are all equal."""

COMPARED_SCORES = tuple(score.name for score in SCORES if score.compared)

DEFAULT_DROPS = {score.metric: score.max_drop for score in SCORES if score.max_drop}
"""The default allowed drops."""

BY_NAME = {score.name: score for score in SCORES}
USAGE = frozenset(score.metric for score in (BY_NAME["num_tokens"], *LATENCIES))
"""Metrics that vary even if the answers do not."""
BY_METRIC = {score.metric: score for score in SCORES}
_NAMED = {**{score.metric: score for score in LATENCIES}, **BY_NAME, **BY_METRIC}


def depending_on(part: Part) -> frozenset[str]:
    """Return the metrics that cannot be compared between two runs in which this setting differs."""
    return frozenset(score.metric for score in SCORES if score.compared and part in score.depends_on)


def named_score(name: str) -> Score | None:
    """Return the built-in score with this metric or score name; None if there is none."""
    return _NAMED.get(name)


@lru_cache(maxsize=256)
def metric_form(name: str) -> Score:
    """Return the score that formats a metric's values. One of the user's own gets three decimals under its name."""
    title = name.replace("{", "{{").replace("}", "}}")
    return named_score(name) or Score(name, title, "", span=None)


@dataclass(frozen=True)
class MetricTable:
    """All metrics of a run. `own` are the scores that it declares; their score and mean have the same name.

    `latencies` are the latencies by which runs are compared. A single run has none.
    """

    own: tuple[Score, ...] = ()
    latencies: tuple[Score, ...] = ()

    @property
    def scores(self) -> tuple[Score, ...]:
        """All scores: built-in ones first, then the user's own."""
        return (*SCORES, *self.own)

    @cached_property
    def by_name(self) -> dict[str, Score]:
        """The scores by score name."""
        return {**BY_NAME, **{score.name: score for score in self.own}}

    @cached_property
    def by_metric(self) -> dict[str, Score]:
        """The scores by metric name."""
        return {**BY_METRIC, **{score.metric: score for score in (*self.own, *self.latencies)}}

    @property
    def metrics(self) -> frozenset[str]:
        """The names of all metrics."""
        return frozenset(self.by_metric)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of the user's own scores."""
        return tuple(score.name for score in self.own)

    def is_share(self, metric: str) -> bool:
        """Return True if the metric is a share of questions: each question has 1 or 0."""
        return metric in self.by_metric and self.by_metric[metric].binary


def own_scores_of(signature: Signature) -> tuple[OwnScore, ...]:
    """Return the user's own scores that a signature declares, each name once, without names of built-in columns.

    Others may write to the store that a signature comes from.
    """
    free = (score for score in signature.scores if score.name not in BY_NAME and score.name not in FIELDS)
    return tuple({score.name: score for score in free}.values())


@lru_cache(maxsize=64)
def metric_table(*declarations: tuple[OwnScore, ...]) -> MetricTable:
    """Return the metrics of one run, or of several together. The first run that declares a name decides.

    A declaration never replaces a built-in metric, because others may write to the store that it comes from.
    """
    declared = {score.name: score for scores in reversed(declarations) for score in scores}
    order = dict.fromkeys(score.name for scores in declarations for score in scores)
    free = [declared[name] for name in order if name not in BY_NAME and name not in BY_METRIC]
    return MetricTable(tuple(map(_score, free)))


def _score(declared: OwnScore) -> Score:
    return Score(
        declared.name,
        declared.name,
        f"by {declared.computed_by}",
        higher_is_better=declared.higher_is_better,
        binary=declared.binary,
        tells_result=declared.gates,
        span=declared.span,
        own=True,
        gates=declared.gates,
    )
