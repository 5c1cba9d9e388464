"""A run as Markdown: the description that MLflow shows on the run's page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from evaltrack.compare.comparison import Comparison
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.aggregate import LEVELS, worst_domains
from evaltrack.records.amount import count
from evaltrack.report.comparison.culprit_words import behind_line
from evaltrack.report.comparison.headline import verdict_sentence
from evaltrack.report.comparison.rules import reasons, reruns_words
from evaltrack.report.words import (
    AIM_TITLES,
    aim_cells,
    clip,
    cost_words,
    criterion_words,
    errors_words,
    first_errors,
    first_errors_words,
    group_metrics,
    headlines_first,
    judge_words,
    low_metrics,
    metric_number,
    metric_title,
    missed_words,
    model_words,
    one_line,
    questions_words,
)
from evaltrack.tracking.tags import ROWS
from evaltrack.tracking.writer import TABLE, TABLE_ROWS

SHOWN = 10
"""Questions of a kind, and domains."""

NOTE_LIMIT = 7000
"""Characters; MLflow holds 8,000 of a tag, and a line cut in two may be anything. The rest is for a comparison."""

COMPARISON_LIMIT = 900
"""Characters of what a comparison adds."""


def run_note(result: RunResult, taken: int = 0) -> str:
    """A short report: what was evaluated and how much passed, where to read on, the metrics with their counts, the
    worst domains, the first misses and errors.

    Args:
        result: The run.
        taken: Characters of the description that are another's.
    """
    lines = [*_title(result), *_links(result), *_head(result), "", *_metrics(result), *_aims(result)]
    lines += _groups(result)
    return within([*lines, *_misses(result), *_errors(result)], NOTE_LIMIT - taken)


def with_own_note(own: str, note: str) -> str:
    """A description that begins with a note of the user's own."""
    return f"{own.rstrip()}\n\n{note}" if own.strip() else note


def within(lines: Iterable[str], limit: int, rest: str = "\n… more stands in the report\n") -> str:
    """The lines that fit, whole, and a last one that says so where some do not."""
    note = ""
    for line in lines:
        if len(note) + len(line) + 1 > limit - len(rest):
            return note + rest
        note += f"{line}\n"
    return note


def plain(text: str, limit: int = 160) -> str:
    """Foreign text as text: on one line, bounded, with everything Markdown or HTML would read escaped."""
    line = one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"([\\`*_{}\[\]()#+!|~:@-])", r"\\\1", line)
    return re.sub(r"^(\d+)\.", r"\1\\.", line)


def described(text: str, limit: int = 160) -> str:
    """As `plain`, for MLflow's descriptions, which show a backslash before a colon or an at sign, and make a link of
    what begins with ``www``.
    """
    line = re.sub(r"\\:(?=\s|$)", ":", plain(text, limit)).replace("\\:", "&#58;").replace("\\@", "&#64;")
    return re.sub(r"(?i)\b(www)\.", r"\1&#46;", line)


def _title(result: RunResult) -> Iterator[str]:
    signature = result.signature
    yield f"### {described(signature.golden)}: {_passed(result)}, k = {signature.k}"
    if result.status == "KILLED":
        yield "\n**Stopped before the end: these are the questions that were done.**"


def _head(result: RunResult) -> Iterator[str]:
    """Who was asked, who judged, and what is worth knowing."""
    totals, signature = result.totals, result.signature
    yield ""
    model = described(model_words(signature))
    questions = described(questions_words(result), 500)
    yield f"Target `{clip(signature.target.replace('`', ''), 300)}`{model} on {questions}."
    if totals["num_errors"]:
        yield f"**{errors_words(totals)}.**"
    yield ""
    yield described(judge_words(result), 400)
    if cost := cost_words(result):
        yield f"\nCost: {cost}."
    for note in result.notes:
        yield f"\n{described(note, 400)}"
    for checked in result.criteria:
        yield f"\n- {described(criterion_words(checked))}"


def _passed(result: RunResult) -> str:
    """How many questions passed, of how many that could."""
    num_questions = result.totals["num_questions"]
    if "pass_rate" not in result.metrics:
        return f"none of {count(num_questions, 'question')} could pass or fail"
    measured = result.counts["pass_rate"]
    passed = round(result.metrics["pass_rate"] * measured)
    missing = f" ({num_questions - measured:,} more could not be measured)" if num_questions > measured else ""
    return f"{passed:,} of {count(measured, 'question')} passed{missing}"


