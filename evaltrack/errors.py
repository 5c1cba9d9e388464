"""Defines the errors that evaltrack raises on purpose, with their exit codes and links to sections of the docs.

::

    EvaltrackError
    ├── UsageError              2   an option, setting or file is wrong; nothing was run
    │   ├── BadLinesError       2   a file of the user has bad lines; the first of them are listed
    │   │   └── GoldenError     2   a golden set has bad lines; the first of them are listed
    │   │       └── ChangedMeanwhileError  2   a golden file was changed between reading and writing
    │   ├── NoQuestionError     2   a question was removed from the golden set
    │   ├── SameQuestionError   2   the golden set has a question with this text
    │   ├── JournalBusyError    2   another process writes the journal of this run
    │   └── ServerRefusesError  2   a model's server refuses key, access or model
    └── InconclusiveError       3   the result is unknown
        ├── TrackingError       3   the MLflow store is out of reach, or lost data
        │   └── RowsError       3   a file of rows is damaged, changed, or of a newer version
        ├── NotComparableError  3   two runs measured different things
        ├── AccessLostError     3   a model's server withdrew access
        ├── QuotaError          3   the quota of a model's server is used up
        └── ServerBusyError     3   a model's server asks for too long a pause

A failed target or judge is *not* an error here: it is a `records.Failure` in the question's row.
Every message says what is wrong, where, and how to fix it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

SITE = "https://evaltrack.readthedocs.io/"
"""The address of the docs, the same as `Documentation` in pyproject.toml and `site_url` in mkdocs.yml."""

EXIT_MISSED = 1
EXIT_USAGE = 2
EXIT_INCONCLUSIVE = 3
EXIT_INTERRUPTED = 130

PROBLEMS_SHOWN = 20
"""Number of problems of a file that a message lists; the rest is counted."""

SAVED = "; `2> FILE` saves all of them"
"""The hint to see all problems on a command line, which lists all of them if stderr is a file."""


class Guide(StrEnum):
    """The section of the docs on one kind of mistake, as an address below `SITE`."""

    GOLDEN_FILE = "how-to/golden-sets/#the-file"
    GOLDEN_LINES = "reference/formats/#golden-sets"
    RESPONSES = "reference/formats/#recorded-responses"
    VERDICTS = "reference/formats/#verdicts"
    REVIEW = "how-to/golden-sets/#review"
    LINT = "lint/#the-codes"
    IDS = "how-to/targets/#ids"
    QUOTATIONS = "how-to/golden-sets/#quotations"
    RECALL = "definitions/#retrieval"
    TARGETS = "how-to/targets/#connect-your-app"
    FUNCTION = "how-to/targets/#a-python-function"
    PROGRAM = "how-to/targets/#a-program"
    RECORDED = "how-to/targets/#recorded-responses"
    PAGES = "how-to/targets/#a-folder-of-pages"
    ALL_FAILED = "how-to/targets/#when-every-question-fails"
    MODEL = "how-to/judges/#a-model"
    JUDGES = "how-to/judges/#judge-answers"
    JUDGE_FAILED = "how-to/judges/#cost-speed-and-errors"
    JUDGE_FUNCTION = "how-to/judges/#a-function-of-your-own"
    SCORES = "how-to/judges/#scores-of-your-own"
    BASELINE = "how-to/ci/#the-baseline"
    COMPARABLE = "concepts/gate/#what-is-compared"
    STORE = "how-to/mlflow-server/#for-a-team"
    PAGE_SERVER = "how-to/mlflow-server/#on-this-machine"

    @property
    def reference(self) -> str:
        """The sentence after a message that names the section."""
        return f"See {SITE}{self.value}"


class EvaltrackError(Exception):
    """Base class of all errors that evaltrack raises on purpose.

    `option` adds a hint for the command line to `message`. `guide` is the section of the docs on this error, if any.
    """

    exit_code = EXIT_INCONCLUSIVE

    def __init__(self, message: object = "", option: str = "", *, guide: Guide | None = None) -> None:
        self.message = str(message)
        self.guide = guide
        super().__init__(f"{message}{option}")


class UsageError(EvaltrackError):
    """An option, a setting or a file is wrong; raised before anything runs."""

    exit_code = EXIT_USAGE


class BadLinesError(UsageError):
    """A file of the user cannot be used.

    `problems` holds one line for each problem: ``FILE:LINE: what is wrong; what to do``. `lines` holds the line numbers
    of problems with lines. The message holds the first problems; `rest` says how to see all.
    """

    def __init__(
        self, problems: Sequence[str], lines: Sequence[int] = (), *, rest: str = "", guide: Guide | None = None
    ) -> None:
        self.problems, self.lines = tuple(map(printable, problems)), tuple(lines)
        hint = SAVED if len(self.problems) > PROBLEMS_SHOWN and not rest else ""
        super().__init__(listed(self.problems, rest), hint, guide=guide)


class GoldenError(BadLinesError):
    """A golden set cannot be used."""


class InconclusiveError(EvaltrackError):
    """The work could not be finished, or its result cannot be trusted."""


class TrackingError(InconclusiveError):
    """The MLflow store is out of reach, refused a request, or does not hold what was written."""


def listed(problems: Sequence[str], rest: str = "") -> str:
    """Return the first problems, one a line, the number of others, and how to list all of them."""
    more = len(problems) - PROBLEMS_SHOWN
    how = f"; {rest}" if rest else ""
    tail = [f"... and {more:,} more problem{'' if more == 1 else 's'}{how}"] if more > 0 else []
    return "\n".join([*problems[:PROBLEMS_SHOWN], *tail])


def printable(text: str) -> str:
    """Return the text with unprintable characters replaced, which could break lines or control the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
