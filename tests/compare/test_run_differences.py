"""What differs in how two runs were made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaltrack.compare.run_differences import RunDifference, about_sources, run_differences
from evaltrack.report.comparison_words import SHOWN, difference_words
from tests.comparisons import BASELINE, CANDIDATE, MADE, comparison


def test_the_weightiest_difference_comes_first() -> None:
    """The model, then the user's params, the target and its options, then the commit; what one lacks is None there."""
    target = replace(CANDIDATE, signature=CANDIDATE.signature.model_copy(update={"target": "bm25:new", "model": "m"}))
    assert run_differences(BASELINE, target) == (
        RunDifference("model", None, "m"),
        RunDifference("chunk_size", None, "600", own=True),
        RunDifference("target", "bm25:docs", "bm25:new"),
        RunDifference("target.floor", "0", "3"),
        RunDifference("commit", "1a2b3c4d5e6f (main)", "9f8e7d6c5b4a (main)"),
    )


def test_files_of_recorded_answers_come_last() -> None:
    """Their names differ whatever was done; prompts come next to the model, packages before corpus and commit."""
    settings = {"param.prompt": "v", "corpus": "c", "packages": "a 1.0", "commit": "c", "k": "k"}
    names = ("model", "prompt", "k", "package a", "corpus", "commit", "target")
    sides = []
    for number in "12":
        signature = CANDIDATE.signature.model_copy(update={"target": f"recorded:{number}.jsonl", "model": number})
        own = {name: f"{value}{number}" for name, value in settings.items()} | {"packages": f"a {number}.0"}
        sides.append(replace(CANDIDATE, signature=signature, settings=own))
    assert tuple(each.name for each in run_differences(*sides)) == names


@pytest.mark.parametrize("placeholder", ["recorded", "not stated"])
def test_a_run_that_names_no_model_has_no_other_one(placeholder: str) -> None:
    unnamed, named = (
        replace(BASELINE, signature=BASELINE.signature.model_copy(update={"model": model}))
        for model in (placeholder, "gpt-4o")
    )
    assert run_differences(unnamed, named) == run_differences(named, unnamed) == ()


def test_a_run_that_does_not_say() -> None:
    """Of a saved run of before target and model alone are held side by side."""
    assert run_differences(replace(BASELINE, settings={}), CANDIDATE) == ()
    assert difference_words(replace(comparison(), baseline=replace(BASELINE, settings={}))) == ""


def test_packages_come_each_by_itself() -> None:
    """Those that differ alone, and where both runs say which there are."""
    was = replace(BASELINE, settings=MADE | {"packages": "a 1.0, b 1.0, c 1.0"})
    now = replace(BASELINE, settings=MADE | {"packages": "a 1.0, b 2.0, d 1.0", "target.zoo": "1"})
    assert run_differences(was, now) == (
        RunDifference("target.zoo", None, "1"),
        RunDifference("package b", "1.0", "2.0"),
        RunDifference("package c", "1.0", None),
        RunDifference("package d", None, "1.0"),
    )
    assert difference_words(replace(comparison(), baseline=was, candidate=now)).endswith("package d (none) to 1.0")
    assert run_differences(replace(was, settings=MADE), replace(was, settings=MADE | {"packages": "a 1.0"})) == ()


def test_the_corpus_is_held_side_by_side_where_both_say_it() -> None:
    was = replace(BASELINE, settings=MADE | {"corpus": "19 pages, 87 chunks, aaaaaaaa"})
    now = replace(BASELINE, settings=MADE | {"corpus": "18 pages, 80 chunks, bbbbbbbb"})
    (difference,) = run_differences(was, now)
    assert (difference.name, difference.candidate) == ("corpus", "18 pages, 80 chunks, bbbbbbbb")
    assert run_differences(replace(was, settings=MADE), now) == ()


