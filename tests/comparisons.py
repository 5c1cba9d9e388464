"""Comparisons built by hand, for the tests of their renderings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaltrack.compare.change import BY_URGENCY, Cause, Change, Fate
from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta, Rule
from evaltrack.compare.gate import Gate
from evaltrack.compare.reruns import Reruns
from evaltrack.metrics.criteria import Criterion
from evaltrack.metrics.metric import Threshold
from evaltrack.records import Question, Response, Row, Signature, Source
from evaltrack.records.row import row_of
from evaltrack.records.run import Run
from evaltrack.stats.significance import PairedTest

from .compared import patched

SIGNATURE = Signature(golden="travel", golden_digest="0123", k=3, target="bm25:docs")
MADE = {"k": "3", "target": "bm25:docs", "commit": "1a2b3c4d5e6f (main)"}
UI = "http://127.0.0.1:5000/#/experiments/0"
BASELINE = Run("b1", "bm25 floor 0", SIGNATURE, f"{UI}/runs/b1", 26, settings=MADE | {"target.floor": "0"})
CHANGED = {"target.floor": "3", "param.chunk_size": "600", "commit": "9f8e7d6c5b4a (main)"}
CANDIDATE = Run("c1", "bm25 floor 3", SIGNATURE, f"{UI}/runs/c1", 26, 1, settings=MADE | CHANGED)
ALLOWED = {"recall_at_k": Threshold(0.05, relative=True), "mrr": Threshold(0.1, relative=True)}
RECALL = MetricDelta(
    "recall_at_k", 0.8, 0.7, 20, 0.125, 1, 3, (-0.25, 0.05), ALLOWED["recall_at_k"], over=True, regressed=True
)
MRR = MetricDelta("mrr", 0.75, 0.7501, 20, -0.000133, 1, 0, (0.0, 0.0004), ALLOWED["mrr"])
TOKENS = MetricDelta("num_tokens", 1000.0, 1250.5, 24, 0.2505, 0, 20, (200.0, 300.0), higher_is_better=False)
CRITERION = Criterion("hit_rate", ">", 0.8)

EVIL = (
    "<script>alert(1)</script> [x](javascript:alert(1)) ![i](http://e/i.png) @octocat #12 GH-7 www.evil.example "
    "\x1b[31mred\u202egnp.exe \x00 | a `b` **c** $x$ a@b.example http://e.example/ --> ]]> &lt; \ud800 ::error::no\r\n"
    "::stop-commands::x"
)
"""Text that would do something in HTML, Markdown, a terminal, XML, JSON or a CI log, if taken for more than text."""


def flat(answer: str | None, *chunks: str, **fields: Any) -> Row:
    question = Question(id="7", question="Can I get a refund?", domain="travel", expected_chunks=("fees#refunds",))
    sources = tuple(Source(chunk_id=chunk, url="https://docs.example/fees", text="text", score=1.0) for chunk in chunks)
    return patched(row_of(question, Response(answer=answer, sources=sources), 3), **fields)


DEMOTED = Cause(
    "source_demoted",
    "`fees#refunds` fell from rank 1 to 4, beyond the first 3; `fares#refunds` took its place",
    "fees#refunds",
    1,
    4,
    "https://docs.example/fares",
    ("fares#refunds",),
)
REWORDED = Cause(
    "context_changed", "the answer changed, with different sources: `fares#refunds` is new among the first 3"
)
FLIP = Change(
    id="7",
    question="Can I get a refund?",
    domain="travel",
    difficulty="easy",
    category=None,
    fate="broke",
    was="pass",
    now="fail",
    cause=DEMOTED,
    also=(REWORDED,),
    dropped=(("recall_at_k", 1.0, 0.0),),
    before=flat("Yes, within 30 days.", "fees#refunds", "fees#lead", "fees#lead", "visa#fees"),
    after=flat("Yes, within 14 days.", "fares#refunds", "fees#lead", "visa#fees", "fees#refunds"),
)
BRIEF = replace(FLIP, also=(), before=None, after=None)
TIMED_OUT = Cause("target_failed", "target_timeout: no response within 60 s")
LOST = replace(BRIEF, id="8", question="How long may I stay?", fate="lost", now="error", cause=TIMED_OUT, dropped=())
REPHRASED = Cause("answer_changed", "different answer")
FIX = replace(
    BRIEF, id="9", question="Where is the desk?", fate="fixed", was="fail", now="pass", cause=REPHRASED, dropped=()
)
DROP = replace(BRIEF, id="10", question="Which zone?", fate="lower score", was="pass", now="pass")
GROUPS = (
    GroupDelta("domain", "rail", 4, (replace(RECALL, candidate=0.8, n=4, threshold=None, regressed=False),), 0, 0),
    GroupDelta("domain", "travel", 20, (RECALL, MRR), 1, 1),
    GroupDelta("difficulty", "easy", 24, (), 1, 1),
)


RULES = (Rule("flips", "broken", value=1), Rule("metric", "broken", RECALL), Rule("metric", "held", MRR))


def by_fate(*changes: Change) -> dict[str, Any]:
    listed = {fate: tuple(change for change in changes if change.fate == fate) for fate in BY_URGENCY}
    counts = {fate: len(those) for fate, those in listed.items()}
    return {"by_fate": listed, "fates": {**counts, "identical": 20}}


def comparison(**fields: Any) -> Comparison:
    """A small regression: one flip, one fix, one drop, one lost question, and a tolerated metric."""
    made = Comparison(
        baseline=BASELINE,
        candidate=CANDIDATE,
        verdict="regression",
        rules=RULES,
        gate=Gate(domain_drops={"travel": {"mrr": Threshold(0.02, relative=True)}}),
        reruns=Reruns(),
        loss=PairedTest(0.75),
        metrics=(RECALL, MRR, TOKENS),
        groups=GROUPS,
        **by_fate(FLIP, FIX, DROP, LOST),
        num_common=24,
        added=("30", "31"),
        removed=("29",),
        edited=("28",),
        not_selected=(),
        ignored=("judge",),
        left_out=("accuracy", "judge_score"),
        causes={"source_demoted": 2, "target_failed": 1},
        compare_link=f"{UI}/evaluation-runs?selectedRunUuid=c1&compareToRunUuid=b1",
    )
    return changed(made, **fields)


LISTS: dict[str, Fate] = {
    "flips": "broke",
    "fixes": "fixed",
    "drops": "lower score",
    "lost": "lost",
    "newly": "newly measured",
    "gains": "higher score",
    "others": "changed",
}


def changed(made: Comparison, **fields: Any) -> Comparison:
    lists = {LISTS[name]: fields.pop(name) for name in LISTS if name in fields}
    counts = {fate: len(changes) for fate, changes in lists.items()}
    others = {"by_fate": {**made.by_fate, **lists}, "fates": {**made.fates, **counts}} if lists else {}
    return replace(made, **{**others, **fields})


def quiet(**fields: Any) -> Comparison:
    """A run against itself: nothing changed."""
    same = replace(RECALL, candidate=0.8, drop=0.0, wins=0, losses=0, interval=None, over=False, regressed=False)
    return changed(
        comparison(
            verdict="ok",
            rules=(Rule("flips", "held"), Rule("metric", "held", same)),
            candidate=replace(CANDIDATE, num_errors=0),
            metrics=(same,),
            groups=(),
            by_fate=by_fate()["by_fate"],
            **dict.fromkeys(("added", "removed", "edited", "ignored"), ()),
            left_out=(),
            fates={"identical": 24},
            causes={},
            compare_link=None,
        ),
        **fields,
    )


def hostile() -> Comparison:
    """The same with foreign text wherever text can be foreign."""
    lost = f"`{EVIL}` (rank 1) is no longer returned"
    cause = Cause("source_lost", lost, EVIL, 1, None, "javascript:alert(1)", (EVIL,))
    source = {"chunk_id": EVIL, "title": EVIL, "url": EVIL, "score": 1.7e308, "text": EVIL, "text_digest": "0"}
    row = flat(None)
    change = replace(
        FLIP,
        id=EVIL,
        question=EVIL,
        domain=EVIL,
        category=EVIL,
        cause=cause,
        also=(replace(cause, link=f"https://e.example/ {EVIL}"),),
        before=patched(row, answer=EVIL, sources=[source], error=EVIL),
        after=patched(row, answer=f"{EVIL} {EVIL}", sources=[source | {"chunk_id": None}], expected=[EVIL]),
    )
    signature = SIGNATURE.model_copy(update={"golden": EVIL})
    run = Run(EVIL, EVIL, signature, "javascript:alert(1)", 1, 1, settings={f"param.{EVIL}": EVIL})
    return comparison(
        baseline=run,
        candidate=run,
        rules=(Rule("metric", "broken", RECALL, EVIL), Rule("unclear", "unknown", value=1, names=(EVIL,))),
        metrics=(replace(RECALL, drop=float("nan"), interval=(float("-inf"), float("inf"))),),
        groups=tuple(replace(group, name=f"::error::{EVIL}") for group in GROUPS),
        **by_fate(*(replace(change, fate=fate) for fate in ("broke", "fixed", "lower score", "lost"))),
        **dict.fromkeys(("added", "removed", "edited"), (EVIL,)),
        compare_link="javascript:alert(1)",
    )
