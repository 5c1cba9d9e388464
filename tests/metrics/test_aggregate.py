from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.evaluation.loop import merge
from evaltrack.metrics.aggregate import SHOWN_ROWS, Kept, Ledger, Summary
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Failure, Question, Response, Row, Tokens, Usage, Verdict
from evaltrack.records.row import FailureKind, row_of
from tests.files import data
from tests.metrics.test_measure import HIT, MISS, chunks, question

repeatable = settings(deadline=None, derandomize=True, max_examples=30)


def verdict(overall: float | None = 0.85, judge: str = "j", *, spent: int | None = None, **fields: Any) -> Verdict:
    usage = None if spent is None else Usage(prompt_tokens=spent - 1, completion_tokens=1)
    numbers = dict.fromkeys(("overall_score", "accuracy", "completeness", "relevance"), overall)
    return Verdict(**{"judge": judge, "reasoning": "Because.", "usage": usage} | numbers | fields)


def panel(*overall: float, spent: int | None = 10) -> tuple[Verdict, ...]:
    return tuple(verdict(value, f"j{number}", spent=spent) for number, value in enumerate(overall))


def row(
    asked: Question,
    response: Response | None = None,
    verdicts: Sequence[Verdict] = (),
    *,
    k: int = 2,
    count: int | None = None,
    seconds: float = 1.0,
    judge_failed: bool = False,
) -> Row:
    """The row of a response and what judges said of it, or without one that of a failure, as the run loop makes it."""
    if response is None:
        failure = Failure(kind="target_error", message="OSError: gone")
        return row_of(asked, failure, k, seconds=seconds)
    used = None if count is None else Tokens(count=count, known="counted")
    counted = () if judge_failed else verdicts
    measured = measure(asked, response, Rules(k), counted, used, judge_failed=judge_failed)
    return row_of(
        asked,
        response,
        k,
        verdicts=tuple(verdicts),
        error="judge_error: no JSON" if judge_failed else None,
        scores=measured.scores,
        unmeasured=measured.unmeasured,
        duplicates=measured.duplicates,
        passed=measured.passed,
        seconds=seconds,
    )


def summary(*rows: Row, k: int = 2) -> Summary:
    whole = Summary(k)
    for one in rows:
        whole.add(one)
    return whole


def ledger(*rows: Row) -> Ledger:
    whole = Ledger()
    for one in rows:
        whole.add(one)
    return whole


NOTHING = Usage(prompt_tokens=0, completion_tokens=0)


def test_an_empty_run_has_no_metric() -> None:
    empty, unused = summary(), ledger()
    assert (empty.metrics, empty.counts, empty.groups, empty.by_judge, unused.seconds()) == ({}, {}, {}, {}, {})
    assert set(empty.totals.values()) == set(unused.totals.values()) == {0}
    assert (unused.usage["target"], unused.usage["judge"]) == (NOTHING, NOTHING)


def test_each_mean_is_over_the_questions_that_measured_it() -> None:
    rows = [
        row(question(), Response(sources=chunks("a", "b"))),
        row(question(), Response(sources=chunks("x", "a", "a"))),
        row(question(expected_chunks=("z",)), Response(sources=())),
        row(question(expected_chunks=()), Response(sources=())),
        row(question(expected_chunks=()), Response(sources=chunks("a"))),
        row(question(expected_chunks=None), Response(answer="Paris.")),
        row(question(), Response(answer="Paris.")),
        row(question()),
        row(question(expected_chunks=())),
    ]
    whole = summary(*rows)
    known = {
        "recall_at_k": 0.5,
        "precision_at_k": 0.5,
        "precision_at_k.max": pytest.approx(2.5 / 3),
        "mrr": 0.5,
        "hit_rate": pytest.approx(2 / 3),
        "ndcg_at_k": pytest.approx((1 + 0.38685280723454163 + 0) / 3),
        "negative_pass_rate": 0.5,
        "false_abstention_rate": 0.25,
        "pass_rate": 0.6,
    }
    assert {name: whole.metrics[name] for name in known} == known
    retrieval = ("recall_at_k", "precision_at_k", "precision_at_k.max", "mrr", "hit_rate", "ndcg_at_k")
    others = {"negative_pass_rate": 2, "false_abstention_rate": 4, "pass_rate": 5}
    assert {name: whole.counts[name] for name in known} == dict.fromkeys(retrieval, 3) | others
    assert whole.totals == {
        "num_questions": 9,
        "num_measured": 5,
        "num_errors": 2,
        "num_negatives": 3,
        "duplicates": 1,
        "num_judged": 0,
        "judge_errors": 0,
    }
    assert summary(*reversed(rows)).metrics == whole.metrics


