"""Names for sources that have a text alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.golden.corpus.passages import CorpusIds
from evaltrack.records import Question


class TextNames:
    """Names sources that have a text alone: by their ids in a corpus, else by a digest of the text.

    A digest tells texts apart and is no id that a golden set could expect.
    """

    def __init__(self, corpus: CorpusIds | None = None) -> None:
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


def expects_ids(question: Question) -> bool:
    """Whether something that an answerable question expects is told by its id or title alone."""
    passages = question.expected_passages
    return bool(question.expected) and (passages is None or not all(passage.quote for passage in passages))


def corpus_ids(place: str, what: str) -> CorpusIds:
    """The ids of the passages in a folder or file.

    Raises:
        UsageError: it is not there.
    """
    path = Path(place)
    if not path.exists():
        raise UsageError(f"{what}: corpus {path}: there is no such folder or file")
    return CorpusIds(path)
