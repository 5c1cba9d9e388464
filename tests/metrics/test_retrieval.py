from __future__ import annotations

import random
from collections.abc import Callable, Sequence, Set
from typing import Any

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.metrics.measure import Rules, measure
from evaltrack.metrics.retrieval import (
    NO_TEXTS,
    context_precision,
    first_occurrences,
    graded_ndcg_at_k,
    hit,
    judged_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    relevance_of,
    relevant_keys,
    source_keys,
)
from evaltrack.records import Question, Response, Source
from evaltrack.records.row import row_of
from tests.files import data
from tests.metrics.test_measure import chunks


def ranks_of(ranked: Sequence[str], relevant: Set[str]) -> list[int]:
    return [rank for rank, key in enumerate(ranked, start=1) if key in relevant]


SCORES: dict[str, Callable[[Sequence[str], Set[str], int], float]] = {
    "recall": lambda ranked, relevant, k: recall_at_k(ranks_of(ranked, relevant), len(relevant), k),
    "precision": lambda ranked, relevant, k: precision_at_k(ranks_of(ranked, relevant), k),
    "reciprocal_rank": lambda ranked, relevant, k: reciprocal_rank(ranks_of(ranked, relevant), k),
    "hit": lambda ranked, relevant, k: hit(ranks_of(ranked, relevant), k),
    "ndcg": lambda ranked, relevant, k: ndcg_at_k(ranks_of(ranked, relevant), len(relevant), k),
}
"""Over a ranked list of keys, and those that are relevant."""


CASES = 2_000
KS = (1, 2, 3, 5, 7, 10, 20, 100)

repeatable = settings(deadline=None, derandomize=True)


@pytest.mark.parametrize(("keys", "unique", "dropped"), [("", "", 0), ("cacba", "cab", 2), ("aaa", "a", 2)])
def test_a_repeat_keeps_its_first_rank(keys: str, unique: str, dropped: int) -> None:
    assert first_occurrences(iter(keys)) == (list(unique), dropped)


@pytest.mark.parametrize(
    ("name", "ranked", "relevant", "k", "score", "why"), data("metrics.json")["scores_of_one_list"]
)
def test_scores_of_one_list(name: str, ranked: str, relevant: str, k: int, score: float, why: str) -> None:
    assert SCORES[name](list(ranked), set(relevant), k) == pytest.approx(score, abs=1e-15)


Case = tuple[list[str], dict[str, int]]
"""What a target returned, repeats and all, and the grade of each judged document."""


