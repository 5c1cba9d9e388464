"""`evaltrack completion`."""

from __future__ import annotations

import click

EXAMPLES = """\b
Examples:
  eval "$(evaltrack completion bash)"                                      in ~/.bashrc
  eval "$(evaltrack completion zsh)"                                       in ~/.zshrc, after compinit
  evaltrack completion fish > ~/.config/fish/completions/evaltrack.fish
"""


@click.command(epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, golden sets, targets and runs."""
    from evaltrack.cli.completion.shells import completion_script

    click.echo(completion_script(shell), nl=False)
