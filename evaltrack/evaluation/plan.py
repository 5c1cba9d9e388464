"""What an evaluation will do, checked before anything is done: golden set, target, judges, and what shaped them.

Everything that can be wrong is found here; `Plan.ask` then asks the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evaltrack import __version__
from evaltrack.errors import UsageError
from evaltrack.evaluation.config import Command, EvaluationConfig
from evaltrack.evaluation.loop import Memory, Progress, close_all, evaluate, run_to_end, take_all
from evaltrack.evaluation.opening import (
    check_engine,
    check_measurable,
    check_names,
    evaluator_of,
    model_of,
    named_target,
    open_cache,
    open_judges,
    open_scores,
)
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.golden.selection import Selection
from evaltrack.judges import Models, judge_names, open_faithfulness_judge
from evaltrack.judges.cache import VerdictCache
from evaltrack.judges.own_scores import Functions, asks_judge
from evaltrack.metrics.catalogue import metric_table
from evaltrack.metrics.criteria import Criterion, parse_criteria
from evaltrack.privacy.addresses import shown_text
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import (
    METRICS_VERSION,
    Closable,
    Judge,
    OwnScore,
    Question,
    Row,
    Scorer,
    Signature,
    Target,
)
from evaltrack.records.amount import count, verb
from evaltrack.records.settings import (
    CODE,
    CORPUS,
    PACKAGES_TAG,
    RESPONSES,
    SETTING_TAGS,
    SYSTEM_TAG,
    THEN,
    VERDICTS,
    System,
    both_states,
    packages_text,
)
from evaltrack.system.files import check_result_file
from evaltrack.tracking.provenance import caller_folder, work_tree
from evaltrack.tracking.writer import TRACED_QUESTIONS, TraceChoice

if TYPE_CHECKING:
    from evaltrack.evaluation.ray_workers import RayWorkers


def signature_of(
    golden: GoldenSet, target: str, model: str, judges: Sequence[Judge], settings: EvaluationConfig
) -> Signature:
    """The signature of an evaluation without scores of its own; `target` is its name, which is cleaned."""
    return Signature(
        golden=golden.name,
        golden_digest=golden.digest,
        k=settings.k,
        target=shown_text(target),
        judge="+".join(judge.name for judge in judges) or "none",
        judge_prompt="+".join(judge.digest for judge in judges),
        weights=settings.weights_text,
        pass_threshold=settings.pass_threshold,
        rubric=settings.rubric,
        model=model,
        selection=golden.part,
    )


LONGEST_SIGNATURE = 7900
"""Characters; a tag of MLflow holds 8,000."""


def with_scores(signature: Signature, declared: tuple[OwnScore, ...]) -> Signature:
    """The signature with the declarations of one's own scores.

    Raises:
        UsageError: they are longer than MLflow holds.
    """
    whole = signature.model_copy(update={"scores": declared})
    if declared and len(whole.model_dump_json()) > LONGEST_SIGNATURE:
        raise UsageError(f"`scores=`: the declarations of {len(declared)} scores are too long; give fewer of them")
    return whole


@dataclass(frozen=True)
class Plan:
    """One evaluation, checked and ready to be run."""

    command: Command
    golden: GoldenSet
    target: Target
    judges: tuple[Judge, ...]
    scorers: tuple[Scorer, ...]
    criteria: tuple[Criterion, ...]
    signature: Signature
    cache: VerdictCache | None
    redactor: Redactor
    made_from_before: Mapping[str, str] = field(default_factory=dict)
    workers: RayWorkers | None = None
    """Who makes the rows, where that is not this process."""

    @property
    def settings(self) -> EvaluationConfig:
        """The settings it was planned with."""
        return self.command.settings

    @property
    def several_trials(self) -> bool:
        """Whether each question is asked more than once."""
        return self.settings.trials > 1

    @property
    def traces(self) -> TraceChoice:
        """Which questions get a trace; those whose responses stand in traces already get no second one unasked."""
        has_traces = self.target.has_traces and self.settings.traces == "auto"
        return "off" if has_traces else self.settings.traces

    @property
    def joins_traces(self) -> bool:
        """Whether every question gets a trace, so that the target's own spans can stand in it."""
        return self.traces == "all" or (self.traces == "auto" and len(self.golden) <= TRACED_QUESTIONS)

    @property
    def _opened(self) -> tuple[Closable, ...]:
        workers = (self.workers,) if self.workers else ()
        return (self.target, *self.judges, *self.scorers, *workers)

    def warn_of_other_questions(self, progress: Progress) -> None:
        """Tell at once of what target and judges hold of other questions than those of the golden set."""
        for note in self._strangers:
            progress.warn(note)

    @cached_property
    def _strangers(self) -> tuple[str, ...]:
        return tuple(filter(None, (each.note_on_other_questions(self.golden.ids) for each in self._opened)))

    def notes(self) -> tuple[str, ...]:
        """What target, judges, golden set and cache found worth saying."""
        notes = [note for each in self._opened for note in each.notes]
        notes += self._strangers
        if drafts := self.golden.stats.drafts:
            notes.append(f"{count(drafts, 'draft')} of the golden set, which nobody has confirmed, left out")
        if (unheard := self.golden.stats.with_history) and not self.target.takes_history:
            those = f"{count(unheard, 'question')} {verb(unheard, 'has', 'have')}"
            notes.append(f"{those} a `history`, and the target was asked the question alone: it takes no other turns")
        return tuple(dict.fromkeys(notes + ([self.cache.problem] if self.cache and self.cache.problem else [])))

    def params(self) -> dict[str, str]:
        """What MLflow's params hold: everything that shapes a number."""
        params = {"golden": str(self.golden.path), "target": self.signature.target}
        if self.signature.model:  # else it is what the responses say, at the end
            params["model"] = self.signature.model
        return params | self.settings.params() | {"judge": self.signature.judge}

    def tags(self, signature: Signature | None = None) -> dict[str, str]:
        """What MLflow's tags hold, which a comparison looks for; `signature` as it turned out at the end."""
        signature = signature or self.signature
        packages = packages_text(self.target.packages)
        return {
            **({PACKAGES_TAG: packages} if packages else {}),
            **{SETTING_TAGS[name]: states for name, states in self.made_from.items() if name in SETTING_TAGS},
            SYSTEM_TAG: self.system.with_files(self.target.files).model_dump_json(),
            "evaltrack.version": __version__,
            "evaltrack.metrics_version": str(METRICS_VERSION),
            "evaltrack.golden": signature.golden,
            "evaltrack.golden_digest": signature.golden_digest,
            "evaltrack.signature": signature.model_dump_json(),
        }

    @cached_property
    def made_from(self) -> dict[str, str]:
        """The state of all that rows are made from, by its name; files of recordings are read once for it.

        Where a run is resumed, the states in which its finished rows were made stand before it.
        """
        verdicts = ", ".join(filter(None, (judge.recording for judge in self.judges)))
        target = self.target
        code = packages_text(target.files)
        states = {RESPONSES: target.recording, VERDICTS: verdicts, CORPUS: target.corpus}
        states[CODE] = sha256(code.encode()).hexdigest()[:12] if code else ""
        before = self.made_from_before
        return {name: both_states(before.get(name, ""), state) for name, state in states.items() if state}

    @cached_property
    def system(self) -> System:
        """What identifies the target, as it was when it was opened."""
        commit, changes = work_tree(caller_folder())
        if THEN in (code := self.made_from.get(CODE, "")):  # it was changed while the run was broken off
            changes = code
        options = {name: shown_text(value) for name, value in self.settings.target_options.items()}
        model = {"model": self.signature.model} if self.signature.model else {}
        corpus = self.made_from.get(CORPUS, "")
        system = System(commit=commit, changes=changes, corpus=corpus, settings=model | options)
        return system.with_files(self.target.files)

    def ask(
        self,
        take: Callable[[Row], object],
        *,
        questions: Iterable[Question] | None = None,
        trials: Sequence[int] | None = None,
        memory: Memory | None = None,
        stop: Callable[[], bool] = lambda: False,
        runner: asyncio.Runner | None = None,
    ) -> None:
        """Ask all questions, or those given, and hand each row to `take`.

        Target and judges are closed at the end; with a `runner` they stay open until `close`. Answers at hand are not
        kept in `memory`: reading them again costs less than keeping them.
        """
        settings = self.settings
        selected = self.golden if questions is None else questions
        rounds = trials or range(1, settings.trials + 1)

        def rows() -> AsyncGenerator[Row]:
            evaluator = evaluator_of(settings, self.target, self.judges, self.scorers, self.redactor)
            row_memory, most = None if evaluator.answers_at_once else memory, settings.concurrency
            maker = self.workers or evaluator
            return evaluate(selected, maker, trials=rounds, memory=row_memory, stop=stop, concurrency=most)

        take_all(rows, take, self._opened, runner)

    def close(self, runner: asyncio.Runner) -> None:
        """Close what was asked with this runner."""
        run_to_end(lambda: close_all(self._opened), runner)


