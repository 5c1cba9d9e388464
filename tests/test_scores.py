"""From a response to scores, to pass or fail, and to the metrics of a run."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.records import Failure, Question, Response, Row, Source, ToolCall
from evaltrack.scores import (
    BY_NAME,
    NEGATIVE,
    NO_EXPECTATION,
    NO_SOURCES,
    SCORES,
    Rules,
    measure,
    relevant_keys,
    source_keys,
)
from evaltrack.summary import ExactMean, Summary

RETRIEVAL = ("recall_at_k", "precision_at_k", "reciprocal_rank", "hit", "ndcg_at_k")

repeatable = settings(deadline=None, derandomize=True)


def question(**fields: Any) -> Question:
    """A question that expects the chunks `a` and `b`, unless `fields` say otherwise."""
    if not {"expected_chunks", "expected_sources"} & fields.keys():
        fields["expected_chunks"] = ("a", "b")
    return Question(**{"id": "1", "question": "What?", "domain": "travel"} | fields)


def chunks(*ids: str) -> tuple[Source, ...]:
    """Sources that have an id and no title."""
    return tuple(Source(chunk_id=key) for key in ids)


def titles(*names: str) -> tuple[Source, ...]:
    """Sources that have a title and no id."""
    return tuple(Source(title=name) for name in names)


def row(asked: Question, response: Response | None = None, *, k: int = 2, seconds: float = 1.0) -> Row:
    """The row of a response, or without one that of a failure."""
    if response is None:
        failure = Failure(kind="target_error", message="OSError: gone")
        return Row(position=0, question=asked, failure=failure, started_at=0, seconds=seconds)
    measured = measure(asked, response, Rules(k))
    return Row(
        position=0,
        question=asked,
        response=response,
        scores=measured.scores,
        unmeasured=measured.unmeasured,
        duplicates=measured.duplicates,
        passed=measured.passed,
        started_at=0,
        seconds=seconds,
    )


def summary(*rows: Row, k: int = 2) -> Summary:
    """The summary of some rows."""
    whole = Summary(k)
    for one in rows:
        whole.add(one)
    return whole


def test_the_table_names_each_score_and_metric_once() -> None:
    """A score is found by its name, no two share a name or a metric, and only false abstentions should be few."""
    assert [BY_NAME[score.name] for score in SCORES] == list(SCORES)
    assert len({score.metric for score in SCORES}) == len(SCORES)
    assert tuple(score.name for score in SCORES if score.retrieval) == RETRIEVAL
    assert [score.name for score in SCORES if not score.higher_is_better] == ["false_abstention"]
    assert [score.metric for score in SCORES if score.by_group] == ["recall_at_k", "mrr", "pass_rate"]
    assert all(score.meaning for score in SCORES)


def test_an_answerable_question_has_every_retrieval_score() -> None:
    """Of a list of three, cut at 2, the five scores, the false abstention and the pass are measured."""
    measured = measure(question(), Response(sources=chunks("x", "b", "a")), Rules(2))
    assert measured.scores == {
        "recall_at_k": 0.5,
        "precision_at_k": 0.5,
        "reciprocal_rank": 0.5,
        "hit": 1,
        "ndcg_at_k": pytest.approx(0.38685280723454163, abs=1e-15),
        "false_abstention": 0,
        "pass": 1,
    }
    assert (measured.unmeasured, measured.duplicates, measured.passed) == ({}, 0, True)


def test_repeats_are_counted_and_take_up_no_rank() -> None:
    """A chunk that comes back twice is dropped before the cut, so the one behind it is in the first k."""
    measured = measure(question(), Response(sources=chunks("a", "a", "b", "a")), Rules(2))
    assert (measured.scores["recall_at_k"], measured.duplicates) == (1, 2)


def test_an_empty_list_was_measured_and_scores_zero() -> None:
    """A target that looked and found nothing scores 0 in every retrieval score, abstained and did not pass."""
    measured = measure(question(), Response(sources=()), Rules(5))
    assert measured.scores == dict.fromkeys(RETRIEVAL, 0.0) | {"false_abstention": 1, "pass": 0}
    assert (measured.unmeasured, measured.passed) == ({}, False)


@pytest.mark.parametrize("expectation", ["expected_chunks", "expected_sources"])
@pytest.mark.parametrize(
    ("response", "declined"),
    [
        (Response(sources=()), True),
        (Response(answer="I do not know.", abstained=True), True),
        (Response(sources=chunks("a"), abstained=True), True),
        (Response(sources=chunks("a")), False),
        (Response(answer="Paris."), False),
    ],
)
def test_a_negative_passes_when_the_target_declined(response: Response, declined: bool, expectation: str) -> None:
    """For a negative only declining counts: no source or the flag; no retrieval score is measured, with the reason."""
    measured = measure(question(**{expectation: ()}), response, Rules(5))
    assert measured.scores == {"negative_pass": declined, "pass": declined}
    assert measured.unmeasured == dict.fromkeys(RETRIEVAL, NEGATIVE)
    assert measured.passed is declined


def test_a_question_without_expectation_measures_nothing() -> None:
    """Where nothing is expected of retrieval no score is measured, for that reason; it neither passes nor fails."""
    measured = measure(question(expected_chunks=None), Response(sources=chunks("a", "a")), Rules(5))
    assert (measured.scores, measured.duplicates, measured.passed) == ({}, 0, None)
    assert measured.unmeasured == dict.fromkeys(RETRIEVAL, NO_EXPECTATION)


@pytest.mark.parametrize("abstained", [True, False])
def test_a_target_that_does_not_retrieve_has_no_retrieval_score(abstained: bool) -> None:
    """Without a list of sources only the false abstention is measured, and the question neither passes nor fails."""
    measured = measure(question(), Response(answer="Paris.", abstained=abstained), Rules(5))
    assert (measured.scores, measured.passed) == ({"false_abstention": abstained}, None)
    assert measured.unmeasured == dict.fromkeys(RETRIEVAL, NO_SOURCES)


@pytest.mark.parametrize(
    ("sources", "called", "passed"),
    [
        (("a",), ("search", "fetch"), True),
        (("a",), ("fetch", "search", "search", "other"), True),
        (("a",), ("search",), False),
        (("a",), (), False),
        (("x",), ("search", "fetch"), False),
        (("x", "x", "y", "a"), ("search", "fetch"), False),
    ],
)
def test_an_answerable_question_passes_with_a_hit_and_every_tool(
    sources: tuple[str, ...], called: tuple[str, ...], passed: bool
) -> None:
    """One expected source in the first k and a call of each expected tool, in any order, make a pass."""
    asked = question(expected_tools=("search", "fetch"))
    calls = tuple(ToolCall(name=name) for name in called)
    measured = measure(asked, Response(sources=chunks(*sources), tool_calls=calls), Rules(2))
    assert measured.passed is passed
    assert measured.scores["pass"] == passed


@pytest.mark.parametrize(
    ("fields", "sources", "keys"),
    [
        ({"expected_chunks": ("a",)}, chunks("a", "b", "a"), ["a", "b", "a"]),
        ({"expected_chunks": ("a",)}, titles("a", "b"), ["\x000", "\x001"]),
        ({"expected_chunks": ("a",)}, (Source(title="a"), Source(chunk_id="a", title="b")), ["\x000", "a"]),
        ({"expected_sources": ("a",)}, titles("The_Title", "the title", "B"), ["the title", "the title", "b"]),
        ({"expected_sources": ("a",)}, (Source(chunk_id="a"), Source(chunk_id="1", title="A")), ["\x000", "a"]),
        ({"expected_sources": ("a",)}, (Source(chunk_id="1", title=""),), ["\x000"]),
        ({"expected_chunks": ("a",), "expected_sources": ("b",)}, (Source(chunk_id="c", title="d"),), ["c"]),
        ({"expected_chunks": ("a",)}, (), []),
        ({"expected_chunks": ("a",)}, None, []),
    ],
)
def test_sources_compare_by_what_is_expected(
    fields: dict[str, Any], sources: tuple[Source, ...] | None, keys: list[str]
) -> None:
    """Chunk ids compare as they are, titles in their form; a source that lacks the one compared keeps its rank."""
    assert source_keys(question(**fields), Response(sources=sources)) == keys


def test_a_source_without_the_compared_key_still_takes_up_a_rank() -> None:
    """Sources without an id are no repeats of one another, and push the relevant one down."""
    sources = (Source(title="a"), Source(title="b"), Source(chunk_id="a"))
    measured = measure(question(), Response(sources=sources), Rules(3))
    assert measured.scores["reciprocal_rank"] == 1 / 3
    assert measured.duplicates == 0


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({"expected_chunks": ("b", "a", "b")}, {"a", "b"}),
        ({"expected_chunks": ("A",)}, {"A"}),
        ({"expected_chunks": (5,)}, {"5"}),
        ({"expected_sources": ("Straße", "STRASSE", "New_York")}, {"strasse", "new york"}),
        ({"expected_chunks": ("a",), "expected_sources": ("T",)}, {"a"}),
        ({"expected_chunks": ()}, set()),
        ({"expected_chunks": None}, set()),
    ],
)
def test_what_is_expected_twice_is_one_relevant_key(fields: dict[str, Any], keys: set[str]) -> None:
    """Relevant keys are a set in the form they compare in, so a repeat in the golden line divides nothing twice."""
    assert relevant_keys(question(**fields)) == keys


def test_titles_match_in_whatever_way_they_are_written() -> None:
    """A title is found though case, underscores and Unicode form differ."""
    asked = question(expected_sources=("Cafe\N{COMBINING ACUTE ACCENT}_Central",))
    found = titles("x", "CAF\N{LATIN CAPITAL LETTER E WITH ACUTE} Central")
    assert measure(asked, Response(sources=found), Rules(2)).scores["reciprocal_rank"] == 0.5


numbers = st.one_of(st.floats(0, 1), st.floats(-1e15, 1e15), st.floats(-1e-300, 1e-300), st.sampled_from((1e15, -1e15)))


def exact_mean(values: Sequence[float]) -> float:
    """The mean of the values added one by one."""
    mean = ExactMean()
    for value in values:
        mean.add(value)
    return mean.mean


@repeatable
@given(st.lists(numbers, min_size=1, max_size=60))
def test_a_mean_is_of_the_exact_sum(values: list[float]) -> None:
    """The sum behind a mean is the exact one, rounded once, as `math.fsum` and fractions have it."""
    assert exact_mean(values) == fsum(values) / len(values)
    assert exact_mean(values) == float(sum(map(Fraction, values))) / len(values)


@repeatable
@given(st.lists(numbers, min_size=1, max_size=60).flatmap(lambda v: st.tuples(st.just(v), st.permutations(v))))
def test_a_mean_does_not_depend_on_the_order(lists: tuple[list[float], list[float]]) -> None:
    """Rows finish in any order and the mean is the same to the last bit."""
    values, shuffled = lists
    assert exact_mean(values) == exact_mean(shuffled)


def test_a_mean_that_plain_addition_gets_wrong() -> None:
    """What cancels out leaves the small value standing, and ten tenths are one."""
    assert exact_mean([1e15, 0.1, -1e15]) == 0.1 / 3
    assert exact_mean([0.1] * 10) == 0.1


def test_a_mean_counts_what_was_added() -> None:
    """The count is the number of values, zeros included."""
    mean = ExactMean()
    for value in (0.0, 1.0, 0.0):
        mean.add(value)
    assert (mean.count, mean.mean) == (3, 1 / 3)


def test_an_empty_run_has_no_metric() -> None:
    """Where no row came, every total is 0 and there is no mean, no group and no time."""
    empty = summary()
    assert (empty.metrics, empty.counts, empty.groups, empty.seconds()) == ({}, {}, {}, {})
    assert set(empty.totals.values()) == {0}


def test_each_mean_is_over_the_questions_that_measured_it() -> None:
    """Answerable questions make the retrieval means, negatives have their own, and each stands beside its count."""
    whole = summary(
        row(question(), Response(sources=chunks("a", "b"))),
        row(question(), Response(sources=chunks("x", "a", "a"))),
        row(question(expected_chunks=("z",)), Response(sources=())),
        row(question(expected_chunks=()), Response(sources=())),
        row(question(expected_chunks=()), Response(sources=chunks("a"))),
        row(question(expected_chunks=None), Response(answer="Paris.")),
        row(question(), Response(answer="Paris.")),
        row(question()),
        row(question(expected_chunks=())),
    )
    assert whole.metrics == {
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
    assert whole.counts == {
        "recall_at_k": 3,
        "precision_at_k": 3,
        "precision_at_k.max": 3,
        "mrr": 3,
        "hit_rate": 3,
        "ndcg_at_k": 3,
        "negative_pass_rate": 2,
        "false_abstention_rate": 4,
        "pass_rate": 5,
    }
    assert whole.totals == {
        "num_questions": 9,
        "num_measured": 5,
        "num_errors": 2,
        "num_negatives": 3,
        "duplicates": 1,
    }


def test_metrics_come_in_the_order_of_the_table() -> None:
    """Whatever came first, names follow `SCORES`, the reachable maximum right behind its mean."""
    whole = summary(
        row(question(expected_chunks=()), Response(sources=())), row(question(), Response(sources=chunks("a")))
    )
    assert list(whole.metrics) == [
        "recall_at_k",
        "precision_at_k",
        "precision_at_k.max",
        "mrr",
        "hit_rate",
        "ndcg_at_k",
        "negative_pass_rate",
        "false_abstention_rate",
        "pass_rate",
    ]
    assert list(whole.counts) == list(whole.metrics)


def test_a_failure_is_in_no_mean() -> None:
    """A failed question is counted as an error; every mean, count and time stays what it was without it."""
    good = row(question(), Response(sources=chunks("a")), seconds=2)
    alone, beside = summary(good), summary(row(question(), seconds=60), good, row(question(), seconds=60))
    assert (beside.metrics, beside.counts) == (alone.metrics, alone.counts)
    assert (beside.groups, beside.seconds()) == (alone.groups, alone.seconds())
    assert beside.totals == alone.totals | {"num_questions": 3, "num_errors": 2}


@pytest.mark.parametrize(("k", "reachable"), [(1, 1), (2, 1), (4, 0.5), (10, 0.2)])
def test_the_reachable_precision_stands_beside_the_precision(k: int, reachable: float) -> None:
    """With two distinct relevant chunks no list has a precision above min(k, 2) / k."""
    asked = question(expected_chunks=("a", "b", "a"))
    whole = summary(row(asked, Response(sources=chunks("b", "a")), k=k), k=k)
    assert whole.metrics["precision_at_k.max"] == whole.metrics["precision_at_k"] == reachable


def test_groups_are_domains_and_difficulties() -> None:
    """Recall, MRR and pass rate stand for each domain and difficulty, with their counts, the largest group first."""
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
    assert list(whole.groups) == ["travel", "hard", "easy", "food"]
    assert list(whole.groups["travel"]) == ["recall_at_k", "mrr", "pass_rate"]


def test_a_group_that_only_failed_has_no_mean() -> None:
    """A domain whose questions all failed is known and holds nothing, behind those that were measured."""
    whole = summary(row(question(domain="a")), row(question(domain="b"), Response(sources=chunks("a"))))
    assert list(whole.groups) == ["b", "a"]
    assert whole.groups["a"] == {}


@pytest.mark.parametrize("domain", ["easy", "hard", "max", "mean", "medium", "n", "p95"])
def test_a_domain_named_like_a_difficulty_or_a_statistic_is_renamed(domain: str) -> None:
    """A domain never shares its group with a difficulty, nor its metric's name with a count."""
    whole = summary(
        row(question(domain=domain, difficulty="easy"), Response(sources=chunks("a", "b"))),
        row(question(domain="travel", difficulty="easy"), Response(sources=())),
    )
    assert set(whole.groups) == {"easy", "travel", f"domain-{domain}"}
    assert whole.groups["easy"]["recall_at_k"] == (0.5, 2)
    assert whole.groups[f"domain-{domain}"]["recall_at_k"] == (1, 1)


