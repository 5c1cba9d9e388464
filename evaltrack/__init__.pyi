"""The names that `import evaltrack` offers; `__init__.py` reads them here."""

from evaltrack.api.ask_target import ask_target as ask_target
from evaltrack.api.baselines import get_baseline as get_baseline
from evaltrack.api.baselines import set_baseline as set_baseline
from evaltrack.api.compare_runs import assert_no_regression as assert_no_regression
from evaltrack.api.compare_runs import compare_runs as compare_runs
from evaltrack.api.report_html import load_run as load_run
from evaltrack.api.report_html import report_html as report_html
from evaltrack.api.run_eval import resume_run as resume_run
from evaltrack.api.run_eval import run_eval as run_eval
from evaltrack.api.run_several import run_sweep as run_sweep
from evaltrack.api.write_golden import write_golden as write_golden
from evaltrack.compare.comparison import Comparison as Comparison
from evaltrack.errors import EvaltrackError as EvaltrackError
from evaltrack.errors import UsageError as UsageError
from evaltrack.evaluation.result import RunResult as RunResult
from evaltrack.golden.reader import open_golden as open_golden
from evaltrack.judges.function import score as score
from evaltrack.records import Question as Question
from evaltrack.records import Response as Response
from evaltrack.records import Source as Source
from evaltrack.records import ToolCall as ToolCall
from evaltrack.records import Usage as Usage
from evaltrack.records import Verdict as Verdict

__version__: str
__all__: list[str]
