from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.api.review_golden import GoldenReview, reviewer_name, unjudged_chunks
from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.reader import open_golden
from tests.files import put

PAGES = {
    "visa.md": "# Schengen visa\n\nThe lead.\n\n## Stay\n\nYou may stay 90 days in any 180 days.\n",
    "bags.md": "# Hand luggage\n\nOne bag of 7 kg is free on most flights.\n",
    "cash.md": "# Cash\n\nCarry some cash, and days of food.\n",
}
LINES: list[dict[str, Any]] = [
    {"id": 1, "question": "How many days may I stay?", "draft": True},
    {"id": 2, "question": "Which bag is free?", "expected_chunks": ["bags", "gone"]},
    {"id": 3, "question": "Is cash needed?", "expected_passages": [{"quote": "some cash"}, {"any_of": ["visa"]}]},
    {"id": 4, "question": "Who knows?", "expected_chunks": []},
]
Open = Callable[..., GoldenReview]


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus" / "travel"
    folder.mkdir(parents=True)
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return put(tmp_path / "travel.jsonl", LINES)


@pytest.fixture
def opened(golden: Path) -> Iterator[Open]:
    reviews = []

    def review(**options: Any) -> GoldenReview:
        reviews.append(GoldenReview(golden, **{"by": "Ada", **options}))
        return reviews[-1]

    yield review
    for each in reviews:
        each.close()


def recorded(folder: Path, name: str, sources: list[dict[str, Any]]) -> str:
    (folder / name).write_text(json.dumps({"id": 1, "answer": "?", "sources": sources}) + "\n")
    return f"recorded:{folder / name}"


def test_the_chunks_of_several_retrievers_come_in_turn(golden: Path, opened: Open) -> None:
    first = recorded(golden.parent, "a.jsonl", [{"chunk_id": "bags"}, {"chunk_id": "visa#stay", "title": "?"}])
    second = recorded(golden.parent, "b.jsonl", [{"title": "A page"}])
    review = opened(targets=[first, second])
    review.prefetch("1")
    viewed = review.view("1")
    assert [each.id for each in viewed.chunks] == ["", "visa#stay", "bags", "cash"]
    assert viewed.chunks[2].text == "One bag of 7 kg is free on most flights."
    assert [each.title for each in viewed.chunks][:3] == ["A page", "Schengen visa", "Hand luggage"]
    assert viewed.problems == []
    assert review.act("1", "mark", chunk="visa#stay").is_done
    assert [each.is_expected for each in review.view("1").chunks] == [False, True, False, False]


def test_a_target_that_fails_hides_nothing(golden: Path, opened: Open) -> None:
    viewed = opened(targets=[recorded(golden.parent, "a.jsonl", [])]).view("2")
    assert viewed.chunks[0].id == "bags"
    assert "recorded:" in viewed.problems[0]


def test_what_is_expected_is_shown_though_nobody_returned_it(opened: Open) -> None:
    review = opened(k=1)
    assert [(each.id, each.is_expected, bool(each.text)) for each in review.view("2").chunks] == [
        ("bags", True, True),
        ("gone", True, False),
    ]
    assert review.act("2", "unmark", chunk="gone").is_done
    assert review.session.question("2").expected_chunks == ("bags",)
    viewed = review.view("3")
    assert {each.id for each in viewed.chunks if each.is_expected} == {"cash", "visa"}
    assert [words for _, words in viewed.passages] == ["some cash", "visa"]
    assert review.act("3", "unquote", passage=viewed.passages[0][0]).is_done
    assert [words for _, words in review.view("3").passages] == ["visa"]


def test_pages_that_are_expected_by_title_are_shown(golden: Path, opened: Open) -> None:
    golden.write_text(json.dumps({"id": 1, "question": "Bags?", "expected_sources": ["schengen_visa"]}) + "\n")
    review = opened()
    assert {each.id for each in review.view("1").chunks if each.is_expected} == {"visa", "visa#stay"}
    assert review.act("1", "quote", chunk="bags", words="7 kg").is_done
    assert review.session.question("1").expected_passages[0].any_of == ("visa", "visa#stay")  # type: ignore[index]


def test_the_corpus_is_searched(opened: Open) -> None:
    review = opened(k=1)
    assert review.view("1").matches is None
    assert {each.id for each in review.view("1", "a bag of food").matches or ()} == {"bags", "cash"}
    assert [each.id for each in review.view("1", " cash ").matches or ()] == ["cash"]
    assert review.view("1", "zzz").matches == []
    assert review.act("1", "grade", chunk="cash", grade=0).is_done
    assert [each.grade for each in review.view("1", "cash").matches or ()] == [0]
    with pytest.raises(UsageError, match="`nowhere` is not in the corpus"):
        review.act("1", "mark", chunk="nowhere")


