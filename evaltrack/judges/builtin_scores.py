"""Makes built-in scorers without a judge: words, citations, tools, patterns, JSON schemas, context precision, cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.judges.own_scores import measured_values, own_score
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
from evaltrack.metrics.measure import Rules, checked_relevance
from evaltrack.metrics.retrieval import context_precision
from evaltrack.metrics.tokens import Prices
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.targets.threads import aside

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

MAX_SCHEMA = 1_000_000
"""The largest size of a JSON schema, in bytes."""


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
        asked = (question, response)
        measured = await aside(self.measure, *asked) if self._takes_long else self.measure(*asked)
        return measured_values({score.name: measured})


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
    "citation_precision": citation_precision,
    "citation_recall": citation_recall,
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
