"""Rules of the gate at their bounds, and what stands behind ranks, tools and shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from evaltrack.compare.causes import causes_of
from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta, Threshold
from evaltrack.compare.differences import by_key
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate, exceeds, parse_drops
from evaltrack.compare.rule_words import RuleWords
from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import BY_METRIC
from evaltrack.records import Failure, Question, Response, Source, ToolCall
from evaltrack.report.comparison.words import drop_words
from tests.compared import found, question, row, rows_of, side

TEN = [question(f"q{number}") for number in range(10)]
TENTH = Threshold(0.1, relative=True)
BROKEN = Failure(kind="target_error", message="no route")


def delta(baseline: float, candidate: float) -> MetricDelta:
    return MetricDelta("mrr", baseline, candidate, 10, None, 0, 0, 10)


@pytest.mark.parametrize(
    ("threshold", "baseline", "candidate", "expected"),
    [
        (Threshold(0.1, relative=True), 0.5, 0.45, False),
        (Threshold(0.1, relative=True), 0.5, 0.449, True),
        (Threshold(0.1, relative=False), 0.5, 0.4, False),
        (Threshold(0.1, relative=False), 0.5, 0.399, True),
        (Threshold(0.1, relative=False), 5.0, 4.8, True),
        (Threshold(0.1, relative=True), -0.5, -0.55, False),
        (Threshold(0.1, relative=True), -0.5, -0.551, True),
        (Threshold(0.0, relative=True), 0.5, 0.5, False),
    ],
)
def test_a_drop_exactly_at_the_threshold_is_tolerated(
    threshold: Threshold, baseline: float, candidate: float, expected: bool
) -> None:
    """A relative one is a share of the size of the baseline's value, an absolute one an amount of the metric."""
    assert exceeds(delta(baseline, candidate), threshold, higher_is_better=True) is expected
    fallen = delta(baseline, candidate)
    assert exceeds(fallen, threshold, higher_is_better=False) is False, "where less is better a fall is no drop"


def compared(
    given: Mapping[str, Response | Failure], gate: Gate | None = None, asked: list[Question] | None = None
) -> Comparison:
    """Ten questions that all found what they expect, against a candidate that gave this."""
    return compare(side(rows_of(TEN, {})), side(rows_of(asked or TEN, given)), gate, resamples=100)


@pytest.mark.parametrize(
    ("name", "baseline", "candidate", "rule", "words"),
    [
        ("mrr", 0.9, 0.8097, TENTH, "MRR went from 0.900 to 0.810, 10.03 % worse (allowed: 10 %)"),
        ("mrr", 0.9, 0.75, TENTH, "MRR went from 0.900 to 0.750, 16.7 % worse (allowed: 10 %)"),
        (
            "mrr",
            0.99,
            0.97996,
            Threshold(0.01, relative=False),
            "MRR went from 0.99000 to 0.97996, 1.0 % worse (allowed: 0.01)",
        ),
        (
            *("pass_rate", 0.8, 0.69996, Threshold(0.1, relative=False)),
            "Pass rate went from 80.000 % to 69.996 %, 12.5 % worse (allowed: 10 points)",
        ),
    ],
)
def test_a_limit_that_is_exceeded_is_seen_to_be(
    name: str, baseline: float, candidate: float, rule: Threshold, words: str
) -> None:
    """With as many digits as tell the change from the limit, and no more."""
    moved = replace(delta(baseline, candidate), name=name, threshold=rule, regressed=True, over=True)
    moved = replace(moved, drop=(baseline - candidate) / baseline)
    assert list(RuleWords(Gate(), 5).broken([moved], [])) == [words]


def test_a_limit_that_holds_is_not_said_to_be_exceeded() -> None:
    """A rule in a domain is exceeded too where chance explains it, and the share on a line of the table says so."""
    held = replace(delta(1.0, 0.9), drop=0.0996, threshold=Threshold(0.0996, relative=True))
    assert list(RuleWords(Gate(), 5).held([held], [])) == ["MRR fell by 9.96 %; the gate allows a drop of 9.96 %"]
    beyond = replace(delta(0.9, 0.8097), drop=0.1003333, threshold=TENTH)
    assert drop_words(beyond) == " (10.03 % worse)"
    amount = replace(delta(0.99, 0.97996), threshold=Threshold(0.01, relative=False), over=True)
    group = GroupDelta("domain", "d", 9, (amount,), 0, 0, 1.0)
    (line,) = RuleWords(Gate(), 5).held([], [group])
    assert line.startswith("MRR in d fell by 0.01004; the gate allows a drop of 0.01")


