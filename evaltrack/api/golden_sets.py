"""Lints golden sets against a corpus, adds questions to them, and adds quotations of the chunks that they expect."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.errors import GoldenError, UsageError
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.settings_sources import read_settings, settings_of
from evaltrack.golden import lint
from evaltrack.golden.corpus import Chunk, domain_folders, read_corpus
from evaltrack.golden.file import is_empty_file, only_writer, read_objects, write_objects
from evaltrack.golden.quotes import QuoteChooser
from evaltrack.golden.reader import GoldenSet, NumberedQuestion, checked_question, open_golden
from evaltrack.golden.words import text_key
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Question
from evaltrack.records.config import did_you_mean
from evaltrack.system.files import content_digest

if TYPE_CHECKING:
    from evaltrack.targets.bm25 import Bm25Target


def lint_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    *,
    ignore: Collection[str] = (),
) -> list[lint.Finding]:
    """Check every line of a golden set, the questions against each other, and the expected sources against a corpus.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: Folder of pages that must hold the expected sources. None takes `corpus` under ``[golden.lint]`` in the
            settings file; else `corpus/<name of the set>` next to the file, or the folders of its domains in `corpus/`,
            if they exist; else the corpus of the ``bm25:`` target of the settings. ``bm25:DIR?chunk=words:200`` and
            ``bm25:DIR?by=domain`` split the pages as this target does.
        ignore: Codes of `evaltrack.golden.lint.CODES` that are not reported.

    Returns:
        The findings in the order of their lines, then those about the whole set. If lines are bad, only these.

    Raises:
        UsageError: the corpus cannot be read, or a code is unknown.
    """
    codes = lint.CODES.keys() - {"bad-line", "bad-file"}
    for code in ignore:
        if code not in codes:
            raise UsageError(f"`ignore={shown_text(code)}`: no such code to ignore; {did_you_mean(code, codes)}")
    try:
        checked = open_golden(path, drafts=True)
    except GoldenError as error:
        findings = list(_bad_lines(str(Path(path)), error))
    else:
        findings = list(_findings(checked, libraries(checked.path, checked.stats.domains, corpus)))
    reported = (finding for finding in findings if finding.code not in ignore)
    return sorted(reported, key=lambda finding: (finding.line is None, finding.line or 0))


def _bad_lines(file: str, error: GoldenError) -> Iterator[lint.Finding]:
    """Yield a finding for each problem of a set that cannot be read."""
    for place, problem in enumerate(error.problems):
        line = error.lines[place] if error.lines else None
        prefix = f"{file}: " if line is None else f"{file}:{line}: "
        message, _, cure = problem[len(prefix) :].partition("; ")
        code = "bad-file" if line is None else "bad-line"
        yield lint.Finding(file=file, line=line, code=code, message=message, cure=cure or "correct it")


def _findings(golden: GoldenSet, corpora: Sequence[tuple[lint.Library, Bm25Target | None]]) -> Iterator[lint.Finding]:
    entries = list(golden.numbered())
    yield from lint.check_questions(entries)
    for library, index in corpora:
        part = library.entries(entries)
        yield from lint.check_expectations(part, library)
        negatives = [entry for entry in part if entry.question.negative]
        if negatives and (index := index or index_of(library)):
            yield from lint.check_negatives(_best(negatives, index), library)
    file, stats = str(golden.path), golden.stats
    if not corpora and stats.questions > stats.judged_only:
        message = "there is no corpus next to the file, so expected sources are not checked"
        cure = "name the folder of its pages (`corpus=`)"
        yield lint.Finding(file=file, code="no-corpus", message=message, cure=cure)
    yield from lint.check_size(file, stats)


def libraries(
    path: Path, domains: Iterable[str], corpus: str | os.PathLike[str] | None
) -> list[tuple[lint.Library, Bm25Target | None]]:
    """Return the chunks to compare the questions of the domains with, and the index of a target.

    `lint_golden` describes the arguments.

    Raises:
        UsageError: the corpus cannot be read.
    """
    names = frozenset(domains)
    corpus = os.fspath(corpus or read_settings().get("golden", {}).get("lint", {}).get("corpus") or "")
    if not corpus.startswith("bm25:"):
        folders = list(_folders(path, names, Path(corpus) if corpus else None))
        corpus = "" if folders else settings_of(EvaluationConfig, {}).target
    if corpus.startswith("bm25:"):
        return list(_indexed(corpus, names))
    return [(lint.Library(str(folder), tuple(read_corpus(folder)), covered), None) for folder, covered in folders]


def _indexed(target: str, domains: frozenset[str]) -> Iterator[tuple[lint.Library, Bm25Target]]:
    """Yield the chunks of a target's index, or of its indexes by domain, with the index."""
    from evaltrack.targets import open_target
    from evaltrack.targets.bm25 import Bm25ByDomain, Bm25Target

    index = open_target(target)
    if isinstance(index, Bm25Target):
        yield lint.Library(shown_text(target), tuple(index.chunks), domains), index
    elif isinstance(index, Bm25ByDomain):
        if missing := sorted(domains - index.indexes.keys()):
            raise UsageError(f"target {shown_text(target)} has no folder for the domain {missing[0]}; add it")
        for domain in sorted(domains):
            part = index.indexes[domain]
            yield lint.Library(f"{shown_text(target)} ({domain})", tuple(part.chunks), frozenset({domain})), part


