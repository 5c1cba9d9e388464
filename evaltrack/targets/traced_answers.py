"""A trace as a recorded result: question, answer, sources, tools and tokens out of inputs, outputs and spans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaltrack.golden.importing.values import is_empty, text_in
from evaltrack.targets.failures import error_text
from evaltrack.targets.mapping import Expression
from evaltrack.targets.responses import with_contexts
from evaltrack.tracking.past_traces import PastTrace

ANSWER_KEYS = ("answer", "response", "output", "output_text", "result", "content", "text", "completion")


@dataclass(frozen=True)
class TraceResult:
    """What a trace holds.

    Attributes:
        question: The text that was asked.
        fields: Those of a response; a source may have a text alone.
        failure: Why there is no response; empty where there is one.
    """

    question: str
    fields: Mapping[str, Any]
    failure: str = ""


@dataclass(frozen=True)
class TraceReader:
    """Reads traces; where an expression is given it says in JMESPath what to take.

    Attributes:
        question: Where the question stands in the inputs of a root span.
        answer: Where the answer stands in its outputs.
    """

    question: Expression | None = None
    answer: Expression | None = None

    def question_of(self, trace: PastTrace) -> str:
        """The text that was asked.

        Raises:
            ValueError: the inputs hold none.
        """
        text = _question(self.question.find(trace.inputs) if self.question else trace.inputs)
        if not text.strip():
            raise ValueError("its question is empty")
        return text

    def result(self, trace: PastTrace) -> TraceResult:
        """Question and response of a trace.

        Raises:
            ValueError: its inputs hold no question, or its outputs no answer.
        """
        question = self.question_of(trace)
        sources, outputs = trace.documents, trace.outputs
        if failure := trace.failure or (outputs.get("error") if isinstance(outputs, Mapping) else None):
            return TraceResult(question, {}, error_text(failure))
        if sources is None and isinstance(outputs, Mapping):
            held = with_contexts(outputs).get("sources")
            sources = held if isinstance(held, list) else None
        fields = {
            "answer": _answer(self.answer.find(outputs) if self.answer else outputs, sources),
            "sources": sources,
            "tool_calls": list(trace.tool_calls) or None,
            "usage": _usage(trace.usage or {}),
            "model": trace.model,
        }
        return TraceResult(question, {name: value for name, value in fields.items() if value is not None})


def _question(value: object) -> str:
    """The text that was asked; of several inputs the one under a usual name, else the only text."""
    if isinstance(value, Mapping) and is_empty(value.get("question")):
        for name in ("messages", "input", "request"):
            held = value.get(name)
            if isinstance(held, list | Mapping) and not is_empty(held):
                return _question(held)
    if isinstance(value, list) and value and isinstance(value[-1], Mapping):
        return _of_messages(value)
    try:
        return text_in(value)[0]
    except ValueError as error:
        texts = [each for each in value.values() if isinstance(each, str)] if isinstance(value, Mapping) else []
        if len(texts) == 1:
            return texts[0]
        raise ValueError(f"its inputs: {error}; say which with `question=`") from None


def _of_messages(messages: Sequence[Any]) -> str:
    """The last message of a person."""
    people = [each for each in messages if isinstance(each, Mapping) and each.get("role") in ("user", "human")]
    if not people:
        raise ValueError("its inputs hold no message of a user; say where the question is with `question=`")
    return "".join(texts_in(people[-1].get("content")))


def _answer(value: object, sources: Sequence[Any] | None) -> str | None:
    """The text that was answered; None where what came back are the sources alone."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value == sources:
        return None
    texts = list(texts_in(value))
    if not texts:
        raise ValueError(f"its outputs hold no answer but {json.dumps(value)[:80]}; say where with `answer=`")
    return "".join(texts)


def texts_in(value: object, depth: int = 0) -> Iterator[str]:
    """The texts of an answer in the forms of chat models: a text, messages, parts of one, choices, output items.

    Of a conversation it is the last message; `depth` is how deep it stands in the whole.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and value and depth < 8:
        items = [each for each in value if not isinstance(each, Mapping) or _says(each)]
        is_chat = any(isinstance(each, Mapping) and ("role" in each or each.get("type") == "message") for each in items)
        for each in items[-1:] if is_chat else items:
            yield from texts_in(each, depth + 1)
    elif isinstance(value, Mapping) and depth < 8:
        if isinstance(choices := value.get("choices"), list) and choices:
            yield from texts_in(choices[0], depth + 1)
            return
        names = ("message", "messages", *ANSWER_KEYS)
        name = next((each for each in names if not is_empty(value.get(each))), None)
        if name is not None:
            yield from texts_in(value[name], depth + 1)


def _says(item: Mapping[str, Any]) -> bool:
    """Whether an item of a conversation is a person's or a model's word: no call of a tool, nor what it gave."""
    kind, role = item.get("type", "message"), item.get("role", "assistant")
    return kind in ("message", "text", "output_text", "ai", "human") and role in ("assistant", "ai", "user", "human")


def _usage(usage: Mapping[str, Any]) -> dict[str, int] | None:
    """Tokens as MLflow adds them up; cached ones are part of its total, whether or not of its input."""
    given, made, total = (usage.get(name) for name in ("input_tokens", "output_tokens", "total_tokens"))
    if not isinstance(given, int) or not isinstance(made, int):
        return None
    prompt = total - made if isinstance(total, int) and total - made >= given else given
    cached = usage.get("cache_read_input_tokens")
    parts = {"cached_tokens": cached} if isinstance(cached, int) and cached else {}
    return {"prompt_tokens": prompt, "completion_tokens": made, **parts}
