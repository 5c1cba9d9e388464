"""The pages of metrics and of exit codes."""

from __future__ import annotations

import re

from evaltrack import errors
from evaltrack.metrics.catalogue import REASONING_SCORES, SCORES
from scripts.references.markdown import prose, table

METRICS = """# Metrics

Each metric is a mean over the questions where it was measured; MLflow holds that count under `n/` (`n/recall_at_k`).
[Definitions](../definitions.md) gives formulas, sources and worked examples.
"""
NAMES = """
## Names in MLflow

A name with `/` is a section of MLflow's charts; the main metrics stand at the top. Of very many domains the largest are
logged, and the run says how many.

| name | holds |
| --- | --- |
| `recall_at_k` | the metric over the whole set |
| `n/recall_at_k` | over how many questions it is |
| `reachable/precision_at_k` | the most that it can be: precision cannot exceed relevant / k |
| `domain/travel/recall_at_k`, `difficulty/hard/recall_at_k` | the metric of a part |
| `judge/accuracy` | what judges said |
| `usage/num_tokens` | tokens, times and cost |
| `trials/flaky_rate` | what several trials showed |
| `reasoning/h_count` | the reasoning rubric |
| `delta/recall_at_k` | the difference to the baseline, from `evaltrack compare` |
"""
UNTOLD = (
    "could not tell: nothing measured, too little measured, MLflow out of reach or without what a run held, or a result"
    " that cannot be written"
)
CODES = f"""# Exit codes

| exit code | means |
| --- | --- |
| 0 | done |
| 1 | a regression, or a requirement missed |
| 2 | wrong usage: an option, a setting or a file; nothing was run |
| 3 | {UNTOLD} |
| 130 | interrupted; the run is marked KILLED and holds what was done |

`evaltrack run` exits 0 for a completed evaluation whatever its scores, unless `--require` asks for more. Gating is the
task of `evaltrack compare`. Of several golden sets 1 beats 3, and 3 beats 0. `mlflow run` turns every code
but 0 into 1.

## Errors of the package

Each error that evaltrack raises on purpose has the exit code with which the command line ends. Names that are indented
are kinds of the one above them.

"""


def metrics_page() -> str:
    """The tables of metrics: of answers and sources, and of the reasoning rubric."""
    head = ("metric", "of one question", "direction")
    reasoning = [(f"`{s.metric}`", s.meaning, _direction(s.higher_is_better)) for s in REASONING_SCORES]
    rest = [(f"`{s.metric}`", s.meaning, _direction(s.higher_is_better)) for s in SCORES if s not in REASONING_SCORES]
    rubric = ("rubric metric", "of one response", "direction")
    title = "\n## Of the reasoning rubric\n\n`evaltrack run --rubric reasoning` measures these.\n"
    return "\n".join([METRICS, table(head, rest), title, table(rubric, reasoning), NAMES.rstrip()]) + "\n"


def _direction(higher: bool) -> str:
    return "higher" if higher else "lower"


def exit_codes_page() -> str:
    """The exit codes, and the tree of errors."""
    lines = re.findall(r"^    (.*?)(\w+Error) +(\d) +(.*)$", errors.__doc__ or "", re.MULTILINE)
    indent = "&nbsp;" * 4
    rows = [(f"{indent * (len(branch) // 4)}`{name}`", code, prose(text)) for branch, name, code, text in lines]
    return f"{CODES}{table(('error', 'exit code', 'raised where'), rows)}\n"
