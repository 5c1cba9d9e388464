"""Finds keys and passwords in a text by their form. Pure.

Most rules are gitleaks' (MIT licence, in the folder `rules`), converted to Python's syntax by
`scripts/update_secret_rules`; `own.toml` adds more. Nearly all text is no key, so the search has two steps: keys are in
long words, and a rule is tried only if one of its keywords occurs. A match must look random enough (entropy), and must
not be part of a long run of base64, such as a picture.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from math import log2
from typing import Literal

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


@dataclass(frozen=True, eq=False)
class Rule:
    """One form of keys. `group` holds the secret; None is the first group that matches, else the whole match."""

    id: str
    regex: str
    keywords: tuple[str, ...]
    scope: Literal["word", "named", "text"] = "word"
    entropy: float = 0.0
    group: int | None = None
    generic: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled form, which an underscore may precede. To compile all takes longer than most runs."""
        return re.compile(re.sub(r"^((?:\(\?i\))?)\\b", r"\1(?<![A-Za-z0-9])", self.regex), re.ASCII)

    def spans(self, text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield the positions of secrets of this form in a part of the text."""
        for match in self.pattern.finditer(text, start, len(text) if end is None else end):
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
            if not _DIGIT.search(secret) or not any(word in before for word in NAMES):
                return False
            if any(pattern.search(secret) for pattern in rules().placeholders):
                return False
        if self.generic and rules().stopwords.search(secret.lower()):
            return False
        return entropy(secret) >= self.entropy and not _in_base64(text, start, end)


@dataclass(frozen=True)
class Rules:
    """All rules by scope, and values that are no secrets although the name of a secret precedes them."""

    words: tuple[Rule, ...]
    named: tuple[Rule, ...]
    texts: tuple[Rule, ...]
    placeholders: tuple[re.Pattern[str], ...]
    stopwords: re.Pattern[str]

    @cached_property
    def any_keyword(self) -> re.Pattern[str]:
        """A pattern for all keywords of the rules for words, in lower case; much faster than one search for each."""
        return re.compile(_alternatives({keyword for rule in self.words for keyword in rule.keywords}))

    @cached_property
    def without_keyword(self) -> tuple[Rule, ...]:
        """The rules for words that are tried on every long word."""
        return tuple(rule for rule in self.words if not rule.keywords)

    @cached_property
    def by_keyword(self) -> dict[str, list[tuple[str, Rule]]]:
        """The rules of each scope with each of their keywords."""
        scopes = {"word": self.words, "named": self.named, "text": self.texts}
        return {
            scope: [(keyword, rule) for rule in those for keyword in rule.keywords] for scope, those in scopes.items()
        }

    def wanted(self, scope: str, lowered: str) -> set[Rule]:
        """Return the rules of a scope with a keyword in a text in lower case."""
        return {rule for keyword, rule in self.by_keyword[scope] if keyword in lowered}


@cache
def rules() -> Rules:
    """Read the rules, once."""
    folder = files("evaltrack.privacy").joinpath("rules")
    foreign = json.loads(folder.joinpath("gitleaks.json").read_text("utf-8"))
    own = tomllib.loads(folder.joinpath("own.toml").read_text("utf-8"))
    all_rules = [Rule(**{**each, "keywords": tuple(each["keywords"])}) for each in foreign["rules"] + own["rule"]]
    words, by_name, texts = (tuple(r for r in all_rules if r.scope == scope) for scope in ("word", "named", "text"))
    placeholders = tuple(re.compile(pattern, re.ASCII) for pattern in foreign["placeholders"])
    return Rules(words, by_name, texts, placeholders, re.compile(_alternatives(foreign["stopwords"])))


def secret_spans(text: str) -> Sequence[tuple[int, int]]:
    """Return the start and end of each secret in the text, in order and without overlaps."""
    return _spans_in_short(text) if len(text) <= SHORT else _spans_in(text)


@lru_cache(maxsize=REMEMBERED)
def _spans_in_short(text: str) -> tuple[tuple[int, int], ...]:
    """Return the same as `_spans_in`, cached: the chunks of a corpus are returned for many questions."""
    return tuple(_spans_in(text))


def _spans_in(text: str) -> list[tuple[int, int]]:
    known, spans = rules(), list[tuple[int, int]]()
    for rule in known.wanted("text", text.lower()):
        spans += rule.spans(text)
    words = list(_word_positions(text, (word for word in text.split() if len(word) >= SHORTEST)))
    with_digit = [(start, word) for start, word in words if _DIGIT.search(word)]
    for start, word in words:
        if known.any_keyword.search(lowered := word.lower()):
            for rule in known.wanted("word", lowered):
                spans += rule.spans(text, start, start + len(word))
    for start, word in with_digit:
        if len(word) >= LONG:
            for rule in known.without_keyword:
                spans += rule.spans(text, start, start + len(word))
    spans += _spans_after_names(text, with_digit)
    return merge_spans(spans)


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


def _spans_after_names(text: str, words: Iterable[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """Yield the positions of secrets whose name is in or before one of the words."""
    for start, end in merge_spans((max(0, start - NAME_REACH), start + len(word)) for start, word in words):
        lowered = text[start:end].lower()
        if any(word in lowered for word in NAMES):
            for rule in rules().wanted("named", lowered):
                yield from rule.spans(text, start, end)


def _word_positions(text: str, words: Iterable[str]) -> Iterator[tuple[int, str]]:
    place = 0
    for word in words:
        place = text.index(word, place)
        yield place, word
        place += len(word)


def _in_base64(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - BASE64_RUN) : start], text[end : end + BASE64_RUN]
    around = len(before) - len(before.rstrip(BASE64)) + len(after) - len(after.lstrip(BASE64))
    return around >= BASE64_RUN


def _alternatives(words: Iterable[str]) -> str:
    """Return a regular expression for the words that reads no character twice: `(?:gh(?:o_|p_)|xox)`."""
    first: dict[str, set[str]] = {}
    for word in words:
        first.setdefault(word[0], set()).add(word[1:])
    parts = [re.escape(one) + ("" if "" in rest else _alternatives(rest)) for one, rest in sorted(first.items())]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
