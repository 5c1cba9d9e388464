"""Serves the page of `evaltrack golden review` on this machine: questions, retrieved chunks, search and actions."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any

from flask import Blueprint, Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from evaltrack.api.golden_sets import index_of, libraries
from evaltrack.errors import EvaltrackError, UsageError
from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.loop import close_all
from evaltrack.golden.corpus import Chunk
from evaltrack.golden.reader import GoldenSet
from evaltrack.golden.review import Expectation, Fields, NoQuestionError, Outcome, ReviewSession, Shown, pooled
from evaltrack.metrics.measure import Rules
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Failure, Passage, Question
from evaltrack.records.question import title_key
from evaltrack.report.html.page import shown
from evaltrack.system.files import user_name
from evaltrack.targets import open_target
from evaltrack.ui.files import HEADERS, OF_REVIEW, static_file
from evaltrack.ui.local import guarded

DEPTH = 10
"""Default number of chunks of each retriever, and of a search."""

HOLDERS = 3
"""Number of top chunks for the words of a quotation in which it is searched."""

MOST_OF_TITLE = 20
"""Largest number of chunks of an expected page that are shown without being retrieved."""

TEXT_LIMIT = 100_000
"""Largest number of shown characters of a text."""


class GoldenReview:
    """A golden set under review, with its corpus and retrievers. Call `close` at the end."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        corpus: str | os.PathLike[str] | None = None,
        targets: Sequence[str] = (),
        *,
        k: int = DEPTH,
        by: str = "",
    ) -> None:
        """Open the set, its corpus and the targets.

        Args:
            path: A `.jsonl` or `.json` golden set.
            corpus: Folder of its pages; None takes the chunks of the first `bm25:` target, else what `lint_golden`
                takes.
            targets: Targets as in `run_eval`; BM25 over the corpus is always one of the retrievers.
            k: The number of chunks of each retriever that are shown.
            by: The reviewer's name; empty takes the login name.

        Raises:
            GoldenError: lines of the set are bad.
            UsageError: the corpus or a target cannot be read.
        """
        self.session = ReviewSession(path)
        self.by, self._k = by or user_name(), k
        own = next((each for each in targets if each.startswith("bm25:")), None) if corpus is None else None
        self._corpus = _Corpus(self.session.checked, corpus or own)
        if not targets and not self._corpus.parts:
            cure = "name the folder of its pages (`corpus=`), or a target"
            raise UsageError(f"{self.session.path}: there is no corpus next to the golden set; {cure}")
        self._retrievers = _Retrievers([each for each in targets if each != own], k)

    def close(self) -> None:
        """Close the targets."""
        self._retrievers.close()

    def questions(self, *, drafts: bool = False) -> list[Question]:
        """Return all questions in order, or only drafts."""
        questions = [each.question for each in self.session.questions.values()]
        return [each for each in questions if each.draft or not drafts]

    def view(self, key: str, query: str = "") -> dict[str, Any]:
        """Return a question, its chunks and the results of a search, with texts that are safe to show.

        Raises:
            UsageError: the question is gone, or the file is no longer a golden set.
        """
        self.session.refresh()
        question, expectation = self.session.question(key), self.session.expectation(key)
        found, problems = self._pool(question)
        pool = pooled([[*found, *self._corpus.expected(expectation, question)]])
        matches = self._corpus.search(query, question.domain, DEPTH) if query.strip() else None
        reviewed = question.metadata.get("reviewed")
        return {
            "id": question.id,
            "question": question.question,
            "history": [shown(str(turn), TEXT_LIMIT) for turn in question.history],
            "expected_answer": question.expected_answer or "",
            "notes": shown(question.notes, TEXT_LIMIT),
            "facts": [each for each in (question.domain, question.difficulty, question.category) if each],
            "draft": question.draft,
            "drafts": self.session.drafts,
            "state": state_of(question),
            "negative": expectation.is_negative,
            "reviewed": shown(" ".join(map(str, reviewed.values())), 200) if isinstance(reviewed, dict) else "",
            "passages": [
                {"key": each.key, "words": shown(each.quote or " or ".join(each.any_of), TEXT_LIMIT)}
                for each in question.expected_passages or ()
            ],
            "chunks": [_chunk_json(expectation, each) for each in pool],
            "matches": None if matches is None else [_chunk_json(expectation, each) for each in matches],
            "problems": [shown(each, 500) for each in problems],
        }

    def act(self, key: str, kind: str, **values: Any) -> Outcome:
        """Apply one action to a question and write the file.

        Args:
            key: The question's id.
            kind: ``mark``, ``unmark``, ``grade``, ``quote``, ``unquote``, ``negate``, ``reword`` or ``confirm``.
            values: `chunk` for the first four, `grade` (None: relevant), `words` for ``quote``, `passage` for
                ``unquote``, `question` and `expected_answer` for ``reword``.

        Raises:
            UsageError: the action is not possible.
            GoldenError: the file cannot be written, or is no longer a golden set.
        """
        return self.session.act(key, partial(self._changed, kind, values))

    def _changed(self, kind: str, values: Mapping[str, Any], question: Question, raw: Fields) -> Fields:
        if kind == "reword":
            return {"question": values.get("question"), "expected_answer": values.get("expected_answer") or None}
        if kind == "confirm":
            at = datetime.now(UTC).isoformat(timespec="seconds")
            return {"draft": None, "metadata": {**question.metadata, "reviewed": {"by": self.by, "at": at}}}
        before, domain = Expectation.of(question, raw, self.session.by_title), question.domain
        key, words = str(values.get("chunk", "")), str(values.get("words", ""))
        known = {each.key: each for each in (*self._corpus.expected(before, question), *self._pool(question)[0])}
        chunk = known.get(key) or self._corpus.chunk(key, domain)
        if key and chunk is None:
            raise UsageError(f"chunk `{key}` is not in the corpus; look for another one")
        chunk = chunk or Shown("", "", "")
        ids_of_title = partial(self._corpus.ids_of_title, domain=domain)
        edits = {
            "mark": lambda: before.mark(chunk),
            "unmark": lambda: before.unmark(chunk),
            "grade": lambda: before.give(chunk, values.get("grade")),
            "quote": lambda: before.quote(chunk, words, self._corpus.home(chunk, words, domain), ids_of_title),
            "unquote": lambda: before.unquote(str(values.get("passage", "")), known.values()),
            "negate": before.negate,
        }
        if kind not in edits:
            raise UsageError(f"there is no action `{kind}`")
        return edits[kind]().fields(before)

    def _pool(self, question: Question) -> tuple[list[Shown], Sequence[str]]:
        """Return the chunks and the problems of all retrievers. A chunk without a text gets that of the corpus."""
        own = self._corpus.search(question.question, question.domain, self._k)
        answers = [own, *self._retrievers.ask(question)]
        rankings = [each for each in answers if not isinstance(each, str)]
        problems = [each for each in answers if isinstance(each, str)]
        pool = pooled(rankings, question.id)
        return [each if each.text else self._corpus.chunk(each.id, question.domain) or each for each in pool], problems


