"""Reads the settings of a pytest session, runs its one evaluation, and turns each row into the outcome of a test."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltrack.api.baselines import get_baseline
from evaltrack.api.compare_runs import compare_runs
from evaltrack.api.report_html import load_run
from evaltrack.api.run_eval import chosen_settings, run_eval
from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison
from evaltrack.errors import EvaltrackError, UsageError
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.settings_sources import OF_TARGET
from evaltrack.golden.reader import NumberedQuestion, open_golden
from evaltrack.records.row import Row, failure_words
from evaltrack.report.escaping import one_line
from evaltrack.report.templates import say

if TYPE_CHECKING:
    import pytest

Outcome = tuple[str, str]
"""`pass`, `fail`, `xfail` or `skip`, and the reason."""


def session_settings(config: pytest.Config) -> tuple[str, Mapping[str, Any], str]:
    """Return the golden set, the other arguments of `run_eval`, and the baseline: from options, else `conftest.py`.

    Raises:
        UsageError: a setting is wrong, or no golden set is named and there are several.
        GoldenError: there is no such file, or the questions of `golden_path` are bad.
    """
    chosen = dict(config.hook.pytest_evaltrack_settings(config=config) or {})
    typed = {name: config.getoption(f"evaltrack_{name}") for name in ("golden", "target", "baseline")}
    if typed["target"]:
        chosen = {name: each for name, each in chosen.items() if name not in OF_TARGET}
    chosen |= {name: each for name, each in typed.items() if each}
    golden = chosen.pop("golden_path", None)
    path, *_ = chosen_settings(chosen.pop("golden", golden), chosen.get("target"), {})
    path = os.path.abspath(path)  # noqa: PTH100 - links keep their names
    if not Path(path).is_file():
        open_golden(path)  # raises before tests run without a question
    return path, chosen, chosen.pop("baseline", "")


@dataclass
class SharedRun:
    """One evaluation, done when its outcome is first needed. Workers of pytest-xdist get the outcome, `held`."""

    golden: str
    settings: Mapping[str, Any]
    baseline: str
    held: dict[str, Any] = field(default_factory=dict)
    _result: RunResult | None = None

    def questions(self) -> Iterator[NumberedQuestion]:
        """Return the questions that are asked, with their lines.

        Raises:
            UsageError: the golden set or a setting is wrong.
        """
        return open_golden(self.golden, self._config().selection).numbered()

    def _config(self) -> EvaluationConfig:
        own = {name: value for name, value in self.settings.items() if name not in _ARGUMENTS}
        _, _, config, _ = chosen_settings(self.golden, self.settings.get("target"), own)
        return config

    def outcome(self, key: str) -> Outcome:
        """Return the outcome of a question."""
        if error := self.done().get("error"):
            return "fail", f"the evaluation failed: {error}"
        outcome, words = self.done()["outcomes"].get(key, ("skip", "was not asked"))
        return outcome, words

    def result(self) -> RunResult:
        """Return the result of the evaluation.

        Raises:
            EvaltrackError: it failed.
        """
        done = self.done()
        if error := done.get("error"):
            raise UsageError(error)
        if self._result is None:
            self._result = load_run(done["run_id"], tracking_uri=self.settings.get("tracking_uri"))
        return self._result

    def done(self) -> dict[str, Any]:
        """Return the outcome of the evaluation: its run, the questions, and the lines for the end of the session."""
        self.held = self.held or self._evaluate()
        return self.held

    def _evaluate(self) -> dict[str, Any]:
        with warnings.catch_warnings():  # a session that turns warnings into errors means its tests' warnings
            warnings.simplefilter("ignore")
            try:
                self._result = result = run_eval(self.golden, progress=False, **self.settings)
                comparison, baseline, why_not = self._compared(result)
                outcomes = _outcomes(result, comparison, baseline)
            except (EvaltrackError, TypeError) as error:  # TypeError: there is no such setting
                return {"error": str(error), "summary": [f"evaltrack: {line}" for line in str(error).splitlines()]}
        verdict = say.verdict(comparison) if comparison else why_not
        lines = [f"evaltrack: {say.run_headline(result)}; run {result.run_id}", f"evaltrack: {verdict}"]
        return {"run_id": result.run_id, "outcomes": outcomes, "summary": lines}

    def _compared(self, result: RunResult) -> tuple[Comparison | None, RunResult | None, str]:
        """Return the comparison and the baseline, or the reason that there are none."""
        uri: str | None = self.settings.get("tracking_uri")
        experiment = self._config().experiment or None
        try:
            run = self.baseline or get_baseline(result.signature.golden, experiment=experiment, tracking_uri=uri).run_id
            comparison = compare_runs(result.run_id, run, experiment=experiment, tracking_uri=uri)
            baseline = load_run(comparison.baseline.run_id or run, tracking_uri=uri)
        except EvaltrackError as error:
            if self.baseline and isinstance(error, UsageError):
                raise
            return None, None, f"not compared: {error}"
        return comparison, baseline, ""


_ARGUMENTS = ("target", "resume", "retry_errors", "tracking_uri", "progress")


def _outcomes(result: RunResult, comparison: Comparison | None, baseline: RunResult | None) -> dict[str, Outcome]:
    broke = {change.id: change for change in (*comparison.flips, *comparison.by_fate["lost"])} if comparison else {}
    failed_before = {row.id: row.digest for row in baseline.read_rows() if row.outcome == "fail"} if baseline else {}
    k = result.signature.k
    return {row.id: _outcome(row, broke.get(row.id), failed_before.get(row.id), k) for row in result.read_rows()}


def _outcome(row: Row, change: Change | None, failed_digest: str | None, k: int) -> Outcome:
    if row.outcome == "pass":
        return "pass", ""
    if row.outcome == "not measured":
        return "skip", "was not measured"
    why = one_line(failure_words(row.error or "") or say.failed(row, k), 1000)
    if change is not None:
        words = "\n".join((say.changed(change), say.why(change), f"question: {one_line(row.question, 300)}", why))
        return ("fail" if change.counts else "xfail"), words
    if row.outcome == "fail" and failed_digest == row.digest:
        return "xfail", f"fails in the baseline, too: {why}"
    return "fail", f"question: {one_line(row.question, 300)}\n{why}"
