"""The page of a review, asked without a socket; and a real process that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from flask.testing import FlaskClient

from evaltrack.api.review_golden import GoldenReview
from evaltrack.errors import UsageError
from evaltrack.golden.corpus import read_corpus
from evaltrack.golden.reader import open_golden
from evaltrack.golden.review.expectation import Shown
from evaltrack.ui.local import open_server, serve
from evaltrack.ui.review import review_app
from tests.conftest import REPO, few_questions

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """Five questions of the travel set, two of them drafts, one hostile."""
    path = few_questions(tmp_path, 5, quoted=False)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0] |= {"draft": True}
    lines[1] |= {"draft": True, "notes": HOSTILE, "question": HOSTILE}
    lines[1] |= {"history": [{"role": "user", "content": HOSTILE}]}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def review(golden: Path) -> Iterator[GoldenReview]:
    made = GoldenReview(golden, by="Ada", k=5)
    yield made
    made.close()


@pytest.fixture
def client(review: GoldenReview) -> FlaskClient:
    client = review_app(review, "secret").test_client()
    client.environ_base["HTTP_HOST"] = "127.0.0.1:4000"
    return client


def act(client: FlaskClient, **body: Any) -> Any:
    return client.post("/secret/act", json=body)


def test_a_question_is_shown_marked_and_confirmed(client: FlaskClient, golden: Path) -> None:
    state = client.get("/secret/state?drafts=1").get_json()
    assert [(each["id"], each["state"]) for each in state["questions"]] == [("1", "draft"), ("2", "draft")]
    assert (state["name"], state["judging"], state["drafts"]) == ("travel.jsonl", False, 2)
    shown = client.get("/secret/question?id=1&next=2").get_json()
    other = next(chunk for chunk in shown["chunks"] if not chunk["is_expected"])
    marked = act(client, id="1", kind="mark", chunk=other["key"], query="visa").get_json()
    assert marked["done"]
    assert next(chunk for chunk in marked["chunks"] if chunk["key"] == other["key"])["is_expected"]
    assert marked["matches"]
    assert act(client, id="1", kind="confirm").get_json()["drafts"] == 1
    assert other["id"] in (next(iter(open_golden(golden))).expected_chunks or ())
    undone = client.post("/secret/undo", json={}).get_json()
    assert (undone["id"], undone["draft"], undone["reviewed"]) == ("1", True, "")


def test_questions_with_chunks_to_judge_are_listed_whether_drafts_or_not(golden: Path) -> None:
    review = GoldenReview(golden, by="Ada", unjudged={"3": [Shown("x", "X", "text")]})
    client = review_app(review, "secret").test_client()
    state = client.get("/secret/state?drafts=1", headers={"Host": "127.0.0.1"}).get_json()
    assert (state["judging"], [each["id"] for each in state["questions"]]) == (True, ["3"])
    review.close()


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
    hostile = client.get("/secret/question?id=2")
    assert hostile.content_type == "application/json"
    assert hostile.get_json()["notes"] == "<script>alert(1)</script>\ufffd"
    assert hostile.get_json()["history"] == ["user: <script>alert(1)</script>\ufffd"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/wrong/state", {}, 404),
        ("/", {}, 404),
        ("/sécret/state", {}, 404),
        ("/secret/state", {"Host": "evil.example:4000"}, 421),
        ("/secret/state", {"Host": "127.0.0.1.evil.example"}, 421),
        ("/secret/state", {"Host": "localhost:4000"}, 200),
        ("/secret/state", {"Host": "[::1]"}, 200),
    ],
)
def test_only_this_machine_and_this_address(
    client: FlaskClient, path: str, headers: dict[str, str], status: int
) -> None:
    """A wrong token, or a name of another site bound to this address, is refused."""
    assert client.get(path, headers=headers).status_code == status


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ({"data": {"id": "1", "kind": "confirm"}}, 403, "another site"),
        ({"data": '{"id": "1", "kind": "confirm"}', "content_type": "text/plain"}, 403, "another site"),
        ({"json": {"id": "1", "kind": "confirm"}, "headers": {"Sec-Fetch-Site": "cross-site"}}, 403, "another site"),
        ({"json": {"id": "1", "kind": "confirm"}, "headers": {"Origin": "http://evil.example"}}, 403, "another site"),
        ({"json": ["1"]}, 400, "no action"),
        ({"json": {"id": 1, "kind": "confirm"}}, 400, "no action"),
        ({"json": {"id": "1", "kind": "burn"}}, 400, "no action `burn`"),
        ({"json": {"id": "99", "kind": "confirm"}}, 410, "no question `99`"),
        ({"json": {"id": "1", "kind": "grade", "chunk": "x", "grade": "1"}}, 400, "no whole number"),
        ({"json": {"id": "1", "kind": "grade", "chunk": "x", "grade": True}}, 400, "no whole number"),
        ({"json": {"id": "1", "kind": "reword", "question": "a" * 300_000}}, 413, "exceeds"),
        ({"data": "{", "content_type": "application/json"}, 400, ""),
    ],
)
def test_what_is_no_action_of_the_page_changes_nothing(
    client: FlaskClient, golden: Path, options: dict[str, Any], status: int, words: str
) -> None:
    """A form of another site, a body that is none; the answer says why."""
    before = golden.read_bytes()
    answer = client.post("/secret/act", **options)
    assert (answer.status_code, words in answer.get_json()["error"]) == (status, True)
    assert golden.read_bytes() == before


def test_a_change_by_somebody_else_is_told(client: FlaskClient, golden: Path) -> None:
    """The action is done on the new content, or the question is shown as it is now."""
    golden.write_text(golden.read_text() + "\n")
    told = act(client, id="1", kind="confirm").get_json()
    assert (told["done"], told["reloaded"]) == (True, True)
    golden.write_text(golden.read_text().replace('"difficulty": "easy"', '"difficulty": "hard"'))
    told = act(client, id="1", kind="negate").get_json()
    assert (told["done"], told["reloaded"], "look again" in told["message"]) == (False, True, True)
    assert "hard" in told["facts"]
    golden.write_text("{")
    broken = act(client, id="1", kind="negate")
    assert (broken.status_code, "is not JSON" in broken.get_json()["error"]) == (400, True)


def test_a_port_that_is_taken_is_named(review: GoldenReview) -> None:
    """Before anything is served; a free one has an address with a token of its own."""
    make = partial(review_app, review)
    server, address = open_server(make)
    try:
        assert re.fullmatch(rf"http://127\.0\.0\.1:{server.server_port}/[\w-]{{32}}/", address)
        with pytest.raises(UsageError, match=f"nothing can listen on 127.0.0.1:{server.server_port}"):
            open_server(make, server.server_port)
    finally:
        server.server_close()


def test_the_browser_is_started_with_a_file_of_the_user_alone(review: GoldenReview) -> None:
    """Every user sees the command line of a process: the token is in the file, which goes with the server."""
    found: list[str] = []

    def ready(address: str, file: str) -> None:
        path = Path(url2pathname(urlsplit(file).path))
        assert (address in path.read_text(), path.stat().st_mode & 0o077) == (True, 0)
        found.append(file)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serve(partial(review_app, review), 0, ready)
    assert not Path(url2pathname(urlsplit(found[0]).path)).exists()


def started(golden: Path) -> tuple[subprocess.Popen[str], str]:
    """The command in a process of its own, and the address that it prints."""
    command = [sys.executable, "-m", "evaltrack", "golden", "review", str(golden), "--no-open", "--by", "Ada"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=REPO, env=dict(os.environ))
    assert process.stderr is not None
    match = re.search(r"http://\S+", process.stderr.readline())
    assert match
    return process, match[0]


def test_ctrl_c_ends_the_review(golden: Path) -> None:
    """With exit code 0, and what was done."""
    process, address = started(golden)
    body = json.dumps({"id": "1", "kind": "confirm"}).encode()
    asked = urllib.request.Request(f"{address}act", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert json.load(answer)["done"]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (0, "1 question confirmed, 1 draft left")


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
def test_a_killed_review_loses_no_mark(golden: Path, number: int, kills: int) -> None:
    """Killed while marks are made, and right after the last: what was acknowledged is in the file, which is whole."""
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


def test_a_question_that_is_gone_has_a_status_of_its_own(client: FlaskClient, golden: Path) -> None:
    golden.write_text("".join(golden.read_text().splitlines(keepends=True)[1:]))
    for answer in (
        client.get("/secret/question?id=1"),
        client.post("/secret/act", json={"id": "1", "kind": "confirm"}),
    ):
        assert answer.status_code == 410
        assert "no question `1` any more" in answer.get_json()["error"]
    assert client.get("/secret/question?id=2").status_code == 200
