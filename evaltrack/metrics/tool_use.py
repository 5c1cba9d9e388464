"""How an agent called its tools, against what a question expects. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from evaltrack.records import Question, Response

NO_TOOLS = "the question expects no tools"


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
