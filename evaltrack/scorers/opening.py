"""The scores that a run names, opened and checked before anything is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from evaltrack.errors import UsageError
from evaltrack.metrics.aggregate import Ledger, Summary
from evaltrack.metrics.catalogue import LATENCIES, SCORES
from evaltrack.metrics.measure import Rules
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Judge
from evaltrack.records.roles import Scorer
from evaltrack.records.verdict import MOST_SCORES
from evaltrack.rows.columns import COLUMNS
from evaltrack.scorers.builtin import CONTEXT_PRECISION, COST, CostScorer, context_precision_scorer, open_builtin
from evaltrack.scorers.declaration import Functions, asks_judge, split_name
from evaltrack.scorers.faithfulness import FaithfulnessScorer
from evaltrack.scorers.local import ProcessScorer, check_place, open_local


def open_scorers(
    specs: Sequence[str],
    functions: Functions | None = None,
    *,
    in_process: bool,
    prices: Prices | None = None,
    k: int = Rules.k,
    judge: Callable[[str], Judge] | None = None,
) -> tuple[Scorer, ...]:
    """The scores with these names, ready to be called, in their order.

    A named function runs in a process of its own, or `in_process`; those in `functions` always run in this one.
    `prices` are those of the target's tokens, `k` is how many sources are scored. `judge`
    opens the judge of faithfulness by its name, or by an empty one that of the run.

    Raises:
        UsageError: there is no such score, it cannot be opened, or two have one name, or one is a name of ours.
    """
    scorers: list[Scorer] = []
    with ExitStack() as opened:
        for spec in specs:
            name, place = split_name(spec)
            if place == COST:
                scorer: Scorer = CostScorer(name, prices)
            elif place == CONTEXT_PRECISION:
                scorer = context_precision_scorer(name, k)
            elif judge is not None and asks_judge(spec):
                scorer = FaithfulnessScorer(name, judge(place.partition(":")[2]))
            else:
                scorer = _open(spec, functions or {}, in_process=in_process)
            opened.callback(scorer.close)
            scorers.append(scorer)
        check_scores(scorers)
        opened.pop_all()  # nothing is closed but where one cannot be opened
    return tuple(scorers)


def _open(spec: str, functions: Functions, *, in_process: bool) -> Scorer:
    name, place = split_name(spec)
    if place in functions:
        from evaltrack.scorers.function import FunctionScorer

        return FunctionScorer(functions[place], place, name)
    builtin = open_builtin(place, name)
    if builtin is None:
        check_place(place)
    elif in_process or not builtin.may_hang:
        return builtin
    if in_process:
        return open_local(spec)
    return ProcessScorer(spec, measures_raw=builtin is not None)


def check_scores(scorers: Sequence[Scorer]) -> None:
    """Scores are told apart by their names, from each other and from all that stands beside them.

    Raises:
        UsageError: a name is taken; every such name is listed.
    """
    names = [score.name for scorer in scorers for score in scorer.declared]
    if len(names) > MOST_SCORES:
        raise UsageError(f"`scores=`: {len(names)} scores; give at most {MOST_SCORES}")
    taken = _taken()
    problems = [f"`{name}` is a name of evaltrack's own" for name in dict.fromkeys(names) if name in taken]
    problems += [f"two scores are called `{name}`" for name in dict.fromkeys(names) if names.count(name) > 1]
    if problems:
        raise UsageError(f"`scores=`: {'; '.join(problems)}; write NAME=SCORE, or @score(name=...) above the function")


def _taken() -> set[str]:
    """The names of metrics, columns, totals, and what a table shows beside them."""
    shown = ("result", "retrieved", "reasoning", "status", "run_id", "num_expected", "combined_score_best")
    totals = {*Summary(1).totals, *Ledger().totals}
    ours = (*SCORES, *LATENCIES)
    return {*(s.name for s in ours), *(s.metric for s in ours), *(c.name for c in COLUMNS), *totals, *shown}
