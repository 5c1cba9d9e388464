"""How each domain went, the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.worst_domains import Means, worst_domains
from evaltrack.records.amount import count
from evaltrack.report.pictures.measure import JUDGED, REASONED, RECALL, Measure, first_measured
from evaltrack.report.pictures.svg import bar, drawing, fitted, words

SHOWN = 25
PASSED = Measure("pass", "pass_rate")
WIDTH, TOP, ROW, LENGTH = 740, 78, 26, 150
COLUMNS = (200, 480)
"""Where the bars of the score and of the pass rate begin."""


def domains_svg(result: RunResult) -> str:
    """Score and pass rate of at most `SHOWN` domains, each with its count; empty where no domain was measured."""
    score = first_measured(result.metrics, RECALL, REASONED, JUDGED)
    measures = [each for each in (score, first_measured(result.metrics, PASSED)) if each is not None]
    domains = [
        (name, means) for name, means in worst_domains(result.groups) if any(m.metric in means for m in measures)
    ]
    if not domains:
        return ""
    notes = list(_notes(result, measures, len(domains)))
    parts = [*_rows(domains[:SHOWN], measures, result.signature.k)]
    below = TOP + ROW * min(len(domains), SHOWN) + 16
    parts += [words(20, below + 16 * place, note, "dim") for place, note in enumerate(notes)]
    title = f"Domains of {fitted(result.signature.golden, 60)}, lowest pass rate first"
    return drawing(WIDTH, below + 16 * len(notes), title, parts)


def _rows(domains: list[tuple[str, Means]], measures: list[Measure], k: int) -> Iterator[str]:
    for x, measure in zip(COLUMNS, measures, strict=False):
        yield words(x, 60, measure.title(k), "head")
    for place, (name, means) in enumerate(domains):
        y = TOP + ROW * place - 6
        # a picture within the picture cuts off what wide letters take too much
        yield f'<svg x="20" y="{y}" width="172" height="20">{words(0, 14, fitted(name, 24))}</svg>'
        for x, measure in zip(COLUMNS, measures, strict=False):
            if measure.metric not in means:
                yield words(x, y + 14, "not measured", "dim")
                continue
            mean, count = means[measure.metric]
            yield bar(x, y, LENGTH, 18, "track")
            yield bar(x, y, LENGTH * mean / measure.top, 18)
            yield words(x + LENGTH + 6, y + 14, f"{measure.shown(mean)}, n {count:,}", "dim")


def _notes(result: RunResult, measures: list[Measure], measured: int) -> Iterator[str]:
    if measured > SHOWN:
        yield f"{measured - SHOWN:,} of {count(measured, 'domain')}, which did better, are left out"
    if nothing := len(worst_domains(result.groups)) - measured:
        yield f"{count(nothing, 'domain')} without anything measured left out"
    num_questions = result.totals["num_questions"]
    for each in measures:
        missing = num_questions - result.counts[each.metric]
        title = each.title(result.signature.k)
        yield f"{title}: measured on {num_questions - missing:,} of {count(num_questions, 'question')}"
