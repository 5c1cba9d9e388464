"""Calls the user's own function, by default in separate processes, as the target `python:package.module:function`.

The function is called with the question's text and k: ``def ask(question: str, k: int)``. A function with a single
argument is called without k. If the first parameter is annotated `Question`, it gets a copy of the whole record. A
parameter `messages` gets the conversation as chat messages, even if it is only the question: ``def ask(messages:
list[dict[str, str]])``. With `messages`, the parameters `question` and `k` are passed by name if they exist.

It may return a `Response`, a mapping of its fields, a list of sources (or of chunk ids), or a plain answer.

It runs in one or more separate processes. If one ends for any reason, another is started, and its questions in flight
are asked once more, each alone in a process. A question that ends its process again has failed. The function's prints
go to stderr.

| setting | meaning |
| --- | --- |
| `workers` | number of processes; default 1 |
| `memory` | memory limit of each, such as `2GB`; default: no limit |
| `in_process` | `true` calls the function in this process: for debuggers, or if it must share its state |
| `store` | the MLflow store for the function's own traces; default: the run's |
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from pydantic import ByteSize, Field

from evaltrack.errors import Guide, UsageError
from evaltrack.records import Question, Response, Target
from evaltrack.records.response import TraceHome, TracePlace
from evaltrack.system.files import content_digest
from evaltrack.targets import TargetSettings, checked_settings
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError, note_origin
from evaltrack.targets.responses import as_response
from evaltrack.targets.threads import aside, awaited, is_async, user_call
from evaltrack.targets.worker_pool import MAX_WORKERS, Call, Pool, Service
from evaltrack.tracking import question_spans as spans

NAMES_SHOWN = 10
OWN_FOLDER = Path(__file__).parents[1]
LEAST_MEMORY = 64 << 20


class ProcessSettings(TargetSettings):
    """The settings of a target in separate processes."""

    workers: int = Field(1, ge=1, le=MAX_WORKERS, description=f"a whole number from 1 to {MAX_WORKERS}")
    memory: ByteSize | None = Field(
        None, ge=LEAST_MEMORY, lt=1 << 62, description="an amount from 64MiB on, such as 512MB or 2GB"
    )
    store: str | None = None


class PythonSettings(ProcessSettings):
    """The settings of a function."""

    in_process: bool = Field(False, description="true or false")


def open_python(place: str, settings: dict[str, str]) -> Target:
    """Return the function named `package.module:function`; the working directory is searched first.

    Raises:
        UsageError: it cannot be imported, is no function of one or two arguments, or a setting is wrong.
    """
    given = checked_settings("python", PythonSettings, settings)
    if given.in_process:
        if given.workers > 1 or given.memory:
            raise UsageError("python target: workers and memory need separate processes; leave in_process out")
        return FunctionTarget(import_function(place))
    if given.memory and not hasattr(os, "killpg"):  # Windows
        raise UsageError("python target: memory cannot be bounded on this system; leave it out")
    opener, what = "evaltrack.targets.python:answering", f"python target `{place}`"
    return ProcessTarget(opener, place, what, workers=given.workers, memory=given.memory, store=given.store)


class ProcessTarget(Pool, Target):
    """A function in separate processes."""

    _home: TraceHome | None = None

    def trace_into(self, home: TraceHome) -> None:
        """Write the function's own traces to a run."""
        self._home = home

    @property
    def packages(self) -> Mapping[str, str]:
        """The packages of this interpreter, which its processes also use."""
        return packages_here()

    @property
    def takes_history(self) -> bool:
        """True if the function takes the turns before a question, as its process reports."""
        return bool(self.facts.get("takes_history"))

    async def __call__(self, question: Question, k: int, /) -> Response:
        """Return the function's response.

        Raises:
            InvalidResponseError: it returned no response.
            RaisedElsewhereError: the function raised.
            ProcessEndedError: its process ended.
        """
        returned = await self.call(Call.model_construct(question=question, k=k, home=self._home))
        return Response.model_validate_json(returned)


def answering(place: str) -> Service:
    """Return the service of a child process for the function `place`.

    Raises:
        UsageError: it cannot be imported, or takes other arguments than a question, k and messages.
    """
    return function_service(FunctionTarget(import_function(place), own_loop=False))


def function_service(target: FunctionTarget) -> Service:
    """Return the service of a child process for a function in it."""

    async def answer(call: Call) -> Response:
        if call.home:
            spans.write_to_experiment_of(call.home)
            target.trace_into(call.home)
        return await target(call.question, call.k)

    def facts() -> dict[str, Any]:
        return {"takes_history": target.takes_history, "files": target.files}

    return Service(answer, facts, target.aclose)


