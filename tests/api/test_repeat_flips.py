"""Asking what changed again: what broke, what scatters, and what nobody can tell."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Comparison, RunResult, compare_runs, run_eval
from evaltrack.api.repeat_flips import RepeatFlips
from evaltrack.compare.change import Repeat
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.records import Question, Response, Source
from evaltrack.report.comparison.json_form import comparison_json
from evaltrack.report.comparison.markdown import comparison_markdown
from evaltrack.report.comparison.terminal import comparison_text
from tests.judging import JUDGE, by_text, cli, golden_set, scored_reply, serving, store_in
from tests.openai_behaviours import Behaviour, Reply, quota
from tests.openai_requests import Json
from tests.openai_server import OpenAIServer

TARGET = f"python:{__name__}:ask"
IDS = "abcdefgh"

script: dict[str, list[bool | None]] = {}
"""What the target does for each question, one time after the other: finds it, does not, fails (None); then the last."""
asked: defaultdict[str, int] = defaultdict(int)


def ask(question: Question, k: int) -> Response:
    """A target that follows the script, and prints as targets do."""
    print("looking")
    turns = script.get(question.id, [True])
    turn = turns[min(asked[question.id], len(turns) - 1)]
    asked[question.id] += 1
    if turn is None:
        raise RuntimeError("down")
    return Response(answer="so", sources=(Source(chunk_id="x" if turn else "y"),))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Each test has a script of its own."""
    script.clear()
    asked.clear()
    yield
    script.clear()


def found_run(uri: str, folder: Path, **settings: Any) -> RunResult:
    """A run of the scripted target; each question passes if `x` is found."""
    golden, _ = golden_set(folder, dict.fromkeys(IDS), expected_chunks=["x"])
    return run_eval(
        golden,
        **{
            "target": TARGET,
            "judge": "none",
            "tracking_uri": uri,
            "traces": "off",
            "concurrency": 1,
            "in_process": True,
            **settings,
        },
    )


def pair(uri: str, folder: Path, turns: dict[str, list[bool | None]], **settings: Any) -> tuple[RunResult, RunResult]:
    """A candidate whose questions do as scripted, and a baseline in which all pass; the target counts from there."""
    before = found_run(uri, folder, **settings)
    script.update(turns)
    asked.clear()
    return found_run(uri, folder, **settings), before


def compared(runs: tuple[RunResult, RunResult], uri: str, repeat_flips: RepeatFlips = 3, **options: Any) -> Comparison:
    """Candidate against baseline, by flips alone."""
    rules = {"max_drop": ["recall_at_k=off", "mrr=off"], "tracking_uri": uri, "log": False}
    return compare_runs(runs[0].run_id, runs[1].run_id, repeat_flips=repeat_flips, **{**rules, **options})


