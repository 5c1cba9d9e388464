"""The name of a run that is given none: what was evaluated, so that runs are told apart in MLflow's lists."""

from __future__ import annotations

from evaltrack.evaluation.plan import Plan

TARGET_SHOWN = 60
"""Characters of a target in the name of a run."""

PARAMS_SHOWN = 3


def default_run_name(plan: Plan) -> str:
    """``travel bm25:docs k=5 chunk_size=600``: golden set, target, k, and the first params of the user's own."""
    params = [f"{name}={_within(value, 24)}" for name, value in list(plan.settings.param.items())[:PARAMS_SHOWN]]
    parts = [plan.golden.name, _target(plan.signature.target), f"k={plan.settings.k}", *params]
    return " ".join("".join(each if each.isprintable() else " " for each in part) for part in parts)


def _target(name: str) -> str:
    """A target, without what stands before the end of a long path."""
    kind, colon, place = name.partition(":")
    room = TARGET_SHOWN - len(kind) - 2
    return f"{kind}{colon}{place if len(place) <= room else '…' + place[-room:]}"


def _within(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