def test_all_actions_reach_the_file(golden: Path, opened: Open) -> None:
    review = opened()
    assert [each.id for each in review.questions(drafts=True)] == ["1"]
    for kind, values in [
        ("reword", {"question": "How long?", "expected_answer": "90 days"}),
        ("quote", {"chunk": "visa#stay", "words": "90 days in any 180"}),
        ("confirm", {}),
    ]:
        assert review.act("1", kind, **values).is_done
    review.act("2", "negate")
    first, second, *_ = open_golden(golden)
    assert (first.question, first.expected_answer, first.expected_chunks) == ("How long?", "90 days", ("visa#stay",))
    assert [each.quote for each in first.expected_passages or ()] == ["90 days in any 180"]
    assert first.metadata["reviewed"]["by"] == "Ada"
    assert second.negative
    assert review.questions(drafts=True) == []
    assert [each.id for each in review.questions()] == ["1", "2", "3", "4"]
    with pytest.raises(UsageError, match="no action `burn`"):
        review.act("1", "burn")


def test_chunks_of_a_target_are_the_corpus(golden: Path, opened: Open) -> None:
    review = opened(targets=[f"bm25:{golden.parent / 'corpus/travel'}?chunk=words:5"])
    assert {each.id for each in review.view("1").chunks} <= {
        f"{page}@{n}" for page in ("visa", "bags", "cash") for n in range(9)
    }


def test_words_of_a_second_chunking_are_expected_in_the_corpus(golden: Path, opened: Open) -> None:
    folder = golden.parent / "corpus" / "travel"
    cut = {"chunk_id": "visa@0", "text": "Stay You may stay 90 days in any 180 days."}
    foreign = {"chunk_id": "x@0", "title": "Elsewhere", "text": "Nobody at the gate weighs what you wear."}
    review = opened(corpus=folder, targets=[recorded(golden.parent, "a.jsonl", [cut, foreign])])
    assert review.act("1", "quote", chunk="visa@0", words="90 days in any 180").is_done
    first = next(iter(open_golden(golden, drafts=True)))
    assert first.expected_chunks == ("visa#stay",)
    assert review.act("1", "quote", chunk="x@0", words="weighs what you wear").is_done
    first = next(iter(open_golden(golden, drafts=True)))
    assert first.expected_chunks == ("visa#stay",)
    assert [each.quote for each in first.expected_passages or ()] == ["90 days in any 180", "weighs what you wear"]
    assert review.act("1", "unquote", passage=review.view("1").passages[0][0]).is_done
    first = next(iter(open_golden(golden, drafts=True)))
    assert (first.expected_chunks, len(first.expected_passages or ())) == (None, 1)


def test_ids_of_a_second_chunking_do_not_come_beside_those_of_the_first(golden: Path, opened: Open) -> None:
    review = opened(targets=[f"bm25:{golden.parent / 'corpus/travel'}?chunk=words:150"])
    chunk = next(each for each in review.view("2").chunks if "7 kg" in each.text)
    assert chunk.id.startswith("bags@")
    assert review.act("2", "quote", chunk=chunk.key, words="7 kg is free").is_done
    assert json.loads(golden.read_text().splitlines()[1])["expected_chunks"] == ["bags", "gone"]


def test_a_set_without_corpus_needs_a_target(golden: Path) -> None:
    corpus = golden.parent / "pages"
    (golden.parent / "corpus" / "travel").rename(corpus)
    with pytest.raises(UsageError, match="no corpus beside the golden set"):
        GoldenReview(golden)
    for options in ({"corpus": corpus}, {"targets": [recorded(golden.parent, "a.jsonl", [{"chunk_id": "x"}])]}):
        review = GoldenReview(golden, **options)
        assert review.view("1").chunks
        review.close()
    assert review.view("1", "bags").matches == []
    with pytest.raises(UsageError, match="unknown target"):
        GoldenReview(golden, targets=["bm25:" + str(corpus), "nonsense:"])


def test_bad_lines_are_listed(golden: Path) -> None:
    golden.write_text("{\n")
    with pytest.raises(GoldenError, match=r"travel\.jsonl:1: is not JSON"):
        GoldenReview(golden)


def test_what_a_run_left_unjudged(golden: Path, store_uri: str, opened: Open) -> None:
    golden.write_text(golden.read_text().replace('"draft": true', '"draft": false'))
    target = f"bm25:{golden.parent / 'corpus/travel'}?floor=0"
    run = run_eval(golden, target=target, k=2, tracking_uri=store_uri, traces="off")
    chunks = unjudged_chunks(golden, run.run_id, store_uri)
    assert {key: [each.id for each in found] for key, found in chunks.items()} == {"1": ["visa#stay", "cash"]}
    review = opened(unjudged=chunks)
    for key in review.ids():
        for chunk in review.view(key).chunks:
            assert not chunk.is_expected
            assert review.act(key, "grade", chunk=chunk.key, grade=0).is_done
    assert review.ids() == []
    with pytest.raises(UsageError, match="every source in the first 2 of that run is judged"):
        unjudged_chunks(golden, run.run_id, store_uri)
    assert open_golden(golden).digest != run.signature.golden_digest
    shutil.copy(golden, golden.with_name("other.jsonl"))
    with pytest.raises(UsageError, match="is of golden set `travel`"):
        unjudged_chunks(golden.with_name("other.jsonl"), run.run_id, store_uri)


def test_the_reviewer_is_whom_git_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(tmp_path / "gitconfig"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evaltrack.api.review_golden.user_name", lambda: "login")
    assert reviewer_name() == "login"
    subprocess.run(["git", "config", "--file", "gitconfig", "user.name", "Grace H"], check=True)
    assert reviewer_name() == "Grace H"
