"""The reasoning judge: what it is shown, which of its observations are believed, and what is paid for."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.judges.client import LLM, strict_schema
from evaltrack.judges.neutral_text import SUFFIX, TAG_RULE
from evaltrack.judges.reasoning import ReasoningJudge, ReasoningReply, reasoning_prompt
from evaltrack.metrics.rubric import ANCHORS, grade
from evaltrack.records import Observed, Question, Response, Usage, Verdict
from tests.files import data
from tests.judging import (
    ANSWER,
    JUDGE,
    SEEN,
    by_text,
    golden_set,
    judged,
    reply,
    serving,
)
from tests.openai_behaviours import Reply
from tests.openai_behaviours import Usage as ServerUsage

QUESTION = Question(id="1", question="Should we raise the price?", domain="business")
REPLIES = data("reasoning_replies.json")
SCHEMA = strict_schema("observation", ReasoningReply)["schema"]
HF1 = {"code": "HF1", "quotes": ["If more than 29% do"]}


def verdict_on(answer: str | None = ANSWER) -> Verdict:
    return judged(ReasoningJudge(LLM("gpt-4o-mini"), JUDGE), (QUESTION, Response(answer=answer)))


def read(text: str, answer: str | None = ANSWER) -> Observed:
    found = ReasoningJudge(LLM("gpt-4o-mini"), JUDGE).read(text, QUESTION, Response(answer=answer))["observed"]
    assert isinstance(found, Observed)
    return found


# What the judge is shown


def test_the_prompt_is_the_system_message_and_all_data_stands_between_tags_in_the_users() -> None:
    question = QUESTION.model_copy(update={"expected_answer": "No.", "notes": "secret", "expected_chunks": ("a",)})
    with serving(reply()) as server:
        asyncio.run(ReasoningJudge(LLM("gpt-4o-mini"), JUDGE)(question, Response(answer=ANSWER)))
    system, user = server.bodies[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    question, response = re.findall(r"<\w+(-\w+)>", user["content"])
    assert (question, system["content"]) == (
        response,
        reasoning_prompt() + TAG_RULE.replace(f"-{SUFFIX}", question),
    )
    assert user["content"].replace(question, "") == (
        f"<question>\nShould we raise the price?\n</question>\n\n<response>\n{ANSWER}\n</response>"
    )


# What of its reply is believed


def test_a_verdict_holds_what_was_observed_and_what_it_cost() -> None:
    with serving(Reply(reply(), usage=ServerUsage(900, 300, cached=100, reasoning=0))) as server:
        verdict = verdict_on()
    assert verdict == Verdict(
        judge=JUDGE,
        reasoning=SEEN["reasoning"],
        usage=Usage(prompt_tokens=900, completion_tokens=300, cached_tokens=100, reasoning_tokens=0),
        observed=Observed(
            dimensions=SEEN["dimensions"],
            hypotheses=3,
            shifts=2,
            crux_treatment="explicit",
            uncertainty_treatment="quantified",
            confidence=65,
            mode="hybrid",
            quotes={
                "hypotheses": tuple(SEEN["hypotheses"]),
                "shifts": tuple(SEEN["shifts"]),
                "crux": tuple(SEEN["crux_quotes"]),
                "confidence": tuple(SEEN["confidence_quotes"]),
            },
        ),
    )
    assert verdict.observed is not None
    made = grade(verdict.observed)
    assert (made.score, made.tier, made.claimed_band, made.earned_band, made.coupling_gap) == (64, 2, 2, 2, 0)
    form = server.bodies[0]["response_format"]["json_schema"]
    assert (form["strict"], form["schema"]) == (True, SCHEMA)


@pytest.mark.parametrize("quote", REPLIES["found_quotes"])
def test_a_quote_is_found_whatever_its_markup_line_breaks_and_quotation_marks(quote: str) -> None:
    assert read(reply(shifts=[quote], num_shifts=1)).quotes["shifts"] == (quote,)


@pytest.mark.parametrize("quote", REPLIES["invented_quotes"])
def test_a_quote_that_does_not_stand_in_the_response_is_never_believed(quote: str) -> None:
    said = f"`{quote}` is not in the response; quote it letter for letter"
    with pytest.raises(ValueError, match=re.escape(said)):
        read(reply(shifts=[quote], num_shifts=1))


@pytest.mark.parametrize(("name", "changes", "named"), REPLIES["wrong"])
def test_what_cannot_be_is_refused_by_name(name: str, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=re.escape(named)):
        read(reply(**changes))


def test_a_missing_field_is_never_filled_in() -> None:
    """But for the number of a confidence, which is read from its quotes."""
    for name in SEEN:
        without = json.dumps({key: value for key, value in SEEN.items() if key != name})
        if name == "confidence":
            assert read(without).confidence == 65
            continue
        with pytest.raises(ValueError, match=f"{name}: Field required"):
            read(without)


def test_the_prompt_shows_every_anchor_of_the_rubric() -> None:
    text = reasoning_prompt()
    for name, anchors in ANCHORS.items():
        cells = " ".join(f"{grade}: {meaning}." for grade, meaning in anchors.items())
        assert f"\n- {name}: {cells}\n" in text
    assert "[the anchors" not in text


@pytest.mark.parametrize(("quotes", "number", "confidence"), REPLIES["claims"])
def test_the_strongest_claim_counts(quotes: list[str], number: float | None, confidence: float | None) -> None:
    found = read(reply(confidence_quotes=quotes, confidence=number), f"{ANSWER}\n{'. '.join(quotes)}.")
    assert found.confidence == confidence


def test_hard_fails_carry_their_words_and_take_the_score() -> None:
    found = read(reply(hard_fails=[{"code": "HF4", "quotes": ["But churn could double"]}, HF1]))
    assert found.hard_fails == ("HF1", "HF4")
    assert (found.quotes["HF1"], found.quotes["HF4"]) == (("If more than 29% do",), ("But churn could double",))
    assert grade(found).score == 0


def test_nothing_may_be_quoted_from_a_response_that_is_not_there() -> None:
    empty = reply(
        **{name: [] for name in ("hypotheses", "shifts", "crux_quotes", "confidence_quotes")},
        **dict.fromkeys(("num_hypotheses", "num_shifts"), 0),
        confidence=None,
        crux_treatment="none",
        dimensions=dict.fromkeys(SEEN["dimensions"], 0),
    )
    assert read(empty, None).hypotheses == 0
    with pytest.raises(ValueError, match="is not in the response"):
        read(reply(), None)


def test_a_verdict_that_cannot_be_read_is_an_error_row(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"good": ANSWER, "bad": "Hire."})
    with serving(behaviour=by_text({"Hire.": [reply()], "Three ways": [reply()]})):
        made = run_eval(golden, target=target, judge=JUDGE, rubric="reasoning", tracking_uri=store_uri, traces="off")
    rows = {row["id"]: row for row in made.rows}
    assert (made.status, made.totals["num_errors"], made.totals["judge_tokens"]) == ("FINISHED", 1, 90)
    assert (made.metrics["reasoning_score"], made.counts["reasoning_score"]) == (64, 1)
    bad = rows["bad"]
    assert bad["error"].startswith("judge_error: `raise the price for everyone` is not in")
    assert (bad["passed"], bad["reasoning_score"], bad["tier"], bad["crux"]) == (None, None, None, None)


def test_a_call_is_waited_for_as_long_as_is_said(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"plain": ANSWER})
    text = reply()
    asked: Any = {"target": target, "judge": JUDGE, "rubric": "reasoning", "tracking_uri": store_uri, "traces": "off"}
    began = time.monotonic()
    with serving(Reply(text, latency=30), Reply(text)) as server:
        made = run_eval(golden, **asked, call_timeout=0.3, judge_timeout=20)
    assert time.monotonic() - began < 15
    assert (server.calls, made.totals["num_errors"]) == (2, 0)
    assert mlflow.get_run(made.run_id).data.params["call_timeout"] == "0.3"
