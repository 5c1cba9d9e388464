"""Returns an application's answers from its MLflow traces, as the target `traces:EXPERIMENT`. Nothing is asked.

Question and answer are the inputs and outputs of a root span, sources are the output of its retriever spans; tools,
tokens, model and time are the trace's. A trace belongs to the golden question with the trace's id, else to the one with
its text (case-folded, white space as one space). If several traces of one text differ, none is used, or the one that
the setting `take` selects. Traces that evaltrack wrote are left out.

| setting | meaning |
| --- | --- |
| `filter` | MLflow's filter of traces, such as `trace.status = 'OK' AND tags.env = 'prod'` |
| `take` | of several traces of a question: `newest` or `oldest` |
| `question`, `answer` | JMESPath of the question in the inputs and the answer in the outputs, if not in a usual place |
| `store` | the MLflow store with the traces; default: the run's |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qsl

from pydantic import Field

from evaltrack.errors import UsageError
from evaltrack.golden.importing.values import shown, text_in
from evaltrack.golden.words import text_key
from evaltrack.records import Question, Response, Target
from evaltrack.records.base import first_of
from evaltrack.records.response import TraceHome
from evaltrack.targets import TargetSettings, checked_settings
from evaltrack.targets.failures import FailedElsewhereError, NotRecordedError, error_text
from evaltrack.targets.libraries import texts_in
from evaltrack.targets.recorded import Packed, packed, unpacked
from evaltrack.targets.responses import Expression, as_response, compile_expression, with_contexts
from evaltrack.tracking.past_traces import PastTrace, link_traces, past_traces
from evaltrack.tracking.store import Store, connect

EXAMPLES = 3


class TraceSettings(TargetSettings):
    """The settings of a target of traces."""

    filter: str = ""
    take: Literal["", "newest", "oldest"] = Field("", description="newest or oldest")
    question: str = ""
    answer: str = ""
    store: str = ""


def open_traces(place: str, settings: dict[str, str]) -> Target:
    """Return the traces of an experiment, the newest first, indexed by question.

    Raises:
        UsageError: there is no such experiment, it holds no traces, or a setting is wrong.
        TrackingError: the store does not answer.
    """
    given = checked_settings("traces", TraceSettings, settings)
    reader = TraceReader(expression("question", given.question), expression("answer", given.answer))
    store = connect(given.store or None)
    return TracedAnswers(place, store, past_traces(store, place, given.filter), reader, given.take)


def trace_settings(source: str) -> tuple[str, TraceSettings]:
    """Return the experiment of ``traces:EXPERIMENT?…`` and its settings.

    Raises:
        UsageError: it names no experiment, or a setting is unknown.
    """
    place, _, query = source.removeprefix("traces:").partition("?")
    if not place:
        raise UsageError(f"`{shown(source)}` names no experiment; write traces:EXPERIMENT")
    return place, checked_settings("traces", TraceSettings, dict(parse_qsl(query, keep_blank_values=True)))


def expression(name: str, text: str) -> Expression | None:
    """Return a setting in JMESPath; None if it is not given."""
    return compile_expression("traces", name, text) if text else None


class TracedAnswers(Target):
    """Returns for each question the content of its trace."""

    takes_history: bool = True
    """The application was given the turns when it was asked, so nothing is left out here."""

    has_traces: bool = True

    def __init__(self, place: str, store: Store, traces: Iterable[PastTrace], reader: TraceReader, take: str) -> None:
        self._place, self._store, self._take = place, store, take
        self._packed: dict[str, Packed] = {}
        """The response or failure of each trace by id, the newest first."""
        self._by_text: dict[str, list[str]] = {}
        self._unread: dict[str, str] = {}
        self.used: dict[str, None] = {}
        """Ids of the traces that belong to questions of the golden set."""
        self._missing: dict[str, None] = {}
        for trace in traces:
            self._put(trace, reader)
        if not self._packed:
            raise UsageError(f"traces target: experiment `{shown(place)}` holds no trace to evaluate{self._why()}")

    def _why(self) -> str:
        first = next(iter(self._unread.items()), None)
        return f": {first[0]}: {first[1]}" if first else "; check the `filter=`"

    def _put(self, trace: PastTrace, reader: TraceReader) -> None:
        if not trace.ended:
            self._unread[trace.id] = "has not ended"
            return
        try:
            fields = reader.fields_of(trace)
            question = text_key(fields.pop("question"))
            if error := fields.get("error"):
                content = packed(FailedElsewhereError(f"the trace recorded: {' '.join(error.split())}"))
            else:
                content = packed(as_response(fields).model_copy(update={"seconds": trace.seconds}))
        except (ValueError, RecursionError) as error:
            self._unread[trace.id] = str(error)[:200]
            return
        self._packed[trace.id] = content
        self._by_text.setdefault(question, []).append(trace.id)

    @property
    def notes(self) -> list[str]:
        """Notes on traces that were not read or match no question, and on questions without a trace, with examples."""
        of = f"traces of `{shown(self._place)}`"
        names = {
            " that were not read": [f"{key} ({shown(why)})" for key, why in self._unread.items()],
            f" of {len(self._packed):,} that match no question of the golden set": [
                key for key in self._packed if key not in self.used
            ],
            ": questions without a trace": [f"`{shown(key)}`" for key in self._missing],
        }
        return [f"{of}{what}: {len(all_):,} ({first_of(all_, EXAMPLES)})" for what, all_ in names.items() if all_]

    def link_to(self, home: TraceHome) -> str | None:
        """Link the traces to a run in their store."""
        return link_traces(self._store, home.run_id, self.used) if home.store == self._store.uri else None

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """Return the content of the question's trace.

        Raises:
            FailedElsewhereError: the trace ended in an error.
            NotRecordedError: the question has no trace, or several that differ.
        """
        return unpacked(self._packed[self._trace_of(question)])

    def _trace_of(self, question: Question) -> str:
        """Return the id of a question's trace."""
        by_text = self._by_text.get(text_key(question.question), [])
        ids = [question.id] if question.id in self._packed else by_text
        if not ids:
            self._missing[question.id] = None
            raise NotRecordedError(f"no trace of `{shown(self._place)}` matches question `{question.id}`")
        self.used.update(dict.fromkeys(ids))
        if not self._take and len({_content_key(self._packed[each]) for each in ids}) > 1:
            several = f"{len(ids):,} traces answer question `{question.id}` differently"
            raise NotRecordedError(f"{several}; take one with `take=newest`, or narrow the `filter=`")
        return ids[-1 if self._take == "oldest" else 0]