def _links(result: RunResult) -> Iterator[str]:
    """Where to read on, relative to MLflow's UI, so that it is right under whatever address that is read."""
    here = f"#/experiments/{result.experiment_id}"
    files = f"{here}/runs/{result.run_id}/artifacts"
    yield ""
    yield " · ".join(
        (
            f"[Report]({files}/report.html)",
            f"[All questions]({files}/{_table(result)})",
            f"[Compare with other runs]({here}/evaluation-runs?selectedRunUuid={result.run_id})",
            f"[evaltrack ui](evaltrack/#/golden/{result.experiment_id}/{quote(result.signature.golden, safe='')})",
        )
    )


def _table(result: RunResult) -> str:
    """The artifact that holds every question: MLflow's table, or above its limit the file."""
    return TABLE if result.totals["num_questions"] <= TABLE_ROWS else ROWS


def _metrics(result: RunResult) -> Iterator[str]:
    k = result.signature.k
    yield "| metric | value | questions |"
    yield "| --- | ---: | ---: |"
    for name, value in headlines_first(result.means):
        best = result.metrics.get(f"{name}.max")
        reach = f" (at most {metric_number(name, best)})" if best is not None else ""
        yield f"| {metric_title(name, k)} | {metric_number(name, value)}{reach} | {result.counts[name]} |"
    for hint in low_metrics(result.metrics, result.signature):
        yield f"\n{hint}"


def _aims(result: RunResult) -> Iterator[str]:
    """What reasoning should reach over naive single-shot answers."""
    if rows := list(aim_cells(result)):
        yield from ("", f"| {' | '.join(AIM_TITLES)} |", "| --- |" + " ---: |" * (len(AIM_TITLES) - 1))
        yield from (f"| {' | '.join(cells)} |" for cells in rows)


def _groups(result: RunResult) -> Iterator[str]:
    """The worst domains, and the difficulties."""
    names = group_metrics(result)
    if not names:
        return
    yield ""
    yield "| group | " + " | ".join(metric_title(n, result.signature.k) for n in names) + " |"
    yield "| --- |" + " ---: |" * len(names)
    domains = worst_domains(result.groups)
    levels = [(name, means) for name, means in result.groups.items() if name in LEVELS]
    for group, metrics in (*domains[:SHOWN], *levels):
        cells = [f"{metric_number(n, metrics[n][0])} ({metrics[n][1]})" if n in metrics else "–" for n in names]
        yield f"| {described(clip(group))} | " + " | ".join(cells) + " |"
    if len(domains) > SHOWN:
        yield f"\nThe {SHOWN} worst of {count(len(domains), 'domain')}; `summary.json` holds them all."


def _misses(result: RunResult) -> Iterator[str]:
    if result.missed:
        yield from ("", "**Did not pass**", "")
    for row in result.missed[:SHOWN]:
        why = described(missed_words(row, result.signature.k))
        yield f"- {described(row.question.id)}: {described(row.question.question)} ({why})"
    yield from _more(result, len(result.missed))


def _errors(result: RunResult) -> Iterator[str]:
    if result.errors:
        yield from ("", f"**Errors**{first_errors_words(result)}", "")
    for line in first_errors(result)[:SHOWN]:
        yield f"- {described(line, 400)}"
    yield from _more(result, len(result.errors))


def _more(result: RunResult, total: int) -> Iterator[str]:
    if total > SHOWN:
        kind = "table" if _table(result) == TABLE else "file"
        yield f"- … the {kind} `{_table(result)}` holds them all"


def comparison_note(comparison: Comparison, experiment_id: str, *, side_by_side: bool) -> str:
    """What the description of the candidate's run says of its last comparison: verdict, reasons, and where to read on.

    Args:
        comparison: What was found.
        experiment_id: The experiment of the candidate; its links are relative to MLflow's UI.
        side_by_side: Whether MLflow's own view shows both runs.
    """
    now, was = comparison.candidate, comparison.baseline
    here = f"#/experiments/{experiment_id}"
    links = [f"[Comparison]({here}/runs/{now.run_id}/artifacts/comparison.html)"]
    if side_by_side:
        query = f"selectedRunUuid={now.run_id}&compareToRunUuid={was.run_id}"
        links.append(f"[Side by side]({here}/evaluation-runs?{query})")
    against = f"against {described(clip(was.name, 80))}, {count(comparison.num_common, 'common question')}"
    lines = [f"**{verdict_sentence(comparison)}** {against} · {' · '.join(links)}"]
    lines += [f"\n{described(behind, 500)}"] if (behind := behind_line(comparison)) else []
    lines += [f"\n- {described(reason, 200)}" for reason in reasons(comparison)]
    lines += [f"\n{described(chance, 500)}"] if (chance := reruns_words(comparison)) else []
    return within(lines, COMPARISON_LIMIT)