@contextmanager
def planned(
    golden_path: str,
    settings: EvaluationConfig,
    target: str | Callable[..., Any] | None,
    selection: Selection | None = None,
    *,
    repeats: bool = False,
    functions: Functions = MappingProxyType({}),
    store_uri: str | None = None,
) -> Iterator[Plan]:
    """Check everything, and open target, judges and scores; what only `repeats` questions writes no file.

    The golden set is that of a `selection`, or whole. `functions` are judges and scores that were given as objects, by
    the names that stand for them in the settings. A repeat asks whether questions pass, of which scores say nothing.
    `store_uri` is the MLflow store, where it is not the usual one.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong.
    """
    Redactor(settings.redact)  # a wrong pattern is found before anything is opened
    with ExitStack() as opened:
        specs, models = () if repeats else settings.scores, Models(settings.concurrency, settings.call_timeout)
        cache = open_cache(settings, opened) if any(map(asks_judge, specs)) else None
        names = judge_names(settings.judge)
        scorers = open_scores(specs, functions, settings, partial(open_faithfulness_judge, names, models, cache))
        for scorer in scorers:
            opened.callback(scorer.close)
        declared = tuple(score for scorer in scorers for score in scorer.declared)
        criteria = () if repeats else _criteria(settings, declared)
        if not repeats:  # they are asked on this machine
            check_engine(settings, target, functions)
        golden = open_golden(golden_path, selection)
        if settings.evaluation_json and not repeats:
            named = (target if isinstance(target, str) else "", *settings.judge, *settings.scores)
            reads = [golden_path, *(each.partition(":")[2].partition("?")[0] for each in named)]
            check_result_file(Path(settings.evaluation_json), "evaluation_json", reads)
        opened_target, target_name = named_target(target, golden, settings, store_uri)
        opened.callback(opened_target.close)  # also where it is never asked
        check_measurable(golden, settings, names)
        if names and cache is None:
            cache = open_cache(settings, opened)
        judges = open_judges(names, settings, cache, functions, store_uri=store_uri, models=models)
        for judge in judges:
            opened.callback(judge.close)
        check_names(judges)
        signature = signature_of(golden, target_name, model_of(opened_target, target_name, settings), judges, settings)
        signature = with_scores(signature, declared)
        redactor = Redactor.with_environment(settings.redact, opened_target.secrets)
        command = Command(golden_path, target_name, settings, str(Path.cwd()))
        yield Plan(command, golden, opened_target, judges, scorers, criteria, signature, cache, redactor)


def _criteria(settings: EvaluationConfig, declared: tuple[OwnScore, ...]) -> tuple[Criterion, ...]:
    """What the run must reach, in metrics of ours and its own scores."""
    return parse_criteria(settings.require, metric_table(declared).metrics | {"combined_score_best"})


TARGET_SHOWN = 60
"""Characters of a target in the name of a run."""

PARAMS_SHOWN = 3


def default_run_name(plan: Plan) -> str:
    """``travel bm25:docs k=5 chunk_size=600``: golden set, target, k, and the first params of the user's own."""
    params = [f"{name}={_within(value, 24)}" for name, value in list(plan.settings.param.items())[:PARAMS_SHOWN]]
    parts = [plan.golden.name, _target(plan.signature.target), f"k={plan.settings.k}", *params]
    return " ".join("".join(each if each.isprintable() else " " for each in part) for part in parts)


def _target(name: str) -> str:
    """A target, without what stands before the end of a long path."""
    kind, colon, place = name.partition(":")
    room = TARGET_SHOWN - len(kind) - 2
    return f"{kind}{colon}{place if len(place) <= room else '…' + place[-room:]}"


def _within(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
