"""What is refused before an evaluation begins: it could measure nothing, or its parts do not fit together."""

from __future__ import annotations

from collections.abc import Sequence

from evaltrack.errors import Guide, UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.golden.reader import GoldenSet
from evaltrack.records import Judge


def check_measurable(golden: GoldenSet, settings: EvaluationConfig, judges: Sequence[str]) -> None:
    """Refuse an evaluation that could measure nothing."""
    if settings.rubric == "reasoning" and not judges:
        cure = "set OPENAI_API_KEY or OPENAI_BASE_URL, or name one: `judge=recorded:FILE`"
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
