"""Makes scorers from the names of `--score`: built-in ones, the user's functions, faithfulness, scorers of MLflow.

| name | score |
| --- | --- |
| `package.module:function` | your own function, sync or async |
| `exact_match`, `token_f1` | the answer's words compared with those of the expected answer, as SQuAD defines them |
| `contains` | 1 if the answer has the words of the expected answer one after the other |
| `context_precision` | how far relevant sources rank above others |
| `faithfulness`, `faithfulness:openai:MODEL` | the share of the answer's claims that the sources hold, by a judge |
| `tool_order` | the share of the expected tools that were called in order |
| `tool_arguments` | the share of the expected calls that were made with their arguments |
| `cost` | US dollars per 1,000 questions, by the tokens that the target reports and their prices |
| `regex:PATTERN` | 1 if the pattern is found in the answer |
| `json_schema:FILE` | 1 if the answer is JSON that is valid under a schema |
| `mlflow:Correctness` | a built-in scorer of `mlflow.genai`, as `Safety`, `RelevanceToQuery`, `Completeness` |
| `mlflow:Guidelines:FILE` | guidelines, one on each line of a text file |
| `mlflow:ragas.Faithfulness`, `mlflow:deepeval.AnswerRelevancy` | a metric of Ragas or DeepEval that MLflow wraps |
| `mlflow:package.module:name` | the user's own `@scorer`, or an object as ``Guidelines(name=..., guidelines=...)`` |

``NAME=`` before any of these renames it. `?model=openai:/gpt-4o-mini` after a scorer of MLflow that is not the user's
own names its judge. Without it MLflow's default judges (`MLFLOW_GENAI_JUDGE_DEFAULT_MODEL`, else
`openai:/gpt-4.1-mini`). MLflow calls the model, at the address in `OPENAI_BASE_URL` for ``openai:/``. The scorer gets
``{"question": ...}`` as inputs, the answer as outputs, and expectations by MLflow's names. Yes is 1 and no is 0. A
metric of Ragas or DeepEval also gets the texts of the sources. Of the expectations it gets the expected answer alone,
as MLflow passes Ragas all expectations joined to one text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

from pydantic_core import from_json

from evaltrack.errors import Guide, UsageError
from evaltrack.judges import FAITHFULNESS, Functions, asks_judge, split_name
from evaltrack.judges.function import FunctionScorer, measured_values, own_score
from evaltrack.metrics.aggregate import Ledger, Summary
from evaltrack.metrics.answers import (
    NO_ANSWER,
    contains,
    exact_match,
    token_f1,
    tool_arguments,
    tool_order,
)
from evaltrack.metrics.catalogue import LATENCIES, SCORES
from evaltrack.metrics.measure import NO_SOURCES, Rules, checked_relevance
from evaltrack.metrics.retrieval import context_precision
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Judge, OwnScore, OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.records.verdict import MOST_SCORES
from evaltrack.targets.python import import_function
from evaltrack.targets.threads import aside
from evaltrack.targets.worker_pool import Call, Pool, Service
from evaltrack.tracking.genai import LIBRARIES, GenaiJudge, LibraryMetric, open_builtin_scorer
from evaltrack.tracking.rows import columns_with


def open_scorers(
    specs: Sequence[str],
    functions: Functions | None = None,
    *,
    in_process: bool,
    prices: Prices | None = None,
    k: int = Rules.k,
    judge: Callable[[str], Judge] | None = None,
) -> tuple[Scorer, ...]:
    """Return the scores with these names, ready to be called, in order.

    A named function runs in a separate process, or in this one with `in_process`. Those in `functions` always run in
    this process. `prices` are those of the target's tokens; `k` is the number of sources that are scored. `judge` opens
    the judge of faithfulness by its name. An empty name means the judge of the run.

    Raises:
        UsageError: there is no such score, it cannot be opened, a name is used twice, or it is a built-in name.
    """
    scorers: list[Scorer] = []
    with ExitStack() as opened:
        for spec in specs:
            if judge is not None and asks_judge(spec):
                name, place = split_name(spec)
                scorer: Scorer = FaithfulnessScorer(name, judge(place.partition(":")[2]))
            else:
                scorer = open_scorer(spec, functions, in_process=in_process, k=k, prices=prices)
            opened.callback(scorer.close)
            scorers.append(scorer)
        check_scores(scorers)
        opened.pop_all()  # close them only if one cannot be opened
    return tuple(scorers)


def open_scorer(
    spec: str,
    functions: Functions | None = None,
    *,
    in_process: bool = True,
    k: int = Rules.k,
    prices: Prices | None = None,
    own_loop: bool = True,
) -> Scorer:
    """Return the score that ``[NAME=]SCORE`` names; see `open_scorers`.

    Raises:
        UsageError: there is no such score, or it cannot be opened.
    """
    name, place = split_name(spec)
    if functions and place in functions:
        return FunctionScorer(functions[place], place, name)
    if (builtin := open_builtin(place, name, k=k, prices=prices)) is not None:
        return builtin
    module, colon, function = place.partition(":")
    is_mlflow = module == MLFLOW and function
    if not is_mlflow and not (colon and all(map(str.isidentifier, f"{module}.{function}".split(".")))):
        raise UsageError(f"`scores=`: unknown score `{place:.100}`; write {CHOICES}")
    if not in_process:
        return ProcessScorer(spec)
    if is_mlflow:
        return _mlflow_scorer(place, name)
    return FunctionScorer(import_function(place, "score", Guide.SCORES), place, name, own_loop=own_loop)


def check_scores(scorers: Sequence[Scorer]) -> None:
    """Check that the names of scores are unique, and differ from all names that are shown with them.

    Raises:
        UsageError: a name is taken. The message lists every such name.
    """
    names = [score.name for scorer in scorers for score in scorer.declared]
    if len(names) > MOST_SCORES:
        raise UsageError(f"`scores=`: {len(names)} scores; give at most {MOST_SCORES}")
    taken = _taken()
    problems = [f"`{name}` is a built-in name" for name in dict.fromkeys(names) if name in taken]
    problems += [f"two scores are called `{name}`" for name in dict.fromkeys(names) if names.count(name) > 1]
    if problems:
        raise UsageError(f"`scores=`: {'; '.join(problems)}; write NAME=SCORE, or @score(name=...) above the function")


def _taken() -> set[str]:
    """Return the names of metrics, columns, totals, and other entries of tables."""
    shown = ("result", "retrieved", "reasoning", "status", "run_id", "num_expected", "combined_score_best")
    totals = {*Summary(1).totals, *Ledger().totals}
    ours = (*SCORES, *LATENCIES)
    return {*(s.name for s in ours), *(s.metric for s in ours), *(c.name for c in columns_with()), *totals, *shown}


CHOICES = (
    "exact_match, token_f1, contains, context_precision, faithfulness, "
    "tool_order, tool_arguments, cost, regex:PATTERN, json_schema:FILE, mlflow:SCORER or "
    "package.module:function"
)

MLFLOW = "mlflow"


class ProcessScorer(Pool, Scorer):
    """Calls a score for each response, in a separate process.

    Raises:
        UsageError: it cannot be opened.
    """

    def __init__(self, spec: str) -> None:
        super().__init__("evaltrack.judges.open_scores:answering", spec, f"score `{spec}`")
        self.declared = tuple(map(OwnScore.model_validate, self.facts["scores"]))

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """Return its values by name.

        Raises:
            RaisedElsewhereError: a user's function raised.
            ProcessEndedError: its process ended.
        """
        call = Call.model_construct(question=question, response=response)
        return OwnValues.model_validate_json(await self.call(call))


def answering(spec: str) -> Service:
    """Return the service of a child process for ``[NAME=]SCORE``.

    Raises:
        UsageError: it cannot be opened.
    """
    scorer = open_scorer(spec, own_loop=False)
    facts = {"scores": [score.model_dump() for score in scorer.declared]}
    return Service(lambda call: scorer(call.question, call.response), lambda: facts)


MOST_SOURCE_TEXT, MOST_ANSWER = 100_000, 12_000
"""The most characters of all sources, and of an answer. A judge that sees only a part cannot say what is held."""

DECLINED = "the target declined"
NO_CLAIM = "the answer makes no claim"


class FaithfulnessScorer(Scorer):
    """The share of the answer's claims that the returned sources hold, according to a judge.

    The judge sees the response without secrets. It gives the share as the `overall_score` of its verdict.
    """

    def __init__(self, name: str, judge: Judge) -> None:
        name = name or FAITHFULNESS
        said = [name, FAITHFULNESS, judge.name, judge.digest]
        self.declared: tuple[OwnScore, ...] = (own_score(name, f"{FAITHFULNESS} by {judge.name}", said, span=1.0),)
        self._name, self._judge = name, judge

    @property
    def notes(self) -> Sequence[str]:
        """Notes on what the judge's server refused."""
        return self._judge.notes

    def on_trial(self, trial: int) -> Self:
        """Return the scorer with the judge for that trial."""
        return type(self)(self._name, self._judge.on_trial(trial))

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """Return the share with the verdict, or the reason for no value. A declining answer is never judged."""
        if why := _why_not(response):
            return OwnValues(reasons={self._name: why})
        verdict = await self._judge(question, response)
        verdicts = {self._name: verdict}
        if verdict.overall_score is None:
            return OwnValues(reasons={self._name: NO_CLAIM}, verdicts=verdicts)
        return OwnValues(values={self._name: verdict.overall_score}, verdicts=verdicts)

    async def aclose(self) -> None:
        """Close the judge's connections."""
        await self._judge.aclose()