@dataclass(frozen=True)
class Made:
    """Runs that no test changes, made once, by the questions that failed in them, and where they are."""

    uri: str
    folder: Path
    runs: dict[str, RunResult]

    @property
    def golden(self) -> Path:
        return self.folder / "small.jsonl"

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make this the folder and the store of a test."""
        monkeypatch.chdir(self.folder)
        monkeypatch.setenv("EVALTRACK_STATE_DIR", str(self.folder / "state"))
        monkeypatch.setenv("MLFLOW_TRACKING_URI", self.uri)

    def pair(self, turns: dict[str, list[bool | None]], before: str = "") -> tuple[RunResult, RunResult]:
        """A candidate whose questions did as scripted, and a baseline in which those named in `before` failed; what the
        target does from now on is the rest of the script.
        """
        script.update(turns)
        asked.update(dict.fromkeys(IDS, 1))
        failed = "".join(key for key in IDS if not script.get(key, [True])[0])
        return self.runs[failed or " after"], self.runs[f"{before} before"]


@pytest.fixture(scope="module")
def all_made(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    failing = {" before": "", "d before": "d", " after": "", "a": "a", "ab": "ab", "abcde": "abcde", "abcdef": "abcdef"}
    experiments = {"ab": "several", "abcdef": "several"}  # a name of its own for each other, so that none is on record
    runs = {}
    with store_in(folder, empty_database) as uri:
        for name, failed in failing.items():
            script.update({key: [key not in failed] for key in IDS})
            runs[name] = found_run(uri, folder, experiment=experiments.get(name, f"alone {name}"))
    script.clear()
    return Made(uri, folder, runs)


@pytest.fixture
def golden_text(made: Made) -> Iterator[str]:
    """The golden set of the runs, for a test that changes it."""
    text = made.golden.read_text()
    yield text
    made.golden.write_text(text)


@pytest.fixture
def made(all_made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """The runs, as if they had been made by this test in this folder."""
    all_made.enter(monkeypatch)
    return all_made


ENDINGS: Sequence[tuple[list[bool | None], Repeat]] = [
    ([False, False, False, False], Repeat(3, 0, 3, "unsettled")),
    ([False, True, False, True], Repeat(3, 2, 1, "scatter")),
    ([False, False, True, True], Repeat(3, 2, 1, "scatter")),
    ([False, None, True, True], Repeat(3, 2, 0, "scatter")),
    ([False, None, None, None], Repeat(3, 0, 0, "not measured")),
    ([False, None, False, None], Repeat(3, 0, 1, "unsettled")),
]


def test_a_flip_is_scatter_unsettled_or_not_measured(made: Made) -> None:
    turns = {key: each for key, (each, _) in zip(IDS, ENDINGS, strict=False)}
    found = compared(made.pair(turns), made.uri)
    flips = {flip.id: flip for flip in found.flips}
    assert {key: flip.repeat for key, flip in flips.items()} == {
        key: repeat for key, (_, repeat) in zip(IDS, ENDINGS, strict=False)
    }
    assert [key for key, flip in flips.items() if flip.counts] == ["e"]
    assert found.exit_code == 1
    assert found.reasons[0] == "1 question broke; 1 of them could not be measured again; 3 more are scatter"
    assert found.reasons[1].startswith("2 questions (a, f) fail every time again")


def test_a_target_that_answers_the_same_again_broke(made: Made) -> None:
    found = compared(made.pair({"a": [False]}), made.uri)
    assert [flip.repeat for flip in found.flips] == [Repeat(3, 0, 3, "real")]
    assert (found.verdict, found.asking.scatter, found.asking.calls) == ("regression", False, 24)
    assert found.reasons == ("1 question broke",)


@pytest.fixture(scope="module")
def on_record(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A baseline before which `b` failed four times, and what came after it."""
    folder = tmp_path_factory.mktemp("record")
    runs = {}
    with store_in(folder, empty_database) as uri:
        for name in ("b 1", "b 2", "b 3", "b 4", " before", "b", "abc"):
            script.update({key: [key not in name or name.endswith("before")] for key in IDS})
            runs[name] = found_run(uri, folder)
    script.clear()
    return Made(uri, folder, runs)


