"""How an answer agrees with the expected one word by word: exact match and token F1 as SQuAD defines them. Pure.

Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text", section 6.1, with the treatment of
empty answers of Rajpurkar et al. 2018 (SQuAD 2.0). Texts are compared without case, punctuation and the English
articles a, an and the. None of these numbers says whether an answer is right: a near miss shares most of its words.
"""

from __future__ import annotations

import re
import string
from collections import Counter

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def words_of(text: str) -> list[str]:
    """The words that are compared: lower case, ASCII punctuation taken out, articles left out, split at white space."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def exact_match(answer: str, expected: str) -> float:
    """1 if both have the same words in the same order, else 0."""
    return float(words_of(answer) == words_of(expected))


def token_f1(answer: str, expected: str) -> float:
    """The harmonic mean of precision and recall of the answer's words, repeats counted.

    Where either has no word it is 1 if both have none, else 0.
    """
    given, wanted = words_of(answer), words_of(expected)
    if not given or not wanted:
        return float(given == wanted)
    common = (Counter(given) & Counter(wanted)).total()
    if not common:
        return 0.0
    precision, recall = common / len(given), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def contains(answer: str, expected: str) -> float:
    """1 if the words of the expected answer stand in the answer one after the other, else 0.

    Whole words: ``art`` is not in ``party``. An expected answer without a word is in every answer.
    """
    return float(f" {' '.join(words_of(expected))} " in f" {' '.join(words_of(answer))} " if words_of(expected) else 1)
