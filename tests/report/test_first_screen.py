"""The sentences of a comparison's first screen."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any, get_args

import pytest

from evaltrack.compare.change import CAUSES, Cause, CauseKind, Change, CulpritKind
from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta, Rule, RuleState
from evaltrack.records.run import SelectedPart
from evaltrack.report.comparison_files import comparison_junit
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import STEPS, headline_changes, next_steps, note_words
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.report.templates import say
from tests.comparisons import BASELINE, CANDIDATE, DEMOTED, FLIP, LOST, MRR, RECALL, SIGNATURE, comparison, quiet
from tests.files import check_rendering, data

CASES = data("report.json")

PASSING = replace(RECALL, name="pass_rate", baseline=0.713, candidate=0.678, n=230, threshold=None, regressed=False)
JUDGED = replace(CANDIDATE, signature=SIGNATURE.model_copy(update={"judge": "openai:m"}))


@pytest.mark.parametrize(("fields", "sentence"), CASES["a_sentence_says_both_directions_with_their_sizes"])
def test_a_sentence_says_both_directions_with_their_sizes(fields: dict[str, int], sentence: str) -> None:
    made = quiet(
        metrics=(RECALL, PASSING), left_out=(), candidate=JUDGED, fates=fields, lost=(LOST,) * fields.get("lost", 0)
    )
    assert headline_changes(made) == sentence


def fell(number: int, kind: CulpritKind, source: str | None = None, domain: str = "rail") -> Change:
    """A question that broke by this cause."""
    ranks = (1, 6) if source else ()
    return replace(FLIP, id=str(number), domain=domain, cause=Cause(kind, "", source, *ranks))


def broken(*flips: Change, **fields: Any) -> Comparison:
    """A comparison in which nothing else got worse."""
    kinds = Counter(str(flip.cause.kind) for flip in flips if flip.cause)
    return comparison(**{"flips": flips, "drops": (), "lost": (), "causes": dict(kinds.most_common()), **fields})


def lost(*messages: str) -> Comparison:
    causes = [Cause("target_failed", f"target_error: {text}") for text in messages]
    rows = tuple(replace(LOST, id=str(place), cause=cause) for place, cause in enumerate(causes))
    return quiet(lost=rows, fates={"lost": len(rows)}, causes={"target_failed": len(rows)}, verdict="unknown")


def drop(name: str, **fields: Any) -> MetricDelta:
    return replace(RECALL, name=name, **fields)


def by_means(*metrics: MetricDelta, fixed: int = 0, **fields: Any) -> Comparison:
    """A regression in which no question broke."""
    fates = {"broke": 0, "fixed": fixed, "lost": 0}
    return quiet(**{"metrics": metrics, "left_out": (), "verdict": "regression", "fates": fates, **fields})


SAME = replace(PASSING, candidate=0.713)
UNCOVERED = (Rule("coverage", "unknown", value=10, limit=22), Rule("flips", "held"))
FEW: dict[str, Any] = {"metrics": (), "rules": UNCOVERED, "left_out": (), "removed": ("x",) * 12}
PART = SelectedPart(questions=3, total=12, by="sample 3", whole_digest="d")
EDITED = tuple(fell(100 + number, "source_text_changed", "x") for number in range(3))
LOWER = tuple(fell(number, "source_demoted", f"p{number}") for number in range(7))
BELOW = tuple(replace(FLIP, id=str(number), cause=replace(DEMOTED, source=str(number))) for number in range(6))
ALONE = tuple(replace(each, id=f"x{each.id}", cause=replace(DEMOTED, risers=(f"r{each.id}",))) for each in BELOW[:3])
ANSWERED = tuple(fell(number, "answer_changed") for number in range(24))
SIDES = {
    name: replace(side, settings={"corpus": name}, signature=SIGNATURE.model_copy(update={"model": model}))
    for name, side, model in (("baseline", BASELINE, "gpt-4o"), ("candidate", CANDIDATE, "gpt-4o-mini"))
}
SCREENS: dict[str, Comparison] = {
    "too few questions are left": quiet(verdict="unknown", **FEW),
    "a regression though few are left": quiet(verdict="regression", **FEW),
    "two were lost": quiet(verdict="unknown", lost=(LOST, LOST), **FEW),
    "one mean fell": by_means(RECALL, SAME),
    "one mean fell and two were fixed": by_means(RECALL, fixed=2),
    "several means fell": by_means(
        RECALL,
        drop("mrr", measured=(25, 24)),
        drop("false_abstention_rate", baseline=0.1, candidate=0.3, higher_is_better=False),
        drop("judge_score"),
    ),
    "the mean of a domain fell": by_means(groups=(GroupDelta("domain", "travel", 8, (RECALL,), 0, 0),)),
    "nobody judged": quiet(metrics=(SAME,), left_out=()),
    "passing is not compared": quiet(metrics=(RECALL,), left_out=("pass_rate",)),
    "nothing is compared": quiet(metrics=(), left_out=("pass_rate",)),
    "an edited page, and an error": comparison(flips=(*EDITED, fell(4, "source_text_changed", "x")), drops=()),
    "more causes than steps": comparison(flips=tuple(fell(n, "source_lost", f"s{n}") for n in range(9))),
    "nothing got worse": quiet(),
    "nothing got worse than in a saved run": quiet(
        baseline=replace(BASELINE, run_id=None, name="travel.baseline.json")
    ),
    "unknown": quiet(verdict="unknown"),
    "nothing got worse in a part": quiet(
        candidate=replace(CANDIDATE, signature=SIGNATURE.model_copy(update={"selection": PART}))
    ),
    "a third fell by an edited page": broken(*EDITED, *LOWER[:6]),
    "less than a third fell by an edited page": broken(*EDITED, *LOWER),
    "the model changed": broken(*ANSWERED, **SIDES),
    "the corpus changed": broken(fell(1, "source_lost", "s"), **SIDES),
    "one was lost": lost("HTTP 503"),
    "three were lost by two errors": lost("HTTP 503", "HTTP 503", "no route"),
    "a loss that is not shown": quiet(
        verdict="unknown", rules=(Rule("flips", "unknown", value=1),), flips=(FLIP,), metrics=()
    ),
    "most fell below one page": comparison(
        flips=(*BELOW[:4], *ALONE),
        drops=tuple(replace(each, fate="lower score") for each in BELOW[4:]),
        lost=(),
        causes={"answer_changed": 2, "source_demoted": 7},
    ),
    "two were not examined": comparison(flips=ALONE, drops=(), lost=(), causes={"source_demoted": 1}),
    "the judge differs": quiet(ignored=("judge",), left_out=("judge_score", "pass_rate")),
    "k does not differ": quiet(ignored=("k",)),
    "a metric is left out": quiet(left_out=("mrr",)),
    "many were edited": quiet(edited=("1",) * 1_200),
    "the interval of a mean is left out": by_means(replace(MRR, candidate=0.75, measured=(22, 20))),
    "the change of a mean is left out": by_means(replace(MRR, candidate=0.7, measured=(22, 20))),
    "a mean over questions that are new": by_means(replace(MRR, candidate=0.7, measured=(20, 22))),
}


def screen(made: Comparison) -> list[str]:
    found = [say.headline(made), say.cause(made), say.summary(made)]
    return [*filter(None, found), *(f"- {each}" for each in (*next_steps(made), *note_words(made)))]


def test_first_screens_say_to_the_letter_what_happened_why_and_what_to_do_next() -> None:
    text = "\n".join("\n".join([f"# {name}", *screen(made), ""]) for name, made in SCREENS.items())
    check_rendering("first-screens.txt", text)
    assert all(len(next_steps(made)) <= STEPS for made in SCREENS.values())


def test_each_rule_has_its_mark_and_its_style() -> None:
    states: tuple[RuleState, ...] = get_args(RuleState)
    page = comparison_html(quiet(rules=tuple(Rule("flips", state) for state in states)))
    told = re.findall(r'<li class="(\w+)"><span aria-hidden="true">(.) </span><span class="unseen">([^:]+)', page)
    assert told == [("bad", "✕", "broken"), ("warn", "?", "unknown"), ("warn", "~", "not shown"), ("ok", "✓", "held")]


def test_every_cause_has_a_next_step() -> None:
    assert CAUSES.keys() == set(get_args(CulpritKind))


@pytest.mark.parametrize("source", [None, "a#1"])
@pytest.mark.parametrize("kind", get_args(CauseKind))
def test_whatever_the_cause_each_rendering_says_it(kind: CauseKind, source: str | None) -> None:
    """Also a cause that few questions which got worse have: there is an answer now, and the judge gives it less."""
    made = comparison(flips=(replace(FLIP, cause=Cause(kind, "so", source)),), drops=(), lost=(), causes={kind: 1})
    assert comparison_json(made)["causes"] == {kind: 1}
    for render in (comparison_text, comparison_markdown, comparison_html, comparison_junit):
        assert "1 question" in render(made)
