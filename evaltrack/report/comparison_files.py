"""Renders a comparison as JUnit XML and GitHub annotations, and writes a file in the format of its suffix."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import ComparedSet, Comparison, SetComparisons
from evaltrack.errors import UsageError
from evaltrack.records.base import count
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import (
    cause_rest,
    metric_lines,
    note_words,
    reasons,
)
from evaltrack.report.escaping import clip, json_document, without_any_commands
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.report.sets import compared_sets_html, page_names, sets_json_text, sets_markdown, sets_text
from evaltrack.report.templates import say
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
    root = ET.Element("testsuites", name="evaltrack")
    for each in made.sets:
        golden = clip(each.golden, 80)
        if each.comparison is None:
            _suite(root, golden, [_case("gate", "verdict", "error", clip(each.problem, 600), ())])
        else:
            _suite(root, f"gate of {golden}", _rules(each.comparison))
            _suite(root, golden, _questions(each.comparison))
    totals = [suite.attrib for suite in root]
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(total[name]) for total in totals)))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(root: ET.Element, name: str, cases: Iterable[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", name=name)
    suite.extend(list(cases))
    tags = [case[0].tag for case in suite if len(case)]
    suite.set("tests", str(len(suite)))
    for total, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(total, str(tags.count(tag)))


def _rules(comparison: Comparison) -> Iterator[ET.Element]:
    """Yield a case for the verdict, with all its reasons and numbers, and a case for each rule."""
    k = comparison.candidate.signature.k
    told = (say.headline, say.sides, say.cause, say.counts)
    lines = [*reasons(comparison), *(sentence(comparison) for sentence in told), say.reruns(comparison.reruns)]
    lines += [*map(say.metric_line, metric_lines(comparison)), *note_words(comparison)]
    tag = {"ok": "", "regression": "failure", "unknown": "error"}[comparison.verdict]
    yield _case("gate", "verdict", tag, say.headline(comparison), (clip(line, 600) for line in lines if line))
    for rule in comparison.rules:
        tag = {"broken": "failure", "unknown": "error"}.get(rule.state, "")
        name = rule.kind if rule.metric is None else metric_title(rule.metric.name, k)
        yield _case(
            "gate", f"{name} in {clip(rule.where)}" if rule.where else name, tag, say.rule(rule, comparison), ()
        )


def _questions(comparison: Comparison) -> Iterator[ET.Element]:
    golden, k = clip(comparison.candidate.signature.golden, 80), comparison.candidate.signature.k
    for changes in comparison.by_fate.values():
        for change in changes:
            yield _changed_case(change, k, _tag(change, comparison))
    apart = {"edited": comparison.edited, "added": comparison.added, "removed": comparison.removed}
    for why, ids in (apart | {"not selected": comparison.not_selected}).items():
        for each in ids:
            yield _case(golden, clip(each), "skipped", f"{why}: not compared", ())
    for row in comparison.same if len(comparison.same) == comparison.count("identical") else ():
        outcome = row.outcome if comparison.passing_compared or row.target_failed else "not compared"
        tag, words = "skipped" if outcome in UNMEASURED else "", f"{outcome} on both sides"
        lines = (words,) if outcome == "fail" else ()
        yield _case(clip(row.domain), _name(row.id, row.question), tag, words, lines)


def _tag(change: Change, comparison: Comparison) -> str:
    """Return the result of a changed question. One that does not count must not fail a passed gate."""
    if change.fate == "broke":
        unclear = comparison.reruns.another_system or (change.rerun is not None and change.rerun.state == "unclear")
        counts = change.counts and comparison.verdict == "regression"
        return "failure" if counts else "error" if unclear else ""
    return "error" if change.fate == "lost" else "skipped" if {change.was, change.now} <= UNMEASURED else ""


UNMEASURED = {"error", "not measured"}
"""Outcomes without a measurement."""


def _name(key: str, question: str | None) -> str:
    """Return ``7: Can I get a refund?``, or the id alone if the question's text was not read."""
    return ": ".join(filter(None, (clip(key), clip(question))))


def _changed_case(change: Change, k: int, tag: str) -> ET.Element:
    parts = {"asked": clip(change.question, 300), "why": say.why(change)}
    parts |= {"scores": say.moved(change, k), "see": clip(change.cause.link, 500)}
    lines = [say.changed(change), *(f"{name}: {words}" for name, words in parts.items() if words)]
    return _case(
        clip(change.domain),
        _name(change.id, change.question),
        tag,
        f"{say.changed(change)}{''.join(cause_rest(change))}",
        lines,
    )


def _case(classname: str, name: str, tag: str, message: str, lines: Iterable[str]) -> ET.Element:
    """Return one test case. `tag` is the result, "" if it passed. A passed case has its lines as its output."""
    case = ET.Element("testcase", classname=classname or "-", name=name or "-")
    text = without_any_commands("\n".join(lines))
    if tag:
        ET.SubElement(case, tag, message=message).text = text or None
    elif text:
        ET.SubElement(case, "system-out").text = text
    return case


