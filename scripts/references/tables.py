"""The pages of metrics and of exit codes."""

from __future__ import annotations

import re

from evaltrack import errors
from evaltrack.metrics.catalogue import REASONING_SCORES, SCORES, Score
from evaltrack.metrics.rubric import DIMENSION_WEIGHTS
from scripts.references.markdown import prose, table

METRICS = """# Metrics

Each metric is a mean over the questions where it was measured. Higher is better unless the table says lower.
[Definitions](../definitions.md) has formulas and examples.
"""
RUBRIC = """
## Of the reasoning rubric

`evaltrack run --rubric reasoning` measures these. Each of the eight dimensions, from 0 to 10, is a metric too:
"""
NAMES = """
## Names in MLflow

MLflow's charts show the main metrics. `summary.json` of a run holds all of them, with the number of questions that each
was measured on, the largest possible values, tokens, times and costs.

| name | holds |
| --- | --- |
| `recall_at_k` | the metric over the whole set |
| `num_questions`, `num_errors` | the questions that were asked, and those that failed |
| `domain/travel/recall_at_k` | the metric of a domain; where there are very many, the largest |
| `broke`, `fixed` | from `evaltrack compare`: questions that passed before or pass now |
"""
CODES = """# Exit codes

| exit code | means |
| --- | --- |
| 0 | done |
| 1 | a regression, or a requirement was missed |
| 2 | an option, a setting or a file is wrong; nothing was run |
| 3 | the result is unknown: too little was measured, MLflow is out of reach, or the result could not be written |
| 130 | interrupted; the run is KILLED and holds what was done |

`evaltrack run` exits 0 for a completed evaluation whatever its scores, unless `--require` or `--min-coverage` is given;
`evaltrack compare` is the gate. With several golden sets the exit code is 1 if any regressed, else 3 if any is unknown,
else 0. `mlflow run` turns every code but 0 into 1.

## Errors of the package

Each error is a kind of the one above it with a smaller indent, and of `EvaltrackError`.

"""


def metrics_page() -> str:
    """The tables of metrics: of answers and sources, and of the reasoning rubric."""
    dimensions = ", ".join(f"`{name}`" for name in DIMENSION_WEIGHTS)
    rest = [_line(each) for each in SCORES if each not in REASONING_SCORES]
    reasoning = [_line(each) for each in REASONING_SCORES if each.metric not in DIMENSION_WEIGHTS]
    parts = [METRICS, table(("metric", "of one question"), rest), f"{RUBRIC}{dimensions}.\n"]
    return "\n".join([*parts, table(("rubric metric", "of one response"), reasoning), NAMES.rstrip()]) + "\n"


def _line(metric: Score) -> tuple[str, str]:
    return f"`{metric.metric}`", metric.meaning + ("" if metric.higher_is_better else "; lower is better")


def exit_codes_page() -> str:
    """The exit codes, and the tree of errors."""
    lines = re.findall(r"^    (.*?)(\w+Error) +(\d) +(.*)$", errors.__doc__ or "", re.MULTILINE)
    indent = "&nbsp;" * 4
    rows = [(f"{indent * (len(branch) // 4 - 1)}`{name}`", code, prose(text)) for branch, name, code, text in lines]
    return f"{CODES}{table(('error', 'exit code', 'raised where'), rows)}\n"