@pytest.mark.parametrize(("k", "reachable"), [(1, 1), (2, 1), (4, 0.5), (10, 0.2)])
def test_the_reachable_precision_stands_beside_the_precision(k: int, reachable: float) -> None:
    """With two distinct relevant chunks no list has a precision above min(k, 2) / k."""
    asked = question(expected_chunks=("a", "b", "a"))
    whole = summary(row(asked, Response(sources=chunks("b", "a")), k=k), k=k)
    assert whole.metrics["precision_at_k.max"] == whole.metrics["precision_at_k"] == reachable


def test_groups_are_domains_and_difficulties() -> None:
    whole = summary(
        row(question(domain="food", difficulty="hard"), Response(sources=chunks("a"))),
        row(question(domain="travel", difficulty="hard"), Response(sources=chunks("x", "b"))),
        row(question(domain="travel"), Response(sources=chunks("x", "y", "a"))),
        row(question(domain="travel", difficulty="easy", expected_chunks=()), Response(sources=())),
    )
    assert whole.groups == {
        "travel": {"recall_at_k": (0.25, 2), "mrr": (0.25, 2), "pass_rate": (pytest.approx(2 / 3), 3)},
        "hard": {"recall_at_k": (0.5, 2), "mrr": (0.75, 2), "pass_rate": (1, 2)},
        "easy": {"pass_rate": (1, 1)},
        "food": {"recall_at_k": (0.5, 1), "mrr": (1, 1), "pass_rate": (1, 1)},
    }
    assert list(whole.groups) == ["travel", "food", "easy", "hard"]
    assert list(whole.groups["travel"]) == ["recall_at_k", "mrr", "pass_rate"]


@pytest.mark.parametrize("domain", ["easy", "medium", "hard", "domain-easy"])
def test_a_domain_named_like_a_difficulty_is_renamed(domain: str) -> None:
    whole = summary(
        row(question(domain=domain, difficulty="easy"), Response(sources=chunks("a", "b"))),
        row(question(domain="easy"), Response(sources=())),
    )
    renamed = {f"domain-{domain}", "domain-easy"}
    assert set(whole.groups) == {"easy", *renamed}
    assert whole.groups["easy"]["recall_at_k"] == (1, 1)
    if len(renamed) == 2:
        assert whole.groups[f"domain-{domain}"]["recall_at_k"] == (1, 1)


@pytest.mark.parametrize(("times", "mean", "p95"), data("metrics.json")["target_seconds"])
def test_times_are_those_of_the_answers(times: list[float], mean: float, p95: float) -> None:
    whole = ledger(*(row(question(), Response(sources=()), seconds=second) for second in times))
    assert whole.seconds() == {"target_seconds.mean": mean, "target_seconds.p95": p95}


