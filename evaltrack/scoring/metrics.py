"""The one table of what is measured: the CLI, the docs, MLflow's charts and the comparison read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from evaltrack.scoring.reasoning import DIMENSIONS, MODES, TIER_SCORES

Part = Literal["k", "judge", "weights", "pass_threshold"]
"""A setting of a run that shapes some metrics and leaves others as they are; a judge's prompt goes with the judge."""


@dataclass(frozen=True)
class Score:
    """A number for one question (`name`), and for a run (`metric`, its mean over the questions measured).

    `depends_on` names the settings without which two runs' values cannot be compared; `section` is where MLflow's
    charts show it, the top level if empty; `span` the largest difference of two values, None where there is no bound.
    """

    name: str
    metric: str
    meaning: str
    _: KW_ONLY
    depends_on: frozenset[Part]
    section: str = ""
    higher_is_better: bool = True
    by_group: bool = False
    retrieval: bool = False
    compared: bool = True
    span: float | None = 1.0

    @property
    def judged_alone(self) -> bool:
        """Whether it follows from a judge's verdict alone, so that no expected source shapes it."""
        return "judge" in self.depends_on and self.depends_on <= {"judge", "weights"} and self.name != "negative_pass"


NOTHING: frozenset[Part] = frozenset()
K: frozenset[Part] = frozenset({"k"})
JUDGE: frozenset[Part] = frozenset({"judge"})
WEIGHTED: frozenset[Part] = frozenset({"judge", "weights"})
PASSING: frozenset[Part] = frozenset({"k", "judge", "pass_threshold"})


def _retrieval_scores() -> Iterator[Score]:
    for name, metric, meaning, by_group in (
        ("recall_at_k", "recall_at_k", "relevant in the first k / relevant", True),
        ("precision_at_k", "precision_at_k", "relevant in the first k / k", False),
        ("reciprocal_rank", "mrr", "1 / rank of the first relevant in the first k, else 0", True),
        ("hit", "hit_rate", "1 if any relevant is in the first k, else 0", False),
        ("ndcg_at_k", "ndcg_at_k", "discounted gain of the first k / that of the ideal list", False),
    ):
        yield Score(name, metric, meaning, depends_on=K, by_group=by_group, retrieval=True)


def _trial_scores() -> Iterator[Score]:
    for name, metric, meaning, higher in (
        ("pass_at_n", "pass_at_n", "trials: 1 if one of the n passed, else 0", True),
        ("pass_hat_n", "pass_hat_n", "trials: 1 if all n passed, else 0", True),
        ("flaky", "flaky_rate", "trials: 1 if some passed and some did not, else 0", False),
    ):
        yield Score(name, metric, meaning, depends_on=PASSING, section="trials", higher_is_better=higher)


def _reasoning_scores() -> Iterator[Score]:
    what = "the rubric's score, from 0 to 100"
    yield Score("reasoning_score", "reasoning_score", what, depends_on=WEIGHTED, by_group=True, span=100.0)
    counted = {"hypotheses": "distinct hypotheses", "shifts": "genuine shifts of perspective"}
    for name, what in counted.items():
        yield Score(name, name, f"{what} in the response", depends_on=JUDGE, section="reasoning", span=None)
    for name in DIMENSIONS:
        meaning = f"the rubric's dimension {name.replace('_', ' ')}, from 0 to 10"
        yield Score(name, name, meaning, depends_on=JUDGE, section="reasoning", span=10.0)
    what = "1 if it claims more confidence than its process earned, else 0; of those that claim any"
    yield Score("coupling_violation", "coupling_violation_rate", what, depends_on=JUDGE, higher_is_better=False)
    for name in TIER_SCORES:
        meaning = f"1 if the response is of {name.replace('_', ' ')}, else 0"
        yield Score(name, f"{name}_share", meaning, depends_on=WEIGHTED, section="reasoning", compared=False)
    for mode in MODES:
        meaning = f"1 if its mode is {mode}, else 0"
        yield Score(
            f"mode_{mode}", f"mode_{mode}_share", meaning, depends_on=JUDGE, section="reasoning", compared=False
        )


def _agent_scores() -> Iterator[Score]:
    for name, meaning in (
        ("tools_called", "1 if every expected tool was called, else 0"),
        ("tool_invoked", "1 if an expected tool was called, else 0"),
        ("tools_coordinated", "several expected tools: 1 if all of them were called, else 0"),
        ("sources_included", "answerable, with expected tools: 1 if the output holds sources, else 0"),
    ):
        yield Score(name, name, meaning, depends_on=NOTHING, section="" if name == "tools_called" else "agent")


RETRIEVAL_SCORES = tuple(_retrieval_scores())
AGENT_SCORES = tuple(_agent_scores())
TRIAL_SCORES = tuple(_trial_scores())
OF_TRIALS = tuple(score.name for score in TRIAL_SCORES)
REASONING_SCORES = tuple(_reasoning_scores())

SCORES = (
    *RETRIEVAL_SCORES,
    Score("negative_pass", "negative_pass_rate", "negatives: 1 if the target declined, else 0", depends_on=JUDGE),
    Score(
        "false_abstention",
        "false_abstention_rate",
        "answerable: 1 if the target declined, else 0",
        depends_on=NOTHING,
        higher_is_better=False,
    ),
    Score("overall_score", "judge_score", "the judge's overall score, in [0, 1]", depends_on=JUDGE, by_group=True),
    Score("accuracy", "accuracy", "the judge: are the answer's facts right", depends_on=JUDGE, section="judge"),
    Score(
        "completeness",
        "completeness",
        "the judge: does it say all that was expected",
        depends_on=JUDGE,
        section="judge",
    ),
    Score("relevance", "relevance", "the judge: does it answer what was asked", depends_on=JUDGE, section="judge"),
    Score(
        "judge_spread",
        "judge_spread",
        "a panel: highest minus lowest overall score",
        depends_on=JUDGE,
        section="judge",
        higher_is_better=False,
    ),
    *AGENT_SCORES,
    Score(
        "num_tokens",
        "num_tokens",
        "tokens the target used",
        depends_on=NOTHING,
        section="usage",
        higher_is_better=False,
        span=None,
    ),
    Score(
        "combined_score",
        "combined_score",
        "hit^alpha * judge^gamma / (tokens / 1000)^beta",
        depends_on=K | WEIGHTED,
        span=None,
    ),
    Score("pass", "pass_rate", "1 if the question passed, else 0", depends_on=PASSING, by_group=True),
    *TRIAL_SCORES,
    *REASONING_SCORES,
)

BY_NAME = {score.name: score for score in SCORES}
BY_METRIC = {score.metric: score for score in SCORES}


def depending_on(part: Part) -> frozenset[str]:
    """The compared metrics that cannot be, between two runs in which this setting differs."""
    return frozenset(score.metric for score in SCORES if score.compared and part in score.depends_on)
