from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.metrics.rubric import (
    ANCHORS,
    DIMENSION_WEIGHTS,
    TABLES,
    TIERS,
    misfits,
    reasoning_rubric,
)
from evaltrack.records import Observed
from tests.files import data, put
from tests.judging import RESPONSES, SHOWCASE, cli
from tests.metrics.test_rubric import WORKED
from tests.metrics.test_rubric import observed as worked_example


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert cli("rubric", *options) == 0
    return capsys.readouterr().out


def test_the_json_holds_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    """24 anchors, weights that sum to 1, hard fails, coupling, tiers with their action, gates with their bypass."""
    rubric: dict[str, Any] = json.loads(shown(capsys, "--output", "json"))
    assert rubric["schema"] == "evaltrack.rubric/1"
    cells = {each["name"]: each["anchors"] for each in rubric["dimensions"]}
    assert cells == ANCHORS
    assert sum(map(len, cells.values())) == 24
    assert sum(each["weight"] for each in rubric["dimensions"]) == pytest.approx(1)
    assert [each["code"] for each in rubric["hard_fails"]] == ["HF1", "HF2", "HF3", "HF4", "HF5"]
    coupling = [(each["confidence"], each["hypotheses"], each["shifts"]) for each in rubric["coupling"]]
    assert coupling == [(">90%", 5, 4), ("70-90%", 4, 3), ("50-70%", 3, 2), ("<50%", 2, 1)]
    assert rubric["penalties"] == {"1": 10, "2": 25}
    assert [(each["low"], each["high"]) for each in rubric["tiers"]] == [(0, 0), (1, 49), (50, 69), (70, 100)]
    bypasses = ["None", "Manual override with justification", "Acknowledged by the consumer", "None required"]
    assert [each["bypass"] for each in rubric["gates"]] == bypasses
    improvements = {each["metric"]: round(100 * each["improvement"]) for each in rubric["aims"]}
    assert improvements == {"hypotheses": 192, "shifts": 833, "coupling_violation_rate": -78}


def test_the_bounds_that_are_shown_are_those_that_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    rubric = json.loads(shown(capsys, "--output", "json"))
    bounds = {each["name"]: each["below_by_count"] for each in rubric["dimensions"] if each["below_by_count"]}
    assert bounds == {
        "h_count": {"0": 5, "1": 5, "2": 7.5, "3": 10, "4": 10},
        "oscillation": {"0": 5, "1": 7.5, "2": 10, "3": 10},
    }
    for dimension, counts in bounds.items():
        what = "hypotheses" if dimension == "h_count" else "shifts"
        for count, below in counts.items():
            assert list(misfits(observed(**{what: int(count), dimension: below})))
            assert not list(misfits(observed(**{what: int(count), dimension: below - 0.1})))


@pytest.mark.parametrize("output", ["table", "markdown"])
def test_people_are_shown_every_cell(capsys: pytest.CaptureFixture[str], output: str) -> None:
    text = shown(capsys, "--output", output).replace("&lt;", "<").replace("&gt;", ">")
    wanted = [cell for anchors in ANCHORS.values() for cell in anchors.values()]
    wanted += [tier.action for tier in TIERS.values()] + [gate["bypass"] for gate in TABLES["gates"]]
    words = {word for cell in wanted for word in cell.split()}
    assert words - set(text.replace("|", " ").split()) == set()
    assert "+192 %" in text
    assert "A score of 0 without a hard fail" in text
    if output == "markdown":
        assert all(f"| {cell} |" in text for cell in wanted)


def test_python_has_the_same_rubric_with_other_weights_too() -> None:
    rubric = reasoning_rubric("h_count=0.3,oscillation=0.1")
    assert {each["name"]: each["weight"] for each in rubric["dimensions"]}["h_count"] == 0.3
    measures = [each["measures"] for each in rubric["dimensions"]]
    assert (measures[0], len(set(measures))) == ("Hypothesis generation breadth", 8)
    with pytest.raises(UsageError, match="the sum is"):
        reasoning_rubric("crux=0.5")


def observed(hypotheses: int = 5, shifts: int = 4, **grades: float) -> Observed:
    """The worked example of the rubric, with other counts and grades."""
    dimensions = dict(zip(DIMENSION_WEIGHTS, WORKED, strict=True)) | grades
    return worked_example(tuple(dimensions.values()), hypotheses=hypotheses, shifts=shifts, confidence=None)


@pytest.mark.parametrize(("given", "allowed"), data("metrics.json")["a_count_bounds_its_grade"])
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
    target = f"recorded:{RESPONSES / 'strong.jsonl'}"
    asked = {"rubric": "reasoning", "tracking_uri": store_uri, "traces": "off"}
    made = run_eval(SHOWCASE, target=target, judge=f"recorded:{verdicts}", **asked)  # type: ignore[arg-type]
    named = ", ".join(row["id"] for row in rows[:3])
    said = f"the verdicts of 4 questions ({named}, …) hold grades that their own counts do not allow, and are kept: "
    said += "h_count is 8, but with 1 hypothesis it is below 5"
    assert said in made.notes
    assert made.totals["num_errors"] == 0
    assert made.rows[0]["h_count"] == 8
