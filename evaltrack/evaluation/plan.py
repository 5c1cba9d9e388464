"""Checks a planned evaluation, opens its golden set, target and judges; makes the run's signature, params and tags.

All errors of usage are found here; `Plan.ask` then asks the questions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evaltrack import __version__
from evaltrack.errors import Guide, UsageError
from evaltrack.evaluation.ask import Evaluator, counter
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.loop import close_all, evaluate, run_to_end, take_all
from evaltrack.evaluation.settings import Command, EvaluationConfig
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.golden.selection import Selection
from evaltrack.judges import Functions, Models, asks_judge, judge_names, open_faithfulness_judge, open_judge
from evaltrack.judges.cache import VerdictCache
from evaltrack.metrics.catalogue import metric_table
from evaltrack.metrics.criteria import NAMED, Criterion, parse_criteria
from evaltrack.privacy.addresses import shown_text
from evaltrack.privacy.redaction import Redactor, check_names
from evaltrack.records import (
    Closable,
    Judge,
    OwnScore,
    Question,
    Row,
    Scorer,
    Signature,
    Target,
)
from evaltrack.records.base import count, cut, verb
from evaltrack.records.run import (
    CODE,
    CORPUS,
    RECORDED_RESPONSES,
    RECORDED_VERDICTS,
    THEN,
    System,
    both_states,
    packages_text,
)
from evaltrack.system.files import cache_folder, check_result_file
from evaltrack.targets import default_target, open_target
from evaltrack.tracking.registry import registered_prompt
from evaltrack.tracking.store import connect
from evaltrack.tracking.tags import GOLDEN_TAG, PACKAGES_TAG, SIGNATURE_TAG, SYSTEM_TAG, caller_folder, work_tree
from evaltrack.tracking.writer import TRACED_QUESTIONS, TraceChoice

if TYPE_CHECKING:
    from evaltrack.evaluation.ray_workers import RayWorkers


def check_evaluation(
    golden_path: str | os.PathLike[str], settings: EvaluationConfig, target: str | Callable[..., Any] | None
) -> None:
    """Refuse secrets in names that are logged, and an experiment if `mlflow run` has chosen one.

    Raises:
        UsageError: a name holds a secret, or `mlflow run` has opened the run.
    """
    check_names(_logged_texts(golden_path, settings, target))
    if (experiment := settings.experiment) and os.environ.get("MLFLOW_RUN_ID"):
        where = "the run was opened by `mlflow run`, in its experiment"
        raise UsageError(f"experiment `{experiment}`: {where}; use: mlflow run . --experiment-name {experiment}")


def _logged_texts(
    golden_path: str | os.PathLike[str], settings: EvaluationConfig, target: str | Callable[..., Any] | None
) -> Iterator[tuple[str, str]]:
    """Yield the description and the text of everything that is logged with a run, or shown."""
    yield "the path of the golden set", os.fspath(golden_path)
    yield "the target", target if isinstance(target, str) else ""
    for name, value in settings:
        if isinstance(value, Mapping):
            yield from ((f"`{name}=`", f"{key}={text}") for key, text in value.items())
        elif name != "redact":
            yield from ((f"`{name}=`", text) for text in (value if isinstance(value, tuple) else (str(value),)))


def named_target(
    target: str | Callable[..., Any] | None,
    golden: GoldenSet,
    settings: EvaluationConfig,
    store_uri: str | None = None,
) -> tuple[Target, str]:
    """Return the target and its name; the default of the golden set if none is named.

    Raises:
        UsageError: it cannot be opened, or a setting is for other targets.
    """
    if target is None or isinstance(target, str):
        name = target or default_target(golden.path, golden.stats.domains)
        return open_target(name, settings.options_of_target, store_uri), name
    from evaltrack.targets.python import FunctionTarget

    if not callable(target):
        raise UsageError(f"target is {target!r}; name one, or give a function")
    if own := settings.options_of_target.keys() - {"in_process"}:
        cure = "a function in this process has none; name it as python:package.module:function"
        raise UsageError(f"target options ({', '.join(sorted(own))}) need a named target: {cure}")
    return FunctionTarget(target), target_name(target)


def target_name(target: str | Callable[..., Any]) -> str:
    """Return the name of a target; that of a function is its module with its name or the class of the object."""
    if isinstance(target, str):
        return target
    return f"python:{target.__module__}:{getattr(target, '__qualname__', type(target).__name__)}"


OF_MLFLOW = ("traces:", "models:", "runs:", "endpoints:")
"""Prefixes of targets that use MLflow, which workers cannot reach."""


def check_measurable(golden: GoldenSet, settings: EvaluationConfig, judges: Sequence[str]) -> None:
    """Refuse an evaluation that could measure nothing."""
    if settings.rubric == "reasoning" and not judges:
        cure = "name one: `judge=openai` or `judge=recorded:FILE`"
        raise UsageError(f"`rubric=reasoning`: there is no judge to observe the reasoning; {cure}", guide=Guide.JUDGES)
    if golden.stats.judged_only == len(golden) and not (judges or settings.scores):
        missing = "no question has expected_chunks, expected_sources or expected_passages, and there is no judge"
        raise UsageError(
            f"{golden.path}: {missing}, so nothing could be measured; add one, or name a judge with `judge=`",
            guide=Guide.JUDGES,
        )


def check_engine(settings: EvaluationConfig, target: str | Callable[..., Any] | None, functions: Functions) -> None:
    """Refuse settings that do not fit the engine.

    Raises:
        UsageError: all problems; or Ray is not installed.
    """
    if problems := list(_engine_problems(settings, target, functions)):
        raise UsageError("\n".join(f"`engine={settings.engine}`: {problem}" for problem in problems))
    if settings.engine == "ray" and find_spec("ray") is None:
        raise UsageError("`engine=ray`: ray is not installed; pip install 'ray>=2.40', here and on workers")


def _engine_problems(
    settings: EvaluationConfig, target: str | Callable[..., Any] | None, functions: Functions
) -> Iterator[str]:
    if settings.engine == "local":
        if settings.engine_address or settings.engine_workers:
            yield "`engine_address=` and `engine_workers=` are for `engine=ray`; set it too, or leave them out"
        return
    if callable(target):
        yield "a function that is given as an object stays in this process; name it as python:package.module:function"
    for function in functions:
        yield f"`{function}` is given as an object, which stays in this process; name it as package.module:function"
    if isinstance(target, str) and target.startswith(OF_MLFLOW):
        yield f"a {target.partition(':')[0]}: target asks MLflow, which workers cannot reach; take `engine=local`"
    if settings.judge_prompt:
        yield "`judge_prompt=` is read from MLflow, which workers cannot reach; take `engine=local`"
    if settings.in_process:
        yield "`in_process=True` is for a debugger in this process; leave it out"
    if settings.engine_workers > settings.concurrency:
        many, few = settings.engine_workers, settings.concurrency
        yield f"`engine_workers={many}` share `concurrency={few}`, and each needs 1; set `concurrency={many}` or more"


@dataclass(frozen=True)
class Opened:
    """The open parts of an evaluation."""

    target: Target
    judges: tuple[Judge, ...]
    scorers: tuple[Scorer, ...]
    cache: VerdictCache | None
    redactor: Redactor

    @property
    def closables(self) -> tuple[Closable, ...]:
        """The parts that are closed at the end."""
        return (self.target, *self.judges, *self.scorers)

    @property
    def declared(self) -> tuple[OwnScore, ...]:
        """The user's own scores."""
        return tuple(score for scorer in self.scorers for score in scorer.declared)

    def evaluator(self, settings: EvaluationConfig) -> Evaluator:
        """Return the evaluator of the target."""
        model = settings.model or self.target.model
        bounds = [NAMED.get(part.strip(), part) for part in settings.require.split(",")]
        asks_for_tokens = any("num_tokens" in bound or "combined_score" in bound for bound in bounds)
        return Evaluator(
            self.target,
            rules=settings.rules,
            judges=self.judges,
            count=counter(model, always=bool(model or self.judges or settings.prices or asks_for_tokens)),
            timeout=settings.timeout,
            judge_timeout=settings.judge_timeout,
            redactor=self.redactor,
            scorers=self.scorers,
        )


