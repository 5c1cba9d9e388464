"""The command line, as a user meets it: in a process of its own where only that shows it, else in this one."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import mlflow
import pytest

from evaltrack import __version__
from evaltrack.cli import COMMANDS, SELDOM, cli, main
from evaltrack.errors import Guide
from tests.conftest import REPO, evaltrack, few_questions
from tests.in_process import called
from tests.warm import WarmProcess

TRAVEL = REPO / "golden" / "travel.jsonl"
GOOD = '{"id": 1, "question": "a?", "expected_chunks": ["a"]}\n'
MANY = 300
"""Questions, of which a run is stopped after some 25."""


def test_json_goes_to_stdout_and_nothing_else_does(store_uri: str, tmp_path: Path) -> None:
    ended = evaltrack("run", TRAVEL, "--output", "json", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri})

    printed = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert printed["schema"] == "evaltrack.run/1"
    assert printed["status"] == "FINISHED"
    assert printed["counts"]["recall_at_k"] == 60
    assert len(printed["rows"]) == 63
    assert {"id", "domain", "passed", "error", "recall_at_k", "answer", "sources"} <= set(printed["rows"][0])
    assert printed["rows"][24]["unmeasured"]["recall_at_k"] == "the question is a negative"


def test_the_table_has_no_colours_off_a_terminal(store_uri: str, tmp_path: Path) -> None:
    few = few_questions(tmp_path, 3)
    ended = evaltrack("run", few, "-k", "3", "--traces", "off", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri})

    assert ended.returncode == 0
    assert "\x1b" not in ended.stdout + ended.stderr
    assert "Recall@3" in ended.stdout
    assert "to see it: evaltrack ui\n" in ended.stdout


def test_bad_usage_of_a_process(store_uri: str, tmp_path: Path) -> None:
    ended = evaltrack("run", "none.jsonl", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri})
    assert (ended.returncode, ended.stdout) == (2, "")
    message = "none.jsonl: no such file; name a golden set, or begin one with: evaltrack init"
    assert ended.stderr.splitlines() == [f"Error: {message}", Guide.GOLDEN_FILE.reference]


def test_all_bad_lines_are_listed_in_one_go(tmp_path: Path) -> None:
    """Broken JSON on two lines, a duplicate id and an unknown field are reported together."""
    (tmp_path / "bad.jsonl").write_text(
        GOOD + '{"id": \n{"id": 2, "question": "b?", "answer": "x"}\n' + GOOD + "nope\n"
    )

    ended = called("golden", "lint", "bad.jsonl", cwd=tmp_path)

    assert ended.returncode == 2
    assert [line.partition(": ")[0] for line in ended.stderr.removeprefix("Error: ").splitlines()] == [
        "bad.jsonl:2",
        "bad.jsonl:3",
        "bad.jsonl:4",
        "bad.jsonl:5",
        Guide.LINT.reference,
    ]
    assert "unknown field `answer`; did you mean `expected_answer`?" in ended.stderr


def test_a_server_that_is_down_is_exit_code_3(tmp_path: Path) -> None:
    ended = evaltrack("run", TRAVEL, cwd=tmp_path, env={"MLFLOW_TRACKING_URI": "http://me:hush@127.0.0.1:9"})

    assert ended.returncode == 3
    assert "MLflow store http://127.0.0.1:9 does not answer" in ended.stderr
    assert "check MLFLOW_TRACKING_URI, and that the server runs" in ended.stderr
    assert ended.stderr.endswith(f"{Guide.STORE.reference}\n")
    assert "hush" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_nothing_measured_is_exit_code_3(store_uri: str, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD)
    (tmp_path / "answers.jsonl").write_text('{"id": "other", "sources": []}\n')

    ended = called(
        "run", "good.jsonl", "-t", "recorded:answers.jsonl", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri}
    )

    assert ended.returncode == 3
    assert "nothing could be measured: 1 of 1 question ended in errors" in ended.stderr


def test_a_judge_that_fails_everywhere_leaves_retrieval_measured(store_uri: str, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD)
    (tmp_path / "answers.jsonl").write_text('{"id": 1, "answer": "b", "sources": ["a"]}\n')
    (tmp_path / "verdicts.jsonl").write_text(
        '{"id": "other", "accuracy": 1, "completeness": 1, "relevance": 1, "overall_score": 1, "reasoning": "So."}\n'
    )
    judged = ("-t", "recorded:answers.jsonl", "--judge", "recorded:verdicts.jsonl", "--output", "table")
    ended = called("run", "good.jsonl", *judged, cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri})

    assert ended.returncode == 3
    assert "Recall@5" in ended.stdout
    assert "Warning: 1 of 1 question ended in errors of the judge and is in no mean of the judge" in ended.stderr
    assert "Error: nothing could be judged, so that no question passed or failed: 1 of 1 question" in ended.stderr


def test_low_coverage_is_exit_code_3_where_asked(store_uri: str, tmp_path: Path) -> None:
    (tmp_path / "two.jsonl").write_text(GOOD + '{"id": 2, "question": "b?", "expected_chunks": ["b"]}\n')
    (tmp_path / "answers.jsonl").write_text('{"id": 1, "sources": ["a"]}\n')
    arguments = ["run", "two.jsonl", "-t", "recorded:answers.jsonl"]
    env = {"MLFLOW_TRACKING_URI": store_uri}

    plain = called(*arguments, cwd=tmp_path, env=env)
    strict = called(*arguments, "--min-coverage", "0.9", cwd=tmp_path, env=env)

    assert (plain.returncode, strict.returncode) == (0, 3)
    assert "1 of 2 questions ended in errors and is in no mean" in plain.stderr
    assert "coverage 0.500 is below --min-coverage 0.9" in strict.stderr


@contextmanager
def started_on_many(store_uri: str, folder: Path) -> Iterator[WarmProcess]:
    """An evaluation of `many.jsonl` by `slow.py` that has asked some of its questions."""
    command = ("-m", "evaltrack", "run", "many.jsonl", "-t", "python:slow:ask", "--concurrency", "2")
    work = "time.sleep(0.05); open('asked', 'a').write('1 '); return ['a']"
    (folder / "slow.py").write_text(f"import time\ndef ask(question): {work}\n")
    lines = [json.dumps({"id": i, "question": f"q {i}", "expected_chunks": ["a"]}) for i in range(MANY)]
    (folder / "many.jsonl").write_text("\n".join(lines))
    asked, deadline = folder / "asked", time.monotonic() + 60
    with WarmProcess(command, folder, {**os.environ, "MLFLOW_TRACKING_URI": store_uri}) as process:
        while (not asked.exists() or asked.stat().st_size < 50) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_as_killed(store_uri: str, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM: exit code 130, the run KILLED, the finished questions in it."""
    with started_on_many(store_uri, tmp_path) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)

    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert (process.returncode, run.info.status) == (130, "KILLED")
    assert 0 < run.data.metrics["num_questions"] < MANY
    assert "Traceback" not in errors


