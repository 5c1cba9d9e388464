"""Computes all scores of a response with its verdicts, the reasons for missing ones, and if the question passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaltrack.metrics import retrieval
from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.retrieval import Relevance, graded_keys, relevance_of
from evaltrack.metrics.rubric import PASS_SCORE, RubricWeights, panel_mean, reasoned
from evaltrack.records import Question, Reasoned, Response, Tokens, Verdict, Weights
from evaltrack.records.row import Finds
from evaltrack.records.verdict import ANSWER_GRADES

OF_RETRIEVAL = tuple(score.name for score in SCORES if score.retrieval)

PASS_THRESHOLD = 0.75
"""The lowest overall score with which a judged answer passes."""

NO_EXPECTATION = "the question has no retrieval expectation"
NEGATIVE = "the question is a negative"
NO_SOURCES = "the target reports no sources"
NO_JUDGE = "there is no judge"
NO_ANSWER = "the target gave no answer to judge"
JUDGE_FAILED = "the judge failed"
NO_OVERALL = "a verdict has no overall_score"
NO_OBSERVATION = "a verdict observed no reasoning"


@dataclass(frozen=True)
class Rules:
    """The settings that affect scores and passing: cut-off, weights, and the judge's passing threshold.

    With `reasoning`, the judges observe reasoning, and these weights make the score.
    """

    k: int = 5
    weights: Weights = field(default_factory=Weights)
    pass_threshold: float = PASS_THRESHOLD
    reasoning: RubricWeights | None = None


@dataclass(frozen=True)
class Measured:
    """The measurements of one response: scores, reasons for missing scores, dropped repeats, pass or fail."""

    scores: Mapping[str, float]
    unmeasured: Mapping[str, str]
    duplicates: int = 0
    finds: Finds | None = None
    passed: bool | None = None
    reasoned: Reasoned | None = None


def measure(
    question: Question,
    response: Response,
    rules: Rules,
    verdicts: Sequence[Verdict] = (),
    tokens: Tokens | None = None,
    *,
    judge_failed: bool = False,
) -> Measured:
    """Return the scores of one response, and if the question passed.

    `passed` is None if something that the rule needs was not measured. It is always None after a judge failed. A judged
    negative passes if any judge says that the target declined, regardless of the target's own flag. Nothing else in its
    verdicts counts. A judged empty answer never passes.
    """
    if rules.reasoning is not None:
        return _reasoning(question, response, rules.reasoning, verdicts, tokens, judge_failed)
    relevance = checked_relevance(question, response)
    found = _retrieval(question, relevance, rules.k) | _tools(question, response)
    negative, empty = question.negative, response.answer_is_empty
    if negative:
        declined = any(verdict.declined for verdict in verdicts) if verdicts else response.declined
        found["negative_pass"] = JUDGE_FAILED if judge_failed else float(declined)
    elif question.expected is not None:
        found["false_abstention"] = float(response.declined)
    if verdicts and not negative:
        found |= _judged(verdicts)
    found.setdefault("overall_score", _why_not_judged(question, response, verdicts, judge_failed))
    if tokens is not None:
        found["num_tokens"] = float(tokens.count)
    found["combined_score"] = combined_score(found, rules.weights)
    scores = {name: each for name, each in found.items() if not isinstance(each, str)}
    unmeasured = {name: each for name, each in found.items() if isinstance(each, str)}
    incomplete = judge_failed or unmeasured.get("overall_score") == NO_OVERALL
    passed = None if incomplete else passes(scores, rules.pass_threshold, negative=negative, empty=empty)
    if passed is not None:
        scores["pass"] = float(passed)
    duplicates, finds = (0, None) if isinstance(relevance, str) else (relevance.duplicates, relevance.finds)
    return Measured(scores, unmeasured, duplicates, finds, passed)


def _tools(question: Question, response: Response) -> dict[str, float]:
    """Return the functional checks of an agent for a question that expects tools."""
    if not question.expected_tools:
        return {}
    expected, calls = set(question.expected_tools), {call.name for call in response.tool_calls}
    scores = {"tools_called": float(expected <= calls), "tool_invoked": float(not expected.isdisjoint(calls))}
    if len(expected) > 1:
        scores["tools_coordinated"] = scores["tools_called"]
    if not question.negative:
        scores["sources_included"] = float(bool(response.sources))
    return scores


def _reasoning(
    question: Question,
    response: Response,
    weights: RubricWeights,
    verdicts: Sequence[Verdict],
    tokens: Tokens | None,
    judge_failed: bool,
) -> Measured:
    """Return the rubric's scores. The rubric alone decides; a right answer from flawed reasoning fails."""
    token_scores = {"num_tokens": float(tokens.count)} if tokens is not None else {}
    observed = [verdict.observed for verdict in verdicts if verdict.observed is not None]
    if judge_failed or not observed or len(observed) < len(verdicts):
        why = NO_OBSERVATION if verdicts else _why_not_judged(question, response, verdicts, judge_failed)
        return Measured(token_scores, {"reasoning_score": why})
    scores, led_to = reasoned(observed, weights)
    passed = passes(scores, 0.0, negative=question.negative, empty=response.answer_is_empty) is True
    return Measured(scores | token_scores | {"pass": float(passed)}, {}, passed=passed, reasoned=led_to)


