"""What no second try cures, for this question or for any: these errors end the run with a clear message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.llm.server import shown_url, without_key

if TYPE_CHECKING:
    from openai import APIStatusError

QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})

LONGEST_WAIT = 3600.0
"""Seconds: a server that asks for a longer pause has no more to give today, and the run ends."""

SHOWN = 300
"""Characters shown of the server's own words."""


class ServerRefusesError(UsageError):
    """The server refuses key, access or model: asking again cannot help."""


class QuotaError(InconclusiveError):
    """The account's quota is used up: asking again cannot help."""


class BusyError(InconclusiveError):
    """The server asks for a pause so long that nobody would wait for it."""


def words(error: APIStatusError) -> str:
    """The server's own words, on one short line, without the key."""
    body: Any = error.body
    message = body.get("message") if isinstance(body, dict) else body
    return " ".join(without_key(str(message or error.response.text)).split())[:SHOWN]


def is_quota(error: APIStatusError) -> bool:
    """Whether there is no credit left, which servers say in different ways."""
    return error.status_code == 402 or not QUOTA_CODES.isdisjoint({str(error.code), str(error.type)})


def raise_if_final(error: APIStatusError, model: str, wait: float | None) -> None:
    """Raise where asking again cannot help, now or for any other question; `wait`: seconds the server asks for.

    Raises:
        ServerRefusesError: status 401, 403 or 404.
        QuotaError: status 402, or an error that says so.
        BusyError: `wait` is above `LONGEST_WAIT`.
    """
    status, said = error.status_code, words(error)
    if status == 401:  # its words are left out: they often hold a part of the key
        raise ServerRefusesError(f"{shown_url()} refuses the key (status 401); check OPENAI_API_KEY") from None
    if status == 403:
        raise ServerRefusesError(
            f"{shown_url()} refuses access to {model} (status 403: {said}); check the key's rights"
        ) from None
    if status == 404:
        raise ServerRefusesError(
            f"no model `{model}` at {shown_url()} (status 404: {said}); check its name and OPENAI_BASE_URL"
        ) from None
    if is_quota(error):
        raise QuotaError(f"the quota of the key is used up ({said}); add credit, or use another key") from None
    if wait is not None and wait > LONGEST_WAIT:
        raise BusyError(
            f"{shown_url()} asks to wait {wait:,.0f} s (status {status}: {said}); run again later: "
            "verdicts in the cache are not paid for again"
        ) from None