SHOWN = 10
"""GitHub shows ten errors and ten warnings of a step, and drops the rest silently."""


def annotations(comparison: Comparison) -> Iterator[str]:
    """Yield the lines to print: the verdict with its reasons, and the first questions that broke or were lost.

    A regression and its broken questions are an ``::error`` each. An undecided verdict, lost questions, and broken
    questions that the gate tolerates are a ``::warning`` each. At most ten of each; none if nothing is wrong.
    """
    failed = comparison.verdict == "regression"
    verdict = [] if comparison.verdict == "ok" else [_verdict(comparison)]
    blocking = [change for change in comparison.flips if change.counts and failed]
    others = [change for change in comparison.flips if not (change.counts and failed)]
    errors = [*verdict, *map(_question, blocking[:SHOWN])] if failed else []
    lost = comparison.by_fate["lost"]
    warnings = [*([] if failed else verdict), *map(_question, (*others[:SHOWN], *lost[:SHOWN]))]
    yield from _commands("error", errors, len(verdict) + len(blocking) if failed else 0)
    yield from _commands("warning", warnings, len(others) + len(lost) + (0 if failed else len(verdict)))


def _verdict(comparison: Comparison) -> tuple[str, str]:
    lines = [say.cause(comparison), say.sides(comparison), *reasons(comparison)[:SHOWN]]
    lines += [say.reruns(comparison.reruns), say.summary(comparison)]
    return say.headline(comparison), "\n".join(filter(None, lines))


def _question(change: Change) -> tuple[str, str]:
    asked = f"\nasked: {clip(change.question)}" if change.question else ""
    return say.changed(change), f"{say.why(change)}{asked}"


def _commands(level: str, messages: list[tuple[str, str]], total: int) -> Iterator[str]:
    """Yield the first messages. If there are more, the last line says how many."""
    first = messages if total <= SHOWN else messages[: SHOWN - 1]
    for title, message in first:
        yield f"::{level} title={_data(title).replace(':', '%3A').replace(',', '%2C')}::{_data(message)}"
    if total > len(first):
        yield f"::{level} title=evaltrack::and {count(total - len(first), 'question')} more"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# Files


def json_text(comparison: Comparison) -> str:
    """Return `comparison_json` as text that ends with a new line."""
    return json_document(comparison_json(comparison))


FORMS: dict[str, Callable[[Comparison], str]] = {
    ".md": comparison_markdown,
    ".json": json_text,
    ".xml": comparison_junit,
    ".txt": comparison_text,
    ".html": comparison_html,
}
"""The rendering for each suffix: Markdown, JSON, JUnit XML, plain text, and HTML."""


SET_FORMS: dict[str, Callable[[SetComparisons], str]] = {
    ".md": sets_markdown,
    ".json": sets_json_text,
    ".xml": sets_junit,
    ".txt": sets_text,
}
"""The rendering of several golden sets for each suffix but HTML, which is several pages."""


def form_of(path: Path | str) -> Callable[[Comparison], str]:
    """Return the rendering for the suffix of `path`. Call it before long work, so that a wrong suffix is found early.

    Raises:
        UsageError: the suffix is unknown; the message lists the known ones.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMS:
        raise UsageError(f"{path}: unknown format; the name must end in one of {', '.join(FORMS)}")
    return FORMS[suffix]


def write_comparison(comparison: Comparison, path: Path | str) -> None:
    """Write the comparison to `path` in UTF-8, in the format of its suffix. An existing file is replaced.

    Missing folders are created.

    Raises:
        UsageError: the suffix is unknown, or the file cannot be written.
        InconclusiveError: the disk is full or fails; an earlier file is unchanged.
    """
    form = form_of(path)
    check_result_file(Path(path))
    write_result_file(Path(path), [form(comparison)])


def write_sets(made: SetComparisons, path: Path | str) -> None:
    """Write the comparisons of several golden sets to `path`, in the format of its suffix.

    An HTML page has a table of the sets, with what broke in each; the page of each comparison is in the folder next to
    it with the same name. The errors are those of `write_comparison`.
    """
    path = Path(path)
    form_of(path)
    check_result_file(path)
    if form := SET_FORMS.get(path.suffix.lower()):
        write_result_file(path, [form(made)])
        return
    names = page_names((each.golden for each in made.sets), range(1, len(made.sets) + 1))
    for each, name in zip(made.sets, names, strict=True):
        if each.comparison:
            write_result_file(path.with_suffix("") / f"{name}.html", [comparison_html(each.comparison)])
    write_result_file(path, [compared_sets_html(made, [f"{quote(path.stem)}/{quote(name)}.html" for name in names])])
