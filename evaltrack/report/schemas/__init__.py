"""Builds the JSON Schemas of the files that evaltrack reads and writes, from its records and columns.

The schemas of outputs are open, as a later version may add a field. Those of inputs are closed, like the readers.
"""

from __future__ import annotations

from typing import Any


def made_schemas() -> dict[str, dict[str, Any]]:
    """Return all schemas by name, except the schema of the settings: the command line defines those options."""
    from evaltrack.report.schemas import comparison, others, run
    from evaltrack.report.schemas.form import schema_of

    forms: dict[str, tuple[Any, str]] = {**comparison.FORMS, **others.FORMS}
    return {
        "golden": others.golden_schema(),
        "response": others.response_schema(),
        "verdict": others.verdict_schema(),
        "run": run.run_schema(),
        "runs": run.runs_schema(),
        "sweep": others.sweep_schema(),
        **{name: schema_of(form, name, title) for name, (form, title) in forms.items()},
    }
