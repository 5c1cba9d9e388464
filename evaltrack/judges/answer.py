"""The answer judge (seed 001, SPEC section 4): an LLM's strict, structured opinion on one answer.

The prompts are text files beside this one. What is judged stands between tags that its text cannot close, in the user's
message alone: an answer that says "give 1.0" is a text to be judged.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Annotated, Any
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from evaltrack.cache import VerdictCache
from evaltrack.llm import LLM, Answer, AnswerError, Schema
from evaltrack.records import ForeignText, Question, Response, Unit, Usage, Verdict

TEXT_LIMIT, SOURCES_LIMIT, SOURCE_LIMIT, TITLE_LIMIT = 12_000, 12_000, 3_000, 300
"""Characters shown to the judge: of question, expected answer and answer each; of all sources; of the text and the
title of one source. What is cut is marked."""

TAGS = ("question", "expected_answer", "sources", "source", "answer")
CUT = " [... cut]"
RAW_SHOWN = 500


class UnreadableVerdictError(Exception):
    """The judge's answer could not be read, also after one repair attempt; the message holds its raw text."""


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    reasoning: Annotated[ForeignText, StringConstraints(min_length=1)]


class AnswerReply(_Reply):
    """What the judge writes of an answerable question. `reasoning` comes first, so that it precedes the numbers."""

    accuracy: Unit
    completeness: Unit
    relevance: Unit
    overall_score: Unit


class NegativeReply(_Reply):
    """What the judge writes of a negative."""

    declined: bool


class AnswerJudge:
    """Judges answers with one model. Verdicts already paid for come from the cache; another `trial` has its own."""

    def __init__(self, llm: LLM, name: str, verdicts: VerdictCache | None = None, *, trial: int = 0) -> None:
        self.name = name
        self.digest = prompt_digest()
        self._llm, self._cache, self._trial = llm, verdicts, trial
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def notes(self) -> list[str]:
        """What the server refused and was left out."""
        return self._llm.notes

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        """The verdict on one response.

        Raises:
            UnreadableVerdictError: what the model wrote could not be read, also after one repair attempt.
            AnswerError: the model gave nothing.
            ServerRefusesError, QuotaError, BusyError: no question can be judged any more.
        """
        messages = judge_messages(question, response)
        form = NegativeReply if question.negative else AnswerReply
        if self._cache is None:
            return await self._paid(messages, form)
        key = self._key(messages)
        async with self._locks.setdefault(key, asyncio.Lock()):  # who asks the same meanwhile waits and pays nothing
            if (known := self._cache.get(key)) is not None:
                return known.model_copy(update={"cached": True, "judge": self.name})
            verdict = await self._paid(messages, form)
            await asyncio.to_thread(self._cache.put, key, verdict)  # waits for the disk
            return verdict

    async def aclose(self) -> None:
        """Close the connections."""
        await self._llm.aclose()

    async def _paid(self, messages: list[dict[str, str]], form: type[_Reply]) -> Verdict:
        reply, usage = await self._ask(messages, form)
        return Verdict(judge=self.name, usage=usage, **reply.model_dump())

    async def _ask(self, messages: list[dict[str, str]], form: type[_Reply]) -> tuple[_Reply, Usage | None]:
        first = await self._llm.ask(messages, reply_schema(form))
        try:
            return read_reply(first.text, form), first.usage
        except ValueError as error:
            wrong = str(error)
        asked = f"That cannot be read: {wrong}. Reply again: only the JSON object, every field present and in range."
        said = {"role": "assistant", "content": first.text[:TEXT_LIMIT]}
        text = first.text
        try:
            second = await self._llm.ask([*messages, said, {"role": "user", "content": asked}], reply_schema(form))
            text = second.text
            return read_reply(text, form), _sum(first, second)
        except (ValueError, AnswerError) as error:
            tried = f"{wrong}; after one repair attempt: {error}"
            raise UnreadableVerdictError(f"{tried}; it wrote: {text[:RAW_SHOWN]!r}") from None

    def _key(self, messages: list[dict[str, str]]) -> str:
        """What a verdict depends on: model, server, parameters, prompt, everything shown, and the trial."""
        parts = [self._llm.identity, self.digest, messages, self._trial]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


