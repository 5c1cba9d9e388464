"""`traces:EXPERIMENT`: what an application answered, from the traces that it logged to MLflow. Nothing is asked.

Question and answer are the inputs and outputs of a root span, sources what its retriever spans returned; tools, tokens,
model and time are those of the trace. A trace is of the golden question whose id is that of the trace, else of the one
with its text (case-folded, white space as one space). Where several traces of one text differ, none is taken, or the
one that the setting `take` says. Traces that evaltrack wrote are left out.

| setting | meaning |
| --- | --- |
| `filter` | MLflow's filter of traces, such as `trace.status = 'OK' AND tags.env = 'prod'` |
| `take` | of several traces of a question: `newest` or `oldest` |
| `question`, `answer` | JMESPath: where they stand in inputs and outputs, where that is no usual place |
| `store` | the MLflow store that holds the traces; by default that of the run |
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl
from zlib import compress, decompress

from evaltrack.errors import UsageError
from evaltrack.golden.importing.values import shown
from evaltrack.golden.words import text_key
from evaltrack.records import Question, Response, Target
from evaltrack.records.amount import first_of
from evaltrack.records.response import TraceHome
from evaltrack.targets import no_more_settings
from evaltrack.targets.failures import FailedElsewhereError, NotRecordedError
from evaltrack.targets.mapping import Expression, compile_expression
from evaltrack.targets.responses import as_response
from evaltrack.targets.traced_answers import TraceReader
from evaltrack.tracking.past_traces import PastTrace, link_traces, past_traces
from evaltrack.tracking.store import Store, connect

SETTINGS = ("filter", "take", "question", "answer", "store")
EXAMPLES = 3
FAILED, MAX_FAILURE = b"F", 2000
"""What goes before the text of a failure, and its bytes."""


def open_traces(place: str, settings: dict[str, str]) -> Target:
    """Read the traces of an experiment, the newest first, and index them by question.

    Raises:
        UsageError: there is no such experiment, it holds no traces, or a setting is wrong.
        TrackingError: the store does not answer.
    """
    values = _values(settings)
    reader = TraceReader(expression("question", values["question"]), expression("answer", values["answer"]))
    store = connect(values["store"] or None)
    return TracedAnswers(place, store, past_traces(store, place, values["filter"]), reader, values["take"])


def trace_settings(source: str) -> tuple[str, dict[str, str]]:
    """The experiment of ``traces:EXPERIMENT?…``, and each of its settings, empty where it is not given.

    Raises:
        UsageError: it names no experiment, or a setting is unknown.
    """
    place, _, query = source.removeprefix("traces:").partition("?")
    if not place:
        raise UsageError(f"`{shown(source)}` names no experiment; write traces:EXPERIMENT")
    return place, _values(dict(parse_qsl(query, keep_blank_values=True)))


def _values(settings: dict[str, str]) -> dict[str, str]:
    values = {name: settings.pop(name, "") for name in SETTINGS}
    no_more_settings("traces", settings, ", ".join(SETTINGS))
    if values["take"] not in ("", "newest", "oldest"):
        raise UsageError(f"traces target: take is `{shown(values['take'])}`; write newest or oldest")
    return values


def expression(name: str, text: str) -> Expression | None:
    """A setting in JMESPath; None where it is not given."""
    return compile_expression("traces", name, text) if text else None


class TracedAnswers(Target):
    """Gives for each question what its trace holds."""

    takes_history: bool = True
    """They were given to whatever was asked then: nothing is left out here."""

    has_traces: bool = True

    def __init__(self, place: str, store: Store, traces: Iterable[PastTrace], reader: TraceReader, take: str) -> None:
        self._place, self._store, self._take = place, store, take
        self._packed: dict[str, bytes] = {}
        """What the trace of an id holds, the newest first: a response, or the text of a failure after `FAILED`."""
        self._by_text: dict[str, list[str]] = {}
        self._unread, self._running = dict[str, str](), 0
        self.used: dict[str, None] = {}
        """Ids of the traces that questions of the golden set are of."""
        self._ambiguous: dict[str, None] = {}
        self._missing: dict[str, None] = {}
        for trace in traces:
            self._put(trace, reader)
        if not self._packed:
            raise UsageError(f"traces target: experiment `{shown(place)}` holds no trace to evaluate{self._why()}")

    def _why(self) -> str:
        first = next(iter(self._unread.items()), None)
        return f": {first[0]}: {first[1]}" if first else "; check the `filter=`" if not self._running else ""

    def _put(self, trace: PastTrace, reader: TraceReader) -> None:
        if not trace.ended:
            self._running += 1
            return
        try:
            result = reader.result(trace)
            content = FAILED + " ".join(result.failure.split()).encode("utf-8", "replace")[:MAX_FAILURE]
            if not result.failure:
                response = as_response(result.fields).model_copy(update={"seconds": trace.seconds})
                content = response.model_dump_json(exclude_defaults=True).encode()
        except (ValueError, RecursionError) as error:
            self._unread[trace.id] = str(error)[:200]
            return
        self._packed[trace.id] = compress(content)
        self._by_text.setdefault(text_key(result.question), []).append(trace.id)

    @property
    def notes(self) -> list[str]:
        """What of traces and questions found no other, or no way to be read; each with how many and which."""
        of, total = f"traces of `{shown(self._place)}`", len(self._packed)
        unread = [f"{key} ({shown(why)})" for key, why in list(self._unread.items())[:EXAMPLES]]
        lines = {
            "without a question or an answer": (len(self._unread), unread),
            "that have not ended": (self._running, []),
            f"of {total:,} that no question of the golden set is of": (total - len(self.used), self._others()),
        }
        notes = [f"{of} {what}: {count:,}{_named(first, count)}" for what, (count, first) in lines.items() if count]
        questions = {
            "that no trace is of": list(self._missing),
            "that several traces answer in different ways (`take=newest` takes one)": list(self._ambiguous),
        }
        notes += [
            f"{of}: questions {what}: {len(keys):,}{_named([f'`{shown(key)}`' for key in keys[:EXAMPLES]], len(keys))}"
            for what, keys in questions.items()
            if keys
        ]
        return notes

    def _others(self) -> list[str]:
        """The first traces that no question took."""
        others = (key for key in self._packed if key not in self.used)
        return [key for key, _ in zip(others, range(EXAMPLES), strict=False)]

    def link_to(self, home: TraceHome) -> str | None:
        """Link the traces to a run in their store."""
        return link_traces(self._store, home.run_id, self.used) if home.store == self._store.uri else None

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """What the trace of the question holds.

        Raises:
            FailedElsewhereError: the trace ended in an error.
            NotRecordedError: no trace is of the question, or several that differ.
        """
        content = decompress(self._packed[self._trace_of(question)])
        if content.startswith(FAILED):
            raise FailedElsewhereError(f"the trace recorded: {content.removeprefix(FAILED).decode('utf-8', 'replace')}")
        return Response.model_validate_json(content)

    def _trace_of(self, question: Question) -> str:
        """The id of the trace of a question."""
        by_text = self._by_text.get(text_key(question.question), [])
        ids = [question.id] if question.id in self._packed else by_text
        if not ids:
            self._missing[question.id] = None
            raise NotRecordedError(f"no trace of `{shown(self._place)}` is of question `{question.id}`")
        self.used.update(dict.fromkeys(ids))
        if not self._take and len({_said(self._packed[each]) for each in ids}) > 1:
            self._ambiguous[question.id] = None
            several = f"{len(ids):,} traces answer question `{question.id}`, and not alike"
            raise NotRecordedError(f"{several}; take one with `take=newest`, or narrow the `filter=`")
        return ids[-1 if self._take == "oldest" else 0]


def _said(packed: bytes) -> bytes:
    """What makes two responses the same: all but the time and the tokens that they took."""
    content = decompress(packed)
    if content.startswith(FAILED):
        return content
    response = Response.model_validate_json(content)
    return response.model_copy(update={"seconds": None, "usage": None}).model_dump_json().encode()


def _named(names: list[str], count: int) -> str:
    return f" ({first_of(names, len(names), count)})" if names else ""
