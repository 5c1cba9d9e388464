"""What is known of a judge when two runs are compared: its noise, whether it is trusted, and what that decides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Comparison, RunResult, compare_runs, run_eval
from evaltrack.api.compare_context import judge_context
from evaltrack.api.judge_agreement import judges_agreement
from evaltrack.compare.engine import JudgeContext, compare
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Response, Row, Source, ToolCall, Verdict
from evaltrack.report.comparison.json_form import comparison_json
from evaltrack.report.comparison.markdown import comparison_markdown
from evaltrack.report.comparison.terminal import comparison_text
from evaltrack.rows.stored_row import StoredRow, stored_row
from evaltrack.tracking.judge_notes import (
    ACCEPTED,
    AGREEMENT,
    NOISE,
    JudgeAgreement,
    JudgeNoise,
    judge_notes,
    note_accepted,
    note_judge,
)
from evaltrack.tracking.reader import EvaluationRun, find_evaluation
from evaltrack.tracking.store import Store, connect
from tests.compared import K, found, question, side
from tests.judging import cli, golden_set, labels_file, store_in

NOBODY = (
    "the judge's agreement is not known (evaltrack judge agree), 0.6 is required: its scores inform and do not block"
)
BELOW = (
    "the judge's agreement is 0.700 on 40 responses, and may be 0.599 (95 % interval), 0.6 is required: its scores "
    "inform and do not block"
)


def judged_run(
    folder: Path, uri: str, scores: Mapping[str, float], *, judge: str = "model", answer: str = "Yes."
) -> RunResult:
    """A run whose answers this judge gave these scores."""
    golden, target = golden_set(folder, dict.fromkeys(scores, answer))
    rows = [{"id": key, "overall_score": score} for key, score in scores.items()]
    verdicts = labels_file(folder / "verdicts.jsonl", rows, judge=judge)
    return run_eval(golden, target=target, judge=f"recorded:{verdicts}", tracking_uri=uri, traces="off")


@dataclass(frozen=True)
class Pair:
    """A candidate and its baseline, in their store."""

    store: Store
    candidate: EvaluationRun
    baseline: EvaluationRun


@pytest.fixture(scope="module")
def both(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two runs by one judge; the candidate's answers are others, and one of four fell."""
    folder = tmp_path_factory.mktemp("knowing")
    with store_in(folder, empty_database) as uri:
        before = judged_run(folder / "before", uri, dict.fromkeys("abcd", 0.9))
        after = judged_run(folder / "after", uri, {**dict.fromkeys("abc", 0.9), "d": 0.3}, answer="No.")
        store = connect(uri)
        yield Pair(store, find_evaluation(store, after.run_id), find_evaluation(store, before.run_id))


@pytest.fixture
def pair(both: Pair) -> Iterator[Pair]:
    """The two runs, of which nothing is known; afterwards neither."""
    yield both
    for run in (both.candidate, both.baseline):
        for name in both.store.client.get_run(run.run_id).data.tags:
            if name in (NOISE, AGREEMENT) or name.startswith(ACCEPTED):
                both.store.client.delete_tag(run.run_id, name)


def noise(half_width: float, judge: str = "model", prompt: str = "") -> JudgeNoise:
    return JudgeNoise(metric="judge_score", half_width=half_width, times=3, judge=judge, judge_prompt=prompt)


def agreement(
    low: float | None, judge: str = "model", prompt: str = "", *, kappa: float = 0.7, n: int = 40
) -> JudgeAgreement:
    """An agreement whose interval begins at `low`."""
    return JudgeAgreement(kappa=kappa, low=low, n=n, other="people", judge=judge, judge_prompt=prompt)


# What the tags say


def test_nothing_is_known_of_a_judge_that_nobody_looked_at(pair: Pair) -> None:
    assert judge_context(pair.store, pair.candidate, pair.baseline, None) == JudgeContext()


def test_the_noise_is_that_of_the_candidates_judge(pair: Pair) -> None:
    store, candidate, baseline = pair.store, pair.candidate, pair.baseline
    note_judge(store, baseline.run_id, noise(0.2))
    assert judge_context(pair.store, pair.candidate, pair.baseline, None).noise == {"judge_score": 0.2}
    assert judge_context(store, candidate, None, None).noise == {}
    note_judge(store, candidate.run_id, noise(0.1))
    assert judge_context(pair.store, pair.candidate, pair.baseline, None).noise == {"judge_score": 0.1}


