"""A small corpus, and a scripted model that proposes questions on it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.openai_behaviours import Behaviour, Reply, Usage
from tests.openai_requests import Json, text_of

PAGES = {
    "rail.md": "# Rail\n\nTrains of all kinds.\n\n"
    "## Delays\n\n{rail} If a train is an hour late, a quarter is repaid.\n\n"
    "## Dogs\n\n{dogs} Small dogs ride for free in a basket under the seat.\n",
    "air.md": "# Air\n\n## Boarding\n\n{air} Boarding ends twenty minutes before the flight leaves the gate.\n",
    "sea.md": "# Sea\n\n## Cabins\n\n{sea} A cabin by the window costs twelve euros more than one inside.\n",
}


def corpus(folder: Path) -> Path:
    """Three pages with four headings, each with a sentence that stands nowhere else."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in PAGES.items():
        filler = {word: f"This part speaks of {word} and what travellers on it should know." for word in WORDS}
        (folder / name).write_text(text.format(**filler), encoding="utf-8")
    return folder


WORDS = ("rail", "dogs", "air", "sea")


def passage_of(request: Json) -> str:
    """The passage in a request, without title and heading."""
    text = next(text_of(request, "user"))
    return re.findall(r"<source-\w+>\n.*?\n\n(.*?)\n</source-\w+>", text, re.DOTALL)[-1]


def asks_for_near_miss(request: Json) -> bool:
    """Whether the corpus should not answer the question."""
    return '"missing"' in next(text_of(request, "system"))


def proposal(request: Json) -> dict[str, str]:
    """A question with the last sentence of the passage, or a near miss."""
    last = passage_of(request).strip().split(". ")[-1]
    subject = last.split()[-2]
    if asks_for_near_miss(request):
        return {"question": f"Can I take a hovercraft to {subject}?", "missing": "hovercraft"}
    return {"question": f"What about {last.split()[1]} and {subject}?", "quote": last, "answer": f"It is so: {last}"}


def proposer(**changes: Any) -> Behaviour:
    """Proposes for each passage; `changes` are other fields of what it writes."""

    def behave(request: Json, _call: int) -> Reply:
        return Reply(json.dumps({**proposal(request), **changes}), usage=Usage(100, 20))

    return behave
