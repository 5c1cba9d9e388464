"""The objects of LangChain, LlamaIndex, Haystack and OpenAI's client, made by these libraries themselves."""

from __future__ import annotations

import os
from typing import Any

import pytest

from evaltrack.records import Response, Source, ToolCall, Usage
from evaltrack.targets.failures import InvalidResponseError
from evaltrack.targets.responses import as_response

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")


def test_a_langchain_retriever() -> None:
    """Documents, with and without a score beside them; the id of the metadata is before the library's own."""
    documents = pytest.importorskip("langchain_core.documents")
    chunk, page = (
        {"chunk_id": "visa#length", "source": "visa.md"},
        {"source": "fees.md", "url": "https://example.com/fees"},
    )
    passports = documents.Document("Passports.", id="passport#1", metadata={"title": "Passports"})
    stay = documents.Document("Ninety days.", id="9f", metadata=chunk)
    read = as_response([stay, (passports, 0.25), documents.Document("Fees.", metadata=page)])
    assert read.sources == (
        Source(chunk_id="visa#length", title="visa.md", text="Ninety days."),
        Source(chunk_id="passport#1", title="Passports", text="Passports.", score=0.25),
        Source(title="fees.md", url="https://example.com/fees", text="Fees."),
    )


def test_documents_that_came_as_json() -> None:
    documents = [
        {"id": None, "metadata": {"source": "visa.md", "score": 0.5}, "page_content": "Ninety days."},
        {"id": "d2", "content": "Fees.", "meta": {}, "score": 0.25, "embedding": None},
    ]
    sources = (Source(title="visa.md", text="Ninety days.", score=0.5), Source(chunk_id="d2", text="Fees.", score=0.25))
    for name in ("sources", "source_documents", "contexts"):
        assert as_response({"answer": "90", name: documents}) == Response(answer="90", sources=sources)


def test_messages_of_langchain() -> None:
    """A single message, and the state of a graph: tools and tokens of all of its model's messages of the last turn."""
    messages = pytest.importorskip("langchain_core.messages")
    usage = {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34, "input_token_details": {"cache_read": 10}}
    call = {"name": "search", "args": {"q": "visa"}, "id": "1"}
    asking = messages.AIMessage("", tool_calls=[call], usage_metadata=usage)
    answer = messages.AIMessage("Ninety.", usage_metadata=usage, response_metadata={"model_name": "gpt-x"})
    before = [messages.HumanMessage("Hello"), messages.AIMessage("Hello!", usage_metadata=usage)]
    found = messages.ToolMessage("90", tool_call_id="1")
    one = Usage(prompt_tokens=30, completion_tokens=4, cached_tokens=10)
    assert as_response(answer) == Response(answer="Ninety.", usage=one, model="gpt-x")
    state = {"messages": [*before, messages.HumanMessage("How long?"), asking, found, answer]}
    assert as_response(state) == Response(
        answer="Ninety.", tool_calls=(ToolCall(name="search", arguments={"q": "visa"}),), usage=one + one, model="gpt-x"
    )


def test_a_llama_index_query_engine() -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    responses = pytest.importorskip("llama_index.core.base.response.schema")
    node = schema.TextNode(text="Ninety days.", id_="n1", metadata={"file_name": "visa.md"})
    scored = schema.NodeWithScore(node=node, score=0.5)
    source = Source(chunk_id="n1", title="visa.md", text="Ninety days.", score=0.5)
    assert as_response([scored]).sources == (source,)
    answer = responses.Response(response="Ninety.", source_nodes=[scored])
    assert as_response(answer) == Response(answer="Ninety.", sources=(source,))


def test_a_haystack_pipeline() -> None:
    """What a real pipeline with a BM25 retriever returns, and answers with their documents."""
    haystack = pytest.importorskip("haystack")
    from haystack.components.builders import AnswerBuilder
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    texts = {"d1": ("Stay ninety days.", {"title": "Visa"}), "d2": ("Bring a passport.", {"chunk_id": "passport"})}
    documents = [haystack.Document(id=key, content=text, meta=meta) for key, (text, meta) in texts.items()]
    store.write_documents(documents)
    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    read = as_response(pipeline.run({"retriever": {"query": "passport"}}))
    assert read.sources is not None
    assert (read.sources[0].chunk_id, read.sources[0].text) == ("passport", "Bring a passport.")
    assert read.sources[0].score
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    reply = ChatMessage.from_assistant("Ninety.", meta={"usage": usage, "model": "gpt-x"})
    assert as_response({"llm": {"replies": [reply]}}) == Response(answer="Ninety.", usage=Usage(**usage), model="gpt-x")
    built = AnswerBuilder().run(query="How long?", replies=[reply], documents=store.filter_documents())
    answer = as_response({"builder": built})
    assert (answer.answer, answer.model) == ("Ninety.", "gpt-x")
    assert {source.chunk_id for source in answer.sources or ()} == {"d1", "passport"}


def test_objects_of_openais_client() -> None:
    from openai.types import responses
    from openai.types.chat import ChatCompletion

    completion = ChatCompletion.model_validate(
        {
            **{"id": "c", "created": 1, "model": "gpt-x", "object": "chat.completion"},
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Ninety."}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }
    )
    usage = Usage(prompt_tokens=3, completion_tokens=2)
    assert as_response(completion) == Response(answer="Ninety.", usage=usage, model="gpt-x")
    found = {"file_id": "f1", "filename": "visa.md", "score": 0.5, "text": "Ninety days."}
    search = {"id": "1", "type": "file_search_call", "status": "completed", "queries": ["stay"], "results": [found]}
    text: dict[str, Any] = {"type": "output_text", "text": "Ninety.", "annotations": []}
    response = responses.Response.model_validate(
        {
            **{"id": "r", "created_at": 1, "model": "gpt-x", "object": "response"},
            **{"parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
            "output": [
                search,
                {"type": "function_call", "call_id": "2", "name": "now", "arguments": '{"zone": "UTC"}'},
                {"id": "3", "type": "message", "role": "assistant", "status": "completed", "content": [text]},
            ],
            "usage": {
                **{"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
                "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }
    )
    assert as_response(response) == Response(
        answer="Ninety.",
        sources=(Source(chunk_id="f1", title="visa.md", text="Ninety days.", score=0.5),),
        tool_calls=(ToolCall(name="now", arguments={"zone": "UTC"}),),
        usage=Usage(prompt_tokens=3, completion_tokens=2, cached_tokens=1, reasoning_tokens=0),
        model="gpt-x",
    )


def test_a_class_that_only_looks_like_one_is_none() -> None:
    class Document:
        page_content, metadata, id = "text", dict[str, str](), "1"

    with pytest.raises(InvalidResponseError, match=r"^is Document; return an answer"):
        as_response(Document())
