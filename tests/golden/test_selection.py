"""Selections of questions: filters, failed questions and samples, applied as a golden set streams by."""

from __future__ import annotations

import random
import re
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.golden.selection import FailedQuestions, Selection, filter_words, parse_filters, sample
from tests.files import data, put

SIX: list[dict[str, Any]] = [
    {"id": "1", "domain": "travel", "difficulty": "easy", "category": "usage", "metadata": {"year": 2024}},
    {"id": "2", "domain": "travel", "difficulty": "hard", "category": "a, b", "metadata": {"tags": ["x", "y"]}},
    {"id": "3", "domain": "travel", "difficulty": "hard", "metadata": {"year": 2025, "ok": True}},
    {"id": "4", "domain": "food", "difficulty": "hard", "metadata": {"tags": []}},
    {"id": "5", "domain": "food", "metadata": {"year": None, "deep": {"a": 1}}},
    {"id": "6", "domain": "food", "difficulty": "easy", "expected_chunks": []},
]


def write(folder: Path, questions: list[dict[str, Any]] = SIX, name: str = "six.jsonl") -> Path:
    return put(folder / name, [{"question": "Why?", "expected_chunks": ["a"], **each} for each in questions])


def selected(folder: Path, *filters: str, **others: Any) -> GoldenSet:
    """The set with what these filters take."""
    return open_golden(write(folder), Selection(parse_filters(filters), **others))


def ids(golden: GoldenSet) -> str:
    return "".join(question.id for question in golden)


# Filters


@pytest.mark.parametrize(("filters", "expected"), data("golden.json")["filters"])
def test_a_filter_takes_the_questions_that_meet_it(tmp_path: Path, filters: list[str], expected: str) -> None:
    assert ids(selected(tmp_path, *filters)) == expected


@pytest.mark.parametrize(("text", "message"), data("golden.json")["bad_filters"])
def test_a_filter_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filters([text])
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"`filter={text}`: ")


def test_a_filter_is_shown_as_it_is_written() -> None:
    texts = ["domain = travel,difficulty!=hard", "id=a=b", "id=a=b"]
    assert filter_words(parse_filters(texts)) == "domain=travel,difficulty!=hard or id=a=b"
    words = Selection(parse_filters(["id=" + "x" * 5000])).words()
    assert (len(words), words[-1]) == (300, "…")


# Failed questions and samples


def test_filter_failed_questions_and_sample_combine(tmp_path: Path) -> None:
    failed = FailedQuestions("0123456789abcdef", frozenset("246") | {"gone"})
    assert ids(selected(tmp_path, failed=failed)) == "246"
    assert ids(selected(tmp_path, "difficulty=hard", failed=failed)) == "24"
    one = selected(tmp_path, "difficulty=hard", failed=failed, sample=1, seed=7)
    assert ids(one) in "24"
    assert one.part is not None
    by = "difficulty=hard; not passed in run 01234567; sample 1, seed 7"
    assert one.part.words == f"1 of 6 questions ({by})"


def test_a_sample_does_not_depend_on_the_order_of_the_lines(tmp_path: Path) -> None:
    many = [{"id": f"q{n}"} for n in range(200)]
    shuffled = random.Random(1).sample(many, len(many))
    first, again = (
        {q.id for q in open_golden(write(tmp_path, lines, f"{place}.jsonl"), Selection(sample=20))}
        for place, lines in enumerate((many, shuffled))
    )
    assert (len(first), again) == (20, first)


def test_samples_are_fair_and_a_larger_one_holds_a_smaller() -> None:
    ids = [f"q{n}" for n in range(200)]
    times = Counter(key for seed in range(200) for key in sample(ids, 20, seed))
    assert (times.total(), len(times)) == (4000, 200)
    assert min(times.values()) >= 3
    assert max(times.values()) <= 45  # 20 expected, 4.2 standard deviation
    assert sample(ids, 5, 3) < sample(ids, 50, 3)


# The set of the selected questions


def test_length_stats_and_digest_are_of_the_selected_questions(tmp_path: Path) -> None:
    whole, part = open_golden(write(tmp_path)), selected(tmp_path, "domain=food")
    alone = open_golden(write(tmp_path, SIX[3:], "food.jsonl"))
    assert (len(part), part.stats, part.digest) == (3, alone.stats, alone.digest)
    assert part.stats.negatives == 1
    assert part.part is not None
    assert (part.part.total, part.part.whole_digest) == (6, whole.digest)


@pytest.mark.parametrize(
    "others", [{"sample": 6}, {"sample": 1000}, {"failed": FailedQuestions("r", frozenset("123456"))}]
)
def test_a_selection_that_takes_everything_is_the_whole_set(tmp_path: Path, others: dict[str, Any]) -> None:
    golden = selected(tmp_path, **others)
    assert (golden.part, golden, ids(golden)) == (None, open_golden(golden.path), "123456")


def test_what_is_not_selected_is_checked_too(tmp_path: Path) -> None:
    golden = selected(tmp_path, "domain=travel")
    write(tmp_path, [*SIX[:5], {"id": "other", "domain": "food"}])
    with pytest.raises(GoldenError, match="changed while it was read"):
        list(golden)
    path = write(tmp_path, [*SIX, {"id": "7", "difficulty": "x"}, {"id": "1"}])
    with pytest.raises(GoldenError) as caught:
        open_golden(path, Selection(parse_filters(["id=2"])))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(("filters", "failed", "message"), data("golden.json")["empty_selections"])
def test_an_empty_selection_says_what_is_empty(
    tmp_path: Path, filters: list[str], failed: list[str] | None, message: str
) -> None:
    of_a_run = None if failed is None else FailedQuestions("r1", frozenset(failed))
    with pytest.raises(GoldenError, match=re.escape(message)) as caught:
        selected(tmp_path, *filters, failed=of_a_run)
    assert caught.value.exit_code == 2


def test_a_large_set_needs_no_more_memory_than_a_small_one(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    path.write_text("".join(f'{{"id": {n}, "question": "{"x" * 2500}"}}\n' for n in range(4_000)))
    selection = Selection(parse_filters(["id!=3"]), sample=10)
    tracemalloc.start()
    golden = open_golden(path, selection)
    assert sum(1 for _ in golden) == len(golden) == 10
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000  # the file has 10 MB, of which ids stay
