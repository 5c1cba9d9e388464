"""The judges and the scores of an evaluation, opened with its settings, and the cache of their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import MappingProxyType

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.judges import JudgeFunctions, Models, open_judge
from evaltrack.judges.cache import VerdictCache, cache_folder
from evaltrack.records import Judge, Scorer
from evaltrack.scorers.opening import Functions, open_scorers
from evaltrack.tracking.prompts import registered_prompt
from evaltrack.tracking.store import connect


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
                concurrency=settings.concurrency,
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
