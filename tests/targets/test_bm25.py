"""The embedded target: its ranking, its quotations, and when it says that it does not know."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from math import log
from pathlib import Path
from unicodedata import normalize

import pytest

import evaltrack.targets.bm25
from evaltrack import run_eval
from evaltrack.api.golden_sets import lint_golden
from evaltrack.errors import UsageError
from evaltrack.golden.corpus import Chunk
from evaltrack.golden.reader import open_golden
from evaltrack.records import Question, Response
from evaltrack.targets.bm25 import DEPTH, FLOOR, NO_WORD, Bm25ByDomain, Bm25Target, open_bm25
from tests.actors import asked as ask
from tests.actors import ranked
from tests.conftest import REPO
from tests.files import data, put

GOLDEN = REPO / "golden"
K1, B = 1.5, 0.75


def index(texts: Iterable[str], floor: float = 0.0) -> Bm25Target:
    """A target over chunks `0`, `1`, ... that have no title and no heading."""
    return Bm25Target([Chunk(str(i), "", "", f"{i}.md", text) for i, text in enumerate(texts)], floor)


def write_corpus(folder: Path) -> Path:
    put(folder / "animals" / "cats.md", "# Cats\n\nThey purr softly.\n\n## Feeding\n\nFish and milk.\n")
    put(folder / "dogs.md", "# Dogs\n\nThey bark loudly at night.\n")
    return folder


# Opening


@pytest.mark.parametrize(
    ("settings", "pages", "floor"), [({}, 49, 0.0), ({}, 50, 2.5), ({"floor": "0"}, 50, 0.0), ({"floor": "1e1"}, 1, 10)]
)
def test_floor(tmp_path: Path, settings: dict[str, str], pages: int, floor: float) -> None:
    """The setting of that name, else the default, which a corpus of few chunks does not have."""
    for page in range(pages):
        (tmp_path / f"{page}.md").write_text(f"# Cats\n\nA cat {page} purrs.\n")
    opened = open_bm25(str(tmp_path), settings)
    assert isinstance(opened, Bm25Target)
    assert (opened.floor, ask(opened, "Which cat purrs?").declined) == (floor, floor > 0)
    assert FLOOR == 2.5


@pytest.mark.parametrize("text", ["# The\n\nThe of and.\n", "# !\n\n???\n"])
def test_corpus_without_words(tmp_path: Path, text: str) -> None:
    """A corpus that holds nothing but stop words and signs is refused as one that cannot be searched."""
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(UsageError, match="holds no words"):
        open_bm25(str(tmp_path), {})


def test_chunks_of_words(tmp_path: Path) -> None:
    """With `chunk=words:…` sources are parts of pages, which link to the page."""
    settings = {"chunk": "words:4:1", "floor": "0"}
    response = ask(open_bm25(str(write_corpus(tmp_path / "docs")), settings), "Who purrs, and drinks milk?")
    assert response.sources is not None
    assert [(each.chunk_id, each.title, each.url, each.text) for each in response.sources] == [
        ("animals/cats@0", "Cats", "animals/cats.md", "They purr softly.\n\nFeeding"),
        ("animals/cats@1", "Cats", "animals/cats.md", "Feeding\n\nFish and milk."),
    ]


# Ranking


def test_sources(tmp_path: Path) -> None:
    """A source has the chunk's id, its page's title and address, its heading above its text, and its score."""
    response = ask(open_bm25(str(write_corpus(tmp_path / "docs")), {"floor": "0"}), "Which fish do cats eat?")
    feeding, lead = response.sources or ()
    assert feeding.model_dump(exclude={"score"}) == {
        **{"chunk_id": "animals/cats#feeding", "title": "Cats"},
        **{"url": "animals/cats.md#feeding", "text": "Feeding\n\nFish and milk."},
    }
    assert (lead.chunk_id, lead.text) == ("animals/cats", "They purr softly.")
    assert (feeding.score or 0) > (lead.score or 0) > 0
    assert (response.abstained, response.usage, response.tool_calls) == (False, None, ())


def test_scores_are_lucenes_bm25() -> None:
    documents = [["red", "apple", "apple"], ["green", "apple"], ["red", "pear", "pear", "pear", "plum"], ["plum"]]
    terms = ["red", "apple", "plum", "apple"]
    mean_length = sum(map(len, documents)) / len(documents)

    def score(document: list[str]) -> float:
        total = 0.0
        for term in terms:
            holding = sum(term in other for other in documents)
            idf = log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            times = document.count(term)
            total += idf * times / (times + K1 * (1 - B + B * len(document) / mean_length))
        return total

    response = ask(index(map(" ".join, documents)), " ".join(terms))
    assert response.sources is not None
    found = {source.chunk_id: source.score for source in response.sources}
    assert found == pytest.approx({str(i): score(document) for i, document in enumerate(documents)}, abs=2e-6)
    assert list(found.values()) == sorted(found.values(), key=lambda value: -(value or 0))


def test_ties_keep_the_order_of_the_corpus() -> None:
    assert ranked(ask(index(["plum", "plum", "apple plum", "plum", "plum"]), "plum")) == ["0", "1", "3", "4", "2"]


@pytest.mark.parametrize(("k", "returned"), [(1, 20), (5, 20), (20, 20), (21, 21), (30, 30), (1000, 40)])
def test_depth(k: int, returned: int) -> None:
    """At least 20 sources come back, for a cause may lie below k, and as many as k where that is more."""
    assert DEPTH == 20
    assert len(ranked(ask(index(["plum"] * 40 + ["pear"] * 60), "plum", k))) == returned


@pytest.mark.parametrize(("text", "question"), data("targets.json")["words_in_other_forms"])
def test_words_match_in_other_forms(text: str, question: str) -> None:
    assert ranked(ask(index(["pear", text]), question)) == ["1"]


# Abstention


@pytest.mark.parametrize("question", ["zebra", "the of and", "?!"])
def test_nothing_in_common(question: str) -> None:
    """A question that shares no word with the corpus gets an abstention and no source, even with no floor."""
    assert ask(index(["plum", "pear"]), question) == Response(answer=NO_WORD, sources=(), abstained=True)


def test_floor_is_reached_or_not() -> None:
    texts = ["plum", "pear", "apple"]
    best = (ask(index(texts), "plum").sources or ())[0].score or 0
    assert ranked(ask(index(texts, best), "plum")) == ["0"]
    assert ask(index(texts, best + 1e-6), "plum").declined


def test_the_default_floor_is_chosen_on_other_questions_than_it_is_tested_on() -> None:
    script = runpy.run_path(str(REPO / "scripts" / "choose_floor"))
    chosen_on = {question.question for question in open_golden(GOLDEN / "calibration.jsonl")}
    assert not chosen_on & {question.question for name in script["TESTED"] for question in open_golden(GOLDEN / name)}
    assert script["choose"](asyncio.run(script["best_scores"](["calibration.jsonl"]))) == FLOOR
    tested = asyncio.run(script["best_scores"](script["TESTED"]))
    declined, (lost, caught) = "it declines", tested.declined(FLOOR)
    assert f"other negatives {declined} {caught:.0%}, on" in (told := (GOLDEN / "README.md").read_text())
    assert f"other answerable questions {lost:.0%}\n" in told
    above = sum((a > n) + (a == n) / 2 for a, n in product(tested.answerable, tested.negative))
    auc = above / (len(tested.answerable) * len(tested.negative))
    assert f"with an AUC of {auc:.2f}" in " ".join((evaltrack.targets.bm25.__doc__ or "").split())


def test_names_in_both_spellings_are_one(tmp_path: Path, store_uri: str) -> None:
    folder, key = tmp_path / "docs", "café#öffnungszeiten"
    page = normalize("NFD", "# Café\n\n## Öffnungszeiten\n\nThe café opens at nine.\n")
    put(folder / normalize("NFD", "café.md"), page)
    put(folder / "bar.md", "# Bar\n\nThe bar opens at ten.\n")
    line = f'{{"id": "é", "question": "When does the café open?", "expected_chunks": ["{key}"]}}'
    golden = put(tmp_path / "séjour.jsonl", line)
    made = run_eval(golden, target=f"bm25:{folder}", tracking_uri=store_uri, traces="off")
    assert (made.metrics["mrr"], made.rows[0]["sources"][0]["chunk_id"]) == (1, normalize("NFC", key))
    assert [each.code for each in lint_golden(golden, folder) if each.severity == "error"] == []


# Domains


def write_domains(folder: Path) -> Path:
    put(folder / "pets/page.md", "# Dogs\n\nThey bark at night.\n")
    put(folder / "plants/page.md", "# Trees\n\nThe bark is rough.\n")
    return folder


@pytest.mark.parametrize(("domain", "title"), [("pets", "Dogs"), ("plants", "Trees")])
def test_a_question_is_asked_of_the_folder_of_its_domain(tmp_path: Path, domain: str, title: str) -> None:
    settings, question = {"by": "domain", "floor": "0"}, Question(id="1", question="Why does it bark?", domain=domain)
    target = open_bm25(str(write_domains(tmp_path)), settings)
    (source,) = asyncio.run(target(question, 5)).sources or ()
    assert (source.chunk_id, source.title) == ("page", title)
    with pytest.raises(LookupError, match=r"^no corpus for the domain `food`; there are pets, plants$"):
        asyncio.run(target(question.model_copy(update={"domain": "food"}), 5))


# Quotations


@pytest.mark.parametrize(("text", "question", "answer"), data("targets.json")["quotations"])
def test_quotation(text: str, question: str, answer: str) -> None:
    """The answer quotes the sentence of the best chunk that says most of the question, and the one after it."""
    assert ask(index([text, "other", "words", "here"]), question).answer == answer


# Corpus


def test_it_says_which_pages_it_searches() -> None:
    chunks = [Chunk("a", "Fruit", "", "a.md", "plums"), Chunk("a#b", "Fruit", "B", "a.md#b", "pears")]
    words = Bm25Target(chunks).corpus
    assert words.startswith("1 page, 2 chunks, ")
    assert Bm25Target([chunks[0], replace(chunks[1], text="pear")]).corpus != words
    assert Bm25ByDomain({"x": Bm25Target(chunks[:1]), "y": Bm25Target(chunks[1:])}).corpus == words