def import_function(place: str, what: str = "python target", guide: Guide = Guide.FUNCTION) -> Callable[..., Any]:
    """Return the callable named `package.module:name`; errors refer to `guide`.

    Raises:
        UsageError: it cannot be imported or called.
    """
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{what} `{place}`: write package.module:function, such as app.rag:ask", guide=guide)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    caller = os.environ.get("EVALTRACK_CALLER_FOLDER")  # the folder in which `mlflow run` was called
    if caller and caller not in sys.path:
        sys.path.append(caller)
    try:
        value: Any = resolve_name(place)
    except (Exception, SystemExit) as error:
        problem = _import_problem(error, module_name, name)
        raise UsageError(f"{what} `{place}`: {problem}", guide=guide) from error
    if not callable(value):
        why = f"is not a function but {type(value).__name__}; name a function, such as ask"
        raise UsageError(f"{what} `{place}`: {why}", guide=guide)
    function: Callable[..., Any] = value
    return function


def _import_problem(error: BaseException, module: str, name: str) -> str:
    """Return the reason that a module or its function cannot be imported, and the fix."""
    package, reason = module.partition(".")[0], f"cannot import `{module}`: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError) and error.name in (package, module):
        cure = f"run evaltrack in the folder that contains `{package}`, or install the package"
        return f"cannot import `{module}`: no module named `{error.name}`; {cure}"
    if isinstance(error, ImportError) and error.name:
        return f"{reason}; install what it imports into the environment of evaltrack ({sys.prefix})"
    if isinstance(error, AttributeError) and isinstance(found := sys.modules.get(module), ModuleType):
        names = [name for name, each in vars(found).items() if callable(each) and name[0] != "_"]
        has = f"it has {', '.join(names[:NAMES_SHOWN])}" if names else "it has no function of its own"
        return f"`{module}` has no function `{name}`; {has}"
    return f"{reason}; correct it; `python -c 'import {module}'` shows where"


class FunctionTarget(Target):
    """A function in this process: a sync one is called in threads, an async one in a separate event loop or in ours.

    Raises:
        UsageError: the function takes other arguments than a question, k and messages.
    """

    _home: TraceHome | None = None
    _led = False

    def __init__(self, function: Callable[..., Any], *, own_loop: bool = True) -> None:
        self._imports = ProjectImports(function)
        self._shape = call_shape(function)
        self._call = user_call(_spanned(function, spans.SpanHabit()), own_loop=own_loop)
        self._finish = user_call(awaited, own_loop=own_loop)

    @property
    def packages(self) -> Mapping[str, str]:
        """The packages of this interpreter."""
        return packages_here()

    @property
    def files(self) -> Mapping[str, str]:
        """The project's files that this process has imported."""
        return self._imports.files

    @property
    def takes_history(self) -> bool:
        """True if the function takes the turns before a question."""
        return self._shape.takes_history

    def trace_into(self, home: TraceHome) -> None:
        """Write the function's own traces to a run."""
        self._led = spans.write_to_store_of(home) or self._led
        self._home = home

    async def __call__(self, question: Question, k: int, /) -> Response:
        """Return the function's response.

        Raises:
            InvalidResponseError: it returned no response.
        """
        returned, trace = await self._call(self._home, question, *self._shape.arguments(question, k))
        if inspect.isawaitable(returned):
            returned = await self._finish(returned)
        try:
            response = as_response(returned)
        except (FailedElsewhereError, InvalidResponseError) as error:
            note_origin(error, trace)
            raise
        return response.model_copy(update={"trace": trace}) if trace or response.trace else response

    async def aclose(self) -> None:
        """Wait until the function's own traces are written."""
        if self._home:
            await aside(spans.write_spans)
        if self._led:
            spans.write_to_own_store()
            self._led = False


Spanned = tuple[Any, TracePlace | None]
"""The value that a function returned, and the trace of its call."""


def _spanned(function: Callable[..., Any], habit: spans.SpanHabit) -> Callable[..., Any]:
    """Return the function with a span around each call; async if it is. Its results are `Spanned`.

    The span begins and ends where the function runs: there it is no part of a span of the caller, and MLflow may wait
    for its server at the end.
    """

    def call(home: TraceHome | None, question: Question, values: list[Any], named: dict[str, Any]) -> Spanned:
        with _span(home, question, habit) as trace:
            return function(*values, **named), trace

    async def call_async(*arguments: Any) -> Spanned:
        home, question, values, named = arguments
        with _span(home, question, habit) as trace:
            return await function(*values, **named), trace

    return call_async if is_async(function) else call


