"""Each kind of page is made once, of a few rows, before anybody asks: what libraries do at first is done then."""

from __future__ import annotations

import tempfile
from pathlib import Path

from evaltrack.compare.histories import HistoryRun
from evaltrack.compare.run_info import RunInfo
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response, Row, Signature, Source, Verdict
from evaltrack.report.html.page import Back
from evaltrack.rows.table import TableWriter
from evaltrack.server.page_jobs import DriftJob, Job, MatrixJob, OutcomesJob, QuestionJob

QUESTIONS, K = 24, 5
_SIGNATURE = Signature(golden="rehearsal", golden_digest="0", k=K, target="rehearsal", judge="rehearsal")


def rehearse() -> None:
    """Make the pages, and throw them away."""
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as name:
        folder = Path(name)
        files = tuple(folder / f"{number}.parquet" for number in (0, 1))
        for number, file in enumerate(files):
            _write(file, number)
        runs = tuple(HistoryRun(str(number), str(number)) for number in (0, 1))
        outcomes = folder / "outcomes.jsonl"
        outcomes.write_text(OutcomesJob(tuple((run, QUESTIONS) for run in runs)).page(files), encoding="utf-8")
        was, now = (RunInfo(run.run_id, run.name, _SIGNATURE, num_questions=QUESTIONS) for run in runs)
        jobs: list[tuple[Job, tuple[Path, ...]]] = [
            (DriftJob(was, now, None, Back(())), files),
            (MatrixJob(runs), (outcomes, files[1])),
            (QuestionJob(runs, "1", K), files),
        ]
        for job, own in jobs:
            job.page(own)


def _write(path: Path, number: int) -> None:
    """The rows of a run, in which other questions fail than in the run before."""
    writer = TableWriter(path, K)
    for position in range(QUESTIONS):
        question = Question(id=str(position), question="?", domain="d", expected_chunks=("a",))
        finds = position % 5 != number
        sources = tuple(Source(chunk_id=key, text=f"text of {key}") for key in ("a" if finds else "x", "b"))
        response = Response(answer=f"It is so. And {number}.", sources=sources)
        verdicts = (Verdict(judge="rehearsal", reasoning="because", overall_score=0.9 - 0.2 * finds),)
        made = measure(question, response, Rules(K), verdicts)
        row = Row(
            position=position,
            question=question,
            started_at=0.0,
            seconds=0.1,
            response=response,
            verdicts=verdicts,
            scores=made.scores,
            unmeasured=made.unmeasured,
            passed=made.passed,
            duplicates=made.duplicates,
            finds=made.finds,
        )
        writer.add(row)
    writer.close()
