"""The review of a golden set: its page, asked without a socket; and a real process that is killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from flask.testing import FlaskClient

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.corpus import read_corpus
from evaltrack.golden.reader import open_golden
from evaltrack.records import Question
from evaltrack.ui.local import open_server, serve
from evaltrack.ui.review import GoldenReview, review_app
from tests.conftest import REPO, few_questions
from tests.files import data, put

HOSTILE = "<script>alert(1)</script>\u202e"
PAGES = {
    "visa.md": "# Schengen visa\n\nThe lead.\n\n## Stay\n\nYou may stay 90 days in any 180 days.\n",
    "bags.md": "# Hand luggage\n\nOne bag of 7 kg is free on most flights.\n",
    "cash.md": "# Cash\n\nCarry some cash, and days of food.\n",
}
LINES: list[dict[str, Any]] = [
    {"id": 1, "question": "How many days may I stay?", "draft": True},
    {"id": 2, "question": "Which bag is free?", "expected_chunks": ["bags", "gone"], "difficulty": "easy"},
    {"id": 3, "question": "Is cash needed?", "expected_passages": [{"quote": "some cash"}, {"any_of": ["visa"]}]},
    {"id": 4, "question": HOSTILE, "expected_chunks": [], "notes": HOSTILE},
]
LINES[3]["history"] = [{"role": "user", "content": HOSTILE}]


class Page:
    """The requests of the page: questions and actions."""

    def __init__(self, golden: Path, **options: Any) -> None:
        self.review = GoldenReview(golden, **{"by": "Ada", **options})
        self.client: FlaskClient = review_app(self.review, "secret").test_client()
        self.client.environ_base["HTTP_HOST"] = "127.0.0.1:4000"

    def listed(self, drafts: str = "") -> list[str]:
        return [each["id"] for each in self.client.get(f"/secret/state?drafts={drafts}").get_json()["questions"]]

    def view(self, key: str, query: str = "") -> dict[str, Any]:
        found: dict[str, Any] = self.client.get("/secret/question", query_string={"id": key, "query": query}).get_json()
        return found

    def act(self, key: str, kind: str, **values: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.post("/secret/act", json={"id": key, "kind": kind, **values}).get_json()
        return answer

    def ids(self, key: str, query: str = "") -> list[str]:
        """The ids of the chunks that are shown; those that a search finds where something is searched for."""
        return [each["id"] for each in self.view(key, query)["matches" if query else "chunks"]]

    def expected(self, key: str) -> set[str]:
        return {each["id"] for each in self.view(key)["chunks"] if each["is_expected"]}


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    for name, text in PAGES.items():
        put(tmp_path / "corpus/travel" / name, text)
    return put(tmp_path / "travel.jsonl", LINES)


Open = Callable[..., Page]


@pytest.fixture
def opened(golden: Path) -> Iterator[Open]:
    pages: list[Page] = []

    def open_page(**options: Any) -> Page:
        pages.append(Page(golden, **options))
        return pages[-1]

    yield open_page
    for each in pages:
        each.review.close()


@pytest.fixture
def client(opened: Open) -> FlaskClient:
    return opened().client


def question(golden: Path, key: str) -> Question:
    return next(each for each in open_golden(golden, drafts=True) if each.id == key)


def recorded(folder: Path, name: str, sources: list[dict[str, Any]]) -> str:
    return f"recorded:{put(folder / name, [{'id': 1, 'answer': '?', 'sources': sources}])}"


def test_a_question_is_shown_changed_confirmed_and_undone(golden: Path, opened: Open) -> None:
    page = opened()
    state = page.client.get("/secret/state?drafts=1").get_json()
    assert [(each["id"], each["state"]) for each in state["questions"]] == [("1", "draft")]
    assert (state["name"], state["drafts"]) == ("travel.jsonl", 1)
    assert page.client.get("/secret/question?id=1").get_json()["draft"]
    page.act("1", "reword", question="How long?", expected_answer="90 days")
    quoted = page.act("1", "quote", chunk="visa#stay", words="90 days in any 180", query="cash")
    assert (quoted["done"], quoted["matches"][0]["id"]) == (True, "cash")
    assert page.act("1", "confirm")["drafts"] == 0
    first = question(golden, "1")
    assert (first.question, first.expected_answer, first.expected_chunks) == ("How long?", "90 days", ("visa#stay",))
    assert [each.quote for each in first.expected_passages or ()] == ["90 days in any 180"]
    assert (first.draft, first.metadata["reviewed"]["by"]) == (False, "Ada")
    assert (page.listed(drafts="1"), page.listed()) == ([], ["1", "2", "3", "4"])
    undone = page.client.post("/secret/undo", json={}).get_json()
    assert (undone["id"], undone["draft"], undone["reviewed"]) == ("1", True, "")
    assert page.act("2", "negate")["negative"]
    assert question(golden, "2").negative


def test_the_chunks_of_several_retrievers_come_in_turn(golden: Path, opened: Open) -> None:
    first = recorded(golden.parent, "a.jsonl", [{"chunk_id": "bags"}, {"chunk_id": "visa#stay", "title": "?"}])
    second = recorded(golden.parent, "b.jsonl", [{"title": "A page"}])
    page = opened(targets=[first, second])
    viewed = page.view("1")
    assert [each["id"] for each in viewed["chunks"]] == ["", "visa#stay", "bags", "cash"]
    assert viewed["chunks"][2]["text"] == "One bag of 7 kg is free on most flights."
    assert [each["title"] for each in viewed["chunks"]][:3] == ["A page", "Schengen visa", "Hand luggage"]
    assert page.act("1", "mark", chunk="visa#stay")["done"]
    assert (page.expected("1"), viewed["problems"]) == ({"visa#stay"}, [])
    failed = page.view("2")
    assert (failed["chunks"][0]["id"], "recorded:" in failed["problems"][0]) == ("bags", True)


def test_what_is_expected_is_shown_though_nobody_returned_it(golden: Path, opened: Open) -> None:
    page = opened(k=1)
    shown = [(each["id"], each["is_expected"], bool(each["text"])) for each in page.view("2")["chunks"]]
    assert shown == [("bags", True, True), ("gone", True, False)]
    page.act("2", "unmark", chunk="gone")
    assert question(golden, "2").expected_chunks == ("bags",)
    passages = page.view("3")["passages"]
    assert (page.expected("3"), [each["words"] for each in passages]) == ({"cash", "visa"}, ["some cash", "visa"])
    page.act("3", "unquote", passage=passages[0]["key"])
    assert [each["words"] for each in page.view("3")["passages"]] == ["visa"]


def test_pages_that_are_expected_by_title_are_shown(golden: Path, opened: Open) -> None:
    put(golden, [{"id": 1, "question": "Bags?", "expected_sources": ["schengen_visa"]}])
    page = opened()
    assert page.expected("1") == {"visa", "visa#stay"}
    page.act("1", "quote", chunk="bags", words="7 kg")
    assert question(golden, "1").expected_passages[0].any_of == ("visa", "visa#stay")  # type: ignore[index]


def test_the_corpus_is_searched(opened: Open) -> None:
    page = opened(k=1)
    assert page.view("1")["matches"] is None
    assert (set(page.ids("1", "a bag of food")), page.ids("1", " cash ")) == ({"bags", "cash"}, ["cash"])
    assert page.ids("1", "zzz") == []
    page.act("1", "grade", chunk="cash", grade=0)
    assert [each["grade"] for each in page.view("1", "cash")["matches"]] == [0]
    assert "`nowhere` is not in the corpus" in page.act("1", "mark", chunk="nowhere")["error"]


def test_words_of_a_second_chunking_are_expected_in_the_corpus(golden: Path, opened: Open) -> None:
    folder = golden.parent / "corpus/travel"
    cut = {"chunk_id": "visa@0", "text": "Stay You may stay 90 days in any 180 days."}
    foreign = {"chunk_id": "x@0", "title": "Elsewhere", "text": "Nobody at the gate weighs what you wear."}
    page = opened(corpus=folder, targets=[recorded(golden.parent, "a.jsonl", [cut, foreign])])
    page.act("1", "quote", chunk="visa@0", words="90 days in any 180")
    page.act("1", "quote", chunk="x@0", words="weighs what you wear")
    first = question(golden, "1")
    assert first.expected_chunks == ("visa#stay",)
    assert [each.quote for each in first.expected_passages or ()] == ["90 days in any 180", "weighs what you wear"]
    page.act("1", "unquote", passage=page.view("1")["passages"][0]["key"])
    first = question(golden, "1")
    assert (first.expected_chunks, len(first.expected_passages or ())) == (None, 1)


def test_ids_of_a_second_chunking_do_not_come_beside_those_of_the_first(golden: Path, opened: Open) -> None:
    page = opened(targets=[f"bm25:{golden.parent / 'corpus/travel'}?chunk=words:150"])
    chunk = next(each for each in page.view("2")["chunks"] if "7 kg" in each["text"])
    assert chunk["id"].startswith("bags@")
    page.act("2", "quote", chunk=chunk["key"], words="7 kg is free")
    assert json.loads(golden.read_text().splitlines()[1])["expected_chunks"] == ["bags", "gone"]


def test_a_set_without_corpus_needs_a_target(golden: Path, opened: Open) -> None:
    corpus = golden.parent / "pages"
    (golden.parent / "corpus/travel").rename(corpus)
    with pytest.raises(UsageError, match="no corpus next to the golden set"):
        opened()
    assert opened(corpus=corpus).ids("1")
    page = opened(targets=[recorded(golden.parent, "a.jsonl", [{"chunk_id": "x"}])])
    assert (page.ids("1"), page.ids("1", "bags")) == (["x"], [])
    with pytest.raises(UsageError, match="unknown target"):
        opened(targets=[f"bm25:{corpus}", "nonsense:"])
    golden.write_text("{\n")
    with pytest.raises(GoldenError, match=r"travel\.jsonl:1: invalid JSON"):
        opened()


def test_the_page_is_served_under_a_strict_policy(client: FlaskClient) -> None:
    """No inline script, no other host, no frame; texts arrive as JSON."""
    page = client.get("/secret/")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Referrer-Policy"] == "no-referrer"
    for name, kind in (
        ("review.js", "text/javascript"),
        ("review.css", "text/css"),
        ("report.css", "text/css"),
        ("dom.js", "text/javascript"),
        ("colours.css", "text/css"),
    ):
        assert client.get(f"/secret/{name}").content_type == f"{kind}; charset=utf-8"
    assert client.get("/secret/other.js").status_code == 404
    hostile = client.get("/secret/question?id=4")
    assert hostile.content_type == "application/json"
    assert hostile.get_json()["notes"] == "<script>alert(1)</script>\ufffd"
    assert hostile.get_json()["history"] == ["user: <script>alert(1)</script>\ufffd"]


@pytest.mark.parametrize(("path", "headers", "status"), data("ui.json")["only_this_machine_and_this_address"])
def test_only_this_machine_and_this_address(
    client: FlaskClient, path: str, headers: dict[str, str], status: int
) -> None:
    """A wrong token, or a name of another site bound to this address, is refused."""
    assert client.get(path, headers=headers).status_code == status


@pytest.mark.parametrize(
    ("options", "status", "words"), data("ui.json")["what_is_no_action_of_the_page_changes_nothing"]
)
def test_what_is_no_action_of_the_page_changes_nothing(
    client: FlaskClient, golden: Path, options: dict[str, Any], status: int, words: str
) -> None:
    """A form of another site, a body that is none; the answer says why."""
    before = golden.read_bytes()
    answer = client.post("/secret/act", **options)
    assert (answer.status_code, words in answer.get_json()["error"]) == (status, True)
    assert golden.read_bytes() == before


def test_a_change_by_somebody_else_is_told(golden: Path, opened: Open) -> None:
    """The action is done on the new content, or the question is shown as it is now."""
    page = opened()
    golden.write_text(golden.read_text() + "\n")
    told = page.act("1", "confirm")
    assert (told["done"], told["reloaded"]) == (True, True)
    golden.write_text(golden.read_text().replace('"difficulty": "easy"', '"difficulty": "hard"'))
    told = page.act("2", "negate")
    assert (told["done"], told["reloaded"], "check it again" in told["message"]) == (False, True, True)
    assert "hard" in told["facts"]
    whole = golden.read_text()
    golden.write_text("{")
    assert "invalid JSON" in page.act("1", "negate")["error"]
    golden.write_text("".join(whole.splitlines(keepends=True)[1:]))
    for answer in (
        page.client.get("/secret/question?id=1"),
        page.client.post("/secret/act", json={"id": "1", "kind": "confirm"}),
    ):
        assert (answer.status_code, "no question `1` any more" in answer.get_json()["error"]) == (410, True)
    assert page.view("2")["id"] == "2"


def test_a_port_that_is_taken_is_named(opened: Open) -> None:
    """Before anything is served; a free one has an address with a token of its own."""
    make = partial(review_app, opened().review)
    server, address = open_server(make)
    try:
        assert re.fullmatch(rf"http://127\.0\.0\.1:{server.server_port}/[\w-]{{32}}/", address)
        with pytest.raises(UsageError, match=f"nothing can listen on 127.0.0.1:{server.server_port}"):
            open_server(make, server.server_port)
    finally:
        server.server_close()


def test_the_browser_is_started_with_a_file_of_the_user_alone(opened: Open) -> None:
    """Every user sees the command line of a process: the token is in the file, which goes with the server."""
    found: list[str] = []

    def ready(address: str, file: str) -> None:
        path = Path(url2pathname(urlsplit(file).path))
        assert (address in path.read_text(), path.stat().st_mode & 0o077) == (True, 0)
        found.append(file)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serve(partial(review_app, opened().review), 0, ready)
    assert not Path(url2pathname(urlsplit(found[0]).path)).exists()


def started(golden: Path) -> tuple[subprocess.Popen[str], str]:
    """The command in a process of its own, and the address that it prints."""
    command = [sys.executable, "-m", "evaltrack", "golden", "review", str(golden), "--no-open", "--by", "Ada"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=golden.parent)
    assert process.stderr is not None
    match = re.search(r"http://\S+", process.stderr.readline())
    assert match
    return process, match[0]


def test_ctrl_c_ends_the_review(golden: Path) -> None:
    """With exit code 0, and what is left; the corpus is that of the settings file."""
    (golden.parent / "corpus/travel").rename(golden.parent / "pages")
    put(golden.parent / "evaltrack.toml", '[golden.lint]\ncorpus = "pages"\n')
    process, address = started(golden)
    body = json.dumps({"id": "1", "kind": "confirm"}).encode()
    asked = urllib.request.Request(f"{address}act", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert json.load(answer)["done"]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (0, "no drafts left")


def mark(address: str, key: str, chunk: str) -> bool:
    """Mark a chunk over the page's own API; False where the server is gone before it says that this is done."""
    body = json.dumps({"id": key, "kind": "mark", "chunk": chunk}).encode()
    request = urllib.request.Request(f"{address}act", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bool(json.load(answer)["done"])
    except (OSError, HTTPException):
        return False


@pytest.mark.parametrize(("number", "kills"), [(12, 1), pytest.param(100, 10, marks=pytest.mark.long)])
def test_a_killed_review_loses_no_mark(tmp_path: Path, number: int, kills: int) -> None:
    """Killed while marks are made, and right after the last: what was acknowledged is in the file, which is whole."""
    golden = few_questions(tmp_path, 5, quoted=False)
    chunks = [chunk.id for chunk in read_corpus(REPO / "golden/corpus/travel")]
    marks = [(key, chunk) for chunk in chunks for key in ("3", "4", "5")][:number]
    untouched, left = [json.loads(line) for line in golden.read_text().splitlines()[:2]], list(marks)
    for kill in range(kills + 1):
        until = number - (number * (kill + 1) // (kills + 1))
        process, address = started(golden)
        try:
            while len(left) > until and mark(address, *left[0]):
                del left[0]
            if left:
                timer = Timer(0.004 * kill, process.kill)  # at another moment of a mark each time
                timer.start()
                if mark(address, *left[0]):
                    del left[0]
                timer.join()
        finally:
            process.kill()
            process.communicate()
        expected = {each.id: each.expected_chunks or () for each in open_golden(golden, drafts=True)}
        assert [(key, chunk) for key, chunk in marks[: number - len(left)] if chunk not in expected[key]] == []
    assert (len(marks), left) == (number, [])
    assert [json.loads(line) for line in golden.read_text().splitlines()[:2]] == untouched