def state_of(question: Question) -> str:
    """Return the state of a question in a word or two; empty for an unreviewed question that expects sources."""
    if question.draft:
        return "draft"
    if question.negative:
        return "negative"
    if question.expected is None:
        return "expects nothing"
    return "reviewed" if "reviewed" in question.metadata else ""


def _chunk_json(expectation: Expectation, chunk: Shown) -> dict[str, Any]:
    """Return a chunk with texts that are safe to show, and the key that actions take."""
    texts = {"id": shown(chunk.id, 500), "title": shown(chunk.title, 500), "text": shown(chunk.text, TEXT_LIMIT)}
    return {"key": chunk.key, **texts, "is_expected": expectation.expects(chunk), "grade": expectation.grade(chunk)}


def _shown_chunk(chunk: Chunk) -> Shown:
    """Return a chunk as a target does, with its heading."""
    return Shown(chunk.id, chunk.title, chunk.headed_text)


class _Corpus:
    """The chunks of a corpus, or of a corpus for each domain; empty if the set has no corpus."""

    def __init__(self, checked: GoldenSet, corpus: str | os.PathLike[str] | None) -> None:
        found = libraries(checked.path, checked.stats.domains, corpus)
        self.parts = {
            domain: (library, index or index_of(library)) for library, index in found for domain in library.domains
        }
        expected = [(key, each.domain) for each in checked for key in each.expected_chunks or ()]
        self._has_expected = not expected or any(self.chunk(key, domain) for key, domain in expected)

    def search(self, text: str, domain: str, depth: int) -> list[Shown]:
        """Return the top chunks for a text. If the text is a chunk's id, that chunk is first."""
        _, index = self.parts.get(domain, (None, None))
        found = [_shown_chunk(chunk) for chunk, _ in index.search(text, depth)] if index else []
        return pooled([[*filter(None, [self.chunk(text.strip(), domain)]), *found]])

    def chunk(self, key: str, domain: str) -> Shown | None:
        """Return the chunk with an id; None if it is not in the corpus."""
        library, _ = self.parts.get(domain, (None, None))
        chunk = library.by_id.get(key) if library else None
        return _shown_chunk(chunk) if chunk else None

    def home(self, chunk: Shown, words: str, domain: str) -> Shown | None:
        """Return the chunk of the corpus that holds the words of a chunk; the chunk itself if there is no corpus.

        Return None if no chunk holds them, or if the set expects ids of another corpus.
        """
        if domain not in self.parts:
            return chunk
        candidates = [self.chunk(chunk.id, domain), *self.search(words, domain, HOLDERS)]
        holders = (each for each in candidates if each and each.holds({"quote": words, "share": 1}))
        return next(holders, None) if self._has_expected else None

    def ids_of_title(self, title: str, domain: str) -> list[str]:
        """Return the ids of the chunks of a page."""
        library, _ = self.parts.get(domain, (None, None))
        return [chunk.id for chunk in library.by_title.get(title_key(title), [])] if library else []

    def expected(self, expectation: Expectation, question: Question) -> Iterator[Shown]:
        """Yield the chunks that a question expects by id, title or quotation. A chunk not in the corpus has no text."""
        passages: Sequence[Passage] = question.expected_passages or ()
        keys = [key for passage in passages for key in passage.any_of]
        for name in expectation.expected_names:
            keys += self.ids_of_title(name, question.domain)[:MOST_OF_TITLE] if expectation.by_title else [name]
        for passage in passages:
            if passage.quote is not None:
                found = self.search(passage.quote, question.domain, HOLDERS)
                yield from (each for each in found if each.holds(passage.model_dump()))
        for key in keys:
            yield self.chunk(key, question.domain) or Shown(key, "", "")


