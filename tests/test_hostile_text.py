from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from pydantic import BaseModel
from rich.console import Console

from evaltrack.compare.causes import causes_of
from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison, GroupDelta
from evaltrack.evaluation.result import RunResult
from evaltrack.records import Failure, Question, Response, Row, Signature, Source, ToolCall, Verdict
from evaltrack.records.row import row_of
from evaltrack.records.run import Run
from evaltrack.report.comparison_files import annotations as github_annotations
from evaltrack.report.comparison_files import comparison_junit, json_text
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.html.comparison_page import comparison_html, comparison_screen
from evaltrack.report.html.run_page import Around, run_html, run_screen
from evaltrack.report.run_text import evaluation_json, print_run, reasoning_page, run_json, run_note, verdict_lines
from evaltrack.tracking.rows import columns_of

from .compared import measured
from .comparisons import RECALL, comparison
from .conftest import REPO
from .report.test_comparison_markdown import TAGS
from .report.test_html import Page, assert_inert
from .report.test_run import result

RTL = "שלום عليكم"
"""Right-to-left text, which must stay."""


HOSTILE = {
    **json.loads((REPO / "tests/data/hostile_texts.json").read_text()),
    **{"word": "x" * 1_000_000, "rtl": RTL, "long id": "/".join(["way"] * 2_500)},
}

PLACES = {
    name: f"PLACE{name}"
    for name in ("question", "answer", "title", "url", "chunk", "domain", "category", "judge", "reasoning", "error")
} | {name: f"PLACE{name}" for name in ("id", "wanted", "tool", "run", "golden", "target", "note", "accepted")}
"""Marks in a rendering for text that is foreign."""
ALL = "PLACE[a-z]+"


def response(*chunks: str) -> Response:
    sources = tuple(
        Source(chunk_id=chunk, title=PLACES["title"], url=PLACES["url"], text=PLACES["answer"]) for chunk in chunks
    )
    return Response(answer=PLACES["answer"], sources=sources, tool_calls=(ToolCall(name=PLACES["tool"]),))


def rows() -> list[Row]:
    """One that passed, one that was judged too low, one that did not find its source, and one that failed."""
    asked = Question(
        id=PLACES["id"],
        question=PLACES["question"],
        expected_chunks=(PLACES["chunk"],),
        expected_answer=PLACES["wanted"],
        domain=PLACES["domain"],
        category=PLACES["category"],
        expected_tools=(PLACES["tool"],),
    )
    made = []
    for place, (chunk, score) in enumerate(((PLACES["chunk"], 1.0), (PLACES["chunk"], 0.1), ("other", 1.0))):
        given = response("first", chunk)
        verdicts = (Verdict(judge=PLACES["judge"], reasoning=PLACES["reasoning"], overall_score=score),)
        made.append(measured(asked, given, verdicts, position=place))
    failure = Failure(kind="target_error", message=PLACES["error"])
    return [*made, row_of(asked, failure, 5, position=3)]


@cache
def template() -> tuple[RunResult, list[Row], Comparison]:
    made = rows()
    signature = Signature(
        golden=PLACES["golden"], golden_digest="0", k=5, target=PLACES["target"], judge=PLACES["judge"]
    )
    metrics = {"recall_at_k": 0.5, "mrr": 0.3, "pass_rate": 0.4, "judge_score": 0.5}
    run = result(
        signature=signature,
        metrics=metrics,
        counts=dict.fromkeys(metrics, 3),
        groups={name: dict.fromkeys(metrics, (0.5, 3)) for name in (PLACES["domain"], "easy")},
        by_judge={PLACES["judge"]: (0.5, 3), "other": (0.4, 3)},
        notes=(PLACES["note"],),
        missed=tuple(made[1:3]),
        errors=(made[3],),
        totals={**result().totals, "num_errors": 1, "num_judged": 3, "num_questions": 4},
        read_table=lambda: [],
    )
    return run, made, compared(made, signature)


