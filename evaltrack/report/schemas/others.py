"""The forms of what the smaller commands print with `--output json`."""

from __future__ import annotations

from typing import Any

from evaltrack.golden.lint.finding import Finding
from evaltrack.records import Question, Response, Source
from evaltrack.report.schemas.form import Form, schema_of


class IndexChunk(Form):
    """A chunk of a page."""

    chunk_id: str
    heading: str
    words: int


class IndexPage(Form):
    """A page with its chunks."""

    page: str
    title: str
    chunks: list[IndexChunk]


class IndexForm(Form):
    """The chunks of a folder."""

    project: str
    folder: str
    num_chunks: int
    documents: list[IndexPage]


class RankedSource(Source):
    """A source at its rank, from 1."""

    rank: int


class AnswerForm(Form):
    """What a target gave for one question; where it failed, `error` says why and `sources` is null."""

    question: str
    target: str
    seconds: float
    error: str | None
    sources: list[RankedSource] | None


class BaselineForm(Form):
    """A promotion; `at` is UTC in ISO 8601."""

    golden: str
    run_id: str
    by: str
    at: str
    reason: str


class CacheForm(Form):
    """How much the cache of verdicts holds."""

    path: str
    bytes: int
    verdicts: int | None
    problem: str | None


class ImportForm(Form):
    """The result of an import."""

    path: str
    form: str
    questions: int
    negatives: int
    judged_only: int
    notes: list[str]


class AnchorForm(Form):
    """The quotation chosen for one expected chunk; `doubt` says why a person should look at it."""

    question: str
    chunk: str
    quote: str
    doubt: str


class LeftQuestion(Form):
    """A question that got no quotation."""

    question: str
    reason: str


class AnchorsForm(Form):
    """The quotations that were added."""

    anchors: list[AnchorForm]
    left: list[LeftQuestion]


def answer_schema() -> dict[str, Any]:
    """`evaltrack ask --output json`: a response with its question."""
    schema = schema_of(AnswerForm, "answer", "A target's answer: evaltrack ask --output json")
    response = schema_of(Response, "", "")
    schema["$defs"] = response["$defs"] | schema["$defs"]
    schema["properties"] = response["properties"] | schema["properties"]
    return schema


def questions_schema() -> dict[str, Any]:
    """`evaltrack golden draft --output json`: the questions that were added; a field with its default is left out."""
    schema = schema_of(list[Question], "questions", "Added questions: evaltrack golden draft --output json")
    schema["$defs"]["Question"]["required"] = ["id", "question", "domain"]
    schema["$defs"]["Passage"]["required"] = []
    return schema


def question_schema() -> dict[str, Any]:
    """`evaltrack golden add --output json`: the question that was added."""
    schema = schema_of(Question, "question", "An added question: evaltrack golden add --output json")
    schema["required"], schema["$defs"]["Passage"]["required"] = ["id", "question", "domain"], []
    return schema


FORMS = {
    "findings": (list[Finding], "Findings: evaltrack golden lint --output json"),
    "baselines": (list[BaselineForm], "Baselines: evaltrack baseline list --output json, and history"),
    "index": (IndexForm, "Chunks: evaltrack index --output json"),
    "cache": (CacheForm, "The cache of verdicts: evaltrack cache show --output json"),
    "import": (ImportForm, "An import: evaltrack golden import --output json"),
    "anchors": (AnchorsForm, "Added quotations: evaltrack golden anchor --output json"),
}
