from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points

import mlflow
import pytest

from evaltrack import set_baseline
from tests.conftest import REPO
from tests.files import put

pytest_plugins = "pytester"

PLUGIN = "evaltrack.api.pytest_plugin"
INSTALLED = any(each.value == PLUGIN for each in entry_points(group="pytest11"))
LOADED = () if INSTALLED else ("-p", PLUGIN)
GOLDEN = (
    {"id": "a", "question": "first?", "expected_chunks": ["a"]},
    {"id": "b", "question": "second?", "expected_chunks": ["b"]},
    {"id": "c::x\u202e\n", "question": "third?", "expected_chunks": ["z"]},
    {"id": "d", "question": "fourth?"},
)
CONFTEST = """
import os

def ask(question):
    second = os.environ.get("SECOND", "b")
    if second == "down":
        raise RuntimeError("##[error] the index\\x1b[31m is down")
    return {"first?": ["a"], "second?": [second], "third?": ["q"], "fourth?": ["a"]}[question]

def pytest_evaltrack_settings(config):
    return {"target": ask, "judge": "none", "tracking_uri": URI, "traces": "off"}
"""
TESTS = """
from evaltrack import assert_no_regression

def test_plain():
    pass

def test_result(evaltrack_run):
    assert evaltrack_run.totals["num_questions"] == 4

def test_gate(evaltrack_run):
    assert assert_no_regression(evaltrack_run, tracking_uri=URI, max_reruns=0).verdict == "ok"
"""
Session = Callable[..., pytest.RunResult]