@pytest.mark.parametrize("other", [("another model", ""), ("model", "0123")])
def test_what_was_found_of_another_judge_or_prompt_says_nothing(pair: Pair, other: tuple[str, str]) -> None:
    store, candidate, baseline = pair.store, pair.candidate, pair.baseline
    note_judge(store, candidate.run_id, noise(0.1, *other))
    note_judge(store, baseline.run_id, agreement(0.9, *other))
    assert judge_context(pair.store, pair.candidate, pair.baseline, 0.6) == JudgeContext(trusted=False, notes=(NOBODY,))


@pytest.mark.parametrize(
    ("low", "trusted", "notes"),
    [(0.5994, False, (BELOW,)), (0.6, True, ()), (0.7, True, ()), (-0.2, False, None)],
)
def test_a_judge_is_trusted_from_the_agreement_that_is_required(
    pair: Pair, low: float, trusted: bool, notes: tuple[str, ...] | None
) -> None:
    note_judge(pair.store, pair.baseline.run_id, agreement(low))
    known = judge_context(pair.store, pair.candidate, pair.baseline, 0.6)
    assert known.trusted is trusted
    assert notes is None or known.notes == notes
    assert judge_context(pair.store, pair.candidate, pair.baseline, None).trusted


@pytest.mark.parametrize(
    ("noted", "words"),
    [
        (agreement(1.0, kappa=1.0, n=2), "is 1.000 on 2 responses, too few to show it (20 are needed)"),
        (agreement(0.9, kappa=0.95, n=19), "is 0.950 on 19 responses, too few to show it (20 are needed)"),
        (agreement(0.2, kappa=0.9, n=1), "is 0.900 on 1 response, too few to show it (20 are needed)"),
        (agreement(None, n=30), "is 0.700 on 30 responses, without an interval (run evaltrack judge agree again)"),
    ],
)
def test_few_responses_or_no_interval_show_no_agreement(pair: Pair, noted: JudgeAgreement, words: str) -> None:
    note_judge(pair.store, pair.candidate.run_id, noted)
    known = judge_context(pair.store, pair.candidate, pair.baseline, 0.6)
    assert known.notes == (f"the judge's agreement {words}, 0.6 is required: its scores inform and do not block",)
    assert not known.trusted


def test_the_candidates_own_agreement_comes_first(pair: Pair) -> None:
    note_judge(pair.store, pair.baseline.run_id, agreement(0.9))
    note_judge(pair.store, pair.candidate.run_id, agreement(0.1))
    assert not judge_context(pair.store, pair.candidate, pair.baseline, 0.6).trusted


def test_without_a_judge_there_is_nobody_to_mistrust(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"a": "Yes."}, expected_chunks=["x"])
    made = run_eval(golden, target=target, judge="none", tracking_uri=store_uri, traces="off")
    store = connect(store_uri)
    assert judge_context(store, find_evaluation(store, made.run_id), None, 0.6) == JudgeContext()


def test_accepted_questions_are_told_with_who_when_and_why(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    store, candidate, baseline = pair.store, pair.candidate, pair.baseline
    monkeypatch.setenv("LOGNAME", "ada")
    day = note_accepted(store, candidate.run_id, "d", None, "Right.").at[:10]
    note_accepted(store, candidate.run_id, "c", 2, "")
    note_accepted(store, baseline.run_id, "a", None, "Was so.")
    said = {"d": f"accepted by ada, {day}: Right.", "c": f"accepted by ada, {day}"}
    assert judge_context(pair.store, pair.candidate, pair.baseline, None).accepted == said
    assert judge_context(pair.store, pair.candidate, pair.baseline, 0.6).accepted == said


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[]", "null", "7", '{"kappa": 1}', '{"kappa": "high", "n": 1, "other": "p", "judge": "m"}'],
)
def test_what_somebody_else_wrote_under_these_names_is_passed_over(pair: Pair, text: str) -> None:
    for name in (NOISE, AGREEMENT, f"{ACCEPTED}x"):
        pair.store.client.set_tag(pair.candidate.run_id, name, text)
    notes = judge_notes(pair.store, pair.candidate.run_id)
    assert (notes.noise, notes.agreement, notes.accepted) == (None, None, {})
    assert judge_context(pair.store, pair.candidate, pair.baseline, 0.6) == JudgeContext(trusted=False, notes=(NOBODY,))


# What that decides


def compared(pair: Pair, **options: Any) -> Comparison:
    return compare_runs(pair.candidate.run_id, pair.baseline.run_id, tracking_uri=pair.store.uri, **options)


