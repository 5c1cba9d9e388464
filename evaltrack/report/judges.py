"""Renders the agreement of judges, their repeatability, and the reasoning rubric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from evaltrack.compare.judges import JudgesAgreement, Replay
from evaltrack.metrics.criteria import RUBRIC_AIMS
from evaltrack.metrics.rubric_tables import COUNTS
from evaltrack.records.amount import count, verb
from evaltrack.report.escaping import one_line
from evaltrack.report.schemas.others import AgreementForm, ReplayForm
from evaltrack.report.templates import columns, environment, print_lines
from evaltrack.report.words import aim_limit, aim_number, change_words, metric_title, number
from evaltrack.stats.agreement import Agreement, Figure

Rubric = Mapping[str, Any]
"""The tables that `evaltrack.metrics.rubric_tables.reasoning_rubric` returns."""

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
    """Return all figures with their intervals and counts, the confusion matrices, and every disagreement."""
    return AgreementForm.of(agreement).data()


def print_agreement(agreement: JudgesAgreement, console: Console) -> None:
    """Print a table of numbers, a table of labels, and the responses with the largest disagreements."""
    lines = [("bold", one_line(f"{agreement.judge} against {agreement.other}", 200))]
    for measures in (agreement.numbers, agreement.labels):
        head, *rows = (" ".join(cells) for cells in columns(_table(measures)))
        lines += [("dim", head), *(("", row) for row in rows)]
    lines += [("bold", line) for line in within_lines(agreement)]
    lines += [("yellow", note) for note in _notes(agreement)]
    apart = agreement.disagreements
    lines += [("dim", f"further apart than the tolerance: {len(apart)}")] * bool(apart)
    for each in apart[:SHOWN]:
        lines.append(("", f"  {one_line(each.id, 60)}: {number(each.score)}, the other {number(each.other)}"))
    if len(apart) > SHOWN:
        lines.append(("dim", f"  … and {len(apart) - SHOWN} more; the JSON holds them all"))
    print_lines(console, [(f"copy {style}", line) for style, line in lines])


def within_lines(agreement: JudgesAgreement) -> Iterator[str]:
    """Yield the agreement within the tolerance, and the tolerance of each number."""
    within = agreement.within
    if within.share is None:
        yield "within the tolerance: unknown, as no response has both scores"
    else:
        near = f"{round(within.share * within.n):,} of {count(within.n, 'response')} ({100 * within.share:.1f} %)"
        needed = "all have to" if within.needed == 1 else f"{100 * within.needed:g} % have to"
        answer = "yes" if within.agree else "no"
        yield f"agree within the tolerance of {within.tolerance:g}: {answer}; {near} lie within it, {needed}"
    alike: dict[float, list[str]] = {}
    for name, tolerance in agreement.tolerances.items():
        alike.setdefault(tolerance, []).append(name)
    yield "tolerated: " + "; ".join(f"{', '.join(names)} {tolerance:g}" for tolerance, names in alike.items())


def _table(measures: Mapping[str, Agreement]) -> Iterator[list[str]]:
    names = list(next(iter(measures.values())).figures)
    yield ["measure", "n", *(TITLES[name] for name in names)]
    for name, agreement in measures.items():
        if agreement.n:
            yield [name, str(agreement.n), *(_cell(agreement.figures[each], each) for each in names)]


def _cell(figure: Figure, name: str) -> str:
    """Return the figure; kappa with its interval. The intervals of other figures are only in the JSON."""
    if figure.value is None:
        return "–"
    if "kappa" not in name or figure.low is None or figure.high is None:
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"


def _notes(agreement: JudgesAgreement) -> Iterator[str]:
    """Yield the missing verdicts, and the figures that are not defined with the reason."""
    first = next(iter(agreement.numbers.values()))
    for whose, missing in ((agreement.judge, first.without_a), (agreement.other, first.without_b)):
        if missing:
            yield f"{count(missing, 'response')} without a verdict of {one_line(whose, 80)}: not counted"
    reasons: dict[str, list[str]] = {}
    for name, each in {**agreement.numbers, **agreement.labels}.items():
        for title, figure in each.figures.items():
            if each.n and figure.value is None and figure.reason:
                reasons.setdefault(figure.reason, []).append(f"{name} {TITLES[title]}")
    for reason, names in reasons.items():
        yield f"not defined ({reason}): {', '.join(names)}"


def replay_json(replay: Replay) -> dict[str, Any]:
    """Return the whole replay, response by response."""
    return ReplayForm.of(replay, num_responses=len(replay.rows)).data()


def replay_lines(replay: Replay) -> list[str]:
    """Return the lines for people: the stability of the judge, and the responses with the widest spread."""
    times = f"{replay.times} times" if replay.times > 1 else "once"
    judged = f"{count(len(replay.rows), 'response')} judged {times} again, {count(replay.usage_tokens, 'token')}"
    lines = [f"{one_line(replay.judge)}: {judged}"]
    if replay.left_out:
        lines.append(f"left out without a score: {count(replay.left_out, 'row')}")
    if replay.failed:
        of = f"{replay.failed:,} of {count(replay.num_verdicts, 'verdict')}"
        lines.append(f"{of} failed and {verb(replay.failed, 'is', 'are')} not counted")
    if replay.share_within is not None and replay.mean_spread is not None and replay.noise is not None:
        lines.append(f"within 5 % of the run's score: {100 * replay.share_within:.1f} %")
        lines.append(f"mean spread of a response: {number(replay.mean_spread)}")
        lines.append(f"changed tier or outcome: {replay.num_changed} of {len(replay.rows)}")
        lines.append(f"judge noise: the means of two runs differ by up to {number(replay.noise)} (95 %)")
    widest = sorted((row for row in replay.rows if row.spread), key=lambda row: -row.spread)
    for row in widest[:SHOWN]:
        again = ", ".join("error" if value is None else number(value) for value in row.again)
        lines.append(f"  {one_line(row.id, 60)}: {number(row.score)}, again {again}")
    return [*lines, *([f"  … and {count(more, 'more response')}"] if (more := len(widest) - SHOWN) > 0 else [])]


RUBRIC_SCHEMA = "evaltrack.rubric/1"


def rubric_json(rubric: Rubric) -> dict[str, Any]:
    """Return all tables of the rubric, each as a list or an object."""
    return {"schema": RUBRIC_SCHEMA, **rubric}


def rubric_markdown(rubric: Rubric) -> str:
    """Return all tables in the order in which they are applied."""
    aims = [
        (
            metric_title(each["metric"], 0),
            aim_number(each["metric"], each["published"]),
            aim_limit(each["metric"], RUBRIC_AIMS[each["metric"]]),
            change_words(each["improvement"]),
        )
        for each in rubric["aims"]
    ]
    counted = {dimension: what for dimension, (what, _) in COUNTS.items()}
    template = environment(str).get_template("rubric.md")
    text = template.render(**rubric, aim_cells=aims, counted=counted)
    return text.rstrip().replace("<", "&lt;").replace(">", "&gt;")