def random_case(rng: random.Random) -> Case:
    """A list of 0 to 30 documents, drawn with repeats; 1 to 10 relevant ones, of which the list may hold none."""
    documents = [f"doc#{number}:/{number % 7}" for number in range(rng.choice((3, 12, 60)))]
    drawn = rng.choices(documents, k=rng.randint(0, 30))
    pool = [*documents, *(f"never-returned-{number}" for number in range(10))]
    if rng.random() < 0.15:
        pool = pool[len(documents) :]
    relevant = dict.fromkeys(rng.sample(pool, rng.randint(1, min(10, len(pool)))), 1)
    refused = dict.fromkeys(rng.sample(documents, rng.randint(0, len(documents) // 2)), 0)
    return drawn, refused | relevant


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    rng = random.Random(20080101)
    return {str(number): random_case(rng) for number in range(CASES)}


@pytest.fixture(scope="module")
def judgements(cases: dict[str, Case]) -> dict[str, dict[str, int]]:
    return {query: grades for query, (_, grades) in cases.items()}


@pytest.fixture(scope="module")
def run(cases: dict[str, Case]) -> dict[str, dict[str, float]]:
    return {query: falling(drawn) for query, (drawn, _) in cases.items()}


def falling(drawn: list[str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for place, document in enumerate(drawn):
        scores.setdefault(document, float(len(drawn) - place))
    return scores


@pytest.fixture(scope="module", params=KS)
def depth(request: pytest.FixtureRequest) -> int:
    cut: int = request.param
    return cut


@pytest.fixture(scope="module")
def ours(cases: dict[str, Case], depth: int) -> dict[str, dict[str, float]]:
    found = {}
    for query, (drawn, grades) in cases.items():
        ranked, _ = first_occurrences(drawn)
        relevant = {document for document, grade in grades.items() if grade >= 1}
        found[query] = {name: score(ranked, relevant, depth) for name, score in SCORES.items()}
    return found


def test_trec_eval_gives_the_same_scores(
    ours: dict[str, dict[str, float]],
    judgements: dict[str, dict[str, int]],
    run: dict[str, dict[str, float]],
    depth: int,
) -> None:
    """On random lists all five scores equal trec_eval's to 1e-12, its `recip_rank` that of the list cut at k."""
    cuts = {"recall": "recall", "precision": "P", "hit": "success", "ndcg": "ndcg_cut"}
    measures = {f"{name}.{depth}" for name in cuts.values()}
    theirs = pytrec_eval.RelevanceEvaluator(judgements, measures).evaluate(run)
    cut = {query: dict(list(scores.items())[:depth]) for query, scores in run.items()}
    ranks = pytrec_eval.RelevanceEvaluator(judgements, {"recip_rank"}).evaluate(cut)
    wrong = [
        (query, name, value, expected)
        for query, values in ours.items()
        for name, value in values.items()
        for expected in [theirs[query][f"{cuts[name]}_{depth}"] if name in cuts else ranks[query]["recip_rank"]]
        if abs(value - expected) > 1e-12
    ]
    assert wrong == []


@repeatable
@given(
    lengths=st.lists(st.integers(0, 3), max_size=12),
    missing=st.integers(0, 3),
    k=st.integers(1, 12),
)
def test_sources_that_hold_several_passages_are_never_better_than_ideal(
    lengths: list[int], missing: int, k: int
) -> None:
    """Scores stay in [0, 1], recall counts passages, precision counts sources, and the ideal list has nDCG 1."""
    ranks = [rank for rank, length in enumerate(lengths, start=1) for _ in range(length)]
    expected = len(ranks) + missing
    if not expected:
        return
    assert recall_at_k(ranks, expected, k) == sum(rank <= k for rank in ranks) / expected
    assert precision_at_k(ranks, k) == sum(length > 0 for length in lengths[:k]) / k
    assert 0 <= ndcg_at_k(ranks, expected, k) <= 1
    assert ndcg_at_k([1] * expected, expected, k) == 1
    assert ndcg_at_k(list(range(1, expected + 1)), expected, k) == 1


def test_graded_gain_is_that_of_trec_eval(depth: int) -> None:
    """On 300 random lists with grades 0 to 4 nDCG equals trec_eval's, and Judged@k that of ir-measures, to 1e-12."""
    draw = random.Random(11)
    judgements, run, ours = {}, {}, {}
    for number in range(300):
        documents = [f"d{place}" for place in range(30)]
        grades = {document: draw.choice([0, 0, 1, 2, 4]) for document in draw.sample(documents, draw.randint(1, 20))}
        grades[draw.choice(documents)] = draw.randint(1, 4)
        ranked = draw.sample(documents, draw.randint(1, 30))
        query = f"q{number}"
        judgements[query] = grades
        run[query] = {document: float(100 - place) for place, document in enumerate(ranked)}
        ours[query] = graded_ndcg_at_k(ranked, grades, depth), judged_at_k(ranked, grades, depth)
    theirs = pytrec_eval.RelevanceEvaluator(judgements, {f"ndcg_cut.{depth}"}).evaluate(run)
    judged = ir_measures.iter_calc([ir_measures.Judged @ depth], judgements, run)
    assert [q for q in ours if abs(ours[q][0] - theirs[q][f"ndcg_cut_{depth}"]) > 1e-12] == []
    assert [(each.query_id, each.value) for each in judged if abs(ours[each.query_id][1] - each.value) > 1e-12] == []


@pytest.mark.parametrize(("ranks", "k", "value", "why"), data("metrics.json")["context_precision"])
def test_context_precision(ranks: Sequence[int], k: int, value: float, why: str) -> None:
    assert context_precision(ranks, k) == pytest.approx(value, abs=1e-15)


STAY = "Stays of up to 90 days in any 180-day period need no visa."
FEE = "The fee is 80 euros."


def question(**fields: Any) -> Question:
    return Question.model_validate({"id": 1, "question": "How long?", "domain": "travel"} | fields)


def titles(*names: str) -> tuple[Source, ...]:
    return tuple(Source(title=each) for each in names)


def texts(*texts: str | None) -> tuple[Source, ...]:
    return tuple(Source(chunk_id=f"c{place}", text=text) for place, text in enumerate(texts))


def quoted(*quotes: str, **fields: Any) -> Question:
    return question(expected_passages=[{"quote": quote} for quote in quotes], **fields)


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
    assert source_keys(question(**fields), sources or ()) == keys


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


@pytest.mark.parametrize(
    ("sources", "ranks", "finds"),
    [
        (texts(STAY, FEE), [1, 2], (1, 1)),
        (texts("Nothing.", FEE, STAY), [2, 3], (0, 1, 1)),
        (texts(f"{FEE} {STAY}", "Nothing."), [1, 1], (2, 0)),
        (texts(STAY, f"Again: {STAY}", FEE), [1, 3], (1, 0, 1)),
        (texts(STAY, None), [1], (1, 0)),
        (texts("Nothing."), [], (0,)),
        ((), [], ()),
        ((texts(STAY) + texts(STAY) + texts(None, FEE)[1:]), [1, 2], (1, 1, 1)),
        ((Source(title="Visa", text=STAY), Source(title="Visa", text=FEE)), [1, 2], (1, 1)),
    ],
)
def test_each_passage_counts_at_the_first_source_that_holds_it(
    sources: tuple[Source, ...], ranks: list[int], finds: tuple[int, ...]
) -> None:
    relevance = relevance_of(quoted(STAY, FEE), Response(sources=sources))
    assert not isinstance(relevance, str)
    assert list(relevance.ranks) == ranks
    assert relevance.expected == 2
    assert tuple(map(len, relevance.finds or ())) == finds


def test_chunks_that_hold_the_same_are_one_passage() -> None:
    """Any of them will do, and the second brings nothing; ids decide, so that no text is needed."""
    asked = question(expected_passages=[{"any_of": ["a", "b"]}, {"any_of": ["c"]}])
    relevance = relevance_of(asked, Response(sources=chunks("x", "b", "a", "c")))
    assert not isinstance(relevance, str)
    assert list(relevance.ranks) == [2, 4]
    assert relevance.finds == ((), ("a or b",), (), ("c",))


@pytest.mark.parametrize(
    ("fields", "recall", "expected"),
    [({"expected_chunks": ["b"]}, 1.0, ("b",)), ({"expected_sources": ["C"]}, 0.0, ("C",)), ({}, None, None)],
)
def test_without_texts_the_ids_beside_the_passages_decide(
    fields: dict[str, Any], recall: float | None, expected: tuple[str, ...] | None
) -> None:
    asked, response = quoted(STAY, **fields), Response(sources=(Source(chunk_id="a", title="A"), *chunks("b")))
    measured = measure(asked, response, Rules(k=2))
    row = row_of(asked, response, 2, measured.finds)
    assert measured.scores.get("recall_at_k") == recall
    assert row.expected == (expected or asked.expected)
    assert (measured.unmeasured.get("recall_at_k") == NO_TEXTS) is (recall is None)


def test_a_negative_may_be_written_with_passages() -> None:
    asked = question(expected_passages=[])
    assert asked.negative
    assert measure(asked, Response(sources=()), Rules()).passed is True


def test_grades_make_the_gain_and_say_what_was_judged() -> None:
    asked = question(expected_chunks={"a": 3, "b": 1, "c": 0}, relevant_grade=1)
    scores = measure(asked, Response(sources=chunks("b", "c", "x", "a")), Rules(k=4)).scores
    assert scores["recall_at_k"] == 1
    assert scores["judged_at_k"] == 3 / 4
    ideal = 3 + 1 / 1.584962500721156
    assert scores["ndcg_at_k"] == pytest.approx((1 + 3 / 2.321928094887362) / ideal, abs=1e-15)
    strict = question(expected_chunks={"a": 3, "b": 1}, relevant_grade=2)
    assert strict.expected == ("a",)
    assert measure(strict, Response(sources=chunks("b")), Rules()).scores["recall_at_k"] == 0


def test_grades_of_titles_compare_in_their_form() -> None:
    asked = question(expected_sources={"New_York": 1, "new york": 2, "Rome": 0})
    scores = measure(asked, Response(sources=titles("NEW YORK", "Rome")), Rules(k=2)).scores
    assert (scores["ndcg_at_k"], scores["judged_at_k"]) == (1.0, 1.0)
    assert "judged_at_k" not in measure(asked, Response(sources=()), Rules(k=2)).scores


def test_the_worked_example_of_the_definitions() -> None:
    asked = quoted("up to 90 days in any 180-day period", "the fee is 80 euros")
    found = texts("A page on trains.", "… stays of up to 90 days in any", "in any 180-day period. The fee is 80 euros.")
    scores = measure(asked, Response(sources=found), Rules(k=3)).scores
    assert (scores["recall_at_k"], scores["precision_at_k"], scores["reciprocal_rank"]) == (1, 2 / 3, 1 / 2)
    assert round(scores["ndcg_at_k"], 3) == 0.693


@repeatable
@given(st.permutations("abcdefgh"), st.sets(st.sampled_from("abcdefghxyz"), min_size=1), st.sampled_from((1, 3, 5, 10)))
def test_context_precision_is_average_precision_over_what_came_back(
    ranked: list[str], relevant: set[str], k: int
) -> None:
    """trec_eval's `map_cut_k` has the same sum over all that is expected."""
    run = {"q": {key: float(-rank) for rank, key in enumerate(ranked)}}
    qrels = {"q": dict.fromkeys(relevant, 1)}
    average = pytrec_eval.RelevanceEvaluator(qrels, {f"map_cut.{k}"}).evaluate(run)["q"][f"map_cut_{k}"]
    came_back = len(relevant & set(ranked[:k]))
    expected = average * len(relevant) / came_back if came_back else 0.0
    assert context_precision(ranks_of(ranked, relevant), k) == pytest.approx(expected, abs=1e-12)


def test_passages_decide_before_ids() -> None:
    asked, response = quoted(STAY, expected_chunks=["c0"]), Response(sources=texts("Other.", STAY))
    assert measure(asked, response, Rules(k=1)).scores["recall_at_k"] == 0
    assert measure(asked, response, Rules(k=2)).scores["recall_at_k"] == 1