def test_below_the_required_agreement_the_judge_informs_and_does_not_block(pair: Pair) -> None:
    """Flip and drop are there, and said to inform only; from that agreement on they are a regression."""
    drop = {"max_drop": ["judge_score=0.01"]}
    assert compared(pair, **drop).exit_code == 1
    unknown = compared(pair, require_agreement=0.6, **drop)
    assert (unknown.verdict, unknown.exit_code, unknown.notes) == ("ok", 0, (NOBODY,))
    note_judge(pair.store, pair.candidate.run_id, agreement(0.5994))
    below = compared(pair, require_agreement=0.6, **drop)
    assert (below.verdict, below.reasons, below.notes) == ("ok", ("no regression",), (BELOW,))
    assert [(flip.id, flip.by_judge, flip.informs, flip.counts) for flip in below.flips] == [("d", True, True, False)]
    metrics = {metric.name: metric for metric in below.metrics}
    assert (metrics["judge_score"].delta, metrics["judge_score"].regressed) == (pytest.approx(-0.15), False)
    note_judge(pair.store, pair.candidate.run_id, agreement(0.6))
    above = compared(pair, require_agreement=0.6, **drop)
    assert (above.verdict, above.notes) == ("regression", ())
    drop_reason, flip_reason = above.reasons
    assert drop_reason == "Judge score went from 0.900 to 0.750, 16.7 % worse (allowed: 0.01)"
    assert flip_reason == "1 question broke"
    assert str(above.asking.why_not).startswith("run ")
    assert [(flip.by_judge, flip.informs, flip.counts) for flip in above.flips] == [(True, False, True)]


def test_every_rendering_says_that_the_judge_only_informs(pair: Pair) -> None:
    """And why: terminal, Markdown, JSON."""
    note_judge(pair.store, pair.candidate.run_id, agreement(0.5994))
    made = compared(pair, require_agreement=0.6)
    shown = comparison_text(made, 200)
    assert BELOW in shown
    assert "d (small) broke: same sources, another answer [informs only]" in shown
    page = comparison_markdown(made).replace("\\", "")
    assert BELOW in page
    assert "[informs only]" in page
    printed = json.loads(json.dumps(comparison_json(made)))
    assert printed["notes"] == [BELOW]
    (flip,) = printed["flips"]
    assert (flip["by_judge"], flip["informs"], flip["counts"]) == (True, True, False)
    kept = mlflow.artifacts.load_dict(f"runs:/{pair.candidate.run_id}/comparison.json")
    assert kept["notes"] == [BELOW]


def test_a_measured_agreement_opens_the_gate(pair: Pair, tmp_path: Path) -> None:
    """From `judge agree` to `compare`: labels with which the judge agrees, with which it does not, and too few."""
    ids = [f"q{number}" for number in range(24)]
    before = judged_run(tmp_path / "before", pair.store.uri, dict.fromkeys(ids, 0.9))
    own = {key: 0.3 if number % 3 == 0 else 0.9 for number, key in enumerate(ids)}
    after = judged_run(tmp_path / "after", pair.store.uri, own, answer="No.")
    same = {key: score - 0.05 for key, score in own.items()}
    other = {key: 0.3 if number % 2 else 0.9 for number, key in enumerate(ids)}
    few = {key: same[key] for key in ids[:19]}
    for name, people, verdict in (("few", few, "ok"), ("other", other, "ok"), ("same", same, "regression")):
        rows = [{"id": key, "overall_score": score} for key, score in people.items()]
        labels = labels_file(tmp_path / f"{name}.jsonl", rows)
        made = judges_agreement(after.run_id, labels=labels, resamples=200, tracking_uri=pair.store.uri)
        assert made.kappa is not None
        assert (made.kappa >= 0.6) == (name != "other")
        uri = pair.store.uri
        assert compare_runs(after.run_id, before.run_id, tracking_uri=uri, require_agreement=0.6).verdict == verdict


