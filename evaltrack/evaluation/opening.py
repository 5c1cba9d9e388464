"""Target, judges, scores and cache of an evaluation, opened with its settings, and what is refused before it begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Literal

from evaltrack.errors import Guide, UsageError
from evaltrack.evaluation.ask import Counter, Evaluator
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.golden.reader import GoldenSet
from evaltrack.judges import JudgeFunctions, Models, open_judge
from evaltrack.judges.cache import VerdictCache, cache_folder
from evaltrack.judges.own_scores import Functions
from evaltrack.metrics.criteria import NAMED
from evaltrack.privacy.addresses import shown_text
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Judge, Response, Scorer, Target, Tokens
from evaltrack.targets import default_target, open_target
from evaltrack.tracking.prompts import registered_prompt
from evaltrack.tracking.store import connect

OF_PROCESSES = ("python:", "models:", "runs:")
"""How the names of targets begin that run in processes of their own."""


def named_target(
    target: str | Callable[..., Any] | None,
    golden: GoldenSet,
    settings: EvaluationConfig,
    store_uri: str | None = None,
) -> tuple[Target, str]:
    """The target and its name; the default of the golden set where there is none.

    Raises:
        UsageError: it cannot be opened, or a setting is for other targets.
    """
    if target is None or isinstance(target, str):
        name = target or default_target(golden.path, golden.stats.by["domain"])
        if (settings.workers != 1 or settings.target_memory) and not name.startswith(OF_PROCESSES):
            own = "`workers=` and `target_memory=` are for python: targets and models"
            raise UsageError(f"{own}, not for `{shown_text(name)}`")
        return open_target(name, settings.options_of_target, store_uri), name
    from evaltrack.targets.functions import function_target

    if not callable(target):
        raise UsageError(f"target is {target!r}; name one, or give a function")
    if settings.workers != 1 or settings.target_memory:
        own = "a function that is given as an object runs in this process"
        raise UsageError(f"`workers=` or `target_memory=`: {own}; name it as python:package.module:function")
    own = getattr(target, "__qualname__", type(target).__name__)
    return function_target(target), f"python:{target.__module__}:{own}"


def model_of(target: Target, name: str, settings: EvaluationConfig) -> str:
    """The target's model as far as it is known before anything is asked."""
    return settings.model or target.model or ("bm25" if name.startswith("bm25:") else "")


def open_judges(
    names: Sequence[str],
    settings: EvaluationConfig,
    cache: VerdictCache | None,
    functions: JudgeFunctions = MappingProxyType({}),
    *,
    store_uri: str | None = None,
    models: Models | None = None,
) -> tuple[Judge, ...]:
    """The judges with these names, with the settings and the cache of an evaluation; some are `functions` by name.

    `store_uri` is the MLflow store of their prompt, where it is not the usual one. Models come from `models`, where
    others ask them too.

    Raises:
        UsageError: one cannot be opened, or there is no such prompt.
        TrackingError: the store of the prompt does not answer.
    """
    judges: list[Judge] = []
    models = models or Models(settings.concurrency, settings.call_timeout)
    own = registered_prompt(connect(store_uri), settings.judge_prompt) if settings.judge_prompt and names else None
    with ExitStack() as opened:
        for name in names:
            judge = open_judge(
                name,
                rubric=settings.rubric,
                cache=cache,
                in_process=settings.in_process,
                own=own,
                function=functions.get(name),
                models=models,
            )
            opened.callback(judge.close)
            judges.append(judge)
        opened.pop_all()  # nothing is closed but where one cannot be opened
    return tuple(judges)


def open_scores(
    specs: Sequence[str], functions: Functions, settings: EvaluationConfig, judge: Callable[[str], Judge]
) -> tuple[Scorer, ...]:
    """The scores with these names, with the settings of an evaluation."""
    if not specs:
        return ()
    from evaltrack.judges.open_scores import open_scorers

    return open_scorers(
        specs, functions, in_process=settings.in_process, prices=settings.prices, k=settings.k, judge=judge
    )


def open_cache(settings: EvaluationConfig, opened: ExitStack) -> VerdictCache | None:
    """The cache of verdicts, if it may be used; `opened` closes it."""
    if not settings.verdict_cache:
        return None
    cache = VerdictCache(cache_folder())
    opened.callback(cache.close)
    return cache


