"""The pages under `/evaltrack`: thin views that ask who may see what, read, and fill a template.

Links are relative, so that they hold under a `--static-prefix` and behind a proxy that adds one. What a page needs to
know of the request stands in its query: the experiment that is checked, and runs that must be of that experiment.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, abort, g, make_response, redirect, request
from werkzeug.exceptions import HTTPException

from evaltrack.api.compare_context import judge_context
from evaltrack.api.compare_sides import check_two_runs, info_of_run
from evaltrack.api.question_history import history_evaluations
from evaltrack.api.report_html import around_run
from evaltrack.errors import EvaltrackError, InconclusiveError, TrackingError, UsageError
from evaltrack.report.html.page import Back
from evaltrack.server import contents, csrf
from evaltrack.server.history_files import columns_of, end_times, outcomes_file
from evaltrack.server.page_jobs import DriftJob, RunJob
from evaltrack.server.page_process import made_page, prepare_pages
from evaltrack.server.question_views import NOT_SIGNED_IN, QuestionViews
from evaltrack.server.request_runs import (
    check_end,
    evaluation_in,
    experiment_of,
    golden_address,
    run_links,
    store_here,
    subfolder,
)
from evaltrack.server.shell import REASON_LIMIT, page
from evaltrack.server.side_by_side import MOST, side_by_side
from evaltrack.tracking.baselines import set_baseline
from evaltrack.tracking.history import past_run, run_history
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.reader import side_by_side as mlflow_link
from evaltrack.tracking.run_files import fetch_rows, fetch_summary
from evaltrack.tracking.server_internals import Access
from evaltrack.tracking.store import is_missing

FORM_LIMIT = 64 * 1024

_log = logging.getLogger(__name__)
_RULES = {
    "": ("GET", "entrance"),
    "/": ("GET", "overview"),
    "/golden": ("GET", "golden"),
    "/compare": ("GET", "compare"),
    "/drift": ("GET", "drift"),
    "/run": ("GET", "run"),
    "/matrix": ("GET", "matrix"),
    "/question": ("GET", "question"),
    "/baseline": ("POST", "baseline"),
    "/accept": ("POST", "accept"),
}


def routes() -> Iterator[tuple[str, str]]:
    """Each path and method that is served."""
    for path, (method, _) in _RULES.items():
        for each in (method, "HEAD") if method == "GET" else (method,):
            yield f"/evaltrack{path}", each


def pages(access: Access) -> Blueprint:
    """The pages as Flask takes them; `access` says who may see what."""
    blueprint, views = Blueprint("evaltrack", __name__), _Views(access)
    for path, (method, name) in _RULES.items():
        blueprint.add_url_rule(path, name, getattr(views, name), methods=[method], provide_automatic_options=False)
    blueprint.add_url_rule("/<path:rest>", "nowhere", _nowhere, methods=["GET"], provide_automatic_options=False)
    blueprint.before_request(_bound_requests)
    for kind in (EvaltrackError, HTTPException, Exception):
        blueprint.register_error_handler(kind, _explained)
    return blueprint


def _nowhere(rest: str) -> Any:  # noqa: ARG001
    """An address below ours that leads nowhere."""
    abort(404, "there is no such page; begin with the list of golden sets")


class _Views(QuestionViews):
    """The views, for one kind of access."""

    def entrance(self) -> Any:
        """Without the slash at its end a path would be the wrong base of our links."""
        return redirect("evaltrack/", 308)

    def overview(self) -> Response:
        """All golden sets."""
        part = request.args.get("part", "0")
        if not re.fullmatch(r"[0-9]{1,3}", part):
            abort(400, "this address names no part of the list")
        prepare_pages()
        made = contents.overview(store_here(), self._access, int(part))
        return page("evaltrack", "overview.html", page=made, user=self._access.user)

    def compare(self) -> Any:
        """Several runs side by side; two of one golden set question by question."""
        named = request.args.getlist("run")
        if not 2 <= len(set(named)) <= MOST:
            abort(400, f"tick from 2 to {MOST} runs, then press Compare")
        store, runs = store_here(), []
        for each in dict.fromkeys(named):
            experiment_id, _, run_id = each.partition(".")
            run = evaluation_in(store, experiment_of(self._access, store, experiment_id), run_id)
            runs.append(past_run(store, run.run_id))
        made = side_by_side(runs, request.args.get("base", ""))
        if len(runs) == 2 and all(map(made.same_set, runs)) and "base" not in request.args:
            (was, _), (now, _) = made.rows
            where = {"experiment_id": now.experiment_id, "candidate": now.run_id, "baseline": was.run_id}
            return redirect(f"drift?{urlencode(where)}", 303)
        return page("Runs side by side · evaltrack", "compare.html", page=made, user=self._access.user)

    def golden(self) -> Response:
        """One golden set: its runs, its baselines, the forms."""
        store = store_here()
        experiment = experiment_of(self._access, store, request.args.get("experiment_id"))
        name, before = request.args.get("golden", ""), request.args.get("before", "")
        if not name or not re.fullmatch(r"[0-9]{0,15}", before):
            abort(400, "this address names no golden set, or no moment")
        prepare_pages()
        history = contents.history(store, experiment.experiment_id, name, int(before) if before else None)
        if not history.rows and not history.baseline and not before:
            abort(404, f"golden set {name} has no run in this experiment")
        token = csrf.token_of(request)
        may_promote = self._access.may("update", experiment.experiment_id)
        answer = page(
            f"{name} · evaltrack",
            "golden.html",
            experiment=experiment,
            page=history,
            token=token,
            may_promote=may_promote,
            user=self._access.user,
            first=not before,
        )
        csrf.keep_token(request, answer, token)
        return answer

    def drift(self) -> Response:
        """A candidate against a baseline, question by question."""
        store = store_here()
        experiment = experiment_of(self._access, store, request.args.get("experiment_id"))
        now, was = (check_end(evaluation_in(store, experiment, request.args.get(x))) for x in ("candidate", "baseline"))
        check_two_runs(now, was)
        g.evaltrack_links = (*run_links(store, now), *run_links(store, was)[1:])
        before = history_evaluations(store, now)
        job = DriftJob(
            baseline=info_of_run(store, was),
            candidate=info_of_run(store, now),
            judge_context=judge_context(store, now, was, None),
            compare_link=mlflow_link(store, now, was),
            history=run_history(store, now.experiment_id, now.signature.golden, past_run(store, now.run_id).started_at),
            runs=columns_of(before),
            back=_back(now),
        )

        def fetch(folder: Path) -> tuple[Path, ...]:
            sides = tuple(fetch_rows(store, run, subfolder(folder, run)) for run in (was, now))
            return (*sides, outcomes_file(store, before, folder))

        return make_response(made_page(job, (was.ended_at, now.ended_at, *end_times(before)), fetch))

    def run(self) -> Response:
        """The report of one run."""
        store = store_here()
        experiment = experiment_of(self._access, store, request.args.get("experiment_id"))
        evaluation = check_end(evaluation_in(store, experiment, request.args.get("run_id")))
        g.evaltrack_links = run_links(store, evaluation)
        job = RunJob(info_of_run(store, evaluation), around_run(store, evaluation), _back(evaluation))

        def fetch(folder: Path) -> tuple[Path, ...]:
            return fetch_summary(store, evaluation.run_id, folder), fetch_rows(store, evaluation, folder)

        try:
            return make_response(made_page(job, (evaluation.ended_at,), fetch))
        except TrackingError as error:
            _log.info("no page of run %s", evaluation.run_id, exc_info=True)
            lacking = f"run {evaluation.name} lacks its rows or its summary; evaluate again, or see its page in MLflow"
            abort(404, error.message if error.__cause__ is None else lacking)

    def baseline(self) -> Any:
        """Make a run the baseline, then show its golden set."""
        refusal = csrf.refusal(request)
        if refusal:
            abort(403, f"{refusal}; open the golden set's page again and press its button")
        store = store_here()
        experiment = experiment_of(self._access, store, request.form.get("experiment_id"), "update")
        evaluation = evaluation_in(store, experiment, request.form.get("run_id"))
        g.evaltrack_links = run_links(store, evaluation)
        reason = request.form.get("reason", "").strip()
        if len(reason) > REASON_LIMIT:
            abort(400, f"the reason is longer than {REASON_LIMIT} characters; shorten it")
        try:
            set_baseline(store, evaluation, reason, by=self._access.user or NOT_SIGNED_IN)
        except UsageError as error:
            abort(409, error.message)
        where = {"experiment_id": evaluation.experiment_id, "golden": evaluation.signature.golden}
        return redirect(f"golden?{urlencode(where)}", 303)


def _back(run: EvaluationRun) -> Back:
    """The page of the run's golden set."""
    return golden_address(run), run.signature.golden


def _bound_requests() -> None:
    request.max_content_length = FORM_LIMIT


def _explained(error: Exception) -> Response:
    """The page that says what went wrong, never a traceback."""
    if isinstance(error, HTTPException):
        status, message = error.code or 500, error.description or error.name
    elif isinstance(error, EvaltrackError):
        status, message = _status(error), error.message
    else:
        _log.error("the page %s failed", request.path, exc_info=error)
        status, message = 500, "this is a fault of evaltrack; the server's log holds it"
    heading = _HEADINGS.get(status, "That did not work")
    return page(
        f"{heading} · evaltrack",
        "error.html",
        status,
        heading=heading,
        told=message,
        links=g.get("evaltrack_links", ()),
    )


_HEADINGS = {
    400: "This address is not complete",
    403: "Not permitted",
    404: "Not found",
    409: "That cannot be done",
    503: "MLflow's store does not answer",
}


def _status(error: EvaltrackError) -> int:
    if isinstance(error, TrackingError):
        return 404 if is_missing(error) else 503
    if isinstance(error, InconclusiveError):
        return 409
    return 400
