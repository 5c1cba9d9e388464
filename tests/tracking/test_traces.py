"""Traces of a run in a real store: whole, counted, and there once."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from evaltrack.errors import TrackingError
from evaltrack.records.stored_row import StoredRow, StoredSource, StoredTurn, StoredVerdict
from evaltrack.tracking.store import Store, connect
from evaltrack.tracking.traces import forget_traces, read_counts, trace_of, write_traces
from tests import warm

RUN = "a" * 32
ANSWERS = ("Paris", '"quoted"', '{"a": [1]}', "1", "ü 漢 😀 \\ud83d", "x" * 3000, "null", "", None)
ROWS = [
    *(StoredRow(id=f"a{n}", question=f"q{n}", answer=answer) for n, answer in enumerate(ANSWERS)),
    StoredRow(id="e", question="", error="target_error: boom", traceback="Traceback: …", passed=None, expected=()),
    StoredRow(id="d", question="\t", abstained=True, sources=(), expected=(), scores={"negative_pass": 1.0}),
    StoredRow(
        id="j" * 300,
        question="q" * 2000,
        domain="d",
        difficulty="hard",
        category="c" * 2000,
        answer="yes",
        expected_answer="no",
        passed=False,
        expected=("a", "b"),
        scores={"hit": 1.0, "recall_at_k": 0.1 + 0.2, "overall_score": 0.5, "own": 1e-300},
        own=("own",),
        sources=(StoredSource(chunk_id="a", title="T", url="http://x", score=0.25, text='{"b": 1}'), StoredSource()),
        verdicts=(StoredVerdict(judge="openai:m", reasoning="so", overall_score=0.5), StoredVerdict(judge="human")),
        history=(StoredTurn(content="before"), StoredTurn(role="assistant", content="ä")),
    ),
]
DIES = """
import os, signal, sys
from sqlalchemy import Engine, event
from evaltrack.records.stored_row import StoredRow
from evaltrack.tracking.store import connect
from evaltrack.tracking.traces import write_traces

done = 0
def note(number):
    global done
    done = number
@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, parameters, context, executemany):
    if done == 200 and statement.startswith("INSERT INTO spans"):
        os.kill(os.getpid(), signal.SIGKILL)
rows = [StoredRow(id=str(n), question=f"q{n}", answer="a", passed=True) for n in range(250)]
write_traces(connect(sys.argv[1]), "0", sys.argv[2], rows, (), note)
"""


@pytest.fixture
def store(store_uri: str) -> Store:
    return connect(store_uri)


def test_traces_are_counted_and_written_twice_they_are_there_once(store: Store) -> None:
    """As after a reply that was lost: every text comes back as it was."""
    done: list[int] = []
    counts = write_traces(store, "0", RUN, ROWS, {"q1"}, done.append)
    assert counts.traces == len(ROWS) == done[-1]
    assert counts.gap(read_counts(store, "0", RUN)) is None
    write_traces(store, "0", RUN, ROWS[2:], {"q1"})
    assert counts.gap(read_counts(store, "0", RUN)) is None
    plain = [ROWS[place] for place in (0, 4, 5)]  # MLflow shows an answer that is JSON as its value
    answers = [store.client.get_trace(trace_of(RUN, row)).data.spans[0].outputs for row in plain]
    assert answers == [row.answer for row in plain]


def test_a_deleted_experiment_takes_no_trace(store: Store) -> None:
    experiment_id = store.client.create_experiment("gone")
    write_traces(store, experiment_id, RUN, ROWS[:2])
    store.client.delete_experiment(experiment_id)
    with pytest.raises(TrackingError, match="must be in the 'active' state"):
        write_traces(store, experiment_id, RUN, ROWS[2:])
    store.client.restore_experiment(experiment_id)
    assert read_counts(store, experiment_id, RUN).traces == 2


def test_traces_of_a_run_that_was_killed_are_written_again_without_doubles(store_uri: str) -> None:
    """A resumed run forgets the traces and writes all of them."""
    ended = warm.run(("-c", DIES, store_uri, RUN), Path.cwd(), os.environ)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    store = connect(store_uri)
    rows = [StoredRow(id=str(n), question=f"q{n}", answer="a", passed=True) for n in range(250)]
    counts = read_counts(store, "0", RUN)
    assert counts.traces >= 200
    forget_traces(store, "0", RUN)
    assert read_counts(store, "0", RUN).traces == 0
    assert write_traces(store, "0", RUN, rows).gap(read_counts(store, "0", RUN)) is None
    named = [trace.info.client_request_id for trace in store.client.search_traces(locations=["0"], max_results=500)]
    assert sorted(named) == sorted(row.id for row in rows)
    assert json.loads(store.client.get_trace(trace_of(RUN, rows[249])).data.request)["question"] == "q249"
