"""Questions that fit into one page: what is left of those for which there is no room."""

from __future__ import annotations

import json
from typing import Any

from evaltrack.report.html.page import script_safe
from evaltrack.report.html.questions import ANSWER, SLIM, WHOLE, fitted

QUESTION: dict[str, Any] = {
    "id": "1",
    "group": "flip",
    "wanted": "w" * 500,
    "scores": [["Recall@5", "1.000", "0.500", "−0.500", "bad"]],
    "sides": [{"answer": "a" * 500, "sources": None, "verdicts": [{"judge": "j", "said": "so"}], "trials": [1, 3]}],
}


def test_what_comes_behind_the_first_megabytes_is_slim_and_then_bare() -> None:
    """A slim question has the beginning of its texts, neither judges nor scores; a bare one says what became of it."""
    filler = {"id": "0", "detail": "x" * WHOLE}
    _, slim = map(json.loads, fitted(map(script_safe, [filler, QUESTION])))
    assert slim["wanted"] == "w" * ANSWER
    assert slim["sides"] == [{"answer": "a" * ANSWER, "error": "", "sources": None, "trace": None}]
    assert "scores" not in slim
    _, long, bare = map(json.loads, fitted(map(script_safe, [{"id": "0", "cause": "x" * SLIM}, filler, QUESTION])))
    assert long == {"id": "0", "detail": "x" * ANSWER}
    assert bare == {"id": "1", "group": "flip"}


def test_what_has_room_stays_as_it_is() -> None:
    assert [json.loads(text) for text in fitted([script_safe(QUESTION)])] == [QUESTION]
