"""What a panel of judges says together: one mean, wherever it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def panel_mean(values: Sequence[float | None]) -> float | None:
    """The mean of what each judge of a panel gave, or None where one gave nothing: fewer judges are another measure.

    It is exact in the decimals that were given: .7, .7 and 1.0 are .8, which passes at .8.
    """
    exact = [Fraction(str(value)) for value in values if value is not None]
    if not exact or len(exact) < len(values):
        return None
    return float(sum(exact) / len(exact))
