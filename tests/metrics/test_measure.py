from __future__ import annotations

from math import isfinite
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.measure import (
    JUDGE_FAILED,
    NEGATIVE,
    NO_ANSWER,
    NO_EXPECTATION,
    NO_JUDGE,
    NO_OVERALL,
    NO_SOURCES,
    PASS_THRESHOLD,
    Rules,
    combined_score,
    lacking,
    measure,
)
from evaltrack.records import Question, Response, Source, Tokens, ToolCall, Verdict, Weights
from tests.files import data

RETRIEVAL = tuple(score.name for score in SCORES if score.retrieval)
JUDGED = ("overall_score", "accuracy", "completeness", "relevance", "judge_spread")


def question(**fields: Any) -> Question:
    if not {"expected_chunks", "expected_sources"} & fields.keys():
        fields["expected_chunks"] = ("a", "b")
    return Question(**{"id": "1", "question": "What?", "domain": "travel"} | fields)


def chunks(*ids: str) -> tuple[Source, ...]:
    return tuple(Source(chunk_id=key) for key in ids)


def verdict(overall: float | None = 0.85, **fields: Any) -> Verdict:
    numbers = {"accuracy": 0.9, "completeness": 0.8, "relevance": 0.9, "overall_score": overall}
    return Verdict(**{"judge": "j", "reasoning": "Brief explanation"} | numbers | fields)


def declining(declined: bool | None, judge: str = "j") -> Verdict:
    return Verdict(judge=judge, reasoning="It says so.", declined=declined)


def tokens(count: int) -> Tokens:
    return Tokens(count=count, known="reported")


HIT, MISS = Response(answer="Paris.", sources=chunks("a")), Response(answer="Paris.", sources=chunks("x"))


def test_an_empty_list_was_measured_and_scores_zero() -> None:
    """A target that looked and found nothing scores 0 in every retrieval score, abstained and did not pass."""
    measured = measure(question(), Response(sources=()), Rules(5))
    assert measured.scores == dict.fromkeys(RETRIEVAL, 0.0) | {"false_abstention": 1, "pass": 0}
    assert measured.unmeasured == {"overall_score": NO_ANSWER, "combined_score": "not measured: judge, num_tokens"}
    assert measured.passed is False


def test_a_question_without_expectation_measures_nothing() -> None:
    measured = measure(question(expected_chunks=None), Response(sources=chunks("a", "a")), Rules(5))
    assert (measured.scores, measured.duplicates, measured.passed) == ({}, 0, None)
    assert measured.unmeasured == dict.fromkeys(RETRIEVAL, NO_EXPECTATION) | {
        "overall_score": NO_ANSWER,
        "combined_score": "not measured: hit, judge, num_tokens",
    }


@pytest.mark.parametrize("abstained", [True, False])
def test_a_target_that_does_not_retrieve_has_no_retrieval_score(abstained: bool) -> None:
    measured = measure(question(), Response(answer="Paris.", abstained=abstained), Rules(5))
    failed = {"false_abstention": 1, "pass": 0}
    assert measured.scores == (failed if abstained else {"false_abstention": 0})
    assert measured.passed is (False if abstained else None)
    assert measured.unmeasured == dict.fromkeys(RETRIEVAL, NO_SOURCES) | {
        "overall_score": NO_JUDGE,
        "combined_score": "not measured: hit, judge, num_tokens",
    }


BOTH = question(expected_tools=("search", "fetch"))
JUDGED_ONLY = question(expected_chunks=None)
ANSWERED, EMPTY = Response(answer="Paris."), Response(answer=" \n", sources=chunks("a"))


def calling(source: str, *names: str) -> Response:
    return Response(sources=chunks(*source), tool_calls=tuple(ToolCall(name=name) for name in names))