@dataclass(frozen=True)
class Plan(Opened):
    """An evaluation that has been checked and can be run."""

    command: Command
    golden: GoldenSet
    criteria: tuple[Criterion, ...]
    signature: Signature
    made_from_before: Mapping[str, str] = field(default_factory=dict)
    workers: RayWorkers | None = None
    """Makes the rows instead of this process, if set."""

    @property
    def settings(self) -> EvaluationConfig:
        """The settings of the plan."""
        return self.command.settings

    @property
    def traces(self) -> TraceChoice:
        """The choice of questions that get a trace; `auto` is off if the responses come from traces."""
        has_traces = self.target.has_traces and self.settings.traces == "auto"
        return "off" if has_traces else self.settings.traces

    @property
    def joins_traces(self) -> bool:
        """True if every question gets a trace, so that the target's own spans can be joined to it."""
        return self.traces == "all" or (self.traces == "auto" and len(self.golden) <= TRACED_QUESTIONS)

    @property
    def closables(self) -> tuple[Closable, ...]:
        """The parts that are closed at the end, with the workers."""
        return super().closables + ((self.workers,) if self.workers else ())

    @cached_property
    def notes_on_others(self) -> tuple[str, ...]:
        """Notes on questions that target or judges hold and the golden set does not."""
        return tuple(filter(None, (each.note_on_other_questions(self.golden.ids) for each in self.closables)))

    def notes(self) -> tuple[str, ...]:
        """Return the remarks of target, judges, golden set and cache."""
        notes = [note for each in self.closables for note in each.notes]
        notes += self.notes_on_others
        if drafts := self.golden.stats.drafts:
            notes.append(f"{count(drafts, 'unconfirmed draft')} of the golden set left out")
        if (unheard := self.golden.stats.with_history) and not self.target.takes_history:
            those = f"{count(unheard, 'question')} {verb(unheard, 'has', 'have')}"
            notes.append(f"{those} a `history`; the target does not take one and got the question only")
        return tuple(dict.fromkeys(notes + ([self.cache.problem] if self.cache and self.cache.problem else [])))

    def params(self) -> dict[str, str]:
        """Return the params for MLflow: everything that affects a number."""
        params = {"golden": str(self.golden.path), "target": self.signature.target}
        if self.signature.model:  # else the responses name it, at the end
            params["model"] = self.signature.model
        return params | self.settings.params() | {"judge": self.signature.judge}

    def tags(self, signature: Signature | None = None) -> dict[str, str]:
        """Return the tags for MLflow, which comparisons read; `signature` is the final one."""
        signature = signature or self.signature
        packages = packages_text(self.target.packages)
        return {
            **({PACKAGES_TAG: packages} if packages else {}),
            SYSTEM_TAG: self.system.with_files(self.files).model_dump_json(),
            GOLDEN_TAG: signature.golden,
            SIGNATURE_TAG: signature.model_dump_json(),
        }

    @property
    def files(self) -> dict[str, str]:
        """Path and digest of each file of the project that target and judges run, the target's first."""
        files = dict(self.target.files)
        for judge in self.judges:
            files |= judge.files
        return files

    @cached_property
    def made_from(self) -> dict[str, str]:
        """The state of all inputs of the rows, by name; recording files are read once for it.

        If a run is resumed, each state is preceded by the one in which its finished rows were made.
        """
        verdicts = ", ".join(filter(None, (judge.recording for judge in self.judges)))
        target = self.target
        code = packages_text(self.files)
        states = {RECORDED_RESPONSES: target.recording, RECORDED_VERDICTS: verdicts, CORPUS: target.corpus}
        states[CODE] = sha256(code.encode()).hexdigest()[:12] if code else ""
        before = self.made_from_before
        return {name: both_states(before.get(name, ""), state) for name, state in states.items() if state}

    @cached_property
    def system(self) -> System:
        """The data that identify the target, at the time it was opened."""
        commit, changes = work_tree(caller_folder())
        if THEN in (code := self.made_from.get(CODE, "")):  # it was changed while the run was interrupted
            changes = code
        options = {name: shown_text(value) for name, value in self.settings.target_options.items()}
        model = {"model": self.signature.model} if self.signature.model else {}
        states = {name: state for name, state in self.made_from.items() if name != CODE}
        system = System(version=__version__, commit=commit, changes=changes, states=states, settings=model | options)
        return system.with_files(self.files)

    def ask(
        self,
        take: Callable[[Row], object],
        *,
        questions: Iterable[Question] | None = None,
        trials: Sequence[int] | None = None,
        memory: Journal | None = None,
        stop: Callable[[], bool] = lambda: False,
        runner: asyncio.Runner | None = None,
    ) -> None:
        """Ask all questions, or the given ones, and pass each row to `take`.

        Target and judges are closed at the end; with a `runner` they remain open until `close`. Rows of targets that
        answer at once are not stored in `memory`: reading them again costs less.
        """
        settings, evaluator = self.settings, self.evaluator(self.settings)
        rows = evaluate(
            self.golden if questions is None else questions,
            (self.workers or evaluator).row,
            trials=trials or range(1, settings.trials + 1),
            memory=None if evaluator.answers_at_once else memory,
            stop=stop,
            concurrency=settings.concurrency,
        )
        take_all(rows, take, self.closables, runner)

    def close(self, runner: asyncio.Runner) -> None:
        """Close the target and judges that were asked with this runner."""
        run_to_end(lambda: close_all(self.closables), runner)


