from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.metrics.anchors import misfits
from evaltrack.metrics.rubric import DIMENSION_WEIGHTS
from evaltrack.records import Observed
from tests.files import data, put
from tests.judging import RESPONSES, SHOWCASE
from tests.metrics.test_rubric import WORKED
from tests.metrics.test_rubric import observed as worked_example


def observed(hypotheses: int = 5, shifts: int = 4, **grades: float) -> Observed:
    """The worked example of the rubric, with other counts and grades."""
    dimensions = dict(zip(DIMENSION_WEIGHTS, WORKED, strict=True)) | grades
    return worked_example(tuple(dimensions.values()), hypotheses=hypotheses, shifts=shifts, confidence=None)


@pytest.mark.parametrize(
    ("given", "allowed"),
    data("metrics.json")["a_count_bounds_its_grade"],
)
def test_a_count_bounds_its_grade(given: dict[str, Any], allowed: bool) -> None:
    """From above by what one anchor more would be; a grade of 0 is for (almost) no count."""
    found = list(misfits(observed(**given)))
    assert (found == []) == allowed
    if not allowed:
        dimension = "h_count" if "h_count" in given else "oscillation"
        assert found[0].startswith(f"{dimension} is {given[dimension]:g}, but ")


def test_verdicts_from_a_file_count_as_they_are_and_the_run_says_which_contradict_themselves(
    store_uri: str, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in (RESPONSES / "strong.verdicts.jsonl").read_text().splitlines()]
    for row in rows[:4]:
        row["dimensions"]["h_count"], row["hypotheses"] = 8, 1
    verdicts = tmp_path / "verdicts.jsonl"
    put(verdicts, rows)
    made = run_eval(
        SHOWCASE,
        target=f"recorded:{RESPONSES / 'strong.jsonl'}",
        judge=f"recorded:{verdicts}",
        rubric="reasoning",
        tracking_uri=store_uri,
        traces="off",
    )
    named = ", ".join(f"{row['id']} (h_count is 8, but with 1 hypothesis it is below 5)" for row in rows[:3])
    said = f"4 verdicts give a grade that its own count does not allow, and counts as it is: {named}, …"
    assert said in made.notes
    assert made.totals["num_errors"] == 0
    assert made.rows[0]["h_count"] == 8
