"""What no second try cures, for this question or for any: these errors end the run with a clear message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.llm.server import ModelServer, without_key
from evaltrack.llm.throttle import retry_after
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    from openai import APIStatusError

QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})

LONGEST_WAIT = 3600.0
"""Seconds: a server that asks for a longer pause has no more to give today, and the run ends."""

KEPT = "verdicts in the cache are not paid for again"

_MODERATED = re.compile(r"moderat|flagged|content_?(policy|filter)", re.IGNORECASE)
_FLAGGED = re.compile(r"\b(input|prompt|content|request|message)s?\b[^.]*\bflagged\b|content policy|moderation", re.I)
REFUSED_IN_A_ROW = 5
"""Questions that a gateway may refuse one after the other, before it counts as refusing all."""

SHOWN = 300
"""Characters shown of the server's own words."""


class ServerRefusesError(UsageError):
    """The server refuses key, access or model: asking again cannot help."""


class AccessLostError(InconclusiveError):
    """The server refuses in the middle of a run what it gave before."""


class QuotaError(InconclusiveError):
    """The account's quota is used up: asking again cannot help."""


class ServerBusyError(InconclusiveError):
    """The server asks for a pause that is too long to wait for."""


def words(error: APIStatusError) -> str:
    """The server's own words, on one short line, without the key and what URLs hold."""
    body: Any = error.body
    message = body.get("message") if isinstance(body, dict) else body
    return " ".join(shown_text(without_key(str(message or error.response.text))).split())[:SHOWN]


def refusal_words(error: APIStatusError) -> str:
    """What the server answered, in one line: status, what it asks for, and its words."""
    wait = retry_after(error.response.headers)
    advice = f" (told to wait {wait:,.3g} s)" if wait else ""
    return f"status {error.status_code}{advice}: {words(error)}"


def is_quota(error: APIStatusError) -> bool:
    """Whether there is no credit left, which servers say in different ways."""
    return error.status_code == 402 or not QUOTA_CODES.isdisjoint({str(error.code), str(error.type)})


def is_about_the_content(error: APIStatusError) -> bool:
    """Whether a 403 is about what this one request holds, as those who moderate word it, and not about the key.

    By the error's code or type; by what OpenRouter sends beside it (`flagged_input`, `reasons`); else by its message.
    """
    if error.status_code != 403:
        return False
    body: Any = error.body
    beside = body.get("metadata") if isinstance(body, dict) else None
    if isinstance(beside, dict) and not {"flagged_input", "reasons"}.isdisjoint(beside):
        return True
    return bool(_MODERATED.search(f"{error.code} {error.type}") or _FLAGGED.search(words(error)))


def is_from_a_gateway(error: APIStatusError) -> bool:
    """Whether a 403 is no error of an API, as the page of a firewall that refuses one prompt for a word in it."""
    return error.status_code == 403 and not (error.code or error.type)


def raise_if_final(error: APIStatusError, model: str, *, answered: bool, server: ModelServer) -> None:
    """Raise where asking again cannot help, now or for any other question.

    Raises:
        ServerRefusesError: status 401, 403 or 404, and nothing was `answered` before.
        AccessLostError: the same in the middle of a run.
        QuotaError: status 402, or an error that says so.
        ServerBusyError: the server asks to wait for more than `LONGEST_WAIT`.
    """
    status, why = error.status_code, words(error)
    if status == 401:  # its words are left out: they often hold a part of the key
        _refuse(f"{server.shown} refuses the key (status 401); check {server.key_source}", answered)
    if status == 403:
        _refuse(f"{server.shown} refuses access to {model} (status 403: {why}); check the key's rights", answered)
    if status == 404:
        _refuse(
            f"no model `{model}` at {server.shown} (status 404: {why}); check its name and {server.address_source}",
            answered,
        )
    if is_quota(error):
        raise QuotaError(f"the quota of the key is used up ({why}); add credit, or use another key") from None
    wait = retry_after(error.response.headers)
    if wait is not None and wait > LONGEST_WAIT:
        raise ServerBusyError(
            f"{server.shown} asks to wait {wait:,.0f} s (status {status}: {why}); run again later: {KEPT}"
        ) from None


def _refuse(message: str, answered: bool) -> NoReturn:
    if answered:
        raise AccessLostError(f"{message}. It answered before: once it does again, run again: {KEPT}") from None
    raise ServerRefusesError(message) from None
