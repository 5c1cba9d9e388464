"""OpenAI's Batch endpoint: a file of calls goes up, its answers come down within a day, at a lower price.

Form and limits are those of OpenAI's Batch API reference (`/v1/files`, `/v1/batches`). Each batch carries a token of
ours in its `metadata`, so that one whose id was never received is found again. A server that fails is asked again for
`PATIENCE` seconds. What it sends is bounded and checked; a line that cannot be read is passed over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import IO, TYPE_CHECKING, NoReturn, TypeVar

from pydantic import ValidationError

from evaltrack.llm.batch_records import Batch, BatchReply, read_line
from evaltrack.llm.client import ILL_FORMED, PUT_OFF, http_library, open_client
from evaltrack.llm.refusals import (
    SHOWN,
    AccessLostError,
    ServerBusyError,
    ServerRefusesError,
    asked_to_wait,
    raise_if_final,
    refusal_words,
)
from evaltrack.llm.server import base_url, key, shown_url
from evaltrack.llm.throttle import delay
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

MAX_LINES, MAX_BYTES = 50_000, 200_000_000
"""Calls and bytes of one file at most."""

MAX_REPLY = 8_000_000
"""Bytes of a line of a result; a longer one is passed over."""

TOKEN = "evaltrack"  # noqa: S105 - the name of a field
CALL_SECONDS = 600.0
PATIENCE = 600.0
"""Seconds for which a server that fails is asked again."""
MAX_LISTED = 2_000
"""Batches or files, the newest first, among which a lost one is looked for."""

T = TypeVar("T")


class Batches:
    """The Batch endpoint of the server. Use on one event loop, and `aclose` when done.

    All methods raise:
        ServerRefusesError: the server has no such endpoint, or refuses the key.
        QuotaError: the quota is used up.
        AccessLostError: it does not know a batch or a file of ours any more, or refuses a call.
        ServerBusyError: it fails for longer than `PATIENCE`.
    """

    def __init__(self) -> None:
        self._client: AsyncOpenAI = open_client(key(), base_url(), CALL_SECONDS)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def upload(self, file: IO[bytes], name: str) -> str:
        """Send a file up; its id."""

        async def send() -> str:
            file.seek(0)
            sent = await self._client.files.create(file=(name, file, "application/jsonl"), purpose="batch")
            return _id_of(sent)

        return await self._again(send)

    async def find_file(self, name: str) -> str | None:
        """The id of a file that was sent up under a name; None where there is none."""

        async def look() -> str | None:
            num_listed = 0
            async for each in self._client.files.list(purpose="batch", limit=100, order="desc"):
                num_listed += 1
                if getattr(each, "filename", None) == name:
                    return _id_of(each)
                if num_listed >= MAX_LISTED:
                    break
            return None

        return await self._again(look)

    async def create(self, file_id: str, token: str) -> Batch:
        """Begin a batch of a file. A reply that is lost begins no second one: the first is found by its token."""
        tried = False

        async def begin() -> Batch:
            nonlocal tried
            if tried and (begun := await self._find(token)):
                return begun
            tried = True
            made = await self._client.batches.create(
                input_file_id=file_id, endpoint="/v1/chat/completions", completion_window="24h", metadata={TOKEN: token}
            )
            return _batch(made)

        return await self._again(begin)

    async def find(self, token: str) -> Batch | None:
        """The batch that carries a token; None where there is none."""
        return await self._again(lambda: self._find(token))

    async def _find(self, token: str) -> Batch | None:
        num_listed = 0
        async for each in self._client.batches.list(limit=100):
            num_listed += 1
            batch = _batch(each)
            if batch.metadata and batch.metadata.get(TOKEN) == token:
                return batch
            if num_listed >= MAX_LISTED:
                break
        return None

    async def look(self, batch_id: str) -> Batch:
        """What the server says of a batch now."""

        async def retrieve() -> Batch:
            return _batch(await self._client.batches.retrieve(batch_id))

        return await self._again(retrieve, of=f"batch {batch_id}")

    async def read(self, file_id: str, take: Callable[[BatchReply], object]) -> None:
        """Hand on each line of a result. After a connection that broke off, all of them are handed on again."""

        async def read() -> None:
            async with self._client.files.with_streaming_response.content(file_id) as response:
                async for line in _lines(response.iter_bytes()):
                    if (reply := read_line(line)) is not None:
                        take(reply)

        await self._again(read, of=f"file {file_id}")

    async def delete(self, file_id: str) -> None:
        """Delete a file; one that is gone, or cannot be deleted, is left: the server drops it in time."""
        from openai import APIError

        try:
            await self._client.files.delete(file_id)
        except (APIError, ValueError):
            return

    async def _again(self, call: Callable[[], Awaitable[T]], of: str = "") -> T:
        """What a call gives, made again while the server fails; `of` is what it must know."""
        from openai import APIConnectionError, APIStatusError

        http = http_library()

        end, attempt, wait = time.monotonic() + PATIENCE, 0, 0.0
        while True:
            try:
                return await call()
            except APIStatusError as error:
                _raise_if_final(error, of)
                why, wait = refusal_words(error), asked_to_wait(error) or 0.0
            except (APIConnectionError, http.HTTPError, TimeoutError) as error:
                cause = error.__cause__ or error
                why, wait = shown_text(f"{type(cause).__name__}: {cause}"), 0.0
            except ValueError as error:
                why, wait = f"the server answered with something else than what was asked for: {error}"[:SHOWN], 0.0
            if time.monotonic() + wait > end:
                raise ServerBusyError(f"{shown_url()} fails ({why}); what it has of this run is kept there")
            await asyncio.sleep(max(wait, delay(attempt)))
            attempt += 1


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a file; of one that is too long nothing is held but its length."""
    rest, is_too_long = b"", False
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if not is_too_long and line.strip():
                yield line
            is_too_long = False
        if len(rest) > MAX_REPLY:
            rest, is_too_long = b"", True
    if rest.strip() and not is_too_long:
        yield rest


def _batch(value: object) -> Batch:
    """A batch as the server described it.

    Raises:
        ValueError: it is none.
    """
    dump: Callable[..., object] | None = getattr(value, "model_dump", None)
    try:
        return Batch.model_validate(dump(warnings=False) if dump else value)
    except ValidationError:
        raise ValueError("no batch") from None


def _id_of(value: object) -> str:
    found = getattr(value, "id", None)
    if not isinstance(found, str) or not found:
        raise ValueError("no file")
    return found


def _raise_if_final(error: APIStatusError, of: str) -> None:
    """Raise where asking again cannot help."""
    status = error.status_code
    if of and status in (403, 404, 410):
        _lost(f"{shown_url()} does not give {of} (status {status}); is the key another one?")
    if status in (404, 405, 501):
        raise ServerRefusesError(
            f"{shown_url()} has no Batch endpoint (status {status}); use `judge_mode=online`"
        ) from None
    raise_if_final(error, "batches", asked_to_wait(error))
    if status in ILL_FORMED or (status < 500 and status not in PUT_OFF):
        raise ServerRefusesError(f"{shown_url()} refuses the batch: {refusal_words(error)}") from None


def _lost(message: str) -> NoReturn:
    raise AccessLostError(f"{message} Where it is gone, a new run asks again") from None
