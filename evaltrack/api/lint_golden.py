"""What is wrong with a golden set, and what is only worth a warning."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from evaltrack.errors import GoldenError
from evaltrack.golden.corpus import Chunk, domain_folders, parse_chunker, parse_suffixes, read_corpus
from evaltrack.golden.reader import GoldenSet, GoldenStats, open_golden
from evaltrack.scoring.retrieval import title_key

MIN_QUESTIONS, MIN_NEGATIVES = 10, 2
"""Each domain has at least 10 questions, 2 or 3 of them negatives."""

SHOWN_IDS = 10

CATEGORIES = ("installation", "configuration", "usage", "troubleshooting", "api")
"""What users of software ask about. A set may use any labels; one that uses some of these should cover them all."""


def lint_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    chunk: str = "heading",
    corpus_files: str = "",
) -> list[str]:
    """Check every line of a golden set, and that what it expects is in the corpus; the warnings.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: Folder of pages that must hold what is expected; None takes `corpus/<name of the set>` beside the file,
            or the folders of its domains there, as far as they are there.
        chunk: How pages become chunks, as in the setting `chunk` of `bm25:`.
        corpus_files: The formats that are read, as in the setting `files` of `bm25:`.

    Raises:
        GoldenError: lines are bad, or what they expect is not in the corpus; `problems` names each.
        UsageError: the corpus cannot be read, or `chunk` or `corpus_files` is wrong.
    """
    read = partial(read_corpus, chunker=parse_chunker(chunk), suffixes=parse_suffixes(corpus_files))
    checked = open_golden(path)
    folders = _folders(checked, Path(corpus) if corpus is not None else None)
    problems = [problem for folder, domains in folders for problem in _missing(checked, read(folder), folder, domains)]
    if problems:
        raise GoldenError(problems)
    return [
        *_repeated_questions(checked),
        *_answered_negatives(checked),
        *_misspelt_categories(checked.stats),
        *_thin_domains(checked.stats),
    ]


def _folders(checked: GoldenSet, corpus: Path | None) -> Iterator[tuple[Path, frozenset[str]]]:
    """The folders of pages that are beside a set, or were named, each with the domains that are looked up in it."""
    domains = frozenset(checked.stats.by["domain"])
    folder = corpus or checked.path.parent / "corpus" / checked.path.stem
    if corpus or folder.is_dir():
        yield folder, domains
    else:
        folders = domain_folders(folder.parent, domains)
        yield from ((folders[domain], frozenset({domain})) for domain in sorted(domains & folders.keys()))


def _missing(checked: GoldenSet, chunks: Sequence[Chunk], folder: Path, domains: frozenset[str]) -> Iterator[str]:
    ids, titles = {c.id: c.id for c in chunks}, {title_key(c.title): c.title for c in chunks}
    for question in (each for each in checked if each.domain in domains):
        in_corpus = titles if question.by_title else ids
        for expected in question.expected or ():
            key = title_key(expected) if question.by_title else expected
            if key not in in_corpus:
                near = get_close_matches(key, in_corpus, n=1)
                hint = f"did you mean `{in_corpus[near[0]]}`?" if near else "add the page, or correct the question"
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
        yield f"{_first(ids)} {what}, which is not used: remove it, or say which sources are expected"


def _first(names: Sequence[str]) -> str:
    """``n0, n1 and 2 more``."""
    more = f" and {len(names) - SHOWN_IDS:,} more" if len(names) > SHOWN_IDS else ""
    return ", ".join(names[:SHOWN_IDS]) + more


def _misspelt_categories(stats: GoldenStats) -> Iterator[str]:
    for category, questions in stats.by["category"].items():
        near = get_close_matches(category.casefold(), CATEGORIES, n=1, cutoff=0.8)
        if near and near != [category.casefold()]:
            yield f"category `{category}` of {questions} question{'s' * (questions > 1)}: did you mean `{near[0]}`?"


def uncovered_categories(stats: GoldenStats) -> list[str]:
    """Of a set that uses some of the known categories, those without a question."""
    covered = {category.casefold() for category in stats.by["category"]}
    return [] if covered.isdisjoint(CATEGORIES) else [each for each in CATEGORIES if each not in covered]


def _thin_domains(stats: GoldenStats) -> Iterator[str]:
    if stats.questions in (stats.judged_only, stats.negatives):  # nothing is there to decline, or nothing else
        return
    for domain, questions in stats.by["domain"].items():
        negatives = stats.negatives_by_domain[domain]
        if questions < MIN_QUESTIONS or negatives < MIN_NEGATIVES:
            problem = f"domain {domain} has {questions} questions, {negatives} of them negatives"
            yield f"{problem}; at least {MIN_QUESTIONS} with {MIN_NEGATIVES} or 3 negatives make a set"
