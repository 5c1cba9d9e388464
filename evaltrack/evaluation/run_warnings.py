"""Warns about problems that the numbers of a run hide; each warning checks every finished question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from evaltrack.errors import Guide
from evaltrack.golden.words import plain_form, told_apart
from evaltrack.metrics.measure import NO_SOURCES
from evaltrack.metrics.retrieval import NO_IDS, NO_TEXTS, NO_TITLES, relevant_keys, source_keys
from evaltrack.metrics.rubric_tables import misfits
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Row
from evaltrack.records.base import count, cut, first_of, verb

SHOWN = 3
"""Number of questions that a text names."""

ENOUGH = 10
"""Number of questions after which a warning about misses or unmeasured retrieval is given."""

REASON = 200
"""Maximum characters of a reason in a text."""

CURES = {
    NO_TEXTS: ("quotations are expected, and the sources have no texts; return the `text` of each", Guide.QUOTATIONS),
    NO_SOURCES: ("the target reports no sources; return `sources`, best first", Guide.TARGETS),
    NO_IDS: (f"{NO_IDS}; return the `chunk_id` of each, or add quotations (evaltrack golden anchor)", Guide.IDS),
    NO_TITLES: (f"{NO_TITLES}; return the `title` of each", Guide.IDS),
}
"""The explanation and fix for each reason that retrieval was not measured."""


class RunWarnings:
    """All warnings of a run; `warn` is called while the run can still be stopped.

    A run `of_failed` asks only questions that did not pass before.
    """

    def __init__(
        self, k: int, own_names: Sequence[str], warn: Callable[[str], object], *, of_failed: bool = False
    ) -> None:
        self._failed_trials = FailedTrials()
        self._all = (
            self._failed_trials,
            NothingExpected(warn, of_failed=of_failed),
            ImpossibleGrades(),
            SmallK(k),
            UnmeasuredRetrieval(warn),
            NearIds(),
            OffScale(),
            UnmeasuredScores(own_names),
        )

    def add_trial(self, row: Row) -> None:
        """Add one trial of a question."""
        self._failed_trials.add_trial(row)

    def add(self, row: Row) -> None:
        """Add one finished question, after its trials."""
        for each in self._all:
            each.add(row)

    def texts(self) -> list[str]:
        """Return all texts."""
        return [text for each in self._all for text in each.texts()]


class QuestionWarning:
    """Counts the questions with a problem. Its text names the first questions and shows the first problem."""

    def __init__(self) -> None:
        self.number = 0
        self.example = ""
        self._first: list[str] = []

    def add(self, row: Row) -> None:
        """Add one finished question."""
        if problem := self.problem(row):
            self.number += 1
            self.example = self.example or problem
            self._first += [shown_text(row.question.id)] * (len(self._first) < SHOWN)

    def texts(self) -> Iterator[str]:
        """Yield the warning if a question has the problem."""
        if self.number:
            yield self.text()

    def named(self, noun: str = "question") -> str:
        """Return the number of the questions and the first ids: ``2 questions (1, 2)``."""
        return f"{count(self.number, noun)} ({first_of(self._first, SHOWN, self.number)})"

    def problem(self, row: Row) -> str:
        """Return the problem of a question; empty if it has none."""
        raise NotImplementedError

    def text(self) -> str:
        """Return the warning."""
        raise NotImplementedError


class FailedTrials(QuestionWarning):
    """Warns if some trials of a question failed and the others measure it."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._of_open_questions: dict[int, str] = {}

    def add_trial(self, row: Row) -> None:
        """Add one trial."""
        if row.failure is not None:
            self._number += 1
            self._of_open_questions.setdefault(row.position, str(row.failure))

    def problem(self, row: Row) -> str:
        """Return the error of the first failed trial."""
        error = self._of_open_questions.pop(row.position, "")
        return error if row.passed is not None else ""

    def text(self) -> str:
        """Return the number of failed trials, the first error, and the questions."""
        those = f"{self.named()} {verb(self.number, 'is', 'are')} measured by the others"
        return f"{count(self._number, 'trial')} failed ({shown_text(self.example)[:REASON]}); {those}"