@pytest.mark.parametrize("rule", ["judge_score=10%", "d:judge_score=10%", "tools_called=0.1"])
def test_a_rule_whose_metric_nobody_measured_makes_the_verdict_unknown(rule: str) -> None:
    """It was asked for and cannot be applied: that is no pass, however good the rest is."""
    drops, domains, named = parse_drops([rule], ["judge_score", "tools_called"])
    made = compared({}, Gate(drops, domains, explicit=named))
    metric = rule.rpartition(":")[2].partition("=")[0]
    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert [reason for reason in made.reasons if reason.startswith(f"{metric} has a rule")]
    assert compared({}).verdict == "ok"


def test_a_repeat_takes_no_rank() -> None:
    """A source that comes again keeps its first rank, and those behind it are not pushed down."""
    flat = row(TEN[0], found("x", "x", "a", "x", "b"))
    assert {key: rank for key, (rank, _) in by_key(flat).items()} == {"x": 1, "a": 2, "b": 3}
    unnamed = Response(answer="so", sources=(Source(title="t"), Source(chunk_id="a"), Source(title="t")))
    ranks = {key: rank for key, (rank, _) in by_key(row(TEN[0], unnamed)).items()}
    assert list(ranks.values()) == [1, 2, 3], "a source without the key that is compared still takes up its place"


def called(*tools: str) -> Response:
    return found("q0!", tool_calls=tuple(ToolCall(name=tool) for tool in tools))


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        (("search", "read"), ("read", "search"), "verdict_changed"),
        (("search",), ("search",), "verdict_changed"),
        (("search",), ("search", "search"), "tools_changed"),
        (("search",), ("read",), "tools_changed"),
        (("search",), (), "tools_changed"),
        ((), ("search",), "tools_changed"),
    ],
)
def test_tools_are_compared_by_what_was_called_and_how_often(
    was: tuple[str, ...], now: tuple[str, ...], kind: str
) -> None:
    """In whatever order; other tools are the cause before another verdict is."""
    before, after = row(TEN[0], called(*was), score=0.9), row(TEN[0], called(*now), score=0.2)
    assert causes_of(before, after, 5)[0].kind == kind


def test_rises_are_rules_of_metrics_of_which_lower_is_better() -> None:
    """Of the target's time, and of ours; for the whole set and for a domain."""
    rises = ["latency_p95=20%", "d:latency_p50=0.5", "num_tokens=10%", "false_abstention_rate=off"]
    drops, domains, named = parse_drops(["mrr=1%"], BY_METRIC, rises=rises)
    assert drops["latency_p95"] == Threshold(0.2, relative=True)
    assert domains == {"d": {"latency_p50": Threshold(0.5, relative=False)}}
    assert named == {"mrr", "latency_p95", "num_tokens"}
    assert "false_abstention_rate" not in drops


@pytest.mark.parametrize(
    ("drop", "rise", "message"),
    [
        ("mrr", "", "write METRIC=5%"),
        ("mrr=many", "", "write METRIC=5%"),
        ("mrr=-1%", "", "`-1` is not a number from 0"),
        ("mrr=1e999%", "", "`1e999` is not a number from 0"),
        ("mrr=--%", "", "`--` is not a number from 0"),
        ("mmr=5%", "", "no metric `mmr`; known: .*mrr"),
        ("mrr=5", "", "no drop can exceed it; write mrr=5%, or an amount up to 1"),
        ("mrr=500%", "", "no drop can exceed it; write a share up to 100%"),
        ("d:recall_at_k=2", "", "no drop can exceed it; write recall_at_k=2%, or an amount up to 1"),
        ("latency_p95=20%", "", r"of `latency_p95` lower is better; write `max_rise=latency_p95=20%`"),
        ("", "mrr=5%", r"`max_rise=mrr=5%`: of `mrr` higher is better; write `max_drop=mrr=5%`"),
        ("", "latency=5%", r"`max_rise=latency=5%`: no metric `latency`; known: .*latency_p50, latency_p95"),
        ("", "latency_p95", r"`max_rise=latency_p95`: write METRIC=5%"),
        ("", "latency_p95=-1", r"`max_rise=latency_p95=-1`: `-1` is not a number from 0"),
    ],
)
def test_rules_that_cannot_be_read_are_refused(drop: str, rise: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_drops([drop] if drop else [], BY_METRIC, rises=[rise] if rise else [])
