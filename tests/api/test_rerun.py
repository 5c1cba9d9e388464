from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Comparison, RunResult, compare_runs, run_eval
from evaltrack.api.compare_sides import side_of_run
from evaltrack.api.rerun import question_records
from evaltrack.compare.reruns import Rerun
from evaltrack.errors import InconclusiveError
from evaltrack.records import Question, Response, Source
from evaltrack.records.run import Run
from evaltrack.report.comparison_text import comparison_text
from evaltrack.report.run_text import run_json
from evaltrack.report.templates import say
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.store import connect
from evaltrack.tracking.tags import SYSTEM_TAG
from tests.judging import cli, golden_set, scored_reply, serving, store_in
from tests.openai_behaviours import Reply
from tests.openai_requests import Json, text_of
from tests.tracking.test_tags import git

TARGET = f"python:{__name__}:ask"
IDS = "abcdefgh"

Turns = dict[str, list[bool | str | None]]

script: Turns = {}
"""What the target does for each question, one time after the other: finds it, does not, fails (None), says a text and
declines; then the last."""
said = {"answer": "so"}
asked: defaultdict[str, int] = defaultdict(int)


def ask(question: Question, k: int) -> Response:
    print("looking")
    turns = script.get(question.id, [True])
    turn = turns[min(asked[question.id], len(turns) - 1)]
    asked[question.id] += 1
    if turn is None:
        raise RuntimeError("down")
    declined = isinstance(turn, str)
    answer = turn if isinstance(turn, str) else said["answer"]
    return Response(answer=answer, sources=(Source(chunk_id="x" if turn else "y"),), abstained=declined)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    script.clear()
    asked.clear()
    yield
    script.clear()


def found_run(uri: str, folder: Path, **settings: Any) -> RunResult:
    """A run of the scripted target; each question passes if `x` is found."""
    golden, _ = golden_set(folder, dict.fromkeys(IDS), expected_chunks=["x"])
    usual: dict[str, Any] = {"judge": "none", "traces": "off", "concurrency": 1, "in_process": True}
    return run_eval(golden, target=TARGET, tracking_uri=uri, **usual | settings)


def pair(uri: str, folder: Path, turns: Turns, **settings: Any) -> tuple[RunResult, RunResult]:
    before = found_run(uri, folder, **settings)
    script.update(turns)
    asked.clear()
    return found_run(uri, folder, **settings), before


def compared(runs: tuple[RunResult, RunResult], uri: str, **options: Any) -> Comparison:
    rules = {"max_drop": ["recall_at_k=off", "mrr=off"], "tracking_uri": uri, "log": False}
    return compare_runs(runs[0].run_id, runs[1].run_id, **{**rules, **options})


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
        monkeypatch.chdir(self.folder)
        monkeypatch.setenv("EVALTRACK_STATE_DIR", str(self.folder / "state"))
        monkeypatch.setenv("MLFLOW_TRACKING_URI", self.uri)

    def pair(self, turns: Turns, before: str = "") -> tuple[RunResult, RunResult]:
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
    failing = {" before": "", "d before": "d", " after": "", "a": "a", "abcde": "abcde"}
    runs = {}
    with store_in(folder, empty_database) as uri:
        for name, failed in failing.items():
            script.update({key: [key not in failed] for key in IDS})
            runs[name] = found_run(uri, folder, experiment=f"alone {name}")  # so that none is on record for another
    script.clear()
    return Made(uri, folder, runs)


@pytest.fixture
def golden_text(made: Made) -> Iterator[str]:
    text = made.golden.read_text()
    yield text
    made.golden.write_text(text)


