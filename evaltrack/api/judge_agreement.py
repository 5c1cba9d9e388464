"""Compare a run's verdicts with other verdicts on the same responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaltrack.compare.judge_agreement import (
    COUNTED,
    SCALES,
    JudgesAgreement,
    PairedVerdicts,
    Values,
    tolerances_of,
)
from evaltrack.errors import UsageError
from evaltrack.judges.recorded import RecordedJudge
from evaltrack.metrics.rubric import RubricWeights, panel_mean, reasoned
from evaltrack.records import Signature, Verdict
from evaltrack.rows.restore import verdicts_of
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking.reader import EvaluationRun, named_evaluation, read_rows
from evaltrack.tracking.store import Store, connect_to_read


def judges_agreement(
    run_id: str,
    *,
    labels: str | Path | None = None,
    other_run: str | None = None,
    tolerance: float | None = None,
    needed: float = 1.0,
    resamples: int = 2000,
    seed: int = 0,
    tracking_uri: str | None = None,
) -> JudgesAgreement:
    """How well the judge of a run agrees with other verdicts on the same questions; stored as a tag of the run.

    Args:
        run_id: The MLflow run.
        labels: Verdicts of people or of another judge, in the form that a ``recorded:`` judge reads.
        other_run: Another run, instead; only questions count to which both got the same answer.
        tolerance: Difference up to which they agree on a grade, as a share of its scale: 0.05 is 5 of 100 points. None:
            0.05 of the reasoning score, and 0.1 of its dimensions and of all grades of answers.
        needed: Share of the responses that have to lie within it for both judges to agree on the score.
        resamples: Bootstrap resamples for the intervals.
        seed: Of the bootstrap.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        UsageError: neither or both are named, a share is not one, the run was not judged, or nothing is judged on both
            sides.
        TrackingError: the store is out of reach, or a run or its rows are gone.
    """
    if (labels is None) == (other_run is None):
        raise UsageError("name the labels, or another run, to hold the judge against")
    _check_shares(tolerance=tolerance, share=needed)
    store = connect_to_read(tracking_uri)
    run, rows = _of_run(store, run_id)
    signature = run.signature
    own = {key: _values(verdicts_of(row), signature) for key, row in rows.items()}
    if labels is not None:
        other, others = _of_file(Path(labels), signature)
    else:
        other, others = _of_other(store, str(other_run), signature, rows)
    pairs = PairedVerdicts(signature.rubric, tolerances_of(signature.rubric, tolerance), own, others)
    numbers, label_figures = pairs.figures(resamples, seed)
    if not any(figures.n for figures in (*numbers.values(), *label_figures.values())):
        raise UsageError(f"no question was judged on both sides: {signature.judge} and {other}")
    within = pairs.within(numbers, needed)
    return JudgesAgreement(
        run.run_id,
        signature.judge,
        other,
        signature.rubric,
        numbers,
        label_figures,
        tuple(pairs.apart()),
        pairs.tolerances,
        within,
    )


def _check_shares(**shares: float | None) -> None:
    """Refuse what is no share."""
    for name, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            raise UsageError(f"{name} is {share:g}; write a number from 0 to 1")


def _of_run(store: Store, run_id: str) -> tuple[EvaluationRun, dict[str, StoredRow]]:
    """The run, and its rows that were judged; where one of a panel failed there is no verdict of it."""
    run = named_evaluation(store, run_id)
    rows = read_rows(store, run, ["id", "digest", "answer", "error", "verdicts"])
    judged_rows = {row.id: row for row in rows if row.verdicts and not row.error}
    if not judged_rows:
        raise UsageError(f"run {run_id} holds no verdict; evaluate with `judge=` first")
    return run, judged_rows


def _of_other(
    store: Store, run_id: str, signature: Signature, own: Mapping[str, StoredRow]
) -> tuple[str, dict[str, Values]]:
    """Another run's verdicts on the same questions and answers, scored as the first run's are."""
    run, rows = _of_run(store, run_id)
    if run.signature.rubric != signature.rubric:
        rubric = run.signature.rubric
        raise UsageError(f"run {run_id} was judged by the rubric {rubric}, the other by {signature.rubric}")
    both = {key: row for key, row in rows.items() if key in own and _same_answer(own[key], row)}
    if not both:
        raise UsageError(f"run {run_id} judged no answer that the other has; judge the same responses")
    values = {key: _values(verdicts_of(row), signature) for key, row in both.items()}
    return f"{run.signature.judge} (run {run.run_id[:8]})", values


def _same_answer(one: StoredRow, other: StoredRow) -> bool:
    return (one.digest, one.answer) == (other.digest, other.answer)


def _of_file(path: Path, signature: Signature) -> tuple[str, dict[str, Values]]:
    recorded = RecordedJudge(path)
    return recorded.name, {key: _values([verdict], signature) for key, verdict in recorded.verdicts.items()}


def _values(verdicts: Sequence[Verdict], signature: Signature) -> Values:
    """Everything comparable in what was said of one response; of a panel the mean, of labels the first."""
    if signature.rubric == "reasoning":
        return _reasoning_values(verdicts, signature)
    values: dict[str, Any] = {
        name: panel_mean([getattr(verdict, name) for verdict in verdicts]) for name in SCALES["answer"]
    }
    score = values["overall_score"]
    values["outcome"] = None if score is None else "pass" if score >= signature.pass_threshold else "fail"
    values["declined"] = verdicts[0].declined
    return values


def _reasoning_values(verdicts: Sequence[Verdict], signature: Signature) -> Values:
    observed = [verdict.observed for verdict in verdicts if verdict.observed is not None]
    if not observed or len(observed) < len(verdicts):
        return {}  # as in the run itself: a mean over fewer judges is another measure
    scores, led_to = reasoned(observed, RubricWeights.parse(signature.weights))
    return {
        **{name: scores[name] for name in (*SCALES["reasoning"], *COUNTED["reasoning"])},
        "tier": led_to.tier,
        "hard_fails": "+".join(led_to.hard_fails) or "none",
        "mode": led_to.mode,
        "crux_treatment": observed[0].crux_treatment,
        "uncertainty_treatment": observed[0].uncertainty_treatment,
    }