class NothingExpected:
    """Warns if no expected source is ever returned: ids have another form, or texts are from another corpus.

    The warning is given as soon as enough questions are measured; questions `of_failed` all failed before.
    """

    LONGEST = 60
    """Maximum characters of an id or text in the warning."""

    def __init__(self, warn: Callable[[str], object], *, of_failed: bool = False) -> None:
        self._warn, self._came_back = warn, of_failed
        self._measured, self._example, self._is_quoted = 0, "", False

    def add(self, row: Row) -> None:
        """Add one finished question; sources beyond the first k count, too."""
        if self._came_back or row.response is None or "hit" not in row.scores:
            return
        keys = source_keys(row.question, row.response.sources or ())
        by_name = row.finds is None
        self._came_back = not relevant_keys(row.question).isdisjoint(keys) if by_name else any(row.finds or ())
        self._measured += 1
        self._example = self._example or self._example_of(row, keys)
        if self._measured == ENOUGH:
            for text in self.texts():
                self._warn(text)

    def texts(self) -> Iterator[str]:
        """Yield an expected and a returned source of one question."""
        if self._came_back or self._measured < ENOUGH or not self._example:
            return
        questions = f"{self._measured:,} questions"
        if self._is_quoted:
            what = f"no source held an expected quotation in any of {questions}: {self._example}"
            yield f"{what}; are the quotations from the pages that the target searches? {Guide.QUOTATIONS.reference}"
        else:
            what = f"no expected source of {questions} was ever returned: {self._example}"
            yield f"{what}; do the ids match those of the target? {Guide.IDS.reference}"

    def _example_of(self, row: Row, keys: Sequence[str]) -> str:
        """Return an expected source of a question and the first returned one; empty if none can be shown."""
        passages = row.question.expected_passages if row.finds is not None else None
        quotes = [passage.quote for passage in passages or () if passage.quote is not None]
        self._is_quoted = bool(quotes)
        if quotes:
            sources = (row.response.sources if row.response else None) or ()
            texts = [quotes[0], next((source.text for source in sources if source.text), "")]
            expected, returned = (f"“{cut(' '.join(text.split()), self.LONGEST)}”" if text else "" for text in texts)
        else:
            named = next((key for key in keys if not key.startswith("\0")), "")
            names = told_apart(min(row.expected or ()), named) if named else ("", "")
            expected, returned = (cut(name, self.LONGEST) for name in names)
        return f"expected {expected}, returned e.g. {returned}" if returned else ""


class NearIds(QuestionWarning):
    """Warns if a missed id and a returned one differ only in spelling or blanks."""

    def problem(self, row: Row) -> str:
        """Return a missed id and the returned one."""
        if row.response is None or row.finds is not None or "hit" not in row.scores or row.scores["recall_at_k"] == 1:
            return ""
        keys = source_keys(row.question, row.response.sources or ())
        forms = {plain_form(key): key for key in keys}
        for key in relevant_keys(row.question).difference(keys):
            if other := forms.get(plain_form(key)):
                return "expected {}, returned {}".format(*told_apart(key, other))
        return ""

    def text(self) -> str:
        """Return the questions, and the two ids of one of them."""
        what = f"{verb(self.number, 'misses', 'miss')} an id that differs from a returned one only in form or spaces"
        return f"{self.named()} {what}: {self.example}. {Guide.IDS.reference}"


class ImpossibleGrades(QuestionWarning):
    """Warns if a recorded verdict has a grade that its own counts do not allow; an LLM is retried instead."""

    def problem(self, row: Row) -> str:
        """Return the grades and counts that contradict each other."""
        observed = [verdict.observed for verdict in row.verdicts if verdict.observed is not None]
        return "; ".join(words for each in observed for words in misfits(each))

    def text(self) -> str:
        """Return the questions, and the problem of the first."""
        those = f"the verdicts of {self.named()} hold grades that their own counts do not allow, and are kept"
        return f"{those}: {self.example}"