@pytest.mark.parametrize(
    ("asked", "response", "verdicts", "threshold", "passed"),
    [
        (BOTH, calling("a", "search", "fetch"), [], 0.75, True),
        (BOTH, calling("a", "fetch", "search", "search", "other"), [], 0.75, True),
        (BOTH, calling("a", "search"), [], 0.75, False),
        (BOTH, calling("a"), [], 0.75, False),
        (BOTH, calling("x", "search", "fetch"), [], 0.75, False),
        (BOTH, calling("xxya", "search", "fetch"), [], 0.75, False),
        # an overall score of exactly the threshold passes, and only with a hit
        (question(), HIT, [verdict(PASS_THRESHOLD)], PASS_THRESHOLD, True),
        (question(), HIT, [verdict(0.7499999999999999)], PASS_THRESHOLD, False),
        (question(), HIT, [verdict(0.0)], 0.0, True),
        (question(), HIT, [verdict(0.9)], 1.0, False),
        (question(), HIT, [verdict(1.0)], 1.0, True),
        (question(), MISS, [verdict(1.0)], 0.75, False),
        (question(), MISS, [verdict(1.0)], 0.0, False),
        (question(), HIT, [verdict(declined=True)], 0.75, True),  # which is for negatives
        # an empty answer that is judged never passes
        (question(), EMPTY, [verdict(1.0)], 0.75, False),
        (question(), EMPTY, [], 0.75, True),
        # where retrieval is not measured the judge decides
        (question(), ANSWERED, [verdict()], 0.75, True),
        (question(), ANSWERED, [verdict(0.2)], 0.75, False),
        (question(), ANSWERED, [], 0.75, None),
        (JUDGED_ONLY, ANSWERED, [verdict(0.75)], 0.75, True),
        (JUDGED_ONLY, ANSWERED, [verdict(0.74)], 0.75, False),
    ],
)
def test_what_passes(
    asked: Question, response: Response, verdicts: list[Verdict], threshold: float, passed: bool | None
) -> None:
    measured = measure(asked, response, Rules(2, pass_threshold=threshold), verdicts)
    assert (measured.passed, measured.scores.get("pass")) == (passed, passed)


@pytest.mark.parametrize(
    ("response", "verdicts", "passed"),
    [
        # without a judge by what the target says
        (Response(sources=()), [], True),
        (Response(answer="I do not know.", abstained=True), [], True),
        (Response(sources=chunks("a"), abstained=True), [], True),
        (Response(sources=chunks("a")), [], False),
        (ANSWERED, [], False),
        # with judges if one of them says that it declined
        (MISS, [declining(declined=True)], True),
        (MISS, [declining(declined=False)], False),
        (ANSWERED, [declining(declined=True)], True),
        (Response(answer="It is Paris.", sources=()), [declining(declined=False)], False),
        (Response(answer="It is Paris.", abstained=True), [declining(declined=False)], False),
        (Response(answer="I do not know.", abstained=True), [declining(declined=None)], False),
        (MISS, [declining(declined=False), declining(declined=True)], True),
        (MISS, [declining(declined=False), declining(declined=False)], False),
    ],
)
@pytest.mark.parametrize("expectation", ["expected_chunks", "expected_sources"])
def test_a_negative_passes_when_the_target_declined(
    response: Response, verdicts: list[Verdict], passed: bool, expectation: str
) -> None:
    measured = measure(question(**{expectation: ()}), response, Rules(2), verdicts)
    assert (measured.passed, measured.scores) == (passed, {"negative_pass": passed, "pass": passed})
    assert measured.unmeasured == dict.fromkeys((*RETRIEVAL, "overall_score"), NEGATIVE) | {
        "combined_score": "not measured: hit, judge, num_tokens"
    }


def test_a_panel_is_its_mean_and_its_spread() -> None:
    panel = [verdict(0.5, accuracy=0.0), verdict(1.0, accuracy=1.0), verdict(0.75, accuracy=0.5)]
    measured = measure(question(), HIT, Rules(2), panel)
    assert {name: measured.scores[name] for name in JUDGED} == {
        "overall_score": 0.75,
        "accuracy": 0.5,
        "completeness": pytest.approx(0.8, abs=1e-15),
        "relevance": pytest.approx(0.9, abs=1e-15),
        "judge_spread": 0.5,
    }
    assert measured.passed is True
    assert "accuracy" not in measure(question(), HIT, Rules(2), [verdict(), verdict(accuracy=None)]).scores


@pytest.mark.parametrize("verdicts", [[verdict(None)], [verdict(), verdict(None)], [declining(declined=True)]])
def test_a_verdict_without_overall_score_neither_passes_nor_fails(verdicts: list[Verdict]) -> None:
    measured = measure(question(), HIT, Rules(2), verdicts, tokens(1000))
    assert measured.passed is None
    assert {"overall_score", "judge_spread", "combined_score", "pass"}.isdisjoint(measured.scores)
    assert measured.unmeasured == {"overall_score": NO_OVERALL, "combined_score": "not measured: judge"}
    assert measured.scores["hit"] == 1


@pytest.mark.parametrize(
    ("asked", "given", "name"),
    [
        (question(), verdict(), None),
        (question(), verdict(0.0), None),
        (question(), verdict(None, declined=False), "overall_score"),
        (question(expected_chunks=None), declining(declined=True), "overall_score"),
        (question(expected_chunks=()), declining(declined=False), None),
        (question(expected_chunks=()), verdict(), "declined"),
    ],
)
def test_a_verdict_must_hold_what_the_question_needs(asked: Question, given: Verdict, name: str | None) -> None:
    """A negative needs `declined` and every other question the overall score; 0 and false are something said."""
    assert lacking(asked, given) == name


