"""The plugin for pytest: ``pytest --evaltrack`` has an item for each golden question, of one evaluation of the set.

pytest imports this file at each start, so nothing is imported here but pytest; what evaluates is imported with
``--evaltrack``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evaltrack.api.pytest_run import SharedRun
    from evaltrack.evaluation.result import RunResult

WORKER_FOLDER = "evaltrack_folder"


class Hooks:
    """What a `conftest.py` may say of the evaluation."""

    @pytest.hookspec(firstresult=True)
    def pytest_evaltrack_settings(self, config: pytest.Config) -> Mapping[str, Any] | None:
        """The keyword arguments of `run_eval`, such as `target` (a function, too), `k`, `judge` or `golden_path`."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Offer `pytest_evaltrack_settings`."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; what is left out is as `evaltrack.toml` says."""
    group = parser.getgroup("evaltrack", "evaluation of a golden set (evaltrack)")
    group.addoption("--evaltrack", action="store_true", help="evaluate the golden set; each question is an item")
    for name, text in {
        "golden": "golden set (.jsonl or .json)",
        "target": "target, such as python:app:ask",
        "baseline": "run to compare with: id or name (default: the baseline of the golden set)",
    }.items():
        group.addoption(f"--evaltrack-{name}", metavar=name.upper(), default="", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """With ``--evaltrack`` collect the golden set besides what is named."""
    if config.getoption("evaltrack"):
        run = _shared(config)
        golden = Path(run.golden)
        named = [Path(config.invocation_params.dir, str(each).partition("::")[0]) for each in config.args]
        if not any(each == golden or each in golden.parents for each in named):
            config.args.append(str(golden))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the workers of pytest-xdist shared."""
    if folder := config.stash.get(_FOLDER, None):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each worker of pytest-xdist the folder where the one that evaluates leaves the result."""
    stash = node.config.stash
    if _FOLDER not in stash:
        stash[_FOLDER] = tempfile.mkdtemp(prefix="evaltrack-pytest-")
    node.workerinput[WORKER_FOLDER] = stash[_FOLDER]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The golden set, where it is evaluated."""
    if not parent.config.getoption("evaltrack") or file_path != Path(_shared(parent.config).golden):
        return None
    return GoldenFile.from_parent(parent, path=file_path)


def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Refuse a session without a question, which would be green."""
    wanted = session.config.getoption("evaltrack") and not session.testsfailed
    if wanted and not any(isinstance(item, QuestionItem) for item in items):
        golden = _shared(session.config).golden
        raise pytest.UsageError(f"evaltrack: {golden} was not collected; name it beside the tests")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say which run it was, how many passed, and what the comparison says."""
    if config.getoption("evaltrack"):
        run = _shared(config)
        run.folder = run.folder or config.stash.get(_FOLDER, "")
        for line in run.summary():
            terminalreporter.write_line(line)


class GoldenFile(pytest.File):
    """A golden set, whose questions are its items."""

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each question that the settings select.

        Raises:
            CollectError: the golden set or a setting is wrong.
        """
        from evaltrack.errors import EvaltrackError

        run = _shared(self.config)
        try:
            questions = list(run.questions())
        except (EvaltrackError, TypeError) as error:
            raise self.CollectError(f"evaltrack: {error}") from None
        for numbered in questions:
            yield QuestionItem.from_parent(self, name=run.name_of(numbered.question.id), question=numbered)


class QuestionItem(pytest.Item):
    """A question of the evaluation: it fails with the cause."""

    def __init__(self, *, question: Any, **others: Any) -> None:
        super().__init__(**others)
        self.question = question

    def runtest(self) -> None:
        """Pass, fail, skip what was not measured, or expect the failure that the baseline has, too."""
        outcome, words = _shared(self.config).outcome(self.question.question.id)
        if outcome == "skip":
            pytest.skip(words)
        if outcome == "xfail":
            pytest.xfail(words)
        if outcome == "fail":
            pytest.fail(words, pytrace=False)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """The line of the golden set, and the question's id."""
        return self.path, self.question.line - 1, f"{self.path.name}: {self.name}"


@pytest.fixture(scope="session")
def evaltrack_run(request: pytest.FixtureRequest) -> RunResult:
    """The result of the one evaluation of this session; a test that uses it is skipped without ``--evaltrack``."""
    if not request.config.getoption("evaltrack"):
        pytest.skip("needs --evaltrack")
    return _shared(request.config).result()


_SHARED = pytest.StashKey["SharedRun"]()
_FOLDER = pytest.StashKey[str]()


def _shared(config: pytest.Config) -> SharedRun:
    if _SHARED not in config.stash:
        from evaltrack.api.pytest_run import SharedRun, read_settings
        from evaltrack.errors import EvaltrackError

        try:
            settings = read_settings(config)
        except EvaltrackError as error:
            raise pytest.UsageError(f"evaltrack: {error}") from None
        folder = getattr(config, "workerinput", {}).get(WORKER_FOLDER, "")
        config.stash[_SHARED] = SharedRun(*settings, folder=folder)
    return config.stash[_SHARED]
