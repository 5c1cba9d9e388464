"""Evaluations of RAG retrievers, agents and LLM reasoning as MLflow runs, and a gate that names what got worse."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

# Before MLflow is imported, which would write an installation id and call home; whoever wants that sets it to false.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

__version__ = "0.1.0"

if TYPE_CHECKING:
    from evaltrack.api.accept_question import accept_question as accept_question
    from evaltrack.api.add_question import add_question as add_question
    from evaltrack.api.anchor_golden import anchor_golden as anchor_golden
    from evaltrack.api.ask_target import ask_target as ask_target
    from evaltrack.api.baselines import baseline_history as baseline_history
    from evaltrack.api.baselines import clear_baseline as clear_baseline
    from evaltrack.api.baselines import get_baseline as get_baseline
    from evaltrack.api.baselines import list_baselines as list_baselines
    from evaltrack.api.baselines import set_baseline as set_baseline
    from evaltrack.api.compare_runs import assert_no_regression as assert_no_regression
    from evaltrack.api.compare_runs import compare_runs as compare_runs
    from evaltrack.api.compare_sets import compare_sets as compare_sets
    from evaltrack.api.draft_by_model import ModelDrafts as ModelDrafts
    from evaltrack.api.draft_by_model import draft_by_model as draft_by_model
    from evaltrack.api.import_golden import GoldenImport as GoldenImport
    from evaltrack.api.import_golden import import_golden as import_golden
    from evaltrack.api.import_golden import import_traces as import_traces
    from evaltrack.api.init_project import init_project as init_project
    from evaltrack.api.judge_agreement import judges_agreement as judges_agreement
    from evaltrack.api.lint_golden import lint_golden as lint_golden
    from evaltrack.api.replay_judge import replay_judge as replay_judge
    from evaltrack.api.report_html import load_run as load_run
    from evaltrack.api.report_html import report_html as report_html
    from evaltrack.api.report_sets import report_sets as report_sets
    from evaltrack.api.run_demo import DemoRuns as DemoRuns
    from evaltrack.api.run_demo import run_demo as run_demo
    from evaltrack.api.run_eval import resume_run as resume_run
    from evaltrack.api.run_eval import run_eval as run_eval
    from evaltrack.api.run_sets import run_sets as run_sets
    from evaltrack.api.run_sweep import check_sweep as check_sweep
    from evaltrack.api.run_sweep import run_sweep as run_sweep
    from evaltrack.api.write_golden import write_golden as write_golden
    from evaltrack.compare.comparison import Comparison as Comparison
    from evaltrack.compare.comparison import SetComparisons as SetComparisons
    from evaltrack.compare.leaderboard import Leaderboard as Leaderboard
    from evaltrack.errors import EvaltrackError as EvaltrackError
    from evaltrack.errors import GoldenError as GoldenError
    from evaltrack.errors import InconclusiveError as InconclusiveError
    from evaltrack.errors import TrackingError as TrackingError
    from evaltrack.errors import UsageError as UsageError
    from evaltrack.evaluation.result import RunResult as RunResult
    from evaltrack.evaluation.result import SetResults as SetResults
    from evaltrack.evaluation.result import SweepResult as SweepResult
    from evaltrack.evaluation.sweep_plan import SweepPlan as SweepPlan
    from evaltrack.golden.corpus import read_corpus as read_corpus
    from evaltrack.golden.reader import GoldenSet as GoldenSet
    from evaltrack.golden.reader import open_golden as open_golden
    from evaltrack.metrics.rubric_tables import ReasoningRubric as ReasoningRubric
    from evaltrack.metrics.rubric_tables import reasoning_rubric as reasoning_rubric
    from evaltrack.records import Question as Question
    from evaltrack.records import Response as Response
    from evaltrack.records import Source as Source
    from evaltrack.records import ToolCall as ToolCall
    from evaltrack.records import Usage as Usage
    from evaltrack.records import Verdict as Verdict
    from evaltrack.scorers import score as score

_HOMES = {
    "Comparison": "evaltrack.compare.comparison",
    "DemoRuns": "evaltrack.api.run_demo",
    "EvaltrackError": "evaltrack.errors",
    "GoldenError": "evaltrack.errors",
    "GoldenImport": "evaltrack.api.import_golden",
    "GoldenSet": "evaltrack.golden.reader",
    "Leaderboard": "evaltrack.compare.leaderboard",
    "InconclusiveError": "evaltrack.errors",
    "ModelDrafts": "evaltrack.api.draft_by_model",
    "Question": "evaltrack.records",
    "ReasoningRubric": "evaltrack.metrics.rubric_tables",
    "Response": "evaltrack.records",
    "RunResult": "evaltrack.evaluation.result",
    "Source": "evaltrack.records",
    "ToolCall": "evaltrack.records",
    "TrackingError": "evaltrack.errors",
    "Usage": "evaltrack.records",
    "SetComparisons": "evaltrack.compare.comparison",
    "SetResults": "evaltrack.evaluation.result",
    "SweepPlan": "evaltrack.evaluation.sweep_plan",
    "SweepResult": "evaltrack.evaluation.result",
    "UsageError": "evaltrack.errors",
    "Verdict": "evaltrack.records",
    "accept_question": "evaltrack.api.accept_question",
    "add_question": "evaltrack.api.add_question",
    "anchor_golden": "evaltrack.api.anchor_golden",
    "ask_target": "evaltrack.api.ask_target",
    "assert_no_regression": "evaltrack.api.compare_runs",
    "baseline_history": "evaltrack.api.baselines",
    "clear_baseline": "evaltrack.api.baselines",
    "compare_runs": "evaltrack.api.compare_runs",
    "draft_by_model": "evaltrack.api.draft_by_model",
    "compare_sets": "evaltrack.api.compare_sets",
    "get_baseline": "evaltrack.api.baselines",
    "import_golden": "evaltrack.api.import_golden",
    "import_traces": "evaltrack.api.import_golden",
    "init_project": "evaltrack.api.init_project",
    "judges_agreement": "evaltrack.api.judge_agreement",
    "lint_golden": "evaltrack.api.lint_golden",
    "list_baselines": "evaltrack.api.baselines",
    "load_run": "evaltrack.api.report_html",
    "open_golden": "evaltrack.golden.reader",
    "read_corpus": "evaltrack.golden.corpus",
    "reasoning_rubric": "evaltrack.metrics.rubric_tables",
    "replay_judge": "evaltrack.api.replay_judge",
    "report_html": "evaltrack.api.report_html",
    "report_sets": "evaltrack.api.report_sets",
    "resume_run": "evaltrack.api.run_eval",
    "run_demo": "evaltrack.api.run_demo",
    "run_eval": "evaltrack.api.run_eval",
    "run_sets": "evaltrack.api.run_sets",
    "run_sweep": "evaltrack.api.run_sweep",
    "check_sweep": "evaltrack.api.run_sweep",
    "score": "evaltrack.scorers",
    "set_baseline": "evaltrack.api.baselines",
    "write_golden": "evaltrack.api.write_golden",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 - the names are strings, the rule cannot see it


def __getattr__(name: str) -> Any:
    """Import a promised name when it is first used, so that `import evaltrack` costs next to nothing."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'evaltrack' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
