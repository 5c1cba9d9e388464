"""Asks a target one question outside of any run, and returns its response or its failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from evaltrack.errors import UsageError
from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.loop import run_to_end
from evaltrack.evaluation.settings import AUTO_TARGET, EvaluationConfig
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.golden.reader import checked_question
from evaltrack.metrics.measure import Rules
from evaltrack.privacy.addresses import shown_text
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Failure, Response
from evaltrack.targets import open_target

if TYPE_CHECKING:
    from evaltrack.options import EvaluationOptions


def ask_target(
    question: str,
    target: str | None = None,
    *,
    domain: str = "ask",
    history: Sequence[Mapping[str, str]] = (),
    **settings: Unpack[EvaluationOptions],
) -> Response | Failure:
    """Ask a target one question and return its response, or its failure.

    Nothing is logged or stored. Secrets of the environment are removed from the response, as in a run.

    Args:
        question: The question's text.
        target: A target as in `run_eval`; None takes the target of the settings file.
        domain: The question's domain, for a target that has an index for each domain.
        history: The turns before the question, each with `role` and `content`, as in a golden line.
        **settings: Settings of `run_eval`; only `k`, `timeout` and `target_options` are used.

    Raises:
        UsageError: the target is unknown or cannot be opened, or `history` is malformed or not supported by the target.
    """
    asked = checked_question({"id": "ask", "question": question, "domain": domain, "history": list(history)})
    if isinstance(asked, list):
        raise UsageError("; ".join(asked))
    config = settings_of(EvaluationConfig, {**settings, **({"target": target} if target else {})})
    if config.target == AUTO_TARGET:
        raise UsageError("no target is named; name one (`target=bm25:docs`), or set it under [run] in evaltrack.toml")
    opened = open_target(config.target, config.target_options)
    if history and not opened.takes_history:
        opened.close()
        raise UsageError(f"`history=`: target {shown_text(config.target)} takes only the question; leave it out")
    redactor = Redactor.with_environment(secrets=opened.secrets)
    evaluator = Evaluator(opened, Rules(k=config.k), timeout=config.timeout, redactor=redactor)
    outcomes: list[Response | Failure] = []

    async def ask() -> None:
        try:
            outcomes.append(await evaluator.response(asked))
        finally:
            await opened.aclose()

    try:
        run_to_end(ask)
    finally:
        opened.close()
    return outcomes[0]