def evaluator_of(
    settings: EvaluationConfig,
    target: Target,
    judges: Sequence[Judge],
    scorers: Sequence[Scorer],
    redactor: Redactor,
) -> Evaluator:
    """The evaluator of a target."""
    model = settings.model or target.model
    return Evaluator(
        target,
        rules=settings.rules,
        judges=judges,
        count=_counter(model, always=bool(model or judges or settings.prices or _asks_for_tokens(settings))),
        timeout=settings.timeout,
        judge_timeout=settings.judge_timeout,
        redactor=redactor,
        scorers=scorers,
    )


def _asks_for_tokens(settings: EvaluationConfig) -> bool:
    """Whether a bound is set for tokens, or for the combined score that they are a part of."""
    bounds = [NAMED.get(part.strip(), part) for part in settings.require.split(",")]
    return any("num_tokens" in bound or "combined_score" in bound for bound in bounds)


def _counter(model: str | None, *, always: bool) -> Counter:
    """Counts tokens as the target's model would; without one, as `o200k_base` does.

    Where no model is involved the vocabulary, which takes 0.3 s and 70 MB, is not loaded. `always`: one is, whatever a
    response says.
    """
    from evaltrack.metrics.tokens import count_tokens

    def count(texts: Sequence[str], response: Response) -> Tokens | None:
        if not (always or response.model):
            return None
        tokens = count_tokens(texts, model)
        return _tokens_record(tokens.tokens, "estimated" if model and tokens.estimated else "counted")

    return count


@lru_cache(maxsize=4096)
def _tokens_record(number: int, method: Literal["counted", "estimated"]) -> Tokens:
    """The record of so many tokens, which many responses share."""
    return Tokens(count=number, known=method)


OF_MLFLOW = ("traces:", "models:", "runs:", "endpoints:")
"""How the names of targets begin that ask MLflow, which workers cannot reach."""


def check_measurable(golden: GoldenSet, settings: EvaluationConfig, judges: Sequence[str]) -> None:
    """Refuse an evaluation that could measure nothing."""
    if settings.rubric == "reasoning" and not judges:
        cure = "name one: `judge=openai` or `judge=recorded:FILE`"
        raise UsageError(f"`rubric=reasoning`: there is no judge to observe the reasoning; {cure}", guide=Guide.JUDGES)
    if golden.stats.judged_only == len(golden) and not (judges or settings.scores):
        missing = "no question has expected_chunks, expected_sources or expected_passages, and there is no judge"
        raise UsageError(
            f"{golden.path}: {missing}, so nothing could be measured; add one, or name a judge with `judge=`",
            guide=Guide.JUDGES,
        )


def check_names(judges: Sequence[Judge]) -> None:
    """Judges of a panel are told apart by their names."""
    names = [judge.name for judge in judges]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"`judge=`: two judges are called `{name}`; name each in the `judge` field of its lines")


def check_engine(settings: EvaluationConfig, target: str | Callable[..., Any] | None, functions: Functions) -> None:
    """Refuse settings that cannot hold where the questions are asked.

    Raises:
        UsageError: with all of them; or Ray is not installed.
    """
    if settings.engine == "local":
        if own := [name for name in ("engine_address", "engine_workers") if getattr(settings, name)]:
            names = ", ".join(f"`{name}={shown_text(str(getattr(settings, name)))}`" for name in own)
            raise UsageError(f"{names}: set `engine=ray` too, or leave it out")
        return
    if problems := list(_engine_problems(settings, target, functions)):
        raise UsageError("\n".join(f"`engine=ray`: {problem}" for problem in problems))
    if find_spec("ray") is None:
        raise UsageError("`engine=ray`: ray is not installed; pip install 'ray>=2.40', here and on workers")


def _engine_problems(
    settings: EvaluationConfig, target: str | Callable[..., Any] | None, functions: Functions
) -> Iterator[str]:
    if callable(target):
        yield "a function that is given as an object stays in this process; name it as python:package.module:function"
    for function in functions:
        yield f"`{function}` is given as an object, which stays in this process; name it as package.module:function"
    if isinstance(target, str) and target.startswith(OF_MLFLOW):
        yield f"a {target.partition(':')[0]}: target asks MLflow, which workers cannot reach; take `engine=local`"
    if settings.judge_prompt:
        yield "`judge_prompt=` is read from MLflow, which workers cannot reach; take `engine=local`"
    if settings.in_process:
        yield "`in_process=True` is for a debugger in this process; leave it out"
    if settings.workers != 1:
        yield "`workers=` are processes of this machine; set `engine_workers=`"
    if settings.engine_workers > settings.concurrency:
        many, few = settings.engine_workers, settings.concurrency
        yield f"`engine_workers={many}` share `concurrency={few}`, and each needs 1; set `concurrency={many}` or more"
