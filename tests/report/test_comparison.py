"""Renderings of a comparison: the words, the terminal, JSON, annotations, and files by suffix."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from evaltrack.compare.comparison import Comparison, GroupDelta, Rule
from evaltrack.compare.reruns import Reruns
from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records.row import failure_message, failure_words
from evaltrack.report import comparison_words as words
from evaltrack.report.comparison_files import (
    FORMS,
    annotations,
    check_suffix,
    comparison_junit,
    json_text,
    write_comparison,
)
from evaltrack.report.comparison_text import comparison_markdown, comparison_text, print_comparison
from evaltrack.report.comparison_words import shown_groups
from evaltrack.report.escaping import one_line
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.report.templates import say
from evaltrack.report.words import metric_change, metric_number
from tests.compared import edited
from tests.comparisons import (
    DEMOTED,
    DROP,
    FLIP,
    GROUPS,
    LOST,
    MRR,
    RECALL,
    comparison,
    flat,
    hostile,
    quiet,
)
from tests.files import check_rendering, data
from tests.report.whole_pages import body, every_change

CASES = data("report.json")


def commands(of: Comparison) -> str:
    return "".join(f"{line}\n" for line in annotations(of))


def json_of(of: Comparison) -> str:
    names = "|".join(score.name for score in SCORES)
    return re.sub(rf'\n +"(?:{names})": null,', "", json_text(of))


def shown(of: Comparison) -> str:
    return comparison_text(of, 80)


# What each rendering says


@pytest.mark.parametrize(
    ("render", "suffix"),
    [
        (shown, "txt"),
        (comparison_markdown, "md"),
        (lambda of: body(comparison_html(of)), "html"),
        (json_of, "json"),
        (comparison_junit, "xml"),
        (commands, "annotations"),
    ],
    ids=["terminal", "markdown", "page", "json", "junit", "annotations"],
)
@pytest.mark.parametrize(("make", "name"), [(every_change, "comparison"), (quiet, "no-change")])
def test_a_comparison_is_rendered_to_the_letter(
    render: Callable[[Comparison], str], suffix: str, make: Callable[[], Comparison], name: str
) -> None:
    """Each fate, rerun, acceptance, source and score in each form; and a run against itself, which says little."""
    check_rendering(f"{name}.{suffix}", render(make()))


@pytest.mark.parametrize(
    ("verdict", "words", "tone"),
    [("ok", "✅ No regression", "ok"), ("regression", "❌ Regression", "bad"), ("unknown", "⚠️ Unknown", "warn")],
)
def test_the_verdict_comes_first(verdict: str, words: str, tone: str) -> None:
    made = quiet(verdict=verdict)
    assert comparison_markdown(made).splitlines()[1].startswith(f"### {words}: no question broke")
    assert shown(made).startswith(f"{words.partition(' ')[2]}: no question broke")
    assert f'class="head {tone}"' in comparison_html(made)


def test_on_a_terminal_no_line_is_longer_than_it_is_wide_and_nothing_is_cut() -> None:
    """Lines end between words and go on below their own text; addresses alone run on, so that they can be copied."""
    out = io.StringIO()
    long = replace(FLIP, question="word " * 30, cause=replace(DEMOTED, detail="because " * 20, link=None))
    made = comparison(flips=(long,), compare_link=None, groups=GROUPS * 3, drops=())
    print_comparison(made, Console(file=out, width=80, force_terminal=True, color_system=None), everything=True)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert out.getvalue().count("word") == 30
    assert out.getvalue().count("because") == 20
    assert "…" not in out.getvalue().replace("… and", "")


def test_a_comparison_of_four_broken_questions_fits_a_screen() -> None:
    flips = tuple(replace(FLIP, id=str(n)) for n in range(4))
    text = comparison_text(comparison(flips=flips, groups=GROUPS * 3), 100, everything=False)
    assert len(text.splitlines()) <= 35
    assert "✓ 1 other rule holds" in text
    assert text.count("    Can I get a refund?") == 4
    assert "domain travel" not in text
    assert "→ " in text
    whole = comparison_text(comparison(flips=flips, groups=GROUPS * 3), 100)
    assert whole.count("- domain travel") == 3


def test_colours_reach_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = io.StringIO()
    print_comparison(comparison(), Console(file=coloured, width=80, force_terminal=True, color_system="standard"))
    assert "\x1b[1;31mRegression" in coloured.getvalue()
    assert "\x1b" not in shown(comparison())


def test_long_lists_are_cut_and_counted() -> None:
    made = comparison(
        flips=(FLIP,) * 10_000,
        drops=(DROP,) * 100,
        fates={"lower score": 2_500},
        groups=GROUPS[:1] * 30,
    )
    text = shown(made)
    assert "broke (passed before, fails now): 10,000\n" in text
    assert "  … and 9,990 more questions; the JSON holds them all\n" in text
    assert "lower score (passes or fails as before): 2,500\n" in text
    assert "  … and 2,490 more questions; the JSON holds the first 100\n" in text
    assert text.count("    answer: ") == 3
    assert "  … and 9,990 more questions that broke; the JSON" in comparison_text(made, everything=False)


# The words


@pytest.mark.parametrize(("name", "value", "text"), CASES["a_difference_has_its_sign_and_is_not_0_unless_it_is"])
def test_a_difference_has_its_sign_and_is_not_0_unless_it_is(name: str, value: float, text: str) -> None:
    assert metric_change(name, value) == text


@pytest.mark.parametrize(("name", "value", "text"), CASES["a_value_is_written_in_the_form_of_its_metric"])
def test_a_value_is_written_in_the_form_of_its_metric(name: str, value: float, text: str) -> None:
    assert metric_number(name, value) == text


def test_a_difference_is_that_of_the_values_as_written() -> None:
    recall = replace(RECALL, baseline=0.86364, candidate=0.81524, drop=0.056)
    assert say.course(recall) == "0.864 → 0.815"
    lines = words.metric_lines(comparison(), [replace(MRR, interval=None), recall])
    assert [(line.was, line.now, line.change) for line in lines] == [
        ("0.864", "0.815", "−0.049"),
        ("0.750", "0.750", "≈ 0"),
    ]
    group = GroupDelta("category", "food", 12, (recall, replace(MRR, baseline=0.90909, candidate=0.72727)), 1, 0)
    page = comparison_markdown(comparison(groups=(group,)))
    assert "| category food | 12 | 0.815 (−0.048) FAIL | 0.727 (−0.182) | −1 +0 |" in page


def test_a_failure_is_told_in_words() -> None:
    assert failure_words("target_error: MyError: HTTP 503") == "the target failed: MyError: HTTP 503"
    assert failure_message("judge_error: no verdict: none") == "no verdict: none"
    assert failure_words("other: x") == failure_message("other: x") == "other: x"


def test_a_single_group_is_shown_only_where_it_regressed_and_those_that_did_come_first() -> None:
    steady, regressed, _ = GROUPS
    assert shown_groups(comparison(groups=(steady,))) == []
    assert shown_groups(comparison(groups=(regressed,))) == [regressed]
    groups = shown_groups(comparison(groups=(*[steady] * 30, regressed)))
    assert [group.name for group in groups] == ["travel", *["rail"] * 30]


def test_a_lost_question_is_no_error_of_a_gate_that_allows_it() -> None:
    for state, errors in (("unknown", 2), ("held", 0)):
        made = quiet(lost=(LOST,), rules=(Rule("lost", state, value=1), Rule("flips", "held")))
        assert f'tests="4" failures="0" errors="{errors}"' in comparison_junit(made)


@pytest.mark.parametrize("render", [shown, comparison_markdown, comparison_junit, json_text, comparison_html])
def test_where_another_system_answered_the_reruns_nothing_is_dismissed(render: Callable[[Comparison], str]) -> None:
    rules = (Rule("another system", "unknown", value=1),)
    text = render(quiet(verdict="unknown", rules=rules, flips=(FLIP,), reruns=Reruns(calls=3, another_system=True)))
    assert "another_system" in text or "another system was rerun" in text
    assert not re.search("not count|lucky|excused.{,3}true", re.sub("(?s)<script.*?</script>", "", text))
    assert render is not comparison_junit or '<error message="7 (travel) broke' in text


# Foreign text


def test_a_line_stays_one_whatever_stands_in_it() -> None:
    lines = shown(comparison(rules=(Rule("unclear", "unknown", value=1, names=("a\nb ¦ c [red]",)),))).splitlines()
    assert any("1 question (a b ¦ c [red]) failed every rerun" in line for line in lines)


def test_a_text_of_a_megabyte_stays_short_everywhere() -> None:
    word = "x" * 1_000_000
    change = replace(FLIP, id=word, question=word, domain=word, before=flat(word, word), after=flat(f"{word}y", word))
    made = comparison(flips=(replace(change, cause=replace(DEMOTED, detail=word)),))
    for render in (shown, commands, comparison_markdown, comparison_junit):
        assert max(map(len, render(made).splitlines())) < 2_000
    assert one_line(word) == "x" * 159 + "…"
    assert one_line("a \n b") == "a b"
    assert one_line(None) == ""


# JSON


def test_json_holds_no_number_that_is_none_and_no_text_that_is_none() -> None:
    """NaN and infinity are null; half of a surrogate pair is the replacement character, and a whole pair its letter."""
    made = comparison_json(hostile())
    text = json.dumps(made, allow_nan=False, ensure_ascii=False)
    assert "\N{REPLACEMENT CHARACTER}" in text
    json.loads(text.encode())
    assert made["metrics"]["recall_at_k"]["interval"] == [None, None]
    assert made["metrics"]["recall_at_k"]["drop"] is None
    (pair,) = comparison_json(comparison(added=("\ud83d\ude00",)))["added"]
    assert pair == "\N{GRINNING FACE}"


def test_json_tells_no_sources_from_none_found() -> None:
    made = comparison(flips=(replace(FLIP, before=edited(flat("a"), sources=None), after=flat("a")),))
    (flip,) = comparison_json(made)["flips"]
    assert (flip["before"]["sources"], flip["after"]["sources"]) == (None, [])


# Annotations


def test_annotations_escape_what_ends_a_property_or_a_message() -> None:
    made = comparison(flips=(replace(FLIP, id="a:b,c%d\n::error::x"),), lost=())
    first, second = annotations(made)
    assert "%0A1 question broke (allowed: 0); 1 was fixed%0A" in first
    assert second.startswith("::error title=a%3Ab%2Cc%25d %3A%3Aerror%3A%3Ax (travel) broke%3A ")


@pytest.mark.parametrize(("verdict", "level"), [("ok", "warning"), ("unknown", "warning"), ("regression", "error")])
def test_flips_are_errors_where_the_gate_says_regression(verdict: str, level: str) -> None:
    lines = list(annotations(comparison(verdict=verdict, lost=())))
    assert {line.partition(" ")[0] for line in lines} == {f"::{level}"}
    assert len(lines) == (1 if verdict == "ok" else 2)


def test_annotations_are_as_many_as_github_shows() -> None:
    lines = list(annotations(comparison(flips=(FLIP,) * 10_000, lost=(LOST,) * 10)))
    assert [line.partition(" ")[0] for line in lines] == ["::error"] * 10 + ["::warning"] * 10
    assert lines[9] == "::error title=evaltrack::and 9,992 questions more"
    assert "title=8 (travel)" in lines[-1]


# Files


@pytest.mark.parametrize("suffix", [*FORMS, ".MD"])
def test_the_suffix_chooses_the_form(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"report{suffix}"
    path.write_text("old")
    write_comparison(comparison(), path)
    assert path.read_bytes() == FORMS[suffix.lower()][0](comparison()).encode()


@pytest.mark.parametrize("name", ["report.docx", "report", ".md"])
def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(UsageError) as raised:
        check_suffix(path)
    assert str(raised.value) == f"{path}: unknown format; the name must end in one of .md, .json, .xml, .txt, .html"
    with pytest.raises(UsageError):
        write_comparison(comparison(), path)
    assert not path.exists()
