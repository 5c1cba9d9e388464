"""Take secrets out of what targets return, before it is kept, judged or shown anywhere. Pure.

What is known to be a key by its form is always taken out; `--redact` adds patterns of one's own, say for names of
customers. Golden sets are not touched: what is asked and expected was written to be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.records import Failure, Response, Source

MARK = "[redacted]"

_BEGIN = r"-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY-----"

KEYS = {
    "sk-": r"\bsk-(?:proj-|ant-|or-)?[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic, OpenRouter
    "AKIA": r"\bAKIA[0-9A-Z]{16}\b",  # AWS
    "ASIA": r"\bASIA[0-9A-Z]{16}\b",
    **{f"gh{kind}_": rf"\bgh{kind}_[A-Za-z0-9]{{36,}}" for kind in "pousr"},  # GitHub
    "github_pat_": r"\bgithub_pat_[A-Za-z0-9_]{60,}",
    "glpat-": r"\bglpat-[A-Za-z0-9_-]{20,}",  # GitLab
    "xox": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
    "AIza": r"\bAIza[0-9A-Za-z_-]{35}",  # Google
    "hf_": r"\bhf_[A-Za-z0-9]{30,}",  # Hugging Face
    "eyJ": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",  # a JSON Web Token
    "PRIVATE KEY-----": rf"{_BEGIN}[^-]*(?:{_BEGIN.replace('BEGIN', 'END')})?",
    "@": r"(?<=://)[^\s/:@]{1,200}:[^\s/@]{1,200}(?=@)",  # user and password in a URL
}
"""What is a key by its form, by what must stand in a text before it is worth looking for."""


_COMPILED = [(sign, re.compile(pattern)) for sign, pattern in KEYS.items()]


class Redactor:
    """Replaces whatever matches by `MARK`.

    Raises:
        UsageError: a pattern is no regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        for pattern in patterns:
            try:
                empty = re.search(pattern, "") is not None
            except re.error as error:
                raise UsageError(f"--redact: `{pattern}` is no regular expression: {error}") from None
            if empty:
                raise UsageError(
                    f"--redact: `{pattern}` matches the empty text, and so everything; write what is secret"
                )
        self._own = [re.compile(pattern) for pattern in patterns]

    def text(self, text: str) -> str:
        """The text without what matches."""
        for pattern in self._own:
            text = pattern.sub(MARK, text)
        for sign, pattern in _COMPILED:
            if sign in text:
                text = pattern.sub(MARK, text)
        return text

    def response(self, response: Response) -> Response:
        """The response with every text in it redacted; the same object where nothing matches."""
        if all(self.text(text) == text for text in _texts(response)):
            return response
        sources = response.sources
        return response.model_copy(
            update={
                "answer": self._all(response.answer),
                "sources": None if sources is None else tuple(map(self._source, sources)),
                "tool_calls": tuple(
                    call.model_copy(update={"arguments": self._all(call.arguments)}) for call in response.tool_calls
                ),
            }
        )

    def _source(self, source: Source) -> Source:
        """The source; its id stays as it is, as it is what is scored."""
        return source.model_copy(update={name: self._all(getattr(source, name)) for name in ("title", "url", "text")})

    def failure(self, failure: Failure) -> Failure:
        """The failure with its message redacted."""
        return failure.model_copy(update={"message": self.text(failure.message)})

    def _all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self._all(name): self._all(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._all(item) for item in value)
        return value


def _texts(response: Response) -> Iterator[str]:
    """Every text in a response."""
    if response.answer:
        yield response.answer
    for source in response.sources or ():
        yield from filter(None, (source.text, source.title, source.url))
    for call in response.tool_calls:
        yield json.dumps(call.arguments, ensure_ascii=False, default=str)
