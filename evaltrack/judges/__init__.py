"""Opinions on answers. Only an LLM's or a human's verdict is ever called accuracy.

| name | who judges |
| --- | --- |
| `none` | no judge |
| `openai` | `openai:gpt-4o-mini` |
| `openai:MODEL` | a model on an OpenAI-compatible server (`OPENAI_API_KEY`, `OPENAI_BASE_URL`) |
| `recorded:FILE` | verdicts given earlier, by humans or judges: JSON Lines |
| `package.module:function` | your own function, sync or async |

From Python a function may be given itself.
"""

from __future__ import annotations

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

JudgeFunctions: TypeAlias = Mapping[str, Callable[..., Any]]
"""Functions that judge, by the names that they have as judges."""


def judge_names(names: Sequence[str]) -> list[str]:
    """The judges that are asked: none for `none`, and the default model for `openai`.

    Raises:
        UsageError: `none` is among others, or a judge is named twice.
    """
    if list(names) in ([], ["none"], [""]):
        return []
    if {"none", ""} & set(names):
        raise UsageError("`judge=`: `none` goes with no other; name each judge of a panel")
    full_names = [f"openai:{DEFAULT_JUDGE_MODEL}" if name == "openai" else name for name in names]
    if len(set(full_names)) < len(full_names):
        raise UsageError(f"`judge=`: {', '.join(names)}: the same judge is named twice")
    return full_names


class Models:
    """Models on the server, each opened once: who asks the same one shares its limits and its connections.

    A call of a model is waited for `call_timeout` seconds, of `concurrency` calls in flight at most.
    """

    def __init__(self, concurrency: int, call_timeout: float = CALL_SECONDS) -> None:
        self._concurrency, self._call_timeout = concurrency, call_timeout
        self._opened: dict[str, LLM] = {}

    def open(self, model: str, name: str) -> LLM:
        """The model of the judge called `name`.

        Raises:
            UsageError: there is no server.
        """
        from evaltrack.judges.client import LLM
        from evaltrack.judges.server import has_server  # six modules that a run without a model does not need

        if not has_server():
            cure = "set OPENAI_API_KEY or OPENAI_BASE_URL first"
            raise UsageError(f"judge {name}: {cure}", guide=Guide.MODEL)
        if model not in self._opened:
            self._opened[model] = LLM(model, concurrency=self._concurrency, call_seconds=self._call_timeout)
        return self._opened[model]


def open_faithfulness_judge(run_judges: Sequence[str], models: Models, cache: VerdictCache | None, name: str) -> Judge:
    """The judge of faithfulness called `name` (`openai:MODEL`); without a name, the first model among `run_judges`.

    Raises:
        UsageError: it is no `openai:MODEL`, or none is named.
    """
    name = name or next((each for each in run_judges if each.startswith("openai:")), "")
    kind, _, model = name.partition(":")
    if kind != "openai" or not model:
        cure = "give `judge=openai:MODEL`, or name it: faithfulness:openai:MODEL"
        raise UsageError(f"`scores=faithfulness`: asks a judge by LLM, and there is none; {cure}", guide=Guide.MODEL)
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
    """The judge called `name`, who looks at answers, or with the `rubric` reasoning at how they were reached.

    An LLM is one of the `models`, which others may ask too. A function that is named runs in a process of its own, or
    `in_process`; a `function` that is given as an object runs in this one. The `own` prompt is for an LLM that looks at
    answers.

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