@pytest.mark.parametrize("gap", [0.1, 0.7])
def test_two_signals_are_one_stop(store_uri: str, tmp_path: Path, gap: float) -> None:
    """An impatient second Ctrl-C, or `mlflow run` passing one on, leaves no run RUNNING and no lock behind."""
    with started_on_many(store_uri, tmp_path) as process:
        process.send_signal(signal.SIGINT)
        time.sleep(gap)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert (process.returncode, run.info.status) == (130, "KILLED")
    assert run.data.metrics["num_questions"] > 0
    assert "Traceback" not in errors


def test_what_a_target_prints_is_not_in_the_result(store_uri: str, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('loaded')\ndef ask(question):\n    print('asked')\n    return ['a']\n")
    (tmp_path / "good.jsonl").write_text(GOOD)

    ended = evaltrack(
        *("run", "good.jsonl", "-t", "python:loud:ask", "--output", "json"),
        cwd=tmp_path,
        env={"MLFLOW_TRACKING_URI": store_uri},
    )

    assert json.loads(ended.stdout)["status"] == "FINISHED"
    assert "asked" in ended.stderr


def test_a_server_prints_no_links_with_its_password(server: str, tmp_path: Path) -> None:
    uri = server.replace("http://", "http://me:hush@")
    few = few_questions(tmp_path, 3)
    ended = evaltrack("run", few, "--output", "json", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": uri})

    assert json.loads(ended.stdout)["status"] == "FINISHED"
    assert "hush" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[rum]\nk = 3\n", "there is no command `rum`; did you mean `run`?"),
        ("[run]\nkk = 3\n", "`run` has no option `kk`; did you mean `k`?"),
    ],
)
def test_a_setting_that_nobody_reads_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "evaltrack.toml").write_text(text)
    ended = called("run", TRAVEL, cwd=tmp_path)
    assert (ended.returncode, message in ended.stderr) == (2, True)


