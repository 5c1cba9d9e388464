"""The words of each cause, in one table: its title, its sentence, what it did to a page, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from evaltrack.compare.change import CauseKind

CulpritKind = Literal[CauseKind, "page_new", "page_deleted", "page_rarer", "page_rose"]
"""What several questions have in common: one cause, or what happened to a page.

`page_new`: the baseline returned nothing of it; `page_deleted`: the candidate returns nothing of it; `page_rarer`: it
does for other questions; `page_rose`: it was there before, and newly stands above the expected source.
"""


class CauseWords(NamedTuple):
    """`title` is for people; `step` says what to do, and ends a sentence.

    `sentence` is the pattern of the sentence on one question; without it that begins with the title. `page` and `pages`
    say what happened to a page, and to several.
    """

    title: str
    step: str
    sentence: str = ""
    page: str = ""
    pages: str = ""


SEARCH = "look at what changed in search or ranking"
INDEX = "look whether it is still in the index"
FLOOR = "look at its floor or its prompt"
ANSWERS = "look at prompt and model"
IDS = "keep ids, or name the new ones in the golden set"
OPEN = "open the questions below"

CAUSES: Mapping[CulpritKind, CauseWords] = {
    "golden_edited": CauseWords("the question or its expectation was edited", "evaluate the baseline again"),
    "target_failed": CauseWords("the target failed", "fix the error ({message}), then evaluate again"),
    "no_longer_reports_sources": CauseWords(
        "the target reports no sources now", "return `sources`, best first, so that retrieval is measured"
    ),
    "now_reports_sources": CauseWords(
        "the target reports its sources now, where it did not",
        "retrieval was not measured before; evaluate the baseline again as it is now",
    ),
    "ids_changed": CauseWords(
        "the same texts under other ids",
        IDS,
        "the text of `{first}` came back as {other}: it has another id now",
        "has another id now",
        "have other ids now",
    ),
    "rechunked": CauseWords(
        "the expected text is chunked differently now",
        "put the new ids into the golden set, and evaluate the baseline again; quoted passages (evaltrack golden "
        "anchor) need no ids",
        "the text of `{first}` is chunked differently now, in {other}",
        "was chunked differently",
        "were chunked differently",
    ),
    "source_text_changed": CauseWords(
        "the text of a source changed",
        "undo the edit, or change what is expected",
        "the text of `{source}` changed{where}",
        "was edited",
        "were edited",
    ),
    "source_lost": CauseWords(
        "an expected source is no longer returned",
        INDEX,
        "`{source}` (rank {was}) is no longer returned{by}",
        "is no longer returned",
        "are no longer returned",
    ),
    "source_demoted": CauseWords(
        "an expected source is returned lower",
        SEARCH,
        "`{source}` fell from rank {was} to {now}{beyond}{by}",
        "is returned lower",
        "are returned lower",
    ),
    "fewer_sources": CauseWords(
        "the target returns fewer sources",
        "look at how many it is asked for, and at its floor",
        "the list ends earlier, after {after} in place of {before}, and `{source}` was rank {was}",
    ),
    "source_gained": CauseWords(
        "an expected source is newly returned",
        OPEN,
        "`{source}` is returned now, at rank {now}, and was not before",
    ),
    "source_promoted": CauseWords(
        "an expected source is returned higher",
        OPEN,
        "`{source}` rose from rank {was}{beyond} to {now}",
    ),
    "no_longer_declines": CauseWords(
        "the target answers now, where it declined", FLOOR, "the target answers now, where it declined{how}"
    ),
    "now_declines": CauseWords(
        "the target declines now, where it answered", FLOOR, "the target declines now, where it answered{how}"
    ),
    "context_changed": CauseWords("changed sources, another answer", SEARCH, "the answer is another, on {context}"),
    "tools_changed": CauseWords(
        "same answer, other tools called", "look at the agent's prompt and its tools", "{tools}"
    ),
    "answer_missing": CauseWords("the answer is missing or empty now", ANSWERS, "the target gives {what} now{on}"),
    "answer_gained": CauseWords("there is an answer now, and was none", ANSWERS, "the target gave {what} before{on}"),
    "answer_changed": CauseWords("same sources, another answer", ANSWERS),
    "verdict_changed": CauseWords(
        "same answer, another verdict",
        "judge the stored answers again, which shows how far the judge's scores vary by themselves (evaltrack judge "
        "replay)",
        "{said} {on}",
    ),
    "judge_failed": CauseWords("the judge failed", "fix the error ({message}), then evaluate again"),
    "unknown": CauseWords("nothing that was recorded explains it", OPEN),
    "page_new": CauseWords(
        "a new page stands above the expected source",
        "edit it, rank it lower, or take it out",
        "",
        "is new in the results",
        "are new in the results",
    ),
    "page_deleted": CauseWords(
        "a page was deleted", "put it back, or change what is expected", "", "was deleted", "were deleted"
    ),
    "page_rarer": CauseWords(
        "a page is returned for fewer questions",
        SEARCH,
        "",
        "is returned for fewer questions",
        "are returned for fewer questions",
    ),
    "page_rose": CauseWords(
        "a page stands above the expected source now",
        SEARCH,
        "",
        "now ranks above the expected source",
        "now rank above the expected source",
    ),
}
