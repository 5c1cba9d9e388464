"""Makes the reports, verdicts, metrics, notes and description of a run, and logs them with `tracking.writer`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evaltrack.errors import Guide
from evaltrack.evaluation.journal import Journal, Reuse
from evaltrack.evaluation.plan import Plan
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.aggregate import Ledger, Summary, domain_of
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.base import count, first_of, verb
from evaltrack.records.run import NOT_STATED, RECORDED_MODEL
from evaltrack.report.html.run_page import LISTED, Around, run_html
from evaltrack.report.run_text import (
    OUTCOME_COLUMNS,
    RESULT_COLUMNS,
    evaluation_json,
    outcomes_json,
    reasoning_page,
    run_note,
    run_summary,
    verdict_lines,
    with_own_note,
)
from evaltrack.system.files import write_result_file
from evaltrack.system.processes import release_free_memory
from evaltrack.tracking.runs import OpenRun
from evaltrack.tracking.store import Store
from evaltrack.tracking.tags import MAIN, first_ones_first, names_within
from evaltrack.tracking.writer import OUTCOMES, REPORT, RunWriter


def log_reports(plan: Plan, store: Store, run: OpenRun, writer: RunWriter, result: RunResult) -> None:
    """Log reports, verdicts, metrics and the description of a run. The rows must be logged before.

    Raises:
        TrackingError: the store refused.
        InconclusiveError: the user's own copy of `evaluation.json` cannot be written.
    """

    def evaluation() -> Iterable[str]:
        return evaluation_json(result, str(plan.golden.path), writer.plain_rows(RESULT_COLUMNS))

    writer.log_text("evaluation.json", evaluation())
    writer.log_text(OUTCOMES, [outcomes_json(writer.plain_rows(OUTCOME_COLUMNS))])
    _log_verdicts(plan, writer)
    if result.totals["num_questions"] > LISTED:
        release_free_memory()  # before the page, which needs the most memory
    trace_link = store.trace_link(run.experiment_id, run.run_id)
    around = Around(name=run.name, traces=writer.traced, trace_link=trace_link)
    writer.log_text(REPORT, [run_html(result, writer.rows, around)])
    note = with_own_note(plan.settings.note, run_note(result, len(plan.settings.note)))
    metrics, _ = logged_metrics(result)
    late = {} if "model" in run.params else {"model": result.signature.model}
    writer.log_summary(metrics, run_summary(result), note, plan.tags(result.signature), late)
    if plan.settings.evaluation_json:
        where = f"it is in MLflow run {run.run_id}, as the artifact evaluation.json"
        write_result_file(Path(plan.settings.evaluation_json), evaluation(), where)


def _log_verdicts(plan: Plan, writer: RunWriter) -> None:
    if not plan.judges:
        return
    for number, judge in enumerate(plan.judges, start=1):
        one_of_many = f"-{number}" if len(plan.judges) > 1 else ""
        writer.log_text(f"judge/verdicts{one_of_many}.jsonl", verdict_lines(writer.rows(), judge.name))
    writer.log_text("judge/reasoning.md", reasoning_page(writer.rows()))


def run_notes(
    plan: Plan, journal: Journal, hints: Sequence[str | None], ledger: Ledger, summary: Summary
) -> tuple[str, ...]:
    """Return the notes of the plan, then the `hints`, then the notes of the journal, the responses and the costs."""
    whole = summary.num_questions == len(plan.golden)
    own = [*hints, journal.problem, _reuse_words(journal.reuse, whole=whole), *_of_responses(ledger, summary)]
    return (*plan.notes(), *(note for note in own if note), *_of_costs(plan, ledger))


def _of_responses(ledger: Ledger, summary: Summary) -> Iterator[str]:
    if ledger.num_empty:
        those = f"{ledger.num_empty:,} of {count(ledger.num_responses, 'response')}"
        what = f"{those} {verb(ledger.num_empty, 'has', 'have')} neither an answer nor sources"
        cure = "return an answer, a list of sources or a mapping with `answer`, `sources` or both"
        yield f"{what}; {cure}. {Guide.FUNCTION.reference}"
    if empty := ledger.num_empty_answers:
        those = f"{empty:,} of {count(ledger.num_responses, 'response')} {verb(empty, 'has', 'have')} an empty answer"
        beside = f"{those} but other fields" if ledger.num_empty else those
        yield f"{beside}, which never passes where it is judged; leave `answer` out where the target only retrieves"
    if ledger.num_unanswered and summary.num_judged:
        number = ledger.num_unanswered
        yield f"{count(number, 'response')} had no answer, and {verb(number, 'is', 'are')} in no metric of a judge"
    if ledger.unread:
        names = ", ".join(f"{name} (in {number:,})" for name, number in ledger.unread.most_common(UNREAD_NAMED))
        cure = "if one of them says that the target failed, return it as `error`"
        yield f"responses have fields that are not read: {shown_text(names)}; {cure}"


def _of_costs(plan: Plan, ledger: Ledger) -> Iterator[str]:
    for whose, price in (("target", plan.settings.prices), ("judge", plan.settings.judge_prices)):
        reports, calls = ledger.reports[whose], ledger.calls[whose]
        if price and reports < calls:
            of = f"{reports:,} of {count(calls, 'call')}"
            yield f"the cost of the {whose} is unknown: tokens were reported for {of}"


def _reuse_words(reuse: Reuse, *, whole: bool) -> str | None:
    """Return a sentence on the reuse of the journal's rows; None if it had none."""
    if not reuse.num_rows:
        return None
    counts = {
        "rerun because they had failed": reuse.retried,
        "dropped because their question was edited or is gone": reuse.dropped if whole else 0,
    }
    rest = "".join(f", {number:,} {what}" for what, number in counts.items() if number)
    return f"resumed: {reuse.reused:,} of {reuse.num_rows:,} stored rows kept{rest}"


def model_words(ledger: Ledger, plan: Plan) -> str:
    """Return the models that the responses name, else that the answers are recorded or that no model is stated."""
    names = first_of(sorted(ledger.models), 10)
    return shown_text(names) or (
        RECORDED_MODEL if plan.signature.target.startswith(("recorded:", "traces:")) else NOT_STATED
    )


UNREAD_NAMED = 20
"""The most unread fields of responses that a run names."""

LIMIT = 600
"""Largest number of metrics of a run; MLflow takes 1,000 in one call, and its charts slow down before that."""


def logged_metrics(result: RunResult, limit: int = LIMIT) -> tuple[dict[str, float], str | None]:
    """Return the MLflow metrics of a run: main means, the user's scores, questions and errors, and means of domains.

    Domains are added from the largest on until `limit` is reached; a note says how many are left out, if any.
    `summary.json` holds all means with their counts.
    """
    own = result.table.own_names
    logged = {name: result.metrics[name] for name in first_ones_first(result.metrics) if name in MAIN or name in own}
    logged |= {name: result.totals[name] for name in ("num_questions", "num_errors")}
    groups = {domain: means for group, means in result.groups.items() if (domain := domain_of(group)) is not None}
    parts = names_within(groups)
    for number, (domain, means) in enumerate(groups.items()):
        added = {f"domain/{parts[domain]}/{name}": means[name][0] for name in first_ones_first(means)}
        if len(logged) + len(added) > limit:
            those = f"{number:,} of {len(groups):,} domains, the largest"
            return logged, f"MLflow's metrics hold {those}; summary.json holds them all"
        logged |= added
    return logged, None
