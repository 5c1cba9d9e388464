"""What a CI runner reads in a log: foreign text gives it no commands.

GitHub's runner and Azure's agent look at every line that a step prints. ``##[`` and ``##vso[`` begin a command wherever
they stand, ``::`` where a line begins. All of them are broken by a zero-width space, which people do not see.
"""

from __future__ import annotations

import re

BREAK = "\u200b"

_ANYWHERE = re.compile(r"##(?=\[|vso)", re.IGNORECASE)
_BEGINS_LINE = re.compile(r"(?:\A|(?<=[\r\n]))([^\S\r\n]*:)(?=:)")


def without_commands(text: str) -> str:
    """The text with every command that stands anywhere in a line broken."""
    return _ANYWHERE.sub(f"##{BREAK}", text) if "##" in text else text


def without_any_commands(text: str) -> str:
    """The same for whole lines: also what is a command only where a line begins."""
    commandless = without_commands(text)
    return _BEGINS_LINE.sub(rf"\1{BREAK}", commandless) if "::" in text else commandless


def json_without_commands(text: str) -> str:
    """JSON that reads back as the same data: a hash is written as its escape."""
    return _ANYWHERE.sub(r"#\\u0023", text) if "##" in text else text
