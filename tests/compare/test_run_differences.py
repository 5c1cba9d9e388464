"""What differs in how two runs were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from evaltrack.compare.run_differences import RunDifference, about_answers, about_sources, run_differences
from evaltrack.records.run import Run, System
from evaltrack.report.templates import say
from tests.comparisons import BASELINE, CANDIDATE, MADE, comparison


def made(settings: Mapping[str, str] = MADE, **signature: Any) -> Run:
    return replace(BASELINE, settings=settings, signature=BASELINE.signature.model_copy(update=signature))


def words(was: Run, now: Run) -> str:
    return say.differs(replace(comparison(), baseline=was, candidate=now))


def test_the_most_important_difference_is_first() -> None:
    target = replace(CANDIDATE, signature=CANDIDATE.signature.model_copy(update={"target": "bm25:new", "model": "m"}))
    assert run_differences(BASELINE, target) == (
        RunDifference("model", None, "m"),
        RunDifference("chunk_size", None, "600", own=True),
        RunDifference("target", "bm25:docs", "bm25:new"),
        RunDifference("target.floor", "0", "3"),
        RunDifference("commit", "1a2b3c4d5e6f (main)", "9f8e7d6c5b4a (main)"),
    )
    settings = {"param.prompt": "v", "corpus": "c", "commit": "c", "k": "k"}
    recorded = [
        made(
            {name: f"{value}{n}" for name, value in settings.items()} | {"packages": f"a {n}.0"},
            target=f"recorded:{n}.jsonl",
            model=n,
        )
        for n in "12"
    ]
    found = run_differences(*recorded)
    names = ["model", "prompt", "k", "package a", "corpus", "commit", "target"]
    assert [each.name for each in found] == names
    assert [each.name for each in found if about_answers(each)] == names[:2]


COMMIT = "1a2b3c4d5e6f"
DIGEST = {"target": "recorded:before.jsonl"}
FILES = {"recorded responses": "aaaa", "recorded verdicts": "cccc"}


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (made(model="recorded"), made(model="gpt-4o"), "nothing recorded"),
        (made(model="gpt-4o"), made(model="not stated"), "nothing recorded"),
        (made({}), CANDIDATE, ""),
        (made({**MADE, "corpus": "19 pages"}), made({**MADE, "corpus": "18 pages"}), "corpus: 19 pages → 18 pages"),
        (made(), made({**MADE, "corpus": "18 pages"}), "nothing recorded"),
        (made(), made({**MADE, "packages": "a 1.0"}), "nothing recorded"),
        (
            made({**MADE, "packages": "a 1.0, b 1.0, c 1.0"}),
            made({**MADE, "packages": "a 1.0, b 2.0, d 1.0", "target.zoo": "1"}),
            "target.zoo: (none) → 1; package b: 1.0 → 2.0; package c: 1.0 → (none); package d: (none) → 1.0",
        ),
        (made(), made(golden_digest="4567", judge_prompt="a1"), "different golden set"),
        (made(judge_prompt="a1"), made(judge_prompt="b2"), "different judge prompt"),
        (made(), made(), "nothing recorded"),
        (
            replace(made(), system=System(files={"app.py": "a1", "b.py": "b1", "gone.py": "c1"})),
            replace(made(), system=System(files={"app.py": "a2", "b.py": "b1"})),
            "different file app.py",
        ),
        (
            made(target="recorded:a.jsonl"),
            made(target="recorded:a.jsonl"),
            "nothing recorded; of the responses, the runs record only the file name",
        ),
        (
            *[made({"commit": f"{COMMIT} (main, uncommitted changes)"})] * 2,
            f"perhaps the code: both have uncommitted changes on top of {COMMIT}",
        ),
        (made({}, target="recorded:a.jsonl"), made({}, target="recorded:b.jsonl"), "different recorded responses"),
        (made({}, target="recorded:a"), made({}, target="python:b:ask"), "target: recorded:a → python:b:ask"),
        (made(MADE | FILES, **DIGEST), made(MADE | FILES, target="recorded:after.jsonl"), "nothing recorded"),
        (
            made(MADE | FILES, **DIGEST),
            made(MADE | {"recorded responses": "bbbb", "recorded verdicts": "dddd"}, **DIGEST),
            "different recorded responses; different recorded verdicts",
        ),
        (made(**DIGEST), made(MADE | FILES, **DIGEST), ""),
    ],
)
def test_what_differs_is_said_where_both_runs_state_it(was: Run, now: Run, expected: str) -> None:
    if expected:
        assert words(was, now) == expected
    else:
        assert run_differences(was, now) == ()


def test_the_first_of_many_differences_are_said() -> None:
    many = made(dict(MADE) | {f"param.p{n:02}": "" for n in range(14)})
    assert words(made(), many).endswith("p11: (none) → (empty); 2 more")


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
    found = run_differences(*(made({"k": "3"} | ({"commit": each} if each else {})) for each in (was, now)))
    assert [each.name for each in found] == ["commit"] * differs
    assert [about_sources(each) for each in found] == [changed] * differs