def test_the_command_line(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """`compare --require-agreement`: 0 where the judge is not trusted, 1 where it is, 2 for what is no kappa."""
    asked = (
        "compare",
        pair.candidate.run_id,
        "--baseline-run",
        pair.baseline.run_id,
        "--no-log",
        "--require-agreement",
    )
    assert cli(*asked, "0.6") == 0
    assert NOBODY in capsys.readouterr().out.replace("\n", " ")
    note_judge(pair.store, pair.candidate.run_id, agreement(0.8))
    assert cli(*asked, "0.6") == 1
    assert cli(*asked, "2") == 2
    assert "2.0 is not in the range -1<=x<=1" in capsys.readouterr().err


# Which flips are the judge's


def judged_row(response: Response, score: float | None, declined: bool | None = None, **fields: Any) -> StoredRow:
    """The row of question `q` with this response and verdict."""
    asked = question("q", **fields)
    verdict = Verdict(judge="j", reasoning="so", overall_score=score, declined=declined)
    verdicts = () if score is None and declined is None else (verdict,)
    made = measure(asked, response, Rules(K), verdicts)
    whole = {"scores": made.scores, "unmeasured": made.unmeasured, "passed": made.passed, "verdicts": verdicts}
    return stored_row(
        Row.model_validate(
            {"position": 0, "question": asked, "response": response, "started_at": 0, "seconds": 0, **whole}
        ),
        K,
    )


def flip_of(before: StoredRow, after: StoredRow) -> tuple[bool, str]:
    """Whether the one flip between the rows is the judge's, and the verdict where he is not trusted."""
    assert (before.passed, after.passed) == (True, False)
    made = compare(side([before]), side([after]), judge=JudgeContext(trusted=False), resamples=10)
    (flip,) = made.flips
    assert flip.informs is flip.by_judge
    return flip.by_judge, made.verdict


JUDGED_ONLY = {"expected_chunks": None}
NEGATIVE = {"expected_chunks": ()}
CALLED = (ToolCall(name="search"),)
CASES: Sequence[tuple[str, StoredRow, StoredRow, tuple[bool, str]]] = [
    (
        "another answer",
        judged_row(found("q!"), 0.9),
        judged_row(found("q!", answer="It is not."), 0.3),
        (True, "ok"),
    ),
    ("another verdict", judged_row(found("q!"), 0.9), judged_row(found("q!"), 0.3), (True, "ok")),
    (
        "lower, but still found",
        judged_row(found("q!"), 0.9),
        judged_row(found("x", "q!", answer="It is not."), 0.3),
        (True, "regression"),
    ),
    ("no longer found", judged_row(found("q!"), 0.9), judged_row(found("x"), 0.3), (False, "regression")),
    (
        "no longer found, answer praised",
        judged_row(found("q!"), 0.9),
        judged_row(found("x"), 0.9),
        (False, "regression"),
    ),
    (
        "a tool was not called",
        judged_row(found("q!", tool_calls=CALLED), 0.9, expected_tools=["search"]),
        judged_row(found("q!", answer="No."), 0.3, expected_tools=["search"]),
        (False, "regression"),
    ),
    (
        "no retrieval is expected",
        judged_row(Response(answer="Yes."), 0.9, **JUDGED_ONLY),
        judged_row(Response(answer="No."), 0.3, **JUDGED_ONLY),
        (True, "ok"),
    ),
    (
        "the target declines now",
        judged_row(found("q!"), 0.9),
        judged_row(Response(answer="I do not know.", abstained=True), 0.3),
        (False, "regression"),
    ),
    (
        "it declined, as the judge saw",
        judged_row(Response(answer="No idea.", sources=(Source(chunk_id="x"),)), None, True, **NEGATIVE),
        judged_row(Response(answer="Blue.", sources=(Source(chunk_id="x"),)), None, False, **NEGATIVE),
        (True, "ok"),
    ),
    (
        "it declined, as it said itself",
        judged_row(Response(answer="No idea.", abstained=True), None, **NEGATIVE),
        judged_row(Response(answer="Blue."), None, False, **NEGATIVE),
        (False, "regression"),
    ),
    (
        "nobody judged",
        judged_row(found("q!"), None),
        judged_row(found("x"), None),
        (False, "regression"),
    ),
]


@pytest.mark.parametrize(("before", "after", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_flip_is_the_judges_if_all_else_still_passes(
    before: StoredRow, after: StoredRow, expected: tuple[bool, str]
) -> None:
    assert flip_of(before, after) == expected


def test_retrieval_rules_hold_whoever_judges() -> None:
    before, after = judged_row(found("q!"), 0.9), judged_row(found("x", "y", "q!"), 0.9)
    made = compare(side([before]), side([after]), judge=JudgeContext(trusted=False), resamples=10)
    assert made.reasons == ("MRR went from 1.000 to 0.333, 66.7 % worse (allowed: 10 %)",)
