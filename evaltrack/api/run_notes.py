"""What is worth knowing of a run besides its numbers, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaltrack.errors import Guide
from evaltrack.evaluation.journal import Journal, Reuse
from evaltrack.evaluation.plan import Plan
from evaltrack.metrics.aggregate import Summary
from evaltrack.metrics.ledger import Ledger
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.amount import count, verb
from evaltrack.records.settings import NOT_STATED, RECORDED_MODEL


def run_notes(
    plan: Plan, journal: Journal, hints: Sequence[str | None], ledger: Ledger, summary: Summary
) -> tuple[str, ...]:
    """The notes of the plan, of the journal and of what was asked; `hints` stand between."""
    whole = summary.num_questions == len(plan.golden)
    own = [*hints, journal.problem, _reuse_words(journal.reuse, whole=whole), *_of_responses(plan, ledger, summary)]
    return (*plan.notes(), *(note for note in own if note), *_of_costs(plan, ledger))


def _of_responses(plan: Plan, ledger: Ledger, summary: Summary) -> Iterator[str]:
    if ledger.num_empty:
        yield _empty_words(ledger)
    if empty := ledger.num_empty_answers:
        those = f"{empty:,} of {count(ledger.num_responses, 'response')} {verb(empty, 'has', 'have')} an empty answer"
        beside = f"{those} beside something else" if ledger.num_empty else those
        yield f"{beside}, which never passes where it is judged; leave `answer` out where the target only retrieves"
    if ledger.num_unanswered and summary.num_judged:
        number = ledger.num_unanswered
        yield f"{count(number, 'response')} had no answer, and {verb(number, 'is', 'are')} in no metric of a judge"
    if floor := _floor_words(plan, summary):
        yield floor
    if ledger.unread:
        names = ", ".join(f"{name} (in {number:,})" for name, number in ledger.unread.items())
        yield f"responses have fields that are not read: {shown_text(names)}"


def _empty_words(ledger: Ledger) -> str:
    """How many responses there is nothing to measure in, and what to return."""
    those = f"{ledger.num_empty:,} of {count(ledger.num_responses, 'response')}"
    cure = "return an answer, a list of sources or a mapping with `answer`, `sources` or both"
    what = f"{those} {verb(ledger.num_empty, 'holds', 'hold')} neither an answer nor sources; {cure}"
    return f"{what}. {Guide.FUNCTION.reference}"


def _floor_words(plan: Plan, summary: Summary) -> str | None:
    """How many answerable questions a BM25 target declined because of its floor, where it has one."""
    from evaltrack.targets.bm25 import Bm25ByDomain, Bm25Target

    if not isinstance(plan.target, Bm25Target | Bm25ByDomain) or not plan.target.floor or plan.several_trials:
        return None
    rate, measured = (each.get("false_abstention_rate", 0) for each in (summary.metrics, summary.counts))
    if not (declined := round(rate * measured)):
        return None
    questions = f"{count(declined, 'answerable question')} {verb(declined, 'was', 'were')}"
    return f"{questions} below the floor {plan.target.floor:g} (setting `floor`), and declined"


def _of_costs(plan: Plan, ledger: Ledger) -> Iterator[str]:
    for whose, price in (("target", plan.settings.prices), ("judge", plan.settings.judge_prices)):
        reports, calls = ledger.reports[whose], ledger.calls[whose]
        if price and reports < calls:
            of = f"{reports:,} of {count(calls, 'call')}"
            yield f"the cost of the {whose} is not known: tokens were reported for {of}"


def _reuse_words(reuse: Reuse, *, whole: bool) -> str | None:
    """What became of the rows that were kept, in a sentence."""
    if not reuse.num_rows:
        return None
    counts = {
        "redone because their question was edited": reuse.redone,
        "asked again because they had failed": reuse.retried,
        "dropped because their question is gone": reuse.dropped if whole else 0,
    }
    rest = "".join(f", {number:,} {what}" for what, number in counts.items() if number)
    return f"resumed: {reuse.reused:,} of {reuse.num_rows:,} kept rows used again{rest}"


def model_words(ledger: Ledger, plan: Plan) -> str:
    """The models that the responses name; of recorded ones that name none, that they are recorded."""
    names = ", ".join(sorted(ledger.models))
    return shown_text(names) or (
        RECORDED_MODEL if plan.signature.target.startswith(("recorded:", "traces:")) else NOT_STATED
    )
