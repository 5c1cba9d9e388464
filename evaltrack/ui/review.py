"""Serves the page of `evaltrack golden review` for one person on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flask import Blueprint, Flask, Response, abort, jsonify, request
from werkzeug.exceptions import HTTPException

from evaltrack.api.review_golden import GoldenReview, state_of
from evaltrack.errors import EvaltrackError, UsageError
from evaltrack.golden.review import NoQuestionError, Outcome
from evaltrack.report.html.page import shown
from evaltrack.ui.files import HEADERS, OF_REVIEW, static_file
from evaltrack.ui.local import guarded

LISTED = 120
"""Number of characters of a question in the list."""

VALUES = {"chunk", "words", "passage", "question", "expected_answer", "grade"}


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
            judging=review.unjudged is not None,
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
        body = _action()
        values = {name: value for name, value in body.items() if name in VALUES}
        outcome = review.act(body["id"], body["kind"], **values)
        return viewed(body["id"], str(body.get("query", "")), outcome)

    @pages.post("/undo")
    def undo() -> Response:
        key, outcome = review.session.undo()
        return viewed(key, "", outcome)

    def viewed(key: str, query: str, outcome: Outcome | None = None) -> Response:
        """Return the view of a question and the result of an action."""
        return jsonify(review.view(key, query[:1000]) | (asdict(outcome) if outcome else {}))

    app.register_blueprint(pages)
    app.after_request(_with_headers)
    for kind in (EvaltrackError, HTTPException):
        app.register_error_handler(kind, _explained)
    return app


def _action() -> dict[str, Any]:
    """Return the action in the body of the request. Aborts with 400 if it is not one."""
    body = request.get_json()
    if not isinstance(body, dict) or not isinstance(body.get("id"), str) or not isinstance(body.get("kind"), str):
        abort(400, "not an action: it has no id or no kind")
    if not isinstance(body.get("grade"), int | None) or isinstance(body.get("grade"), bool):
        abort(400, "the grade is not a whole number")
    return body


def _with_headers(answer: Response) -> Response:
    answer.headers.update(HEADERS)
    return answer


def _explained(error: Exception) -> tuple[Response, int]:
    if isinstance(error, HTTPException):
        return jsonify(error=error.description or error.name), error.code or 500
    message = error.message if isinstance(error, EvaltrackError) else str(error)
    if isinstance(error, NoQuestionError):
        return jsonify(error=shown(message, 2000)), 410  # tells the page that it can go on
    return jsonify(error=shown(message, 2000)), 400 if isinstance(error, UsageError) else 500
