"""YAML, read as JSON's values only: no tags that make objects, dates stay text, and `yes` is a word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError
from evaltrack.golden.exchange.row_files import check_file
from evaltrack.golden.exchange.values import plain

MAX_BYTES = 8 << 20
"""Of a YAML file: its reader needs seconds for some millions."""


def read_yaml(path: Path) -> Any:
    """The one document in a YAML file, by YAML 1.2's rules for plain words (`yes` and `2024-01-01` are text).

    Raises:
        GoldenError: it is too large, no YAML, or nests or repeats itself without end.
    """
    import yaml

    check_file(path)
    raw = path.read_bytes()
    if len(raw) > MAX_BYTES:
        raise GoldenError([f"{path}: is larger than {MAX_BYTES:,} bytes; write it as .jsonl"])
    try:
        return plain(yaml.load(raw, _loader()))  # noqa: S506 - made from the safe loader # nosec B506
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise GoldenError([f"{path}{line}: is not YAML: {error.problem or error.context}"]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise GoldenError([f"{path}: is not YAML that can be read: {error}"]) from None
    except RecursionError:
        raise GoldenError([f"{path}: is not YAML that can be read: it is nested too deep"]) from None


def _loader() -> Any:
    """PyYAML's safe loader with the plain words of YAML 1.2's core schema."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own name and kind

    for tag, pattern, first in (
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
        ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
        ("float", r"^[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        ("merge", r"^<<$", "<"),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))
    return Loader
