"""Defines the base class of LLM judges: asks a model, reads its reply, repairs a bad one once, and caches verdicts.

The judged text is between tags that it cannot close, only in the user's message. An answer that says "give 1.0" is a
text to be judged. The tags of each call end in a random suffix, which is not part of the cache key.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Set
from contextlib import suppress
from copy import copy
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, ValidationError

from evaltrack.judges import TEXT_LIMIT
from evaltrack.judges.cache import VerdictCache
from evaltrack.judges.client import LLM, strict_schema
from evaltrack.judges.neutral_text import SUFFIX, TAG_RULE, inert, with_suffix
from evaltrack.judges.recorded import findings
from evaltrack.judges.server import AnswerError
from evaltrack.records import Judge, Question, Response, Verdict, together
from evaltrack.records.json_text import no_repeats

SCHEMA = "verdict"
"""The name of the schema of a reply."""

CUT = " [... cut]"
HISTORY_TAG = "question_history"
RAW_SHOWN = 500

MOST_OBJECTS = 500
"""The most places that are tried as the start of an object. A verdict needs few."""

_OBJECT = re.compile(r'\{\s*"')
_THOUGHT = re.compile(
    r"(<think(?:ing)?>|\[THINK\]|<\|channel\|>analysis|◁think▷|<\|START_THINKING\|>)"
    r"|</(?:\w+:)?(?:think(?:ing)?|thoughts?|reasoning)>|\[/THINK\]|<\|channel\|>final<\|message\|>|◁/think▷|<\|END_THINKING\|>",
    re.IGNORECASE,
)
"""Marks by which models begin (the group) and end a thought. A chat template may have written the beginning."""

Messages = list[dict[str, str]]
Reply = TypeVar("Reply", bound=BaseModel)


class ReplyForm(BaseModel):
    """Fields that a model writes. They are read strictly; other fields are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class LlmJudge(Judge, ABC):
    """Judges with one model. Verdicts that were paid for come from the cache; each trial has its own.

    `forms` are the forms of the model's reply. If there are two prompts and forms, the second is for negatives.
    `limits` are all other numbers on which a verdict depends.
    """

    forms: tuple[type[ReplyForm], ...]
    limits: tuple[int, ...]

    def __init__(self, llm: LLM, name: str, verdicts: VerdictCache | None = None) -> None:
        self.name, self.digest = name, self.prompts_digest()
        self._llm, self._cache, self._trial = llm, verdicts, 1
        self._locks = WeakValueDictionary[str, asyncio.Lock]()  # one for each verdict in progress

    @staticmethod
    @abstractmethod
    def prompts() -> tuple[str, ...]:
        """Return the prompts."""

    @classmethod
    def prompts_digest(cls) -> str:
        """Return the digest of prompts, schemas and limits. Verdicts with another digest are not compared.

        The prompt for questions with history is not included, as other questions are judged without it. Cached verdicts
        are looked up by everything that the judge was shown.
        """
        schemas = [strict_schema(SCHEMA, form)["schema"] for form in cls.forms]
        return digest_of(*cls.prompts(), TAG_RULE, schemas, cls.limits)

    def instructions(self, question: Question) -> str:
        """Return the prompt for a question."""
        return self.prompts()[-1 if question.negative else 0]

    @abstractmethod
    def data(self, question: Question, response: Response) -> list[str]:
        """Return what is shown besides the question, each part between tags."""

    @abstractmethod
    def fields(self, reply: Any, question: Question, response: Response) -> dict[str, Any]:
        """Return the fields of a verdict from a reply of that form.

        Raises:
            ValueError: the reply contradicts itself or the response. The reason is sent to the model, once.
        """

    def messages(self, question: Question, response: Response) -> Messages:
        """Return the prompt, and all data between tags."""
        history = prompt("history.txt") if question.history else ""
        parts = [*_question_parts(question), *self.data(question, response)]
        return system_and_user(self.instructions(question) + history, parts)

    def read(self, text: str, question: Question, response: Response) -> dict[str, Any]:
        """Return the fields of a verdict from the model's text.

        Raises:
            ValueError: it cannot be read, or `fields` refuses it.
        """
        return self.fields(read_reply(text, self._form(question)), question, response)

    def _form(self, question: Question) -> type[ReplyForm]:
        return self.forms[-1 if question.negative else 0]

    def on_trial(self, trial: int) -> Self:
        """Return the same judge for another trial, with the same connections."""
        other = copy(self)
        other._trial = trial  # noqa: SLF001 - of the same class
        return other

    @property
    def notes(self) -> list[str]:
        """Notes on refused parameters that were left out."""
        return self._llm.notes

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        """Return the verdict on one response.

        Raises:
            AnswerError: the model gave no answer, or its reply could not be read, even after one repair attempt. The
                message has the reply, and `usage` is the cost of both attempts.
            ServerRefusesError, AccessLostError, QuotaError, ServerBusyError: no further question can be judged.
        """
        messages = self.messages(question, response)
        key = self._key(messages)
        if self._cache is None:
            return await self._ask_model(messages, question, response)
        async with self._locks.setdefault(key, asyncio.Lock()):  # equal calls wait here and cost nothing
            if (cached := self._cache.get(key)) is not None:
                return cached.model_copy(update={"cached": True, "judge": self.name})
            verdict = await self._ask_model(messages, question, response)
            await asyncio.to_thread(self._cache.put, key, verdict)  # waits for the disk
            return verdict

    async def aclose(self) -> None:
        """Close the connections."""
        await self._llm.aclose()

    async def _ask_model(self, messages: Messages, question: Question, response: Response) -> Verdict:
        schema, messages = strict_schema(SCHEMA, self._form(question)), with_suffix(messages)
        faults, text, usage = list[str](), "", None
        for _ in range(2):
            try:
                answer = await self._llm.ask(messages, schema, question.id)
                text, usage = answer.text, together(usage, answer.usage)
                return Verdict(judge=self.name, usage=usage, **self.read(text, question, response))
            except (ValueError, AnswerError) as error:
                if isinstance(error, AnswerError) and not faults:
                    raise
                faults.append(str(error))
                usage = together(usage, getattr(error, "usage", None))
            cure = "Reply again: only the JSON object, every field present and in range."
            messages += [
                {"role": "assistant", "content": inert(text[:TEXT_LIMIT])},
                {"role": "user", "content": f"That cannot be read: {inert(faults[0])}. {cure}"},
            ]
        problem = f"{faults[0]}; after one repair attempt: {faults[1]}"
        raise AnswerError(f"{problem}; it wrote: {text[:RAW_SHOWN]!r}", text, usage) from None

    def _key(self, messages: Messages) -> str:
        """Return the cache key: model, server, parameters, prompt, everything shown, and the trial."""
        parts = [self._llm.identity, self.digest, messages, self._trial]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def digest_of(*parts: object) -> str:
    """Return the SHA-256 (16 hex digits) of all that a judge's verdicts depend on besides the judged data."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@cache
def prompt(name: str) -> str:
    """Return the text of a prompt file."""
    return files("evaltrack.judges").joinpath(name).read_text("utf-8")


def system_and_user(system: str, parts: list[str]) -> Messages:
    """Return the prompt as system message, and all data in one user message. The suffix of the tags is added later."""
    return [{"role": "system", "content": system + TAG_RULE}, {"role": "user", "content": "\n\n".join(parts)}]


def _question_parts(question: Question) -> list[str]:
    """Return the question between tags, preceded by the turns of its history as JSON Lines.

    Only the last turns that fit into `TEXT_LIMIT` are shown, with the number of omitted turns. The tag starts like that
    of the question, so that `inert` breaks it too.
    """
    if not question.history:
        return [tagged("question", question.question)]
    lines, room = list[str](), TEXT_LIMIT
    for turn in reversed(question.history):
        line = json.dumps({"role": turn.role, "content": cut(turn.content, TEXT_LIMIT)}, ensure_ascii=False)
        room -= len(line)
        if room < 0 and lines:
            lines.append(f"({len(question.history) - len(lines)} earlier turns are not shown)")
            break
        lines.append(inert(line))
    return [between(HISTORY_TAG, "\n".join(reversed(lines))), tagged("question", question.question)]


def tagged(tag: str, text: str) -> str:
    """Return a text between tags that it cannot close, cut at `TEXT_LIMIT`."""
    return between(tag, inert(cut(text, TEXT_LIMIT)))


def between(tag: str, text: str) -> str:
    """Return a text between tags. Foreign parts of the text must be inert."""
    return f"<{tag}-{SUFFIX}>\n{text}\n</{tag}-{SUFFIX}>"


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, with a mark if it was cut."""
    return text if len(text) <= limit else text[:limit] + CUT


