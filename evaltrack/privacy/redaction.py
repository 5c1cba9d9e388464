"""Take secrets out of what targets and judges return, before it is kept, judged or shown, and refuse them in names.

What is known to be a key by its form is always taken out, and so are the values that were configured;
`redact` adds patterns of one's own, say for names of customers. Golden sets are not touched: what is asked and
expected was written to be read.
"""

from __future__ import annotations

import binascii
import json
import os
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import regex

from evaltrack.errors import UsageError
from evaltrack.privacy.addresses import MASK
from evaltrack.privacy.secret_patterns import SHORTEST, entropy, secret_spans
from evaltrack.records import Response, Source, ToolCall, Verdict

SHORTEST_SECRET = 8
"""Characters from which a configured value is taken out of what a server says; a shorter one hits common words."""

SHORTEST_IN_ANSWERS = 16
"""The same for what a model writes, which is judged and kept word by word: `anything` and `not-needed` are keys too."""

_WORDS = re.compile(r"[A-Za-z][a-z]*(?:[ _.-][A-Za-z]?[a-z]*)*")
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_PLACE = re.compile(r"[/~.]|[A-Za-z]:\\")


def maskable(value: str) -> bool:
    """Whether a value can be taken out of answers without hitting common words."""
    return len(value) >= (SHORTEST_IN_ANSWERS if _WORDS.fullmatch(value) else SHORTEST_SECRET)


def spellings(secrets: Iterable[str]) -> list[str]:
    """The secrets as they may be written elsewhere, in URLs and in JSON too; the longest first."""
    forms = {way for one in secrets for way in (one, quote(one, safe=""), json.dumps(one)[1:-1])}
    return sorted(forms, key=len, reverse=True)


def parts_of_header(value: str) -> set[str]:
    """The value of a header and what stands in it: the token without its scheme, the password behind `Basic`."""
    parts = {value, *value.split()}
    scheme, _, coded = value.partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = b64decode(coded, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            decoded = ""
        parts |= {decoded, decoded.partition(":")[2]}
    return parts


def secrets_of(environment: Mapping[str, str]) -> set[str]:
    """The values of the variables whose names say that they are secrets; the path of a file is none."""
    return {
        value.strip()
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and not _PLACE.match(value) and "\n" not in value.strip()
    }


MARK = "[redacted]"
"""In place of what was found by its form or a pattern; a configured value becomes `MASK`."""

PATTERN_SECONDS = 2.0
"""For which a pattern of the user may look through one text."""

T = TypeVar("T")


class Redactor:
    """Replaces whatever matches by `MARK`, and each of the `secrets` that were configured.

    Raises:
        UsageError: a pattern is no regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str] = (), secrets: Iterable[str] = ()) -> None:
        self._own = []
        for pattern in patterns:
            try:
                compiled = regex.compile(pattern)
            except regex.error as error:
                raise UsageError(f"`redact=`: `{pattern}` is no regular expression: {error}") from None
            if compiled.search("") is not None:
                cure = "write what is secret"
                raise UsageError(f"`redact=`: `{pattern}` matches the empty text, and so everything; {cure}")
            self._own.append(compiled)
        self._secrets = spellings(filter(maskable, secrets))

    @classmethod
    def with_environment(cls, patterns: Sequence[str] = (), secrets: Iterable[str] = ()) -> Redactor:
        """One that replaces the secrets in the variables of this process too."""
        return cls(patterns, secrets_of(os.environ) | set(secrets))

    def text(self, text: str) -> str:
        """The text without what matches; where a pattern does not end in time, nothing of the text is left."""
        try:
            for pattern in self._own:
                text = pattern.sub(MARK, text, timeout=PATTERN_SECONDS)
        except TimeoutError:
            return MARK
        return self._without_known(text)

    def _without_known(self, text: str) -> str:
        """The text without configured values and keys that are known by their form."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        for start, end in reversed(secret_spans(text)):
            text = text[:start] + MARK + text[end:]
        return text

    def response(self, response: Response) -> Response:
        """The response with every text in it redacted; the same object where nothing matches."""
        sources = response.sources
        return _updated(
            response,
            answer=self._all(response.answer),
            model=self._all(response.model),
            sources=None if sources is None else tuple(map(self._source, sources)),
            tool_calls=tuple(map(self._call, response.tool_calls)),
        )

    def verdict(self, verdict: Verdict) -> Verdict:
        """The verdict with its texts redacted: a judge may know a key from elsewhere."""
        observed = verdict.observed
        return _updated(
            verdict,
            reasoning=self.text(verdict.reasoning),
            observed=observed and _updated(observed, quotes=self._all(observed.quotes)),
        )

    def _source(self, source: Source) -> Source:
        """The source; patterns of one's own leave its id as it is, as runs are compared by it."""
        texts = {name: self._all(getattr(source, name)) for name in ("title", "url", "text")}
        return _updated(source, chunk_id=source.chunk_id and self._without_known(source.chunk_id), **texts)

    def _call(self, call: ToolCall) -> ToolCall:
        return _updated(call, name=self._without_known(call.name), arguments=self._all(call.arguments))

    def _all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self._all(name): self._value(name, item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._all(item) for item in value)
        return value

    def _value(self, name: Any, item: Any) -> Any:
        """The value of a field, which its name may show to be a secret."""
        if isinstance(name, str) and isinstance(item, str) and len(item) >= SHORTEST:
            assigned = f'"{name}": "'
            if any(start >= len(assigned) for start, _ in secret_spans(f'{assigned}{item}"')):
                return self.text(item) if self.text(item) != item else MARK
        return self._all(item)


def _updated(record: T, **fields: Any) -> T:
    """The record with these fields; the same object where all of them are as they were."""
    updates = {name: value for name, value in fields.items() if value != getattr(record, name)}
    copied: T = record.model_copy(update=updates) if updates else record  # type: ignore[attr-defined]
    return copied


NAME_CURE = (
    "names and settings are logged with the run, so give a secret through the environment: a header of an http target "
    "as --target-option 'header.Authorization=Bearer MY_TOKEN_VARIABLE'; programs and functions read it themselves"
)

_PASSWORD_IN_URL = re.compile(r"://[^\s/?#@]*:[^\s/?#@]+@")
_SURE = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|credential|api[_-]?key|(?:access|secret|private)[_-]?key"
    r"|(?:access|auth|api|bearer|refresh|id)[_-]?token)"
)
"""Names that only a secret has, whatever stands before them."""

