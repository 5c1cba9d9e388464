"""A page planted above what is expected, in some questions of a run, and whether a comparison names it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaltrack.compare.culprits import Culprit
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate

from .compared import side
from .planted_causes import PLANTS, built
from .planted_changes import Given, answer, lose, outrank, swap_context

ASKED = 24


@dataclass
class RiserOutcome:
    """How often a page was planted, how often it was named first, and the first misses."""

    planted: int = 0
    named: int = 0
    wrong: list[str] = field(default_factory=list)


def first_culprit(before: Sequence[Given], after: Sequence[Given]) -> Culprit | None:
    """What a comparison of these questions names first."""
    sides = ([replace(each.row(), position=place) for place, each in enumerate(given)] for given in (before, after))
    made = compare(*(side(rows) for rows in sides), Gate(), resamples=50)
    return next(iter(made.culprits), None)


def plant_risers(times: int, seed: int, real: Mapping[str, Sequence[Given]]) -> RiserOutcome:
    """A new page in 3 to 10 of 24 questions; in up to two others something else is worse: lost, or another answer."""
    rng, outcome = random.Random(seed), RiserOutcome()
    pools = [None, *real.values()]
    for place in range(times):
        pool = pools[place % len(pools)]
        questions = [built(rng, PLANTS[0]) for _ in range(ASKED)] if pool is None else rng.sample(list(pool), ASKED)
        before = [
            replace(each, asked=each.asked.model_copy(update={"id": f"q{n}"})) for n, each in enumerate(questions)
        ]
        chosen, noise = rng.randint(3, 10), rng.randint(0, 2)
        after = [outrank(each, rng) or each for each in before[:chosen]]
        others = [rng.choice((lose, swap_context))(each, rng) or each for each in before[chosen : chosen + noise]]
        after += [answer(each, rng) for each in others] + before[chosen + noise :]
        first = first_culprit(before, after)
        outcome.planted += 1
        if first is not None and (first.kind, first.page, first.novelty) == ("rose", "new!", "new"):
            outcome.named += 1
        else:
            outcome.wrong.append(f"{chosen} of {ASKED}: {first}")
    return outcome
