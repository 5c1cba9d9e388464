"""Several trials of one question, merged into one row. Pure.

A score is its mean over the trials that measured it, and so is the share of trials that passed. A question passes when
more than half of its measured trials did; it is not measured where no more than half of its trials were. There is also
*pass@n* (did one of the n trials pass: Chen et al. 2021, section 2.1, with k = n), *pass^n* (did all
of them: Yao et al. 2024, tau-bench, section 4) and whether it is *flaky* (some did, some did not).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from evaltrack.metrics.catalogue import OF_TRIALS
from evaltrack.records import Row, Tally, Tokens


class Gathering:
    """Collects the trials of each question and hands on one merged row when the last of them is in.

    It holds only questions whose trials are under way.
    """

    def __init__(self, trials: int, take: Callable[[Row], None]) -> None:
        self._trials, self._take = trials, take
        self._waiting: dict[int, list[Row]] = {}

    def add(self, row: Row) -> None:
        """Take one trial."""
        if self._trials == 1:
            self._take(row)
            return
        rows = self._waiting.setdefault(row.position, [])
        rows.append(row)
        if len(rows) == self._trials:
            self._take(merge(self._waiting.pop(row.position)))

    def close(self) -> None:
        """Merge what there is of the questions that were broken off."""
        for position in sorted(self._waiting):
            self._take(merge(self._waiting.pop(position), self._trials))


def merge(trials: Sequence[Row], num_trials: int | None = None) -> Row:
    """One row for all trials of a question, of which there should be `num_trials`.

    Its answer, sources and verdicts are those of the first trial that ended as the question did. Where too few trials
    could be measured it is the first failure.
    """
    by_trial = sorted(trials, key=lambda row: row.trial or 0)
    tally = _tally(by_trial, num_trials or len(by_trial))
    outcome = tally.majority
    alike = [row for row in by_trial if row.passed is outcome] or by_trial
    example = next((row for row in alike if row.response is not None), alike[0])
    means = {} if example.response is None else _means(by_trial)
    own = {} if outcome is None else {"pass": tally.passed / tally.measured} | _of_trials(tally)
    unmeasured = dict(example.unmeasured)
    for name in OF_TRIALS:
        if name not in own:
            unmeasured[name] = f"{tally.measured} of {tally.trials} trials were measured"
    return example.model_copy(
        update={
            "trial": None,
            "tally": tally,
            "passed": outcome,
            "scores": means | own,
            "unmeasured": {name: why for name, why in unmeasured.items() if name not in means | own},
            "tokens": _tokens(by_trial),
            "seconds": sum(row.seconds for row in by_trial) / len(by_trial),
            "started_at": min(row.started_at for row in by_trial),
        }
    )


def _means(rows: Sequence[Row]) -> dict[str, float]:
    """The mean of each score over the trials that measured it, in the order of the first that did."""
    names = dict.fromkeys(name for row in rows for name in row.scores)
    values = {name: [row.scores[name] for row in rows if name in row.scores] for name in names}
    return {name: float(sum(map(Fraction, each)) / len(each)) for name, each in values.items() if name != "pass"}


def _tally(trials: Sequence[Row], num_trials: int) -> Tally:
    measured = [row.passed for row in trials if row.passed is not None]
    return Tally(trials=num_trials, measured=len(measured), passed=sum(measured))


def _of_trials(tally: Tally) -> dict[str, float]:
    """Scores of trials, where every trial was measured: a question known by part of them biases means."""
    if tally.measured < tally.trials:
        return {}
    scores = {
        "pass_at_n": tally.passed > 0,
        "pass_hat_n": tally.passed == tally.trials,
        "flaky": 0 < tally.passed < tally.trials,
    }
    return {name: float(value) for name, value in scores.items()}


def _tokens(rows: Sequence[Row]) -> Tokens | None:
    """Tokens of one trial: the mean, rounded to a whole number."""
    tokens = [row.tokens for row in rows if row.tokens is not None]
    if not tokens:
        return None
    return tokens[0].model_copy(update={"count": round(sum(each.count for each in tokens) / len(tokens))})
