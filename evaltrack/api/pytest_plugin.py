"""Defines the pytest plugin: ``pytest --evaltrack`` evaluates a golden set once and reports each question as a test.

pytest imports this file at each start, so it imports only pytest. The code for evaluations is imported only with
``--evaltrack``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evaltrack.api.pytest_run import SharedRun
    from evaltrack.evaluation.result import RunResult

OUTCOME = "evaltrack"
"""The key of the outcome in the input of a worker of pytest-xdist."""


class Hooks:
    """The hooks that a `conftest.py` may implement."""

    @pytest.hookspec(firstresult=True)
    def pytest_evaltrack_settings(self, config: pytest.Config) -> Mapping[str, Any] | None:
        """Return keyword arguments of `run_eval`, such as `target` (also a function), `k`, `judge` or `golden_path`."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hook `pytest_evaltrack_settings`."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command line options. Values that are not given come from `evaltrack.toml`."""
    group = parser.getgroup("evaltrack", "evaluation of a golden set (evaltrack)")
    group.addoption("--evaltrack", action="store_true", help="evaluate the golden set; each question is an item")
    for name, text in {
        "golden": "golden set (.jsonl or .json)",
        "target": "target, such as python:app:ask",
        "baseline": "run to compare with: id or name (default: the baseline of the golden set)",
    }.items():
        group.addoption(f"--evaltrack-{name}", metavar=name.upper(), default="", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """With ``--evaltrack``, add the golden set to the paths that are collected."""
    if config.getoption("evaltrack"):
        run = _shared(config)
        golden = Path(run.golden)
        named = [Path(config.invocation_params.dir, str(each).partition("::")[0]) for each in config.args]
        if not any(each == golden or each in golden.parents for each in named):
            config.args.append(str(golden))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Evaluate before the workers of pytest-xdist start, and give each of them the outcome."""
    if node.config.getoption("evaltrack"):
        node.workerinput[OUTCOME] = json.dumps(_shared(node.config).done())


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for the golden set; None for other files and without ``--evaltrack``."""
    if not parent.config.getoption("evaltrack") or file_path != Path(_shared(parent.config).golden):
        return None
    return GoldenFile.from_parent(parent, path=file_path)


def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Refuse a session without a question, which would pass."""
    wanted = session.config.getoption("evaltrack") and not session.testsfailed
    if wanted and not any(isinstance(item, QuestionItem) for item in items):
        golden = _shared(session.config).golden
        raise pytest.UsageError(f"evaltrack: {golden} was not collected; pass its path to pytest with the tests")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Write the run, the number of passed questions, and the verdict of the comparison."""
    if config.getoption("evaltrack"):
        for line in _shared(config).held.get("summary", ()):
            terminalreporter.write_line(line)


class GoldenFile(pytest.File):
    """A golden set as a test file. Its questions are the items."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each question that the settings select.

        Raises:
            CollectError: the golden set or a setting is wrong.
        """
        from evaltrack.errors import EvaltrackError
        from evaltrack.report.escaping import one_line

        run = _shared(self.config)
        try:
            questions = list(run.questions())
        except (EvaltrackError, TypeError) as error:
            raise self.CollectError(f"evaltrack: {error}") from None
        for numbered in questions:
            yield QuestionItem.from_parent(self, name=one_line(numbered.question.id, 100), question=numbered)


class QuestionItem(pytest.Item):
    """A question as a test item. A failure shows the cause."""

    def __init__(self, *, question: Any, **others: Any) -> None:
        super().__init__(**others)
        self.question = question

    def runtest(self) -> None:
        """Pass or fail. An unmeasured question is skipped, and one that also fails in the baseline is an xfail."""
        outcome, words = _shared(self.config).outcome(self.question.question.id)
        if outcome == "skip":
            pytest.skip(words)
        if outcome == "xfail":
            pytest.xfail(words)
        if outcome == "fail":
            pytest.fail(words, pytrace=False)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Return the file, the line from 0, and the set with the question's id."""
        return self.path, self.question.line - 1, f"{self.path.name}: {self.name}"


@pytest.fixture(scope="session")
def evaltrack_run(request: pytest.FixtureRequest) -> RunResult:
    """Return the result of this session's evaluation. Without ``--evaltrack`` a test that uses it is skipped."""
    if not request.config.getoption("evaltrack"):
        pytest.skip("needs --evaltrack")
    return _shared(request.config).result()


_SHARED = pytest.StashKey["SharedRun"]()


def _shared(config: pytest.Config) -> SharedRun:
    if _SHARED not in config.stash:
        from evaltrack.api.pytest_run import SharedRun, session_settings
        from evaltrack.errors import EvaltrackError

        try:
            settings = session_settings(config)
        except EvaltrackError as error:
            raise pytest.UsageError(f"evaltrack: {error}") from None
        outcome = json.loads(getattr(config, "workerinput", {}).get(OUTCOME, "{}"))
        config.stash[_SHARED] = SharedRun(*settings, outcome)
    return config.stash[_SHARED]
