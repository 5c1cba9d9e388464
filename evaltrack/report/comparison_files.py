"""Renders a comparison as JUnit XML and GitHub annotations, and writes a file in the format of its suffix."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import ComparedSet, Comparison, SetComparisons
from evaltrack.errors import UsageError
from evaltrack.records.base import count
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import (
    cause_rest,
    reasons,
)
from evaltrack.report.escaping import json_document, one_line, without_any_commands
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.report.sets import compared_sets_html, page_names, sets_json_text, sets_markdown, sets_text
from evaltrack.report.templates import loaded, say
from evaltrack.report.words import metric_title
from evaltrack.system.files import check_result_file, write_result_file


def comparison_junit(comparison: Comparison) -> str:
    """Return the JUnit XML with one test case for each rule of the gate and for each question.

    A question that broke is a failure with its cause if it counts, and an error if reruns did not decide. A lost
    question is an error. Questions that were not compared are skipped: edited, added, removed or not selected ones, and
    those that neither side measured. All other questions pass: a question that fails on both sides is no regression.
    The name of a case is the question's id and text, and its class is the domain, so that a test history follows a
    question from run to run. Characters of foreign text that are not printable, or that XML forbids, become spaces.
    """
    golden = comparison.candidate.signature.golden
    return sets_junit(SetComparisons([ComparedSet(golden, comparison)]))


def sets_junit(made: SetComparisons) -> str:
    """Return the JUnit XML of several golden sets. A set that could not be compared is one case with an error."""
    suites: list[tuple[str, list[_Case]]] = []
    for each in made.sets:
        golden = one_line(each.golden, 80)
        if each.comparison is None:
            suites.append((golden, [_Case("gate", "verdict", "error", one_line(each.problem, 600))]))
        else:
            suites.append((f"gate of {golden}", list(_rules(each.comparison))))
            suites.append((golden, list(_questions(each.comparison))))
    results = [case.result for _, cases in suites for case in cases]
    template = loaded(autoescape=True).get_template("junit.xml")
    return f"{without_any_commands(template.render(suites=suites, all_results=results))}\n"


class _Case(NamedTuple):
    """One test case. `result` is the name of its element, "" if it passed; the template tells what it is `about`."""

    classname: str
    name: str
    result: str
    message: str = ""
    about: Comparison | Change | None = None
    k: int = 0


def _rules(comparison: Comparison) -> Iterator[_Case]:
    """Yield a case for the verdict, with all its reasons and numbers, and a case for each rule."""
    k = comparison.candidate.signature.k
    result = {"ok": "", "regression": "failure", "unknown": "error"}[comparison.verdict]
    yield _Case("gate", "verdict", result, say.headline(comparison), comparison)
    for rule in comparison.rules:
        result = {"broken": "failure", "unknown": "error"}.get(rule.state, "")
        name = rule.kind if rule.metric is None else metric_title(rule.metric.name, k)
        where = f" in {one_line(rule.where)}" if rule.where else ""
        yield _Case("gate", name + where, result, say.rule(rule, comparison))


def _questions(comparison: Comparison) -> Iterator[_Case]:
    golden, k = one_line(comparison.candidate.signature.golden, 80), comparison.candidate.signature.k
    for change in comparison.listed:
        name, message = _name(change.id, change.question), f"{say.changed(change)}{''.join(cause_rest(change))}"
        yield _Case(one_line(change.domain), name, _result(change, comparison), message, change, k)
    apart = {"edited": comparison.edited, "added": comparison.added, "removed": comparison.removed}
    for why, ids in (apart | {"not selected": comparison.not_selected}).items():
        for each in ids:
            yield _Case(golden, one_line(each), "skipped", f"{why}: not compared")
    for row in comparison.same if len(comparison.same) == comparison.count("identical") else ():
        outcome = row.outcome if comparison.passing_compared or row.target_failed else "not compared"
        result = "skipped" if outcome in UNMEASURED else ""
        yield _Case(one_line(row.domain), _name(row.id, row.question), result, f"{outcome} on both sides")


def _result(change: Change, comparison: Comparison) -> str:
    """Return the result of a changed question. One that does not count must not fail a passed gate."""
    if change.fate == "broke":
        unclear = comparison.reruns.another_system or (change.rerun is not None and change.rerun.state == "unclear")
        counts = change.counts and comparison.verdict == "regression"
        return "failure" if counts else "error" if unclear else ""
    if change.fate == "lost" and any(rule.kind == "lost" and rule.state == "unknown" for rule in comparison.rules):
        return "error"
    return "skipped" if {change.was, change.now} <= UNMEASURED else ""


UNMEASURED = {"error", "not measured"}
"""Outcomes without a measurement."""


def _name(key: str, question: str | None) -> str:
    """Return ``7: Can I get a refund?``, or the id alone if the question's text was not read."""
    return ": ".join(filter(None, (one_line(key), one_line(question))))


