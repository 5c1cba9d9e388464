"""What a shell is told: the script that it loads, and the answer while a person types."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import BashComplete, add_completion_class, get_completion_class

from evaltrack.cli.completion.tree import light_commands

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_EVALTRACK_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


class ColonBash(BashComplete):
    """Bash takes a `:` for the end of a word, as in ``bm25:docs``: words are joined again, and answers cut there."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is typed, and that one."""
        before, last = super().get_completion_args()
        words: list[str] = []
        joins = False
        for word in [*before, last]:
            joins = bool(words) and (joins or word.startswith(":"))
            words[-1:] = [words[-1] + word] if joins else [*words[-1:], word]
            joins = word.endswith(":")
        self.typed = words[-1] if words else ""
        return words[:-1], self.typed

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """The part of an answer that takes the place of what Bash calls the word."""
        cut = len(self.typed.rpartition(":")[0]) + 1 if ":" in self.typed else 0
        return f"{item.type},{str(item.value)[cut:]}"


add_completion_class(ColonBash, "bash")


def completion_script(shell: str) -> str:
    """The script that a shell loads."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}; there is {', '.join(SHELLS)}")
    return kind(click.Group("evaltrack"), {}, "evaltrack", VARIABLE).source()


def answer_shell() -> int:
    """Print what may be typed next, as the shell's script asks for it in a variable."""
    from click.shell_completion import shell_complete

    try:
        return shell_complete(light_commands(), {}, "evaltrack", VARIABLE, _instruction())
    except (KeyError, ValueError):  # called by a person, without the variables of a shell
        return 1


def _instruction() -> str:
    return os.environ.get(VARIABLE, "")
