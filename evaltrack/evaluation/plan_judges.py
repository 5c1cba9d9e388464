"""The judges and the scores of an evaluation, opened with its settings, and the cache of their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.judges import Models, judge_names, open_judge
from evaltrack.judges.cache import VerdictCache, cache_folder
from evaltrack.records import Judge, Scorer
from evaltrack.scorers.opening import Functions, open_scorers


def open_judges(
    names: Iterable[str], settings: EvaluationConfig, cache: VerdictCache | None, models: Models | None = None
) -> tuple[Judge, ...]:
    """The judges with these names, with the settings and the cache of an evaluation.

    Raises:
        UsageError: one cannot be opened.
    """
    judges: list[Judge] = []
    with ExitStack() as opened:
        for name in names:
            judge = open_judge(
                name,
                rubric=settings.rubric,
                concurrency=settings.concurrency,
                call_timeout=settings.call_timeout,
                cache=cache,
                in_process=settings.in_process,
                models=models,
            )
            opened.callback(judge.close)
            judges.append(judge)
        opened.pop_all()  # nothing is closed but where one cannot be opened
    return tuple(judges)


def judges_of(settings: EvaluationConfig, target: str) -> list[str]:
    """The judges by name; `auto` takes the verdicts that lie beside recorded responses before it pays for any."""
    kind, _, place = target.partition(":")
    responses = Path(place.partition("?")[0])
    if settings.judge == ("auto",) and kind == "recorded" and responses.name:
        beside = responses.with_suffix(".verdicts.jsonl")
        if beside.is_file():
            return [f"recorded:{beside}"]
    return judge_names(settings.judge)


def open_scores(
    specs: Sequence[str], functions: Functions | None, settings: EvaluationConfig, judge: Callable[[str], Judge]
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
