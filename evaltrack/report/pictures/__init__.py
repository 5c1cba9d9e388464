"""The pictures of a run, as SVG: what they need is gathered in one pass over its rows, in space that does not grow.

What was not measured is in no picture, and each says how many that are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.rubric import PASS_SCORE
from evaltrack.report.pictures.domains import domains_svg
from evaltrack.report.pictures.judge_scores import JudgeScores
from evaltrack.report.pictures.measure import JUDGED, REASONED, RECALL, first_measured
from evaltrack.report.pictures.ranks import Ranks
from evaltrack.report.pictures.reasoning import Calibration, dimensions_svg
from evaltrack.report.pictures.tokens import TokenPoints

PICTURE_COLUMNS = (
    *("id", "expected", "by_title", "by_passage", "passed", "trials", "claimed_band", "earned_band"),
    *(measure.column for measure in (RECALL, JUDGED, REASONED)),
    *("reciprocal_rank", "num_tokens"),
    *(f"sources.list.element.{name}" for name in ("chunk_id", "title", "text_digest", "finds")),
)
"""The columns of a row that the pictures read: all but its texts."""


def run_pictures(result: RunResult, rows: Iterable[Mapping[str, Any]], pass_threshold: float) -> dict[str, str]:
    """The pictures that have something to show, by file name.

    Args:
        result: The run.
        rows: All its rows as columns, at least `PICTURE_COLUMNS`; they are read once, and none is held.
        pass_threshold: Overall score of an answer from which it passes, in [0, 1]. Reasoning has its own.
    """
    k, judged = result.signature.k, first_measured(result.metrics, REASONED, JUDGED)
    threshold = PASS_SCORE if judged is REASONED else pass_threshold
    pictures: dict[str, Ranks | JudgeScores | TokenPoints | Calibration] = {
        "ranks.svg": Ranks(k),
        "judge_scores.svg": JudgeScores(judged, threshold, panel=bool(result.by_judge)),
        "tokens.svg": TokenPoints(judged or first_measured(result.metrics, RECALL), k),
    }
    if judged is REASONED:
        pictures["calibration.svg"] = Calibration()
    for row in rows:
        for picture in pictures.values():
            picture.add(row)
    svgs = {"domains.svg": domains_svg(result), **{name: picture.svg() for name, picture in pictures.items()}}
    if judged is REASONED:
        svgs["dimensions.svg"] = dimensions_svg(result.metrics, result.counts)
    return {name: svg for name, svg in svgs.items() if svg}
