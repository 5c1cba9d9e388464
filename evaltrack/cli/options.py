"""Options that several commands have, and what stands in them."""

from __future__ import annotations

from collections.abc import Sequence

import click

target_options = click.option(
    "--target-option", "target_options", multiple=True, help="A setting of the target: KEY=VALUE; repeatable."
)

ui_option = click.option(
    "--ui-url", default="", help="Where MLflow's UI is, for links.  [default: EVALTRACK_UI_URL, else a server itself]"
)


def settings_of_target(options: Sequence[str]) -> dict[str, str]:
    """Each ``KEY=VALUE`` as an entry.

    Raises:
        click.UsageError: one is of another form; it may be a secret, and is not repeated.
    """
    pairs = [option.partition("=") for option in options]
    if not all(key and sign for key, sign, _ in pairs):
        raise click.UsageError("--target-option: one has no `=`, or nothing before it; write KEY=VALUE")
    return {key: value for key, _, value in pairs}
