"""The page of `evaltrack golden review`: a small server on loopback, for one person.

The address holds a token, so that neither other users of the machine nor pages of other sites can read or write; a
`Host` that is not loopback is refused, so that no name of another site can be bound to this address.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from flask import Flask, Response, abort, jsonify, make_response, request
from werkzeug.exceptions import HTTPException
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from evaltrack.api.review_golden import GoldenReview, ReviewedQuestion
from evaltrack.errors import EvaltrackError, Guide, UsageError
from evaltrack.golden.review.session import NoQuestionError, Outcome
from evaltrack.report.html.page import shown, static, templates
from evaltrack.server import csrf

BODY_LIMIT = 256 * 1024
TEXT_LIMIT = 100_000
"""Characters of a chunk that are shown."""

VALUES = {"chunk", "words", "passage", "question", "expected_answer", "grade"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FILES = {"review.css": "text/css", "review.js": "text/javascript", "colours.css": "text/css", "report.css": "text/css"}
OF_REPORTS = ("colours.css", "report.css")
"""Those of them that reports have too."""


def review_app(review: GoldenReview, token: str) -> Flask:
    """The page and what it asks for, below `/TOKEN/`."""
    app, views = Flask(__name__, static_folder=None, template_folder=None), _Views(review)
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT

    def check() -> None:
        name = request.host.rpartition(":")[0] if not request.host.endswith("]") else request.host
        if (name or request.host) not in ("127.0.0.1", "localhost", "[::1]"):
            abort(421, "this server answers under 127.0.0.1 alone")
        if not hmac.compare_digest(request.path.split("/")[1].encode(), token.encode()):
            abort(404, "the address holds no valid token; open the one that the command printed")
        if request.method == "POST" and not (request.is_json and csrf.is_from_here(request)):
            abort(403, "that was sent from another site")

    app.before_request(check)
    app.after_request(_with_headers)
    for kind in (EvaltrackError, HTTPException):
        app.register_error_handler(kind, _explained)
    for path, method, view in (
        ("/<token>/", "GET", views.page),
        ("/<token>/static/<name>", "GET", views.file),
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
        name = shown(self._review.session.path.name, 200)
        return make_response(_template().render(name=name, judging=self._review.unjudged is not None))

    def file(self, token: str, name: str) -> Response:  # noqa: ARG002
        """A style sheet or the script."""
        if name not in FILES:
            abort(404, "there is no such file")
        answer = make_response(static(name) if name in OF_REPORTS else _static(name))
        answer.content_type = f"{FILES[name]}; charset=utf-8"
        return answer

    def state(self, token: str) -> Response:  # noqa: ARG002
        """The questions in their order, and which are drafts."""
        review = self._review
        drafts = request.args.get("drafts") == "1"
        return jsonify(
            keys=review.ids(drafts=drafts),
            drafts=review.session.drafts,
            total=len(review.session.questions),
            by=review.by,
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
        extra: dict[str, Any] = {"drafts": self._review.session.drafts}
        if outcome:
            extra |= {"done": outcome.is_done, "message": shown(outcome.message, 500), "reloaded": outcome.is_reloaded}
        return jsonify(found | extra)


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
    for name, value in HEADERS.items():
        answer.headers[name] = value
    return answer


def _explained(error: Exception) -> tuple[Response, int]:
    if isinstance(error, HTTPException):
        return jsonify(error=error.description or error.name), error.code or 500
    message = error.message if isinstance(error, EvaltrackError) else str(error)
    if isinstance(error, NoQuestionError):
        return jsonify(error=shown(message, 2000)), 410  # by which the page knows that it can go on
    return jsonify(error=shown(message, 2000)), 400 if isinstance(error, UsageError) else 500


@cache
def _template() -> Any:
    return templates("evaltrack.server").get_template("review.html")


@cache
def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


class _QuietHandler(WSGIRequestHandler):
    """Logs nothing: the address of each request holds the token."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


def open_server(review: GoldenReview, port: int = 0) -> tuple[BaseWSGIServer, str]:
    """A server that is ready to serve, and the address of its page; port 0 takes a free one.

    Raises:
        UsageError: the port is taken.
    """
    token = secrets.token_urlsafe(24)
    try:
        server = make_server("127.0.0.1", port, review_app(review, token), threaded=True, request_handler=_QuietHandler)
    except (OSError, SystemExit):
        raise UsageError(
            f"nothing can listen on 127.0.0.1:{port}; choose another port (`port=`)", guide=Guide.REVIEW
        ) from None
    return server, f"http://127.0.0.1:{server.server_port}/{token}/"


def serve_review(review: GoldenReview, port: int, ready: Callable[[str], object]) -> None:
    """Serve the page until the process is interrupted.

    Raises:
        UsageError: the port is taken.
        KeyboardInterrupt: of the user.
    """
    server, address = open_server(review, port)
    thread = threading.Thread(target=server.serve_forever, daemon=True, name="evaltrack-page")
    thread.start()
    try:
        ready(address)
        while thread.is_alive():
            thread.join(1.0)
    finally:
        server.shutdown()
        server.server_close()