def open_with(
    target: Target,
    settings: EvaluationConfig,
    opened: ExitStack,
    functions: Functions = MappingProxyType({}),
    store_uri: str | None = None,
) -> Opened:
    """Open the scores and judges of an evaluation of this target; `opened` closes all of them.

    `functions` holds some of them by name. `store_uri` is the MLflow store of their prompt if it is not the default.

    Raises:
        UsageError: one cannot be opened, or there is no such prompt.
        TrackingError: the store of the prompt does not answer.
    """
    opened.callback(target.close)  # also if it is never asked
    names, models = judge_names(settings.judge), Models(settings.concurrency, settings.call_timeout)
    cache: VerdictCache | None = None
    if settings.verdict_cache and (names or any(map(asks_judge, settings.scores))):
        cache = VerdictCache(cache_folder())
        opened.callback(cache.close)
    scorers: tuple[Scorer, ...] = ()
    if settings.scores:
        from evaltrack.judges.open_scores import open_scorers

        scorers = open_scorers(
            settings.scores,
            functions,
            in_process=settings.in_process,
            prices=settings.prices,
            k=settings.k,
            judge=partial(open_faithfulness_judge, names, models, cache),
        )
    for scorer in scorers:
        opened.callback(scorer.close)
    own = registered_prompt(connect(store_uri), settings.judge_prompt) if settings.judge_prompt and names else None
    judges: list[Judge] = []
    for name in names:
        judge = open_judge(
            name,
            rubric=settings.rubric,
            cache=cache,
            in_process=settings.in_process,
            own=own,
            function=functions.get(name),
            models=models,
        )
        opened.callback(judge.close)
        judges.append(judge)
    redactor = Redactor.with_environment(settings.redact, target.secrets)
    return Opened(target, tuple(judges), scorers, cache, redactor)