def _why_not(response: Response) -> str:
    """Return why a response cannot be compared with its sources; empty if it can."""
    answer, sources = response.answer or "", response.sources
    if not answer.strip() or sources is None:
        return NO_SOURCES if answer.strip() else NO_ANSWER
    if response.declined:
        return DECLINED
    if without := sum(source.text is None for source in sources):
        return f"{without} of {len(sources)} sources have no text"
    length = sum(len(source.text or "") + len(source.title or "") for source in sources)
    if length > MOST_SOURCE_TEXT:
        return f"the sources have {length:,} characters; a judge is shown at most {MOST_SOURCE_TEXT:,}"
    if len(answer) > MOST_ANSWER:
        return f"the answer has {len(answer):,} characters; a judge is shown at most {MOST_ANSWER:,}"
    return ""


def _mlflow_scorer(spec: str, name: str) -> BuiltinScorer:
    """Return the score of a scorer of MLflow, which is called in threads and sees no secrets.

    Raises:
        UsageError: there is no such scorer, or it needs more than a question, an answer and expectations.
    """
    judge = _open_mlflow(spec.removeprefix(f"{MLFLOW}:"), spec)

    def measure(question: Question, response: Response) -> Measured:
        return NO_ANSWER if response.answer is None else judge(question, response)

    rising = getattr(judge, "higher_is_better", True)
    fields = {"binary": judge.binary, "span": 1.0 if judge.binary else None, "higher_is_better": rising}
    said = list(judge.said)
    return BuiltinScorer(name or judge.name, spec, said, measure, in_thread=True, measures_raw=False, **fields)