class OffScale(QuestionWarning):
    """Warns if a judge gives scores above 1, which are refused, and also scores of 1: on a scale from 1 its worst."""

    REFUSED = "less than or equal to 1"

    def __init__(self) -> None:
        super().__init__()
        self._ones = 0

    def problem(self, row: Row) -> str:
        """Return the error about a score above 1."""
        self._ones += any(verdict.overall_score == 1 for verdict in row.verdicts)
        return row.failure.message if row.failure is not None and self.REFUSED in row.failure.message else ""

    def texts(self) -> Iterator[str]:
        """Yield the warning if there are scores of both kinds."""
        return super().texts() if self._ones else iter(())

    def text(self) -> str:
        """Return the questions, and the scale to ask the judge for."""
        what = f"the judge gave {self.named()} a score above 1, and {self._ones:,} a 1"
        return f"{what}; if it grades from 1 upwards, 1 is its worst score and counts as the best: ask it for 0 to 1"


class SmallK:
    """Warns if a question expects more than k sources, so that its recall cannot reach 1."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._number = self._most = 0

    def add(self, row: Row) -> None:
        """Add one finished question. Passages do not count: a chunk may hold several."""
        expected = () if row.question.expected_passages is not None else row.expected or ()
        self._number += len(expected) > self._k
        self._most = max(self._most, len(expected))

    def texts(self) -> Iterator[str]:
        """Yield the number of questions, and a sufficient k."""
        if number := self._number:
            what = f"{count(number, 'question')} {verb(number, 'expects', 'expect')} more than k = {self._k} sources"
            cure = f"so recall cannot reach 1; use `k={self._most}`"
            yield f"{what}, {cure}. {Guide.RECALL.reference}"


class UnmeasuredRetrieval:
    """Warns if a question expects sources but its response lacks the data to measure retrieval."""

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn, self._expecting = warn, 0
        self._reasons = dict.fromkeys(CURES, 0)

    def add(self, row: Row) -> None:
        """Add one finished question; declined questions need no sources, and empty ones have their own warning."""
        response, why = row.response, row.unmeasured.get("hit", "")
        self._expecting += "hit" in row.scores or why in CURES
        if response is not None and why in CURES:
            self._reasons[why] += why != NO_SOURCES or not (response.declined or response.holds_nothing)
            if self._expecting == ENOUGH == sum(self._reasons.values()):
                for text in self.texts():
                    self._warn(text)

    def texts(self) -> Iterator[str]:
        """Yield for each reason the number of questions, and the fix."""
        for why, number in self._reasons.items():
            if number:
                what, guide = CURES[why]
                questions = f"{number:,} of {count(self._expecting, 'question')}"
                yield f"the retrieval of {questions} was not measured: {what}. {guide.reference}"


class UnmeasuredScores:
    """Warns if one of the user's own scores was not measured."""

    def __init__(self, names: Sequence[str]) -> None:
        self._numbers, self._reasons = Counter[str](), dict.fromkeys(names, "")
        self._answered = 0

    def add(self, row: Row) -> None:
        """Add one finished question."""
        self._answered += row.response is not None
        for name in self._reasons.keys() & row.unmeasured.keys():
            self._numbers[name] += 1
            self._reasons[name] = self._reasons[name] or row.unmeasured[name]

    def texts(self) -> Iterator[str]:
        """Yield for each score the number of questions, and the first reason."""
        answered = f"{count(self._answered, 'question')} that {verb(self._answered, 'was', 'were')} answered"
        for name, why in self._reasons.items():
            if number := self._numbers[name]:
                yield f"{name} was not measured on {number:,} of {answered}: {shown_text(why)[:REASON]}"