@contextmanager
def planned(
    golden_path: str,
    settings: EvaluationConfig,
    target: str | Callable[..., Any] | None,
    selection: Selection | None = None,
    *,
    functions: Functions = MappingProxyType({}),
    store_uri: str | None = None,
) -> Iterator[Plan]:
    """Check an evaluation, and open target, judges and scores.

    `selection` selects questions of the golden set; None selects all. `functions` are judges and scores given as
    objects, by their names in the settings. `store_uri` is the MLflow store if it is not the default.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong.
    """
    Redactor(settings.redact)  # a wrong pattern is reported before anything is opened
    check_engine(settings, target, functions)
    golden = open_golden(golden_path, selection)
    if settings.evaluation_json:
        named = (target if isinstance(target, str) else "", *settings.judge, *settings.scores)
        reads = [golden_path, *(each.partition(":")[2].partition("?")[0] for each in named)]
        written = Path(settings.evaluation_json)
        check_result_file(written, "evaluation_json", reads)
        if written.is_file() and written.suffix != ".json":  # it may be the code of a target, or a database
            raise UsageError(f"`evaluation_json={written}`: exists and is not a .json file; name another file")
    check_measurable(golden, settings, judge_names(settings.judge))
    if not settings.scores:  # own scores add metrics: then it is checked when they are open
        parse_criteria(settings.require, _metrics_of_criteria())
    with ExitStack() as resources:
        opened_target, name = named_target(target, golden, settings, store_uri)
        opened = open_with(opened_target, settings, resources, functions, store_uri)
        criteria = parse_criteria(settings.require, _metrics_of_criteria(opened.declared))
        signature = signature_of(golden, name, opened, settings)
        command = Command(golden=golden_path, target=name, settings=settings, folder=str(Path.cwd()))
        yield Plan(**vars(opened), command=command, golden=golden, criteria=criteria, signature=signature)


