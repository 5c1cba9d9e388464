"""Opens the judge that a name such as `openai:MODEL` selects: an LLM, recorded verdicts or the user's function.

| name | judge |
| --- | --- |
| `none` | no judge |
| `openai` | `openai:gpt-4o-mini` |
| `openai:MODEL` | a model on an OpenAI-compatible server (`OPENAI_API_KEY`, `OPENAI_BASE_URL`) |
| `recorded:FILE` | earlier verdicts of humans or judges: JSON Lines |
| `package.module:function` | your own function, sync or async |

In Python, you can also pass a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evaltrack.errors import Guide, UsageError
from evaltrack.judges.cache import VerdictCache
from evaltrack.records import Judge
from evaltrack.system.retries import CALL_SECONDS
from evaltrack.tracking.registry import RegisteredPrompt

if TYPE_CHECKING:
    from evaltrack.judges.client import LLM

DEFAULT_JUDGE_MODEL = "gpt-4o-mini"
TEXT_LIMIT = 12_000
"""Characters shown to an LLM of question, expected answer and answer each. Cut texts are marked."""

FAITHFULNESS = "faithfulness"

Functions: TypeAlias = Mapping[str, Callable[..., Any]]
"""Functions passed as objects, by the name of the judge or score."""


def judge_names(names: Sequence[str]) -> list[str]:
    """Return the judges to call: none for `none`, and the default model for `openai`.

    Raises:
        UsageError: `none` is combined with others, or a judge is named twice.
    """
    if list(names) in ([], ["none"], [""]):
        return []
    if {"none", ""} & set(names):
        raise UsageError("`judge=`: `none` cannot be combined with other judges")
    full_names = [f"openai:{DEFAULT_JUDGE_MODEL}" if name == "openai" else name for name in names]
    if len(set(full_names)) < len(full_names):
        raise UsageError(f"`judge=`: {', '.join(names)}: the same judge is named twice")
    return full_names


def split_name(spec: str) -> tuple[str, str]:
    """Return the name and the score in ``NAME=SCORE``. The name is empty without `=`."""
    match = re.fullmatch(r"([A-Za-z_]\w*)=(.+)", spec, re.DOTALL)
    return (match[1], match[2]) if match else ("", spec)


def asks_judge(spec: str) -> bool:
    """Return True if the score with this name asks a judge of evaltrack."""
    return split_name(spec)[1].partition(":")[0] == FAITHFULNESS


class Models:
    """The models in use, each opened once. Judges with the same model share its limits and connections.

    A call times out after `call_timeout` seconds. At most `concurrency` calls are in flight.
    """

    def __init__(self, concurrency: int, call_timeout: float = CALL_SECONDS) -> None:
        self._concurrency, self._call_timeout = concurrency, call_timeout
        self._opened: dict[str, LLM] = {}

    def open(self, model: str, name: str) -> LLM:
        """Return the model for the judge called `name`.

        Raises:
            UsageError: no server is configured.
        """
        from evaltrack.judges.client import LLM
        from evaltrack.judges.server import has_server  # a run without a model does not need these imports

        if not has_server():
            cure = "set OPENAI_API_KEY or OPENAI_BASE_URL first"
            raise UsageError(f"judge {name}: {cure}", guide=Guide.MODEL)
        if model not in self._opened:
            self._opened[model] = LLM(model, concurrency=self._concurrency, call_seconds=self._call_timeout)
        return self._opened[model]


def open_faithfulness_judge(run_judges: Sequence[str], models: Models, cache: VerdictCache | None, name: str) -> Judge:
    """Return the judge of faithfulness called `name` (`openai:MODEL`). Without a name, use the first model of the run.

    Raises:
        UsageError: it is no `openai:MODEL`, or none is named.
    """
    name = name or next((each for each in run_judges if each.startswith("openai:")), "")
    kind, _, model = name.partition(":")
    if kind != "openai" or not model:
        cure = "give `judge=openai:MODEL`, or name it: faithfulness:openai:MODEL"
        raise UsageError(f"`scores=faithfulness`: needs an LLM judge; {cure}", guide=Guide.MODEL)
    from evaltrack.judges.faithfulness import FaithfulnessJudge

    return FaithfulnessJudge(models.open(model, name), name, cache)


def open_judge(
    name: str,
    *,
    models: Models,
    rubric: str = "answer",
    cache: VerdictCache | None,
    in_process: bool = False,
    own: RegisteredPrompt | None = None,
    function: Callable[..., Any] | None = None,
) -> Judge:
    """Return the judge called `name`. With the `rubric` reasoning it judges reasoning, else answers.

    An LLM is one of the `models`, which others may share. A named function runs in a separate process, or in this one
    with `in_process`. A `function` passed as an object always runs in this process. The `own` prompt is for an LLM that
    judges answers.

    Raises:
        UsageError: there is no such judge, or it cannot be opened.
    """
    if function is not None:
        from evaltrack.judges.function import FunctionJudge

        return FunctionJudge(name, function)
    kind, _, rest = name.partition(":")
    if own is not None and (kind != "openai" or rubric != "answer"):
        raise UsageError(f"judge `{name}`: `judge_prompt=` is for openai: judges of answers; leave it out")
    if kind == "openai" and rest:
        llm = models.open(rest, name)
        from evaltrack.judges.answer import AnswerJudge
        from evaltrack.judges.reasoning import ReasoningJudge

        return ReasoningJudge(llm, name, cache) if rubric == "reasoning" else AnswerJudge(llm, name, cache, own=own)
    if kind == "recorded" and rest:
        from evaltrack.judges.recorded import RecordedJudge

        return RecordedJudge(Path(rest))
    if rest and ("." in kind or kind.isidentifier()):
        from evaltrack.judges.function import FunctionJudge, ProcessJudge

        return FunctionJudge(name) if in_process else ProcessJudge(name)
    choices = "none, openai, openai:MODEL, recorded:FILE or package.module:function"
    raise UsageError(f"unknown judge `{name}`; write {choices}", guide=Guide.JUDGES)