@pytest.mark.parametrize(
    ("was", "now", "differs", "changed"),
    [
        ("1a2b (main)", "9f8e (main)", True, True),
        ("1a2b (main)", "1a2b", False, False),  # no branch was checked out
        ("1a2b (main)", "1a2b (feature)", False, False),
        ("1a2b (main)", "1a2b (main, uncommitted changes)", True, False),
        (None, "9f8e (main)", False, False),
    ],
)
def test_the_commit_changed_where_there_are_two(was: str | None, now: str, differs: bool, changed: bool) -> None:
    commits = [{} if commit is None else {"commit": commit} for commit in (was, now)]
    sides = (replace(BASELINE, settings={"k": "3", **own}) for own in commits)
    found = run_differences(*sides)
    assert [each.name for each in found] == ["commit"] * differs
    assert [about_sources(each) for each in found] == [changed] * differs


def test_a_digest_that_differs_is_a_difference() -> None:
    """That of the questions, and of the judge's prompt; not where a run does not state it."""
    signature = BASELINE.signature.model_copy(update={"golden_digest": "4567", "judge_prompt": "a1"})
    other = replace(BASELINE, signature=signature)
    again = replace(BASELINE, signature=signature.model_copy(update={"judge_prompt": "b2"}))
    assert [each.name for each in run_differences(BASELINE, other)] == ["golden set"]
    assert [each.name for each in run_differences(other, again)] == ["judge prompt"]
    words = difference_words(replace(comparison(), baseline=BASELINE, candidate=other))
    assert words == "different golden set"


def test_the_words() -> None:
    """Nothing is said to differ only where both runs say how they were made; uncommitted changes may differ."""
    same = replace(comparison(), candidate=BASELINE)
    assert difference_words(same) == "nothing recorded"
    recorded = replace(BASELINE, signature=BASELINE.signature.model_copy(update={"target": "recorded:a.jsonl"}))
    of_files = difference_words(replace(same, baseline=recorded, candidate=recorded))
    assert of_files == f"{difference_words(same)}; of the responses, the runs record only the file name"
    dirty = replace(BASELINE, settings=MADE | {"commit": "1a2b3c4d5e6f (main, uncommitted changes)"})
    words = difference_words(replace(comparison(), baseline=dirty, candidate=dirty))
    assert words == "perhaps the code: both have uncommitted changes on top of 1a2b3c4d5e6f"
    many = replace(BASELINE, settings=dict(MADE) | {f"param.p{n:02}": "" for n in range(SHOWN + 2)})
    assert difference_words(replace(same, candidate=many)).endswith("p11 (none) to (empty); 3 more")


def test_the_files_of_recorded_responses_are_not_named_as_a_change_of_the_target() -> None:
    """Other recordings say nothing of what gave them; a recording of what was asked before does."""
    targets = ("recorded:before.jsonl", "recorded:after.jsonl", "python:app:ask")
    was, *others = (
        replace(CANDIDATE, settings={}, signature=CANDIDATE.signature.model_copy(update={"target": target}))
        for target in targets
    )
    words = [difference_words(replace(comparison(), baseline=was, candidate=each)) for each in others]
    assert words == ["different recorded responses", "target recorded:before.jsonl to python:app:ask"]


def test_the_content_of_recorded_files_tells_them_apart() -> None:
    was, same, other = (
        replace(
            CANDIDATE,
            settings=MADE | {"recorded responses": responses, "recorded verdicts": "cccccccccccc"},
            signature=CANDIDATE.signature.model_copy(update={"target": f"recorded:{name}.jsonl"}),
        )
        for name, responses in (("before", "aaaaaaaaaaaa"), ("after", "aaaaaaaaaaaa"), ("before", "bbbbbbbbbbbb"))
    )
    judged = replace(other, settings={**other.settings, "recorded verdicts": "dddddddddddd"})
    words = [difference_words(replace(comparison(), baseline=was, candidate=each)) for each in (same, other, judged)]
    assert words == [
        "nothing recorded",
        "different recorded responses",
        "different recorded responses; different recorded verdicts",
    ]
    silent = replace(was, settings=MADE)
    assert [each.name for each in run_differences(silent, other)] == []
