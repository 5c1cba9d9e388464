"""The documents behind what got worse, with their texts on both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaltrack.compare.change import Cause
from evaltrack.compare.changed_documents import changed_documents
from tests.comparisons import FLIP, changed, comparison, flat


def test_a_document_has_its_texts_of_both_sides_and_its_questions() -> None:
    """As far as a row holds them: a source that is gone has none now, one that is new had none."""

    def texts(key: str, text: str, **other: str) -> Any:
        row = flat("a", key, *other)
        return replace(
            row, sources=tuple(replace(e, text={key: text, **other}[e.chunk_id or ""]) for e in row.sources or ())
        )

    edited = Cause("source_text_changed", "the text of `x` changed", "x", 1, 1)
    gone = Cause("source_lost", "`y` (rank 1) is no longer returned", "y", 1, None)
    flips = (
        replace(FLIP, id="1", cause=edited, before=texts("x", "old"), after=texts("x", "new")),
        replace(FLIP, id="2", cause=edited, before=texts("x", "old"), after=texts("x", "new")),
        replace(FLIP, id="3", cause=gone, before=texts("y", "kept"), after=texts("z", "other")),
        replace(FLIP, id="4", cause=Cause("answer_changed", "another")),
    )
    made = comparison(flips=flips, lost=(), drops=())
    first, second = changed_documents(made, 5)
    assert [(part.name, part.before, part.after, part.differs) for part in first.parts] == [("x", "old", "new", True)]
    assert [change.id for change in first.questions] == ["1", "2"]
    assert [(part.before, part.after) for part in second.parts] == [("kept", None)]
    assert len(changed_documents(made, 1)) == 1
    bare = changed(made, flips=(replace(flips[0], before=None, after=None),))
    assert [(part.before, part.after, part.differs) for part in changed_documents(bare, 1)[0].parts] == [
        (None, None, False)
    ]
