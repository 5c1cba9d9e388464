"""Built-in scores that need no judge: words, citations, tools, patterns, JSON schemas, context precision and cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.judges.own_scores import measured_value, own_score
from evaltrack.metrics.answers import (
    NO_ANSWER,
    citation_precision,
    citation_recall,
    contains,
    exact_match,
    token_f1,
    tool_arguments,
    tool_order,
)
from evaltrack.metrics.measure import checked_relevance
from evaltrack.metrics.retrieval import context_precision
from evaltrack.metrics.tokens import Prices
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.targets.threads import aside

CONTEXT_PRECISION, COST = "context_precision", "cost"

QUESTIONS = 1000
"""The number of questions that a cost is for. The cost of one would be 0.000 in tables."""

NO_USAGE = "the target reports no usage"
NO_EXPECTED_ANSWER = "the question has no expected_answer"

Measured = float | str
"""A value, or the reason for no value."""

WORDS: dict[str, Callable[[str, str], float]] = {
    "exact_match": exact_match,
    "token_f1": token_f1,
    "contains": contains,
}
"""Scores that compare the answer's words with those of the expected answer."""

PATTERN, SCHEMA = "regex", "json_schema"
PATTERN_SECONDS = 2.0
"""Seconds after which the search for a user's pattern in one answer is stopped."""

TOO_LONG = "the pattern did not end within {:g} s"

OF_RESPONSES: dict[str, Callable[[Question, Response], Measured]] = {
    "citation_precision": citation_precision,
    "citation_recall": citation_recall,
    "tool_order": tool_order,
    "tool_arguments": tool_arguments,
}
"""Scores that need more than the answer: its sources, or the tool calls."""

MAX_SCHEMA = 1_000_000
"""The largest size of a JSON schema, in bytes."""


LONG_RESPONSE = 100_000
"""Characters of an answer and its sources above which a score is computed in a thread."""


class BuiltinScorer(Scorer):
    """A named function of a question and a response. `said` identifies it in its digest.

    With `may_hang` it matches the patterns of a schema, which may block its whole process.
    """

    measures_raw = True

    def __init__(
        self, name: str, spec: str, said: list[Any], function: Callable[[Question, Response], Measured], **fields: Any
    ) -> None:
        kind = spec.partition(":")[0]
        self.may_hang, self._takes_long = kind == SCHEMA, kind == PATTERN
        self.declared = (own_score(name, spec, said, **{"span": 1.0, **fields}),)
        self.measure = function

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """Return the value, or the reason for no value."""
        (score,) = self.declared
        texts = (response.answer, *(source.text for source in response.sources or ()))
        is_long = self._takes_long or sum(len(text) for text in texts if text) > LONG_RESPONSE
        asked = (question, response)
        return measured_value(score.name, await aside(self.measure, *asked) if is_long else self.measure(*asked))


def open_builtin(spec: str, name: str = "") -> BuiltinScorer | None:
    """Return the score that `spec` names, such as ``exact_match`` or ``regex:PATTERN``; None for other names.

    Raises:
        UsageError: the pattern or the schema cannot be read.
    """
    kind, colon, rest = spec.partition(":")
    name = name or kind
    if kind in WORDS and not colon:
        return BuiltinScorer(name, spec, [name, kind], _of_answer(_of_words(WORDS[kind])), binary=kind != "token_f1")
    if kind in OF_RESPONSES and not colon:
        return BuiltinScorer(name, spec, [name, kind], OF_RESPONSES[kind])
    if kind == PATTERN and colon:
        return BuiltinScorer(name, spec, [name, spec], _of_answer(_of_pattern(rest)), binary=True)
    if kind == SCHEMA and colon:
        text = bounded_text(Path(rest), MAX_SCHEMA, spec, "name a JSON schema")
        return BuiltinScorer(name, spec, [name, kind, text], _of_answer(_of_schema(text, spec)), binary=True)
    return None


def _of_answer(function: Callable[[Question, str], Measured]) -> Callable[[Question, Response], Measured]:
    """Return a function of the response, which may have no answer."""

    def measure(question: Question, response: Response) -> Measured:
        return NO_ANSWER if response.answer is None else function(question, response.answer)

    return measure


def _of_words(function: Callable[[str, str], float]) -> Callable[[Question, str], Measured]:
    def measure(question: Question, answer: str) -> Measured:
        if question.expected_answer is None:
            return NO_EXPECTED_ANSWER
        return function(answer, question.expected_answer)

    return measure


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


def bounded_text(path: Path, most: int, spec: str, cure: str) -> str:
    """Read the text of a file that a score names, of at most `most` bytes.

    Raises:
        UsageError: it is larger, is not UTF-8, or cannot be read.
    """
    try:
        if path.stat().st_size > most:
            raise UsageError(f"`scores={spec}`: {path}: is larger than {most:,} bytes; {cure}")
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
        from referencing.exceptions import Unresolvable
    except ImportError:
        raise UsageError(f"`scores={spec}`: needs jsonschema; install it: pip install jsonschema") from None
    try:
        schema = json.loads(text)
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
    except (ValueError, RecursionError, TypeError, jsonschema.SchemaError) as error:
        why = getattr(error, "message", None) or error
        raise UsageError(f"`scores={spec}`: is not a JSON schema: {why!s:.300}") from None
    validator = kind(schema, registry=Registry())

    def measure(_: Question, answer: str) -> Measured:
        try:
            return float(validator.is_valid(json.loads(answer, parse_constant=_refuse)))
        except (ValueError, RecursionError):
            return 0.0
        except Unresolvable as error:
            return f"the schema refers to a missing part: {error!s:.200}"

    return measure


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def context_precision_scorer(name: str, k: int) -> BuiltinScorer:
    """Return the score for the mean precision at the rank of each relevant source in the first k."""
    name = name or CONTEXT_PRECISION

    def measure(question: Question, response: Response) -> Measured:
        return measured_precision(question, response, k)

    return BuiltinScorer(name, CONTEXT_PRECISION, [name, CONTEXT_PRECISION], measure)


def measured_precision(question: Question, response: Response, k: int) -> float | str:
    """Return the context precision in the first k, or the reason why retrieval was not measured."""
    relevance = checked_relevance(question, response)
    return relevance if isinstance(relevance, str) else context_precision(relevance.ranks, k)


def cost_scorer(name: str, prices: Prices | None) -> BuiltinScorer:
    """Return the score for the US dollars that 1,000 questions like this one cost.

    It prices the tokens that the target reports; counted or estimated tokens have no price. Runs with different prices
    are compared: a model that costs more is a change.

    Raises:
        UsageError: there are no prices.
    """
    if prices is None:
        raise UsageError("`scores=cost`: needs what tokens cost; give `price_in=` and `price_out=`")

    def measure(_: Question, response: Response) -> Measured:
        return NO_USAGE if response.usage is None else QUESTIONS * prices.cost(response.usage)

    return BuiltinScorer(name or COST, COST, [COST], measure, span=None, higher_is_better=False)
