"""Take secrets out of what targets and judges return, before it is kept, judged or shown anywhere.

What is known to be a key by its form is always taken out, and so are the values that were configured (`masking`);
`redact` adds patterns of one's own, say for names of customers. Golden sets are not touched: what is asked and
expected was written to be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import regex

from evaltrack.errors import UsageError
from evaltrack.privacy.masking import MASK, maskable, secrets_of, spellings
from evaltrack.privacy.secret_patterns import SHORTEST, secret_spans
from evaltrack.records import Response, Source, ToolCall, Verdict

MARK = "[redacted]"
"""In place of what was found by its form or a pattern; a configured value becomes `masking.MASK`."""

PATTERN_SECONDS = 2.0
"""For which a pattern of the user may look through one text."""

T = TypeVar("T")


class Redactor:
    """Replaces whatever matches by `MARK`, and each of the `secrets` that were configured.

    Raises:
        UsageError: a pattern is no regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str] = (), secrets: Iterable[str] = ()) -> None:
        for pattern in patterns:
            try:
                empty = regex.search(pattern, "") is not None
            except regex.error as error:
                raise UsageError(f"`redact=`: `{pattern}` is no regular expression: {error}") from None
            if empty:
                raise UsageError(
                    f"`redact=`: `{pattern}` matches the empty text, and so everything; write what is secret"
                )
        self._own = [regex.compile(pattern) for pattern in patterns]
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