def _content_key(content: Packed) -> str:
    """Return the text by which responses are compared: all but duration and tokens."""
    try:
        return unpacked(content).model_copy(update={"seconds": None, "usage": None}).model_dump_json()
    except FailedElsewhereError as error:
        return str(error)


@dataclass(frozen=True)
class TraceReader:
    """Reads traces; the expressions are JMESPath.

    Attributes:
        question: Finds the question in the inputs of a root span; None: a usual place.
        answer: Finds the answer in its outputs; None: a usual place.
    """

    question: Expression | None = None
    answer: Expression | None = None

    def question_of(self, trace: PastTrace) -> str:
        """Return the text of the question.

        Raises:
            ValueError: the inputs hold none.
        """
        try:
            text, _ = text_in(self.question.find(trace.inputs) if self.question else trace.inputs)
        except ValueError as error:
            raise ValueError(f"its inputs: {error}; say which with `question=`") from None
        if not text.strip():
            raise ValueError("its question is empty")
        return text

    def fields_of(self, trace: PastTrace) -> dict[str, Any]:
        """Return the fields of a response, or an `error`, and the text of the `question`.

        Raises:
            ValueError: its inputs hold no question, or its outputs no answer.
        """
        question = self.question_of(trace)
        sources, outputs = trace.documents, trace.outputs
        if failure := trace.failure or (outputs.get("error") if isinstance(outputs, Mapping) else None):
            return {"question": question, "error": error_text(failure)}
        if sources is None and isinstance(outputs, Mapping):
            held = with_contexts(outputs).get("sources")
            sources = held if isinstance(held, list) else None
        fields = {
            "question": question,
            "answer": _answer(self.answer.find(outputs) if self.answer else outputs, sources),
            "sources": sources,
            "tool_calls": list(trace.tool_calls) or None,
            "usage": _usage(trace.usage or {}),
            "model": trace.model,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _answer(value: object, sources: Sequence[Any] | None) -> str | None:
    """Return the text of the answer; None if the outputs are only the sources."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value == sources:
        return None
    texts = list(texts_in(value))
    if not texts:
        raise ValueError(f"its outputs hold no answer but {json.dumps(value)[:80]}; say where with `answer=`")
    return "".join(texts)


def _usage(usage: Mapping[str, Any]) -> dict[str, int] | None:
    """Return MLflow's token counts; cached tokens are part of the total, but not always of the input."""
    given, made, total = (usage.get(name) for name in ("input_tokens", "output_tokens", "total_tokens"))
    if not isinstance(given, int) or not isinstance(made, int):
        return None
    prompt = total - made if isinstance(total, int) and total - made >= given else given
    cached = usage.get("cache_read_input_tokens")
    parts = {"cached_tokens": cached} if isinstance(cached, int) and cached else {}
    return {"prompt_tokens": prompt, "completion_tokens": made, **parts}
