from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from evaltrack.golden.corpus import read_corpus
from evaltrack.records import Question, Response
from evaltrack.targets import open_target

from .conftest import REPO, Serve
from .files import data
from .openai_behaviours import Reply, Usage
from .openai_server import OpenAIServer
from .targets import test_http

TARGET = "python:scripts.wikipedia_agent:ask"
QUESTION = Question(id="1", question="What happened when a store offered 24 flavors of jam?", domain="wikipedia")

SEARCH = Reply(tool_calls=(("wikipedia_search", {"query": "too many choices of jam"}),), usage=Usage(100, 10))
PAGE = Reply(tool_calls=(("wikipedia_page", {"title": "Overchoice"}),), usage=Usage(400, 12))
ANSWER = Reply("Fewer bought.", usage=Usage(900, 30, cached=300, reasoning=8))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def ask(k: int = 3, question: Question = QUESTION) -> Response:
    async def asked() -> Response:
        return await open_target(TARGET, {"in_process": "true"})(question, k)

    return asyncio.run(asked())


def told(server: OpenAIServer, call: int) -> str:
    return str(server.bodies[call]["messages"][-1]["content"])


def titles(response: Response) -> list[str | None]:
    return [source.title for source in response.sources or ()]


def test_search_then_page_then_answer(serve: Serve) -> None:
    server = serve(SEARCH, PAGE, ANSWER)
    response = ask(k=3)
    assert response.answer == "Fewer bought."
    assert not response.abstained
    assert [(call.name, call.arguments) for call in response.tool_calls] == [
        ("wikipedia_search", {"query": "too many choices of jam"}),
        ("wikipedia_page", {"title": "Overchoice"}),
    ]
    assert response.usage is not None
    assert (response.usage.prompt_tokens, response.usage.completion_tokens) == (1400, 52)

    hits = json.loads(told(server, 1))
    chunks = {chunk.id: chunk for chunk in read_corpus(REPO / "golden/corpus/wikipedia")}
    page = [chunk.id for chunk in chunks.values() if chunk.title == "Overchoice"]
    assert response.sources is not None
    found = [str(source.chunk_id) for source in response.sources]
    assert [hit["title"] for hit in hits] == titles(response)[:3]
    assert hits[0]["title"] == "Overchoice"
    assert len(set(titles(response)[:3])) == 3
    assert found[3:] == [chunk for chunk in page if chunk != found[0]]
    for source in response.sources:
        chunk = chunks[str(source.chunk_id)]
        assert (source.title, source.url) == (chunk.title, chunk.url)
        assert source.text == (f"{chunk.heading}\n\n" if chunk.heading else "") + chunk.text
    assert all(chunks[chunk].text in told(server, 2) for chunk in page)


@pytest.mark.parametrize(("name", "arguments", "recorded", "message"), data("llm.json")["mistakes_with_tools"])
def test_mistakes_of_the_model(serve: Serve, name: str, arguments: Any, recorded: Any, message: str) -> None:
    server = serve(Reply(tool_calls=((name, arguments),)), ANSWER)
    response = ask()
    assert told(server, 1).startswith(message)
    assert [(call.name, call.arguments) for call in response.tool_calls] == [(name, recorded)]
    assert (response.answer, response.sources) == ("Fewer bought.", ())


def test_does_not_know(serve: Serve) -> None:
    serve(SEARCH, Reply("I do not know: Wikipedia does not say."))
    response = ask()
    assert response.abstained
    assert response.declined
    assert len(titles(response)) == 3


wiki = test_http.server
"""Answers as MediaWiki's api.php does."""

HITS = [
    {"title": "Overchoice", "snippet": 'Sales of <span class="searchmatch">jam</span> &amp; more'},
    {"title": "Fruit preserves", "snippet": '<span class="searchmatch">Jam</span> is a spread'},
]


def test_live(serve: Serve, wiki: test_http.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    extract = "Overchoice, or choice overload. " * 1000
    replies = [{"search": HITS}, {"pages": [{"title": "Overchoice", "extract": extract}]}]
    model, origin = serve(SEARCH, PAGE, ANSWER), wiki.url
    wiki.answer = lambda handler: handler.reply({"query": replies[len(wiki.requests) - 1]})
    monkeypatch.setenv("EVALTRACK_WIKIPEDIA", f"{origin}/w/api.php")
    response = ask(k=2)
    assert [(s.title, s.url, s.text, s.chunk_id) for s in response.sources or ()] == [
        ("Overchoice", f"{origin}/wiki/Overchoice", extract[:12_000], None),
        ("Fruit preserves", f"{origin}/wiki/Fruit_preserves", "Jam is a spread", None),
    ]
    assert json.loads(told(model, 1))[0] == {"title": "Overchoice", "snippet": "Sales of jam & more"}
    assert told(model, 2) == extract[:12_000]
    search, page = asked = [dict(parse_qsl(urlsplit(each.path).query)) for each in wiki.requests]
    assert (search["list"], search["srsearch"], search["srlimit"]) == ("search", "too many choices of jam", "2")
    assert (page["prop"], page["titles"], page["redirects"]) == ("extracts", "Overchoice", "1")
    assert all(each["action"] == "query" and each["formatversion"] == "2" for each in asked)
    assert all(each.headers["User-Agent"].startswith("evaltrack-wikipedia-agent") for each in wiki.requests)