def index_of(library: lint.Library) -> Bm25Target | None:
    """Return a BM25 index of a corpus; None if the corpus holds no words."""
    from evaltrack.targets.bm25 import Bm25Target

    try:
        return Bm25Target(list(library.chunks))
    except UsageError:
        return None


def _best(negatives: Sequence[NumberedQuestion], index: Bm25Target) -> Iterator[tuple[NumberedQuestion, Chunk]]:
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


class SameQuestionError(UsageError):
    """The golden set has a question with this text."""


def add_question(
    path: str | os.PathLike[str],
    *,
    corpus: str | os.PathLike[str] | None = None,
    **fields: object,
) -> Question:
    """Add a question to a golden set. The set is made if it is missing.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: As in `lint_golden`. If there is a corpus, it must hold what the question expects, unless the question
            is a draft.
        fields: The fields of a golden line: `question`, `expected_chunks`, `expected_answer`, ... None values are left
            out. Without an `id` the question gets one more than the largest whole-number id.

    Raises:
        UsageError: a field is wrong, the corpus does not hold what is expected, or the set has a question with this id.
        SameQuestionError: the set has a question with this text.
        GoldenError: lines of the set are bad, or it cannot be written.
    """
    path = Path(path)
    if path.suffix not in (".jsonl", ".json"):
        raise UsageError(f"{path}: a golden set is a .jsonl file (one object a line) or a .json file (one array)")
    with only_writer(path):  # two processes that add at once would take the same id
        digest, is_empty = content_digest(path), is_empty_file(path)
        texts = {} if is_empty else {each.id: each.question for each in open_golden(path, drafts=True)}
        line = {"id": _next_id(texts)} | {name: value for name, value in fields.items() if value is not None}
        question = checked_question({"domain": path.stem} | line)
        if not isinstance(question, Question):
            raise UsageError("; ".join(question))
        if question.id in texts:
            raise UsageError(f"{path} has a question `{question.id}`; give another `id=`")
        new_key = text_key(question.question)
        for key, text in texts.items():
            if text_key(text) == new_key:
                raise SameQuestionError(f"question `{key}` of {path} asks the same; reword one of them")
        if question.expected and not question.draft:
            for library, _ in libraries(path, [question.domain], corpus):
                if missing := list(lint.check_ids([NumberedQuestion(str(path), 0, 0, question)], library)):
                    cure = "(an id of your own retriever: quote the passage, or add a draft with `draft=True`)"
                    raise UsageError("\n".join(f"{each.message}; {each.cure} {cure}" for each in missing))
        write_objects(path, [*([] if is_empty else read_objects(path)), line], digest)
    return question


def _next_id(ids: Iterable[str]) -> int:
    """Return one more than the largest whole-number id; 1 if there is none."""
    return 1 + max((int(key) for key in ids if key.isascii() and key.isdigit() and len(key) < 16), default=0)


@dataclass(frozen=True)
class Anchor:
    """The quotation chosen for one expected chunk of a question. `doubt` says why a person should check it."""

    question: str
    chunk: str
    quote: str
    doubt: str = ""


@dataclass(frozen=True)
class Anchored:
    """The added quotations, and `(question, reason)` for each question with chunk ids that got none."""

    anchors: Sequence[Anchor]
    left: Sequence[tuple[str, str]]


def anchor_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    *,
    dry_run: bool = False,
) -> Anchored:
    """Add to `expected_passages` a quotation of each expected chunk of the questions that have ids but no passages.

    A quotation consists of the sentences with the most words of the expected answer and the question. Sentences that
    are in no other chunk are preferred. The ids stay, for targets that return no texts. A question that got
    quotations counts as edited.

    Args:
        path: A `.jsonl` or `.json` golden set.
        corpus: As in `lint_golden`.
        dry_run: True leaves the file unchanged.

    Raises:
        GoldenError: lines are bad, or the file cannot be written or was changed in the meantime.
        UsageError: the corpus cannot be read.
    """
    digest = content_digest(Path(path))
    checked = open_golden(path, drafts=True)
    objects = read_objects(checked.path)
    entries = [
        each for each in checked.numbered() if each.question.expected_chunks and not each.question.expected_passages
    ]
    anchors: list[Anchor] = []
    left = {each.question.id: "no corpus has its expected chunks" for each in entries}
    for library, _ in libraries(checked.path, checked.stats.domains, corpus):
        chooser = QuoteChooser(library)
        for entry in library.entries(entries):
            chosen = _quotes(entry.question, library, chooser)
            if isinstance(chosen, str):
                left[entry.question.id] = chosen
                continue
            del left[entry.question.id]
            anchors += chosen
            passages = [{"quote": each.quote, "source": library.by_id[each.chunk].title} for each in chosen]
            objects[entry.number]["expected_passages"] = passages
    if anchors and not dry_run:
        write_objects(checked.path, objects, digest)
    return Anchored(anchors, list(left.items()))


def _quotes(question: Question, library: lint.Library, chooser: QuoteChooser) -> list[Anchor] | str:
    """Return a quotation of each expected chunk, or the reason that there is none."""
    anchors: list[Anchor] = []
    for key in dict.fromkeys(question.expected_chunks or ()):
        if key not in library.by_id:
            return f"`{key}` is not in {library.name}"
        if (choice := chooser.choose(library.by_id[key], question)) is None:
            return f"`{key}` has no words"
        anchors.append(Anchor(question.id, key, *choice))
    return anchors
