"""The answer judge (seed 001, SPEC section 4): an LLM's strict, structured opinion on one answer.

The prompts are text files beside this one. What is judged stands between tags that its text cannot close, in the user's
message alone: an answer that says "give 1.0" is a text to be judged.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from evaltrack.cache import VerdictCache
from evaltrack.llm import LLM, Answer, AnswerError, Schema
from evaltrack.records import ForeignText, Question, Response, Unit, Usage, Verdict

SOURCES_LIMIT, SOURCE_LIMIT, ANSWER_LIMIT = 12_000, 3_000, 12_000
"""Characters shown to the judge of all sources, of each, and of the answer; what is cut is marked."""

TAGS = ("question", "expected_answer", "sources", "source", "answer")


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
    """Judges answers with one model. Verdicts already paid for come from the cache."""

    def __init__(self, llm: LLM, name: str, verdicts: VerdictCache | None = None) -> None:
        self.name = name
        self.digest = prompt_digest()
        self._llm, self._cache = llm, verdicts

    @property
    def notes(self) -> list[str]:
        """What the server refused and was left out."""
        return self._llm.notes

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        """The verdict on one response.

        Raises:
            UnreadableVerdictError: what the model wrote could not be read, also after one repair attempt.
            AnswerError: the model gave nothing.
        """
        messages = judge_messages(question, response)
        key = self._key(messages)
        if self._cache is not None and (known := self._cache.get(key)) is not None:
            return known.model_copy(update={"cached": True, "judge": self.name})
        form = NegativeReply if question.negative else AnswerReply
        reply, usage = await self._ask(messages, form)
        verdict = Verdict(judge=self.name, usage=usage, **reply.model_dump())
        if self._cache is not None:
            self._cache.put(key, verdict)
        return verdict

    async def aclose(self) -> None:
        """Close the connections."""
        await self._llm.aclose()

    async def _ask(self, messages: list[dict[str, str]], form: type[_Reply]) -> tuple[_Reply, Usage | None]:
        first = await self._llm.ask(messages, reply_schema(form))
        try:
            return read_reply(first.text, form), first.usage
        except ValueError as error:
            wrong = str(error)
        asked = f"That cannot be read: {wrong}. Reply again: only the JSON object, every field present and in range."
        said = {"role": "assistant", "content": first.text[:ANSWER_LIMIT]}
        repair = [*messages, said, {"role": "user", "content": asked}]
        try:
            second = await self._llm.ask(repair, reply_schema(form))
            return read_reply(second.text, form), _sum(first, second)
        except (ValueError, AnswerError) as error:
            text = getattr(error, "text", "") or first.text
            tried = f"{wrong}; after one repair attempt: {error}"
            raise UnreadableVerdictError(f"{tried}; it wrote: {text[:500]!r}") from None

    def _key(self, messages: list[dict[str, str]]) -> str:
        """What a verdict depends on: model, server, parameters, prompt and everything shown."""
        parts = [self._llm.identity, self.digest, messages]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


@cache
def prompt(name: str) -> str:
    """The text of a prompt file."""
    return files("evaltrack.judges").joinpath(name).read_text("utf-8")


@cache
def prompt_digest() -> str:
    """SHA-256 (16 hex digits) of prompts and schemas: verdicts under different ones do not compare."""
    schemas = [reply_schema(form).schema for form in (AnswerReply, NegativeReply)]
    text = json.dumps([prompt("answer.txt"), prompt("negative.txt"), schemas], sort_keys=True)
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
    """A reply from what the model wrote; text around the JSON object, and a fence, are passed over.

    Raises:
        ValueError: no object, a field missing or off its scale; the message says which.
    """
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
    parts += [_sources(response), _tagged("answer", _cut(response.answer or "(no answer)", ANSWER_LIMIT))]
    system = prompt("negative.txt" if question.negative else "answer.txt")
    return [{"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(parts)}]


def _sources(response: Response) -> str:
    shown, left = [], SOURCES_LIMIT
    for source in response.sources or ():
        text = _cut(source.text or "", min(SOURCE_LIMIT, left))
        if text:
            shown.append(f"<source>\n{_inert(source.title or source.chunk_id or '')}\n{_inert(text)}\n</source>")
            left -= len(text)
        if left <= 0:
            break
    return "<sources>\n" + ("\n".join(shown) or "(none with text)") + "\n</sources>"


def _tagged(tag: str, text: str) -> str:
    return f"<{tag}>\n{_inert(text)}\n</{tag}>"


def _inert(text: str) -> str:
    """A text that can neither open nor close one of our tags."""
    return re.sub(rf"<(\s*/?\s*(?:{'|'.join(TAGS)})\b)", r"&lt;\1", text, flags=re.IGNORECASE)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + " [... cut]"


def _sum(first: Answer, second: Answer) -> Usage | None:
    if first.usage is None or second.usage is None:
        return first.usage or second.usage
    return Usage(
        prompt_tokens=first.usage.prompt_tokens + second.usage.prompt_tokens,
        completion_tokens=first.usage.completion_tokens + second.usage.completion_tokens,
    )
