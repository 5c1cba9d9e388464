"""Review a golden set: what a person sees of each question, and each action, written into the file at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from evaltrack.api.review_sources import Ranked, Retrievers, Shelves
from evaltrack.errors import UsageError
from evaltrack.golden.review.actions import Action, Confirm, Grade, Mark, Negate, Quote, Reword, Unquote
from evaltrack.golden.review.expectation import Expectation, Shown, expectation_of, pooled
from evaltrack.golden.review.session import Outcome, ReviewSession
from evaltrack.records import Question
from evaltrack.system.files import user_name

DEPTH = 10
"""Chunks of each retriever that are shown by default."""

FOUND = 10
"""Chunks that a search shows."""


@dataclass(frozen=True)
class ReviewedChunk:
    """A chunk beside a question: whether it is expected, and its grade, if it has one."""

    key: str
    id: str
    title: str
    text: str
    is_expected: bool
    grade: int | None


@dataclass(frozen=True)
class ReviewedQuestion:
    """A question as a person sees it.

    Attributes:
        question: As the file holds it now.
        is_negative: Whether the target should say that it does not know.
        passages: `(key, words)` of each expected passage.
        chunks: What the retrievers returned, pooled, and what is expected besides.
        matches: What the search found; None where nothing was searched for.
        problems: Why a retriever returned nothing.
    """

    question: Question
    is_negative: bool
    passages: Sequence[tuple[str, str]]
    chunks: Sequence[ReviewedChunk]
    matches: Sequence[ReviewedChunk] | None
    problems: Sequence[str]


class GoldenReview:
    """A golden set under review, with its corpus and the retrievers whose chunks are shown; `close` it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        corpus: str | os.PathLike[str] | None = None,
        targets: Sequence[str] = (),
        *,
        k: int = DEPTH,
        by: str = "",
        unjudged: Mapping[str, Sequence[Shown]] | None = None,
    ) -> None:
        """Open the set, its corpus and the targets.

        Args:
            path: A `.jsonl` or `.json` golden set.
            corpus: Folder of its pages; None takes the chunks of the first `bm25:` target, else `corpus/NAME` beside.
            targets: As `run_eval` takes them; BM25 over the corpus is always one of the retrievers.
            k: How many chunks of each retriever are shown.
            by: Who reviews; empty takes the user's name of git, else of the system.
            unjudged: By question the chunks that are to be judged, in place of those of the retrievers.

        Raises:
            GoldenError: lines of the set are bad.
            UsageError: the corpus or a target cannot be read.
        """
        self.session = ReviewSession(path)
        self.by, self.unjudged, self._k = by or reviewer_name(), unjudged, k
        own = next((each for each in targets if each.startswith("bm25:")), None) if corpus is None else None
        self._shelves = Shelves(self.session.checked, corpus, own)
        self._homes = self._shelves if own is None else self._homes_beside()
        self._retrievers = Retrievers([each for each in targets if each != own], k)
        if not targets and not self._shelves.has_chunks and unjudged is None:
            self.close()
            cure = "name the folder of its pages (`corpus=`), or a target"
            raise UsageError(f"{self.session.path}: there is no corpus beside the golden set; {cure}")

    @property
    def path(self) -> str:
        """The file."""
        return str(self.session.path)

    def close(self) -> None:
        """Close the targets."""
        self._retrievers.close()

    def questions(self, *, drafts: bool = False) -> list[Question]:
        """The questions in their order: all, or the drafts alone; of unjudged chunks those that have some to judge."""
        questions = [each.question for each in self.session.questions.values()]
        if self.unjudged is not None:
            questions = [each for each in questions if self._to_judge(each)]
        return [each for each in questions if each.draft or not drafts]

    def prefetch(self, key: str) -> None:
        """Ask the retrievers of a question that will be shown next."""
        if key in self.session.questions and self.unjudged is None:
            self._retrievers.ask(self.session.question(key))

    def view(self, key: str, query: str = "") -> ReviewedQuestion:
        """A question with its chunks, and those that a search finds.

        Raises:
            UsageError: the question is gone, or the file is no golden set any more.
        """
        raw = self.session.raw(key)
        question = self.session.question(key)
        expectation = expectation_of(question, raw, self.session.by_title)
        pool, problems = self._pool(question)
        there = {each.key for each in pool}
        rest = {each.key: each for each in self._shelves.expected(expectation, question) if each.key not in there}
        matches = self._shelves.search(query, question.domain, FOUND) if query.strip() else None
        shown = partial(_reviewed, expectation)
        return ReviewedQuestion(
            question=question,
            is_negative=expectation.is_negative,
            passages=[
                (each.key, each.quote if each.quote is not None else " or ".join(each.any_of))
                for each in question.expected_passages or ()
            ],
            chunks=[shown(each) for each in (*pool, *(() if self.unjudged is not None else rest.values()))],
            matches=None if matches is None else [shown(each) for each in matches],
            problems=problems,
        )

    def act(self, key: str, kind: str, **values: Any) -> Outcome:
        """Do one action on a question, in the file.

        Args:
            key: Its id.
            kind: ``mark``, ``unmark``, ``grade``, ``quote``, ``unquote``, ``negate``, ``reword`` or ``confirm``.
            values: `chunk` of the first four, `grade` (None: relevant), `words` of a quotation, `passage` to take away,
                `question` and `expected_answer` of other words.

        Raises:
            UsageError: it cannot be done.
            GoldenError: the file cannot be written, or is no golden set any more.
        """
        return self.session.act(key, self._action(self.session.question(key), kind, values))

    def _action(self, question: Question, kind: str, values: Mapping[str, Any]) -> Action:
        match kind:
            case "mark" | "unmark":
                return Mark(self._chunk(question, values), kind == "mark")
            case "grade":
                return Grade(self._chunk(question, values), values.get("grade"))
            case "quote":
                titles = partial(self._shelves.ids_of_title, domain=question.domain)
                home = partial(self._homes.home, domain=question.domain)
                return Quote(self._chunk(question, values), str(values.get("words", "")), titles, home)
            case "unquote":
                return Unquote(str(values.get("passage", "")), partial(self._text_of, question))
            case "reword":
                return Reword(str(values.get("question", "")), str(values.get("expected_answer", "")))
        simple: dict[str, Action] = {
            "negate": Negate(),
            "confirm": Confirm(self.by, datetime.now(UTC).isoformat(timespec="seconds")),
        }
        if kind in simple:
            return simple[kind]
        raise UsageError(f"there is no action `{kind}`")

    def _chunk(self, question: Question, values: Mapping[str, Any]) -> Shown:
        """The chunk that an action names.

        Raises:
            UsageError: nothing shown has that id.
        """
        key = str(values.get("chunk", ""))
        pool = {each.key: each for each in self._pool(question)[0]}
        if chunk := pool.get(key) or self._shelves.chunk(key, question.domain):
            return chunk
        if key in (question.expected_names or ()) or any(
            key in each.any_of for each in question.expected_passages or ()
        ):
            return Shown(key, "", "")  # expected, and not in the corpus: it can be taken away
        raise UsageError(f"chunk `{key}` is not in the corpus; look for another one")

    def _text_of(self, question: Question, key: str) -> Shown | None:
        """The chunk with an id: of the corpus, else of a target."""
        of_corpus = self._homes.chunk(key, question.domain) or self._shelves.chunk(key, question.domain)
        return of_corpus or next((each for each in self._pool(question)[0] if each.id == key), None)

    def _pool(self, question: Question) -> tuple[list[Shown], Sequence[str]]:
        if self.unjudged is not None:
            return [self._with_text(each, question) for each in self.unjudged.get(question.id, ())], ()
        ranked: Ranked = self._retrievers.ask(question).result()
        ours = self._shelves.search(question.question, question.domain, self._k)
        pool = pooled([ours, *ranked.rankings], question.id)
        return [self._with_text(each, question) for each in pool], ranked.problems

    def _with_text(self, chunk: Shown, question: Question) -> Shown:
        """A chunk whose target returned no text has that of the corpus."""
        return chunk if chunk.text else self._shelves.chunk(chunk.id, question.domain) or chunk

    def _homes_beside(self) -> Shelves:
        """The corpus beside the set where more of the expected ids are in it than in the target; else the target's."""
        questions = [each.question for each in self.session.questions.values()]
        beside = Shelves(self.session.checked, None, None)
        return max(self._shelves, beside, key=lambda shelves: shelves.count(questions))

    def _to_judge(self, question: Question) -> bool:
        expectation = expectation_of(question, by_title=self.session.by_title)
        chunks = (self.unjudged or {}).get(question.id, ())
        return any(not expectation.expects(each) and expectation.grade(each) is None for each in chunks)


