"""One comparison from end to end: which runs, their rows, the verdict, and the record of it on the candidate's run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from evaltrack.api.compare_context import judge_known
from evaltrack.api.compare_sides import choose_runs, side_of_run
from evaltrack.api.local_commands import Named
from evaltrack.api.question_records import no_records, question_records
from evaltrack.api.repeat_flips import RepeatFlips, asking_again
from evaltrack.api.saved_side import side_of_file
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import AskAgain, compare
from evaltrack.compare.gate import Gate, GateKind, parse_drops
from evaltrack.compare.pairing import Side
from evaltrack.compare.scatter import Record
from evaltrack.errors import UsageError
from evaltrack.evaluation.result import METRICS
from evaltrack.golden.reader import golden_name
from evaltrack.report.comparison.json_form import comparison_json
from evaltrack.report.comparison.markdown import comparison_markdown
from evaltrack.report.comparison.verdict_words import verdict_words
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.run.markdown import comparison_note
from evaltrack.scoring.criteria import parse_criteria
from evaltrack.scoring.metrics import BY_METRIC
from evaltrack.tracking.comparisons import COMPARISON_PAGE, log_comparison
from evaltrack.tracking.history import run_history
from evaltrack.tracking.reader import EvaluationRun, newer_evaluation, shown_side_by_side, side_by_side
from evaltrack.tracking.store import Store, connect


def compare_runs(
    candidate: str | None = None,
    baseline: str | None = None,
    *,
    baseline_file: str | os.PathLike[str] | None = None,
    max_drop: Iterable[str] = (),
    allow_flips: int = 0,
    repeat_flips: RepeatFlips = "auto",
    golden: str | None = None,
    target: str | None = None,
    target_options: Mapping[str, str] | None = None,
    judge: str | Sequence[str] = (),
    require_agreement: float | None = None,
    min_coverage: float | None = None,
    gate: GateKind = "auto",
    ignore: Collection[str] = (),
    require: str = "",
    experiment: str | None = None,
    log: bool = True,
    tracking_uri: str | None = None,
    say: Callable[[str], object] = lambda _: None,
    ui_url: str | None = None,
) -> Comparison:
    """Compare two runs, question by question.

    Args:
        candidate: MLflow run id, its beginning, or the run's name; None takes the newest finished run of the golden set
            that `golden`, baseline or baseline file name.
        baseline: The same of the baseline; None takes the run that was set as the baseline of the golden set.
        baseline_file: A saved ``evaltrack run --output json`` instead of a baseline in MLflow.
        max_drop: Tolerated drops besides the defaults, as ``"mrr=10%"``, ``"judge_score=0.05"``, ``"travel:mrr=2%"``.
        allow_flips: How many questions may go from pass to fail.
        repeat_flips: How often each question that went from pass to fail is asked again at most, of the candidate's
            target and judges, so that what broke is told from what scatters; ``"auto"``: as often as it takes, where
            the target can be asked; 0: not at all. With other gates than ``"auto"`` nothing is asked.
        golden: Golden set whose newest run is compared where no candidate is named, and of what is asked again;
            needed for that, as `target` is, where the candidate was evaluated on another machine: what is executed
            never comes from the tracking store.
        target: Target that is asked again; None takes the one that this machine kept.
        target_options: Its settings.
        judge: Who judges what is asked again; none given takes the judges that this machine kept.
        require_agreement: Least agreement of the judge with people or another judge (quadratic-weighted kappa, see
            `evaltrack.api.judge_agreement`), at the lower end of its interval and over 20 responses or more; below or
            without it its scores inform and do not block.
        min_coverage: Share of the baseline's measured questions that must be compared, in [0, 1]: lost, edited and
            removed ones are not. None lets none be lost, and a tenth be edited or removed.
        gate: ``"auto"``, ``"seed"``, ``"evidence"`` or ``"significant"`` (see `evaltrack.compare.gate.Gate`).
        ignore: Parts of the signature that may differ, such as ``"judge"``; the metrics they affect are left out.
        require: Success criteria to hold both sides against.
        experiment: MLflow experiment to look in; None follows MLflow's own settings.
        log: Whether the comparison is recorded on the candidate's run.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        say: Hears what takes long: which questions are asked again.
        ui_url: Where MLflow's UI is, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.

    Raises:
        UsageError: an option is wrong, there is no baseline, or a run is none of evaltrack's.
        InconclusiveError: the runs are not comparable, or one has not ended.
        TrackingError: the store is out of reach, or a run or its rows are gone.
    """
    if baseline and baseline_file:
        raise UsageError("name a baseline run or a baseline file, not both")
    if allow_flips < 0 or not 0 <= (min_coverage or 0) <= 1:
        raise UsageError("allow_flips is a number from 0, min_coverage one from 0 to 1")
    drops, domain_drops, asked = parse_drops(max_drop, BY_METRIC)
    rules = Gate(drops, domain_drops, allow_flips, min_coverage, gate, asked)
    criteria = parse_criteria(require, METRICS)
    named = Named(golden, target, target_options or {}, (judge,) if isinstance(judge, str) else tuple(judge))
    store = connect(tracking_uri, ui_url)
    saved = side_of_file(Path(baseline_file)) if baseline_file else None
    name = golden_name(golden) if golden else saved.info.signature.golden if saved else None
    chosen, other = choose_runs(store, candidate, baseline, experiment, baseline_is_file=saved is not None, golden=name)
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder, ExitStack() as opened:
        was = saved or side_of_run(store, other, Path(folder))  # type: ignore[arg-type]  # there is one of both
        now = side_of_run(store, chosen, Path(folder))
        known = judge_known(store, chosen, other, require_agreement)
        records = partial(question_records, store, other) if other else no_records
        again = _asking(store, chosen, now, repeat_flips, named, records, opened, say) if gate == "auto" else None
        made = compare(was, now, rules, ignore=ignore, criteria=criteria, again=again, known=known)
    made = replace(made, compare_link=side_by_side(store, chosen, other))
    made = replace(made, history=run_history(store, chosen.experiment_id, chosen.signature.golden))
    if log:
        deltas = {f"delta/{metric.name}": metric.delta for metric in made.metrics if metric.shows_change}
        tags = {
            "verdict": made.verdict,
            "headline": verdict_words(made),
            "baseline": made.baseline.run_id or made.baseline.name,
        }
        texts = {"comparison.md": comparison_markdown(made), COMPARISON_PAGE: comparison_html(made)}
        note = comparison_note(made, chosen.experiment_id, side_by_side=shown_side_by_side(chosen, other))
        log_comparison(store, chosen.run_id, deltas, tags, comparison_json(made), texts, note)
    return made


def _asking(
    store: Store,
    run: EvaluationRun,
    side: Side,
    times: RepeatFlips,
    named: Named,
    records: Callable[[Sequence[str]], Mapping[str, Record]],
    opened: ExitStack,
    say: Callable[[str], object],
) -> AskAgain:
    """Who asks again; nobody by itself where the target was evaluated once more since: it may be another by now."""
    if times == "auto" and (newer := newer_evaluation(store, run)):
        why = f"run {newer.run_id} of the same target is newer, and its code may differ; --repeat-flips N asks it"
        return AskAgain(why_not=why)
    return asking_again(run, side, times, named, records, opened, say)
