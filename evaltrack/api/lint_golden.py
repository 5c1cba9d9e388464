"""What is wrong with a golden set, and what is only worth a warning."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.corpus import Chunk, domain_folders, read_corpus
from evaltrack.golden.lint import answers, chunks, ids, questions, size
from evaltrack.golden.lint.finding import RULES, Entry, Finding
from evaltrack.golden.lint.library import Library
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    from evaltrack.targets.bm25 import Bm25Target


def lint_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    *,
    target: str | None = None,
    else_target: str | None = None,
    ignore: Collection[str] = (),
) -> list[Finding]:
    """Check every line of a golden set, the questions among each other, and all of it against a corpus.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: Folder of pages that must hold what is expected; None takes `corpus/<name of the set>` beside the file,
            or the folders of its domains there, as far as they are there.
        target: ``bm25:DIR`` or ``bm25:DIR?by=domain``, in whose index what is expected must be, instead of a corpus.
        else_target: Such a target for a set without a corpus beside it.
        ignore: Codes of `evaltrack.golden.lint.finding.RULES` that are not reported.

    Returns:
        The findings in the order of their lines, those about the whole set last. Where lines are bad, these alone.

    Raises:
        UsageError: the corpus or the target cannot be read, or a code is unknown.
    """
    _check_codes(ignore)
    try:
        checked = open_golden(path, drafts=True)
    except GoldenError as error:
        findings = list(_bad_lines(str(Path(path)), error))
    else:
        shelves = libraries(checked, corpus, target) or libraries(checked, None, else_target)
        findings = list(_findings(checked, shelves))
    reported = (finding for finding in findings if finding.code not in ignore)
    return sorted(reported, key=lambda finding: (finding.line is None, finding.line or 0))


def _check_codes(codes: Collection[str]) -> None:
    """Refuse unknown codes.

    Raises:
        UsageError: a code is none of `RULES`, or that of errors in reading, which cannot be ignored.
    """
    for code in codes:
        if code == "bad-line":
            raise UsageError("`ignore=bad-line`: a line that is no question cannot be ignored; correct it")
        if code not in RULES:
            near = get_close_matches(code, RULES, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"codes: {', '.join(RULES)}"
            raise UsageError(f"`ignore={shown_text(code)}`: no such code; {hint}")


def _bad_lines(file: str, error: GoldenError) -> Iterator[Finding]:
    """A finding for each problem of a set that cannot be read."""
    for place, problem in enumerate(error.problems):
        line = error.lines[place] if error.lines else None
        prefix = f"{file}: " if line is None else f"{file}:{line}: "
        message, _, cure = problem[len(prefix) :].partition("; ")
        yield Finding(file=file, line=line, id=None, code="bad-line", message=message, cure=cure or "correct it")


def _findings(checked: GoldenSet, shelves: Sequence[tuple[Library, Bm25Target | None]]) -> Iterator[Finding]:
    entries = all_entries(checked)
    yield from chain(ids.check_repeats(entries), ids.check_blanks(entries))
    yield from questions.check_questions(entries)
    yield from chain(answers.check_empty_answers(entries), answers.check_unused_answers(entries))
    for library, index in shelves:
        part = library.entries(entries)
        yield from chain(ids.check_ids(part, library), ids.check_titles(part, library))
        yield from answers.check_answers(part, library)
        yield from chunks.check_copies(part, library)
        negatives = [entry for entry in part if entry.question.negative]
        if negatives and (index := index or index_of(library)):
            yield from chunks.check_negatives(_best(negatives, index), library)
    file, stats = str(checked.path), checked.stats
    if not shelves and stats.questions > stats.judged_only:
        message = "there is no corpus beside the file, and what is expected is not looked up"
        cure = "name the folder of its pages (`corpus=`)"
        yield Finding(file=file, line=None, id=None, code="no-corpus", message=message, cure=cure)
    yield from chain(size.check_domains(file, stats), size.check_size(file, stats))


def all_entries(checked: GoldenSet) -> list[Entry]:
    """The questions of a set with their lines."""
    return [Entry(str(checked.path), *numbered) for numbered in checked.numbered()]


def libraries(
    checked: GoldenSet, corpus: str | os.PathLike[str] | None, target: str | None
) -> list[tuple[Library, Bm25Target | None]]:
    """The chunks that the questions of a set are held against, with the target's index of them where one is named.

    Raises:
        UsageError: the corpus or the target cannot be read, both are named, or the target does not say what it holds.
    """
    if corpus is not None and target is not None:
        raise UsageError("`corpus=` and `target=` are both named; leave one out")
    if target is not None:
        return list(_indexed(target, frozenset(checked.stats.by["domain"])))
    return [
        (Library(str(folder), tuple(read_corpus(folder)), domains), None)
        for folder, domains in _folders(checked, Path(corpus) if corpus is not None else None)
    ]


def _indexed(target: str, domains: frozenset[str]) -> Iterator[tuple[Library, Bm25Target]]:
    """The chunks in the index of a target, or in its indexes by domain."""
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
    """An index of a corpus; None where it holds no words."""
    from evaltrack.targets.bm25 import Bm25Target, EmptyIndexError

    try:
        return Bm25Target(list(library.chunks))
    except EmptyIndexError:
        return None


def _best(negatives: Sequence[Entry], index: Bm25Target) -> Iterator[tuple[Entry, Chunk]]:
    """Negatives with the chunk that ranks first, where the target would not say that it does not know."""
    for entry in negatives:
        for chunk, score in index.search(entry.question.question, 1):
            if score >= index.floor:
                yield entry, chunk


def _folders(checked: GoldenSet, corpus: Path | None) -> Iterator[tuple[Path, frozenset[str]]]:
    """The folders of pages that are beside a set, or were named, each with the domains that are looked up in it."""
    domains = frozenset(checked.stats.by["domain"])
    folder = corpus or checked.path.parent / "corpus" / checked.path.stem
    if corpus or folder.is_dir():
        yield folder, domains
    else:
        folders = domain_folders(folder.parent, domains)
        yield from ((folders[domain], frozenset({domain})) for domain in sorted(domains & folders.keys()))
