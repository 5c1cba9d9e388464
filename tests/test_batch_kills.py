"""Kills of evaluations that judge in batches, in a small form; `scripts/batch_kills.py` does it at length."""

from __future__ import annotations

import os
import re

import pytest

from . import warm
from .conftest import REPO

PATIENCE = 1800


@pytest.mark.long
@pytest.mark.parametrize(("kills", "questions"), [(1, 15), (6, 60)])
def test_kills_of_batch_judging_pay_for_nothing_twice(kills: int, questions: int) -> None:
    """SIGKILL while it asks, uploads, polls and judges: the numbers of judging online, and each verdict paid once."""
    words = ("--questions", str(questions), "--kills", str(kills), "--lines", str(questions // 3), "--seed", "1")
    with warm.WarmProcess((str(REPO / "scripts" / "batch_kills.py"), *words), REPO, os.environ) as process:
        out, err = process.communicate(PATIENCE)
        assert process.wait() == 0, out + err
    figures = re.search(rf"{questions} questions, {kills} kills: (\d+) verdicts paid, .*files left 0", out)
    assert figures, out
    assert int(figures[1]) >= questions