def _metrics_of_criteria(declared: tuple[OwnScore, ...] = ()) -> frozenset[str]:
    return metric_table(declared).metrics | {"combined_score_best"}


LONGEST_SIGNATURE = 7900
"""Maximum characters of the signature; an MLflow tag holds 8,000."""


def signature_of(golden: GoldenSet, target: str, opened: Opened, settings: EvaluationConfig) -> Signature:
    """Return the signature of an evaluation; `target` is its name, which is redacted.

    Raises:
        UsageError: two judges have one name, or the declarations of scores are too long for MLflow.
    """
    names = [judge.name for judge in opened.judges]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"`judge=`: two judges are called `{name}`; name each in the `judge` field of its lines")
    signature = Signature(
        golden=golden.name,
        golden_digest=golden.digest,
        k=settings.k,
        target=shown_text(target),
        judge="+".join(names) or "none",
        judge_prompt="+".join(judge.digest for judge in opened.judges),
        weights=settings.weights_text,
        pass_threshold=settings.pass_threshold,
        rubric=settings.rubric,
        model=settings.model or opened.target.model or ("bm25" if target.startswith("bm25:") else ""),
        selection=golden.part,
        scores=opened.declared,
    )
    if signature.scores and len(signature.model_dump_json()) > LONGEST_SIGNATURE:
        raise UsageError(f"`scores=`: the declarations of {len(signature.scores)} scores are too long; give fewer")
    return signature


TARGET_SHOWN = 60
"""Maximum characters of a target in the name of a run."""

PARAMS_SHOWN = 3


def default_run_name(plan: Plan) -> str:
    """Return a name such as ``travel bm25:docs k=5 chunk_size=600``: golden set, target, k, first own params."""
    params = [f"{name}={cut(value, 24)}" for name, value in list(plan.settings.param.items())[:PARAMS_SHOWN]]
    parts = [plan.golden.name, _target(plan.signature.target), f"k={plan.settings.k}", *params]
    return " ".join("".join(each if each.isprintable() else " " for each in part) for part in parts)


def _target(name: str) -> str:
    """Return a target's name, with the beginning of a long path left out."""
    kind, colon, place = name.partition(":")
    room = TARGET_SHOWN - len(kind) - 2
    return f"{kind}{colon}{place if len(place) <= room else '…' + place[-room:]}"
