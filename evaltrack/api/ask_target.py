"""Ask a target one question, outside of any run: to see what it returns, and to find the ids of its chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaltrack.errors import UsageError
from evaltrack.evaluation.ask import TIMEOUT, Evaluator
from evaltrack.evaluation.loop import close_all, run_to_end
from evaltrack.golden.lines import checked_question
from evaltrack.metrics.measure import Rules
from evaltrack.privacy.addresses import shown_text
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Row
from evaltrack.targets import open_target


def ask_target(
    question: str,
    target: str,
    *,
    k: int = 5,
    domain: str = "ask",
    timeout: float = TIMEOUT,
    target_options: Mapping[str, str] | None = None,
    history: Sequence[Mapping[str, str]] = (),
) -> Row:
    """Ask a target one question; its row has the response, or the failure that says why there is none.

    Nothing is logged and nothing is kept. Secrets of the environment are taken out of the response, as in a run.

    Args:
        question: The question's text.
        target: As `run_eval` takes it: ``bm25:docs``, ``python:app.rag:ask``, ...
        k: How many sources the target is asked for; it may return more.
        domain: The question's domain, for a target that has an index for each.
        timeout: Seconds for the answer.
        target_options: The target's own settings.
        history: The turns before the question, each with `role` and `content`, as in a golden line.

    Raises:
        UsageError: the target is unknown or cannot be opened, or the history is none, or the target takes none.
    """
    asked = checked_question({"id": "ask", "question": question, "domain": domain, "history": list(history)})
    if isinstance(asked, list):
        raise UsageError("; ".join(asked))
    opened = open_target(target, target_options)
    if history and not opened.takes_history:
        opened.close()
        raise UsageError(f"`history=`: target {shown_text(target)} takes the question alone; leave it out")
    rows: list[Row] = []

    async def work() -> None:
        redactor = Redactor.with_environment(secrets=opened.secrets)
        evaluator = Evaluator(opened, Rules(k=k), timeout=timeout, redactor=redactor)
        try:
            rows.append(await evaluator.row(0, asked, 1))
        finally:
            await close_all((opened,))

    try:
        run_to_end(work)
    finally:
        opened.close()
    return rows[0]