@contextmanager
def _span(home: TraceHome | None, question: Question, habit: spans.SpanHabit) -> Iterator[TracePlace | None]:
    trace = None
    try:
        with spans.question_span(home, question, habit) as trace:
            yield trace
    except Exception as error:
        note_origin(error, trace)
        raise


MESSAGES = "messages"
ARGUMENTS = ("question", "k", MESSAGES)


@dataclass(frozen=True)
class CallShape:
    """The arguments of a function: names from `ARGUMENTS`, the question first if it is passed by position."""

    names: tuple[str, ...]
    whole_record: bool = False

    @property
    def takes_history(self) -> bool:
        """True if it gets the turns before the question; the whole record holds them."""
        return self.whole_record or MESSAGES in self.names

    def arguments(self, question: Question, k: int) -> tuple[list[Any], dict[str, Any]]:
        """Return copies of a call's values, by position or, with `messages`, by name; a function may change them."""
        first = question.model_copy(deep=True) if self.whole_record else question.question
        values = {"question": first, "k": k, MESSAGES: question.messages}
        if MESSAGES in self.names:
            return [], {name: values[name] for name in self.names}
        return [values[name] for name in self.names], {}


def call_shape(function: Callable[..., Any]) -> CallShape:
    """Return the arguments that a function takes.

    Raises:
        UsageError: it takes other arguments.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # some builtins have no signature
        return CallShape(("question", "k"))
    parameters = signature.parameters
    if MESSAGES in parameters:
        names = tuple(each for each in parameters if each in ARGUMENTS)
        names = names if binds(signature, **dict.fromkeys(names)) else ()
        question = parameters.get("question")
    else:
        names = next((each for each in (("question", "k"), ("question",)) if binds(signature, *each)), ())
        question = next(iter(parameters.values()), None)
    if not names:
        short = getattr(function, "__name__", "ask")
        cure = f"write def {short if short.isidentifier() else 'ask'}(question, k)"
        takes = "must take (question, k), (question) or (messages), and other parameters need a default"
        raise UsageError(f"python target `{_name(function)}`: {takes}; {cure}", guide=Guide.FUNCTION)
    return CallShape(names, question is not None and _is_question(question.annotation))


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"


def binds(signature: inspect.Signature, *values: object, **named: object) -> bool:
    """Return True if a function with this signature can be called so."""
    try:
        signature.bind(*values, **named)
    except TypeError:
        return False
    return True


def _is_question(annotation: object) -> bool:
    """Return True if an annotation is `Question`, also as a string with or without its module."""
    return annotation is Question or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "Question")


@cache
def packages_here() -> Mapping[str, str]:
    """Return name and version of each package that this interpreter can import."""
    packages: dict[str, str] = {}
    for folder in sys.path:
        for path in Path(folder).glob("*.dist-info"):
            package, _, release = path.stem.rpartition("-")
            packages.setdefault(package.replace("_", "-").lower(), release)
    return dict(sorted(packages.items()))


OF_PYTHON = ("stdlib", "platstdlib", "scripts")
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, which may be inside the project."""


class ProjectImports:
    """The project's files that this process has imported for a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._module = getattr(function, "__module__", None) or ""
        self._files: dict[str, str] = {}

    @property
    def files(self) -> Mapping[str, str]:
        """Path and digest of each file, the digest from when it was first seen."""
        for name, path in imported_files(self._module).items():
            if name not in self._files and (digest := content_digest(path)):
                self._files[name] = digest
        return self._files


def imported_files(module: str) -> dict[str, Path]:
    """Return the project's files that this process has imported, by path relative to the working directory if below it.

    The first is the file of the module, in any folder. The others are below the working directory or the module's
    import folder, and do not belong to Python, evaltrack or an installed package.
    """
    own = _file_of(module)
    roots = (Path.cwd(), *Path(own).parents[module.count(".") :][:1])
    below = tuple(f"{root}{os.sep}" for root in roots)
    others = tuple(f"{folder}{os.sep}" for folder in (OWN_FOLDER, *map(sysconfig.get_path, OF_PYTHON)))
    imported = (file for file in map(_file_of, list(sys.modules)) if file.startswith(below))
    own_files = [each for each in imported if not each.startswith(others) and INSTALLED.isdisjoint(Path(each).parts)]
    paths = map(Path, (own, *own_files))
    return {path.as_posix().removeprefix(f"{Path.cwd().as_posix()}/"): path for path in paths}


def _file_of(module: str) -> str:
    """Return the file of an imported module; empty if it has none. No attribute is looked up, which could import."""
    file = getattr(sys.modules.get(module), "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else ""
