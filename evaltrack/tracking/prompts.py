"""Prompts of MLflow's registry."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.errors import TrackingError, UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.tracking.store import Store, is_missing, tracking_errors

PREFIX = "prompts:/"
MAX_PROMPT = 100_000
"""Characters of a prompt."""


@dataclass(frozen=True)
class RegisteredPrompt:
    """One version of a prompt; `uri` names the version, whatever an alias points to later."""

    uri: str
    text: str


def registered_prompt(store: Store, uri: str) -> RegisteredPrompt:
    """The version that ``prompts:/NAME@ALIAS`` or ``prompts:/NAME/VERSION`` names now.

    Raises:
        UsageError: there is none, or it is no plain text: chat messages, or a template with variables.
        TrackingError: the store does not answer.
    """
    what = f"judge prompt `{shown_text(uri)}`"
    if not uri.startswith(PREFIX):
        raise UsageError(f"{what}: write prompts:/NAME@ALIAS or prompts:/NAME/VERSION")
    try:
        with tracking_errors(f"looking up {what}"):
            found = store.client.load_prompt(uri, cache_ttl_seconds=0)
    except TrackingError as error:
        if is_missing(error):
            raise UsageError(f"{what}: {error}; register it, or set its alias") from None
        raise
    text = found.template
    if not isinstance(text, str):
        raise UsageError(f"{what}: holds chat messages; register the text of the system message alone")
    if found.variables:
        names = ", ".join(sorted(found.variables))
        raise UsageError(
            f"{what}: has the variables {names}; leave them out, the data is passed in a message of its own"
        )
    if not text.strip() or len(text) > MAX_PROMPT:
        raise UsageError(f"{what}: has {len(text):,} characters; write from 1 to {MAX_PROMPT:,}")
    return RegisteredPrompt(f"{PREFIX}{found.name}/{found.version}", text)
