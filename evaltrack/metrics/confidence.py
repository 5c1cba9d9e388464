"""Reads the confidence that a text expresses, in percent, from English words and from numbers in any language.

`read_confidence` reads words that a judge quoted as such a claim. Phrases that claim nothing ("hard to predict with
certainty", "95 % of users", "a 95 % confidence interval") are distinguished from phrases that cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from unicodedata import normalize

_KINDS = {
    95: "certain,almost certain,certainly,with certainty,definitely,undoubtedly,no doubt,without doubt,without a doubt,"
    "beyond doubt,sure,surely,for sure,very high confidence,unquestionably,undeniably,indisputably,guaranteed,"
    "without question,beyond question",
    80: "likely,confident,confidently,probable,probably,high confidence,presumably,in all likelihood,"
    "in all probability,little doubt",
    60: "possible,possibly,might,may,could,perhaps,maybe,plausible,plausibly,conceivable,conceivably,potentially,"
    "a possibility,more likely than not,more likely,more probable,moderate confidence,medium confidence",
    50: "as likely as not,as likely,equally likely,equally probable,fifty fifty,toss up,coin flip,coin toss,50 50,"
    "50/50,could go either way",
    40: "uncertain,unsure,unclear,unlikely,improbable,doubtful,i doubt,we doubt,low confidence,anything but certain",
}
WORDS: Mapping[str, float] = {word: float(percent) for percent, kind in _KINDS.items() for word in kind.split(",")}
"""Words -> the confidence that they express, in percent, inside the band of the coupling table."""

_CERTAINLY = r"(?:certainly|definitely|surely|undoubtedly|unquestionably|no doubt|absolutely)"
_MAYBE = r"(?:possible|possibly|plausible|conceivable|(?:\w+ )?possibility|might|may|could|maybe|perhaps)"
_ADJECTIVE = r"(?:confident|certain|sure|likely|probable)"
_NOUN = r"(?:confidence|certainty|probability|likelihood|chances?|odds|possibility|credence)"
_STRONG, _FAIR = (
    r"(?:high|strong|good|great|excellent|considerable)",
    r"(?:moderate|medium|fair|reasonable|decent|some)",
)
_WEAK = r"(?:low|small|slim|slight|little|remote|poor|minimal|limited)"
_DEGREE = r"(?:(?:degree|level) of )?"
_PHRASES: Mapping[str, float] = {
    rf"{_CERTAINLY} (?:\w+ ){{0,2}}?{_MAYBE}|(?:might|may|could) (?:very )?(?:well|{_CERTAINLY})": 60.0,
    rf"(?:somewhat|moderately|cautiously|modestly|mildly|slightly|partly|partially) {_ADJECTIVE}": 60.0,
    rf"{_CERTAINLY} (?:un|not )(?:certain|likely|clear|sure)|less {_ADJECTIVE}(?: than)?": 40.0,
    rf"{_CERTAINLY} (?:\w+ )?(?:likely|probable)"
    rf"|(?:fairly|pretty|quite|reasonably|relatively|rather|mostly) {_ADJECTIVE}"
    r"|with (?:\w+ )?reasonable certainty": 80.0,
    rf"(?:considerable|significant|substantial|great|much|high|deep|real|large) {_DEGREE}uncertainty": 40.0,
    r"with (?:absolute|near|complete|full|total|utter) certainty|without (?:a |any )?(?:\w+ )?(?:shadow of a )?doubt"
    r"|beyond (?:a |any |all )?(?:\w+ )?doubt|no doubt (?:whatsoever|at all)": 95.0,
    rf"{_FAIR}(?: to |-to-|-| / ?|/){_STRONG} {_DEGREE}{_NOUN}|{_FAIR} {_DEGREE}{_NOUN}": 60.0,
    rf"{_WEAK}(?: to |-to-|-| / ?|/){_FAIR} {_DEGREE}{_NOUN}|{_WEAK} {_DEGREE}{_NOUN}": 40.0,
    rf"very high {_DEGREE}(?:confidence|certainty)": 95.0,
    rf"{_STRONG} {_DEGREE}{_NOUN}": 80.0,
    rf"(?:real|distinct|genuine|good|strong) {_MAYBE}": 60.0,
}
"""Phrases whose meaning differs from that of their words. The first match counts."""

_WORD = re.compile(
    rf"\b(?:(?P<phrase>{'|'.join(_PHRASES)})"
    rf"|{'|'.join(sorted(WORDS, key=len, reverse=True)).replace(' ', '[ -]')})\b(?! (?:20|19)\d\d\b)"
)
_N = r"\d{1,3}(?:[.,]\d{1,9})?"
_PERCENT = r"(?:%|percent|per cent|pct|prozent|pour cent|por ciento|per cento|procent\w*|процент\w*|パーセント)"
_ABOUT = (
    r"(?:(?:approximately|approx\.?|roughly|about|around|circa|nearly|almost|close to|maybe|perhaps|probably|possibly"
    r"|likely|only|just|something like|somewhere(?: around| near)?"
    r"|between(?= 0?[.,])|in the (?:range|region) of|estimated (?:at|to be)|an?"
    r"|[~≈]) ?)*"
)
_SHARE = (
    rf"[ -]?(?:(?:of|der|des|de (?:los|las|nos)|dei|delle)\b(?! (?:{_NOUN}|being)\b)"
    r"|(?:stacked|interval|credible|prediction|ci|significance|more|less|fewer|higher|lower|faster|slower|cheaper|larger"
    r"|smaller|growth|increase|decrease|drop|decline|rise|reduction|discount|off|(?:\w+ )?rate|coverage"
    r"|share|uptime|availability|margin|accuracy|threshold)\b"
    r"|confidence (?:interval|level|limit|bound|region|band)s?\b)"
)
_NUMBER = re.compile(
    rf"(?<![a-z0-9_.,/-]){_ABOUT}(?:(?:(?:no|not) (?:more|less) than|at (?:least|most)|up to|[≥≤]|[<>]=) ?"
    r"|(?P<over>(?:more than|over|above|>) ?)|(?P<under>(?:less than|under|below|<) ?))?(?:"
    r"(?P<hits>\d{1,4})(?: (?:in|out of) | ?/ ?(?=100?\b))(?P<all>[1-9]\d{0,3})"
    r"|(?P<share>0?[.,]\d{1,9}|1\.0{1,9})(?: ?(?:[-–]|to|and) ?(?P<to>0?[.,]\d{1,9}|1\.0{1,9}))?"
    rf"|(?P<between>between )?(?P<low>{_N})(?: ?{_PERCENT}? ?(?(between)and|(?:[-–]|to|and)) ?(?P<high>{_N}))?"
    rf" ?{_PERCENT})(?![a-z0-9_%/]|\.\d|{_SHARE})"
)
_ANY_NUMBER = re.compile(rf"\d ?{_PERCENT}")
_FOREIGN = (
    r"wahrscheinlichkeit|probabilit[éàa]|probabilidade?|вероятност\w*|confiance|confianza|確率|概率|確信度|置信度"
)
_AFTER = re.compile(rf"[ (-]*(?:{_NOUN}|{_ADJECTIVE})\b(?! (?:interval|level|limit|bound)s?\b)")
_BEFORE = re.compile(
    rf"(?:\b(?:{_NOUN}|{_FOREIGN}|p ?\([^()=]{{1,60}}\))(?: (?:level|score|rating|here|now))?"
    r"(?: (?:of|that|in|for) [^.,;:!?=0-9]{1,60}?(?= is | at | ?[=:≈~]| ?\Z))?"
    rf"(?: ?[:=~≈(–-]| (?:is|are|of|at|von|de|d'environ|di|del|etwa|environ"
    r"|около|estimated|to|be|would)|(?: very)? (?:high|medium|moderate|low)(?= ?\())*"
    rf"|\b(?:{_ADJECTIVE}|than not|possible|unlikely|uncertain) ?[(:,–-]+"
    rf"|\b(?:i|we)(?:'d| would)?(?: \w+)? (?:say|put|give|assign|estimate|guess)(?: \w+){{0,3}})"
    r" ?\Z"
)
_ALONE = re.compile(r"(?:i'd say|[ .!?()~≈])*")
_CHANGE = re.compile(
    r"\b(?:by|up|down|fell|falls?|rose|rises?|grew|grows?|drop(?:s|ped)?|gain(?:s|ed)?|lost|cuts?|saves?d?"
    r"|(?:increas|decreas|declin|reduc)\w+|(?:margin|discount|rate|share|growth|drop|rise|cut|tax|accuracy) of)"
    r"(?: by| to)? ?\Z"
)
_NO_CLAIM = re.compile(
    r"\b(?:as|if|when|where|wherever|whether|all|any|many|several|other|various|these|those|every)"
    r" possible\b(?: \w+s\b)?"
    r"|\bmak(?:e|es|ing) sure\b|\bmade sure\b|\bbe sure to\b|\bto be sure\b|(?:^|[.;] ?)sure(?= ?[,!])|\bsure enough\b"
    rf"|\b{_CERTAINLY} (?:\w+ )?(?:worth|an? (?:option|argument|case|factor|risk|challenge)|room|some|many|reasons?)\b"
    rf"|\bhow (?:very )?(?:{_ADJECTIVE}|possible|plausible)\b|\bno guarantees?\b|\bsame likelihood\b"
    r"|(?:^|[.;:,] ?|\b(?:a|in|under|for|of|by|on|with|from|to|at|some|only|has|have|there are) )certain "
    r"(?!(?:that|of|to|about|and|or|but|it|we|i)\b)(?=\w)"
    r"|\b(?:hard(?:er)?|difficult|challenging|tough|tricky|impossible|cannot|cant|can't|not(?! (?:only|just)\b)"
    r"|\w+n't|unable|no(?: one|body)?(?! doubt\b)|never|without|nothing|neither|nor)\b(?: [\w']+){0,7}?"
    r" (?:with(?: [\w%.]+){0,3} (?:certainty|confidence)|for (?:sure|certain))\b(?: (?:is )?(?:hard|impossible)\b)?"
    r"|\bwith(?: [\w%.]+){0,2} certainty is (?:hard|difficult|impossible|not possible)\b"
    r"|\b(?:confidence|credible|prediction) (?:interval|level|limit|bound|region|band)s? ?(?:\(|of |at )+\d+ ?%\)?"
    rf"|\b(?:significan\w+|alpha)(?: level)? (?:at|of) (?:the )?{_N} ?{_PERCENT}(?: (?:confidence )?level)?"
    r"|\bp ?(?:-?value)? ?[<>=≤≥] ?0?\.\d+"
    rf"|(?<=\w )\"(?![^\"]*\b(?:{_NOUN}|{_ADJECTIVE})\b)[^\"]{{0,60}}\d ?%? ?[a-z][^\"]{{0,60}}\""
)
_RATED = re.compile(
    r"\b(confidence|certainty|likelihood|probability|chances|odds)(?: level)?"
    r"(?: (?:in|of|about|for|that) [^.,;:!?=0-9]{1,60}?(?= (?:is|are) ))?(?: is| are| ?[:–-])*"
    r" (?:\w+ly )?((?:very )?high|good|strong|moderate|medium|fair|low|slim|small)\b(?! ?\()"
)
_BREAK = re.compile(r"[;:!?,]|\.(?!\d)|\b(?:but|and|though|although|because|since|while|whereas|however)\b")
_NEGATED = re.compile(
    r"(?:(?:\b(?:not(?! (?:only|just|merely|simply)\b)|no (?:one|longer|way|reason|means)|never|neither|nor|nobody"
    r"|nothing|hardly|cannot|cant|dont|isnt|scarcely|barely|far from|doubt|(?:impossible|difficult|hard|early) to)\b"
    r"|n't\b)(?:\W+[\w']+){0,4}|\b(?:less(?: than)?|no|non|without being))\W*\Z"
)
_DIGITS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_TENS = {
    **{"ten": 10, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50},
    **{"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90},
}
_SPELT = re.compile(rf"\b({'|'.join(_TENS)})(?:[ -]({'|'.join(_DIGITS)}))?(?=[ -]{_PERCENT}\b)")
_ODDS = re.compile(rf"\b({'|'.join(_DIGITS)}|\d+)( times)?[ -](in|out of)[ -]({'|'.join(_DIGITS)}|\d+)\b")


@dataclass(frozen=True)
class Reading:
    """The confidence that a text expresses: `percent`, or None if the text claims none that can be read.

    If None, `numbers` are the percentages one of which may be meant. `silent` is True if all its words of certainty and
    its percentages are known to claim nothing.
    """

    percent: float | None
    numbers: tuple[float, ...] = ()
    silent: bool = False

    @property
    def settled(self) -> bool:
        """True if a confidence was read or the text claims none."""
        return self.percent is not None or self.silent

    def allows(self, percent: float) -> bool:
        """Return True if a reader who understands more of the text could read this confidence."""
        near = any(abs(percent - number) <= 0.5 for number in self.numbers)
        return not self.settled and (near or not self.numbers)


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
    text = _NO_CLAIM.sub(" ", plain)
    text = _RATED.sub(r"\2 \1", text)
    numbers_found = [
        each for each in _NUMBER.finditer(text) if not _CHANGE.search(text, max(each.start() - 40, 0), each.start())
    ]
    claims, spent = list[float](), set[int]()
    for number in numbers_found:
        before = _BEFORE.search(text, max(number.start() - 120, 0), number.start())
        after = _AFTER.match(text, number.end())
        start, end = (before or number).start(), (after or number).end()
        spent.update(range(start, end))
        if before or after or (len(text) < 120 and _ALONE.fullmatch(text[:start] + text[end:])):
            claims.append(_unless_negated(_percent(number), text, start))
    claims += _of_words(text, spent)
    if claims:
        return Reading(max(claims))
    numbers = [each for each in numbers_found if each["low"]]
    if len(numbers) == 1 and _largest(numbers[0]) <= 100:
        return Reading(_unless_negated(_percent(numbers[0]), text, numbers[0].start()))
    is_expressed = text != plain or (
        _ANY_NUMBER.search(text) is not None and not any(_largest(n) <= 100 for n in numbers)
    )
    return Reading(None, tuple(map(_percent, numbers_found)), is_expressed and not numbers[1:])


def _plain(text: str) -> str:
    """Return the text in lower case on one line, without markup, with the numbers of chances in digits."""
    text = normalize("NFKC", text).casefold().translate(str.maketrans("’‘“”„«»", "''" + 5 * '"'))
    text = re.sub(r"\n\s*(?:[-*•]|[0-9]+[.)]|\n)", "; ", text)
    text = " ".join(re.sub(r"[*_`]|(?<=\bun)-", "", text).split())
    text = re.sub(r"\b(?:one|a) hundred(?=[ -]per ?cent\b)", "100", text)
    text = _SPELT.sub(lambda match: str(_TENS[match[1]] + _DIGITS.get(match[2] or "", 0)), text)
    return _ODDS.sub(_in_digits, text)


def _in_digits(odds: re.Match[str]) -> str:
    hits, every = (_DIGITS.get(number, number) for number in odds.group(1, 4))
    return f"{hits} {odds[3]} {every}" + (" chance" if odds[2] else "")


def _of_words(text: str, spent: set[int]) -> Iterator[float]:
    """Yield the confidence of each word that no number replaces."""
    for word in _WORD.finditer(text):
        if spent.isdisjoint(range(*word.span())):
            yield _unless_negated(_worth(word), text, word.start())


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