def test_two_domains_are_never_one_group() -> None:
    """The domains `easy` and `domain-easy` are two groups of one question each."""
    whole = summary(
        row(question(domain="easy"), Response(sources=chunks("a", "b"))),
        row(question(domain="domain-easy"), Response(sources=())),
    )
    assert sorted(means["recall_at_k"] for means in whole.groups.values()) == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("times", "mean", "p95"),
    [
        ([3.0], 3.0, 3.0),
        ([1.0, 2.0], 1.5, 2.0),
        ([float(second) for second in range(1, 20)], 10.0, 19.0),
        ([float(second) for second in range(1, 21)], 10.5, 19.0),
        ([float(second) for second in range(100, 0, -1)], 50.5, 95.0),
    ],
)
def test_times_are_those_of_the_answers(times: list[float], mean: float, p95: float) -> None:
    """The mean and the 95th percentile by nearest rank are of the target's seconds, in whatever order they came."""
    whole = summary(*(row(question(), Response(sources=()), seconds=second) for second in times))
    assert whole.seconds() == {"target_seconds.mean": mean, "target_seconds.p95": p95}


@repeatable
@given(st.permutations(range(8)))
def test_a_summary_does_not_depend_on_the_order_of_the_rows(order: list[int]) -> None:
    """Rows may finish in any order: metrics, counts, totals, groups and times are the same."""
    rows = [
        row(question(domain=domain, expected_chunks=tuple("abcdefg"[:size])), response, seconds=0.1 * size)
        for size, domain, response in [
            (1, "x", Response(sources=chunks("a"))),
            (2, "y", Response(sources=chunks("x", "b"))),
            (3, "x", Response(sources=chunks("a", "a", "c"))),
            (5, "y", Response(sources=chunks("x", "y", "z"))),
            (6, "z", None),
            (7, "x", Response(sources=chunks("g"))),
            (0, "y", Response(sources=())),
            (0, "z", Response(sources=chunks("a"))),
        ]
    ]
    one, other = summary(*rows), summary(*(rows[place] for place in order))
    assert (one.metrics, one.counts, one.totals) == (other.metrics, other.counts, other.totals)
    assert (list(one.groups.items()), one.seconds()) == (list(other.groups.items()), other.seconds())
