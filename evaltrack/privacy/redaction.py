"""Removes secrets from responses and verdicts before they are stored, judged or shown, and refuses them in names.

Keys with a known form and configured values are always removed. The setting `redact` adds patterns, for example for
names of customers. Golden sets are not redacted: their questions and expectations are written to be read.

Most rules on the form of a key are gitleaks' (MIT licence, in the folder `rules`), converted to Python's syntax by
`scripts/update_secret_rules`; `own.toml` adds more. Nearly all text is no key, so the search has two steps: keys are in
long words, and a rule is tried only if one of its keywords occurs. A match must look random enough (entropy), and must
not be part of a long run of base64, such as a picture.
"""

from __future__ import annotations

import binascii
import json
import os
import re
import tomllib
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from math import log2
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import quote

import regex

from evaltrack.errors import UsageError
from evaltrack.privacy.addresses import MASK
from evaltrack.records import Response, Source, ToolCall, Verdict

SHORTEST = 15
"""Characters of the shortest word that can hold a key. Rules for shorter keys search the whole text."""

LONG = 24
"""Characters of the shortest word on which rules without a keyword are tried."""

SHORT, REMEMBERED = 4000, 8000
"""Texts of up to so many characters are cached with their secrets, and the size of that cache."""

NAME_REACH = 100
"""Characters before a word that are searched for its name: `MAILCHIMP_API_KEY = ...`."""

NAMES = ("key", "token", "secret", "pass", "pwd", "auth", "api", "access", "cred", "login", "bearer", "sign", "jwt")
"""Words that mark the name of a secret. The name of a product alone occurs in any sentence."""

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
BASE64_RUN = 200
"""Characters of base64 around a match that make it part of something larger."""

_DIGIT = re.compile(r"\d", re.ASCII)
_LONG_WORD = re.compile(rf"\S{{{SHORTEST},}}")