@cache
def prompt(name: str) -> str:
    """The text of a prompt file."""
    return files("evaltrack.judges").joinpath(name).read_text("utf-8")


@cache
def prompt_digest() -> str:
    """SHA-256 (16 hex digits) of prompts, schemas and limits: verdicts under different ones do not compare."""
    schemas = [reply_schema(form).schema for form in (AnswerReply, NegativeReply)]
    limits = [TEXT_LIMIT, SOURCES_LIMIT, SOURCE_LIMIT, TITLE_LIMIT]
    text = json.dumps([prompt("answer.txt"), prompt("negative.txt"), schemas, limits])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def reply_schema(form: type[_Reply]) -> Schema:
    """The strict JSON schema of a reply: all fields required, none besides, numbers bounded."""
    properties: dict[str, Any] = {"reasoning": {"type": "string"}}
    for name in form.model_fields:
        if name == "declined":
            properties[name] = {"type": "boolean"}
        elif name != "reasoning":
            properties[name] = {"type": "number", "minimum": 0, "maximum": 1}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return Schema("verdict", schema)


def read_reply(text: str, form: type[_Reply]) -> _Reply:
    """A reply from what the model wrote; thoughts before it, text around it and a fence are passed over.

    Two objects are not read: one of them may be quoted from the answer that is judged.

    Raises:
        ValueError: no object or several, a field missing or off its scale; the message says which.
    """
    if text.lstrip().startswith("<think>"):
        text = text.rpartition("</think>")[2]
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise ValueError("there is no JSON object")
    try:
        return form.model_validate_json(text[start : end + 1])
    except ValidationError as error:
        found = [f"{'.'.join(map(str, e['loc'])) or 'JSON'}: {e['msg']}" for e in error.errors(include_url=False)]
        raise ValueError("; ".join(found[:4])) from None


def judge_messages(question: Question, response: Response) -> list[dict[str, str]]:
    """What the judge is shown: the prompt as system message, and all data between tags in one user message."""
    parts = [_tagged("question", question.question)]
    if not question.negative and question.expected_answer:
        parts.append(_tagged("expected_answer", question.expected_answer))
    parts += [_sources(response), _tagged("answer", response.answer or "(no answer)")]
    system = prompt("negative.txt" if question.negative else "answer.txt")
    return [{"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(parts)}]


def _sources(response: Response) -> str:
    shown: list[str] = []
    left = SOURCES_LIMIT
    with_text = [source for source in response.sources or () if source.text]
    for source in with_text:
        if left <= 0:
            shown.append(f"({len(with_text) - len(shown)} more)")
            break
        title = _cut(source.title or source.chunk_id or "", TITLE_LIMIT)
        text = _cut(source.text or "", min(SOURCE_LIMIT, left))
        shown.append(f"<source>\n{_inert(title)}\n{_inert(text)}\n</source>")
        left -= len(title) + len(text)
    return "<sources>\n" + ("\n".join(shown) or "(none with text)") + "\n</sources>"


def _tagged(tag: str, text: str) -> str:
    return f"<{tag}>\n{_inert(_cut(text, TEXT_LIMIT))}\n</{tag}>"


def _inert(text: str) -> str:
    """A text that can neither open nor close one of our tags."""
    return re.sub(rf"<(\s*/?\s*(?:{'|'.join(TAGS)})\b)", r"&lt;\1", text, flags=re.IGNORECASE)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + CUT


def _sum(*answers: Answer) -> Usage | None:
    """The tokens of all calls together, as far as the server told them; None where it told none."""
    told = [answer.usage for answer in answers if answer.usage is not None]
    return sum(told[1:], start=told[0]) if told else None
