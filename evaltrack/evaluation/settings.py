"""Everything that shapes an evaluation besides golden set and target; each setting is logged as a param."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Literal, get_args

from evaltrack.errors import UsageError
from evaltrack.evaluation.loop import CONCURRENCY, JUDGE_TIMEOUT, TIMEOUT
from evaltrack.llm import CALL_SECONDS
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Weights
from evaltrack.records.signature import MAX_K
from evaltrack.scoring.measure import PASS_THRESHOLD, Rules
from evaltrack.scoring.rubric import RubricWeights
from evaltrack.scoring.tokens import Prices
from evaltrack.tracking.writer import TraceChoice

RubricName = Literal["answer", "reasoning"]
"""What judges are asked: whether an answer is right, or how a conclusion was reached."""

PROCESSES = ("workers", "target_memory", "in_process")
"""Settings of a function's processes, which shape no number."""

MAX_CONCURRENCY = 1024
MAX_TRIALS = 1000
MAX_WEIGHT = 10
"""With larger exponents a combined score may be too large or too small for a float."""


@dataclass(frozen=True)
class Settings:
    """Settings of one evaluation.

    `timeout` is in seconds for the target, `judge_timeout` for all judges, each for one question; `call_timeout` is for
    one call of a judge's model. `traces` chooses the questions that get an MLflow trace; `auto` is all of them up to
    1,000 and none above. Each question is asked `trials` times. `require` names criteria that the run must reach.
    `model` names the target's model where the target cannot. A function of the user runs in `workers` processes of at
    most `target_memory` each, such as ``2GB``, or `in_process`. Prices are in USD per million tokens. What matches a
    pattern of `redact` is taken out of every response.
    """

    k: int = 5
    model: str = ""
    judges: tuple[str, ...] = ("auto",)
    target_options: Mapping[str, str] = field(default_factory=dict)
    rubric: RubricName = "answer"
    rubric_weights: RubricWeights = field(default_factory=RubricWeights)
    weights: Weights = field(default_factory=Weights)
    pass_threshold: float = PASS_THRESHOLD
    concurrency: int = CONCURRENCY
    timeout: float = TIMEOUT
    judge_timeout: float = JUDGE_TIMEOUT
    call_timeout: float = CALL_SECONDS
    trials: int = 1
    traces: TraceChoice = "auto"
    verdict_cache: bool = True
    require: str = ""
    redact: tuple[str, ...] = ()
    prices: Prices | None = None
    judge_prices: Prices | None = None
    workers: int = 1
    target_memory: str = ""
    in_process: bool = False

    def check(self) -> None:
        """Refuse values that no evaluation can be run with.

        Raises:
            UsageError: the message names the first one.
        """
        if not (isinstance(self.k, int) and 1 <= self.k <= MAX_K):
            raise UsageError(f"k is {self.k}; write a whole number from 1 to {MAX_K}")
        if not (isinstance(self.trials, int) and 1 <= self.trials <= MAX_TRIALS):
            raise UsageError(f"trials is {self.trials}; write a whole number from 1 to {MAX_TRIALS}")
        if not (isinstance(self.concurrency, int) and 1 <= self.concurrency <= MAX_CONCURRENCY):
            raise UsageError(f"concurrency is {self.concurrency}; write a whole number from 1 to {MAX_CONCURRENCY}")
        for name in ("timeout", "judge_timeout", "call_timeout"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError(f"{name} is {getattr(self, name)}; write a number of seconds above 0")
        if self.rubric not in get_args(RubricName):
            raise UsageError(f"rubric is {self.rubric}; write answer or reasoning")
        self.rubric_weights.check()
        if not 0 <= self.pass_threshold <= 1:
            raise UsageError(f"pass_threshold is {self.pass_threshold}; write a number from 0 to 1")

    @property
    def rules(self) -> Rules:
        """What shapes scores and passing."""
        reasoning = self.rubric_weights if self.rubric == "reasoning" else None
        return Rules(self.k, self.weights, self.pass_threshold, reasoning)

    @property
    def weights_text(self) -> str:
        """The weights that shape the scores, in the form of the signature."""
        if self.rubric == "reasoning":
            return str(self.rubric_weights)
        return ",".join(f"{name}={value:.15g}" for name, value in self.weights.model_dump().items())

    @property
    def options_of_target(self) -> dict[str, str]:
        """The target's settings, with those of the processes of a function where they were chosen."""
        chosen = {"workers": str(self.workers) if self.workers != 1 else "", "memory": self.target_memory}
        chosen["in_process"] = "true" if self.in_process else ""
        return {name: value for name, value in chosen.items() if value} | dict(self.target_options)

    @property
    def redact_digest(self) -> str:
        """How many patterns there are, and a digest that tells them from others: they may name what is secret."""
        digest = sha256(json.dumps(self.redact).encode()).hexdigest()[:16]
        return f"{len(self.redact)} pattern{'' if len(self.redact) == 1 else 's'}, sha256 {digest}"

    def params(self) -> dict[str, str]:
        """The settings as MLflow's params hold them: weights one by one and in one text, prices where there are any."""
        params = {name: f"{value:.15g}" for name, value in self.weights.model_dump().items()}
        params["weights"] = self.weights_text
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name in ("weights", "model") or value is None or value == "":
                continue
            if setting.name in PROCESSES and value == setting.default:
                continue
            if setting.name == "rubric_weights":
                if self.rubric == "reasoning":
                    params[setting.name] = str(value)
            elif setting.name == "judges":
                params["judge"] = ",".join(value)
            elif setting.name == "redact":
                params |= {"redact": self.redact_digest} if value else {}
            elif isinstance(value, Mapping):
                params |= {f"target.{key}": shown_text(option) for key, option in value.items()}
            elif isinstance(value, Prices):
                params[setting.name] = f"{value.input_per_million:g}/{value.output_per_million:g} USD per million"
            else:
                params[setting.name] = f"{value:.15g}" if isinstance(value, float) else str(value)
        return params


def weights_of(alpha: float, beta: float, gamma: float) -> Weights:
    """The weights of the combined score.

    Raises:
        UsageError: one is not from 0 to `MAX_WEIGHT`.
    """
    for name, value in {"alpha": alpha, "beta": beta, "gamma": gamma}.items():
        if not 0 <= value <= MAX_WEIGHT:
            raise UsageError(f"{name} is {value:g}; write a number from 0 to {MAX_WEIGHT}")
    return Weights(alpha=alpha, beta=beta, gamma=gamma)


def prices_of(price_in: float | None, price_out: float | None, what: str) -> Prices | None:
    """Prices in USD per million tokens, or None where none is given.

    Raises:
        UsageError: only one is given, or one is negative.
    """
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise UsageError(f"{what}: give the price of input and of output, or neither")
    if min(price_in, price_out) < 0:
        raise UsageError(f"{what}: a price is negative")
    return Prices(price_in, price_out)
