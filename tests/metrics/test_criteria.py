from __future__ import annotations

import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.result import METRICS
from evaltrack.metrics.criteria import NAMED, Checked, Criterion, check_criteria, parse_criteria
from tests.files import data

FORMS = "write minimum, target, good, functional, or"
KNOWN = frozenset({"recall_at_k", "mrr", "judge_score", "hit_rate"})


def written(text: str) -> list[str]:
    return [str(criterion) for criterion in parse_criteria(text, METRICS)]


@pytest.mark.parametrize(
    ("name", "criteria"),
    [
        ("minimum", ["hit_rate > 0.8", "mrr > 0.7", "judge_score > 0.75"]),
        ("target", ["hit_rate > 0.9", "mrr > 0.85", "judge_score > 0.85", "combined_score > 1.2"]),
        ("good", ["recall_at_k > 0.8", "precision_at_k > 0.6", "mrr > 0.7"]),
        ("functional", ["tool_invoked >= 1", "tools_coordinated >= 1", "sources_included >= 1"]),
    ],
)
def test_named_criteria(name: str, criteria: list[str]) -> None:
    assert written(name) == criteria
    assert name in NAMED


@pytest.mark.parametrize(("text", "criteria"), data("metrics.json")["bounds"])
def test_bounds(text: str, criteria: list[tuple[str, str, float]]) -> None:
    expected = tuple(Criterion(*each) for each in criteria)
    assert parse_criteria(text, KNOWN) == parse_criteria(text, dict.fromkeys(KNOWN)) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        *[(part, part) for part in ("nonsense", "mrr", "mrr=0.5", "mrr==0.5", "mrr=>0.5", "mrr>", ">0.5", "0.5")],
        ("mrr>0.5>0.6", "mrr>0.5>0.6"),
        ("mrr>nan", "mrr>nan"),
        ("mrr>0,5", "5"),
        *[(part, part) for part in ("mrr>1.2.3", "mrr>--1", "mrr>1e999")],
        ("mrr>0.5;hit_rate>0.5", "mrr>0.5;hit_rate>0.5"),
    ],
)
def test_what_is_no_criterion(text: str, part: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_criteria(f"minimum, {text}", METRICS)
    assert str(raised.value) == f"`require=`: `{part}`: {FORMS} bounds like recall_at_k>=0.8"


@pytest.mark.parametrize("text", [",", "\n"])
def test_separators_alone_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"^`require=`: `{text}` holds no criterion; {FORMS}"):
        parse_criteria(text, METRICS)


@pytest.mark.parametrize(("name", "hint"), data("metrics.json")["unknown_metrics"])
def test_an_unknown_metric(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_criteria(f"mrr>0.5,{name}>0.8", KNOWN)
    assert str(raised.value) == f"`require=`: no metric `{name}`; {hint}"


@pytest.mark.parametrize(
    ("sign", "below", "at", "above"),
    [(">", False, False, True), (">=", False, True, True), ("<", True, False, False), ("<=", True, True, False)],
)
def test_exactly_the_bound(sign: str, below: bool, at: bool, above: bool) -> None:
    criterion = Criterion("mrr", sign, 0.8)
    exactly = (0.7999999999999999, 0.8 - 5e-10, 0.8, 0.8000000000000002, 0.8 + 5e-10)
    for value, met in ((0.8 - 1e-8, below), *((value, at) for value in exactly), (0.8 + 1e-8, above)):
        assert check_criteria((criterion,), {"mrr": value}) == (Checked(criterion, value, met),)


def test_each_criterion_is_held_against_the_run() -> None:
    """Criteria are checked each by itself, in their order; a metric of 0 was measured."""
    criteria = parse_criteria("minimum,mrr>=0,combined_score_best>1.2", METRICS | {"combined_score_best"})
    checked = check_criteria(criteria, {"hit_rate": 0.80, "mrr": 0.0, "combined_score_best": 1.3})
    assert [one.criterion for one in checked] == list(criteria)
    values = [(0.80, False), (0.0, False), (None, None), (0.0, True), (1.3, True)]
    assert [(one.value, one.met) for one in checked] == values


@pytest.mark.parametrize(
    ("text", "metrics", "state"), data("metrics.json")["a_bound_beyond_what_can_be_reached_is_neither_met_nor_missed"]
)
def test_a_bound_beyond_what_can_be_reached_is_neither_met_nor_missed(
    text: str, metrics: dict[str, float], state: str
) -> None:
    (checked,) = check_criteria(parse_criteria(text, METRICS), metrics)
    assert checked.state == state
    assert (checked.met is None) == state.startswith("not ")
    assert checked.reachable == (metrics["precision_at_k.max"] if state == "not reachable" else None)