def test_what_failed_before_is_not_called_broken_for_the_same_answers(
    on_record: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_record.enter(monkeypatch)
    found = compared(on_record.pair({"b": [False]}), on_record.uri)
    assert (found.verdict, found.asking.scatter) == ("unknown", False)
    assert [flip.repeat for flip in found.flips] == [Repeat(3, 0, 3, "unsettled", 4, 4)]
    assert "or it was mended just before" in found.reasons[0]


def test_a_newer_run_that_failed_is_not_passed_over(store_uri: str, tmp_path: Path) -> None:
    older, before = pair(store_uri, tmp_path, {})
    script.update({key: [None] for key in IDS})
    broken = found_run(store_uri, tmp_path)
    assert broken.status == "FAILED"
    with pytest.raises(
        InconclusiveError, match=f"the newest run {broken.run_id} .* is FAILED; evaluate again, or name"
    ):
        compare_runs(baseline=before.run_id, tracking_uri=store_uri, log=False)
    assert compare_runs(older.run_id, before.run_id, tracking_uri=store_uri, log=False).verdict == "ok"
    mlflow.MlflowClient(store_uri).set_terminated(broken.run_id, "FAILED", end_time=4_000_000_000_000)
    found = compare_runs(baseline=before.run_id, tracking_uri=store_uri, log=False)
    assert (found.verdict, found.candidate.run_id) == ("ok", older.run_id)


def test_auto_asks_others_before_it_calls_a_target_deterministic(made: Made) -> None:
    runs = made.pair({"a": [False]})
    found = compared(runs, made.uri, repeat_flips="auto")
    assert (found.verdict, found.asking.scatter, found.asking.calls) == ("regression", False, 104)  # 13 times 8
    script["b"] = [True] * (asked["b"] + 1) + [False]
    assert compared(runs, made.uri, repeat_flips="auto").asking.scatter is True


def test_scatter_is_no_regression(made: Made) -> None:
    candidate, before = made.pair({"a": [False, True]})
    number = len(_all_runs(made.uri))
    found = compared((candidate, before), made.uri)
    assert (found.verdict, found.exit_code, len(found.flips)) == ("ok", 0, 1)
    assert found.reasons == ("no regression: 1 question that broke is scatter",)
    rate = {metric.name: metric for metric in found.metrics}["pass_rate"]
    assert (rate.baseline, rate.candidate, found.mcnemar_p) == (1, 0.875, 1)
    assert [row["passed"] for row in candidate.rows] == [False, *[True] * 7]
    assert len(_all_runs(made.uri)) == number


def _all_runs(uri: str) -> list[mlflow.entities.Run]:
    client = mlflow.MlflowClient(uri)
    return list(client.search_runs([each.experiment_id for each in client.search_experiments()]))


def test_what_nobody_can_tell_is_unknown(made: Made) -> None:
    found = compared(made.pair({"a": [False], "b": [False, True]}), made.uri)
    assert (found.verdict, found.exit_code) == ("unknown", 3)
    assert found.reasons[0].startswith("1 question (a) fails every time again and passed once in the baseline")
    assert "--trials 5" in found.reasons[0]
    assert "that were fixed" not in found.reasons[0]  # none was


def test_a_question_is_held_against_its_record(on_record: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four earlier runs in which it passed say that it broke; in which it failed, that its pass was luck."""
    on_record.enter(monkeypatch)
    runs = on_record.pair({"a": [False], "b": [False], "c": [False, True]})
    found = compared(runs, on_record.uri, repeat_flips=10)
    repeats = {flip.id: flip.repeat for flip in found.flips}
    assert {key: (each.kind, each.record_failed, each.record_times) for key, each in repeats.items() if each} == {
        "a": ("real", 0, 4),
        "b": ("scatter", 4, 4),
        "c": ("scatter", 0, 4),
    }
    assert [flip.id for flip in found.flips if flip.counts] == ["a"]
    assert found.verdict == "regression"
    asked.update(dict.fromkeys("abc", 1))
    assert compared(runs, on_record.uri, repeat_flips=10, allow_flips=1).verdict == "ok"


def test_trials_of_the_baseline_are_a_record(store_uri: str, tmp_path: Path) -> None:
    runs = pair(store_uri, tmp_path, {"a": [False], "b": [False] * 8 + [True]}, trials=8)
    made = compared(runs, store_uri, repeat_flips=5)
    repeats = {flip.id: flip.repeat for flip in made.flips}
    assert repeats["a"] == Repeat(5, 0, 5, "real", 0, 8)
    assert made.verdict == "regression"


def test_the_seeds_gate_asks_nobody(made: Made) -> None:
    found = compared(made.pair({"a": [False, True]}), made.uri, gate="seed")
    assert (found.verdict, found.asking.calls, found.flips[0].repeat) == ("regression", 0, None)
    assert asked["a"] == 1


def test_where_nobody_can_be_asked_the_rule_holds(made: Made, golden_text: str) -> None:
    runs = made.pair({"a": [False]}, before="d")
    said = ("1 question broke, 1 was fixed",)
    found = compared(runs, made.uri, repeat_flips=0)
    assert (found.reasons, found.asking.why_not) == (said, "nothing was asked again")
    made.golden.unlink()
    found = compared(runs, made.uri, repeat_flips="auto")
    assert found.verdict == "regression"
    assert found.reasons == said
    assert "small.jsonl: no such file" in str(found.asking.why_not)


def test_only_what_changed_is_asked_so_often(made: Made) -> None:
    scatters: list[bool | None] = [False, True]
    turns = {"a": [False], "b": scatters, "c": scatters, "d": [False], "e": scatters}
    found = compared(made.pair(turns, before="d"), made.uri, repeat_flips=5)
    assert {flip.id: flip.repeat for flip in found.flips} == {
        "a": Repeat(5, 0, 5, "unsettled"),
        **dict.fromkeys("bce", Repeat(5, 5, 0, "scatter")),
    }
    assert asked == {**dict.fromkeys("abce", 6), **dict.fromkeys("dfgh", 1)}


def test_a_question_edited_since_is_not_asked(made: Made, golden_text: str) -> None:
    made.golden.write_text(golden_text.replace("What of b?", "What of b now?"))
    found = compared(made.pair({"a": [False, True], "b": [False, True]}), made.uri)
    repeats = {flip.id: flip.repeat for flip in found.flips}
    assert repeats == {"a": Repeat(1, 1, 0, "scatter"), "b": Repeat(0, 0, 0, "not measured")}
    assert (asked["a"], asked["b"]) == (2, 1)
    assert found.verdict == "regression"


def test_every_rendering_says_what_came_of_it(made: Made) -> None:
    """Terminal, Markdown and JSON, in words and numbers."""
    turns: dict[str, list[bool | None]] = {
        "a": [False],
        "b": [False, True, False, True],
        "c": [False, False, True],
        "d": [False, None],
        "e": [False, True],
    }
    found = compared(made.pair(turns), made.uri)
    said = {
        "a": "[unsettled: failed 3 of 3 times again]",
        "b": "[scatter: failed 1 of 3 times again]",
        "c": "[scatter: failed 1 of 3 times again]",
        "d": "[asked 3 times again, measured 0]",
    }
    shown, page = comparison_text(found, 200), comparison_markdown(found).replace("\\", "")
    for key, words in said.items():
        assert f"- {key} (small) broke: an expected source is no longer returned {words}" in shown
        assert words in page
    assert "Asked again (15 calls): 3 scatter, 1 unsettled, 1 not measured" in shown
    document = comparison_json(found)
    flips = {flip["id"]: flip for flip in document["flips"]}
    repeat = {"kind": "scatter", "times": 3, "passed": 2, "failed": 1, "record": {"times": 0, "failed": 0}}
    assert flips["c"]["repeat"] == repeat
    assert {key: flip["counts"] for key, flip in flips.items()} == {key: key == "d" for key in "abcde"}
    assert document["asked_again"] == {"possible": True, "calls": 15, "scatter": True, "lucky": 0, "why_not": None}


# With a judge


def judged_pair(uri: str, folder: Path, **settings: Any) -> tuple[RunResult, RunResult]:
    """Answers that a judge gave 0.9 in the baseline; in the candidate one of two got 0.3."""
    runs = []
    for name in ("before", "after"):
        golden, target = golden_set(folder / name, {"a": f"First {name}.", "b": f"Second {name}."})
        asked_for = {"target": target, "judge": JUDGE, "traces": "off", "concurrency": 1, **settings}
        runs.append(run_eval(golden, tracking_uri=uri, **asked_for))
    return runs[1], runs[0]


def judge(*again: float) -> dict[str, list[str]]:
    """What the judge gives each text in turn: the first verdict on the candidate's second answer is bad luck or not."""
    texts = {"First before.": [0.9], "Second before.": [0.9], "First after.": [0.9], "Second after.": [0.3, *again]}
    return {text: [scored_reply(score) for score in scores] for text, scores in texts.items()}


@dataclass
class Judged:
    """Two runs that a judge scored, made once: the second answer of the candidate got 0.3."""

    uri: str
    folder: Path
    server: OpenAIServer
    runs: tuple[RunResult, RunResult]
    behaviour: list[Behaviour]


@pytest.fixture(scope="module")
def all_judged(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    folder = tmp_path_factory.mktemp("judged")
    behaviour = [by_text(judge())]

    def behave(request: Json, call: int) -> Reply:
        return behaviour[0](request, call)

    with OpenAIServer(behave) as server:
        with store_in(folder, empty_database) as uri, pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", server.base_url)
            runs = judged_pair(uri, folder, judge="openai")
        assert server.calls == 4
        yield Judged(uri, folder, server, runs, behaviour)


@pytest.fixture
def judged(all_judged: Judged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judged:
    """The runs, with a cache that holds their verdicts and no others."""
    shutil.copytree(all_judged.folder / "cache", tmp_path / "cache")
    monkeypatch.chdir(all_judged.folder)
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(all_judged.folder / "state"))
    monkeypatch.setenv("OPENAI_BASE_URL", all_judged.server.base_url)
    return all_judged


@pytest.mark.parametrize(
    ("again", "kind", "calls", "verdict"),
    [((0.9,), "scatter", 1, "ok"), ((0.3, 0.9, 0.3), "scatter", 4, "ok"), ((0.3,), "real", 6, "regression")],
)
def test_a_judge_gives_a_fresh_verdict_each_time(
    judged: Judged, again: tuple[float, ...], kind: str, calls: int, verdict: str
) -> None:
    texts = {**judge(), "Second after.": [scored_reply(score) for score in again]}
    judged.behaviour[0], before = by_text(texts), judged.server.calls
    made = compared(judged.runs, judged.uri)
    assert judged.server.calls == before + calls
    (flip,) = made.flips
    assert flip.repeat is not None
    assert (flip.id, flip.repeat.kind, made.verdict) == ("b", kind, verdict)


def test_trials_are_counted_on_from_those_of_the_run(store_uri: str, tmp_path: Path) -> None:
    with serving(behaviour=by_text(judge(0.3, 0.3, 0.9, 0.9))) as server:
        runs = judged_pair(store_uri, tmp_path, trials=3)
        assert server.calls == 12
        made = compared(runs, store_uri, repeat_flips=2)
    assert server.calls == 13
    assert made.flips[0].repeat == Repeat(1, 1, 0, "scatter", 0, 3)


def test_recorded_responses_and_verdicts_cannot_be_asked_again(store_uri: str, tmp_path: Path) -> None:
    """They would be the same, which proves nothing."""
    verdicts = tmp_path / "verdicts.jsonl"

    def write(name: str, score: float) -> None:
        rows = [{"id": key, "judge": name, "reasoning": "so", "overall_score": score} for key in "ab"]
        verdicts.write_text("".join(json.dumps(row) + "\n" for row in rows))

    golden, target = golden_set(tmp_path, {"a": "First.", "b": "Second."})
    runs = []
    for score in (0.9, 0.3):
        write("people", score)
        judged = {"target": target, "judge": f"recorded:{verdicts}", "traces": "off"}
        runs.append(run_eval(golden, tracking_uri=store_uri, **judged))
    made = compared((runs[1], runs[0]), store_uri, repeat_flips="auto")
    assert {flip.repeat for flip in made.flips} == {None}
    assert made.asking.why_not == "recorded answers cannot be asked again"


# What is refused


def test_another_target_is_refused(made: Made) -> None:
    candidate, before = made.pair({"a": [False]})
    other = candidate.signature.model_copy(update={"target": "python:other:ask"})
    client = mlflow.MlflowClient(made.uri)
    client.set_tag(candidate.run_id, "evaltrack.signature", other.model_dump_json())
    try:
        with pytest.raises(UsageError) as refused:
            compared((candidate, before), made.uri)
    finally:
        client.set_tag(candidate.run_id, "evaltrack.signature", candidate.signature.model_dump_json())
    said = f"run {candidate.run_id} cannot be repeated here: target was 'python:other:ask' and is '{TARGET}'"
    assert str(refused.value) == said
    assert asked["a"] == 1


def test_a_target_that_is_gone_is_refused(store_uri: str, tmp_path: Path) -> None:
    module = Path("passing_target.py")
    module.write_text("def ask(question):\n    return [question[8]]\n")
    golden, _ = golden_set(tmp_path, {"a": None}, expected_chunks=["a"])
    before = run_eval(golden, target="python:passing_target:ask", judge="none", tracking_uri=store_uri, traces="off")
    module.write_text("def ask(question):\n    return ['another']\n")
    after = run_eval(golden, target="python:passing_target:ask", judge="none", tracking_uri=store_uri, traces="off")
    module.unlink()
    with pytest.raises(UsageError, match="python target `passing_target:ask`: cannot be imported"):
        compared((after, before), store_uri)


def test_a_golden_set_that_is_gone_is_refused(made: Made, golden_text: str) -> None:
    made.golden.unlink()
    with pytest.raises(UsageError, match=r"small\.jsonl: no such file"):
        compared(made.pair({"a": [False]}), made.uri)


def test_repeats_have_bounds(made: Made) -> None:
    runs = made.pair({"a": [False]})
    for times in (-1, 101):
        with pytest.raises(UsageError, match=f"repeat_flips is {times}; write auto, or a number from 0 to 100"):
            compared(runs, made.uri, repeat_flips=times)
    assert [flip.repeat for flip in compared(runs, made.uri, repeat_flips=0).flips] == [None]


def test_a_judge_that_cannot_be_asked_any_more_ends_the_comparison(judged: Judged) -> None:
    judged.behaviour[0] = quota()
    with pytest.raises(InconclusiveError, match="quota"):
        compared(judged.runs, judged.uri)


def test_the_command_line(made: Made, capfd: pytest.CaptureFixture[str]) -> None:
    candidate, before = made.pair({"a": [False, True]})
    capfd.readouterr()
    rules = ("--no-log", "--max-drop", "recall_at_k=off", "--max-drop", "mrr=off")
    compared_ = ("compare", candidate.run_id, "--baseline-run", before.run_id, *rules)
    assert cli(*compared_, "--repeat-flips", "3", "--output", "json") == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["flips"][0]["repeat"]["kind"] == "scatter"
    assert "looking" in printed.err
    assert cli(*compared_, "--gate", "seed") == 1
    assert cli(*compared_, "--repeat-flips", "3") == 0
    assert "Asked again (1 call): 1 scatter" in capfd.readouterr().out
    assert cli(*compared_, "--repeat-flips", "often") == 2


def test_an_older_run_is_not_asked_of_newer_code_unless_that_is_wanted(made: Made) -> None:
    runs, newer = made.pair({"a": [False], "b": [False]}), made.runs["abcdef"]
    found = compared(runs, made.uri, "auto")
    assert set(asked.values()) == {1}
    assert found.asking.why_not is not None
    assert f"run {newer.run_id[:8]} of the same target is newer" in found.asking.why_not
    assert compared(runs, made.uri, 3).asking.possible
