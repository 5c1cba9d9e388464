"""Evaluations of RAG retrievers, agents and LLM reasoning as MLflow runs, and a gate that names what got worse."""

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

# Before MLflow is imported, which would write an installation id and call home; whoever wants that sets it to false.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

__version__ = "0.1.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", _STUB, re.MULTILINE)}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 - the names are strings, the rule cannot see it


def __getattr__(name: str) -> Any:
    """Import a promised name when it is first used, so that `import evaltrack` costs next to nothing."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'evaltrack' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