@pytest.mark.parametrize("judges", [1, 2, 3, 5, 7])
def test_a_panel_of_judges_at_the_threshold_passes(judges: int) -> None:
    for threshold in (hundredth / 100 for hundredth in range(101)):
        rules = Rules(2, pass_threshold=threshold)
        measured = measure(question(), HIT, rules, [verdict(threshold)] * judges)
        assert (measured.scores["overall_score"], measured.passed) == (threshold, True)


@pytest.mark.parametrize(
    ("expected", "called", "all_called", "invoked", "coordinated"), data("metrics.json")["tools_called"]
)
@pytest.mark.parametrize(
    ("chunk_ids", "sources", "included"), [(("a",), "a", 1), (("a",), (), 0), ((), (), None), (None, "a", 1)]
)
def test_tools_that_were_called(
    chunk_ids: Any,
    sources: Any,
    included: int | None,
    expected: Any,
    called: Any,
    all_called: int | None,
    invoked: int | None,
    coordinated: int | None,
) -> None:
    asked = question(expected_chunks=chunk_ids, expected_tools=expected)
    calls = tuple(ToolCall(name=name) for name in called)
    measured = measure(asked, Response(sources=chunks(*sources), tool_calls=calls), Rules(2), [verdict(declined=True)])
    found = [measured.scores.get(name) for name in ("tools_called", "tool_invoked", "tools_coordinated")]
    assert found == [all_called, invoked, coordinated]
    assert measured.scores.get("sources_included") == (included if expected else None)
    assert measured.passed is (asked.negative or (all_called != 0 and bool(sources)))


@pytest.mark.parametrize("response", [MISS, Response(sources=())])
def test_a_negative_whose_judge_failed_is_not_measured(response: Response) -> None:
    measured = measure(question(expected_chunks=()), response, Rules(2), judge_failed=True)
    assert (measured.passed, measured.scores) == (None, {})
    assert measured.unmeasured["negative_pass"] == JUDGE_FAILED


@pytest.mark.parametrize(("hit", "judge", "count", "weights", "combined"), data("metrics.json")["combined_scores"])
def test_the_combined_score_is_the_formula(
    hit: float, judge: float, count: int, weights: dict[str, float], combined: float
) -> None:
    """hit^alpha * judge^gamma / (tokens / 1000)^beta, to four digits; 0 without a hit, and high for few tokens."""
    found = combined_score({"hit": hit, "overall_score": judge, "num_tokens": count}, Weights(**weights))
    assert isinstance(found, float)
    assert round(found, 4) == combined


@pytest.mark.parametrize(
    ("response", "verdicts", "counted", "reason"),
    [
        (Response(answer="Paris."), [verdict()], tokens(5), "not measured: hit"),
        (HIT, [], tokens(5), "not measured: judge"),
        (HIT, [verdict()], None, "not measured: num_tokens"),
        (HIT, [], None, "not measured: judge, num_tokens"),
        (Response(answer="Paris."), [], None, "not measured: hit, judge, num_tokens"),
        (HIT, [], tokens(0), "not measured: judge"),
        (HIT, [verdict()], tokens(0), "num_tokens is 0"),
    ],
)
def test_a_missing_part_is_the_reason(
    response: Response, verdicts: list[Verdict], counted: Tokens | None, reason: str
) -> None:
    measured = measure(question(), response, Rules(2), verdicts, counted)
    assert measured.unmeasured["combined_score"] == reason
    assert "combined_score" not in measured.scores


@settings(deadline=None, derandomize=True)
@given(
    st.sampled_from((0.0, 1.0)),
    st.floats(0, 1),
    st.one_of(st.integers(1, 10_000), st.just((1 << 63) - 1)),
    st.builds(Weights, **dict.fromkeys(("alpha", "beta", "gamma"), st.floats(0, 10))),
)
def test_the_combined_score_is_always_a_number(hit: float, judge: float, count: int, weights: Weights) -> None:
    """With any weights that a run may have, the combined score is finite, at least 0, and falls with the tokens."""
    parts = {"hit": hit, "overall_score": judge, "num_tokens": float(count)}
    found = combined_score(parts, weights)
    twice = combined_score(parts | {"num_tokens": 2.0 * count}, weights)
    assert isinstance(found, float)
    assert isinstance(twice, float)
    assert isfinite(found)
    assert 0 <= twice <= found