def _reviewed(expectation: Expectation, chunk: Shown) -> ReviewedChunk:
    expects, grade = expectation.expects(chunk), expectation.grade(chunk)
    return ReviewedChunk(chunk.key, chunk.id, chunk.title, chunk.text, expects, grade)


def unjudged_chunks(path: str | os.PathLike[str], run: str, tracking_uri: str | None = None) -> dict[str, list[Shown]]:
    """By question the chunks that a run ranked in the first k, and that the question neither expects nor grades.

    Raises:
        UsageError: the run is none of evaltrack's, of another golden set, or nothing of it is unjudged.
        TrackingError: the store does not answer, or the run's rows are gone.
    """
    from evaltrack.rows.restore import response_of
    from evaltrack.tracking.reader import named_evaluation, read_rows
    from evaltrack.tracking.store import connect

    session = ReviewSession(path)
    store = connect(tracking_uri)
    evaluation = named_evaluation(store, run)
    signature = evaluation.signature
    if signature.golden != session.checked.name:
        raise UsageError(f"`unjudged={run}`: that run is of golden set `{signature.golden}`; name one of this set")
    chunks: dict[str, list[Shown]] = {}
    for row in read_rows(store, evaluation):
        if row.id in session.questions:
            expectation = expectation_of(session.question(row.id), by_title=session.by_title)
            first = _first(response_of(row).sources or (), signature.k)
            left = [each for each in first if not expectation.expects(each) and expectation.grade(each) is None]
            if left:
                chunks[row.id] = left
    if not chunks:
        raise UsageError(f"`unjudged={run}`: every source in the first {signature.k} of that run is judged")
    return chunks


def _first(sources: Sequence[Any], k: int) -> list[Shown]:
    """The first k sources without repeats."""
    from evaltrack.golden.review.expectation import shown_source

    return pooled([[shown_source(each) for each in sources]])[:k]


def reviewer_name() -> str:
    """The user's name as git knows it, else that of the login."""
    if git := shutil.which("git"):
        answer = subprocess.run(  # noqa: S603 - git alone, with fixed arguments
            [git, "config", "user.name"], capture_output=True, text=True, errors="replace", check=False, timeout=10
        )
        if name := answer.stdout.strip():
            return name
    return user_name()
