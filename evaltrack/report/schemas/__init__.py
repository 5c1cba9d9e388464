"""JSON Schemas of what evaltrack reads and writes, made from its records and columns.

`inputs` are the files that people write, the other modules describe what `--output json` prints, a record for each
object. The schemas of outputs are open, as a later version may add a field; those of inputs are closed, as the readers
are.
"""

from __future__ import annotations

from typing import Any


def made_schemas() -> dict[str, dict[str, Any]]:
    """All schemas but that of the settings, whose options the command line knows; by name."""
    from evaltrack.report.schemas import comparison, inputs, judges, others, run, sweeps

    return {
        "golden": inputs.golden_schema(),
        "response": inputs.response_schema(),
        "verdict": inputs.verdict_schema(),
        "run": run.run_schema(),
        "runs": run.runs_schema(),
        "evaluation": run.evaluation_schema(),
        "comparison": comparison.comparison_schema(),
        "comparisons": comparison.comparisons_schema(),
        "sweep": sweeps.sweep_schema(),
        "sweep-plan": sweeps.plan_schema(),
        "leaderboard": sweeps.leaderboard_schema(),
        **judges.judge_schemas(),
        **others.other_schemas(),
    }
