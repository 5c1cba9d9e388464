"""One's own function as the target: how it is found, called and listened to."""

from __future__ import annotations

import asyncio
import functools
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Target, Turn
from evaltrack.system.files import content_digest
from evaltrack.targets.python import FunctionTarget, import_function, open_python
from tests.actors import asked
from tests.conftest import REPO
from tests.files import data, put

QUESTION = Question(id="7", question="Why?", domain="d", metadata={"hint": "x"})
THREAD = "evaltrack-target"
_numbers = itertools.count()

Module = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """Writes a module with the given code that can be imported by the name it returns."""
    monkeypatch.syspath_prepend(tmp_path)
    names: list[str] = []

    def write(code: str) -> str:
        names.append(f"written_module_{next(_numbers)}")
        (tmp_path / f"{names[-1]}.py").write_text(code)
        return names[-1]

    yield write
    for name in names:
        sys.modules.pop(name, None)


def ask(target: Target, question: Question = QUESTION) -> Response:
    return asked(target, question)


def answer(function: Callable[..., Any]) -> str | None:
    return ask(FunctionTarget(function)).answer


# Finding the function


@pytest.mark.parametrize(("code", "name", "why"), data("targets.json")["imports_that_fail"])
def test_import_fails(module: Module, code: str, name: str, why: str) -> None:
    """A module that cannot be imported, or lacks the function, is an error with the reason and its cause."""
    place = f"{(written := module(code))}:{name}"
    with pytest.raises(UsageError) as caught:
        import_function(place)
    reason = why.replace("{module}", written)
    assert str(caught.value).startswith(f"python target `{place}`: {reason}")
    assert type(caught.value.__cause__).__name__ in (*reason.split(": "), "AttributeError")


def test_working_directory_is_searched_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("here", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "written_here.py").write_text(f"def ask(q): return {folder!r}")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "here")
    assert ask(open_python("written_here:ask", {})).answer == "here"
    for _ in range(2):
        open_python("written_here:ask", {"in_process": "true"})
    assert sys.path.count(str(tmp_path / "here")) == 1


# Calling it


async def async_two(question: str, k: int) -> str:
    return f"{question} {k}"


async def async_one(question: str) -> str:
    return question


class Sync:
    def __call__(self, question: str, k: int) -> str:
        return f"{question} {k} from an object"

    def method(self, question: str) -> str:
        return f"{question} from a method"


class Async:
    async def __call__(self, question: str, k: int) -> str:
        return f"{question} {k} from an object"

    async def method(self, question: str) -> str:
        return f"{question} from a method"


class App:
    class Inner:
        ask = staticmethod(str.upper)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda question, k: f"{question} {k}", "Why? 5"),
        (lambda question: question, "Why?"),
        (lambda question, k=3: f"{question} {k}", "Why? 5"),
        (lambda *arguments: repr(arguments), "('Why?', 5)"),
        (lambda question, *rest, more=1: f"{question} {rest} {more}", "Why? (5,) 1"),
        (lambda question, **rest: f"{question} {rest}", "Why? {}"),
        (async_two, "Why? 5"),
        (async_one, "Why?"),
        (lambda question: async_one(f"So: {question}"), "So: Why?"),
        *((each(), "Why? 5 from an object") for each in (Sync, Async)),
        *((each().method, "Why? from a method") for each in (Sync, Async)),
        (functools.partial(async_two, k=9), "Why? 9"),
        (functools.partial(lambda prefix, question: prefix + question, "So: "), "So: Why?"),
        (import_function(f"{__name__}:App.Inner.ask"), "WHY?"),
    ],
)
def test_call(function: Callable[..., Any], expected: str) -> None:
    """Any kind of callable is called with the text and k, or the text alone."""
    assert answer(function) == expected


@pytest.mark.parametrize(
    "function",
    [
        *(lambda: "nothing", lambda a, b, c: "three", lambda *, question: "by name", lambda question, *, k: "by name"),
        *(lambda messages, top_k: "", lambda messages, /: "", lambda messages, k, more, /: ""),
    ],
)
def test_other_arguments_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UsageError) as caught:
        FunctionTarget(function)
    takes = "must take (question, k), (question) or (messages), and other parameters need a default"
    name = f"{function.__module__}:{function.__qualname__}"
    assert str(caught.value) == f"python target `{name}`: {takes}; write def ask(question, k)"


@pytest.mark.parametrize("code", data("targets.json")["whole_question"])
def test_whole_question(module: Module, code: str) -> None:
    """A first parameter annotated `Question` gets the record, however the annotation is spelled."""
    assert ask(open_python(f"{module(code)}:ask", {"in_process": "true"})).answer == "x"


# Listening to it