SHOWN = 10
"""GitHub shows ten errors and ten warnings of a step, and drops the rest silently."""


def annotations(comparison: Comparison) -> Iterator[str]:
    """Yield the lines to print: the verdict with its reasons, and the first questions that broke or were lost.

    A regression and its broken questions are an ``::error`` each. An undecided verdict, lost questions, and broken
    questions that the gate tolerates are a ``::warning`` each. At most ten of each; none if nothing is wrong.
    """
    failed = comparison.verdict == "regression"
    parts: dict[str, list[Comparison | Change]] = {"error": [], "warning": []}
    if comparison.verdict != "ok":
        parts["error" if failed else "warning"].append(comparison)
    for change in (*comparison.flips, *comparison.by_fate["lost"]):
        parts["error" if failed and change.fate == "broke" and change.counts else "warning"].append(change)
    for level, about in parts.items():
        first = about if len(about) <= SHOWN else about[: SHOWN - 1]
        for title, message in map(_annotation, first):
            yield f"::{level} title={_data(title).replace(':', '%3A').replace(',', '%2C')}::{_data(message)}"
        if len(about) > len(first):
            yield f"::{level} title=evaltrack::and {count(len(about) - len(first), 'question')} more"


def _annotation(about: Comparison | Change) -> tuple[str, str]:
    """Return the title and the message of a verdict or a question."""
    if isinstance(about, Change):
        asked = f"\nasked: {one_line(about.question)}" if about.question else ""
        return say.changed(about), f"{say.why(about)}{asked}"
    lines = [say.cause(about), say.sides(about), *reasons(about)[:SHOWN], say.reruns(about.reruns), say.summary(about)]
    return say.headline(about), "\n".join(filter(None, lines))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# Files


def json_text(comparison: Comparison) -> str:
    """Return `comparison_json` as text that ends with a new line."""
    return json_document(comparison_json(comparison))


FORMS: dict[str, tuple[Callable[[Comparison], str], Callable[[SetComparisons], str] | None]] = {
    ".md": (comparison_markdown, sets_markdown),
    ".json": (json_text, sets_json_text),
    ".xml": (comparison_junit, sets_junit),
    ".txt": (comparison_text, sets_text),
    ".html": (comparison_html, None),
}
"""The renderings of one comparison and of several golden sets for each suffix. Those as HTML are several pages."""


def check_suffix(path: Path | str) -> str:
    """Return the suffix of a result file. Call it before long work, so that a wrong suffix is found early.

    Raises:
        UsageError: the suffix is unknown; the message lists the known ones.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMS:
        raise UsageError(f"{path}: unknown format; the name must end in one of {', '.join(FORMS)}")
    return suffix


def write_comparison(made: Comparison | SetComparisons, path: Path | str) -> None:
    """Write a comparison, or those of several golden sets, to `path` in UTF-8, in the format of its suffix.

    An existing file is replaced, and missing folders are created. An HTML page of several sets has a table of them,
    with what broke in each; the page of each comparison is in the folder next to it with the same name.

    Raises:
        UsageError: the suffix is unknown, or the file cannot be written.
        InconclusiveError: the disk is full or fails; an earlier file is unchanged.
    """
    of_one, of_sets = FORMS[check_suffix(path)]
    path = Path(path)
    check_result_file(path)
    if isinstance(made, Comparison):
        text = of_one(made)
    elif of_sets:
        text = of_sets(made)
    else:
        names = page_names(each.golden for each in made.sets)
        for each, name in zip(made.sets, names, strict=True):
            if each.comparison:
                write_result_file(path.with_suffix("") / f"{name}.html", [comparison_html(each.comparison)])
        text = compared_sets_html(made, [f"{quote(path.stem)}/{quote(name)}.html" for name in names])
    write_result_file(path, [text])
