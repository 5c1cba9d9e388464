"""What a model proposed, read and held against the corpus. Pure."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.library import Library
from evaltrack.golden.words import text_key
from evaltrack.llm import Schema
from evaltrack.records import Passage
from evaltrack.records.base import storable
from evaltrack.records.passage import words_of

LEAST_WORDS, MOST_WORDS = 3, 60
"""Words of a quotation: fewer stand elsewhere too, more are cut by the border of any other chunk."""

MOST_MISSING = 8
"""Words of the thing that a near miss asks for."""

Line = dict[str, Any]

ShortText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), BeforeValidator(storable)
]
LongText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000), BeforeValidator(storable)
]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    question: ShortText


class QuestionReply(_Reply):
    """A question, the words of the passage that answer it, and the answer."""

    quote: LongText
    answer: LongText


class NearMissReply(_Reply):
    """A question that the corpus does not answer, and the thing in it that the corpus does not know."""

    missing: ShortText


def reply_schema(form: type[_Reply]) -> Schema:
    """The strict JSON schema of a reply: texts, all required, none besides."""
    properties = {name: {"type": "string"} for name in form.model_fields}
    return Schema(
        "question",
        {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False},
    )


def answered_line(reply: QuestionReply, chunk: Chunk, library: Library) -> Line:
    """The fields of a golden line that expects the chunk.

    Raises:
        ValueError: the quotation does not stand in the chunk, stands in another one too, or is too short or long.
    """
    quote = " ".join(reply.quote.split())
    if quote not in " ".join(chunk.text.split()):
        raise ValueError("quote: does not stand in the passage to the letter; copy it, and leave nothing out")
    count = len(words_of(quote))
    if not LEAST_WORDS <= count <= MOST_WORDS:
        raise ValueError(f"quote: has {count} words; copy from {LEAST_WORDS} to {MOST_WORDS}")
    passage = Passage(quote=quote, share=1.0)
    if any(text.holds(passage) for key, text in library.texts.items() if key != chunk.id):
        raise ValueError("quote: stands in another passage too; copy more words, that stand in this one alone")
    return {
        "question": " ".join(reply.question.split()),
        "expected_chunks": [chunk.id],
        "expected_passages": [{"quote": quote, "source": chunk.title}],
        "expected_answer": " ".join(reply.answer.split()),
    }


def near_miss_line(reply: NearMissReply, library: Library) -> Line:
    """The fields of a golden line that expects nothing.

    Raises:
        ValueError: what is called missing is not in the question, or stands in the corpus.
    """
    missing = words_of(reply.missing)
    if not 1 <= len(missing) <= MOST_MISSING:
        raise ValueError(f"missing: has {len(missing)} words; name the thing in one to four")
    if f" {' '.join(missing)} " not in f" {' '.join(words_of(reply.question))} ":
        raise ValueError("missing: is not in the question; write it as it stands there")
    thing = Passage(quote=reply.missing, share=1.0)
    titles = f" {' '.join(words_of(' / '.join(dict.fromkeys(chunk.title for chunk in library.chunks))))} "
    if thing.spaced in titles or any(text.holds(thing) for text in library.texts.values()):
        raise ValueError("missing: stands in the documentation; ask for a thing of which it says nothing")
    return {
        "question": " ".join(reply.question.split()),
        "expected_chunks": [],
        "notes": f"nothing in the corpus says: {' '.join(reply.missing.split())}",
    }


def refuse_copy(question: str, prompt: str) -> None:
    """Refuse a question that stands in the prompt.

    Raises:
        ValueError: it does.
    """
    if text_key(question).strip(" .?!") in text_key(prompt):
        raise ValueError("question: is copied from the instructions; write one of your own")
