"""What a run takes: calls, tokens, seconds, and what its responses say of models."""

from __future__ import annotations

from array import array
from math import ceil, fsum
from typing import Literal

from evaltrack.records import Response, Row, Usage

Whose = Literal["target", "judge"]

MAX_MODELS = 10
"""Models that a run names; further ones are left out."""
MAX_UNREAD = 20
"""Fields of responses that a run says it has not read."""


class Ledger:
    """What the asking took, over every trial: tokens, verdicts, failures; of its seconds at most 8 bytes a trial.

    `num_empty` are responses that hold nothing, `num_empty_answers` those whose answer is empty beside something else.
    """

    def __init__(self) -> None:
        self.target_usage = self.judge_usage = Usage(prompt_tokens=0, completion_tokens=0)
        self.total_tokens = self.cached_verdicts = self.trial_errors = self.num_unanswered = 0
        self.num_empty = self.num_empty_answers = 0
        self.calls = {"target": 0, "judge": 0}
        self.reports = {"target": 0, "judge": 0}
        self._seconds = array("d")
        self.models: set[str] = set()
        self.unread: dict[str, int] = {}

    def add(self, row: Row) -> None:
        """Enter one trial. What a failed call cost is in the ledger of whom it was asked."""
        failure, response = row.failure, row.response
        self.trial_errors += failure is not None
        self.total_tokens += row.tokens.count if row.tokens else 0
        if response is not None:
            self._seconds.append(row.seconds)
            self._count(response)
            for name in response.unread:
                if name in self.unread or len(self.unread) < MAX_UNREAD:
                    self.unread[name] = self.unread.get(name, 0) + 1
            self._enter("target", response.usage)
        for verdict in (*row.verdicts, *row.score_verdicts.values()):
            self.cached_verdicts += verdict.cached
            if not verdict.cached:
                self._enter("judge", verdict.usage)
        if row.score_usage is not None:
            self._enter("judge", row.score_usage)
        if failure is not None and failure.usage is not None:
            self._enter("judge" if failure.kind == "judge_error" else "target", failure.usage)

    def _count(self, response: Response) -> None:
        self.num_unanswered += response.answer is None
        is_empty = response.holds_nothing
        self.num_empty += is_empty
        self.num_empty_answers += response.answer_is_empty and not is_empty
        if response.model and len(self.models) < MAX_MODELS:
            self.models.add(response.model)

    def _enter(self, whose: Whose, usage: Usage | None) -> None:
        self.calls[whose] += 1
        if usage is None:
            return
        self.reports[whose] += 1
        if whose == "judge":
            self.judge_usage += usage
        else:
            self.target_usage += usage

    @property
    def totals(self) -> dict[str, int]:
        """What was counted over all trials."""
        return {
            "total_tokens": self.total_tokens,
            "judge_tokens": self.judge_usage.total_tokens,
            "cached_tokens": self.target_usage.cached_tokens or 0,
            "reasoning_tokens": self.target_usage.reasoning_tokens or 0,
            "judge_cached_tokens": self.judge_usage.cached_tokens or 0,
            "judge_reasoning_tokens": self.judge_usage.reasoning_tokens or 0,
            "cached_verdicts": self.cached_verdicts,
            "num_unanswered": self.num_unanswered,
            "trial_errors": self.trial_errors,
        }

    @property
    def num_responses(self) -> int:
        """Trials that a response came back of."""
        return len(self._seconds)

    def seconds(self) -> dict[str, float]:
        """Mean and 95th percentile (nearest rank) of the target's time; empty where nothing was answered."""
        if not self.num_responses:
            return {}
        import numpy as np

        count, ascending = self.num_responses, np.sort(self._seconds)
        return {
            "target_seconds.mean": fsum(ascending) / count,
            "target_seconds.p95": float(ascending[ceil(0.95 * count) - 1]),
        }
