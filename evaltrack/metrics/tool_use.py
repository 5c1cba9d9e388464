"""How an agent called its tools, against what a question expects. Pure."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from evaltrack.records import Question, Response

NO_TOOLS = "the question expects no tools"
NO_ARGUMENTS = "the question expects no arguments of tools"


def tool_order(question: Question, response: Response) -> float | str:
    """How much of the expected sequence of tools was called in its order; in [0, 1], or why it is not measured.

    The length of the longest common subsequence of the expected names and the called ones, over the number of expected
    names: the recall of ROUGE-L (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", section 3.1) with
    tools as words. Calls in between cost nothing. 1 says that all expected calls were made in their order.
    """
    expected = question.expected_tools
    if not expected:
        return NO_TOOLS
    return common_subsequence(expected, [call.name for call in response.tool_calls]) / len(expected)


def common_subsequence(expected: Sequence[str], calls: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    Bit by bit (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"), as a response may hold 100,000 calls: bit
    i of `open_places` is 0 where the length grows at the expected name i.
    """
    places: defaultdict[str, int] = defaultdict(int)
    for place, name in enumerate(expected):
        places[name] |= 1 << place
    all_places = open_places = (1 << len(expected)) - 1
    for name in calls:
        matches = open_places & places.get(name, 0)
        open_places = ((open_places + matches) | (open_places - matches)) & all_places
    return len(expected) - open_places.bit_count()


def tool_arguments(question: Question, response: Response) -> float | str:
    """Of the calls whose arguments are expected the share that was made with them; in [0, 1], or why there is none.

    A call is an expected one if it has the name of the tool and each expected argument with an equal value: equal as
    JSON, 1 and 1.0 too, texts letter by letter. Further arguments cost nothing. Each call stands for one expected call
    at most, in the assignment that fulfils the most of them. The order of calls counts in `tool_order` alone.
    """
    pairs = zip(question.expected_tools, question.expected_arguments, strict=False)
    expected = [_facts(name, arguments) for name, arguments in pairs if arguments]
    if not expected:
        return NO_ARGUMENTS
    wanted = set().union(*expected)
    calls = Counter(frozenset(_facts(call.name, call.arguments) & wanted) for call in response.tool_calls)
    return _most_fulfilled(expected, calls) / len(expected)


Fact = tuple[str, str, str]
"""The name of a tool, of an argument, and its value as JSON."""


def _facts(tool: str, arguments: Mapping[str, Any]) -> frozenset[Fact]:
    return frozenset((tool, name, _as_json(value)) for name, value in arguments.items())


def _as_json(value: object) -> str:
    """One text for all values that are equal as JSON."""
    return json.dumps(_with_whole_numbers(value), sort_keys=True, default=str)


def _with_whole_numbers(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _with_whole_numbers(item) for key, item in value.items()}
    return [_with_whole_numbers(item) for item in value] if isinstance(value, list | tuple) else value


def _most_fulfilled(expected: Sequence[frozenset[Fact]], calls: Mapping[frozenset[Fact], int]) -> int:
    """How many expected calls can have a call of their own: a largest matching (Hopcroft and Karp 1973).

    A call that carries all facts of an expected one is a candidate for it.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    made = [facts for facts, times in calls.items() if facts for _ in range(min(times, len(expected)))]
    fits = [(row, at) for row, wanted in enumerate(expected) for at, facts in enumerate(made) if wanted <= facts]
    if not fits:
        return 0
    graph = csr_array(([1] * len(fits), tuple(zip(*fits, strict=True))), shape=(len(expected), len(made)))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