def test_settings_come_from_options_then_environment_then_file(store_uri: str, tmp_path: Path) -> None:
    (tmp_path / "evaltrack.toml").write_text("[run]\nk = 2\nrun-name = 'from file'\n")
    env = {"MLFLOW_TRACKING_URI": store_uri, "EVALTRACK_RUN_K": "3"}

    few = few_questions(tmp_path, 3)
    by_variable = called("run", few, "--output", "json", cwd=tmp_path, env=env)
    by_option = called("run", few, "--output", "json", "-k", "4", cwd=tmp_path, env=env)

    assert json.loads(by_variable.stdout)["signature"]["k"] == 3
    assert json.loads(by_option.stdout)["signature"]["k"] == 4
    runs = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert {run.info.run_name for run in runs} == {"from file"}


def test_lint_warns_of_thin_domains_and_strict_makes_it_count(tmp_path: Path) -> None:
    (tmp_path / "thin.jsonl").write_text(GOOD)

    lenient = evaltrack("golden", "lint", "thin.jsonl", cwd=tmp_path)
    strict = evaltrack("golden", "lint", "--strict", "thin.jsonl", cwd=tmp_path)

    assert (lenient.returncode, strict.returncode) == (0, 1)
    assert "domain thin has 1 question, of which 0 negatives" in lenient.stderr


def test_lint_looks_up_each_domain_in_its_own_folder(tmp_path: Path) -> None:
    for domain in ("food", "travel"):
        (tmp_path / "corpus" / domain).mkdir(parents=True)
        (tmp_path / "corpus" / domain / f"{domain}.md").write_text(f"# {domain}\n\nText.\n")
    chunks = {"food": "food", "travel": "food"}
    lines = [{"id": d, "question": "a?", "domain": d, "expected_chunks": [chunk]} for d, chunk in chunks.items()]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    ended = called("golden", "lint", "all.jsonl", cwd=tmp_path)

    assert ended.returncode == 2
    assert ended.stderr.count(" is not in ") == 1
    assert "all.jsonl:2: question travel: `food` is not in corpus/travel; add the page" in ended.stderr


def test_our_own_golden_sets_pass_our_own_lint(tmp_path: Path) -> None:
    files = sorted((REPO / "golden").glob("*.json*"))

    ended = called("golden", "lint", "--strict", *files, cwd=tmp_path)

    assert (ended.returncode, len(files)) == (0, 9), ended.stderr


def test_doctor_tells_whether_mlflow_can_be_written_to(store_uri: str, tmp_path: Path) -> None:
    well = evaltrack("doctor", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri})
    ill = evaltrack("doctor", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"})

    assert (well.returncode, ill.returncode) == (0, 3)
    assert "models: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set" in well.stdout
    assert "tokens: counted with o200k_base, offline" in well.stdout
    assert f"MLflow store: {store_uri}, experiment Default, can be written to" in well.stdout
    assert "does not answer" in ill.stdout


def test_version_and_help_answer(tmp_path: Path) -> None:
    assert evaltrack("--version", cwd=tmp_path).stdout == f"evaltrack {__version__}\n"
    assert "evaltrack run --demo" in evaltrack("--help", cwd=tmp_path).stdout
    assert "Examples:" in evaltrack("run", "--help", cwd=tmp_path).stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_in_the_table_is_the_commands_own(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    assert command.name == name
    assert COMMANDS[name][1].split()[0] == (command.help or "").split()[0]
    assert cli.get_command(click.Context(cli), name) is command


def test_the_command_line_seldom_looks_for_rings_of_objects(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_threshold()
    try:
        with pytest.raises(SystemExit):
            main(["--version"])
        assert gc.get_threshold()[0] == SELDOM[0]
    finally:
        gc.set_threshold(*before)
    assert capsys.readouterr().out


def test_a_shell_completes_commands_and_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_EVALTRACK_COMPLETE", "bash_complete")
    for words, expected in (("ru", "run"), ("run --jud", "--judge")):
        monkeypatch.setenv("COMP_WORDS", f"evaltrack {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        with pytest.raises(SystemExit):
            main()
        assert f"plain,{expected}" in capsys.readouterr().out.splitlines()
