"""Whether what broke and was fixed can be chance, and whether a rule alone makes it a regression. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from evaltrack.compare.change import Asking, Change
from evaltrack.compare.culprits import Culprit
from evaltrack.stats.significance import LEVEL, MIN_CHANGED

ChanceKind = Literal["deterministic", "balanced", "few", "no sign", "possible", "excluded"]
"""What is known of chance: `deterministic`, what broke is broken for good; `balanced`, as many were fixed as broke;
`few`, fewer than any test needs; `no sign`, the split is no more uneven than most; `excluded`, it is not chance.
"""

ByRule = Literal["no net loss", "may be chance"]
"""What is true of a regression that the rule on questions that break makes alone: as many or more were fixed; or more
broke, and no more of them than chance can break.
"""

NO_SIGN = 0.5
"""Above this p a split is of the even half of all that two equal systems show."""


def chance_of(broke: int, fixed: int, p_value: float, asking: Asking) -> ChanceKind | None:
    """What is known of chance, by McNemar's exact `p_value`; None where nothing broke or was fixed."""
    if not broke and not fixed:
        return None
    if broke and asking.possible and asking.scatter is False and p_value >= LEVEL:
        return "deterministic"
    if broke == fixed:
        return "balanced"
    if p_value < LEVEL:
        return "excluded"
    if broke + fixed < MIN_CHANGED:
        return "few"
    return "no sign" if p_value > NO_SIGN else "possible"


def explaining_documents(culprits: Iterable[Culprit], flips: Sequence[Change]) -> tuple[Culprit, ...]:
    """The documents seen to have changed, where they explain every question that broke and counts; else none."""
    broke = {flip.id for flip in flips if flip.counts}
    changed = tuple(each for each in culprits if each.changed and broke.intersection(each.ids))
    explained = {key for each in changed for key in each.ids}
    return changed if broke and broke <= explained else ()


def by_rule_alone(chance: ChanceKind | None, broke: int, fixed: int, flips: Iterable[Change]) -> ByRule | None:
    """What is true of a regression whose only broken rule is that on questions that break; None if a loss is shown.

    It is shown by McNemar's test, by a target that gives the same answers always, or by asking a question again.
    """
    shown = any(flip.repeat is not None and flip.repeat.kind == "real" for flip in flips)
    if shown or chance in (None, "deterministic") or (chance == "excluded" and broke > fixed):
        return None
    return "may be chance" if broke > fixed else "no net loss"
