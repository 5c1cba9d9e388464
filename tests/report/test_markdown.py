"""The description of a run: what it says first, where it leads, and what MLflow makes of it."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from markdown_it import MarkdownIt

from evaltrack.records import Failure, Response
from evaltrack.report.comparison_files import SHOWN
from evaltrack.report.run_text import NOTE_LIMIT, run_note
from evaltrack.tracking.writer import TABLE_ROWS
from tests.report.test_run import FOREIGN, markup, result, row


def links(note: str) -> dict[str, str]:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(note)
    return {words: unescape(url) for url, words in re.findall(r'<a href="([^"]*)"[^>]*>(.*?)</a>', html)}


def test_the_first_line_says_what_and_how_many_passed() -> None:
    made = result(metrics={"pass_rate": 0.75}, counts={"pass_rate": 4})
    assert run_note(made).splitlines()[0] == "### set: 3 of 4 questions passed (1 more could not be measured), k = 5"
    whole = replace(made, counts={"pass_rate": 5}, metrics={"pass_rate": 0.2})
    assert run_note(whole).splitlines()[0] == "### set: 1 of 5 questions passed, k = 5"
    assert run_note(result()).splitlines()[0] == "### set: none of 5 questions could pass or fail, k = 5"


def test_links_lead_from_mlflows_ui_whatever_its_address() -> None:
    note = run_note(result())
    assert links(note) == {
        "Report": "#/experiments/0/runs/r/artifacts/report.html",
        "evaltrack ui": "evaltrack/#/golden/0/set",
        "All questions": "#/experiments/0/runs/r/artifacts/per_question.json",
        "Compare with other runs": "#/experiments/0/evaluation-runs?selectedRunUuid=r",
    }
    assert note.index("[Report]") < note.index("Target")


def test_above_mlflows_limit_the_file_is_named_instead_of_the_table() -> None:
    missed = tuple(row(place, passed=False, response=Response(sources=())) for place in range(SHOWN + 1))
    large = result(totals={**result().totals, "num_questions": TABLE_ROWS + 1}, missed=missed)
    assert links(run_note(large))["All questions"].endswith("/per_question.parquet")
    assert "… the file `per_question.parquet` holds them all" in run_note(large)
    assert "per_question.json" not in run_note(large)


def test_the_worst_domains_come_first_and_no_more_than_ten() -> None:
    groups = {f"d{place}": {"pass_rate": (1 - place / 100, 4)} for place in range(30)}
    note = run_note(result(groups={**groups, "easy": {"pass_rate": (0.0, 1)}}))
    shown = re.findall(r"^\| (d\d+|easy) \|", note, re.MULTILINE)
    assert shown == [*(f"d{place}" for place in range(29, 19, -1)), "easy"]
    assert "The 10 worst of 30 domains; `summary.json` holds them all." in note


def test_a_note_fits_into_a_tag_of_mlflow() -> None:
    rows = tuple(
        row(place, "<&>" * 100, passed=False, failure=Failure(kind="target_error", message="&*" * 500))
        for place in range(SHOWN)
    )
    note = run_note(result(missed=rows, errors=rows, groups={"&" * 1_000_000: {"recall_at_k": (0.5, 4)}}))
    assert len(note) <= NOTE_LIMIT
    assert note.endswith("\n… more in the report\n")
    assert all(line.endswith(")") for line in note.splitlines() if line.startswith("- "))


@pytest.mark.parametrize("foreign", FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_text_in_the_note_is_inert(foreign: str) -> None:
    def note(text: str) -> str:
        missed = (row(1, text, passed=False, response=Response(sources=())),)
        failed = (row(2, "x", failure=Failure(kind="target_error", message=text)),)
        signature = result().signature.model_construct(
            **{**result().signature.model_dump(), "golden": text, "target": text}
        )
        groups = {text: {"recall_at_k": (0.5, 4)}}
        return run_note(result(missed=missed, errors=failed, notes=(text,), groups=groups, signature=signature))

    assert markup(note(foreign)) == markup(note("x"))
    assert all(letter.isprintable() or letter == "\n" for letter in note(foreign))
