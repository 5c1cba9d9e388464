"""A small agent that answers from Wikipedia with two tools: a system to evaluate, and a pattern for your own.

    evaltrack run golden/wikipedia.json -t python:scripts.wikipedia_agent:ask

It asks the OpenAI-compatible server of OPENAI_BASE_URL and OPENAI_API_KEY for EVALTRACK_AGENT_MODEL (default
gpt-4o-mini). EVALTRACK_WIKIPEDIA says what it reads: a folder of Markdown pages (default: golden/corpus/wikipedia, so
that no wiki is asked), `live` (en.wikipedia.org), or the address of another wiki's api.php.
"""

from __future__ import annotations

import html
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

ROUNDS = 6  # calls of the model at most; in the last one it may call no tools but must answer
CORPUS = str(Path(__file__).parent.parent / "golden" / "corpus" / "wikipedia")
LIVE = "https://en.wikipedia.org/w/api.php"
UNKNOWN = "I do not know"
INSTRUCTIONS = f"""Answer the question from Wikipedia and from nothing else. Search first, read the pages that look
relevant, then answer in one to three sentences. If Wikipedia does not say, begin the answer with "{UNKNOWN}"."""
ARGUMENTS = {"wikipedia_search": "query", "wikipedia_page": "title"}
PURPOSES = {"wikipedia_search": "Titles of pages, each with a snippet.", "wikipedia_page": "The text of a page."}
Found = dict[str, Any]  # a source: `title`, `url`, `text`, and in a folder `chunk_id`


class Folder:
    """A folder of Markdown pages; each passage is a source."""

    def __init__(self, place: str) -> None:
        from evaltrack.golden.corpus import read_corpus
        from evaltrack.targets.bm25 import Bm25Target

        chunks = read_corpus(Path(place))
        self.index = Bm25Target(chunks, floor=0.0)  # whether a page answers the question is the model's to say
        named = [(c, f"{c.heading}\n\n{c.text}".strip()) for c in chunks]
        self.passages = [{"chunk_id": c.id, "title": c.title, "url": c.url, "text": text} for c, text in named]

    async def search(self, query: str, k: int) -> list[Found]:
        """The best passage of each of the k best pages."""
        from evaltrack.records import Question

        response = await self.index(Question(id="query", question=query, domain="wikipedia"), len(self.passages))
        best: dict[str | None, Found] = {}
        for source in response.sources or ():
            best.setdefault(source.title, source.model_dump(exclude={"score"}))
        return list(best.values())[:k]

    async def page(self, title: str) -> list[Found]:
        """The passages of a page, none where there is no such page."""
        wanted = title.replace("_", " ").strip().casefold()
        return [passage for passage in self.passages if passage["title"].casefold() == wanted]


class Wiki:
    """A MediaWiki, asked through its api.php; each page is a source, with as much of its text as was seen."""

    def __init__(self, api: str) -> None:
        self.api = api

    async def search(self, query: str, k: int) -> list[Found]:
        """The k best pages, with the words around what matched."""
        found = (await self._query(list="search", srsearch=query, srlimit=k))["search"]
        return [self._source(hit["title"], html.unescape(re.sub(r"<[^>]+>", "", hit["snippet"]))) for hit in found]

    async def page(self, title: str) -> list[Found]:
        """The first 12,000 characters of a page, none where there is no such page; redirects are followed."""
        pages = (await self._query(prop="extracts", explaintext=1, exlimit=1, redirects=1, titles=title))["pages"]
        return [self._source(page["title"], page["extract"][:12_000]) for page in pages if page.get("extract")]

    async def _query(self, **query: str | int) -> Any:
        import httpx2

        parameters = {"action": "query", "format": "json", "formatversion": 2, **query}
        headers = {"User-Agent": "evaltrack-wikipedia-agent/1.0 (an example of an agent under evaluation)"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as client:
            reply = (await client.get(self.api, params=parameters)).raise_for_status().json()
        if "query" not in reply:
            raise RuntimeError(f"{self.api} refused {query}: {reply.get('error', reply)}")
        return reply["query"]

    def _source(self, title: str, text: str) -> Found:
        return {"title": title, "url": urljoin(self.api, "/wiki/" + quote(title.replace(" ", "_"))), "text": text}


@cache
def _library(place: str) -> Folder | Wiki:
    return Wiki(LIVE if place == "live" else place) if place == "live" or "://" in place else Folder(place)


def _tool(name: str) -> Any:
    schema = {"type": "object", "properties": {ARGUMENTS[name]: {"type": "string"}}, "required": [ARGUMENTS[name]]}
    return {"type": "function", "function": {"name": name, "description": PURPOSES[name], "parameters": schema}}


async def _use(library: Folder | Wiki, name: str, text: str, k: int) -> tuple[Any, list[Found], str]:
    """The arguments of a call, what it found, and what the model is told: also its mistakes; a failing wiki raises."""
    try:
        arguments = dict(json.loads(text))
    except (ValueError, TypeError):
        arguments = {"unreadable": text}
    value = arguments.get(ARGUMENTS.get(name))
    if not isinstance(value, str) or not value.strip():
        return arguments, [], f"Error: the tools, each with its one argument, a text, are {ARGUMENTS}."
    if name == "wikipedia_search":
        found = await library.search(value, k)
        hits = [{"title": each["title"], "snippet": each["text"]} for each in found]
        return arguments, found, json.dumps(hits, ensure_ascii=False)
    found = await library.page(value)
    return arguments, found, "\n\n".join(f["text"] for f in found) or "There is no such page; search for its title."


async def ask(question: str, k: int) -> dict[str, Any]:
    """The answer, sources in the order first seen (k pages a search), tool calls, and the tokens of all rounds."""
    from openai import AsyncOpenAI  # noqa: TID251 - a user's script, not the package

    model = os.getenv("EVALTRACK_AGENT_MODEL", "gpt-4o-mini")
    library = _library(os.getenv("EVALTRACK_WIKIPEDIA", CORPUS))
    key = os.getenv("OPENAI_API_KEY") or ("none" if os.getenv("OPENAI_BASE_URL") else None)  # local servers need none
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question}]
    seen, calls, usages = dict[Any, Found](), list[Any](), list[Any]()
    async with AsyncOpenAI(api_key=key) as client:
        for turn in range(1, ROUNDS + 1):
            choice: Any = "auto" if turn < ROUNDS else "none"
            completion = await client.chat.completions.create(
                model=model, messages=messages, tools=[_tool(name) for name in ARGUMENTS], tool_choice=choice
            )
            usages.append(completion.usage)
            message: Any = completion.choices[0].message
            if not message.tool_calls or turn == ROUNDS:
                break
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                arguments, found, told = await _use(library, call.function.name, call.function.arguments, k)
                calls.append({"name": call.function.name, "arguments": arguments})
                seen |= {each.get("chunk_id", each["title"]): each for each in found}  # keeps the place first had
                messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
    if not (answer := message.content or message.refusal):
        raise RuntimeError(f"{model} gave no answer after {turn} rounds and {len(calls)} tool calls")
    parts = ("prompt_tokens", "completion_tokens")
    usage = {part: sum(getattr(each, part) for each in usages) for part in parts} if all(usages) else None
    known = {"answer": answer, "abstained": answer.lstrip().startswith(UNKNOWN)}
    return {**known, "sources": list(seen.values()), "tool_calls": calls, "usage": usage}