def test_judged_questions_have_means_of_their_own() -> None:
    whole = summary(
        row(question(), HIT, [verdict(1.0, accuracy=0.5)]),
        row(question(), MISS, [verdict(0.5, relevance=0.0)]),
        row(question(expected_chunks=None), Response(answer="Paris."), [verdict(0.75)]),
        row(question(), HIT),
    )
    names = ("judge_score", "accuracy", "completeness", "relevance")
    assert [(whole.metrics[name], whole.counts[name]) for name in names] == [
        (0.75, 3),
        (pytest.approx(1.75 / 3), 3),
        (0.75, 3),
        (pytest.approx(1.75 / 3), 3),
    ]
    assert (whole.metrics["pass_rate"], whole.counts["pass_rate"]) == (0.75, 4)
    assert whole.totals["num_judged"] == 3
    assert whole.groups["travel"]["judge_score"] == (0.75, 3)
    assert "accuracy" not in whole.groups["travel"]


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_what_a_failure_cost_is_in_the_ledger_of_whom_it_was_asked(kind: FailureKind) -> None:
    cost = Usage(prompt_tokens=30, completion_tokens=4, reasoning_tokens=2)
    judged = kind == "judge_error"
    if judged:
        made = row(question(), HIT, panel(0.5), count=500, judge_failed=True)
        failed = made.model_copy(update={"judge_usage": cost})
    else:
        failed = row_of(question(), Failure(kind=kind, message="cut off", usage=cost), 2)
    spent = ledger(failed)
    of_panel = Usage(prompt_tokens=9, completion_tokens=1)
    assert spent.usage["judge"] == (of_panel + cost if judged else NOTHING)
    assert spent.usage["target"] == (NOTHING if judged else cost)
    assert spent.totals["judge_tokens"] == (44 if judged else 0)
    assert spent.totals["total_tokens"] == (500 if judged else 0)
    assert spent.totals["trial_errors"] == 1


def test_what_was_asked_and_what_was_told() -> None:
    used = Usage(prompt_tokens=3, completion_tokens=4)
    paid = Failure(kind="target_error", message="cut off", usage=used)
    spent = ledger(
        row(question(), Response(answer="Paris.", usage=used), [verdict(spent=7), verdict(judge="untold")]),
        row(question(), HIT, [verdict(spent=7, cached=True)]),
        row(question()),
        row_of(question(), paid, 2),
    )
    assert spent.calls == {"target": 3, "judge": 2}
    assert spent.reports == {"target": 2, "judge": 1}


def test_the_ledger_is_of_trials_and_the_summary_of_questions() -> None:
    used = Usage(prompt_tokens=900, completion_tokens=100)
    answered = row(question(), HIT.model_copy(update={"usage": used}), [verdict(spent=70)], count=1000, seconds=2)
    failed = row(question(), seconds=60)
    trials = [
        one.model_copy(update={"trial": number}) for number, one in enumerate([answered, failed, answered], start=1)
    ]
    spent, whole = ledger(*trials), summary(merge(trials))
    assert whole.totals["num_questions"] == whole.totals["num_measured"] == whole.totals["num_judged"] == 1
    assert (whole.totals["num_errors"], spent.totals["trial_errors"]) == (0, 1)
    assert (spent.totals["total_tokens"], spent.totals["judge_tokens"]) == (2000, 140)
    assert (whole.metrics["num_tokens"], whole.counts["num_tokens"]) == (1000, 1)
    assert spent.seconds() == {"target_seconds.mean": 2, "target_seconds.p95": 2}
    assert (whole.metrics["pass_rate"], whole.counts["pass_rate"]) == (1, 1)
    assert not {"pass_at_n", "pass_hat_n", "flaky_rate"} & whole.metrics.keys()


def test_the_metrics_of_trials_stand_at_their_place() -> None:
    right, wrong = row(question(), HIT), row(question(), MISS)
    questions = [[right, right], [right, wrong], [wrong, wrong], [right, row(question())]]
    whole = summary(*(merge([one.model_copy(update={"trial": n}) for n, one in enumerate(q, 1)]) for q in questions))
    assert list(whole.metrics)[-4:] == ["pass_rate", "pass_at_n", "pass_hat_n", "flaky_rate"]
    assert [(whole.metrics[name], whole.counts[name]) for name in list(whole.metrics)[-4:]] == [
        (0.5, 3),
        (pytest.approx(2 / 3), 3),
        (pytest.approx(1 / 3), 3),
        (pytest.approx(1 / 3), 3),
    ]
    assert set(whole.groups["travel"]) == {"recall_at_k", "mrr", "pass_rate"}