def raising(error: BaseException) -> Callable[[str], str]:
    def function(_question: str) -> str:
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (StopIteration("over"), "StopIteration: over"),
    ],
)
def test_raised_what_must_not_spread(error: BaseException, message: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        answer(raising(error))
    assert str(caught.value) == message


def test_calls_run_side_by_side() -> None:
    meeting = threading.Barrier(8, timeout=30)

    def function(question: str) -> str:
        meeting.wait()
        thread = threading.current_thread()
        return f"{question} {thread.name} {thread.daemon}"

    async def all_at_once() -> list[Response]:
        target = FunctionTarget(function)
        return await asyncio.gather(*(target(QUESTION, 5) for _ in range(8)))

    assert {response.answer for response in asyncio.run(all_at_once())} == {f"Why? {THREAD} True"}


HANGING = """
import asyncio, threading
from evaltrack.records import Question
from evaltrack.targets.python import FunctionTarget
target = FunctionTarget(lambda question: threading.Event().wait())
async def main():
    async with asyncio.timeout(0.1):
        await target(Question(id=1, question='Why?', domain='d'), 5)
try:
    asyncio.run(main())
except TimeoutError:
    print('given up', flush=True)
"""


def test_call_that_hangs_does_not_keep_the_program() -> None:
    command, env = [sys.executable, "-c", HANGING], {"PYTHONPATH": str(REPO)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=env)
    assert (ended.stdout, ended.stderr) == ("given up\n", "")


# Conversations

TOLD = QUESTION.model_copy(
    update={"history": (Turn(role="user", content="Who?"), Turn(role="assistant", content="They."))}
)


def texts(messages: list[dict[str, str]]) -> str:
    """The contents of messages, and who spoke last."""
    return "|".join([*(each["content"] for each in messages), messages[-1]["role"]])


async def ask_async(messages: list[dict[str, str]], k: int) -> str:
    return f"{k} {texts(messages)}"


class Agent:
    async def __call__(self, *, messages: list[dict[str, str]]) -> str:
        return texts(messages)


def record(question: Question) -> str:
    return question.history[0].content


def both(messages: list[dict[str, str]], question: Question) -> str:
    return f"{question.id} {len(messages)}"


@pytest.mark.parametrize(
    ("function", "answered"),
    [
        (texts, "Who?|They.|Why?|user"),
        (ask_async, "5 Who?|They.|Why?|user"),
        (Agent(), "Who?|They.|Why?|user"),
        (record, "Who?"),
        (both, "7 3"),
        (lambda messages, k: f"{k} {texts(messages)}", "5 Who?|They.|Why?|user"),
        (lambda question, k, messages: f"{question} {k} {len(messages)}", "Why? 5 3"),
        (lambda k=1, *, messages=None, question="": f"{question} {k} {len(messages)}", "Why? 5 3"),
        (lambda messages, temperature=0.5: f"{temperature} {len(messages)}", "0.5 3"),
        (lambda messages, **more: f"{more} {len(messages)}", "{} 3"),
    ],
)
def test_a_function_with_messages_gets_the_conversation(function: Callable[..., Any], answered: str) -> None:
    target = FunctionTarget(function)
    assert target.takes_history
    assert ask(target, TOLD).answer == answered
    assert not FunctionTarget(lambda question, k: question).takes_history


# Its files


def test_the_files_of_the_project_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that it imports late are told when it has ended; one that was edited meanwhile stays what was run."""
    monkeypatch.chdir(tmp_path)
    files = {
        "app/rag.py": "import json, pydantic, evaltrack.records, app.core\n"
        "def ask(question):\n    import app.late, installed\n    return 'so'\n",
        **dict.fromkeys(("app/core.py", "app/late.py", "app/unused.py"), ""),
        ".venv/lib/site-packages/installed.py": "",
    }
    for name, text in files.items():
        put(tmp_path / name, text)
    monkeypatch.syspath_prepend(tmp_path / ".venv/lib/site-packages")
    target = open_python("app.rag:ask", {"workers": "2"})
    before = dict(target.files)
    (tmp_path / "app/core.py").write_text("edited = 1")

    async def asked() -> None:
        await target(QUESTION, 5)
        await target.aclose()

    asyncio.run(asked())
    assert list(before) == ["app/rag.py", "app/core.py"]
    assert target.files == before | {"app/late.py": content_digest(tmp_path / "app/late.py")}


def test_a_process_says_whether_its_function_takes_history(module: Module) -> None:
    code = "def told(messages):\n    return '|'.join(m['content'] for m in messages)\ndef alone(q):\n    return q"
    name = module(code)
    told, alone = open_python(f"{name}:told", {}), open_python(f"{name}:alone", {})
    assert (told.takes_history, alone.takes_history) == (True, False)
    assert [ask(target, TOLD).answer for target in (told, alone)] == ["Who?|They.|Why?", "Why?"]