def _open_mlflow(place: str, spec: str) -> GenaiJudge | LibraryMetric:
    place, _, model = place.partition("?model=")
    name, colon, rest = place.partition(":")
    library, _, metric = name.partition(".")
    if library in LIBRARIES and metric and not colon:
        return LibraryMetric(library, metric, model, spec)
    settings: dict[str, Any] = {"model": model} if model else {}
    if not colon:
        return open_builtin_scorer(name, settings, spec)
    if name == "Guidelines":
        text = _text(Path(rest), spec)
        if not (lines := [line.strip() for line in text.splitlines() if line.strip()]):
            raise UsageError(f"`scores={spec}`: {rest}: holds no guideline; write one on each line")
        return open_builtin_scorer(name, {**settings, "guidelines": lines}, spec)
    if model:
        raise UsageError(f"`scores={spec}`: `?model=` is for scorers that are built in; name the model in your own")
    return GenaiJudge(import_function(place, "score", Guide.SCORES), spec)


QUESTIONS = 1000
"""The number of questions that a cost is for. The cost of one would be 0.000 in tables."""

NO_USAGE = "the target reports no usage"
NO_EXPECTED_ANSWER = "the question has no expected_answer"

Measured = float | str
"""A value, or the reason for no value."""

PATTERN, SCHEMA = "regex", "json_schema"
PATTERN_SECONDS = 2.0
"""Seconds after which the search for a user's pattern in one answer is stopped."""

TOO_LONG = "the pattern did not end within {:g} s"


class BuiltinScorer(Scorer):
    """A named function of a question and a response, called in a thread if it takes long. `said` makes its digest."""

    def __init__(
        self,
        name: str,
        spec: str,
        said: list[Any],
        measure: Callable[[Question, Response], Measured],
        *,
        in_thread: bool = False,
        measures_raw: bool = True,
        **fields: Any,
    ) -> None:
        self.declared = (own_score(name, spec, said, **{"span": 1.0, **fields}),)
        self.measure, self.measures_raw, self._in_thread = measure, measures_raw, in_thread

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """Return the value, or the reason for no value."""
        asked = (question, response)
        measured = await aside(self.measure, *asked) if self._in_thread else self.measure(*asked)
        return measured_values({self.declared[0].name: measured})