@pytest.fixture
def made(all_made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    all_made.enter(monkeypatch)
    return all_made


def test_a_flaky_question_is_no_regression(made: Made) -> None:
    candidate, before = made.pair({"a": [False, True]})
    number = len(_all_runs(made.uri))
    said: list[str] = []
    found = compared((candidate, before), made.uri, say=said.append)
    assert said == ["rerunning 1 question, to tell broken from flaky ones; 8 calls at most"]
    assert (found.verdict, found.exit_code, found.reruns.calls) == ("ok", 0, 1)
    assert found.reruns.by_id == {"a": Rerun("flaky", 1, 0)}
    rate = {metric.name: metric for metric in found.metrics}["pass_rate"]
    assert (rate.baseline, rate.candidate) == (1, 0.875)
    assert [row["passed"] for row in candidate.rows] == [False, *[True] * 7]
    assert len(_all_runs(made.uri)) == number


def _all_runs(uri: str) -> list[mlflow.entities.Run]:
    client = mlflow.MlflowClient(uri)
    return list(client.search_runs([each.experiment_id for each in client.search_experiments()]))


def test_no_more_calls_are_made_than_the_run_made(made: Made) -> None:
    """Eight questions; with `max_reruns=0` nothing is rerun, and each question counts."""
    assert compared(made.pair({"a": [False]}), made.uri).reruns.calls == 8
    asked.clear()
    found = compared(made.pair({"a": [False, True]}), made.uri, max_reruns=0)
    assert (found.verdict, found.reruns.calls, found.reruns.why_not) == ("regression", 0, "reruns are off")
    assert found.reruns.by_id == {"a": Rerun("not rerun")}
    found = compared(made.pair({"a": [False, True]}), made.uri, gate="seed")
    assert (found.verdict, found.reruns.calls, found.flips[0].rerun) == ("regression", 0, None)
    assert asked["a"] == 1


def test_trials_of_the_baseline_are_a_record(store_uri: str, tmp_path: Path) -> None:
    runs = pair(store_uri, tmp_path, {"a": [False]}, trials=3)
    made = compared(runs, store_uri)
    assert made.reruns.by_id["a"] == Rerun("confirmed", 0, 1, 3, 3, 0, 3)
    assert made.verdict == "regression"
    (path := tmp_path / "saved.json").write_text("".join(run_json(runs[1])))
    saved = compare_runs(runs[0].run_id, baseline_file=path, tracking_uri=store_uri, log=False).reruns.by_id["a"]
    assert (saved.state, saved.record_passed, saved.record_trials) == ("confirmed", 3, 3)


def test_where_nothing_can_be_rerun_the_rule_holds(made: Made, golden_text: str) -> None:
    runs = made.pair({"a": [False]}, before="d")
    made.golden.unlink()
    found = compared(runs, made.uri)
    assert (found.verdict, found.flips[0].rerun) == ("regression", Rerun("not rerun"))
    assert "small.jsonl: no such file" in str(found.reruns.why_not)


def test_a_question_edited_since_is_not_rerun(made: Made, golden_text: str) -> None:
    made.golden.write_text(golden_text.replace("What of b?", "What of b now?"))
    found = compared(made.pair({key: [False, False, True] for key in "abcde"}), made.uri, max_reruns=40)
    states = {key: each.state for key, each in found.reruns.by_id.items()}
    assert states == {**dict.fromkeys("acde", "flaky"), "b": "not rerun"}
    assert found.reruns.why_not == "edited since the run"
    assert (asked["a"], asked["b"]) == (3, 1)
    assert found.verdict == "regression"


@pytest.mark.parametrize("words", ["so", "thus"])
def test_answers_of_the_baseline_are_of_another_system(made: Made, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody judges the answers, whose words may vary."""
    monkeypatch.setitem(said, "answer", words)
    found = compared(made.pair({key: [False, True] for key in "abcde"}), made.uri)
    assert (found.verdict, found.reruns.another_system) == ("unknown", True)
    assert say.headline(found).startswith("Unknown: another system was rerun, or the rerun questions are flaky")


tone = {"now": 1.0}


def toned(question: Question, response: Response) -> float:
    return tone["now"] if question.id in "abc" else 1.0


@pytest.mark.parametrize(("words", "verdict"), [("so", "regression"), ("thus", "ok")])
def test_a_score_of_ones_own_is_tested_if_answers_vary(
    store_uri: str, tmp_path: Path, words: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for value in (1.0, 0.0):
        monkeypatch.setitem(tone, "now", value)
        runs.append(found_run(store_uri, tmp_path, scores=[f"{__name__}:toned"]))
    monkeypatch.setitem(said, "answer", words)
    found = compare_runs(runs[1].run_id, runs[0].run_id, max_drop=["toned=5%"], tracking_uri=store_uri, log=False)
    assert (found.verdict, found.reruns.calls) == (verdict, 3)


def test_a_question_whose_trials_differ_shows_no_other_system(store_uri: str, tmp_path: Path) -> None:
    script.update({"a": [True, True, False], **{key: [False, False, True] for key in "bc"}})
    turns: Turns = {
        "a": [*[False] * 3, True],
        **{key: [*[True] * 3, False] for key in "bc"},
    }
    found = compared(pair(store_uri, tmp_path, turns, trials=3), store_uri)
    assert (found.verdict, found.reruns.calls, found.reruns.another_system) == ("ok", 1, False)


def test_a_rise_of_false_abstentions_is_tested_where_declining_varies(store_uri: str, tmp_path: Path) -> None:
    turns: Turns = {key: ["no", *[True] * (key in "cd")] for key in "abcd"}
    found = compared(pair(store_uri, tmp_path, turns), store_uri)
    assert (found.verdict, found.reruns.calls, found.reruns.varied) == ("ok", 4, True)
    assert [(rule.metric.name, rule.state) for rule in found.rules if rule.metric] == [
        ("false_abstention_rate", "not shown")
    ]


def test_a_newer_run_that_failed_is_not_passed_over(store_uri: str, tmp_path: Path) -> None:
    older, before = pair(store_uri, tmp_path, {})
    script.update({key: [None] for key in IDS})
    broken = found_run(store_uri, tmp_path)
    assert broken.status == "FAILED"
    with pytest.raises(InconclusiveError, match=f"the newest run {broken.run_id} .* failed; run it again, or name"):
        compare_runs(baseline=before.run_id, tracking_uri=store_uri, log=False)
    with pytest.raises(InconclusiveError, match=f"the baseline, run {broken.run_id} .*, failed; name another"):
        compare_runs(older.run_id, broken.run_id, tracking_uri=store_uri, log=False)
    assert compare_runs(older.run_id, before.run_id, tracking_uri=store_uri, log=False).verdict == "ok"


@pytest.fixture
def judged(store_uri: str, tmp_path: Path) -> Iterator[Callable[..., tuple[Comparison, int]]]:
    """Compares two runs of eight answers that a judge gave 0.9, but for one that got 0.3 in the candidate."""
    seen: dict[str, list[float]] = {}

    def behave(request: Json, _call: int) -> Reply:
        (key,) = re.findall(r"What of (\w)\?", "".join(text_of(request, "user")))
        scores = seen.setdefault(key, [0.9])
        return Reply(scored_reply(scores.pop(0) if len(scores) > 1 else scores[0]))

    def compare_judged(*again: float, **options: Any) -> tuple[Comparison, int]:
        settings = {"judge": "openai", "verdict_cache": False}
        before = found_run(store_uri, tmp_path, **settings)
        seen["b"] = [0.3, *again]
        after = found_run(store_uri, tmp_path, **settings)
        calls = server.calls
        made = compared((after, before), store_uri, **options)
        return made, server.calls - calls

    with serving(behaviour=behave) as server:
        yield compare_judged


@pytest.mark.parametrize(
    ("again", "state", "calls", "verdict"), [((0.9,), "flaky", 1, "ok"), ((0.3,), "confirmed", 8, "regression")]
)
def test_a_judge_gives_a_fresh_verdict_each_time(
    judged: Callable[..., tuple[Comparison, int]], again: tuple[float, ...], state: str, calls: int, verdict: str
) -> None:
    made, asked_judge = judged(*again)
    assert (asked_judge, made.reruns.calls) == (calls, calls)
    (flip,) = made.flips
    assert flip.rerun is not None
    assert (flip.id, flip.rerun.state, made.verdict) == ("b", state, verdict)
    assert ("[flaky, the judge's verdict changed: passed 1" in comparison_text(made)) == (state == "flaky")
    assert made.reruns.tokens > 0
    assert f"{made.reruns.tokens:,} tokens" in comparison_text(made)


def test_the_command_line(made: Made, capfd: pytest.CaptureFixture[str]) -> None:
    candidate, before = made.pair({"a": [False, True]})
    capfd.readouterr()
    rules = ("--no-log", "--max-drop", "recall_at_k=off", "--max-drop", "mrr=off")
    compared_ = ("compare", candidate.run_id, "--baseline-run", before.run_id, *rules)
    assert cli(*compared_, "--output", "json") == 0
    printed = capfd.readouterr()
    assert json.loads(printed.out)["flips"][0]["rerun"]["state"] == "flaky"
    assert "looking" in printed.err
    assert cli(*compared_, "--gate", "seed") == 1
    assert cli(*compared_, "--max-reruns", "0") == 1
    assert cli(*compared_) == 0
    assert "Reran in 1 call: 1 flaky." in capfd.readouterr().out
    assert cli(*compared_, "--max-reruns", "often") == 2


RAG = """import importlib
from pathlib import Path
import words
def ask(question):
    from app.late import FOUND
    return [words.FOUND if Path("app.txt").exists() and FOUND else "x"]
"""


def commit_of(folder: Path) -> None:
    (folder / "app.txt").write_text("one")
    for command in (["init", "-q"], ["add", "app.txt"], ["commit", "-qm", "one"]):
        git(folder, *command)


def edit(path: str, text: str) -> Callable[[], object]:
    return lambda: Path(path).write_text(text)


def commit(path: str) -> None:
    Path(path).write_text("two")
    git(Path.cwd(), "add", path)
    git(Path.cwd(), "commit", "-qm", "two")


CHANGES: dict[str, tuple[Callable[[], object], str]] = {
    "a file that it imports": (edit("words.py", "FOUND = 'y'  # edited"), "`words.py` was changed"),
    "a file that it imports late": (lambda: Path("app/late.py").unlink(), "`app/late.py` was changed"),
    "a file of its judge": (edit("own.py", "def judge(question, response):\n    return {}"), "`own.py` was changed"),
    "a tracked file": (edit("app.txt", "two"), "the work tree has changes since"),
    "a file of nobody": (edit("other.py", "FOUND = 1"), ""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_system_is_not_asked(store_uri: str, tmp_path: Path, change: str) -> None:
    commit_of(Path.cwd())
    Path("app").mkdir()
    Path("rag.py").write_text(RAG)
    Path("app/late.py").write_text("FOUND = 1")
    Path("own.py").write_text("def judge(question, response):\n    return {'declined': False, 'overall_score': 1}")
    judge = "own:judge" if change == "a file of its judge" else "none"
    golden, _ = golden_set(tmp_path, {"a": None}, expected_chunks=["x"])
    runs = []
    for found in ("x", "yy"):  # of another length, which Python sees at once
        Path("words.py").write_text(f"FOUND = '{found}'")
        runs.append(run_eval(golden, target="python:rag:ask", judge=judge, tracking_uri=store_uri, traces="off"))
    make, why = CHANGES[change]
    make()
    found = compared((runs[1], runs[0]), store_uri).reruns
    whole = why and f"run {runs[1].run_id} cannot be rerun here: {why}"
    assert (found.why_not or "", found.calls) == (whole, 0 if why else 1)


def test_recorded_verdicts_are_not_about_new_answers(store_uri: str, tmp_path: Path) -> None:
    verdicts = [{"id": key, "declined": False, "overall_score": 1} for key in IDS]
    (path := tmp_path / "verdicts.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in verdicts))
    found = compared(pair(store_uri, tmp_path, {"a": [False, True]}, judge=f"recorded:{path}"), store_uri)
    assert (found.verdict, found.reruns.calls) == ("regression", 0)
    assert found.reruns.why_not == "recorded verdicts do not judge the answer of a rerun"


def test_a_dirty_work_tree_is_the_same_while_nothing_changes(store_uri: str, tmp_path: Path) -> None:
    commit_of(Path.cwd())
    Path("app.txt").write_text("two")
    runs = pair(store_uri, tmp_path, {"a": [False]})
    assert compared(runs, store_uri).reruns.calls == 8
    Path("app.txt").write_text("one")
    assert "the work tree was not clean when the run was made" in str(compared(runs, store_uri).reruns.why_not)


def test_another_target_setting_or_corpus_is_not_asked(made: Made) -> None:
    candidate, before = made.pair({"a": [False]})
    client = mlflow.MlflowClient(made.uri)
    other = candidate.signature.model_copy(update={"target": "python:other:ask"})
    client.set_tag(candidate.run_id, "evaltrack.signature", other.model_dump_json())
    found = compared((candidate, before), made.uri)
    client.set_tag(candidate.run_id, "evaltrack.signature", candidate.signature.model_dump_json())
    why = f"run {candidate.run_id} cannot be rerun here: target is 'python:other:ask', not '{TARGET}'"
    assert (found.verdict, found.reruns.why_not) == ("regression", why)
    text = client.get_run(candidate.run_id).data.tags[SYSTEM_TAG]
    changed = {**json.loads(text), "files": {}, "states": {"corpus": "19 pages"}}
    for system, why in ((json.dumps(changed), "the corpus was changed"), ("", "it does not say what")):
        client.set_tag(candidate.run_id, SYSTEM_TAG, system)
        assert why in str(compared((candidate, before), made.uri).reruns.why_not)
    client.set_tag(candidate.run_id, SYSTEM_TAG, text)
    assert asked["a"] == 1


def test_runs_of_another_system_are_no_record(store_uri: str, tmp_path: Path) -> None:
    store = connect(store_uri)

    def made(**settings: Any) -> Run:
        return find_evaluation(store, found_run(store_uri, tmp_path, **settings).run_id)

    def record(of: Run | None = None, now: Run | None = None, **settings: Any) -> dict[str, tuple[int, int]]:
        was = of or made(**settings)
        return question_records(store, side_of_run(store, was, tmp_path), now or was, "ab")

    script["a"] = [False]
    for _ in range(2):
        assert record() == {}  # without a commit nothing is known
    commit_of(Path.cwd())
    assert record() == {}
    assert record() == {"a": (0, 1), "b": (1, 1)}
    assert record(trials=2)["a"] == (0, 2)
    assert record(trials=3)["a"] == (0, 7)
    baseline, failed = made(), made(trials=2)
    assert record(baseline)["a"] == (0, 7)
    assert record(baseline, made(trials=2)) == {"a": (0, 7), "b": (9, 9)}  # `a` may have broken since
    script["a"] = [True]
    passing = made()
    script["a"] = [False]
    failing = made(), made()
    assert record(baseline, failing[1])["a"] == (1, 12)  # with the failures before it passed
    assert record(baseline, passing)["a"] == (0, 7)
    assert record(failing[0], failed)["a"] == (1, 11)  # an older candidate is no record of itself
    Path("app.txt").write_text("two")
    for _ in range(2):
        assert record() == {}
    assert record(trials=3) == {"a": (0, 3), "b": (3, 3)}
    commit("app.txt")
    assert record() == {}
