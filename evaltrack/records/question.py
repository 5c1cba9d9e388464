"""Defines a question of a golden set and its expectations; finds quotations in texts; normalizes words and titles."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, ValidationInfo, field_validator, model_validator

from evaltrack.records.base import FreeObject, Key, Record, Text, storable

SHOWN = 80
"""The longest text of a passage that people see."""

_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
_WORD = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # written without spaces
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def words_of(text: str) -> list[str]:
    """Return the words by which texts are compared: NFKC, case-folded, without punctuation and link targets.

    In scripts without spaces between words, each letter is a word.
    """
    return _WORD.findall(unicodedata.normalize("NFKC", _LINK_TARGET.sub("]", text)).casefold())


def title_key(title: str) -> str:
    """Return the form in which source titles are compared: Unicode NFC, case-folded, with `_` read as a space."""
    folded = unicodedata.normalize("NFC", title).casefold().replace("_", " ")
    return unicodedata.normalize("NFC", folded).strip()


class Passage(Record):
    """One expected passage: a chunk that holds the `quote`, or one of the chunks `any_of`.

    A chunk whose border cuts the quotation holds it if it has at least the `share` of its words. `source` names the
    quotation's page for people and has no effect.
    """

    quote: Text | None = None
    any_of: tuple[Key, ...] = ()
    source: Text | None = None
    share: Annotated[float, Field(gt=0, le=1)] = 0.5

    @model_validator(mode="after")
    def _one_kind(self) -> Passage:
        if (self.quote is None) == (not self.any_of):
            raise ValueError("a passage has a `quote`, or chunk ids in `any_of`, and not both")
        if self.quote is not None and not words_of(self.quote):
            raise ValueError("`quote` holds no words")
        return self

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the quotation; empty if chunks are named."""
        return tuple(words_of(self.quote)) if self.quote is not None else ()

    @cached_property
    def spaced(self) -> str:
        """The words with a space before and after each."""
        return _joined(self.words)

    @cached_property
    def key(self) -> str:
        """The short name of the passage: the beginning of its quotation, or its chunks."""
        if self.quote is None:
            return _short(" or ".join(self.any_of), self.any_of)
        return "\N{LEFT DOUBLE QUOTATION MARK}{}\N{RIGHT DOUBLE QUOTATION MARK}".format(
            _short(" ".join(self.quote.split()), self.words)
        )


class SourceText:
    """The words of a source's text, computed once for all passages."""

    def __init__(self, text: str) -> None:
        self._words = words_of(text)
        self._text = _joined(self._words)

    def holds(self, passage: Passage) -> bool:
        """Return True if the text holds the quotation, or at least its share if a border of the text cuts it.

        Words are compared in order and without gaps. A text inside the quotation is cut on both sides.
        """
        quote = passage.words
        if not quote:
            return False
        if passage.spaced in self._text:
            return True
        least = ceil(passage.share * len(quote))
        longest = min(len(quote) - 1, len(self._words))
        if least > longest:
            return False
        inside = len(self._words) < len(quote) and self._text in passage.spaced
        return inside or any(self._is_cut(quote, size) for size in range(least, longest + 1))

    def _is_cut(self, quote: Sequence[str], size: int) -> bool:
        """Return True if the text begins with the quotation's last `size` words or ends with its first."""
        return self._text.startswith(_joined(quote[-size:])) or self._text.endswith(_joined(quote[:size]))


def _joined(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "


def _short(text: str, identity: Sequence[str]) -> str:
    """Return the text, or its beginning with a digest that distinguishes it from texts with the same beginning."""
    if len(text) <= SHOWN:
        return text
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:6]
    return f"{text[:SHOWN].rstrip()}\N{HORIZONTAL ELLIPSIS} [{digest}]"


Role = Literal["system", "user", "assistant", "tool"]
WrittenText = Annotated[str, StringConstraints(min_length=1, pattern=r"\S"), BeforeValidator(storable)]
"""A text that is neither empty nor blank."""


class Turn(Record):
    """One message of a conversation, with the role of its speaker."""

    role: Role
    content: WrittenText

    def __str__(self) -> str:
        """Return ``user: How long may I stay?``."""
        return f"{self.role}: {self.content}"


Difficulty = Literal["easy", "medium", "hard"]
Grade = Annotated[int, Field(ge=0, le=1000, strict=True)]

MAX_TURNS = 1000
"""The most turns before a question. A longer history is a log, not a conversation."""

EXPECTATIONS = {"expected_passages": "passages", "expected_chunks": "chunks", "expected_sources": "titles"}
"""The fields of expected items and the nouns of these items. The first field that is given counts."""


