"""One result as a tool recorded it, and how the texts and ids of what was retrieved become sources."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaltrack.golden.exchange.corpus_ids import CorpusIds
from evaltrack.golden.exchange.records import shown
from evaltrack.golden.exchange.values import is_empty, parsed

ID_LISTS = ("sources", "retrieved_context_ids", "retrieved_ids")
"""Keys of lists whose texts are ids of chunks."""

TEXT_LISTS = (
    *("retrieved_contexts", "retrieval_context", "retrievalContext"),
    *("contexts", "context", "retrieved_documents", "documents"),
)
"""Keys of lists whose texts are those of passages."""

SOURCE_KEYS: Mapping[str, Sequence[str]] = {
    "chunk_id": ("chunk_id", "chunkId", "id", "_id", "doc_id", "docid"),
    "title": ("title",),
    "url": ("url",),
    "text": ("text", "page_content", "pageContent", "content", "document"),
    "score": ("score",),
}
"""Field of a source → the keys that tools call it by in an object."""


@dataclass(frozen=True)
class Result:
    """What a tool recorded for one question.

    Attributes:
        fields: Of a response, as JSON values; a source may have a text alone.
        question: Text of the question, where the tool recorded it.
        id: Id of the question, where there is one.
        failure: Why there is no response; empty where there is one.
        variant: What tells several results of one question apart: provider and prompt, epoch, trial.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    question: str | None = None
    id: str | None = None
    failure: str = ""
    variant: Mapping[str, str] = field(default_factory=dict)


def object_in(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under a key; empty where there is none."""
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def text_or_none(value: object) -> str | None:
    """A text or number as text; None where it says nothing."""
    if is_empty(value) or isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def first_sources(*holders: Mapping[str, Any]) -> list[Any] | None:
    """The sources in the first of the objects that lists what was retrieved; None where none does.

    Where an object lists ids and texts, they belong together.

    Raises:
        ValueError: a list holds something else, or there are not as many ids as texts.
    """
    for holder in holders:
        ids, texts = _listed(holder, ID_LISTS), _listed(holder, TEXT_LISTS)
        if ids is not None or texts is not None:
            return _together(ids, texts)
    return None


def _listed(holder: Mapping[str, Any], names: Sequence[str]) -> list[Any] | None:
    name = next((each for each in names if holder.get(each) is not None and not is_empty(holder[each])), None)
    return None if name is None else sources_of(name, holder[name])


def _together(ids: list[Any] | None, texts: list[Any] | None) -> list[Any] | None:
    if ids is None or texts is None:
        return texts if ids is None else ids
    if len(ids) != len(texts):
        raise ValueError(f"lists {len(ids)} ids of sources for {len(texts)} texts; write one for each")
    return [{**text, **key} for text, key in zip(texts, ids, strict=True)]


def sources_of(name: str, value: object) -> list[Any]:
    """A list of ids, texts or objects as sources; one text is a list of one.

    Raises:
        ValueError: it is no list of these.
    """
    items = parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    items = [items] if isinstance(items, str | Mapping) else items
    if not isinstance(items, list | tuple):
        raise ValueError(f"`{name}` holds `{shown(items)}`; write a list of texts, ids or objects")  # noqa: TRY004
    return [_source(name, item) for item in items if not is_empty(item)]


def _source(name: str, item: object) -> dict[str, Any]:
    if isinstance(item, Mapping):
        meta = item.get("metadata")
        holders = [item, *([meta] if isinstance(meta, Mapping) else [])]
        found = {field: _first(holders, keys) for field, keys in SOURCE_KEYS.items()}
        return {field: value for field, value in found.items() if value is not None}
    if isinstance(item, str | int) and not isinstance(item, bool):
        return {"chunk_id": item} if name in ID_LISTS else {"text": str(item)}
    raise ValueError(f"`{name}` holds `{shown(item)}`; write a list of texts, ids or objects")


def _first(holders: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Any:
    return next((each[key] for each in holders for key in keys if not is_empty(each.get(key))), None)


def usage_of(prompt: object, completion: object) -> dict[str, int] | None:
    """Tokens, where both numbers are there and say something."""
    if isinstance(prompt, int) and isinstance(completion, int) and prompt + completion > 0:
        return {"prompt_tokens": prompt, "completion_tokens": completion}
    return None


class TextNames:
    """Names sources that have a text alone: by their ids in a corpus, else by a digest of the text.

    A digest tells texts apart and is no id that a golden set could expect.
    """

    def __init__(self, corpus: CorpusIds | None) -> None:
        self.corpus = corpus
        self.texts = self.strangers = 0

    def name(self, sources: Sequence[Any]) -> tuple[list[Any], bool]:
        """The sources with a name each, and whether one of them is a digest because there is no corpus."""
        nameless = False
        named: list[Any] = []
        for source in sources:
            if isinstance(source, Mapping) and source.get("text") and not (source.keys() & {"chunk_id", "title"}):
                key = self._key(str(source["text"]))
                nameless |= self.corpus is None
                named.append({"chunk_id": key, **source})
            else:
                named.append(source)
        return named, nameless

    def _key(self, text: str) -> str:
        self.texts += 1
        key = self.corpus.of_text(text) if self.corpus else None
        if key is None:
            self.strangers += 1
            key = f"text-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
        return key
