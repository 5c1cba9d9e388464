"""Files for the tests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def put(path: Path, content: Any) -> Path:
    """Write text or bytes as they are, JSON Lines where the name ends so, else JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in content), encoding="utf-8")
    else:
        path.write_text(json.dumps(content), encoding="utf-8")
    return path


def data(name: str) -> Any:
    return json.loads((Path(__file__).parent / "data" / name).read_text(encoding="utf-8"))


def check_rendering(name: str, text: str) -> None:
    """Compare a text with its approved rendering in `tests/renderings`. APPROVE=1 approves it first: read the diff."""
    path = Path(__file__).parent / "renderings" / name
    if os.environ.get("APPROVE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
