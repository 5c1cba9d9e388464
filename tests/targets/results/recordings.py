"""Files of results, opened as recorded targets and asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Target
from evaltrack.targets import open_target

DATA = Path(__file__).parents[2] / "golden/exchange/data"

OVERSTAY = "What happens if I overstay my 90 days in the Schengen area?"
ESIM = "Which eSIM gives the cheapest mobile data in Thailand?"


def opened(path: Path, settings: str = "") -> Target:
    """The target `recorded:PATH?settings`."""
    return open_target(f"recorded:{path}{'?' * bool(settings)}{settings}")


def refusal(path: Path, settings: str = "") -> str:
    """Why a file is refused, without its folder."""
    with pytest.raises(UsageError) as raised:
        opened(path, settings)
    return str(raised.value).replace(f"{path.parent}/", "")


def ask(target: Target, key: str, text: str, **fields: Any) -> Response:
    """The response to one question."""
    question = Question(id=key, question=text, domain="d", **fields)

    async def asked() -> Response:
        return await target(question, 5)

    return asyncio.run(asked())


def why_not(target: Target, key: str, text: str, **fields: Any) -> str:
    """The type and message of what a question raises."""
    with pytest.raises((LookupError, RuntimeError)) as raised:
        ask(target, key, text, **fields)
    return f"{type(raised.value).__name__}: {raised.value}"


def texts(response: Response) -> list[str | None]:
    """The texts of the sources."""
    return [source.text for source in response.sources or ()]


def ids(response: Response) -> list[str | None]:
    """The ids of the sources."""
    return [source.chunk_id for source in response.sources or ()]