@pytest.mark.parametrize("verdicts", [(), panel(0.0, 0.0)[:1]], ids=["none", "one of two"])
def test_a_judge_error_is_in_no_judge_mean(verdicts: tuple[Verdict, ...]) -> None:
    judged = row(question(), HIT, panel(0.5, 1.0), count=1000, seconds=1)
    failed = row(question(), MISS, verdicts, count=3000, seconds=3, judge_failed=True)
    alone, beside = summary(judged), summary(failed, judged)
    names = ("judge_score", "accuracy", "judge_spread", "combined_score", "combined_score_best", "pass_rate")
    assert [beside.metrics[name] for name in names] == [alone.metrics[name] for name in names]
    assert {beside.counts[name] for name in names} == {1}
    assert beside.by_judge == alone.by_judge == {"j0": (0.5, 1), "j1": (1.0, 1)}
    assert (beside.metrics["hit_rate"], beside.counts["hit_rate"]) == (0.5, 2)
    assert beside.totals == alone.totals | {"num_questions": 2, "num_errors": 1, "judge_errors": 1}
    assert beside.metrics["num_tokens"] == 2000
    spent = ledger(failed, judged)
    assert spent.seconds()["target_seconds.mean"] == 2
    assert spent.totals == ledger(judged).totals | {
        "total_tokens": 4000,
        "judge_tokens": 20 + 10 * len(verdicts),
        "trial_errors": 1,
    }


@pytest.mark.parametrize("order", [1, -1])
def test_the_best_combined_score_is_of_one_question(order: int) -> None:
    rows = [
        row(question(), HIT, [verdict(1.0)], count=4000),
        row(question(), HIT, [verdict(1.0)], count=250),
        row(question(), MISS, [verdict(1.0)], count=250),
        row(question(), HIT, [verdict(1.0)]),
    ]
    whole = summary(*rows[::order])
    assert (whole.metrics["combined_score_best"], whole.counts["combined_score_best"]) == (2, 3)
    assert (whole.metrics["combined_score"], whole.counts["combined_score"]) == (2.5 / 3, 3)


def test_unread_fields_are_counted() -> None:
    rows = [row(question(), Response(answer="a", unread=names)) for names in (("x",), ("x", "y"), ("x",))]
    assert ledger(*rows).unread == {"x": 3, "y": 1}


def shown(position: int, passed: bool | None = None, kind: FailureKind | None = None) -> Row:
    outcome = Failure(kind=kind, message="no") if kind else Response()
    return row_of(question(), outcome, 5, position=position, passed=passed)


@repeatable
@given(st.permutations(range(SHOWN_ROWS + 15)))
def test_the_first_of_the_golden_set_are_kept(order: list[int]) -> None:
    kept = Kept()
    for position in order:
        kept.add(shown(position, passed=[True, None][position % 2]))
        kept.add(shown(position, passed=False))
        kept.add(shown(position, kind="target_error"))
    first = list(range(SHOWN_ROWS))
    assert [one.position for one in kept.missed] == [one.position for one in kept.errors] == first


def test_parts_of_tokens_are_counted_for_themselves() -> None:
    asked = Usage(prompt_tokens=900, completion_tokens=100, cached_tokens=640, reasoning_tokens=64)
    judged = Usage(prompt_tokens=50, completion_tokens=9, cached_tokens=32, reasoning_tokens=4)
    untold = Usage(prompt_tokens=7, completion_tokens=1)
    spent = ledger(
        row(question(), Response(answer="Paris.", usage=asked), [verdict(usage=judged)], count=1000),
        row(question(), Response(answer="Paris.", usage=asked), [verdict(usage=untold)], count=1000),
        row(question(), Response(answer="Paris.", usage=untold), [verdict(usage=judged)], count=8),
    )
    totals = spent.totals
    assert (totals["total_tokens"], totals["judge_tokens"]) == (2008, 126)
    assert (totals["cached_tokens"], totals["reasoning_tokens"]) == (1280, 128)
    assert (totals["judge_cached_tokens"], totals["judge_reasoning_tokens"]) == (64, 8)