_COMBINED = (("hit", "hit"), ("judge", "overall_score"), ("num_tokens", "num_tokens"))
"""The parts of the combined score: the word used in a reason, and the name of the score."""


def combined_score(scores: Mapping[str, float | str], weights: Weights) -> float | str:
    """Return ``hit^alpha * judge^gamma / (num_tokens / 1000)^beta``, or the reason for no value."""
    if missing := [word for word, name in _COMBINED if isinstance(scores.get(name, ""), str)]:
        return f"not measured: {', '.join(missing)}"
    hit, judge, tokens = (float(scores[name]) for _, name in _COMBINED)
    if not tokens:
        return "num_tokens is 0"
    return float(hit**weights.alpha * judge**weights.gamma / (tokens / 1000) ** weights.beta)


def lacking(question: Question, verdict: Verdict) -> str | None:
    """Return the required field that a verdict lacks, or None.

    A negative requires `declined`, other questions `overall_score`. A verdict on reasoning requires neither.
    """
    if verdict.observed is not None:
        return None
    name = "declined" if question.negative else "overall_score"
    return name if getattr(verdict, name) is None else None


def _why_not_judged(question: Question, response: Response, verdicts: Sequence[Verdict], judge_failed: bool) -> str:
    if judge_failed:
        return JUDGE_FAILED
    if question.negative:
        return NEGATIVE
    if verdicts:
        return NO_OVERALL
    return NO_JUDGE if response.answer is not None else NO_ANSWER


def _judged(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Return the panel's mean of each number, and the spread of its overall scores."""
    scores: dict[str, float] = {}
    for name in ANSWER_GRADES:
        mean = panel_mean([getattr(verdict, name) for verdict in verdicts])
        if mean is not None:
            scores[name] = mean
    if "overall_score" in scores and len(verdicts) > 1:
        overall = [verdict.overall_score for verdict in verdicts if verdict.overall_score is not None]
        scores["judge_spread"] = max(overall) - min(overall)
    return scores


def checked_relevance(question: Question, response: Response) -> Relevance | str:
    """Return the relevance of a response's sources, or the reason why retrieval was not measured."""
    expected = question.expected
    if expected is None:
        return NO_EXPECTATION
    if not expected:
        return NEGATIVE
    if response.sources is None:
        return NO_SOURCES
    return relevance_of(question, response)


def _retrieval(question: Question, relevance: Relevance | str, k: int) -> dict[str, float | str]:
    """Return the retrieval scores by name, or the reason for each that was not measured."""
    if isinstance(relevance, str):
        return dict.fromkeys(OF_RETRIEVAL, relevance)
    ranks, expected = relevance.ranks, relevance.expected
    scores: dict[str, float | str] = {
        "recall_at_k": retrieval.recall_at_k(ranks, expected, k),
        "precision_at_k": retrieval.precision_at_k(ranks, k),
        "reciprocal_rank": retrieval.reciprocal_rank(ranks, k),
        "hit": retrieval.hit(ranks, k),
        "ndcg_at_k": retrieval.ndcg_at_k(ranks, expected, k),
    }
    if question.grades and relevance.finds is None:
        grades, ranked = graded_keys(question), relevance.ranked
        scores["ndcg_at_k"] = retrieval.graded_ndcg_at_k(ranked, grades, k)
        if ranked:
            scores["judged_at_k"] = retrieval.judged_at_k(ranked, grades, k)
    return scores


def passes(scores: Mapping[str, float], threshold: float, *, negative: bool, empty: bool) -> bool | None:
    """Return True if a question with these scores passes; None if nothing decides. Without retrieval the judge decides.

    An `empty` answer never passes a judge, even with a verdict from a file.
    """
    if "reasoning_score" in scores:
        return scores["reasoning_score"] >= PASS_SCORE and not empty
    if negative:
        return scores["negative_pass"] == 1 if "negative_pass" in scores else None
    if "hit" not in scores and scores.get("false_abstention") == 1:
        return False
    judged = scores.get("overall_score")
    if "hit" not in scores and judged is None:
        return None
    hit = scores.get("hit", 1) == 1
    well_judged = judged is None or (judged >= threshold and not empty)
    return hit and well_judged and scores.get("tools_called", 1) == 1
