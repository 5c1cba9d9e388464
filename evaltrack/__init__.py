"""Offers the Python API (`run_eval`, `compare_runs`, ...), imported on first use, and turns MLflow's telemetry off."""

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

# Set before MLflow is imported, which would otherwise write an installation id and send telemetry. Its judges would
# fetch the sizes of models from GitHub before their first question, and wait for it where there is no network.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_MODEL_CATALOG_URI", "")

__version__ = "0.1.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", _STUB, re.MULTILINE)}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 - the names are strings, the rule cannot see it


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import evaltrack` is fast."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'evaltrack' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
