"""Options under headings in the help of commands that have many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

OTHERS = "Options"
HEADINGS = (
    *("What is evaluated", "What is compared", "The gate", "Judges and scores", "Result", "A part of the set"),
    *("Asking again", "In MLflow", "Execution", "Going on", "Tokens, cost and secrets", OTHERS),
)
"""The headings of options in help texts, what is used most first."""

EVALUATION = {
    "What is evaluated": "target_options k",
    "Judges and scores": (
        "judge judge_prompt scores rubric rubric_weights pass_threshold judge_timeout call_timeout verdict_cache"
    ),
    "Result": "require evaluation_json",
    "A part of the set": "filter only_failed sample sample_seed",
    "In MLflow": "experiment run_name param tag note traces",
    "Execution": ("trials concurrency timeout workers target_memory in_process engine engine_address engine_workers"),
    "Tokens, cost and secrets": ("model alpha beta gamma price_in price_out judge_price_in judge_price_out redact"),
}
COMPARISON = {
    "The gate": "max_drop max_rise allow_flips gate min_coverage ignore require require_agreement",
    "Asking again": "repeat_flips golden target target_options judge",
}
"""The headings of the settings of an evaluation and of a comparison."""


def heading_of(setting: str, headings: Mapping[str, str]) -> str:
    """The heading of a setting; "" where it has none."""
    return next((heading for heading, names in headings.items() if setting in names.split()), "")


class GroupedOption(click.Option):
    """An option that the help of a `GroupedCommand` lists under a heading."""

    def __init__(self, *arguments: Any, group: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings, in the order of `HEADINGS`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each heading; options of none are at the end, with --help."""
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                sections[getattr(parameter, "group", "") or OTHERS].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def in_group(heading: str) -> dict[str, Any]:
    """The keyword arguments of `click.option` for an option under this heading."""
    return {"cls": GroupedOption, "group": heading}
