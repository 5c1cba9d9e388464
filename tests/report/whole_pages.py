"""A comparison and a run of which each question shows another part of a page, and the page without style and script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from evaltrack.compare.change import Cause, Change
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.reruns import Rerun, Reruns
from evaltrack.evaluation.result import RunResult
from evaltrack.records.row import Row
from evaltrack.records.verdict import Observed, Verdict
from evaltrack.report.html.run_page import Around
from evaltrack.tracking.rows import columns_of
from tests.compared import edited, patched, question, rows_of
from tests.comparisons import (
    BASELINE,
    BRIEF,
    CANDIDATE,
    DROP,
    FIX,
    FLIP,
    LOST,
    RECALL,
    SIGNATURE,
    TOKENS,
    comparison,
    flat,
)
from tests.report.test_run import result


def body(page: str) -> str:
    """The page as a reviewer reads it: its elements on lines of their own, then the data of its script."""
    shown, _, script = page.partition('<script type="application/json" id="data">')
    data = json.loads(script.partition("</script>")[0])
    parts = re.sub("(?s)<script.*?</script>", "", shown.partition("<body>")[2]).splitlines()
    lines = [line.strip() for line in parts if line.strip()]
    return "\n".join([*lines, *fields(data), ""])


def fields(value: Any, indent: str = "") -> Iterator[str]:
    """A line for each field of an object, however deep its objects are nested."""
    for name, each in value.items():
        if isinstance(each, list) and each and isinstance(each[0], dict):
            for one in each:
                yield f"{indent}{name}:"
                yield from fields(one, f"{indent}  ")
        else:
            yield f"{indent}{name}: {json.dumps(each, ensure_ascii=False)}"


def changed_source(row: Row | None, text: str, digest: str) -> Row:
    first, *others = columns_of(row or flat(None))["sources"]
    return patched(
        row or flat(None), sources=[first | {"title": "The page", "text": text, "text_digest": digest}, *others]
    )


def judged(row: Row | None, score: float, **columns: Any) -> Row:
    grades = {"accuracy": score, "completeness": 0.5, "relevance": 1.0}
    verdict = {"judge": "strict", "reasoning": f"It is {score}.\x00", "overall_score": score, **grades}
    measured = {"overall_score": score, "recall_at_k": score, "num_tokens": 1000 * score, "style": score}
    return patched(row or flat(None), verdicts=[verdict], passed=score > 0.7, **measured, **columns)


STYLE = {"style": "Very plain.", "empty": ""}


def every_change() -> Comparison:
    """Questions of each fate, with reruns, acceptances, judges, traces, edited texts, and causes that say little."""
    edited = Cause("source_text_changed", "the text of `fees#refunds` changed", "fees#refunds", 1, 1)
    answered = Cause("answer_changed", "different answer")
    turns = [{"role": "user", "content": f"{turn} <script>{'x' * 9}"} for turn in range(21)]
    broke = (
        replace(
            FLIP,
            rerun=Rerun("confirmed", 0, 2),
            before=judged(FLIP.before, 0.95, history=turns),
            after=judged(
                FLIP.after,
                0.5,
                score_verdicts={
                    "style": {"judge": "s", "reasoning": "Very plain."},
                    "empty": {"judge": "s", "reasoning": ""},
                },
            ),
        ),
        replace(
            FLIP,
            id="11",
            cause=edited,
            also=(),
            before=changed_source(FLIP.before, "Paid within 30 days.", "1"),
            after=changed_source(FLIP.before, "Paid within 14 days.", "2"),
        ),
        replace(FLIP, id="12", rerun=Rerun("flaky", 1, 2), cause=Cause("answer_changed", "another `a<b>`"), also=()),
        replace(FLIP, id="13", accepted="accepted by me, today: known", before=None, after=None),
        by_title(),
        replace(BRIEF, id="15", cause=Cause("now_declines", "the target declines instead of answering")),
        replace(BRIEF, id="16", cause=Cause("now_declines", "no sources now, which counts as declining"), question=""),
        replace(BRIEF, id="17", cause=answered, also=(Cause("verdict_changed", ""),)),
    )
    settings = {"baseline": BASELINE.settings | {"packages": "a==1"}, "candidate": {**BASELINE.settings, "k": "5"}}
    sides = {
        name: replace(
            each, user=user, started_at=1_790_000_000_000, settings=settings[name], traces=traces, trace_link=link
        )
        for name, each, user, traces, link in (
            ("baseline", BASELINE, "ada", "all", "http://m/#"),
            ("candidate", CANDIDATE, "grace", "failed", "http://n/#"),
        )
    }
    better = replace(
        RECALL, name="hit_rate", candidate=0.9, drop=-0.1, interval=(0.01, 0.2), threshold=None, regressed=False
    )
    return comparison(
        flips=broke,
        lost=(LOST, replace(LOST, id="18", cause=Cause("target_failed", "target_error: HttpError: 503"))),
        drops=(DROP,),
        fixes=(FIX,),
        newly=(replace(LOST, id="19", fate="newly measured", was="error", now="pass"),),
        others=(
            replace(DROP, id="20", fate="changed", was="fail", now="fail", cause=Cause("unknown", "the same")),
            replace(DROP, id="21", fate="changed", was="error", now="not measured"),
        ),
        same=tuple(
            patched(flat("It is.", "fees#refunds"), id=kind, domain="rail", **columns)
            for kind, columns in {
                "pass": {"passed": True},
                "fail": {"passed": False},
                "error": {"error": "target_timeout: no response within 60 s"},
                "not measured": {},
            }.items()
        ),
        fates={"identical": 4},
        metrics=(RECALL, replace(RECALL, name="negative_pass_rate"), better, TOKENS),
        reruns=Reruns(calls=4),
        redeclared=("Mind <b>this</b>.",),
        **sides,
    )


def by_title() -> Change:
    """Sources without ids, of which one that was expected is gone."""
    titled = [{"title": "X page", "chunk_id": "x"}]
    before = patched(
        flat("a"), by_title=True, expected=["x PAGE", "Other"], sources=[*titled, {"title": "other"}, {"title": None}]
    )
    cause = Cause("source_lost", "`Other` (rank 2) is no longer returned", "Other", 2, None)
    return replace(FLIP, id="14", cause=cause, also=(), before=before, after=patched(before, sources=titled))


def outcomes() -> list[Row]:
    """One question of each outcome, the good one first."""
    made = rows_of([question(key, expected_answer="So.") for key in "abcd"], {})
    timed_out = {"passed": None, "error": "target_timeout: no response within 60 s", "sources": None, "answer": None}
    others: list[dict[str, Any]] = [{}, {"passed": None}, {"passed": False, "hit": 0.0}, timed_out]
    return [patched(each, **columns) for each, columns in zip(made, others, strict=True)]


def every_outcome() -> tuple[RunResult, list[Row], Around]:
    """A run with a question of each outcome, one of which a rubric's judge read."""
    dimensions = ("h_count", "oscillation", "crux", "epistemic_honesty", "process_integrity")
    observed = Observed.model_validate(
        {"dimensions": dict.fromkeys((*dimensions, "actionability", "brevity", "format"), 8.0), "hypotheses": 3}
        | {"shifts": 1, "crux_treatment": "stated", "uncertainty_treatment": "limits", "mode": "explore"}
        | {"quotes": {"crux": ("this", "this", " "), "shifts": ("that",)}}
    )
    good, unmeasured, *others = outcomes()
    verdicts = (
        Verdict(judge="a", reasoning="so", observed=observed),
        Verdict(judge="b", reasoning="", declined=False),
        Verdict(judge="c", reasoning="so", overall_score=0.0, accuracy=0.4),
    )
    rows = [good, edited(unmeasured, verdicts=verdicts), *others]
    metrics = {"pass_rate": 0.5, "recall_at_k": 0.25, "precision_at_k": 0.1, "precision_at_k.max": 0.2, "hit_rate": 1.0}
    made = result(
        metrics=metrics,
        counts=dict.fromkeys(metrics, 10) | {"recall_at_k": 1234},
        totals={**result().totals, "num_questions": 4, "num_errors": 1},
        signature=SIGNATURE.model_copy(update={"k": 5}),
        notes=("Mind <b>this</b>.",),
    )
    around = Around("the run", "failed", "http://m/#", {"c": "accepted by me, today: known \x1b"})
    return made, rows, around
