"""A program run for each question: real ones, mostly this interpreter with a few lines of code."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest

from evaltrack.records import Question, Response, Source, Turn
from evaltrack.targets.command import CommandTarget, CommandTargetError, open_command
from tests.actors import asked, gathered
from tests.files import data, put

QUESTION = Question(id="q-1", question="Where do cats sleep?", domain="d")
SHOW = "import json, sys; print(json.dumps({'answer': json.dumps(sys.argv[1:])}))"


def python(code: str, *arguments: str) -> str:
    """A command line that runs `code`, whose braces are doubled, with the arguments as they stand."""
    return " ".join([shlex.join([sys.executable, "-c", code.replace("{", "{{").replace("}", "}}")]), *arguments])


def ask(line: str, question: str = QUESTION.question, **settings: str) -> Response:
    return asked(open_command(line, settings), QUESTION.model_copy(update={"question": question}), 7)


def passed_on(*arguments: str, question: str = QUESTION.question) -> list[str]:
    """The arguments that a program receives."""
    found: list[str] = json.loads(ask(python(SHOW, *arguments), question).answer or "")
    return found


def error_of(code: str) -> str:
    """What is said about a program that fails."""
    with pytest.raises(CommandTargetError) as caught:
        ask(python(code, "{question}"))
    return str(caught.value)


def alive(pid: int) -> bool:
    """Whether a process is there and is more than an entry that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int, within: float = 5) -> bool:
    """Whether a process ends in time."""
    deadline = time.monotonic() + within
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def written(path: Path, within: float = 10) -> int:
    """The number that a program writes into a file, as soon as it is there."""
    deadline = time.monotonic() + within
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"nothing was written to {path.name}"
        time.sleep(0.01)
    return int(path.read_text())


# Arguments


def test_placeholders_and_quotes() -> None:
    """Placeholders are replaced inside the arguments, doubled braces become single, and nothing is left to a shell."""
    line = ["{question}", "--k={k}", "'{id}: {question}'", '\'{{"a": "{id}"}}\'', "{{k}}", "'a b'", 'c\\ d"e f"']
    asked = ["Where do cats sleep?", "--k=7", "q-1: Where do cats sleep?", '{"a": "q-1"}', "{k}", "a b", "c de f"]
    others = ["--plain", "$HOME", "*", ";", "|", "~", "#"]
    assert passed_on(*line, *others) == asked + others


@pytest.mark.parametrize("question", [*data("targets.json")["questions_as_arguments"], "x" * 100_000])
def test_question_stays_one_argument(question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = ["--", f"<{question}>", question, "7"]
    assert passed_on("--", "<{question}>", "{question}", "{k}", question=question) == whole
    assert not list(tmp_path.iterdir())


# Running


def test_the_output_is_a_response_of_a_program_with_our_folder_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its input is empty, and it has a process group of its own."""
    assert ask(python("print('[\"a\", 7]')", "{id}")).sources == (Source(chunk_id="a"), Source(chunk_id="7"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_SETTING", "here")
    code = "import os, sys, json; print(json.dumps({'answer': ' '.join([os.getcwd(), os.environ['MY_SETTING'], "
    code += "repr(sys.stdin.read()), str(os.getpgid(0) == os.getpid())])}))"
    assert ask(python(code, "{id}")).answer == f"{tmp_path} here '' True"
    script = put(tmp_path / "my bob", '#!/bin/sh\nprintf \'{"answer": "%s"}\' "$2"\n')
    script.chmod(0o755)
    assert ask("'./my bob' ask {question} --output json").answer == "Where do cats sleep?"


# What goes wrong


@pytest.mark.parametrize(("code", "message"), data("targets.json")["program_fails"])
def test_program_fails(code: str, message: str) -> None:
    """A program that does not end with 0 is an error that shows the end of what it said, on one bounded line."""
    assert error_of(code) == message
    with pytest.raises(CommandTargetError, match=r"^cannot be started: Argument list too long$"):
        ask("echo {question}", "x" * (1 << 20))


def family(tmp_path: Path, *, then: str, start: str = "") -> str:
    """A command line whose program starts another, writes both their numbers to files, and does something `then`."""
    code = f"trap '' TERM INT HUP; echo $$ > parent; {start} sleep 60 & echo $! > child; {then}"
    return f"env -C {tmp_path} sh -c {shlex.quote(code)} - {{id}}"


def test_deadline(tmp_path: Path) -> None:
    """At the deadline the program is killed with all that it started, also where it ignores other signals."""
    start = time.monotonic()
    (row,) = gathered([QUESTION], open_command(family(tmp_path, then="wait"), {}), timeout=1)
    assert row.error == "target_timeout: no response within 1 s"
    assert time.monotonic() - start < 4
    assert ends(written(tmp_path / "parent"))
    assert ends(written(tmp_path / "child"))


def test_children_are_killed_and_a_daemon_is_not_waited_for(tmp_path: Path) -> None:
    start, seven = time.monotonic(), Response(sources=(Source(chunk_id="7"),))
    assert ask(family(tmp_path, then="echo [7]")) == seven
    assert ends(written(tmp_path / "child"))
    (tmp_path / "child").unlink()
    assert ask(family(tmp_path, then="sleep 0.5; echo [7]", start="setsid")) == seven
    assert time.monotonic() - start < 10
    daemon = written(tmp_path / "child")
    assert alive(daemon)
    os.kill(daemon, signal.SIGKILL)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_file_stays_open() -> None:
    targets: list[CommandTarget] = [
        open_command(python("print('[]')", "{id}"), {}),
        open_command("false {id}", {}),
        CommandTarget(["echo", "x" * (1 << 20)]),
    ]

    async def counts() -> list[int]:
        found = []
        for _ in range(3):
            await asyncio.gather(*[target(QUESTION, 5) for target in targets], return_exceptions=True)
            found.append(open_files())
        return found

    first, *others = asyncio.run(counts())
    assert others == [first, first]


@pytest.mark.parametrize("name", ["messages", "history"])
def test_the_conversation_is_one_argument(name: str) -> None:
    target = open_command(python(SHOW, f"--{name}={{{name}}}", "{question}"), {})
    turns = [Turn(role="user", content="{k} \"'\n😀"), Turn(role="assistant", content="$(rm)")]
    asked = QUESTION.model_copy(update={"history": tuple(turns)})
    first, second = json.loads(asyncio.run(target(asked, 7)).answer or "")
    last = [{"role": "user", "content": asked.question}] if name == "messages" else []
    assert json.loads(first.removeprefix(f"--{name}=")) == [*(turn.model_dump() for turn in turns), *last]
    assert second == asked.question
    assert target.takes_history
    assert not open_command("cat {question}", {}).takes_history


def test_the_files_that_the_line_names_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text("one")
    target = open_command(f"cat app.py gone.py . {'long' * 200} {{question}}", {})
    before = dict(target.files)
    assert before.keys() == {"app.py"}
    Path("app.py").write_text("two")
    assert target.files.keys() == before.keys()
    assert target.files != before


@pytest.mark.parametrize("stream", [1, 2], ids=["stdout", "stderr"])
def test_a_program_that_writes_without_end_is_killed_at_the_limit(tmp_path: Path, stream: int) -> None:
    start = time.monotonic()
    code = f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}}\\n')\n"
    code += f"while True: os.write({stream}, b' ' * 65536)"
    assert error_of(code) == "wrote more than 16,777,216 bytes and was killed"
    assert time.monotonic() - start < 10
    assert not alive(written(tmp_path / "pid"))
