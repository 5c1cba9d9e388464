"""Scores answers and tool calls: words compared with the expected answer, calls of tools.

**Words.** Exact match and token F1 as SQuAD defines them (Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine
Comprehension of Text", section 6.1). Empty answers are treated as in SQuAD 2.0 (Rajpurkar et al. 2018). Texts are
compared without case, punctuation and the English articles a, an and the. None of these numbers says if an answer is
right: a near miss shares most of its words.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from unicodedata import normalize

from evaltrack.records import Question, Response

NO_ANSWER = "the target gave no answer"

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def squad_words(text: str) -> list[str]:
    """Return the words to compare: NFC, lower case, no ASCII punctuation, no articles, split at white space."""
    return _ARTICLES.sub(" ", normalize("NFC", text).lower().translate(_PUNCTUATION)).split()


def exact_match(answer: str, expected: str) -> float:
    """Return 1 if both have the same words in the same order, else 0."""
    return float(squad_words(answer) == squad_words(expected))


def token_f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words, repeats counted.

    If either has no word, it is 1 if both have none, else 0.
    """
    given, wanted = squad_words(answer), squad_words(expected)
    if not given or not wanted:
        return float(given == wanted)
    common = (Counter(given) & Counter(wanted)).total()
    if not common:
        return 0.0
    precision, recall = common / len(given), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def contains(answer: str, expected: str) -> float:
    """Return 1 if the answer has the words of the expected answer one after the other, else 0.

    Words are compared whole: ``art`` is not in ``party``. An expected answer without a word is in every answer.
    """
    wanted = squad_words(expected)
    return float(not wanted or f" {' '.join(wanted)} " in f" {' '.join(squad_words(answer))} ")


NO_TOOLS = "the question expects no tools"
NO_ARGUMENTS = "the question expects no arguments of tools"


def tool_order(question: Question, response: Response) -> float | str:
    """Return the share of expected tools that were called in order, in [0, 1], or the reason for no value.

    It is the length of the longest common subsequence of the expected and the called names, over the number of expected
    names. This is the recall of ROUGE-L (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", section
    3.1) with tools as words. Calls in between cost nothing. 1 means that all expected calls were made in order.
    """
    expected = question.expected_tools
    if not expected:
        return NO_TOOLS
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(expected, [call.name for call in response.tool_calls]) / len(expected)


def tool_arguments(question: Question, response: Response) -> float | str:
    """Return the share of expected calls that were made with their arguments, in [0, 1], or the reason for no value.

    Only expected calls with arguments count. A call matches an expected one if it has the tool's name and each expected
    argument with an equal value: 1 equals 1.0, texts are compared letter by letter. Further arguments cost nothing.
    Each call matches at most one expected call, in the assignment that matches the most of them: a maximum matching, by
    the algorithm of Hopcroft and Karp (1973). Only `tool_order` scores the order of calls.
    """
    pairs = zip(question.expected_tools, question.expected_arguments, strict=False)
    expected = [(name, arguments) for name, arguments in pairs if arguments]
    if not expected:
        return NO_ARGUMENTS
    calls = response.tool_calls
    fits = [
        (row, place)
        for row, (name, arguments) in enumerate(expected)
        for place, call in enumerate(calls)
        if call.name == name and arguments.items() <= call.arguments.items()
    ]
    if not fits:
        return 0.0
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    graph = csr_array(([1] * len(fits), tuple(zip(*fits, strict=True))), shape=(len(expected), len(calls)))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum()) / len(expected)
