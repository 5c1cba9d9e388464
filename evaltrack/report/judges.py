"""What is said of judges: agreement, repeatability, and the rubric they go by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaltrack.compare.judges import JudgesAgreement, Replay
from evaltrack.metrics.rubric_tables import COUNTS, Dimension, ReasoningRubric
from evaltrack.records.amount import count, verb
from evaltrack.report.schemas.others import (
    AgreementForm,
    AgreementPart,
    Disagreement,
    ReplayForm,
    ReplayRow,
    WithinForm,
)
from evaltrack.report.words import aim_limit, aim_number, change_words, metric_title, number, one_line
from evaltrack.stats.agreement import Agreement, Figure

AGREEMENT_SCHEMA = "evaltrack.agreement/1"
SHOWN = 10

TITLES = {
    "mean_absolute_difference": "diff",
    "share_within": "within",
    "bias": "bias",
    "quadratic_kappa": "kappa (quadratic)",
    "alpha_interval": "alpha",
    "spearman": "rho",
    "accuracy": "equal",
    "cohen_kappa": "kappa",
    "alpha_nominal": "alpha",
}


def agreement_json(agreement: JudgesAgreement) -> dict[str, Any]:
    """All figures with their intervals and counts, confusions, and every disagreement."""
    return AgreementForm.of(
        agreement,
        schema=AGREEMENT_SCHEMA,
        within=WithinForm.of(agreement.within),
        tolerances=dict(agreement.tolerances),
        numbers={name: _part(each) for name, each in agreement.numbers.items()},
        labels={name: _part(each) for name, each in agreement.labels.items()},
        disagreements=list(map(Disagreement.of, agreement.disagreements)),
    )


def _part(part: Agreement) -> dict[str, Any]:
    return AgreementPart.of(
        part,
        without_judge=part.without_a,
        without_other=part.without_b,
        figures={name: asdict(figure) for name, figure in part.figures.items()},
        confusion=part.confusion and asdict(part.confusion),
    )


def print_agreement(agreement: JudgesAgreement, console: Console) -> None:
    """One table of numbers, one of labels, and the responses on which the two lie furthest apart."""
    console.print(Text(one_line(f"{agreement.judge} against {agreement.other}", 200), style="bold"), soft_wrap=True)
    for measures in (agreement.numbers, agreement.labels):
        console.print(_table(measures))
    for line in within_lines(agreement):
        console.print(Text(line, style="bold"), soft_wrap=True)
    for note in _notes(agreement):
        console.print(Text(note, style="yellow"), soft_wrap=True)
    if agreement.disagreements:
        console.print(Text(f"further apart than the tolerance: {len(agreement.disagreements)}", style="dim"))
    for each in agreement.disagreements[:SHOWN]:
        console.print(
            Text(f"  {one_line(each.id, 60)}: {number(each.score)}, the other {number(each.other)}"), soft_wrap=True
        )
    if len(agreement.disagreements) > SHOWN:
        console.print(
            Text(f"  … and {len(agreement.disagreements) - SHOWN} more; the JSON holds them all", style="dim")
        )


def within_lines(agreement: JudgesAgreement) -> Iterator[str]:
    """Whether both agree within the tolerance, and which that is for each number."""
    within = agreement.within
    if within.share is None:
        yield "within the tolerance: not known, as no response has both scores"
    else:
        near = f"{round(within.share * within.n):,} of {count(within.n, 'response')} ({100 * within.share:.1f} %)"
        needed = "all have to" if within.needed == 1 else f"{100 * within.needed:g} % have to"
        answer = "yes" if within.agree else "no"
        yield f"agree within the tolerance of {within.tolerance:g}: {answer}; {near} lie within it, {needed}"
    alike: dict[float, list[str]] = {}
    for name, tolerance in agreement.tolerances.items():
        alike.setdefault(tolerance, []).append(name)
    yield "tolerated: " + "; ".join(f"{', '.join(names)} {tolerance:g}" for tolerance, names in alike.items())


def _table(measures: Any) -> Any:

    names = list(next(iter(measures.values())).figures)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("measure", no_wrap=True)
    for title in ("n", *(TITLES[name] for name in names)):
        table.add_column(title, justify="right", no_wrap=True)
    for name, agreement in measures.items():
        if agreement.n:
            table.add_row(name, str(agreement.n), *(_cell(agreement.figures[each], each) for each in names))
    return table


def _cell(figure: Figure, name: str) -> str:
    """The figure; kappa with its interval, for which the others have no room: the JSON holds them all."""
    if figure.value is None:
        return "–"
    if "kappa" not in name or figure.low is None or figure.high is None:
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"


def _notes(agreement: JudgesAgreement) -> Iterator[str]:
    """Who is missing, and which figure is not defined and why."""
    first = next(iter(agreement.numbers.values()))
    for whose, missing in ((agreement.judge, first.without_a), (agreement.other, first.without_b)):
        if missing:
            yield f"{count(missing, 'response')} without a verdict of {one_line(whose, 80)}: in no figure"
    reasons: dict[str, list[str]] = {}
    for name, each in {**agreement.numbers, **agreement.labels}.items():
        for title, figure in each.figures.items():
            if each.n and figure.value is None and figure.reason:
                reasons.setdefault(figure.reason, []).append(f"{name} {TITLES[title]}")
    for reason, names in reasons.items():
        yield f"not defined ({reason}): {', '.join(names)}"


REPLAY_SCHEMA = "evaltrack.replay/1"


def replay_json(replay: Replay) -> dict[str, Any]:
    """The whole replay, response by response."""
    return ReplayForm.of(
        replay,
        schema=REPLAY_SCHEMA,
        num_responses=len(replay.rows),
        num_errors=replay.failed,
        judge_tokens=replay.usage_tokens,
        rows=list(map(ReplayRow.of, replay.rows)),
    )


def replay_lines(replay: Replay) -> list[str]:
    """What a person reads: how stable the judge is, and which responses it is least sure of."""
    times = f"{replay.times} times" if replay.times > 1 else "once"
    judged = f"{count(len(replay.rows), 'response')} judged {times} again, {count(replay.usage_tokens, 'token')}"
    lines = [f"{one_line(replay.judge)}: {judged}"]
    if replay.left_out:
        lines.append(f"left out without a score: {count(replay.left_out, 'row')}")
    if replay.failed:
        of = f"{replay.failed:,} of {count(replay.num_verdicts, 'verdict')}"
        lines.append(f"{of} failed and {verb(replay.failed, 'is', 'are')} in no number")
    if replay.share_within is not None and replay.mean_spread is not None and replay.noise is not None:
        lines.append(f"within 5 % of the run's score: {100 * replay.share_within:.1f} %")
        lines.append(f"mean spread of a response: {number(replay.mean_spread)}")
        lines.append(f"changed tier or outcome: {replay.num_changed} of {len(replay.rows)}")
        lines.append(f"noise of the judge: two runs' means differ by up to {number(replay.noise)} by it alone (95 %)")
    widest = sorted((row for row in replay.rows if row.spread), key=lambda row: -row.spread)
    for row in widest[:SHOWN]:
        again = ", ".join("error" if value is None else number(value) for value in row.again)
        lines.append(f"  {one_line(row.id, 60)}: {number(row.score)}, again {again}")
    return [*lines, *([f"  … and {count(more, 'more response')}"] if (more := len(widest) - SHOWN) > 0 else [])]


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
    yield Section(
        "Hard fails",
        ("code", "condition", "example"),
        [(code, *texts) for code, texts in rubric.hard_fails.items()],
        ("Each makes the score 0.",),
    )
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
