"""Several runs that belong together as one page: a line for each golden set, its worst questions, and its own page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records.amount import count
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.html.page import document, render, safe_link, shown
from evaltrack.report.html.run_page import run_headline, run_kind
from evaltrack.report.words import (
    clip,
    failed_words,
    failure_words,
    metric_number,
    metric_title,
    model_words,
    selection_words,
)

MEANS = tuple(score.metric for score in HEADLINES if score.name != "pass")
"""The metrics of the table beside the questions that passed; one that no set measured is left out."""

KINDS = ("bad", "warn", "ok", "")
"""The kind of the whole page is the first of these that a set has."""


@dataclass(frozen=True)
class SetPage:
    """A run of a golden set, the questions that went worst, and the address of its own page beside this one.

    `name` is that of the run, where the set has several.
    """

    result: RunResult
    worst: Sequence[StoredRow]
    address: str
    name: str = ""

    @property
    def title(self) -> str:
        """The golden set, and which run of it."""
        golden = clip(self.result.signature.golden, 80)
        return f"{golden}: {clip(self.name, 120)}" if self.name else golden


def sets_html(pages: Sequence[SetPage], boards: Sequence[dict[str, Any]] = ()) -> str:
    """The page of several runs; it works from a file and makes no request but for what is clicked.

    Args:
        pages: Each run, of golden sets of any number.
        boards: The parts of a leaderboard (`leaderboard_parts`) for each golden set that has several runs.
    """
    names = [name for name in MEANS if any(name in page.result.metrics for page in pages)]
    k = max(page.result.signature.k for page in pages)
    passed, measured = (sum(each) for each in zip(*(_passed(page.result) for page in pages), strict=True))
    headline = f"{passed:,} of {count(measured, 'question')} passed" if measured else "Nothing could be measured"
    kinds = {run_kind(page.result) for page in pages}
    sets = {page.result.signature.golden for page in pages}
    whole = count(len(pages), "golden set") if len(sets) == len(pages) else count(len(pages), "run")
    body = render(
        "sets.html",
        headline=f"{headline} in {whole}",
        boards=boards,
        kind=next(kind for kind in KINDS if kind in kinds),
        titles=[metric_title(name, k) for name in names],
        sets=[_line(page, names) for page in pages],
        worst=[line for page in pages if (line := _worst(page))["questions"]],
    )
    return document(f"{headline}: {whole}", body)


def _passed(result: RunResult) -> tuple[int, int]:
    """How many questions passed, of how many of which that can be said."""
    n = result.counts.get("pass_rate", 0) if "pass_rate" in result.metrics else 0
    return (round(result.metrics["pass_rate"] * n), n) if n else (0, 0)


def _line(page: SetPage, names: Sequence[str]) -> dict[str, Any]:
    result = page.result
    passed, n = _passed(result)
    about = f"target {clip(result.signature.target, 120)}{clip(model_words(result.signature), 120)}"
    return {
        "name": page.title,
        "about": f"{about}, k = {result.signature.k}",
        "selection": selection_words(result.signature),
        "headline": "" if n else run_headline(result),
        "kind": run_kind(result),
        "status": result.status,
        "questions": f"{result.totals['num_questions']:,}",
        "passed": f"{passed:,}" if n else "–",
        "failed": f"{n - passed:,}" if n else "–",
        "errors": f"{result.totals['num_errors']:,}",
        "cells": [_cell(result, name) for name in names],
        "address": page.address,
        "link": safe_link(result.link),
        "run": (result.run_id or "")[:8],
    }


def _cell(result: RunResult, name: str) -> tuple[str, str] | None:
    """A mean and over how many questions it is."""
    return (metric_number(name, result.metrics[name]), f"{result.counts[name]:,}") if name in result.metrics else None


def _worst(page: SetPage) -> dict[str, Any]:
    return {"name": page.title, "questions": list(_questions(page))}


def _questions(page: SetPage) -> Iterator[dict[str, str]]:
    for row in page.worst:
        yield {
            "id": shown(row.id, 80),
            "question": shown(row.question, 300),
            "why": shown(failure_words(row.error or "") or failed_words(row, page.result.signature.k), 300),
            "address": f"{page.address}#q-{quote(shown(row.id, 200), safe='')}",
        }
