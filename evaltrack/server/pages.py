"""The pages under `/evaltrack`: thin views that ask who may see what, read, and fill a template.

Links are relative, so that they hold under a `--static-prefix` and behind a proxy that adds one. What a page needs to
know of the request stands in its query: the experiment that is checked, and runs that must be of that experiment.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlencode

from flask import Blueprint, Response, abort, g, make_response, redirect, request
from werkzeug.exceptions import HTTPException

from evaltrack.api.compare_context import judge_context
from evaltrack.api.compare_sides import check_two_runs, info_of_run
from evaltrack.api.report_html import around_run
from evaltrack.errors import EvaltrackError, InconclusiveError, TrackingError, UsageError
from evaltrack.report.html.page import Back, document, templates
from evaltrack.report.html.text import shown
from evaltrack.server import contents, csrf
from evaltrack.server.page_jobs import DriftJob, RunJob
from evaltrack.server.page_process import made_page
from evaltrack.tracking.baselines import set_baseline
from evaltrack.tracking.history import run_history
from evaltrack.tracking.reader import EvaluationRun, evaluation_of, side_by_side
from evaltrack.tracking.run_files import fetch_rows, fetch_summary
from evaltrack.tracking.server_internals import Access, Action, Experiment, find_experiment, inside_store, prefixed
from evaltrack.tracking.store import Store, find_run, is_missing

if TYPE_CHECKING:
    from jinja2 import Environment

NOT_SIGNED_IN = "(not signed in)"
REASON_LIMIT = 500
FORM_LIMIT = 64 * 1024

_log = logging.getLogger(__name__)
_RULES = {
    "": ("GET", "entrance"),
    "/": ("GET", "overview"),
    "/golden": ("GET", "golden"),
    "/drift": ("GET", "drift"),
    "/run": ("GET", "run"),
    "/baseline": ("POST", "baseline"),
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
    blueprint.before_request(_bound_requests)
    for kind in (EvaltrackError, HTTPException, Exception):
        blueprint.register_error_handler(kind, _explained)
    return blueprint


class _Views:
    """The views, for one kind of access."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def entrance(self) -> Any:
        """Without the slash at its end a path would be the wrong base of our links."""
        return redirect("evaltrack/", 308)

    def overview(self) -> Response:
        """All golden sets."""
        part = request.args.get("part", "0")
        if not re.fullmatch(r"[0-9]{1,3}", part):
            abort(400, "this address names no part of the list")
        groups = contents.overview(_store(), self._access, int(part))
        return _page("evaltrack", "overview.html", page=groups, user=self._access.user)

    def golden(self) -> Response:
        """One golden set: its runs, its baselines, the forms."""
        store = _store()
        experiment = self._experiment(store, request.args.get("experiment_id"))
        name, before = request.args.get("golden", ""), request.args.get("before", "")
        if not name or not re.fullmatch(r"[0-9]{0,15}", before):
            abort(400, "this address names no golden set, or no moment")
        history = contents.history(store, experiment.experiment_id, name, int(before) if before else None)
        if not history.rows and not history.baseline and not before:
            abort(404, f"golden set {name} has no run in this experiment")
        token = csrf.token_of(request)
        may_promote = self._access.may("update", experiment.experiment_id)
        answer = _page(
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
        store = _store()
        experiment = self._experiment(store, request.args.get("experiment_id"))
        now, was = (_check_end(_evaluation(store, experiment, request.args.get(x))) for x in ("candidate", "baseline"))
        check_two_runs(now, was)
        g.evaltrack_links = (*_links(store, now), *_links(store, was)[1:])
        job = DriftJob(
            baseline=info_of_run(store, was),
            candidate=info_of_run(store, now),
            judge_context=judge_context(store, now, was, None),
            compare_link=side_by_side(store, now, was),
            history=run_history(store, now.experiment_id, now.signature.golden),
            back=_back(now),
        )

        def fetch(folder: Path) -> tuple[Path, ...]:
            return tuple(fetch_rows(store, run, _subfolder(folder, run)) for run in (was, now))

        return make_response(made_page(job, (was.ended_at, now.ended_at), fetch))

    def run(self) -> Response:
        """The report of one run."""
        store = _store()
        experiment = self._experiment(store, request.args.get("experiment_id"))
        evaluation = _check_end(_evaluation(store, experiment, request.args.get("run_id")))
        g.evaltrack_links = _links(store, evaluation)
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
        store = _store()
        experiment = self._experiment(store, request.form.get("experiment_id"), "update")
        evaluation = _evaluation(store, experiment, request.form.get("run_id"))
        g.evaltrack_links = _links(store, evaluation)
        reason = request.form.get("reason", "").strip()
        if len(reason) > REASON_LIMIT:
            abort(400, f"the reason is longer than {REASON_LIMIT} characters; shorten it")
        try:
            set_baseline(store, evaluation, reason, by=self._access.user or NOT_SIGNED_IN)
        except UsageError as error:
            abort(409, error.message)
        where = {"experiment_id": evaluation.experiment_id, "golden": evaluation.signature.golden}
        return redirect(f"golden?{urlencode(where)}", 303)

    def _experiment(self, store: Store, experiment_id: str | None, action: Action = "read") -> Experiment:
        """The experiment that the request names, once this user may do that in it.

        The id must be written as MLflow writes it: `007` would be looked up as 7 but checked as another.
        """
        if not experiment_id or not re.fullmatch(r"0|[1-9][0-9]{0,17}", experiment_id):
            abort(400, "this address names no experiment")
        if not self._access.may(action, experiment_id):
            what = "read it" if action == "read" else "set its baselines (EDIT)"
            abort(403, f"experiment {experiment_id}: you are not permitted to {what}; ask who manages it")
        experiment = find_experiment(store, experiment_id)
        if experiment is None:
            abort(404, f"there is no experiment {experiment_id}, or it is deleted")
        return experiment


def _store() -> Store:
    return inside_store(request.url_root.rstrip("/") + prefixed("/"))


def _evaluation(store: Store, experiment: Experiment, run_id: str | None) -> EvaluationRun:
    """The run that the request names; one of another experiment is as good as none."""
    if not run_id or not re.fullmatch(r"[A-Za-z0-9][\w-]{0,255}", run_id, re.ASCII):
        abort(400, "this address names no run")
    try:
        run = find_run(store, run_id)
    except TrackingError as error:
        if is_missing(error):
            _no_run(run_id)
        raise
    if run.info.experiment_id != experiment.experiment_id:  # before anything is said about it
        _no_run(run_id)
    return evaluation_of(run)


def _check_end(run: EvaluationRun) -> EvaluationRun:
    if run.status in ("RUNNING", "SCHEDULED"):
        abort(409, f"run {run.name} is still {run.status}; its page comes when it has ended")
    return run


def _subfolder(folder: Path, run: EvaluationRun) -> Path:
    own = folder / run.run_id
    own.mkdir(exist_ok=True)
    return own


def _back(run: EvaluationRun) -> Back:
    """The page of the run's golden set."""
    where = {"experiment_id": run.experiment_id, "golden": run.signature.golden}
    return f"golden?{urlencode(where)}", run.signature.golden


def _links(store: Store, run: EvaluationRun) -> tuple[tuple[str, str], ...]:
    """Where to go on when the page of a run cannot be shown: words and address."""
    address, golden = _back(run)
    return (
        (f"Runs and baseline of {golden}", address),
        (f"Run {run.name} in MLflow", store.run_link(run.experiment_id, run.run_id) or ""),
    )


def _no_run(run_id: str) -> NoReturn:
    abort(404, f"there is no run {run_id} in this experiment, or it is deleted")


@cache
def _templates() -> Environment:
    """The templates beside this module; whatever is put into one is escaped."""
    environment = templates("evaltrack.server")
    environment.filters |= {"shown": shown, "moment": contents.moment, "day": contents.day}
    environment.globals |= {"reason_limit": REASON_LIMIT}
    return environment


def _page(title: str, template: str, status: int = 200, **values: Any) -> Response:
    body = _templates().get_template(template).render(**values)
    return make_response(document(title, body, forms=True), status)


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
    return _page(
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
