"""Renders a run as one HTML page (pass counts, metrics, all questions or a sample), and as text for notebooks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from evaltrack.evaluation.result import RunResult
from evaltrack.records.base import count
from evaltrack.records.row import Row
from evaltrack.report.escaping import one_line
from evaltrack.report.html.page import (
    document,
    questions_script,
    render,
    shown,
    with_code,
)
from evaltrack.report.html.questions import OUTCOMES, longest, page_data, run_questions
from evaltrack.report.run_text import WIDTH, print_run
from evaltrack.report.templates import printed, say
from evaltrack.report.words import (
    grouped_errors,
)

if TYPE_CHECKING:
    from evaltrack.records.row import Traced

ORDER = list(OUTCOMES)
LISTED = 2_000
MESSAGES, GROUPS = 10, 60
SAMPLED = 500
"""Passed questions that are listed if the run has more than `LISTED` questions."""

Read = Callable[[list[str] | None, Collection[str] | None], Iterable[Row]]
"""Reads rows in the order of the golden set: some columns, of some ids; None is all."""


@dataclass(frozen=True)
class Around:
    """The context of a run on its page: its name, its traces, and who accepted which questions."""

    name: str
    traces: Traced = "off"
    trace_link: str | None = None
    accepted: Mapping[str, str] = field(default_factory=dict)


def run_html(result: RunResult, read: Read, around: Around) -> str:
    """Return the page of a result and its rows. Above `LISTED` questions, only a sample of the passed ones is shown."""
    questions = _choose_questions(result, read, around)
    title = f"{say.run_headline(result)}: {one_line(result.signature.golden, 80)}"
    data = page_data(title, result.signature, (around.trace_link,), questions, compared=False, labels=[""])
    return document(title, _body(result, questions, around), script=questions_script(), data=data)


def _body(result: RunResult, questions: list[dict[str, Any]], around: Around) -> str:
    missed = sum(question["group"] != "pass" for question in questions)
    own = {
        "result": result,
        "run_kind": run_kind,
        "name": one_line(around.name, 120),
        "messages": _messages(questions),
        "shown": GROUPS,
        "listed": say.run_listed(len(questions), missed, result.totals["num_questions"], LISTED - SAMPLED),
        "first_failed": [(each["id"], each.get("q", ""), each.get("detail", "")) for each in questions[:50]],
    }
    return render("run.html", **own)


def _choose_questions(result: RunResult, read: Read, around: Around) -> list[dict[str, Any]]:
    """Return the questions of the page: those that failed, did not pass, could not be measured, and passed."""
    acceptances = {key: shown(words, 1200) for key, words in around.accepted.items()}
    total = result.totals["num_questions"]
    ids = None if total <= LISTED else _listed_ids(read(["id", "passed", "error"], None))
    rows, k = read(None, ids), result.signature.k
    listed = run_questions(rows, k, longest(total), around.traces, result.run_id, acceptances)
    return sorted(listed, key=lambda question: ORDER.index(question["group"]))


def _messages(questions: list[dict[str, Any]]) -> list[str]:
    """Return the most frequent errors of the listed questions, and the number of others."""
    messages = grouped_errors((each["id"], each["detail"]) for each in questions if each["group"] == "error")
    more = len(messages) - MESSAGES
    return [*map(with_code, messages[:MESSAGES]), *([f"… and {count(more, 'other message')}"] if more > 0 else [])]


def _listed_ids(rows: Iterable[Row]) -> list[str]:
    """Return the ids of the questions that did not pass, and of a sample of the passed ones."""
    ids: dict[bool, list[str]] = defaultdict(list)
    room = {True: SAMPLED, False: LISTED - SAMPLED}
    for row in rows:
        passed = bool(row.passed) and not row.error
        if room[passed]:
            room[passed] -= 1
            ids[passed].append(row.id)
        elif not any(room.values()):
            break
    return ids[False] + ids[True]


def run_kind(result: RunResult) -> str:
    """Return the colour of the result: `ok`, `bad` or `warn`; empty if no criterion was required."""
    outcomes = [checked.met for checked in result.criteria]
    if result.status != "FINISHED" or result.totals["num_errors"] or None in outcomes:
        return "warn"
    return "bad" if False in outcomes else "ok" if outcomes else ""


def run_screen(result: RunResult) -> str:
    """Return the terminal's text of a run as HTML, for notebooks."""
    return f'<pre style="white-space: pre-wrap">{escape(printed(partial(print_run, result), WIDTH))}</pre>'