class Question(Record):
    """One question of a golden set.

    `expected_passages` (quotations), `expected_chunks` (ids) and `expected_sources` (titles) are what the target should
    retrieve; the first that is given counts. Quotations need texts of sources; for a target without texts, ids or
    titles count. An empty list makes the question a *negative*; without these fields it is only judged.

    `history` holds the turns before the question. No run asks a `draft`. `expected_arguments` holds the arguments of
    each call in `expected_tools`, or an empty object for any.

    Chunks or titles may be graded, ``{"id": grade}``: those of at least `relevant_grade` are expected, and `grades` has
    all of them.
    """

    id: Key
    question: WrittenText
    history: Annotated[tuple[Turn, ...], Field(max_length=MAX_TURNS)] = ()
    expected_chunks: tuple[Key, ...] | None = None
    expected_sources: tuple[Key, ...] | None = None
    expected_passages: tuple[Passage, ...] | None = None
    grades: Mapping[Key, Grade] = Field(default_factory=dict)
    relevant_grade: Annotated[int, Field(ge=1, le=1000, strict=True)] = 1
    expected_answer: Text | None = None
    difficulty: Difficulty | None = None
    category: Text | None = None
    notes: Text | None = None
    domain: Key
    expected_tools: tuple[Key, ...] = ()
    expected_arguments: tuple[FreeObject, ...] = ()
    metadata: FreeObject = Field(default_factory=dict)
    draft: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="before")
    @classmethod
    def _read_grades(cls, values: Any) -> Any:
        """Return the values with the expected ids of a graded field, and its grades in `grades`."""
        if not isinstance(values, dict):
            return values
        graded = [name for name in ("expected_chunks", "expected_sources") if isinstance(values.get(name), dict)]
        if not graded:
            return values
        if len(graded) > 1 or values.get("grades"):
            raise ValueError("grade one of `expected_chunks` and `expected_sources`; write the other as a list")
        (name,) = graded
        grades = values[name]
        least = values.get("relevant_grade", 1)
        least = least if isinstance(least, int) else 1
        relevant = [key for key, grade in grades.items() if isinstance(grade, int) and grade >= least]
        if not relevant and all(type(grade) is int and grade >= 0 for grade in grades.values()):
            cure = "raise one, or write [] instead of the grades for a negative question"
            raise ValueError(f"`{name}` has no grade of {least} or more, so that nothing is expected; {cure}")
        return values | {name: relevant, "grades": grades}

    @field_validator("expected_arguments")
    @classmethod
    def _said_of_any(cls, arguments: tuple[FreeObject, ...], info: ValidationInfo) -> tuple[FreeObject, ...]:
        """Check that there is one for each tool. Return () if all are empty, which keeps the question's digest."""
        tools, num = info.data.get("expected_tools"), len(arguments)
        if tools is not None and num and num != len(tools):
            entries = f"{num:,} entr{'y' if num == 1 else 'ies'} for {len(tools):,} `expected_tools`"
            cure = "write one for each tool, {} for a tool without expected arguments"
            raise ValueError(f"{entries}; {cure}")
        return arguments if any(arguments) else ()

    @model_validator(mode="after")
    def _one_kind(self) -> Question:
        expected = {name: value for name in EXPECTATIONS if (value := getattr(self, name)) is not None}
        full = next((name for name, value in expected.items() if value), None)
        empty = next((name for name, value in expected.items() if not value), None)
        if full and empty:
            raise ValueError(f"`{full}` names {EXPECTATIONS[full]} but `{empty}` is empty; remove one of them")
        relevant = next((key for key, grade in self.grades.items() if grade >= self.relevant_grade), None)
        if empty and relevant:
            cure = f"write the grades instead of the list, or remove `{relevant}` from them"
            raise ValueError(f"`grades` says that `{relevant}` is relevant, but `{empty}` is empty; {cure}")
        return self

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation as chat messages. The question is the user's last message."""
        return [*(turn.model_dump() for turn in self.history), {"role": "user", "content": self.question}]

    @property
    def by_title(self) -> bool:
        """True if sources are compared by title instead of chunk id."""
        return self.expected_chunks is None and (self.expected_sources is not None or self.expected_passages is None)

    @property
    def expected(self) -> tuple[str, ...] | None:
        """The expected keys: of passages, else chunk ids, else titles. None if nothing is expected."""
        if self.expected_passages is None:
            return self.expected_names
        return tuple(dict.fromkeys(passage.key for passage in self.expected_passages))

    @property
    def expected_names(self) -> tuple[str, ...] | None:
        """The expected chunk ids, else the expected titles."""
        return self.expected_sources if self.expected_chunks is None else self.expected_chunks

    @property
    def negative(self) -> bool:
        """True if the target should say that it does not know."""
        expected = self.expected
        return expected is not None and not expected

    @property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) of the question and its expectations, without notes and labels."""
        evaluated: tuple[object, ...] = _EVALUATED(self)
        if self.expected_passages is not None:
            evaluated += ([each.model_dump(exclude={"source"}) for each in self.expected_passages],)
        if self.expected_arguments:
            evaluated += (("arguments", [json.dumps(each, sort_keys=True) for each in self.expected_arguments]),)
        if self.grades:
            evaluated += (sorted(self.grades.items()),)
        return _digest(evaluated + self._turns)

    @property
    def _turns(self) -> tuple[object, ...]:
        return (("history", [[turn.role, turn.content] for turn in self.history]),) if self.history else ()


_EVALUATED = attrgetter("question", "expected_chunks", "expected_sources", "expected_answer", "expected_tools")


def _digest(parts: tuple[object, ...]) -> str:
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
