"""Scores that are built in: words, patterns, JSON schemas, context precision and cost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.judges.open_scores import NO_EXPECTED_ANSWER, open_builtin, open_scorers
from evaltrack.metrics.answers import NO_ANSWER, NO_TOOLS
from evaltrack.metrics.measure import NO_SOURCES
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Question, Response, Source, ToolCall, Usage

QUESTION = Question(id="1", question="What?", domain="d", expected_answer="Paris")


def measured(spec: str, answer: str | None, question: Question = QUESTION) -> float | str:
    scorer = open_builtin(spec)
    assert scorer is not None
    found = asyncio.run(scorer(question, Response(answer=answer)))
    (name,) = {*found.values, *found.reasons}
    return found.values.get(name, found.reasons.get(name, ""))


def test_words() -> None:
    assert [measured(name, "the Paris") for name in ("exact_match", "token_f1", "contains")] == [1, 1, 1]
    assert measured("token_f1", "Paris, France") == pytest.approx(2 / 3)
    assert measured("contains", None) == NO_ANSWER
    without = QUESTION.model_copy(update={"expected_answer": None})
    assert measured("exact_match", "Paris", without) == NO_EXPECTED_ANSWER
    assert measured("contains", "Paris " * 100_000) == 1.0


def test_more_than_the_answer() -> None:
    response = Response(answer="so", tool_calls=(ToolCall(name="b"),))
    question = QUESTION.model_copy(update={"expected_tools": ("a", "b"), "expected_arguments": ({}, {"x": 1})})
    values = {}
    for name in ("tool_order", "tool_arguments"):
        scorer = open_builtin(name)
        assert scorer is not None
        assert (scorer.measures_raw, scorer.declared[0].binary) == (True, False)
        values |= asyncio.run(scorer(question, response)).values
    assert values == {"tool_order": 0.5, "tool_arguments": 0.0}
    assert measured("tool_order", None) == NO_TOOLS


def test_patterns() -> None:
    assert measured(r"regex:\[\d+\]", "see [12]") == 1.0
    assert measured(r"regex:^(?i:no)$", "No, thanks") == 0.0
    assert measured("regex:a:b=c", "xa:b=cx") == 1.0
    with pytest.raises(UsageError, match=r"regex `\(`: missing \)"):
        open_builtin("regex:(")


def test_schemas(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}))
    spec = f"json_schema:{path}"
    assert [measured(spec, text) for text in ('{"a": 1}', '{"a": "1"}', "[]", "no", "[" * 100_000)] == [1, 0, 0, 0, 0]
    assert [measured(spec, f'{{"a": 1, "b": {word}}}') for word in ("NaN", "-Infinity", "1e999")] == [0, 0, 1]


def test_a_schema_never_reaches_for_another_document(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"$ref": "http://127.0.0.1:9/s.json"}))
    with pytest.raises(Exception, match="Unresolvable"):
        measured(f"json_schema:{path}", "{}")


def test_the_digest_tells_patterns_and_schemas_apart(tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text("{}")
    other.write_text("{}")

    def digest(spec: str) -> str:
        scorer = open_builtin(spec)
        assert scorer is not None
        return scorer.declared[0].digest

    assert digest("regex:a") != digest("regex:b")
    before = digest(f"json_schema:{one}")
    assert before == digest(f"json_schema:{other}")
    one.write_text('{"type": "object"}')
    assert digest(f"json_schema:{one}") != before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not a JSON schema"),
        (b'{"type": 7}', "is not a JSON schema"),
        (b"[1]", "is not a JSON schema"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"[" * 200_000, "is not a JSON schema"),
        (None, "cannot be read: No such file"),
    ],
)
def test_schemas_that_cannot_be_used(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "s.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        open_builtin(f"json_schema:{path}")


def precision(question: Question, ids: str | None, k: int = 5) -> float | str:
    (scorer,) = open_scorers(["order=context_precision"], in_process=True, k=k)
    sources = None if ids is None else tuple(Source(chunk_id=each) for each in ids)
    found = asyncio.run(scorer(question, Response(sources=sources)))
    return found.values.get("order", found.reasons.get("order", ""))


def test_context_precision() -> None:
    """Repeats are dropped before the list is cut at k; an empty list was measured."""
    question = Question(id="1", question="q", domain="d", expected_chunks=("a", "b", "c"))
    assert precision(question, "axb") == (1 + 2 / 3) / 2
    assert precision(question, "aaxb", k=2) == 1.0
    assert precision(question, "xxb", k=2) == 0.5
    assert precision(question, "") == 0.0
    assert precision(question, None) == NO_SOURCES


PRICES = Prices(0.15, 0.60)


def test_the_cost_of_a_thousand_questions() -> None:
    (scorer,) = open_scorers(["usd=cost"], in_process=False, prices=PRICES)
    response = Response(answer="A", usage=Usage(prompt_tokens=2000, completion_tokens=500))
    assert asyncio.run(scorer(QUESTION, response)).values == {"usd": pytest.approx(1000 * (0.0003 + 0.0003))}  # type: ignore[attr-defined]
    assert not scorer.declared[0].higher_is_better


def test_tokens_that_nobody_reports_have_no_cost() -> None:
    (scorer,), (other,) = (open_scorers(["cost"], in_process=False, prices=each) for each in (PRICES, Prices(1, 2)))
    values = asyncio.run(scorer(QUESTION, Response(answer="A")))
    assert (dict(values.values), dict(values.reasons)) == ({}, {"cost": "the target reports no usage"})
    assert scorer.declared == other.declared  # runs with other prices are compared


def test_prices_are_needed() -> None:
    with pytest.raises(UsageError, match="give `price_in=` and `price_out=`"):
        open_scorers(["cost"], in_process=False)
