"""The command line, as a user meets it: in a process of its own where only that shows it, else in this one."""

from __future__ import annotations

import gc
import importlib
import json
import os
import shutil
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


@pytest.fixture(scope="module")
def unused_store(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in which no run is ever made: whatever makes one fails, and so do all tests that follow."""
    return f"sqlite:///{shutil.copy(empty_database, tmp_path_factory.mktemp('unused'))}"


def test_json_goes_to_stdout_and_nothing_else_does(store_uri: str, tmp_path: Path) -> None:
    """`--output json` prints one object; progress and notes are on stderr."""
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
    """Piped output is plain text; it names the run and how to see it."""
    few = few_questions(tmp_path, 3)
    ended = evaltrack("run", few, "-k", "3", "--traces", "off", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri})

    assert ended.returncode == 0
    assert "\x1b" not in ended.stdout + ended.stderr
    assert "Recall@3" in ended.stdout
    assert "to see it: evaltrack ui\n" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "none.jsonl"], 2, "none.jsonl: no such file"),
        (["run", "empty.jsonl"], 2, "empty.jsonl: holds no questions"),
        (["run", "good.jsonl"], 2, "no target was named and there is no corpus at corpus/good"),
        (["run", "good.jsonl", "-t", "bm25:none"], 2, "corpus none: no such directory"),
        (["run", "good.jsonl", "-t", "bm25:pages"], 2, "corpus pages: holds no pages"),
        (["run", "good.jsonl", "-t", "bm52:pages"], 2, "unknown target `bm52:pages`; did you mean `bm25:`?"),
        (["run", "good.jsonl", "-t", "python:none:f"], 2, "cannot be imported: ModuleNotFoundError"),
        (["run", "good.jsonl", "-t", "recorded:none"], 2, "recorded target none: cannot be read"),
        (["run", "good.jsonl", "-k", "0"], 2, "k is 0; write a whole number from 1 to 1000"),
        (["run", "good.jsonl", "-k", "five"], 2, "'five' is not a valid integer"),
        (["run", "pages"], 2, "pages: is a directory"),
        (["run"], 2, "no golden set was named, and golden/ holds none; name one"),
        (["rnu"], 2, "there is no command `rnu`; did you mean `run`?"),
        (["run", "good.jsonl", "-t", "recorded:answers.jsonl", "--min-coverage", "2"], 2, "not in the range"),
    ],
)
def test_bad_usage_is_one_clear_message_and_no_run(
    unused_store: str, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    """Exit code 2, no traceback, and nothing half made in MLflow."""
    (tmp_path / "empty.jsonl").write_text("\n\n")
    (tmp_path / "good.jsonl").write_text(GOOD)
    (tmp_path / "pages").mkdir()
    (tmp_path / "answers.jsonl").write_text('{"id": 1, "sources": ["a"]}\n')

    ended = called(*arguments, cwd=tmp_path, env={"MLFLOW_TRACKING_URI": unused_store})

    assert (ended.returncode, ended.stdout) == (code, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert mlflow.MlflowClient(unused_store).search_runs(["0"]) == []


def test_bad_usage_of_a_process(store_uri: str, tmp_path: Path) -> None:
    """The same as in this process: the code is the process's, the message is on its stderr."""
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
    """The message says which store, and the password in its address is not shown."""
    ended = evaltrack("run", TRAVEL, cwd=tmp_path, env={"MLFLOW_TRACKING_URI": "http://me:hush@127.0.0.1:9"})

    assert ended.returncode == 3
    assert "MLflow store http://127.0.0.1:9 does not answer" in ended.stderr
    assert "hush" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_nothing_measured_is_exit_code_3(store_uri: str, tmp_path: Path) -> None:
    """A target that fails on every question ends the run FAILED."""
    (tmp_path / "good.jsonl").write_text(GOOD)
    (tmp_path / "answers.jsonl").write_text('{"id": "other", "sources": []}\n')

    ended = called(
        "run", "good.jsonl", "-t", "recorded:answers.jsonl", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri}
    )

    assert ended.returncode == 3
    assert "nothing could be measured: 1 of 1 question ended in errors" in ended.stderr


