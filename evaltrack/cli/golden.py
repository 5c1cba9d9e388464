"""`evaltrack golden`: check golden sets, and count what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evaltrack.cli.output import output_option, print_json, result_is_in
from evaltrack.errors import GoldenError

if TYPE_CHECKING:
    from evaltrack.golden.reader import GoldenSet, GoldenStats

MIN_QUESTIONS, MIN_NEGATIVES = 10, 2
"""Each domain has at least 10 questions, 2 or 3 of them negatives."""

SHOWN_IDS = 10

CATEGORIES = ("installation", "configuration", "usage", "troubleshooting", "api")
"""What users of software ask about. A set may use any labels; one that uses some of these should cover them all."""

LINT_EXAMPLES = """\b
Examples:
  evaltrack golden lint golden/*.json*
  evaltrack golden lint mine.jsonl --corpus docs
"""


@click.group()
def golden() -> None:
    """Check golden sets, and count what they hold."""


@golden.command(epilog=LINT_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--corpus",
    default="",
    help="Folder of pages that must hold what is expected.  [default: corpus/NAME beside each file, if there]",
)
@click.option("--strict", is_flag=True, help="Exit 1 on warnings too.")
def lint(files: tuple[str, ...], corpus: str, strict: bool) -> int:
    """Check every line of the golden sets FILES, and that what they expect is in the corpus.

    Exits 2 if any line is bad; all bad lines of all files are listed.
    """
    problems: list[str] = []
    warned = False
    for name in files:
        try:
            found, warnings = _lint(Path(name), corpus)
        except GoldenError as error:
            problems.extend(error.problems)
            continue
        problems.extend(found)
        for warning in warnings:
            warned = True
            click.secho(f"{name}: warning: {warning}", err=True, fg="yellow")
    if problems:
        raise GoldenError(problems)
    result_is_in("the exit code")
    click.echo(f"{len(files)} golden set{'s' * (len(files) > 1)} checked, all lines are good")
    return 1 if strict and warned else 0


def _lint(path: Path, corpus: str) -> tuple[list[str], list[str]]:
    """What is wrong with one file's expectations, and what is only worth a warning."""
    from evaltrack.golden.reader import open_golden

    checked = open_golden(path)
    problems = [
        problem for folder, domains in _folders(checked, corpus) for problem in _missing(checked, folder, domains)
    ]
    warnings = (
        _repeated_questions(checked),
        _answered_negatives(checked),
        _misspelt_categories(checked.stats),
        _thin_domains(checked.stats),
    )
    return problems, [warning for found in warnings for warning in found]


def _folders(checked: GoldenSet, corpus: str) -> Iterator[tuple[Path, frozenset[str]]]:
    """The folders of pages that are beside a set, or were named, each with the domains that are looked up in it."""
    from evaltrack.golden.corpus import domain_folders

    domains = frozenset(checked.stats.by["domain"])
    folder = Path(corpus) if corpus else checked.path.parent / "corpus" / checked.path.stem
    if corpus or folder.is_dir():
        yield folder, domains
    else:
        found = domain_folders(folder.parent, domains)
        yield from ((found[domain], frozenset({domain})) for domain in sorted(domains & found.keys()))


def _missing(checked: GoldenSet, folder: Path, domains: frozenset[str]) -> Iterator[str]:
    from difflib import get_close_matches

    from evaltrack.golden.corpus import read_corpus
    from evaltrack.scoring.retrieval import title_key

    chunks = read_corpus(folder)
    ids, titles = {c.id: c.id for c in chunks}, {title_key(c.title): c.title for c in chunks}
    for question in (each for each in checked if each.domain in domains):
        known = titles if question.by_title else ids
        for expected in question.expected or ():
            key = title_key(expected) if question.by_title else expected
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean `{known[near[0]]}`?" if near else "add the page, or correct the question"
                yield f"{checked.path}: question {question.id}: `{expected}` is not in {folder}; {hint}"


def _repeated_questions(checked: GoldenSet) -> Iterator[str]:
    """The same text twice counts twice, and tells nothing more."""
    first, repeats = dict[int, str](), list[str]()
    for question in checked:
        text = hash(" ".join(question.question.casefold().split()))
        if text in first:
            repeats.append(f"{question.id} (as {first[text]})")
        first.setdefault(text, question.id)
    if repeats:
        what = "asks" if len(repeats) == 1 else "ask"
        yield f"{_first(repeats)} {what} what another question asks: reword or remove"


def _answered_negatives(checked: GoldenSet) -> Iterator[str]:
    """A negative is passed by declining: an answer that is expected of it is never looked at."""
    ids = [question.id for question in checked if question.negative and question.expected_answer is not None]
    if ids:
        what = "is a negative with an `expected_answer`" if len(ids) == 1 else "are negatives with an `expected_answer`"
        yield f"{_first(ids)} {what}, which nobody looks at: remove it, or say which sources are expected"


def _first(names: Sequence[str]) -> str:
    """``n0, n1 and 2 more``."""
    more = f" and {len(names) - SHOWN_IDS:,} more" if len(names) > SHOWN_IDS else ""
    return ", ".join(names[:SHOWN_IDS]) + more


def _misspelt_categories(stats: GoldenStats) -> Iterator[str]:
    from difflib import get_close_matches

    for category, questions in stats.by["category"].items():
        near = get_close_matches(category.casefold(), CATEGORIES, n=1, cutoff=0.8)
        if near and near != [category.casefold()]:
            yield f"category `{category}` of {questions} question{'s' * (questions > 1)}: did you mean `{near[0]}`?"


def _uncovered_categories(stats: GoldenStats) -> list[str]:
    """Of a set that uses some of the known categories, those without a question."""
    used = {category.casefold() for category in stats.by["category"]}
    return [] if used.isdisjoint(CATEGORIES) else [each for each in CATEGORIES if each not in used]


def _thin_domains(stats: GoldenStats) -> Iterator[str]:
    if stats.questions in (stats.judged_only, stats.negatives):  # nothing is there to decline, or nothing else
        return
    for domain, questions in stats.by["domain"].items():
        negatives = stats.negatives_by_domain[domain]
        if questions < MIN_QUESTIONS or negatives < MIN_NEGATIVES:
            held = f"domain {domain} has {questions} questions, {negatives} of them negatives"
            yield f"{held}; at least {MIN_QUESTIONS} with {MIN_NEGATIVES} or 3 negatives make a set"


@golden.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@output_option()
def stats(files: tuple[str, ...], output: str) -> None:
    """Count questions, negatives, domains, difficulties and categories of the golden sets FILES."""
    from evaltrack.golden.reader import open_golden

    sets = [open_golden(name) for name in files]
    if output == "json":
        print_json([_counts(s) for s in sets])
        return
    for checked in sets:
        held = checked.stats
        counts = f"{held.questions} questions, {held.negatives} negatives, {held.with_answer} with an expected answer"
        click.echo(f"{checked.path}: {counts}")
        for label, names in held.by.items():
            if names:
                click.echo(f"  {label}: " + ", ".join(f"{name} {n}" for name, n in names.most_common(20)))
        if uncovered := _uncovered_categories(held):
            click.echo(f"  no question on: {', '.join(uncovered)}")


def _counts(checked: GoldenSet) -> dict[str, object]:
    held = checked.stats
    return {
        "file": str(checked.path),
        "digest": checked.digest,
        "questions": held.questions,
        "negatives": held.negatives,
        "judged_only": held.judged_only,
        "with_answer": held.with_answer,
        **{label: dict(counts) for label, counts in held.by.items()},
        "category_uncovered": _uncovered_categories(held),
    }
