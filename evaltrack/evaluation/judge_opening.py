"""The judges of an evaluation, opened with its settings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import MappingProxyType

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.judges import JudgeFunctions, open_judge
from evaltrack.judges.cache import VerdictCache
from evaltrack.records import Judge
from evaltrack.tracking.prompts import registered_prompt
from evaltrack.tracking.store import connect


def open_judges(
    names: Sequence[str],
    settings: EvaluationConfig,
    cache: VerdictCache | None,
    functions: JudgeFunctions = MappingProxyType({}),
    store_uri: str | None = None,
) -> tuple[Judge, ...]:
    """The judges with these names, with the settings and the cache of an evaluation; some are `functions` by name.

    `store_uri` is the MLflow store of their prompt, where it is not the usual one.

    Raises:
        UsageError: one cannot be opened, or there is no such prompt.
        TrackingError: the store of the prompt does not answer.
    """
    judges: list[Judge] = []
    own = registered_prompt(connect(store_uri), settings.judge_prompt) if settings.judge_prompt and names else None
    with ExitStack() as opened:
        for name in names:
            judge = open_judge(
                name,
                rubric=settings.rubric,
                concurrency=settings.concurrency,
                call_timeout=settings.call_timeout,
                cache=cache,
                in_process=settings.in_process,
                own=own,
                function=functions.get(name),
            )
            opened.callback(judge.close)
            judges.append(judge)
        opened.pop_all()  # nothing is closed but where one cannot be opened
    return tuple(judges)
