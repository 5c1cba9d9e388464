"""What a run holds besides its rows: reports, verdicts, its metrics and its description."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from evaltrack.evaluation.logged_metrics import logged_metrics
from evaltrack.evaluation.plan import Plan
from evaltrack.evaluation.result import RunResult
from evaltrack.report.html.run_page import LISTED, Around, run_html
from evaltrack.report.run.json_form import RESULT_COLUMNS, evaluation_json, run_summary
from evaltrack.report.run.markdown import run_note, with_own_note
from evaltrack.report.run.reasoning import reasoning_page, verdict_lines
from evaltrack.system.memory import give_back
from evaltrack.system.result_files import write_result_file
from evaltrack.tracking.runs import OpenRun
from evaltrack.tracking.store import Store
from evaltrack.tracking.writer import REPORT, RunWriter


def log_reports(plan: Plan, store: Store, run: OpenRun, writer: RunWriter, result: RunResult) -> None:
    """Log all of it; after the rows, which it reads.

    Raises:
        TrackingError: the store refused.
        InconclusiveError: the user's own copy of `evaluation.json` cannot be written.
    """
    evaluation = partial(_evaluation, plan, writer, result)
    writer.log_text("evaluation.json", evaluation())
    _log_verdicts(plan, writer)
    if result.totals["num_questions"] > LISTED:
        give_back()  # the page takes the most of all, and stands beside what was freed
    writer.log_text(REPORT, [run_html(result, writer.rows, _around(plan, store, run, writer))])
    note = with_own_note(plan.settings.note, run_note(result, len(plan.settings.note)))
    metrics = logged_metrics(result, held=run.held)
    late = {} if "model" in run.params else {"model": result.signature.model}
    writer.log_summary(metrics, run_summary(result), note, plan.tags(result.signature), late)
    if plan.settings.evaluation_json:
        _write(Path(plan.settings.evaluation_json), evaluation(), run)


def _evaluation(plan: Plan, writer: RunWriter, result: RunResult) -> Iterable[str]:
    return evaluation_json(result, str(plan.golden.path), writer.plain_rows(RESULT_COLUMNS))


def _write(path: Path, pieces: Iterable[str], run: OpenRun) -> None:
    """Write the user's own copy of `evaluation.json`."""
    write_result_file(path, pieces, f"it is in MLflow run {run.run_id}, as the artifact evaluation.json")


def _log_verdicts(plan: Plan, writer: RunWriter) -> None:
    if not plan.judges:
        return
    for number, judge in enumerate(plan.judges, start=1):
        one_of_many = f"-{number}" if len(plan.judges) > 1 else ""
        writer.log_text(f"judge/verdicts{one_of_many}.jsonl", verdict_lines(writer.rows(), judge.name))
    writer.log_text("judge/reasoning.md", reasoning_page(writer.rows()))


def _around(plan: Plan, store: Store, run: OpenRun, writer: RunWriter) -> Around:
    """What the page shows besides the result."""
    return Around(
        name=run.name,
        traces=writer.traced(plan.traces),
        trace_link=store.trace_link(run.experiment_id, run.run_id),
    )
