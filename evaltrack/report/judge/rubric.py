"""The reasoning rubric for machines, as Markdown, and as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaltrack.metrics.anchors import COUNTS
from evaltrack.metrics.rubric_tables import Dimension, ReasoningRubric
from evaltrack.records.amount import count
from evaltrack.report.words import aim_limit, aim_number, change_words, metric_title

if TYPE_CHECKING:
    from rich.console import Console

RUBRIC_SCHEMA = "evaltrack.rubric/1"
TITLE = "The reasoning rubric"


@dataclass(frozen=True)
class Section:
    """One table of the rubric, and what is said below it."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()


def rubric_json(rubric: ReasoningRubric) -> dict[str, Any]:
    """Everything, each table as a list or an object."""
    return {
        "schema": RUBRIC_SCHEMA,
        "dimensions": list(map(_dimension, rubric.dimensions)),
        "hard_fails": [
            {"code": code, "condition": condition, "example": example}
            for code, (condition, example) in rubric.hard_fails.items()
        ],
        "coupling": [vars(each) for each in rubric.coupling],
        "penalties": {str(gap): points for gap, points in rubric.penalties.items()},
        "tiers": [{"tier": number, **vars(tier)} for number, tier in rubric.tiers.items()],
        "gates": [vars(gate) for gate in rubric.gates],
        "pass_score": rubric.pass_score,
        "aims": [
            {"metric": name, **vars(target), "improvement": target.improvement} for name, target in rubric.aims.items()
        ],
        "modes": dict(rubric.modes),
        "readings": list(rubric.readings),
    }


def _dimension(dimension: Dimension) -> dict[str, Any]:
    return {
        "name": dimension.name,
        "weight": dimension.weight,
        "measures": dimension.anchors.measures,
        "anchors": {str(grade): text for grade, text in dimension.anchors.cells.items()},
        "below_by_count": {str(count): below for count, below in dimension.bounds.items()},
    }


def rubric_sections(rubric: ReasoningRubric) -> Iterator[Section]:
    """The tables, in the order in which they are applied."""
    yield Section(
        "Dimensions",
        ("dimension", "weight", "0 (fail)", "5 (adequate)", "10 (excellent)"),
        [(each.name, f"{100 * each.weight:.3g} %", *each.anchors.cells.values()) for each in rubric.dimensions],
        (
            "Grades between the anchors are allowed. Score = 10 x the weighted mean, less the penalty, from 0 to 100.",
            *_bounds(rubric),
        ),
    )
    yield Section("Hard fails", ("code", "condition", "example"), _hard_fails(rubric), ("Each makes the score 0.",))
    yield _coupling(rubric)
    yield Section("Tiers", ("tier", "label", "score", "action required"), _tiers(rubric))
    yield Section(
        "Acceptance gates",
        ("gate", "threshold", "bypass condition"),
        [(gate.name, gate.threshold, gate.bypass) for gate in rubric.gates],
    )
    yield _aims(rubric)
    yield Section("Modes, which are not scored", ("mode", "what it is like"), list(rubric.modes.items()))


def _bounds(rubric: ReasoningRubric) -> Iterator[str]:
    """What a count allows of its grade."""
    for each in filter(lambda dimension: dimension.bounds, rubric.dimensions):
        what = COUNTS[each.name][0]
        bounds = ", ".join(f"{count}: below {below:g}" for count, below in each.bounds.items())
        yield f"{each.name} has to fit the number of {what} ({bounds}); a grade of 0 is for (almost) none."


def _hard_fails(rubric: ReasoningRubric) -> list[tuple[str, ...]]:
    return [(code, *texts) for code, texts in rubric.hard_fails.items()]


def _tiers(rubric: ReasoningRubric) -> list[tuple[str, ...]]:
    return [
        (str(number), tier.label, f"{tier.low}-{tier.high}" if tier.high > tier.low else str(tier.low), tier.action)
        for number, tier in rubric.tiers.items()
    ]


def _coupling(rubric: ReasoningRubric) -> Section:
    costs = [f"{count(gap, 'band')} above: -{count(points, 'point')}" for gap, points in rubric.penalties.items()]
    return Section(
        "Coupling: what a confidence has to be earned with, at least",
        ("confidence", "word", "hypotheses", "shifts", "crux", "uncertainty"),
        [
            (each.confidence, each.word, f"{each.hypotheses}+", f"{each.shifts}+", each.crux, each.uncertainty)
            for each in rubric.coupling
        ],
        (f"A claim above the band earned: {'; '.join(costs)}; 3 or more: HF5.",),
    )


def _aims(rubric: ReasoningRubric) -> Section:
    return Section(
        "Aims over naive single-shot answers",
        ("metric", "published baseline", "aim", "improvement"),
        [
            (
                metric_title(name, 0),
                aim_number(name, target.published),
                aim_limit(name, target),
                change_words(target.improvement),
            )
            for name, target in rubric.aims.items()
        ],
    )


def rubric_markdown(rubric: ReasoningRubric) -> Iterator[str]:
    """The tables as Markdown."""
    yield f"# {TITLE}"
    for section in rubric_sections(rubric):
        yield from ("", f"## {section.title}", "")
        yield _markdown_row(section.head)
        yield _markdown_row(["---"] * len(section.head))
        yield from map(_markdown_row, section.rows)
        for note in section.notes:
            yield from ("", note)
    yield from ("", "## How it is applied", "", *(f"- {_escaped(reading)}" for reading in rubric.readings))


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("|", "\\|")


def print_rubric(rubric: ReasoningRubric, console: Console) -> None:
    """The tables for a terminal."""
    from rich.table import Table
    from rich.text import Text

    for section in rubric_sections(rubric):
        console.print(Text(section.title, style="bold"))
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for place, name in enumerate(section.head):
            table.add_column(name, no_wrap=place == 0)
        for row in section.rows:
            table.add_row(*map(Text, row))
        console.print(table)
        for note in section.notes:
            console.print(Text(note, style="dim"))
        console.print()
    console.print(Text("How it is applied", style="bold"))
    for reading in rubric.readings:
        console.print(Text(f"- {reading}"))
