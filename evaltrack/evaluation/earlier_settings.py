"""Settings as earlier versions stored them."""

from __future__ import annotations

from typing import Any


def settings_of_earlier(values: dict[str, Any]) -> dict[str, Any]:
    """Settings as version 0.1 stored them, in today's form."""
    former = ("weights", "prices", "judge_prices", "judges")
    flat = {name: value for name, value in values.items() if name not in former}
    flat |= values["weights"] | {"judge": values.get("judges", ("auto",))}
    flat["rubric_weights"] = ",".join(f"{name}={value:.15g}" for name, value in values["rubric_weights"].items())
    for name, prefix in (("prices", "price"), ("judge_prices", "judge_price")):
        if prices := values.get(name):
            flat |= {f"{prefix}_in": prices["input_per_million"], f"{prefix}_out": prices["output_per_million"]}
    return flat
