"""Checks the lines and questions of a golden set, and that the corpus holds the expected sources."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.errors import GoldenError, UsageError
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.settings_sources import read_settings, settings_of
from evaltrack.golden.corpus import Chunk, domain_folders, read_corpus
from evaltrack.golden.findings import RULES, Entry, Finding, Library, finding_of_set
from evaltrack.golden.lint_expectations import check_expectations, check_negatives
from evaltrack.golden.lint_questions import check_questions, check_size
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    from evaltrack.targets.bm25 import Bm25Target


def lint_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    *,
    target: str | None = None,
    ignore: Collection[str] = (),
) -> list[Finding]:
    """Check every line of a golden set, the questions against each other, and the expected sources against a corpus.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: Folder of pages that must hold the expected sources. None takes `corpus` under ``[golden.lint]`` in the
            settings file; else `corpus/<name of the set>` next to the file, or the folders of its domains in `corpus/`,
            if they exist; else the corpus of the ``bm25:`` target of the settings.
        target: ``bm25:DIR`` or ``bm25:DIR?by=domain``, whose index must hold the expected sources, instead of a corpus.
        ignore: Codes of `evaltrack.golden.findings.RULES` that are not reported.

    Returns:
        The findings in the order of their lines, then those about the whole set. If lines are bad, only these.

    Raises:
        UsageError: the corpus or the target cannot be read, or a code is unknown.
    """
    _check_codes(ignore)
    try:
        checked = open_golden(path, drafts=True)
    except GoldenError as error:
        findings = list(_bad_lines(str(Path(path)), error))
    else:
        findings = list(_findings(checked, libraries(checked.path, checked.stats.domains, corpus, target)))
    reported = (finding for finding in findings if finding.code not in ignore)
    return sorted(reported, key=lambda finding: (finding.line is None, finding.line or 0))


def _check_codes(codes: Collection[str]) -> None:
    for code in codes:
        if code == "bad-line":
            raise UsageError("`ignore=bad-line`: a line that is not a question cannot be ignored; correct it")
        if code not in RULES:
            near = get_close_matches(code, RULES, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"codes: {', '.join(RULES)}"
            raise UsageError(f"`ignore={shown_text(code)}`: no such code; {hint}")


def _bad_lines(file: str, error: GoldenError) -> Iterator[Finding]:
    """Yield a finding for each problem of a set that cannot be read."""
    for place, problem in enumerate(error.problems):
        line = error.lines[place] if error.lines else None
        prefix = f"{file}: " if line is None else f"{file}:{line}: "
        message, _, cure = problem[len(prefix) :].partition("; ")
        yield finding_of_set(file, "bad-line", message, cure or "correct it", line)


def _findings(checked: GoldenSet, found: Sequence[tuple[Library, Bm25Target | None]]) -> Iterator[Finding]:
    entries = all_entries(checked)
    yield from check_questions(entries)
    for library, index in found:
        part = library.entries(entries)
        yield from check_expectations(part, library)
        negatives = [entry for entry in part if entry.question.negative]
        if negatives and (index := index or index_of(library)):
            yield from check_negatives(_best(negatives, index), library)
    file, stats = str(checked.path), checked.stats
    if not found and stats.questions > stats.judged_only:
        message = "there is no corpus next to the file, so expected sources are not checked"
        yield finding_of_set(file, "no-corpus", message, "name the folder of its pages (`corpus=`)")
    yield from check_size(file, stats)


def all_entries(checked: GoldenSet) -> list[Entry]:
    """Return the questions of a set with their lines."""
    return [Entry(str(checked.path), *numbered) for numbered in checked.numbered()]


def libraries(
    path: Path, domains: Iterable[str], corpus: str | os.PathLike[str] | None, target: str | None = None
) -> list[tuple[Library, Bm25Target | None]]:
    """Return the chunks to compare the questions of the domains with, and the index of a target.

    `lint_golden` describes the arguments.

    Raises:
        UsageError: the corpus or the target cannot be read, both are named, or the target does not list its chunks.
    """
    if corpus is not None and target is not None:
        raise UsageError("`corpus=` and `target=` are both named; leave one out")
    names = frozenset(domains)
    if target is not None:
        return list(_indexed(target, names))
    corpus = corpus or read_settings().get("golden", {}).get("lint", {}).get("corpus")
    folders = list(_folders(path, names, Path(corpus) if corpus else None))
    usual = "" if folders else settings_of(EvaluationConfig, {}).target
    if usual.startswith("bm25:"):
        return list(_indexed(usual, names))
    return [(Library(str(folder), tuple(read_corpus(folder)), covered), None) for folder, covered in folders]


def _indexed(target: str, domains: frozenset[str]) -> Iterator[tuple[Library, Bm25Target]]:
    """Yield the chunks of a target's index, or of its indexes by domain, with the index."""
    from evaltrack.targets import open_target
    from evaltrack.targets.bm25 import Bm25ByDomain, Bm25Target

    if not target.startswith("bm25:"):
        cure = "write bm25:DIR, or name a folder with `corpus=`"
        raise UsageError(f"target {shown_text(target)} does not say what is in its index; {cure}")
    index = open_target(target)
    if isinstance(index, Bm25Target):
        yield Library(shown_text(target), tuple(index.chunks), domains), index
    elif isinstance(index, Bm25ByDomain):
        if missing := sorted(domains - index.indexes.keys()):
            raise UsageError(f"target {shown_text(target)} has no folder for the domain {missing[0]}; add it")
        for domain in sorted(domains):
            part = index.indexes[domain]
            yield Library(f"{shown_text(target)} ({domain})", tuple(part.chunks), frozenset({domain})), part


def index_of(library: Library) -> Bm25Target | None:
    """Return a BM25 index of a corpus; None if the corpus holds no words."""
    from evaltrack.targets.bm25 import Bm25Target, EmptyIndexError

    try:
        return Bm25Target(list(library.chunks))
    except EmptyIndexError:
        return None


def _best(negatives: Sequence[Entry], index: Bm25Target) -> Iterator[tuple[Entry, Chunk]]:
    """Yield each negative that the target would not decline, with the chunk that ranks first."""
    for entry in negatives:
        for chunk, score in index.search(entry.question.question, 1):
            if score >= index.floor:
                yield entry, chunk


def _folders(path: Path, domains: frozenset[str], corpus: Path | None) -> Iterator[tuple[Path, frozenset[str]]]:
    """Yield the named folder of pages, or the folders next to a set, each with the domains that it covers."""
    folder = corpus or path.parent / "corpus" / path.stem
    if corpus or folder.is_dir():
        yield folder, domains
    else:
        folders = domain_folders(folder.parent, domains)
        yield from ((folders[domain], frozenset({domain})) for domain in sorted(domains & folders.keys()))