@dataclass(frozen=True, eq=False)
class Rule:
    """One form of keys. `group` holds the secret; None is the first group that matches, else the whole match."""

    id: str
    regex: str
    keywords: Sequence[str]
    scope: Literal["word", "named", "text"] = "word"
    entropy: float = 0.0
    group: int | None = None
    generic: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled form, which an underscore may precede. To compile all takes longer than most runs."""
        return re.compile(re.sub(r"^((?:\(\?i\))?)\\b", r"\1(?<![A-Za-z0-9])", self.regex), re.ASCII)

    def is_likely_in(self, lowered: str) -> bool:
        """Return True if a text in lower case holds a keyword; without keywords, if it is long and has a digit."""
        if self.keywords:
            return _holds_any(lowered, self.keywords)
        return len(lowered) >= LONG and _DIGIT.search(lowered) is not None

    def spans(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the positions of secrets of this form in a part of the text."""
        for match in self.pattern.finditer(text, start, end):
            group = self.group
            if group is None:
                group = next((number for number, text_of_group in enumerate(match.groups(), 1) if text_of_group), 0)
            span = match.span(group)
            if self._is_secret(text, match.start(), *span):
                yield span

    def _is_secret(self, text: str, name: int, start: int, end: int) -> bool:
        secret = text[start:end]
        if self.scope == "named":
            before = text[max(0, name - NAME_REACH // 2) : start].lower()
            if not _DIGIT.search(secret) or not _holds_any(before, NAMES):
                return False
            if any(pattern.search(secret) for pattern in rules().placeholders):
                return False
        if self.generic and _holds_any(secret.lower(), rules().stopwords):
            return False
        return entropy(secret) >= self.entropy and not _in_base64(text, start, end)


class Rules(NamedTuple):
    """Keywords and rules by scope, and values and words that are no secrets after the name of a secret.

    A rule without keywords has the empty one, which every text holds.
    """

    by_scope: Mapping[str, Sequence[tuple[str, Rule]]]
    placeholders: Sequence[re.Pattern[str]]
    stopwords: Sequence[str]


@cache
def rules() -> Rules:
    """Read the rules, once."""
    folder = files("evaltrack.privacy").joinpath("rules")
    foreign = json.loads(folder.joinpath("gitleaks.json").read_text("utf-8"))
    own = tomllib.loads(folder.joinpath("own.toml").read_text("utf-8"))
    by_scope: dict[str, list[tuple[str, Rule]]] = {scope: [] for scope in ("text", "word", "named")}
    for rule in (Rule(**each) for each in foreign["rules"] + own["rule"]):
        by_scope[rule.scope] += ((keyword, rule) for keyword in rule.keywords or [""])
    placeholders = [re.compile(pattern, re.ASCII) for pattern in foreign["placeholders"]]
    return Rules(by_scope, placeholders, foreign["stopwords"])


def secret_spans(text: str) -> Sequence[tuple[int, int]]:
    """Return the start and end of each secret in the text, in order and without overlaps."""
    return _spans_in_short(text) if len(text) <= SHORT else _spans_in(text)


@lru_cache(maxsize=REMEMBERED)
def _spans_in_short(text: str) -> tuple[tuple[int, int], ...]:
    """Return the same as `_spans_in`, cached: the chunks of a corpus are returned for many questions."""
    return tuple(_spans_in(text))


def _spans_in(text: str) -> list[tuple[int, int]]:
    words = [match.span() for match in _LONG_WORD.finditer(text)]
    with_names = ((max(0, start - NAME_REACH), end) for start, end in words if _DIGIT.search(text, start, end))
    named = [each for each in merge_spans(with_names) if _holds_any(text[slice(*each)].lower(), NAMES)]
    places = {"text": [(0, len(text))], "word": words, "named": named}
    return merge_spans(span for scope in places for span in _found(text, scope, places[scope]))


def _found(text: str, scope: str, places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the positions of secrets in parts of the text, by the rules of a scope."""
    parts = [text[start:end].lower() for start, end in places]
    together = "\n".join(parts)
    for rule in {rule for keyword, rule in rules().by_scope[scope] if keyword in together}:
        for (start, end), part in zip(places, parts, strict=True):
            if rule.is_likely_in(part):
                yield from rule.spans(text, start, end)


def _holds_any(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order; spans that touch or overlap are merged."""
    spans_so_far: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if spans_so_far and start <= spans_so_far[-1][1]:
            spans_so_far[-1] = (spans_so_far[-1][0], max(end, spans_so_far[-1][1]))
        else:
            spans_so_far.append((start, end))
    return spans_so_far


def entropy(text: str) -> float:
    """Return Shannon's entropy of the characters, in bits per character."""
    counts = [text.count(character) for character in set(text)]
    return -sum(count / len(text) * log2(count / len(text)) for count in counts)


def _in_base64(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - BASE64_RUN) : start], text[end : end + BASE64_RUN]
    around = len(before) - len(before.rstrip(BASE64)) + len(after) - len(after.lstrip(BASE64))
    return around >= BASE64_RUN


SHORTEST_SECRET = 8
"""The fewest characters of a configured value that is removed from messages; shorter ones match common words."""

SHORTEST_IN_ANSWERS = 16
"""The same for texts of models, for values that consist of words: keys such as `not-needed` match common words."""

_WORDS = re.compile(r"[A-Za-z][a-z]*(?:[ _.-][A-Za-z]?[a-z]*)*")
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_PLACE = re.compile(r"[/~.]|[A-Za-z]:\\")


def maskable(value: str) -> bool:
    """Return True if a value can be removed from answers without matching common words."""
    return len(value) >= (SHORTEST_IN_ANSWERS if _WORDS.fullmatch(value) else SHORTEST_SECRET)


def spellings(secrets: Iterable[str]) -> list[str]:
    """Return the secrets as they are written in texts, URLs and JSON, the longest first."""
    forms = {way for one in secrets for way in (one, quote(one, safe=""), json.dumps(one)[1:-1])}
    return sorted(forms, key=len, reverse=True)


def parts_of_header(value: str) -> set[str]:
    """Return the value of a header and its parts: the token without its scheme, the password after `Basic`."""
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
    """Return the values of variables whose names mark them as secrets, except paths of files."""
    return {
        value.strip()
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and not _PLACE.match(value) and "\n" not in value.strip()
    }


MARK = "[redacted]"
"""Replaces a text with the form of a key or a match of a pattern. `MASK` replaces a configured value."""

PATTERN_SECONDS = 2.0
"""Seconds that a pattern of the user may search one text."""

T = TypeVar("T")


class Redactor:
    """A redactor that replaces matches by `MARK` and configured `secrets` by `MASK`.

    Raises:
        UsageError: a pattern is no regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str] = (), secrets: Iterable[str] = ()) -> None:
        self._own = []
        for pattern in patterns:
            try:
                compiled = regex.compile(pattern)
            except regex.error as error:
                raise UsageError(f"`redact=`: `{pattern}` is not a regular expression: {error}") from None
            if compiled.search("") is not None:
                cure = "write what is secret"
                raise UsageError(f"`redact=`: `{pattern}` matches the empty text, and so everything; {cure}")
            self._own.append(compiled)
        self._secrets = spellings(filter(maskable, secrets))

    @classmethod
    def with_environment(cls, patterns: Sequence[str] = (), secrets: Iterable[str] = ()) -> Redactor:
        """Return a redactor that also replaces the secrets in the variables of this process."""
        return cls(patterns, secrets_of(os.environ) | set(secrets))

    def text(self, text: str) -> str:
        """Return the redacted text. If a pattern exceeds its time limit, only `MARK` is left."""
        try:
            for pattern in self._own:
                text = pattern.sub(MARK, text, timeout=PATTERN_SECONDS)
        except TimeoutError:
            return MARK
        return self._without_known(text)

    def _without_known(self, text: str) -> str:
        """Return the text without configured values and keys with a known form."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        for start, end in reversed(secret_spans(text)):
            text = text[:start] + MARK + text[end:]
        return text

    def response(self, response: Response) -> Response:
        """Return the response with all its texts redacted; the same object if nothing matches."""
        sources = response.sources
        return _updated(
            response,
            answer=self._all(response.answer),
            model=self._all(response.model),
            sources=None if sources is None else tuple(map(self._source, sources)),
            tool_calls=tuple(map(self._call, response.tool_calls)),
            unread=tuple(map(self.text, response.unread)),
        )

    def verdict(self, verdict: Verdict) -> Verdict:
        """Return the verdict with its texts redacted, because a judge may know a key from elsewhere."""
        observed = verdict.observed
        return _updated(
            verdict,
            reasoning=self.text(verdict.reasoning),
            observed=observed and _updated(observed, quotes=self._all(observed.quotes)),
        )

    def _source(self, source: Source) -> Source:
        """Return the redacted source. Patterns of the user do not change its id, because runs are compared by it."""
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
        """Return the redacted value. The name of the field may mark it as a secret."""
        if isinstance(name, str) and isinstance(item, str) and len(item) >= SHORTEST:
            assigned = f'"{name}": "'
            if any(start >= len(assigned) for start, _ in secret_spans(f'{assigned}{item}"')):
                return self.text(item) if self.text(item) != item else MARK
        return self._all(item)


def _updated(record: T, **fields: Any) -> T:
    """Return the record with these fields; the same object if none of them changes."""
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
"""Names of secrets, whatever precedes them."""

_MAYBE = r"(?:key|token|auth|authorization|jwt|sig|signature)"
"""Names of secrets and of other things. Their values must look like secrets too."""

_GIVEN = re.compile(
    rf"""(?:^|[\s"'?&;-])(?:[\w.-]*?[_.-])??(?:({_SURE})|({_MAYBE}))(?:\s*[=:]\s*|\s+)["']?([^\s"'&;]+)""",
    re.IGNORECASE,
)
"""A value assigned to a name: in an option, a variable, a header or the query of a URL."""

SHORTEST_VALUE, RANDOM_BITS = 6, 3.3
"""The fewest characters of a secret value, and the least entropy in bits per character if its name is not sure."""


def check_names(names: Iterable[tuple[str, str]]) -> None:
    """Refuse secrets in texts that are logged. Each text is given with a description.

    Raises:
        UsageError: the message says which text holds the secret, and does not repeat it.
    """
    for what, text in names:
        if holds_secret(text):
            raise UsageError(f"{what} holds what looks like a key or a password (not shown here); {NAME_CURE}")


def holds_secret(text: str) -> bool:
    """Return True if a name holds a key, a password in a URL, or a value assigned to the name of a secret."""
    if secret_spans(text) or ("://" in text and _PASSWORD_IN_URL.search(text)):
        return True
    return any(
        _is_secret(value, (sure or maybe).lower(), sure=bool(sure)) for sure, maybe, value in _GIVEN.findall(text)
    )


def _is_secret(value: str, name: str, *, sure: bool) -> bool:
    """Return True if a value is a secret, and not the name of a variable or a file that holds one."""
    if len(value) < SHORTEST_VALUE or value[0] in "{$/~.@<" or re.fullmatch(r"[A-Z][A-Z0-9_]*", value):
        return False
    has_both = re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None
    if sure or (name == "token" and has_both):
        return True
    looks_random = has_both and entropy(value) >= RANDOM_BITS and re.fullmatch(r"[\w.~+/=-]{16,}", value)
    return bool(maskable(value) and looks_random and "-" not in value[:8])