@pytest.fixture
def session(pytester: pytest.Pytester, store_uri: str, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Runs pytest in a project with a golden set, a target and tests."""
    monkeypatch.chdir(pytester.path)  # the store has a folder of its own
    pytester.makeini("[pytest]\ntestpaths = .\n")
    pytester.makefile(".toml", evaltrack="[run]\ngolden = 'golden/small.jsonl'\n")
    put(pytester.mkdir("golden").joinpath("small.jsonl"), GOLDEN)
    for name, text in {"conftest": CONFTEST, "test_own": TESTS}.items():
        pytester.makepyfile(**{name: f"URI = {store_uri!r}\n{text}"})
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(pytester.mkdir("state")))

    def run(*arguments: str, apart: bool = False) -> pytest.RunResult:
        options = (*LOADED, "-p", "no:cacheprovider", "-p", "no:langsmith_plugin", "-ra", *arguments)
        if apart:
            return pytester.runpytest_subprocess(*options)
        return pytester.runpytest_inprocess(*options)

    return run


def runs(store_uri: str) -> list[str]:
    client = mlflow.MlflowClient(store_uri)
    return [run.info.run_id for run in client.search_runs([each.experiment_id for each in client.search_experiments()])]


def test_each_question_is_an_item(session: Session, store_uri: str) -> None:
    result = session("--evaltrack", "--deselect", "test_own.py::test_gate")
    result.assert_outcomes(passed=4, failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*small.jsonl: c::x*",
            "question: third?",
            "not in the first 5: z",
            "evaltrack: 2 of 3 questions passed; run *",
        ]
    )
    result.stdout.fnmatch_lines(["evaltrack: not compared: golden set `small` has no baseline*"])
    assert "\u202e" not in result.stdout.str()
    assert len(runs(store_uri)) == 1


def test_the_baseline_tells_what_broke(session: Session, store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session("--evaltrack", "golden/small.jsonl").assert_outcomes(passed=2, failed=1, skipped=1)
    set_baseline(runs(store_uri)[0], tracking_uri=store_uri)
    session("--evaltrack").assert_outcomes(passed=5, xfailed=1, skipped=1)

    monkeypatch.setenv("SECOND", "x")
    result = session("--evaltrack")
    result.assert_outcomes(passed=3, failed=2, xfailed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["b (small) broke: an expected source is no longer returned*", "`b` (rank 1) is no longer returned*"]
    )
    result.stdout.fnmatch_lines(["E*AssertionError: Regression: *", "evaltrack: Regression"])

    monkeypatch.setenv("SECOND", "down")
    broken = session("--evaltrack", "golden/small.jsonl::a")
    broken.assert_outcomes(failed=1)
    broken.stdout.fnmatch_lines(["*the target failed: RuntimeError: *the index*is down*"])
    assert "##[error]" not in "\n".join(line for line in broken.outlines if "the index" in line)


def test_a_baseline_that_is_not_there_is_an_error(session: Session) -> None:
    result = session("--evaltrack", "--evaltrack-baseline", "nowhere", "golden/small.jsonl")
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["the evaluation failed: *nowhere*"])


def test_a_session_without_questions_is_not_green(session: Session, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntestpaths = .\nnorecursedirs = golden\n")
    result = session("--evaltrack")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*small.jsonl was not collected; pass its path to pytest with the tests"])


def test_without_the_option_nothing_is_evaluated(session: Session, store_uri: str) -> None:
    session().assert_outcomes(passed=1, skipped=2)
    assert runs(store_uri) == []


@pytest.mark.parametrize(
    ("golden", "words"),
    [
        ("golden/none.jsonl", "*none.jsonl: no such file*"),
        ("golden/bad.jsonl", "*bad.jsonl:1: unknown field `expected_chunk`; did you mean `expected_chunks`?"),
    ],
)
def test_a_bad_golden_set_is_named(session: Session, pytester: pytest.Pytester, golden: str, words: str) -> None:
    pytester.path.joinpath("golden/bad.jsonl").write_text('{"id": 1, "question": "q", "expected_chunk": []}\n')
    result = session("--evaltrack", "--evaltrack-golden", golden)
    assert result.ret not in (0, 5)
    (result.stdout if "bad" in golden else result.stderr).fnmatch_lines([words])


def test_a_golden_set_has_to_be_named(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*LOADED, "--evaltrack", "-p", "no:cacheprovider")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*evaltrack: no golden set was named, and golden/ holds none*"])


def test_settings_are_those_of_evaltrack_run(
    session: Session, pytester: pytest.Pytester, store_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makefile(".toml", evaltrack="[run]\ngolden = 'golden/small.jsonl'\nk = 3\njudge = 'none'\nsample = 2\n")
    monkeypatch.setenv("EVALTRACK_RUN_TRIALS", "2")
    session("--evaltrack", "golden/small.jsonl")
    params = mlflow.MlflowClient(store_uri).get_run(runs(store_uri)[0]).data.params
    assert (params["k"], params["trials"], params["sample"], params["judge"]) == ("3", "2", "2", "none")


def test_questions_of_a_program_are_items(session: Session, pytester: pytest.Pytester, store_uri: str) -> None:
    pytester.makeini("[pytest]\n")
    own = f"golden_path={list(GOLDEN)!r}, sample=2, target=lambda question: ['a'], tracking_uri={store_uri!r}"
    pytester.makepyfile(conftest=f"def pytest_evaltrack_settings(config): return dict({own})\n")
    result = session("--evaltrack", "-k", "not gate and not result")
    assert sum(result.parseoutcomes().get(name, 0) for name in ("passed", "failed", "skipped")) == 3
    pytester.makepyfile(conftest=f"def pytest_evaltrack_settings(config): return dict({own}, concurency=2)\n")
    session("--evaltrack").stdout.fnmatch_lines(["*there is no setting `concurency`; did you mean `concurrency`?"])


def test_workers_share_one_run(session: Session, store_uri: str) -> None:
    result = session("--evaltrack", "-n", "2", "--deselect", "test_own.py::test_gate", apart=True)
    result.assert_outcomes(passed=4, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["evaltrack: 2 of 3 questions passed; run *"])
    assert len(runs(store_uri)) == 1


def test_the_plugin_alone_imports_nothing_heavy() -> None:
    heavy = {"mlflow", "pandas", "numpy", "pydantic", "click", "rich", "openai", "evaltrack.errors"}
    code = f"import sys, {PLUGIN}; print(sorted({heavy!r} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