def test_a_judge_that_fails_everywhere_leaves_retrieval_measured(store_uri: str, tmp_path: Path) -> None:
    """It is said that nothing was judged, not that nothing was measured."""
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
    """Some error rows still finish a run, loudly; `--min-coverage` makes them count."""
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
    asked, deadline = folder / "asked", time.monotonic() + 60
    with WarmProcess(command, folder, {**os.environ, "MLFLOW_TRACKING_URI": store_uri}) as process:
        while (not asked.exists() or asked.stat().st_size < 50) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_as_killed(store_uri: str, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM: exit code 130, the run KILLED, the finished questions in it."""
    slow = (
        "import time\ndef ask(question):\n    time.sleep(0.05)\n    open('asked', 'a').write('1\\n')\n    return ['a']"
    )
    (tmp_path / "slow.py").write_text(slow)
    lines = [json.dumps({"id": i, "question": f"q {i}", "expected_chunks": ["a"]}) for i in range(MANY)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
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
    work = "time.sleep(0.05); open('asked', 'a').write('1 '); return ['a']"
    (tmp_path / "slow.py").write_text(f"import time\ndef ask(question): {work}\n")
    lines = [json.dumps({"id": i, "question": f"q {i}", "expected_chunks": ["a"]}) for i in range(MANY)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
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
    """Stdout holds the JSON alone, whatever a target or MLflow prints."""
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
    """Over HTTP, too, stdout is the JSON alone, and the password of the address stands nowhere."""
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
    """A typo in a settings file must not be passed over."""
    (tmp_path / "evaltrack.toml").write_text(text)
    ended = called("run", TRAVEL, cwd=tmp_path)
    assert (ended.returncode, message in ended.stderr) == (2, True)


def test_settings_come_from_options_then_environment_then_file(store_uri: str, tmp_path: Path) -> None:
    """An option beats a variable, a variable beats `evaltrack.toml`, and the file beats the default."""
    (tmp_path / "evaltrack.toml").write_text("[run]\nk = 2\nrun-name = 'from file'\n")
    env = {"MLFLOW_TRACKING_URI": store_uri, "EVALTRACK_RUN_K": "3"}

    few = few_questions(tmp_path, 3)
    by_variable = called("run", few, "--output", "json", cwd=tmp_path, env=env)
    by_option = called("run", few, "--output", "json", "-k", "4", cwd=tmp_path, env=env)

    assert json.loads(by_variable.stdout)["signature"]["k"] == 3
    assert json.loads(by_option.stdout)["signature"]["k"] == 4
    runs = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert {run.info.run_name for run in runs} == {"from file"}


def test_a_settings_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    """The message says which file, and where."""
    (tmp_path / "evaltrack.toml").write_text("[run\n")

    ended = evaltrack("golden", "lint", TRAVEL, cwd=tmp_path)

    assert ended.returncode == 2
    assert "evaltrack.toml: is not TOML" in ended.stderr


def test_lint_finds_expectations_that_are_not_in_the_corpus(tmp_path: Path) -> None:
    """A chunk id that no page has is named with the nearest one."""
    (tmp_path / "corpus" / "mine").mkdir(parents=True)
    (tmp_path / "corpus" / "mine" / "fares.md").write_text("# Fares\n\nText.\n\n## Refunds\n\nText.\n")
    (tmp_path / "mine.jsonl").write_text('{"id": 1, "question": "a?", "expected_chunks": ["fares#refund"]}\n')

    ended = called("golden", "lint", "mine.jsonl", cwd=tmp_path)

    assert ended.returncode == 2
    assert "question 1: `fares#refund` is not in corpus/mine; did you mean `fares#refunds`?" in ended.stderr


def test_lint_looks_up_chunks_of_words_and_of_one_format(tmp_path: Path) -> None:
    """In the index of a `bm25:` target with the settings `chunk` and `files`."""
    (tmp_path / "docs").mkdir()
    for name in ("fares.md", "fares.html"):
        (tmp_path / "docs" / name).write_text("# Fares\n\nOne two three four five.\n")
    (tmp_path / "mine.jsonl").write_text(
        "".join(f'{{"id": {n}, "question": "{n}?", "expected_chunks": ["fares@{n}"]}}\n' for n in (1, 2))
    )
    both, markdown, wrong = (
        called("golden", "lint", "mine.jsonl", "-t", f"bm25:docs?{settings}", cwd=tmp_path)
        for settings in ("chunk=words:3", "chunk=words:3&files=md", "chunk=words")
    )

    assert (both.returncode, markdown.returncode, wrong.returncode) == (2, 2, 2)
    assert "the page `fares` is there as fares.html and fares.md" in both.stderr
    assert "question 1" not in markdown.stderr
    assert "question 2: `fares@2` is not in bm25:docs?chunk=words:3&files=md; did you mean `fares@" in markdown.stderr
    assert "chunk is `words`; write heading, words:SIZE or words:SIZE:OVERLAP" in wrong.stderr


def test_lint_warns_of_thin_domains_and_strict_makes_it_count(tmp_path: Path) -> None:
    """At least ten questions, two or three of them negatives, for each domain."""
    (tmp_path / "thin.jsonl").write_text(GOOD)

    lenient = evaltrack("golden", "lint", "thin.jsonl", cwd=tmp_path)
    strict = evaltrack("golden", "lint", "--strict", "thin.jsonl", cwd=tmp_path)

    assert (lenient.returncode, strict.returncode) == (0, 1)
    assert "domain thin has 1 question, of which 0 negatives" in lenient.stderr


def test_lint_warns_of_an_answer_that_is_expected_of_a_negative(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A negative passes by declining, so that nobody looks at the answer; each question is named."""
    path = tmp_path / "mine.jsonl"
    answered = {"question": "q?", "expected_chunks": [], "expected_answer": "I do not know."}
    path.write_text("".join(json.dumps({"id": f"n{number}", **answered}) + "\n" for number in range(12)))
    with pytest.raises(SystemExit) as ended:
        main(["golden", "lint", "--strict", str(path)])
    assert ended.value.code == 1
    words = "mine.jsonl:12: warning: question n11: is a negative with an `expected_answer`, which is not used; remove"
    assert words in capsys.readouterr().err


def test_lint_knows_what_users_of_software_ask_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A typo in a known category is a warning; other labels are the user's own."""
    path = tmp_path / "docs.jsonl"
    labels = ["instalation", "instalation", "API", "usage", "storage", "Troubleshooting"]
    lines = [{"id": n, "question": "q?", "expected_chunks": ["a"], "category": label} for n, label in enumerate(labels)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(SystemExit):
        main(["golden", "lint", str(path)])
    shown = capsys.readouterr()
    assert "category `instalation` of 2 questions; did you mean `installation`?" in shown.err
    assert "did you mean" not in shown.err.replace("did you mean `installation`", "", 1)


def test_lint_looks_up_each_domain_in_its_own_folder(tmp_path: Path) -> None:
    """A set of several domains without a corpus of its name is held against the folders of its domains."""
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
    """All nine, with their corpora where they have one, strictly."""
    files = sorted((REPO / "golden").glob("*.json*"))

    ended = called("golden", "lint", "--strict", *files, cwd=tmp_path)

    assert (ended.returncode, len(files)) == (0, 9), ended.stderr


def test_doctor_tells_whether_mlflow_can_be_written_to(store_uri: str, tmp_path: Path) -> None:
    """Exit code 0 with a store that takes a tag, 3 with one that is down."""
    well = evaltrack("doctor", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri})
    ill = evaltrack("doctor", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"})

    assert (well.returncode, ill.returncode) == (0, 3)
    assert "models: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set" in well.stdout
    assert "tokens: counted with o200k_base, offline" in well.stdout
    assert f"MLflow store: {store_uri}, experiment Default, can be written to" in well.stdout
    assert "does not answer" in ill.stdout


def test_version_and_help_answer(tmp_path: Path) -> None:
    """Both exit 0; each command's help has examples or says what it does."""
    assert evaltrack("--version", cwd=tmp_path).stdout == f"evaltrack {__version__}\n"
    assert "evaltrack run --demo" in evaltrack("--help", cwd=tmp_path).stdout
    assert "Examples:" in evaltrack("run", "--help", cwd=tmp_path).stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_in_the_table_is_the_commands_own(name: str) -> None:
    """`--help` lists commands without importing them, so their texts are written twice, and must agree."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    assert command.name == name
    assert COMMANDS[name][1].split()[0] == (command.help or "").split()[0]
    assert cli.get_command(click.Context(cli), name) is command


def test_questions_that_are_asked_twice_are_named(tmp_path: Path) -> None:
    """Whatever their case and spaces; two that differ in a word are two."""
    lines = [("a", "How long may I stay?"), ("b", "how long  may I stay?"), ("c", "How long must I stay?")]
    rows = [{"id": key, "question": text, "expected_chunks": ["x"]} for key, text in lines]
    (tmp_path / "twice.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = called("golden", "lint", "twice.jsonl", cwd=tmp_path)
    assert "twice.jsonl:2: warning: question b: asks what question a (line 1) asks" in ended.stderr
    assert "question c" not in ended.stderr


def test_the_command_line_seldom_looks_for_rings_of_objects(capsys: pytest.CaptureFixture[str]) -> None:
    """It does so in its own process alone: the library leaves that of its caller as it is."""
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
    """By click's own completion."""
    monkeypatch.setenv("_EVALTRACK_COMPLETE", "bash_complete")
    for words, expected in (("ru", "run"), ("run --judge-p", "--judge-prompt")):
        monkeypatch.setenv("COMP_WORDS", f"evaltrack {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        with pytest.raises(SystemExit):
            main()
        assert f"plain,{expected}" in capsys.readouterr().out.splitlines()
