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

from flask import Blueprint, Response, abort, g, redirect, request
from werkzeug.exceptions import HTTPException

from evaltrack.api.choose_runs import check_two_runs
from evaltrack.api.compare_sides import info_of_run
from evaltrack.api.report_html import around_run
from evaltrack.compare.engine import metrics_left_out
from evaltrack.errors import EvaltrackError, TrackingError, UsageError
from evaltrack.report.html.page import Back, document_head, questions_script
from evaltrack.server import contents, csrf
from evaltrack.server.ahead import prepare_golden_set
from evaltrack.server.contents import ANY_TARGET, Choice
from evaltrack.server.figures import MOST, side_by_side
from evaltrack.server.made_pages import drift_back, drift_page
from evaltrack.server.page_jobs import RunJob
from evaltrack.server.page_process import made_page, prepare_pages
from evaltrack.server.question_views import NOT_SIGNED_IN, QuestionViews
from evaltrack.server.request_runs import (
    check_end,
    crumbs,
    evaluation_in,
    experiment_of,
    other_sets,
    run_links,
    store_here,
)
from evaltrack.server.shell import REASON_LIMIT, explained, page
from evaltrack.server.streamed import Pending, streamed
from evaltrack.tracking.baselines import set_baseline
from evaltrack.tracking.history import past_run
from evaltrack.tracking.run_files import fetch_rows, fetch_summary
from evaltrack.tracking.server_internals import Access

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
        blueprint.register_error_handler(kind, explained)
    return blueprint


def _nowhere(rest: str) -> Any:  # noqa: ARG001
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
        name, choice = request.args.get("golden", ""), Choice.of(request.args)
        if not name or choice is None:
            abort(400, "this address names no golden set, or no moment")
        prepare_pages()
        history = contents.history(store, experiment.experiment_id, name, choice)
        if not history.rows and not history.baseline and not (choice.before or choice.narrow):
            g.evaltrack_links = other_sets(experiment)
            abort(404, f"golden set {name} has no run in this experiment")
        if history.proposed and choice.before is None:
            prepare_golden_set(store, experiment, *(run.run_id for run in history.proposed))
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
            first=choice.before is None,
            any_target=ANY_TARGET,
        )
        csrf.keep_token(request, answer, token)
        return answer

    def drift(self) -> Response:
        """A candidate against a baseline, question by question."""
        store = store_here()
        experiment = experiment_of(self._access, store, request.args.get("experiment_id"))
        now, was = (check_end(evaluation_in(store, experiment, request.args.get(x))) for x in ("candidate", "baseline"))
        g.evaltrack_links = (*run_links(store, now), *run_links(store, was)[1:])
        check_two_runs(now, was)
        metrics_left_out(was.signature, now.signature, ())  # it is known before the rows are read
        back = drift_back(experiment, was, now)
        return streamed(_pending(back), lambda: drift_page(store, was, now, back))

    def run(self) -> Response:
        """The report of one run."""
        store = store_here()
        experiment = experiment_of(self._access, store, request.args.get("experiment_id"))
        evaluation = check_end(evaluation_in(store, experiment, request.args.get("run_id")))
        g.evaltrack_links = run_links(store, evaluation)
        back = Back((*crumbs(experiment, evaluation), (evaluation.name, "")))

        def fetch(folder: Path) -> tuple[Path, ...]:
            return fetch_summary(store, evaluation.run_id, folder), fetch_rows(store, evaluation, folder)

        def make() -> bytes:
            job = RunJob(info_of_run(store, evaluation), around_run(store, evaluation), back)
            try:
                return made_page(job, (evaluation.ended_at,), fetch)
            except TrackingError as error:
                _log.info("no page of run %s", evaluation.run_id, exc_info=True)
                if error.__cause__ is None:  # what it needs is gone or damaged
                    abort(404, error.message)
                raise

        return streamed(_pending(back), make)

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


def _pending(back: Back) -> Pending:
    """What is shown of a report until it is made."""
    words = back.crumbs[-1][0]
    return Pending(document_head(f"{words} · evaltrack", script=questions_script()), back.crumbs, words)


def _bound_requests() -> None:
    request.max_content_length = FORM_LIMIT