def open_builtin(spec: str, name: str = "", *, k: int = Rules.k, prices: Prices | None = None) -> BuiltinScorer | None:
    """Return the score that `spec` names, such as ``exact_match`` or ``regex:PATTERN``; None for other names.

    `k` is the number of sources that are scored, and `prices` are those of the target's tokens.

    Raises:
        UsageError: the pattern or the schema cannot be read, or there are no prices for ``cost``.
    """
    kind, colon, rest = spec.partition(":")
    name = name or kind
    if spec in FUNCTIONS:
        return BuiltinScorer(name, spec, [name, kind], FUNCTIONS[spec], binary=spec in ("exact_match", "contains"))
    if spec == "context_precision":
        return BuiltinScorer(name, spec, [name, kind], partial(measured_precision, k=k))
    if spec == "cost":
        return BuiltinScorer(name, spec, [kind], _of_prices(prices), span=None, higher_is_better=False)
    if kind == PATTERN and colon:
        return BuiltinScorer(name, spec, [name, spec], _of_answer(_of_pattern(rest)), in_thread=True, binary=True)
    if kind == SCHEMA and colon:
        text = _text(Path(rest), spec)
        measure = _of_answer(_of_schema(text, spec))
        return BuiltinScorer(name, spec, [name, kind, text], measure, in_thread=True, binary=True)
    return None


def _of_answer(function: Callable[[Question, str], Measured]) -> Callable[[Question, Response], Measured]:
    """Return a function of the response, which may have no answer."""

    def measure(question: Question, response: Response) -> Measured:
        return NO_ANSWER if response.answer is None else function(question, response.answer)

    return measure


def _of_words(function: Callable[[str, str], float]) -> Callable[[Question, Response], Measured]:
    """Return a function that compares the answer's words with those of the expected answer."""

    def measure(question: Question, answer: str) -> Measured:
        if question.expected_answer is None:
            return NO_EXPECTED_ANSWER
        return function(answer, question.expected_answer)

    return _of_answer(measure)


FUNCTIONS: dict[str, Callable[[Question, Response], Measured]] = {
    "exact_match": _of_words(exact_match),
    "token_f1": _of_words(token_f1),
    "contains": _of_words(contains),
    "tool_order": tool_order,
    "tool_arguments": tool_arguments,
}


def _of_pattern(pattern: str) -> Callable[[Question, str], Measured]:
    import regex

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise UsageError(f"`scores=`: regex `{pattern}`: {error}; write a regular expression of Python") from None

    def measure(_: Question, answer: str) -> Measured:
        try:
            return float(compiled.search(answer, timeout=PATTERN_SECONDS, concurrent=True) is not None)
        except TimeoutError:
            return TOO_LONG.format(PATTERN_SECONDS)

    return measure


def _text(path: Path, spec: str) -> str:
    """Read the text of a file that a score names."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"`scores={spec}`: {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"`scores={spec}`: {path}: is not UTF-8; save it as UTF-8") from None


def _of_schema(text: str, spec: str) -> Callable[[Question, str], Measured]:
    """Return a function that checks if an answer is JSON valid under the schema. The registry fetches no documents."""
    try:
        import jsonschema
        from referencing import Registry
    except ImportError:
        raise UsageError(f"`scores={spec}`: needs jsonschema; install it: pip install jsonschema") from None
    try:
        schema = from_json(text)
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
    except (ValueError, TypeError, jsonschema.SchemaError) as error:
        why = getattr(error, "message", None) or error
        raise UsageError(f"`scores={spec}`: is not a JSON schema: {why!s:.300}") from None
    validator = kind(schema, registry=Registry())

    def measure(_: Question, answer: str) -> Measured:
        try:
            value = from_json(answer, allow_inf_nan=False)
        except ValueError:
            return 0.0
        return float(validator.is_valid(value))

    return measure


def measured_precision(question: Question, response: Response, *, k: int) -> Measured:
    """Return the context precision in the first k, or the reason why retrieval was not measured."""
    relevance = checked_relevance(question, response)
    return relevance if isinstance(relevance, str) else context_precision(relevance.ranks, k)


def _of_prices(prices: Prices | None) -> Callable[[Question, Response], Measured]:
    """Return a function that computes the US dollars that 1,000 questions like this one cost.

    It prices the tokens that the target reports; counted or estimated tokens have no price. Runs with different prices
    are compared: a model that costs more is a change.
    """
    if prices is None:
        raise UsageError("`scores=cost`: needs what tokens cost; give `price_in=` and `price_out=`")

    def measure(_: Question, response: Response) -> Measured:
        return NO_USAGE if response.usage is None else QUESTIONS * prices.cost(response.usage)

    return measure
