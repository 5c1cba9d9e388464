"""The pages of questions over runs, and the form that accepts one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flask import Response, abort, g, redirect, request

from evaltrack.api.accept_question import MAX_WHY, check_acceptance
from evaltrack.api.question_history import PastEvaluations, history_evaluations
from evaltrack.errors import UsageError
from evaltrack.records.past_run import PastRun
from evaltrack.server import csrf
from evaltrack.server.contents import ANY_TARGET, target_of
from evaltrack.server.made_pages import columns_of, end_times, matrix_page, rows_of_each
from evaltrack.server.page_jobs import QuestionJob
from evaltrack.server.page_process import made_page
from evaltrack.server.request_runs import (
    check_end,
    crumbs,
    evaluation_in,
    experiment_of,
    golden_address,
    run_links,
    store_here,
)
from evaltrack.server.shell import page_text, shell_head
from evaltrack.server.streamed import Pending, streamed
from evaltrack.tracking.history import past_runs
from evaltrack.tracking.judge_notes import accepted_words as accepted_of
from evaltrack.tracking.judge_notes import note_accepted
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.server_internals import Access, Experiment
from evaltrack.tracking.store import Store

NOT_SIGNED_IN = "(not signed in)"


@dataclass(frozen=True)
class TargetView:
    """Runs of which targets a page shows: those of the run that it is about, or of any; `others` are left out."""

    run: EvaluationRun
    others: int
    any_target: bool

    @property
    def target(self) -> str:
        """The target of the run that the page is about."""
        return self.run.signature.target


class QuestionViews:
    """The views, for one kind of access."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def matrix(self) -> Response:
        """Questions by runs, up to the newest finished run or to one that is named."""
        store = store_here()
        experiment = experiment_of(self._access, store, request.args.get("experiment_id"))
        run = self._anchor(store, experiment)
        g.evaltrack_links = run_links(store, run)
        any_target = request.args.get("target") == ANY_TARGET
        title = f"{run.signature.golden}: questions over runs"
        way = (*crumbs(experiment, run), ("Questions over runs", ""))

        def make() -> str:
            past = history_evaluations(store, run, any_target=any_target)
            return page_text(
                f"{title} · evaltrack",
                "matrix.html",
                made=json.loads(matrix_page(store, past.runs)),
                experiment=experiment,
                run=run,
                view=TargetView(run, past.others, any_target=any_target),
                user=self._access.user,
            )

        return streamed(Pending(shell_head(f"{title} · evaltrack"), way, title), make)

    def question(self) -> Response:
        """One question over the runs up to one."""
        store = store_here()
        experiment = experiment_of(self._access, store, request.args.get("experiment_id"))
        run = check_end(evaluation_in(store, experiment, request.args.get("run_id")))
        question_id, token = request.args.get("id", ""), csrf.token_of(request)
        any_target = request.args.get("target") == ANY_TARGET
        may_accept = self._access.may("update", experiment.experiment_id)
        title = f"{question_id} of {run.signature.golden}"
        here = urlencode({"experiment_id": experiment.experiment_id, "golden": run.signature.golden})
        way = (*crumbs(experiment, run), ("Questions over runs", f"matrix?{here}"), (question_id, ""))

        def make() -> str:
            past = history_evaluations(store, run, any_target=any_target)
            made = self._question(store, run, past, question_id)
            since = made["first_broke"]
            return page_text(
                f"{title} · evaltrack",
                "question.html",
                made=made,
                since=None if since is None else made["runs"][since],
                newest=made["runs"][-1],
                experiment=experiment,
                run=run,
                view=TargetView(run, past.others, any_target=any_target),
                accepted=accepted_of(store, run.run_id).get(made["id"], ""),
                may_accept=may_accept,
                token=token,
                why_limit=MAX_WHY,
                user=self._access.user,
            )

        answer = streamed(Pending(shell_head(f"{title} · evaltrack"), way, question_id), make)
        csrf.keep_token(request, answer, token)
        return answer

    def accept(self) -> Any:
        """Accept a question that fails, then show it."""
        if refusal := csrf.refusal(request):
            abort(403, f"{refusal}; open the question's page again and press its button")
        store = store_here()
        experiment = experiment_of(self._access, store, request.form.get("experiment_id"), "update")
        run = check_end(evaluation_in(store, experiment, request.form.get("run_id")))
        why, question_id = request.form.get("why", ""), request.form.get("id", "")
        made = self._question(store, run, history_evaluations(store, run), question_id)
        try:
            check_acceptance(
                made["id"], why, passed=made["passed"], tier=made["tier"], hard_fails=tuple(made["hard_fails"])
            )
        except UsageError as error:
            abort(409, error.message)
        by = self._access.user or NOT_SIGNED_IN
        note_accepted(store, run.run_id, made["id"], made["tier"], why.strip(), by)
        where = {"experiment_id": run.experiment_id, "run_id": run.run_id, "id": made["id"]}
        return redirect(f"question?{urlencode(where)}", 303)

    def _anchor(self, store: Store, experiment: Experiment) -> EvaluationRun:
        """The run that is named, else the newest finished one of the golden set that is."""
        if request.args.get("run_id"):
            return check_end(evaluation_in(store, experiment, request.args.get("run_id")))
        golden = request.args.get("golden", "")
        if not golden:
            abort(400, "this address names no golden set")
        runs = past_runs(store, experiment.experiment_id, golden)
        target = request.args.get("target", ANY_TARGET)
        newest = next((run for run in runs if run.status == "FINISHED" and _asks(run, target)), None)
        if newest is None:
            of = "" if target == ANY_TARGET else f" of target {target}"
            abort(404, f"golden set {golden} has no finished run{of} in this experiment")
        return evaluation_in(store, experiment, newest.run_id)

    def _question(self, store: Store, run: EvaluationRun, past: PastEvaluations, question_id: str) -> dict[str, Any]:
        g.evaltrack_links = run_links(store, run)
        runs = past.runs

        def fetch(folder: Path) -> tuple[Path, ...]:
            return rows_of_each(store, runs, folder)

        job = QuestionJob(columns_of(runs), question_id, run.signature.k)
        made = json.loads(made_page(job, end_times(runs), fetch))
        if made is None:
            g.evaltrack_links = ((f"Runs of {run.signature.golden}", golden_address(run)),)
            abort(404, f"run {run.name} asked no question with the id {question_id}, or its rows are gone")
        return dict(made)


def _asks(run: PastRun, target: str) -> bool:
    return target in (ANY_TARGET, target_of(run))
