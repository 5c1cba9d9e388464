"""The page of `evaltrack golden review`, for one person on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flask import Flask, Response, abort, jsonify, request
from werkzeug.exceptions import HTTPException

from evaltrack.api.review_golden import GoldenReview, ReviewedQuestion
from evaltrack.errors import EvaltrackError, UsageError
from evaltrack.golden.review.session import NoQuestionError, Outcome
from evaltrack.records import Question
from evaltrack.report.html.page import shown
from evaltrack.ui.files import HEADERS, OF_REVIEW, static_file
from evaltrack.ui.local import guarded

TEXT_LIMIT = 100_000
"""Characters of a chunk that are shown."""

LISTED = 120
"""Characters of a question in the list."""

VALUES = {"chunk", "words", "passage", "question", "expected_answer", "grade"}


def review_app(review: GoldenReview, token: str) -> Flask:
    """The page and what it asks for, below `/TOKEN/`."""
    app, views = guarded(Flask(__name__, static_folder=None, template_folder=None), token), _Views(review)
    app.after_request(_with_headers)
    for kind in (EvaltrackError, HTTPException):
        app.register_error_handler(kind, _explained)
    for path, method, view in (
        ("/<token>/", "GET", views.page),
        ("/<token>/<name>", "GET", views.file),
        ("/<token>/state", "GET", views.state),
        ("/<token>/question", "GET", views.question),
        ("/<token>/act", "POST", views.act),
        ("/<token>/undo", "POST", views.undo),
    ):
        app.add_url_rule(path, view.__name__, view, methods=[method], provide_automatic_options=False)
    return app


class _Views:
    """The views of one review; each gets the token of its address, which was checked."""

    def __init__(self, review: GoldenReview) -> None:
        self._review = review

    def page(self, token: str) -> Response:  # noqa: ARG002
        """The page, which asks for the rest."""
        return static_file("review.html", OF_REVIEW)

    def file(self, token: str, name: str) -> Response:  # noqa: ARG002
        """A style sheet or a script."""
        return static_file(name, OF_REVIEW)

    def state(self, token: str) -> Response:  # noqa: ARG002
        """The questions in their order, each with its state."""
        review = self._review
        drafts = request.args.get("drafts") == "1" and review.unjudged is None
        return jsonify(
            name=shown(review.session.path.name, 200),
            judging=review.unjudged is not None,
            drafts=review.session.drafts,
            questions=[_listed(each) for each in review.questions(drafts=drafts)],
        )

    def question(self, token: str) -> Response:  # noqa: ARG002
        """One question; the retrievers are asked of the next one meanwhile."""
        answer = self._shown(request.args.get("id", ""), request.args.get("query", ""))
        if following := request.args.get("next"):
            self._review.prefetch(following)
        return answer

    def act(self, token: str) -> Response:  # noqa: ARG002
        """Do an action, and show the question as it is now."""
        body = request.get_json()
        if not isinstance(body, dict) or not isinstance(body.get("id"), str) or not isinstance(body.get("kind"), str):
            abort(400, "this is no action: it has no id or no kind")
        values = {name: value for name, value in body.items() if name in VALUES}
        if not isinstance(values.get("grade"), int | None) or isinstance(values.get("grade"), bool):
            abort(400, "the grade is no whole number")
        outcome = self._review.act(body["id"], body["kind"], **values)
        return self._shown(body["id"], str(body.get("query", "")), outcome)

    def undo(self, token: str) -> Response:  # noqa: ARG002
        """Take the last action back, and show its question."""
        key, outcome = self._review.session.undo()
        return self._shown(key, "", outcome)

    def _shown(self, key: str, query: str, outcome: Outcome | None = None) -> Response:
        found = _as_json(self._review.view(key, query[:1000]))
        extra: dict[str, Any] = {
            "drafts": self._review.session.drafts,
            "state": _state(self._review.session.question(key)),
        }
        if outcome:
            extra |= {"done": outcome.is_done, "message": shown(outcome.message, 500), "reloaded": outcome.is_reloaded}
        return jsonify(found | extra)


def _listed(question: Question) -> dict[str, str]:
    return {"id": question.id, "question": shown(question.question, LISTED), "state": _state(question)}


def _state(question: Question) -> str:
    """The state of a question in a word or two; empty where there is nothing to say."""
    if question.draft:
        return "draft"
    if question.negative:
        return "negative"
    if question.expected is None:
        return "expects nothing"
    return "reviewed" if "reviewed" in question.metadata else ""


def _as_json(viewed: ReviewedQuestion) -> dict[str, Any]:
    question = viewed.question
    reviewed = question.metadata.get("reviewed")
    return {
        "id": question.id,
        "question": question.question,
        "history": [shown(str(turn), TEXT_LIMIT) for turn in question.history],
        "expected_answer": question.expected_answer or "",
        "notes": shown(question.notes, TEXT_LIMIT),
        "facts": [each for each in (question.domain, question.difficulty, question.category) if each],
        "draft": question.draft,
        "negative": viewed.is_negative,
        "least": question.relevant_grade,
        "reviewed": shown(" ".join(map(str, reviewed.values())), 200) if isinstance(reviewed, dict) else "",
        "passages": [{"key": key, "words": shown(words, TEXT_LIMIT)} for key, words in viewed.passages],
        "chunks": [_chunk_json(asdict(each)) for each in viewed.chunks],
        "matches": None if viewed.matches is None else [_chunk_json(asdict(each)) for each in viewed.matches],
        "problems": [shown(each, 500) for each in viewed.problems],
    }


def _chunk_json(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk with texts that are fit to be shown; its key is what actions name."""
    return chunk | {
        "id": shown(chunk["id"], 500),
        "title": shown(chunk["title"], 500),
        "text": shown(chunk["text"], TEXT_LIMIT),
    }


def _with_headers(answer: Response) -> Response:
    answer.headers.update(HEADERS)
    return answer


def _explained(error: Exception) -> tuple[Response, int]:
    if isinstance(error, HTTPException):
        return jsonify(error=error.description or error.name), error.code or 500
    message = error.message if isinstance(error, EvaltrackError) else str(error)
    if isinstance(error, NoQuestionError):
        return jsonify(error=shown(message, 2000)), 410  # by which the page knows that it can go on
    return jsonify(error=shown(message, 2000)), 400 if isinstance(error, UsageError) else 500
