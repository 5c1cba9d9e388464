"""Defines each setting of an evaluation once (type, bounds, help), and the command that is stored to repeat a run.

The options of `evaltrack run`, the keyword arguments of `run_eval`, the parameters of `MLproject`, the logged params
and the settings reference are generated from `EvaluationConfig`, or a test compares them with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from evaltrack.errors import UsageError
from evaltrack.evaluation.ask import JUDGE_TIMEOUT, TIMEOUT
from evaltrack.evaluation.loop import CONCURRENCY
from evaltrack.golden.selection import Selection, filter_words, parse_filters
from evaltrack.metrics.measure import PASS_THRESHOLD, Rules
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.metrics.tokens import MAX_PRICE, Prices
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Weights
from evaltrack.records.config import Config, OptionalText, Table, Texts, setting, traits
from evaltrack.records.run import MAX_K, OWN_PARAM
from evaltrack.system.retries import CALL_SECONDS
from evaltrack.tracking.writer import TraceChoice

LABEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.: -]{0,199}")
"""Names that MLflow accepts for a param and a tag on every system, with room for a prefix."""

RESERVED_TAGS = ("evaltrack.", "mlflow.")


def check_labels(params: Iterable[str], tags: Iterable[str]) -> None:
    """Refuse names of params and tags that MLflow would reject, or that have a meaning there.

    Raises:
        UsageError: all problems, one per line.
    """
    problems = []
    for kind, names in {"param": params, "tag": tags}.items():
        for name in names:
            label = f"`{kind}=`: `{shown_text(name)[:80]}`"
            if not LABEL_NAME.fullmatch(name):
                problems.append(f"{label} is no name; write letters, digits, `_`, `.`, `:` and `-`, at most 200")
            if kind == "tag" and name.lower().startswith(RESERVED_TAGS):
                problems.append(f"{label} begins as a tag of {name.partition('.')[0]} does; choose another name")
    if problems:
        raise UsageError("\n".join(problems))


EngineName = Literal["local", "ray"]
"""The engine that asks questions: this process, or the workers of a Ray cluster."""

RubricName = Literal["answer", "reasoning"]
"""The rubric of the judges: is the answer right, or how was the conclusion reached."""

MAX_CONCURRENCY = 1024
MAX_TRIALS = 1000
MAX_ENGINE_WORKERS = 1024
MAX_WEIGHT = 10
"""Maximum exponent; larger ones may make a combined score overflow or underflow a float."""


AUTO_TARGET = "auto"

_input = partial(setting, group="What is evaluated")
_judging = partial(setting, group="Judges and scores")
_result = partial(setting, group="Result", shapes=False)
_mlflow = partial(setting, group="In MLflow", logged="never", shapes=False)
_execution = partial(setting, group="Execution", logged="chosen", shapes=False)
_cost = partial(setting, group="Tokens, cost and secrets")
_price = partial(_cost, None, logged="never", shapes=False, ge=0, le=MAX_PRICE)


class EvaluationConfig(Config):
    """The settings of one evaluation; `of` creates one with readable errors."""

    command = "run"

    golden: OptionalText = _input(
        "", "The golden set.  [default: the only one in golden/]", logged="never", shapes=False
    )
    target: OptionalText = _input(
        AUTO_TARGET,
        "bm25:DIR, python:MODULE:FUNCTION, http://…, recorded:FILE, command:PROGRAM, openai:MODEL, traces:EXPERIMENT,"
        " models:/NAME@ALIAS, runs:/RUN/NAME, endpoints:/NAME; auto: the corpus next to GOLDEN.",
        option="-t --target",
        logged="never",
        shapes=False,
    )
    target_options: Table = _input(
        {}, "Option for the target, as KEY=VALUE; repeatable.", option="--target-option", logged="never"
    )
    model: str = _input("", "Name of the target's model, if its responses do not name it.", logged="never")
    k: int = _input(5, "Number of retrieved sources to score.", option="-k", ge=1, le=MAX_K)
    filter: Texts = _input(
        (),
        "Questions to ask, by domain, difficulty, category, id or metadata.KEY, such as"
        " domain=travel,difficulty!=hard. A comma means and, a repeated option means or.",
        option="--filter",
        logged="never",
    )
    only_failed: OptionalText = _input(
        "",
        "Ask only the questions that failed in an earlier run, given by id or name.",
        option="--only-failed",
        logged="chosen",
    )
    sample: int = _input(0, "Number of questions to draw at random; 0: all.", option="--sample", logged="chosen", ge=0)
    sample_seed: int = _input(
        0, "Seed of `sample`; it draws the same questions in any order of the file.", logged="chosen", ge=0
    )
    judge: Texts = _judging(
        ("none",),
        "none, openai (gpt-4o-mini), openai:MODEL, recorded:FILE or package.module:function; repeat for a panel.",
        option="--judge",
        shapes=False,
    )
    scores: Texts = _judging(
        (),
        "Additional score: a built-in one (exact_match, token_f1, contains,"
        " context_precision, faithfulness, tool_order, tool_arguments, cost, regex:PATTERN, json_schema:FILE),"
        " mlflow:SCORER, or your own as package.module:function; NAME=SCORE names it; repeatable.",
        option="--score",
        logged="chosen",
    )
    judge_prompt: str = _judging(
        "",
        "Prompt of MLflow's registry for openai: judges: prompts:/NAME@ALIAS or prompts:/NAME/VERSION.",
        logged="chosen",
        shapes=False,
    )
    rubric: RubricName = _judging("answer", "What judges grade: the answer, or its reasoning.", option="--rubric")
    rubric_weights: str = _judging(
        "", "Weights of the reasoning rubric, e.g. h_count=0.3,oscillation=0.1.", logged="never"
    )
    pass_threshold: float = _judging(
        PASS_THRESHOLD, "Lowest judge score that passes.", option="--pass-threshold", ge=0, le=1
    )
    judge_timeout: float = _judging(JUDGE_TIMEOUT, "Seconds the judges may take per question.", shapes=False, gt=0)
    call_timeout: float = _judging(CALL_SECONDS, "Seconds for one call of a judge's model.", shapes=False, gt=0)
    verdict_cache: bool = _judging(True, "Reuse verdicts of earlier runs.", shapes=False)
    require: str = _result(
        "",
        "Exit 1 if the metrics miss these bounds: minimum, target, good, functional, or your own, such as"
        " 'recall_at_k>=0.8,mrr>0.7'.",
        option="--require",
        logged="chosen",
    )
    evaluation_json: OptionalText = _result("", "Also write evaluation.json to this file.", logged="never")
    trials: int = _execution(
        1, "Number of times to ask each question.", option="--trials", logged="always", shapes=True, ge=1, le=MAX_TRIALS
    )
    concurrency: int = _execution(
        CONCURRENCY, "Questions in flight at once.", option="--concurrency", logged="always", ge=1, le=MAX_CONCURRENCY
    )
    timeout: float = _execution(
        TIMEOUT, "Seconds the target may take per question.", option="--timeout", logged="always", gt=0
    )
    in_process: bool = _execution(False, "Call python: functions in this process, for a debugger.")
    engine: EngineName = _execution("local", "Ask questions in this process (local), or on a Ray cluster.")
    engine_address: str = _execution(
        "",
        "Address of the Ray cluster.  [default: Ray's own settings, else workers on this machine]",
        logged="never",
    )
    engine_workers: int = _execution(
        0,
        "Number of Ray workers, which share `concurrency`; 0: one for each CPU.",
        ge=0,
        le=MAX_ENGINE_WORKERS,
    )
    experiment: OptionalText = _mlflow(
        "", "MLflow experiment; created if needed.  [default: MLflow's own]", option="--experiment"
    )
    run_name: OptionalText = _mlflow(
        "", "Name of the MLflow run.  [default: golden set, target, k and params]", option="--run-name"
    )
    param: Table = _mlflow(
        {},
        "Your own MLflow param, such as chunk_size=600; `compare` shows it; repeatable.",
        option="--param",
        shapes=True,
    )
    tag: Table = _mlflow({}, "Tag for the run, as NAME=VALUE; repeatable.", option="--tag")
    note: OptionalText = _mlflow("", "First text of the run's description in MLflow.")
    traces: TraceChoice = _mlflow(
        "auto",
        "Questions that get an MLflow trace; auto: all if there are at most 200, else the failed ones.",
        option="--traces",
        logged="always",
    )
    alpha: float = _cost(2.0, "Exponent of hit in the combined score.", ge=0, le=MAX_WEIGHT)
    beta: float = _cost(0.5, "Exponent of the tokens in the combined score.", ge=0, le=MAX_WEIGHT)
    gamma: float = _cost(1.5, "Exponent of the judge's score in the combined score.", ge=0, le=MAX_WEIGHT)
    price_in: float | None = _price("USD per million input tokens of the target.")
    price_out: float | None = _price("USD per million output tokens of the target.")
    judge_price_in: float | None = _price("USD per million input tokens of the judge.")
    judge_price_out: float | None = _price("USD per million output tokens of the judge.")
    redact: Texts = _cost((), "Regular expression; matches are removed from responses.", logged="never")

    @model_validator(mode="after")
    def _fit_together(self) -> EvaluationConfig:
        """Check the rubric's weights, the filters and the labels, and that a price list has both of its prices."""
        RubricWeights.parse(self.rubric_weights)
        parse_filters(self.filter)
        check_labels(self.param, self.tag)
        judge = self.judge_price_in, self.judge_price_out
        for whose, pair in (("target", (self.price_in, self.price_out)), ("judge", judge)):
            if pair.count(None) == 1:
                raise UsageError(f"prices of the {whose}: give the price of input and of output, or neither")
        return self

    @property
    def selection(self) -> Selection:
        """The questions to ask, without `only_failed`, which is resolved elsewhere."""
        return Selection(parse_filters(self.filter), None, self.sample, self.sample_seed)

    @property
    def own_tags(self) -> dict[str, str]:
        """The user's tags, and the note; a run has them from its start."""
        return {**self.tag, **({"mlflow.note.content": self.note} if self.note else {})}

    @property
    def weights(self) -> Weights:
        """The exponents of the combined score."""
        return Weights(alpha=self.alpha, beta=self.beta, gamma=self.gamma)

    @property
    def prices(self) -> Prices | None:
        """The prices of the target."""
        return _prices(self.price_in, self.price_out)

    @property
    def judge_prices(self) -> Prices | None:
        """The prices of the judge."""
        return _prices(self.judge_price_in, self.judge_price_out)

    @property
    def rules(self) -> Rules:
        """The rules for scores and passing."""
        reasoning = RubricWeights.parse(self.rubric_weights) if self.rubric == "reasoning" else None
        return Rules(self.k, self.weights, self.pass_threshold, reasoning)

    @property
    def weights_text(self) -> str:
        """The weights of the scores, as the signature has them."""
        if self.rubric == "reasoning":
            return str(RubricWeights.parse(self.rubric_weights))
        return ",".join(f"{name}={value:.15g}" for name, value in self.weights.model_dump().items())

    def with_(self, **values: Any) -> EvaluationConfig:
        """Return these settings with some changed; raises as `of` does."""
        return self.of(**dict(self) | values)

    @property
    def options_of_target(self) -> dict[str, str]:
        """The target's settings, with `in_process` if it is set."""
        return {**({"in_process": "true"} if self.in_process else {}), **self.target_options}

    @property
    def redact_digest(self) -> str:
        """The number of patterns and their digest; the patterns themselves may name secrets."""
        digest = sha256(json.dumps(self.redact).encode()).hexdigest()[:16]
        return f"{len(self.redact)} pattern{'' if len(self.redact) == 1 else 's'}, sha256 {digest}"

    def shaping(self) -> dict[str, Any]:
        """Return the settings that affect rows, by name, with patterns as a digest; they must be equal to resume."""
        named = {name: getattr(self, name) for name, field in type(self).model_fields.items() if traits(field).shapes}
        return {name: value for name, value in named.items() if name != "model" or value} | {
            "redact": self.redact_digest
        }

    def params(self) -> dict[str, str]:
        """Return the settings as MLflow params: each weight and all in one text, and prices if there are any."""
        params = {"weights": self.weights_text}
        for name, field in type(self).model_fields.items():
            value, logged = getattr(self, name), traits(field).logged
            if logged == "always" or (logged == "chosen" and value != field.default):
                params[name] = _text(value)
        if self.rubric == "reasoning":
            params["rubric_weights"] = self.weights_text
        params |= {"redact": self.redact_digest} if self.redact else {}
        params |= {"filter": filter_words(parse_filters(self.filter))} if self.filter else {}
        for name, prices in {"prices": self.prices, "judge_prices": self.judge_prices}.items():
            if prices:
                params[name] = f"{prices.input_per_million:g}/{prices.output_per_million:g} USD per million"
        params |= {f"{OWN_PARAM}{name}": shown_text(value) for name, value in self.param.items()}
        return params | {f"target.{key}": shown_text(option) for key, option in self.target_options.items()}


def _prices(price_in: float | None, price_out: float | None) -> Prices | None:
    return None if price_in is None or price_out is None else Prices(price_in, price_out)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


class Command(BaseModel):
    """The user's command in a form that can be stored and repeated, without secrets and file contents."""

    model_config = ConfigDict(frozen=True)

    golden: str
    target: str
    settings: EvaluationConfig
    folder: str

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Command:
        """Return a stored command.

        Raises:
            UsageError: it is from another version, or was started in another folder.
        """
        try:
            command = cls.model_validate(stored)
        except (ValidationError, TypeError) as error:
            raise UsageError(f"the run was started by another version of evaltrack: {error}; evaluate again") from None
        if Path(command.folder) != Path.cwd():
            raise UsageError(f"the run was started in {command.folder}; change to that folder first")
        return command