class _Retrievers:
    """Targets that are asked each question once, on one event loop."""

    def __init__(self, names: Sequence[str], k: int) -> None:
        with ExitStack() as opened:
            self._targets = {name: opened.enter_context(closing(open_target(name))) for name in names}
            self._opened = opened.pop_all()
        self._evaluators = {
            name: Evaluator(each, Rules(k=k), redactor=Redactor.with_environment(secrets=each.secrets))
            for name, each in self._targets.items()
        }
        self._k = k
        self._asked: dict[tuple[str, str], list[list[Shown] | str]] = {}
        self._runner, self._lock = asyncio.Runner(), threading.Lock()

    def ask(self, question: Question) -> list[list[Shown] | str]:
        """Return a ranking of each target, or the reason that it has none."""
        key = (question.domain, question.question)
        if key not in self._asked:
            with self._lock:
                self._asked[key] = self._asked.get(key) or self._runner.run(self._rankings(question))
        return self._asked[key]

    async def _rankings(self, question: Question) -> list[list[Shown] | str]:
        return await asyncio.gather(*(self._ranking(name, question) for name in self._evaluators))

    async def _ranking(self, name: str, question: Question) -> list[Shown] | str:
        try:
            outcome = await self._evaluators[name].response(question)
        except EvaltrackError as error:
            return f"{name}: {error.message}"
        if isinstance(outcome, Failure):
            return f"{name}: {outcome}"
        sources = (outcome.sources or ())[: self._k]
        return [Shown(each.chunk_id or "", each.title or "", each.text or "") for each in sources]

    def close(self) -> None:
        """Close the targets after the call that is running."""
        with self._lock, self._runner:
            self._runner.run(close_all(self._targets.values()))
            self._opened.close()


LISTED = 120
"""Number of characters of a question in the list."""


def review_app(review: GoldenReview, token: str) -> Flask:
    """Return the application of the review, below `/TOKEN/`."""
    app = guarded(Flask(__name__, static_folder=None, template_folder=None), token)
    pages = Blueprint("review", __name__, url_prefix=f"/{token}")

    @pages.get("/", defaults={"name": "review.html"})
    @pages.get("/<name>")
    def file(name: str) -> Response:
        return static_file(name, OF_REVIEW)

    @pages.get("/state")
    def state() -> Response:
        drafts = request.args.get("drafts") == "1"
        return jsonify(
            name=shown(review.session.path.name, 200),
            drafts=review.session.drafts,
            questions=[
                {"id": each.id, "question": shown(each.question, LISTED), "state": state_of(each)}
                for each in review.questions(drafts=drafts)
            ],
        )

    @pages.get("/question")
    def question() -> Response:
        return viewed(request.args.get("id", ""), request.args.get("query", ""))

    @pages.post("/act")
    def act() -> Response:
        action = request.get_json()
        key, query = action.pop("id"), action.pop("query", "")
        return viewed(key, query, review.act(key, action.pop("kind"), **action))

    @pages.post("/undo")
    def undo() -> Response:
        key, outcome = review.session.undo()
        return viewed(key, "", outcome)

    def viewed(key: str, query: str, outcome: Outcome | None = None) -> Response:
        """Return the view of a question and the result of an action."""
        return jsonify(review.view(key, query[:1000]) | (asdict(outcome) if outcome else {}))

    @app.after_request
    def with_headers(answer: Response) -> Response:
        answer.headers.update(HEADERS)
        return answer

    app.register_blueprint(pages)
    for kind in (EvaltrackError, HTTPException):
        app.register_error_handler(kind, _explained)
    return app


def _explained(error: Exception) -> tuple[Response, int]:
    if isinstance(error, HTTPException):
        return jsonify(error=error.description or error.name), error.code or 500
    message = error.message if isinstance(error, EvaltrackError) else str(error)
    if isinstance(error, NoQuestionError):
        return jsonify(error=shown(message, 2000)), 410  # tells the page that it can go on
    return jsonify(error=shown(message, 2000)), 400 if isinstance(error, UsageError) else 500