_MAYBE = r"(?:key|token|auth|authorization|jwt|sig|signature)"
"""Names of secrets and of other things: their value must look like a secret too."""

_GIVEN = re.compile(
    rf"""(?:^|[\s"'?&;-])(?:[\w.-]*?[_.-])??(?:({_SURE})|({_MAYBE}))(?:\s*[=:]\s*|\s+)["']?([^\s"'&;]+)""",
    re.IGNORECASE,
)
"""A value given to a name: as an option, a variable, a header or in the query of a URL."""

SHORTEST_VALUE, RANDOM_BITS = 6, 3.3
"""Characters of a value whose name is sure, and bits of entropy of each character of one whose name is not."""


def check_names(names: Iterable[tuple[str, str]]) -> None:
    """Refuse a secret in one of the texts, each given with what it is.

    Raises:
        UsageError: the message says where the secret stands, and does not repeat it.
    """
    for what, text in names:
        if holds_secret(text):
            raise UsageError(f"{what} holds what looks like a key or a password (not shown here); {NAME_CURE}")


def holds_secret(text: str) -> bool:
    """Whether a name holds a key's form, a password in a URL, or a value given to what is named like a secret."""
    if secret_spans(text) or ("://" in text and _PASSWORD_IN_URL.search(text)):
        return True
    return any(
        _is_secret(value, (sure or maybe).lower(), sure=bool(sure)) for sure, maybe, value in _GIVEN.findall(text)
    )


def _is_secret(value: str, name: str, *, sure: bool) -> bool:
    """Whether a value is one, and not the name of a variable or a file that holds it."""
    if len(value) < SHORTEST_VALUE or value[0] in "{$/~.@<" or re.fullmatch(r"[A-Z][A-Z0-9_]*", value):
        return False
    has_both = re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None
    if sure or (name == "token" and has_both):
        return True
    looks_random = has_both and entropy(value) >= RANDOM_BITS and re.fullmatch(r"[\w.~+/=-]{16,}", value)
    return bool(maskable(value) and looks_random and "-" not in value[:8])
