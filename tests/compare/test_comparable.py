"""Which numbers of two runs stand side by side on the pages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaltrack.compare.comparable import alike
from evaltrack.records import Signature
from evaltrack.records.past_run import PastRun
from evaltrack.server.figures import figure, trend_plot

SIGNATURE = Signature(golden="set", golden_digest="0", k=5, target="t", judge="kind")
MEANS = {"recall_at_k": 0.5, "pass_rate": 0.5, "judge_score": 0.5}


def run(run_id: str = "r", means: dict[str, float] | None = None, **signature: Any) -> PastRun:
    made = SIGNATURE.model_copy(update=signature)
    counts = dict.fromkeys(MEANS, 10)
    return PastRun(run_id, run_id, 0, "FINISHED", "u", means or MEANS, 10, signature=made, counts=counts)


@pytest.mark.parametrize(
    ("other", "metrics"),
    [
        (run(), set(MEANS)),
        (run(target="another"), set(MEANS)),
        (run(judge="strict"), {"recall_at_k"}),
        (run(k=3), {"judge_score"}),
        (run(pass_threshold=0.5), {"recall_at_k", "judge_score"}),
        (run(golden_digest="1"), set()),
        (run(rubric="reasoning"), set()),
        (replace(run(), num_errors=1), set()),
        (replace(run(), num_questions=9), set()),
        (replace(run(), counts={**dict.fromkeys(MEANS, 10), "recall_at_k": 9}), {"pass_rate", "judge_score"}),
        (replace(run(), signature=None), set()),
    ],
)
def test_means_stand_side_by_side_where_they_were_measured_alike(other: PastRun, metrics: set[str]) -> None:
    assert {name for name in MEANS if alike(name, run(), other)} == metrics
    assert {name for name in MEANS if alike(name, other, run())} == metrics


def test_a_change_since_the_baseline_is_shown_only_beside_what_it_can_be_set_against() -> None:
    better, was = run("new", {"recall_at_k": 0.6}), run("was")
    assert (figure("recall_at_k", better, was).value, figure("recall_at_k", better, was).change) == (
        "0.600",
        "+0.100",
    )
    lossy = replace(better, num_errors=3)
    assert (figure("recall_at_k", lossy, was).value, figure("recall_at_k", lossy, was).change) == ("0.600", "")
    assert figure("judge_score", run("new", {"judge_score": 0.9}, judge="strict"), was).change == ""


def test_a_trend_is_of_one_judge_and_ends_in_the_newest_run() -> None:
    """Of passing, which the judge decides; a metric that the newest run did not measure makes no line."""
    runs = [run("3", {"pass_rate": 0.9}), run("2", {"pass_rate": 0.1}, judge="strict"), run("1", {"pass_rate": 0.8})]
    plot, title = trend_plot(runs)
    assert title == "Pass rate"
    assert "Pass rate of 2 runs, oldest first: from 80.0 % to 90.0 %" in plot
    assert trend_plot([run("2", {"pass_rate": 0.9}), run("1", {"recall_at_k": 0.8})]) == ("", "")
    assert trend_plot([]) == ("", "")
