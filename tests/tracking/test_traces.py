"""Traces of a run in a real store: whole, counted, and there once; and the assessments that MLflow shows with them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import TrackingError
from evaltrack.metrics.measure import Rules, measure
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.records import Failure, Question, Row, Turn, Verdict
from evaltrack.records.row import RowSource, row_of
from evaltrack.tracking.store import Store, connect
from evaltrack.tracking.traces import assessments_of, check_traces, forget_traces, trace_of, write_traces
from tests import warm
from tests.compared import question
from tests.compared import row as answered
from tests.metrics.test_catalogue import RESPONSE, observations, verdicts
from tests.stores import trace_counts

RUN = "a" * 32
ANSWERS = ("Paris", '"quoted"', '{"a": [1]}', "1", "ü 漢 😀 \\ud83d", "x" * 3000, "null", "", None)
ROWS = [
    *(Row(id=f"a{n}", question=f"q{n}", answer=answer) for n, answer in enumerate(ANSWERS)),
    Row(id="e", question="", error="target_error: boom", traceback="Traceback: …", passed=None, expected=()),
    Row(id="d", question="\t", abstained=True, sources=(), expected=(), scores={"negative_pass": 1.0}),
    Row(
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
        sources=(RowSource(chunk_id="a", title="T", url="http://x", score=0.25, text='{"b": 1}'), RowSource()),
        verdicts=(Verdict(judge="openai:m", reasoning="so", overall_score=0.5), Verdict(judge="human", reasoning="")),
        history=(Turn(role="user", content="before"), Turn(role="assistant", content="ä")),
    ),
]
DIES = """
import os, signal, sys
from sqlalchemy import Engine, event
from evaltrack.records.row import Row
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
rows = [Row(id=str(n), question=f"q{n}", answer="a", passed=True) for n in range(250)]
write_traces(connect(sys.argv[1]), "0", sys.argv[2], rows, (), note)
"""


@pytest.fixture
def store(store_uri: str) -> Store:
    return connect(store_uri)


def test_traces_are_counted_and_written_twice_they_are_there_once(store: Store) -> None:
    """As after a reply that was lost: every text comes back as it was."""
    done: list[int] = []
    sent = write_traces(store, "0", RUN, ROWS, {"q1"}, done.append)
    assert len(sent) == len(ROWS) == done[-1]
    check_traces(store, "0", RUN, sent)
    counts = trace_counts(store.uri, RUN)
    write_traces(store, "0", RUN, ROWS[2:], {"q1"})
    assert trace_counts(store.uri, RUN) == counts
    with pytest.raises(TrackingError, match=f"holds {len(ROWS)} traces, not {len(ROWS) + 1}"):
        check_traces(store, "0", RUN, sent | {"another"})
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
    assert trace_counts(store.uri, RUN, experiment_id)[0] == 2


def test_traces_of_a_run_that_was_killed_are_written_again_without_doubles(store_uri: str) -> None:
    ended = warm.run(("-c", DIES, store_uri, RUN), Path.cwd(), os.environ)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    store = connect(store_uri)
    rows = [Row(id=str(n), question=f"q{n}", answer="a", passed=True) for n in range(250)]
    assert trace_counts(store_uri, RUN)[0] >= 200
    forget_traces(store, "0", RUN)
    assert trace_counts(store_uri, RUN)[0] == 0
    check_traces(store, "0", RUN, write_traces(store, "0", RUN, rows))
    named = [trace.info.client_request_id for trace in store.client.search_traces(locations=["0"], max_results=500)]
    assert sorted(named) == sorted(row.id for row in rows)
    assert json.loads(store.client.get_trace(trace_of(RUN, rows[249])).data.request)["question"] == "q249"


def feedback(row: Row) -> list[tuple[str, object]]:
    """Names and values of what is no expectation, as MLflow's tables order them."""
    shown = [each for each in assessments_of(row, "tr-1") if not each.name.startswith("expected_")]
    return sorted((each.name, each.value) for each in shown)


def judged(seen: tuple[Verdict, ...], rules: Rules, **fields: Any) -> Row:
    asked = Question.model_validate({"id": "1", "question": "?", "domain": "d"} | fields)
    made = measure(asked, RESPONSE, rules, seen)
    scored = {name: getattr(made, name) for name in ("scores", "unmeasured", "passed")}
    scored |= made.reasoned.model_dump() if made.reasoned else {}
    return row_of(asked, RESPONSE, rules.k, verdicts=seen, seconds=0.1, **scored)


def test_a_judged_answer_has_three() -> None:
    row = judged(verdicts(0.0), Rules(3), expected_chunks=["a", "b"], expected_answer="Paris")
    assert feedback(row) == [("judge_score", 0.9), ("judge_score", 0.9), ("passed", "yes"), ("recall_at_k", 1.0)]
    sources = [each.source.source_id for each in assessments_of(row, "tr-1") if each.name == "judge_score"]
    assert sources == ["one", "two"]
    expected = {each.name: each.value for each in assessments_of(row, "tr-1") if each.name.startswith("expected_")}
    assert expected == {"expected_chunks": ["a", "b"], "expected_answer": "Paris"}


def test_a_negative_says_what_its_judge_saw() -> None:
    """It has no judge's score: what the judge said of declining is why it passed or not."""
    row = judged(verdicts(0.1)[:1], Rules(3), expected_chunks=[])
    (passed,) = (each for each in assessments_of(row, "tr-1") if each.name == "passed")
    assert (passed.value, passed.rationale) == ("yes", "negative: the target declined\n\nbecause")
    assert feedback(row) == [("passed", "yes")]


def test_reasoning_has_its_own_three() -> None:
    row = judged(observations(3), Rules(reasoning=RubricWeights()))
    (score,) = (each for each in assessments_of(row, "tr-1") if each.name == "reasoning_score")
    assert [name for name, _ in feedback(row)] == ["coupling_gap", "passed", "reasoning_score"]
    assert (score.value, score.rationale) == (row.scores["reasoning_score"], "because")
    (passed,) = (each for each in assessments_of(row, "tr-1") if each.name == "passed")
    assert passed.rationale == "the reasoning scores 0 of 100, Hard Fail: reject, escalate"


def test_what_failed_says_why() -> None:
    row = answered(question("a"), Failure(kind="target_error", message="no route"))
    (passed,) = (each for each in assessments_of(row, "tr-1") if each.name == "passed")
    assert "no route" in str(passed.error)
    assert "recall_at_k" not in {each.name for each in assessments_of(row, "tr-1")}


def test_without_retrieval_the_judge_decides() -> None:
    (passed,) = (each for each in assessments_of(judged(verdicts(0.0), Rules(3)), "tr-1") if each.name == "passed")
    assert passed.rationale == "only its judge decides: retrieval was not measured"