def compared(flat: list[Row], signature: Signature) -> Comparison:
    """The first of these rows against each of the others, with the causes that are found."""
    sides = [
        Run(run_id, PLACES["run"], signature, f"http://a.example/{run_id}", 4, 1, "all", "http://a.example/t")
        for run_id in "bc"
    ]
    changes = []
    for after in flat[1:]:
        causes = causes_of(flat[0], after, 5)
        changes.append(
            Change(
                id=after.id,
                question=after.question,
                domain=after.domain,
                difficulty=None,
                category=after.category,
                was="pass",
                now="error" if after.error else "fail",
                cause=causes[0],
                also=tuple(causes[1:]),
                before=flat[0],
                after=after,
                accepted=PLACES["accepted"],
            )
        )
    return comparison(
        baseline=sides[0],
        candidate=sides[1],
        groups=tuple(GroupDelta(kind, PLACES[kind], 4, (RECALL,), 1, 0) for kind in ("domain", "category")),
        flips=tuple(changes[:2]),
        lost=(changes[2],),
        drops=(changes[1],),
        fixes=(dataclasses.replace(changes[0], was="fail", now="pass"),),
        same=(flat[0],),
        fates={"identical": 1},
        added=(PLACES["id"],),
        removed=(PLACES["id"],),
        edited=(PLACES["id"],),
    )


def put(made: Any, place: str, text: str) -> Any:
    """The same with `text` in place of this mark, or of all, also where no record would take it."""
    if isinstance(made, str):
        return re.sub(place, lambda _: text, made)
    if isinstance(made, dict):
        return {put(name, place, text): put(value, place, text) for name, value in made.items()}
    if isinstance(made, list | tuple):
        return type(made)(put(each, place, text) for each in made)
    if isinstance(made, BaseModel):
        return made.model_copy(update={name: put(getattr(made, name), place, text) for name in type(made).model_fields})
    if dataclasses.is_dataclass(made) and not isinstance(made, type):
        fields = {each.name: put(getattr(made, each.name), place, text) for each in dataclasses.fields(made)}
        return dataclasses.replace(made, **fields)
    return made


Made = tuple[RunResult, list[Row], Comparison]


def around(place: str, text: str) -> Around:
    made = Around(PLACES["run"], "all", "http://a.example/t", {PLACES["id"]: PLACES["accepted"]})
    changed: Around = put(made, place, text)
    return changed


def terminal(run: RunResult) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=100))
    return out.getvalue()


def whole_run(run: RunResult, flat: list[Row]) -> str:
    return "".join(run_json(dataclasses.replace(run, read_table=lambda: map(columns_of, flat))))


def run_html_of(run: RunResult, flat: list[Row], place: str, text: str) -> str:
    return run_html(run, lambda columns, ids: flat, around(place, text))


RENDERINGS: dict[str, Callable[[Made, str, str], str]] = {
    "run, terminal": lambda made, *_: terminal(made[0]),
    "run, note": lambda made, *_: run_note(made[0]),
    "run, page": lambda made, place, text: run_html_of(made[0], made[1], place, text),
    "run, screen": lambda made, *_: run_screen(made[0]),
    "run, JSON": lambda made, *_: whole_run(made[0], made[1]),
    "run, evaluation.json": lambda made, *_: "".join(
        evaluation_json(made[0], "golden.jsonl", map(columns_of, made[1]))
    ),
    "run, reasoning.md": lambda made, *_: "".join(reasoning_page(made[1])),
    "run, verdicts.jsonl": lambda made, *_: "".join(verdict_lines(made[1], made[1][0].verdicts[0].judge)),
    "comparison, terminal": lambda made, *_: comparison_text(made[2], 100),
    "comparison, Markdown": lambda made, *_: comparison_markdown(made[2]),
    "comparison, page": lambda made, *_: comparison_html(made[2]),
    "comparison, screen": lambda made, *_: comparison_screen(made[2]),
    "comparison, JSON": lambda made, *_: json_text(made[2]),
    "comparison, JUnit": lambda made, *_: comparison_junit(made[2]),
    "comparison, annotations": lambda made, *_: "".join(f"{line}\n" for line in github_annotations(made[2])),
}


@lru_cache(2)
def filled(place: str, text: str) -> Made:
    made: Made = put(template(), place, text)
    return made


def rendered(rendering: str, place: str, text: str) -> str:
    return RENDERINGS[rendering](filled(place, text), place, text)


HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls but for the line feed, marks that reorder, halves of pairs."""


def check_terminal(text: str) -> None:
    for line in text.splitlines():
        assert not line.lstrip().startswith(("::", "##[")), line


def check_markdown(text: str) -> None:
    text = re.sub(r"\A<!-- evaltrack:[^>]*? -->\n", "", text)
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    page = Page(re.sub(r"<(br|hr) ?/?>", "", html))  # a comment would fail it
    assert {tag for tag, _ in page.elements} <= TAGS | {"h1", "h2", "blockquote", "ol", "em", "pre"}
    for _, attributes in page.elements:
        assert set(attributes) <= {"href", "style"}
        assert re.match(
            r"#/|evaltrack/#/golden/|http://(a\.example|127\.0\.0\.1)|https://docs\.example|$",
            attributes.get("href") or "",
        )


def markup(text: str) -> list[str]:
    """The kinds of the elements of a Markdown text, without its texts."""
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(text)
    found = (kind.type for token in tokens for kind in (token, *(token.children or ())))
    return [kind for kind in found if kind not in ("text", "text_special")]


def check_page(text: str) -> None:
    page = Page(text)
    assert_inert(page)
    for link in page.links:
        assert re.match(r"#|http://(a\.example|127\.0\.0\.1)|https://docs\.example", link), link


def check_screen(text: str) -> None:
    """A notebook shows it without a policy of ours."""
    assert Page(text).elements == [("pre", {"style": "white-space: pre-wrap"})]


def check_json(text: str) -> None:
    for line in [text] if text.startswith("{\n") or '"schema"' in text[:20] else text.rstrip("\n").split("\n"):
        json.loads(line, parse_constant=pytest.fail)


def check_xml(text: str) -> None:
    kinds = {element.tag.rpartition("}")[2] for element in ET.fromstring(text.encode()).iter()}
    assert not kinds & {"script", "a", "image", "foreignObject", "use", "set", "animate", "b", "img", "details"}


def check_annotations(text: str) -> None:
    for line in text.splitlines():
        assert re.match("::(error|warning) title=[^:,]*::", line), line
        assert not re.search("::stop-commands|::set-output|\n::", line.partition("title=")[0])


CHECKS: dict[str, Callable[[str], None]] = {
    "terminal": check_terminal,
    "note": check_markdown,
    "reasoning.md": check_markdown,
    "Markdown": check_markdown,
    "page": check_page,
    "screen": check_screen,
    "JSON": check_json,
    "evaluation.json": check_json,
    "verdicts.jsonl": check_json,
    "JUnit": check_xml,
    "annotations": check_annotations,
}
MACHINE = {"JSON", "evaluation.json", "verdicts.jsonl"}
FILED = {name for name in RENDERINGS if name.startswith("comparison")}
"""Halves of surrogate pairs come from saved baselines alone: no record of a run can hold them."""

BOUNDED = 400_000
"""Characters of any rendering for people, of four questions; those for machines hold texts whole."""


@cache
def seen(rendering: str) -> frozenset[str]:
    text = RENDERINGS[rendering](template(), "", "")
    return frozenset(place for place, name in PLACES.items() if name in text)


def form(rendering: str) -> str:
    return rendering.partition(", ")[2]


def faults(rendering: str, text: str) -> Iterator[str]:
    try:
        CHECKS[form(rendering)](text)
        text.encode()
    except (AssertionError, ValueError, ET.ParseError, pytest.fail.Exception) as error:
        yield str(error)[:300]
    if form(rendering) in MACHINE:
        harm = re.search("[\x00-\x09\x0b-\x1f]", text)
    else:
        harm = HARMFUL.search(text)
        if len(text) > BOUNDED:
            yield f"{len(text):,} characters"
    if harm:
        yield f"{harm[0]!r} in {text[max(0, harm.start() - 60) :][:120]!r}"


TABLE = [(kind, rendering) for kind in HOSTILE for rendering in RENDERINGS if kind != "surrogate" or rendering in FILED]


@pytest.mark.parametrize(("kind", "rendering"), TABLE)
def test_hostile_text_is_only_text(kind: str, rendering: str) -> None:
    """In all places at once."""
    assert list(faults(rendering, rendered(rendering, ALL, HOSTILE[kind]))) == []
    if kind in ("markdown", "link", "html") and rendering in ("run, note", "run, reasoning.md"):
        assert markup(rendered(rendering, ALL, HOSTILE[kind])) == markup(rendered(rendering, ALL, "x"))


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_hostile_text_in_one_place_is_only_text(place: str) -> None:
    """So that the text of no other place hides it."""
    for kind, rendering in TABLE:
        if place == "url" or place in seen(rendering):  # an address is seen only where it leads into the web
            found = list(faults(rendering, rendered(rendering, PLACES[place], HOSTILE[kind])))
            assert found == [], (kind, rendering)


def test_every_place_is_seen_somewhere_in_letters_from_right_to_left_too() -> None:
    assert set(PLACES) == frozenset[str]().union(*map(seen, RENDERINGS))
    for rendering in RENDERINGS:
        assert rendered(rendering, ALL, RTL).count(RTL) >= len(seen(rendering)) > 0, rendering