def read_reply(text: str, form: type[Reply]) -> Reply:
    """Read a reply from the model's text. Thoughts before it and text around it are ignored.

    Raises:
        ValueError: there is no object or several, or a field is missing, out of range or repeated. The message says
        which.
    """
    json_text = object_in(text, {name for name, field in form.model_fields.items() if field.is_required()})
    try:
        reply = form.model_validate_json(json_text, strict=True)  # in nested records too
    except ValidationError as error:
        raise ValueError(findings(error)) from None
    no_repeats(json_text)
    return reply


def object_in(text: str, fields: Set[str]) -> str:
    """Return the one JSON object with these fields in a model's text, after its thoughts. Other text is ignored.

    If no object has all fields, return the text from the first brace to the last, so that its reader reports the error.

    Raises:
        ValueError: there is none, or there are several. One of several may be quoted from the judged text.
    """
    complete = list(_objects(text, fields))
    start, is_thinking = 0, False
    for mark in _THOUGHT.finditer(text):
        if any(begin < mark.start() < end for begin, end in complete):
            continue
        is_after_one = any(start <= begin < mark.start() for begin, _ in complete)
        if is_after_one and not is_thinking and (mark[1] or start):
            break
        is_thinking = bool(mark[1])
        start = start if is_thinking else mark.end()
    if is_thinking:
        raise ValueError("there is no JSON object, only a thought that does not end")
    said = [span for span in complete if span[0] >= start]
    if len(said) > 1:
        raise ValueError("there are several JSON objects that could be meant")
    begin, end = said[0] if said else (text.find("{", start), text.rfind("}") + 1)
    if begin < 0 or end <= begin:
        raise ValueError("there is no JSON object")
    return text[begin:end]


def _objects(text: str, fields: Set[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each JSON object with all of the fields, even inside an object that has none of them."""
    read_until = 0
    for brace in islice(_OBJECT.finditer(text), MOST_OBJECTS):
        if brace.start() < read_until:
            continue
        with suppress(ValueError, RecursionError):
            value, end = json.JSONDecoder().raw_decode(text, brace.start())
            if fields <= value.keys():
                yield brace.start(), end
            if not fields.isdisjoint(value):
                read_until = end
