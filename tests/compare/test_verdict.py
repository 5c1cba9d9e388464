"""The rules of the gate one by one: their limits, their states, and how people read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaltrack.compare.comparison import Comparison, MetricDelta, Rule
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import ComparisonConfig, Gate, GateKind, parse_drops
from evaltrack.compare.pairing import Side
from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import DEFAULT_DROPS, metric_table
from evaltrack.metrics.metric import Threshold
from evaltrack.records import Failure, OwnScore
from evaltrack.records.run import SelectedPart
from evaltrack.report.comparison_words import reasons, rules_words
from evaltrack.report.templates import say
from tests.compared import found, patched, question, rows_of, side
from tests.comparisons import comparison
from tests.hard_comparisons import HARD

TEN = [question(f"q{n}") for n in range(10)]
FIFTY = [question(f"q{n}") for n in range(50)]
TENTH = Threshold(0.1, relative=True)
DOWN = Failure(kind="target_error", message="down")


def compared(worse: int, gate: Gate | None = None, asked: list[Any] = TEN, **options: Any) -> Comparison:
    """Questions that all found their source, of which the first `worse` find nothing any more."""
    now = rows_of(asked, {each.id: found("x") for each in asked[:worse]})
    return compare(side(rows_of(asked, {})), side(now), gate, resamples=100, **options)


def test_each_rule_says_its_value_and_its_limit() -> None:
    assert rules_words(compared(1)) == [
        ("broken", "1 question broke (allowed: 0); 0 were fixed"),
        ("broken", "Recall@5 fell from 1.000 to 0.900, 10.0 % (allowed: 5 %)"),
        ("held", "MRR fell from 1.000 to 0.900, 10.0 % (allowed: 10 %)"),
        ("held", "False abstentions did not change (allowed: 10 points)"),
    ]
    assert reasons(compared(0)) == ["no question broke"]


def test_flips_that_are_allowed_or_accepted_do_not_count() -> None:
    made = compared(1, Gate(drops={}, allow_flips=2))
    assert (made.verdict, rules_words(made)) == ("ok", [("held", "1 question broke (allowed: 2); 0 were fixed")])
    lost = compared(20, Gate(drops={}, allow_flips=2), FIFTY)
    assert [(rule.kind, rule.state) for rule in lost.rules] == [("net loss", "broken")]
    all_accepted = compared(8, Gate(drops={}), FIFTY, accepted={f"q{n}": "accepted" for n in range(8)})
    assert (all_accepted.verdict, [rule.kind for rule in all_accepted.rules]) == ("ok", ["flips"])
    accepted = compared(1, Gate(drops={}), accepted={"q0": "accepted by a person"})
    assert (accepted.verdict, reasons(accepted)) == ("ok", ["no confirmed failures; not counted: 1 accepted"])


@pytest.mark.parametrize(
    ("name", "baseline", "candidate", "rule", "words"),
    [
        ("mrr", 0.9, 0.8097, TENTH, "MRR fell from 0.900 to 0.810, 10.03 % (allowed: 10 %)"),
        ("mrr", 0.9, 0.75, TENTH, "MRR fell from 0.900 to 0.750, 16.7 % (allowed: 10 %)"),
        (
            *("mrr", 0.99, 0.97996, Threshold(0.01, relative=False)),
            "MRR fell from 0.99000 to 0.97996, 0.01004 (allowed: 0.01)",
        ),
        (
            *("pass_rate", 0.8, 0.69996, Threshold(0.1, relative=False)),
            "Pass rate fell from 80.000 % to 69.996 %, 10.004 points (allowed: 10 points)",
        ),
        (
            *("false_abstention_rate", 1 / 15, 0.21667, Threshold(0.1, relative=False)),
            "False abstentions rose from 6.7 % to 21.7 %, 15.0 points (allowed: 10 points)",
        ),
    ],
)
def test_change_and_limit_are_in_one_unit(
    name: str, baseline: float, candidate: float, rule: Threshold, words: str
) -> None:
    """With as many digits as tell the change from the limit, and no more."""
    up = name == "false_abstention_rate"
    moved = MetricDelta(name, baseline, candidate, 10, (baseline - candidate) / baseline, 0, 3, threshold=rule)
    moved = replace(moved, over=True, regressed=True, higher_is_better=not up)
    assert say.rule(Rule("metric", "broken", moved), comparison()).replace("@3", "@5") == words
    beyond = MetricDelta("mrr", 0.9, 0.8097, 10, 0.1003333, 0, 1, threshold=TENTH)
    assert say.drop(beyond) == "(10.03 % worse)"


# Rules that cannot be applied


@pytest.mark.parametrize("rule", ["judge_score=10%", "d:judge_score=10%", "tools_called=0.1"])
def test_a_rule_whose_metric_was_not_measured_is_unknown(rule: str) -> None:
    drops, domains, named = parse_drops([rule])
    made = compared(0, Gate(drops, domains, explicit=named))
    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert "was not measured on both sides" in reasons(made)[0]
    assert compared(0).verdict == "ok"


def test_a_metric_that_only_one_side_measured_has_a_default_rule_that_is_unknown() -> None:
    judged, unjudged = rows_of(TEN, {}, 0.9), rows_of(TEN, {})
    for was, now in ((judged, unjudged), (unjudged, judged)):
        made = compare(side(was), side(now), resamples=100)
        assert (made.verdict, "unknown") == ("unknown", made.rules[0].state)
        assert any(words.startswith("Judge score has a rule, but was not measured") for words in reasons(made))


@pytest.mark.parametrize(("again", "verdict"), [(9, "ok"), (8, "unknown")])
@pytest.mark.parametrize("where", ["", "d:"])
def test_a_metric_that_was_measured_again_on_few_questions_is_unknown(where: str, again: int, verdict: str) -> None:
    """Lost questions are not counted twice."""
    tone = OwnScore(name="tone", computed_by="f", digest="0")
    config = ComparisonConfig.of(max_drop=f"{where}tone=5%")
    was, now = (
        [patched(each, tone=1.0) if place < most else each for place, each in enumerate(rows_of(TEN, {}))]
        for most in (10, again)
    )
    made = compare(side(was, scores=(tone,)), side(now, scores=(tone,)), config.rules(metric_table((tone,))))
    assert made.verdict == verdict
    words = f"tone has a rule, but was measured on 8 of the baseline's 10 questions{' in d' * bool(where)}"
    assert verdict == "ok" or reasons(made)[0] == words
    elsewhere = [question(f"e{n}", domain="e") for n in range(90)]
    was, now = was + rows_of(elsewhere, {}), now + rows_of(elsewhere, {f"e{n}": DOWN for n in range(5)})
    config = ComparisonConfig.of(max_drop="d:tone=5%", min_coverage=0.9)
    made = compare(side(was, scores=(tone,)), side(now, scores=(tone,)), config.rules(metric_table((tone,))))
    assert made.verdict == verdict  # questions of another domain are lost
    lost = compare(side(rows_of(TEN, {})), side(rows_of(TEN, {f"q{n}": DOWN for n in range(3)})), resamples=50)
    assert [rule.kind for rule in lost.rules if rule.state == "unknown"] == ["lost"]


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (("KILLED", "FINISHED"), "the baseline was interrupted"),
        (("FINISHED", "KILLED"), "the candidate was interrupted"),
        (("KILLED", "KILLED"), "the candidate was interrupted and the baseline was interrupted"),
    ],
)
def test_an_interrupted_run_is_a_part(ends: tuple[str, str], words: str) -> None:
    """Questions that it did not ask were neither added nor removed."""
    sides = [side(rows_of(TEN[:3] if end == "KILLED" else TEN, {})) for end in ends]
    sides = [replace(each, info=replace(each.info, status=end)) for each, end in zip(sides, ends, strict=True)]
    made = compare(*sides, resamples=50)
    assert (made.verdict, reasons(made)) == ("unknown", [f"{words}; use --allow-partial to allow this"])
    assert made.added == made.removed == ()
    assert compare(*sides, Gate(allow_partial=True), resamples=50).verdict == "ok"


def of_part(made: Side, questions: int) -> Side:
    """The side as a run of a part of its golden set."""
    part = SelectedPart(by="sample", questions=questions, total=10, whole_digest="0")
    return replace(made, info=replace(made.info, signature=made.info.signature.model_copy(update={"selection": part})))


@pytest.mark.parametrize("ends", [(True, False), (False, True), (True, True)])
def test_a_run_of_a_part_is_unknown_unless_that_is_allowed(ends: tuple[bool, bool]) -> None:
    """On either side; with full coverage asked for, too."""
    sides = [of_part(side(rows_of(TEN[:3], {})), 3) if end else side(rows_of(TEN, {})) for end in ends]
    made = compare(*sides, Gate(min_coverage=1.0), resamples=100)
    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert "is 3 of 10 questions" in reasons(made)[0]
    assert compare(*sides, Gate(allow_partial=True), resamples=100).verdict == "ok"


@pytest.mark.parametrize("rules", [[], ["negative_pass_rate=5%"]])
def test_a_rule_on_negatives_is_not_applied_to_a_part_without_them(rules: list[str]) -> None:
    """The baseline measured them, and the part asked none."""
    drops, _, named = parse_drops(rules)
    gate = Gate(drops, allow_partial=True, explicit=named)
    whole = side(rows_of([*TEN, question("n", expected_chunks=[])], {"n": found("x", abstained=True)}))
    made = compare(whole, of_part(side(rows_of(TEN, {})), 10), gate, resamples=100)
    assert (made.verdict, reasons(made)) == ("ok", ["no question broke"])
    with_it = of_part(side(rows_of([question("n", expected_chunks=[])], {"n": DOWN})), 1)
    assert compare(whole, with_it, gate, resamples=100).verdict == "unknown"


# Evidence


@pytest.mark.parametrize(("kind", "verdict"), [("auto", "regression"), ("seed", "regression"), ("evidence", "unknown")])
def test_few_flips_are_no_evidence_and_no_pass(kind: GateKind, verdict: str) -> None:
    """All of five questions broke: no outcome of the test could have shown it."""
    made = compared(5, Gate(kind=kind), TEN[:5])
    assert made.verdict == verdict
    uniform = compared(50, Gate(kind="evidence", allow_flips=50), FIFTY)
    assert uniform.verdict == "regression"
    assert reasons(uniform)[0].startswith("Recall@5 fell from 1.000 to 0.000")


def test_the_headline_of_an_unknown_rule_ends_before_its_limit() -> None:
    made = compared(1, Gate({"mrr": Threshold(0.01, relative=True)}, allow_flips=1, kind="evidence"))
    assert say.headline(made).startswith("Unknown: MRR fell from 1.000 to 0.900, 10.0 %. 1 question broke")


def test_the_rules_that_are_tested_share_one_level() -> None:
    """Eight of fifty broke and one was fixed, p = 0.02: alone that is shown, beside another rule it is not."""
    was, now = rows_of(FIFTY, {"q49": found("x")}), rows_of(FIFTY, {f"q{n}": found("x") for n in range(8)})
    gates = [Gate(drops, kind="evidence") for drops in ({}, {"mrr": TENTH})]
    verdicts = [compare(side(was), side(now), gate, resamples=100).verdict for gate in gates]
    assert verdicts == ["regression", "ok"]


def test_a_loss_that_could_have_been_shown_and_is_not_is_chance() -> None:
    """Ten broke and six were fixed; the rule on questions, exceeded, is not shown."""
    was = rows_of(FIFTY, {f"q{n}": found("x") for n in range(20, 26)})
    now = rows_of(FIFTY, {f"q{n}": found("x") for n in range(10)})
    made = compare(side(was), side(now), Gate(kind="evidence"), resamples=100)
    assert (made.verdict, made.rules[0].state) == ("ok", "not shown")
    assert reasons(made)[0] == "10 questions broke (allowed: 0); 6 were fixed; not significant"


def test_tokens_are_tested_though_no_answer_varies() -> None:
    was, now = ([patched(each, num_tokens=tokens) for each in rows_of(TEN, {})] for tokens in (10.0, 30.0))
    gate = Gate({"num_tokens": TENTH})
    assert compare(side(was), side(now), gate, resamples=50).verdict == "regression"
    assert compare(side(was), side([*now[:3], *was[3:]]), gate, resamples=50).verdict == "ok"


@pytest.mark.parametrize(
    ("slower", "kind", "state"), [(1, "auto", "not shown"), (1, "seed", "broken"), (50, "auto", "broken")]
)
def test_a_latency_is_tested_though_no_answer_varies(slower: int, kind: GateKind, state: str) -> None:
    """One response of fifty took a second more, and the median with it; or all of them did."""
    was, now = (
        [patched(each, seconds=1.0 + place % 2 + (place < more)) for place, each in enumerate(rows_of(FIFTY, {}))]
        for more in (0, slower)
    )
    made = compare(side(was), side(now), Gate({"latency_p50": TENTH}, kind=kind), resamples=100)
    assert [rule.state for rule in made.rules if rule.metric] == [state]


def test_a_domain_with_a_rule_of_its_own_is_tested_too() -> None:
    _, domains, _ = parse_drops(["d:recall_at_k=1%"])
    made = compared(12, Gate({}, domains, allow_flips=50, kind="evidence"), FIFTY)
    assert made.verdict == "regression"
    assert reasons(made)[0].startswith("Recall@5 in d fell from")
    worse = rows_of(FIFTY, {each.id: found("x", f"{each.id}!") for each in FIFTY})
    assert compare(side(worse), side(rows_of(FIFTY, {})), Gate(kind="evidence"), resamples=100).verdict == "ok"


# What is measured


def test_intervals_stay_within_what_is_possible_and_are_left_out_without_a_change() -> None:
    """A mean of 1 cannot rise, and one of 0 cannot fall."""
    fell, same = compared(2), compared(0)
    recall = next(metric for metric in fell.metrics if metric.name == "recall_at_k")
    assert recall.interval is not None
    assert recall.interval[1] <= 0
    assert all(metric.interval is None for metric in same.metrics)


def test_a_reasoning_score_that_fell_is_a_regression() -> None:
    made = HARD["reasoning"]()
    assert made.verdict == "regression"
    assert any(words.startswith("Reasoning score fell") for words in reasons(made))


def test_a_mean_is_over_the_questions_that_both_sides_measured() -> None:
    was, now = rows_of(TEN, {"q0": DOWN, "q1": DOWN}), rows_of(TEN, {"q1": DOWN, "q2": DOWN})
    made = compare(side(was), side(now), Gate(), resamples=50)
    now = rows_of(TEN, {**{f"q{n}": found("x") for n in range(2)}, "q9": DOWN})
    fell = compare(side(rows_of(TEN, {})), side(now), Gate(), resamples=100)
    assert "Recall@5 fell from 1.000 to 0.778, 22.2 % on the 9 measured in both (allowed: 5 %)" in reasons(fell)
    failed = "2 of 10 questions could not be measured (the target failed)"
    assert say.unmeasured(made) == f"{failed}, 1 of them not in the baseline either"


# Rules that are read


def test_drops_are_parsed() -> None:
    """Relative with a per cent sign, absolute without, `off`, and by domain; the defaults stay."""
    texts = ["mrr=10%", "judge_score=0.05", "recall_at_k=off", "a:b:mrr=2%", "latency_p95=20%", "num_tokens=250%"]
    overall, domains, named = parse_drops(texts)
    own = {
        "mrr": TENTH,
        "judge_score": Threshold(0.05, relative=False),
        "latency_p95": Threshold(0.2, relative=True),
        "num_tokens": Threshold(2.5, relative=True),
    }
    assert overall == {name: drop for name, drop in (DEFAULT_DROPS | own).items() if name != "recall_at_k"}
    assert named == own.keys()
    assert domains == {"a:b": {"mrr": Threshold(0.02, relative=True)}}
    assert parse_drops(["mrr=0"])[0]["mrr"] == Threshold(0.0, relative=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mrr", "write METRIC=5%"),
        ("mrr=many", "write METRIC=5%"),
        ("mrr=-1%", "`-1` is not a number from 0"),
        ("mrr=1e999%", "`1e999` is not a number from 0"),
        ("mrr=--%", "write METRIC=5%"),
        ("mmr=5%", "no metric `mmr`; known: (?!.*tier_1_share).*latency_p50, latency_p95.*mrr"),
        ("mrr=5", "no drop can exceed it; write mrr=5%, or an amount up to 1"),
        ("mrr=500%", "no drop can exceed it; write a share up to 100%"),
        ("d:recall_at_k=2", "no drop can exceed it; write recall_at_k=2%, or an amount up to 1"),
        ("latency_p95", r"`max_drop=latency_p95`: write METRIC=5%"),
    ],
)
def test_rules_that_cannot_be_read_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_drops([text])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("allow_flips", -1, "allow_flips must be a whole number of at least 0, not `-1`"),
        ("min_coverage", 1.5, "min_coverage must be a number from 0 to 1, not `1.5`"),
        ("gate", "strict", "gate must be auto, seed or evidence, not `strict`"),
        ("max_reruns", -1, "max_reruns must be a whole number of at least 0, not `-1`"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        ComparisonConfig.of(**{name: value})
    assert str(refused.value) == message
    made = ComparisonConfig.of(max_drop="mrr=5%", ignore={"k", "judge"})
    assert (made.max_drop, made.ignore) == (("mrr=5%",), ("judge", "k"))
    assert ComparisonConfig.of().rules(metric_table()) == Gate()


def test_a_rule_may_name_a_score_that_only_the_runs_declare() -> None:
    config, tone = ComparisonConfig.of(max_drop="tone=5%"), OwnScore(name="tone", computed_by="f", digest="0")
    assert config.rules(metric_table((tone,))).drops["tone"] == Threshold(0.05, relative=True)
    with pytest.raises(UsageError, match="tone"):
        config.rules(metric_table())


def test_a_drop_of_more_than_everything_is_a_rule_only_where_scores_may_be_negative() -> None:
    free, bounded = (
        OwnScore(name=name, computed_by="f", digest="0", span=span) for name, span in (("a", None), ("b", 1))
    )
    table = metric_table((free, bounded))
    assert parse_drops(["a=300%"], table)[0]["a"] == Threshold(3.0, relative=True)
    with pytest.raises(UsageError, match="no drop can exceed it"):
        parse_drops(["b=300%"], table)
