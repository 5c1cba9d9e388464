"""The metrics of a run: the table of ours, and a record for each score of one's own that the run declares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from evaltrack.metrics.catalogue import BY_METRIC, BY_NAME, SCORES
from evaltrack.metrics.metric import Score
from evaltrack.records import OwnScore

RUNS_AT_ONCE = 64
"""Tables that are held: a page of the server shows some runs, each with scores of its own."""


@dataclass(frozen=True)
class MetricTable:
    """All metrics of a run; `own` are those that it declares, whose score and mean have one name.

    `latencies` are those of the target's time by which runs are compared; a run has none.
    """

    own: tuple[Score, ...] = ()
    latencies: tuple[Score, ...] = ()

    @property
    def scores(self) -> tuple[Score, ...]:
        """Ours, then one's own."""
        return (*SCORES, *self.own)

    @cached_property
    def by_name(self) -> dict[str, Score]:
        """By the name of the score."""
        return {**BY_NAME, **{score.name: score for score in self.own}}

    @cached_property
    def by_metric(self) -> dict[str, Score]:
        """By the name of the mean."""
        return {**BY_METRIC, **{score.metric: score for score in (*self.own, *self.latencies)}}

    @property
    def metrics(self) -> frozenset[str]:
        """The names of the means."""
        return frozenset(self.by_metric)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of one's own."""
        return tuple(score.name for score in self.own)

    def is_share(self, metric: str) -> bool:
        """Whether the mean is the share of questions that have 1."""
        return metric in self.by_metric and self.by_metric[metric].binary


@lru_cache(maxsize=RUNS_AT_ONCE)
def metric_table(*declarations: tuple[OwnScore, ...]) -> MetricTable:
    """The metrics of one run, or of several together, the first of which decides where they declare one name.

    A declaration never takes the place of a metric of ours: it may come from a store that others write to.
    """
    declared = {score.name: score for scores in reversed(declarations) for score in scores}
    order = dict.fromkeys(score.name for scores in declarations for score in scores)
    free = [declared[name] for name in order if name not in BY_NAME and name not in BY_METRIC]
    return MetricTable(tuple(map(_score, free)))


def _score(declared: OwnScore) -> Score:
    return Score(
        declared.name,
        declared.name,
        declared.name,
        f"by {declared.computed_by}",
        depends_on=frozenset(),
        higher_is_better=declared.higher_is_better,
        binary=declared.binary,
        tells_result=declared.gates,
        span=declared.span,
        own=True,
        gates=declared.gates,
    )
