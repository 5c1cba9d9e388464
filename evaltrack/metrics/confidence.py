"""Reads the confidence that a text expresses, in percent: English words, and numbers in any language.

`read_confidence` reads words that a judge quoted as such a claim. Phrases that claim nothing ("hard to predict with
certainty", "95 % of users", "a 95 % confidence interval") are distinguished from phrases that cannot be read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from typing import Any
from unicodedata import normalize

_LISTS: Mapping[str, Any] = tomllib.loads(files(__package__).joinpath("confidence.toml").read_text("utf-8"))

WORDS: Mapping[str, float] = {word: float(percent) for percent, kind in _LISTS["percent"].items() for word in kind}
"""Words -> the confidence that they express, in percent, inside the band of the coupling table."""


def _any(name: str) -> str:
    """Return a pattern of any word in a list."""
    return f"(?:{'|'.join(_LISTS['words'][name])})"


_CERTAINLY, _MAYBE, _ADJECTIVE, _NOUN = map(_any, ("certainly", "maybe", "adjective", "noun"))
_STRONG, _FAIR, _WEAK = map(_any, ("strong", "fair", "weak"))
_PERCENT, _BOUND = map(_any, ("percent_sign", "bound"))
_DEGREE = r"(?:(?:degree|level) of )?"
_TO = r"(?: to |-to-|-| / ?|/)"
_PHRASES: Mapping[str, float] = {
    rf"{_CERTAINLY} (?:\w+ ){{0,2}}?{_MAYBE}|(?:might|may|could) (?:very )?(?:well|{_CERTAINLY})": 60.0,
    rf"{_any('somewhat')} {_ADJECTIVE}": 60.0,
    rf"{_CERTAINLY} (?:un|not )(?:certain|likely|clear|sure)|less {_ADJECTIVE}(?: than)?": 40.0,
    rf"{_CERTAINLY} (?:\w+ )?(?:likely|probable)|{_any('fairly')} {_ADJECTIVE}": 80.0,
    r"with (?:absolute|near|complete|full|total|utter) certainty|without (?:a |any )?(?:\w+ )?(?:shadow of a )?doubt"
    r"|beyond (?:a |any |all )?(?:\w+ )?doubt|no doubt (?:whatsoever|at all)": 95.0,
    rf"{_FAIR}(?:{_TO}{_STRONG})? {_DEGREE}{_NOUN}": 60.0,
    rf"{_WEAK}(?:{_TO}{_FAIR})? {_DEGREE}{_NOUN}": 40.0,
    rf"{_STRONG} {_DEGREE}{_NOUN}": 80.0,
}
"""Phrases whose meaning differs from that of their words. The first match counts."""

_WORD = re.compile(
    rf"\b(?:(?P<phrase>{'|'.join(_PHRASES)})"
    rf"|{'|'.join(sorted(WORDS, key=len, reverse=True)).replace(' ', '[ -]')})\b(?! (?:20|19)\d\d\b)"
)
_N = r"\d{1,3}(?:[.,]\d{1,9})?"
_SHARE = (
    rf"[ -]?(?:(?:of|der|des|de (?:los|las|nos)|dei|delle)\b(?! (?:{_NOUN}|being)\b)"
    rf"|{_any('share')}\b|confidence {_BOUND}s?\b)"
)
_NUMBER = re.compile(
    rf"(?<![a-z0-9_.,/-])(?:{_any('about')} ?)*"
    r"(?:(?:(?:no|not) (?:more|less) than|at (?:least|most)|up to|[≥≤]|[<>]=) ?"
    r"|(?P<over>(?:more than|over|above|>) ?)|(?P<under>(?:less than|under|below|<) ?))?(?:"
    r"(?P<hits>\d{1,4})(?: (?:in|out of) | ?/ ?(?=100?\b))(?P<all>[1-9]\d{0,3})"
    r"|(?P<share>0?[.,]\d{1,9}|1\.0{1,9})(?: ?(?:[-–]|to|and) ?(?P<to>0?[.,]\d{1,9}|1\.0{1,9}))?"
    rf"|(?P<between>between )?(?P<low>{_N})(?: ?{_PERCENT}? ?(?(between)and|(?:[-–]|to|and)) ?(?P<high>{_N}))?"
    rf" ?{_PERCENT})(?![a-z0-9_%/]|\.\d|{_SHARE})"
)
_ANY_NUMBER = re.compile(rf"\d ?{_PERCENT}")
_AFTER = re.compile(rf"[ (-]*(?:{_NOUN}|{_ADJECTIVE})\b(?! {_BOUND}s?\b)")
_BEFORE = re.compile(
    rf"(?:\b(?:{_NOUN}|{_any('foreign_noun')}|p ?\([^()=]{{1,60}}\))(?: (?:level|score|rating|here|now))?"
    r"(?: (?:of|that|in|for) [^.,;:!?=0-9]{1,60}?(?= is | at | ?[=:≈~]| ?\Z))?"
    rf"(?: ?[:=~≈(–-]| {_any('link')}|(?: very)? (?:high|medium|moderate|low)(?= ?\())*"
    rf"|\b(?:{_ADJECTIVE}|than not|possible|unlikely|uncertain) ?[(:,–-]+"
    rf"|\b(?:i|we)(?:'d| would)?(?: \w+)? (?:say|put|give|assign|estimate|guess)(?: \w+){{0,3}})"
    r" ?\Z"
)
_ALONE = re.compile(r"(?:i'd say|[ .!?()~≈])*")
_CHANGE = re.compile(rf"\b{_any('change')}(?: by| to)? ?\Z")
_NO_CLAIM = re.compile(
    r"\b(?:as|if|when|where|wherever|whether|all|any|many|several|other|various|these|those|every)"
    r" possible\b(?: \w+s\b)?"
    rf"|\bma(?:k|d)\w+ sure\b|\b(?:be sure to|to be sure)\b|(?:^|[.;] ?)sure(?= ?[,!])|\bno guarantees?\b"
    rf"|\bhow (?:{_ADJECTIVE}|possible)\b|\b{_CERTAINLY} (?:\w+ )?(?:worth|an? (?:option|risk)|room|some|many)\b"
    r"|(?:^|[.;:,] ?|\b(?:a|in|under|for|of|by|on|with|from|to|at|some|only|has|have|there are) )certain "
    r"(?!(?:that|of|to|about|and|or|but|it|we|i)\b)(?=\w)"
    rf"|\b{_any('hard')}\b(?: [\w']+){{0,7}}?"
    r" (?:with(?: [\w%.]+){0,3} (?:certainty|confidence)|for (?:sure|certain))\b(?: (?:is )?(?:hard|impossible)\b)?"
    r"|\bwith(?: [\w%.]+){0,2} certainty is (?:hard|difficult|impossible|not possible)\b"
    rf"|\b(?:confidence|credible|prediction) {_BOUND}s? ?(?:\(|of |at )+\d+ ?%\)?"
    rf"|\b(?:significan\w+|alpha)(?: level)? (?:at|of) (?:the )?{_N} ?{_PERCENT}(?: (?:confidence )?level)?"
    r"|\bp ?(?:-?value)? ?[<>=≤≥] ?0?\.\d+"
)
_RATED = re.compile(
    r"\b(confidence|certainty|likelihood|probability|chances|odds)(?: level)?"
    r"(?: (?:in|of|about|for|that) [^.,;:!?=0-9]{1,60}?(?= (?:is|are) ))?(?: is| are| ?[:–-])*"
    r" (?:\w+ly )?((?:very )?high|good|strong|moderate|medium|fair|low|slim|small)\b(?! ?\()"
)
_BREAK = re.compile(r"[;:!?,]|\.(?!\d)|\b(?:but|and|though|although|because|since|while|whereas|however)\b")
_NEGATED = re.compile(
    rf"(?:(?:\b{_any('negation')}\b|n't\b)(?:\W+[\w']+){{0,4}}|\b(?:less(?: than)?|no|non|without being))\W*\Z"
)
_SPELT = re.compile(r"[a-z][ -]per ?cent\b|\b(?:one|two|three|four|nine)(?: times)? (?:in|out of) \w+")
"""Numbers in words, which are not read."""


@dataclass(frozen=True)
class Reading:
    """The confidence that a text expresses: `percent`, or None if the text claims none that can be read.

    `unread` is True if the text may claim one that is not read here. It is False if all words of certainty and all
    percentages in the text are known to claim nothing.
    """

    percent: float | None
    unread: bool = False


def read_confidence(text: str) -> Reading:
    """Return the confidence that a text expresses. The strongest claim counts.

    - Words count as in `WORDS`, phrases as in `_PHRASES`: "certainly possible" is possible, "fairly sure" is likely.
      "In certain cases", "if possible", "make sure" and "hard to predict with certainty" claim nothing.
    - Numbers ("95 %", "9 in 10", "0.8", "70-90 %", ">90 %") count next to a word of probability ("80 % sure", "the
      chance is 9 in 10", "likely (80 %)"). They replace that word: "30 % likely" is 30. If no word claims anything, a
      lone percentage counts, except for shares, changes and intervals: "95 % of users", "fell by 30 %", "a 95 %
      confidence interval". A range is read at its middle, "more than 90 %" as 90.5.
    - A claim that is negated within five words of its clause ("not certain", "far from 90 % sure") is 40 if it is 50 or
      more, else 60.
    - Only words are read, not their sense: a claim that is asked or supposed counts like any other.
    """
    plain = _plain(text)
    if _SPELT.search(plain):
        return Reading(None, unread=True)
    text = _NO_CLAIM.sub(" ", plain)
    text = _RATED.sub(r"\2 \1", text)
    numbers_found = [
        each for each in _NUMBER.finditer(text) if not _CHANGE.search(text, each.start() - 40, each.start())
    ]
    claims, spent = list[float](), set[int]()
    for number in numbers_found:
        before = _BEFORE.search(text, number.start() - 120, number.start())
        after = _AFTER.match(text, number.end())
        start, end = (before or number).start(), (after or number).end()
        spent.update(range(start, end))
        if before or after or (len(text) < 120 and _ALONE.fullmatch(text[:start] + text[end:])):
            claims.append(_unless_negated(_percent(number), text, start))
    for word in _WORD.finditer(text):
        if spent.isdisjoint(range(*word.span())):  # no number replaces it
            claims.append(_unless_negated(_worth(word), text, word.start()))
    if claims:
        return Reading(max(claims))
    numbers = [each for each in numbers_found if each["low"]]
    if len(numbers) == 1 and _largest(numbers[0]) <= 100:
        return Reading(_unless_negated(_percent(numbers[0]), text, numbers[0].start()))
    is_expressed = text != plain or _ANY_NUMBER.search(text) is not None
    return Reading(None, unread=not is_expressed or len(numbers) > 1)


def _plain(text: str) -> str:
    """Return the text in lower case on one line, without markup."""
    text = normalize("NFKC", text).casefold().translate(str.maketrans("’‘“”„«»", "''" + 5 * '"'))
    text = re.sub(r"\n\s*(?:[-*•]|[0-9]+[.)]|\n)", "; ", text)
    return " ".join(re.sub(r"[*_`]|(?<=\bun)-", "", text).split())


def _worth(word: re.Match[str]) -> float:
    if word["phrase"]:
        return next(percent for pattern, percent in _PHRASES.items() if re.fullmatch(pattern, word[0]))
    return WORDS[word[0].replace("-", " ")]


def _largest(number: re.Match[str]) -> Fraction:
    return max(Fraction(end.replace(",", ".")) for end in number.group("low", "high") if end)


def _percent(number: re.Match[str]) -> float:
    if number["low"]:
        low, high = (Fraction(end.replace(",", ".")) for end in (number["low"], number["high"] or number["low"]))
        value = (low + high) / 2
    else:
        ends = [end.replace(",", ".") for end in number.group("share", "to") if end]
        ends = ends or [f"{number['hits']}/{number['all']}"]
        value = 100 * sum(map(Fraction, ends), Fraction()) / len(ends)
    value += Fraction(bool(number["over"]) - bool(number["under"]), 2)
    return min(max(float(value), 0.0), 100.0)


def _unless_negated(claim: float, text: str, start: int) -> float:
    aside = re.sub(r"(\bnot|n't),[^,.;:]{1,30},", r"\1", text[max(start - 120, 0) : start])  # "not, I fear, certain"
    return claim if _NEGATED.search(_BREAK.split(aside)[-1]) is None else 40.0 if claim >= 50 else 60.0
