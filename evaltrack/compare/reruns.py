"""Chooses the questions that a `Rerunner` asks again, and decides which broken ones count: flaky ones do not.

A question that passes once when it is rerun is flaky. One that fails every time is compared with its record, the
earlier trials of the same system. Without a record the baseline may have passed it once by luck. That happens as often
on the candidate: its fixed questions and its failing questions show how often. `scripts/false_alarms` measures how
often two equal systems are called a regression.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from evaltrack.records.base import count
from evaltrack.stats.significance import luck, worse_than_record

RERUNS = 9
"""The most reruns of a question that broke."""

DRAWS = 10
"""The most draws in which lucky passes are counted."""

RECORD_LEVEL, FLAKY_LEVEL = 0.03, 0.2
"""p of all tests against records together below which questions are confirmed; p above which a question is flaky."""

LUCK_LEVEL, UNCLEAR_LEVEL = 0.07, 0.25
"""p of the test against luck below which questions are confirmed, and below which they are unclear."""

UNMEASURED = 2
"""Reruns of a question that were not measured, after which it is not rerun any more."""

LEAST_TRIALS = 3
"""The fewest trials of a record."""

PROBES = 10
"""Questions that are rerun to find if the target varies, or is another one."""

MANY_AS_BEFORE, SHARE_AS_BEFORE, SHARE_TWICE = 3, 0.8, 0.9
"""Questions that give the baseline's answer if another system is rerun, their share, and that of a second time."""

EXPECTED_LEVEL = 0.05
"""p of so many broken questions above which the trials of the baseline explain them."""

RerunState = Literal["confirmed", "flaky", "lucky", "unclear", "not rerun"]
"""The state of a question that broke.

`lucky`: the baseline probably passed it once by luck; `unclear`: it broke or was lucky. Questions that are confirmed or
were not rerun count.
"""


@dataclass(frozen=True)
class Answer:
    """The result of one rerun.

    `passed` is None if it was not measured. `same`: it has the sources of the candidate's run, and its answer if that
    is judged; `same_scores`: its scores; `same_answer`: its sources and its answer. `as_before`: it has the baseline's
    sources, and answer if that is judged; None if the candidate has them too, or if trials of the question differ.
    `judge_changed`: it passed by the judge alone, who read the same as in the candidate's run.
    """

    passed: bool | None
    same: bool
    same_scores: bool
    same_answer: bool = True
    as_before: bool | None = False
    judge_changed: bool = False


class Rerunner(Protocol):
    """Reruns questions of the candidate. `deterministic`: its answers cannot vary; `limit`: the most calls."""

    @property
    def deterministic(self) -> bool:
        """True if a question always has the same answer."""

    @property
    def limit(self) -> int:
        """The most calls."""

    def records(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Return passes and trials of questions in earlier runs of the same system. Some may be missing."""

    def rerun(self, ids: Sequence[str]) -> Mapping[str, Answer]:
        """Ask each of these questions once more."""


@dataclass(frozen=True)
class Rerun:
    """The reruns of one question that broke, and its record: passes and trials in earlier runs.

    `run_passed` and `run_trials` are of the candidate's run; 0 if it asked the question once.
    """

    state: RerunState
    passed: int = 0
    failed: int = 0
    record_passed: int = 0
    record_trials: int = 0
    run_passed: int = 0
    run_trials: int = 0
    judge_changed: bool = False

    @property
    def counts(self) -> bool:
        """True if the question counts for the gate."""
        return self.state in ("confirmed", "not rerun")


@dataclass(frozen=True)
class Reruns:
    """All reruns of a comparison.

    `varied`: scores vary, by reruns or by trials; None if that is not known. `reworded`: answers or sources vary.
    `another_system`: the rerun system is not the candidate. `why_not` is the reason that nothing was rerun, or that
    reruns were not measured. `tokens` and `usd` are the total cost.
    """

    by_id: Mapping[str, Rerun] = field(default_factory=dict)
    calls: int = 0
    varied: bool | None = None
    another_system: bool = False
    reworded: bool = False
    why_not: str | None = None
    tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True)
class Questions:
    """The ids of the questions that may be rerun: broken, fixed, failing on both sides, or otherwise changed ones.

    `fell`: they score lower, and a rule on a mean is exceeded. `trials` holds the candidate's passes and trials of
    broken questions. `by_chance` is the probability of so many broken questions by the trials of the baseline.
    """

    broke: Sequence[str]
    fixed: Sequence[str] = ()
    failing: Sequence[str] = ()
    changed: Sequence[str] = ()
    fell: Sequence[str] = ()
    trials: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    by_chance: float = 0.0


def rerun_questions(questions: Questions, rerunner: Rerunner) -> Reruns:
    """Rerun the questions that broke, and as many others as needed to decide if they count.

    Raises:
        EvaltrackError: the rerunner cannot ask.
    """
    if rerunner.deterministic:
        return Reruns({key: Rerun("confirmed") for key in questions.broke}, varied=False)
    return _Session(questions, rerunner).result()


class _Session:
    """The calls of one comparison, and their results for each question."""

    def __init__(self, questions: Questions, rerunner: Rerunner) -> None:
        self._questions, self._rerunner = questions, rerunner
        self._calls, self._same = 0, True
        self._measured = defaultdict[str, list[Answer]](list)
        self._passed, self._failed, self._unmeasured = Counter[str](), Counter[str](), Counter[str]()
        self._records = rerunner.records(questions.broke) if questions.broke else {}
        self._own = {key: questions.trials.get(key, (0, 1)) for key in questions.broke}

    def result(self) -> Reruns:
        """Rerun, and return the state of each question that broke."""
        states = self._rerun_broken()
        if not self._calls and self._questions.fell:
            self._ask(self._questions.fell[:PROBES])
        another = self._is_another_system()
        consistent = [key for key, state in states.items() if state == "unclear"]
        if another:
            states = {}
        elif consistent and "confirmed" not in states.values():
            state = self._against_luck(len(consistent))
            cut_off = state != "lucky" and not self._same and any(self._failed[key] < RERUNS for key in consistent)
            states |= dict.fromkeys(consistent, "unclear" if cut_off else state)
        measured = [answer for answers in self._measured.values() for answer in answers]
        return Reruns(
            {key: self._rerun(key, state) for key, state in states.items()},
            self._calls,
            not all(each.same_scores for each in measured) if measured else None,
            another,
            reworded=not all(each.same_answer for each in measured),
            why_not=self._why_not([key for key, state in states.items() if state == "not rerun"]),
        )

    def _why_not(self, left_out: Sequence[str]) -> str | None:
        """Return the reasons that reruns were not measured and that these questions were not rerun; None if neither."""
        unmeasured, limit = self._unmeasured.total(), self._rerunner.limit
        words = [f"{unmeasured:,} of {self._calls:,} reruns were not measured"] if unmeasured else []
        if not all(self._unmeasured[key] for key in left_out):
            words.append(f"no more than {count(limit, 'call')}" if self._calls >= limit else "edited since the run")
        return "; ".join(words) or None

    def _ask(self, ids: Sequence[str], kept: int = 0) -> list[str]:
        """Ask each question once, as far as the limit allows without the `kept` calls. Return the asked ids.

        A question with `UNMEASURED` failed reruns is not asked.
        """
        open_ids = [key for key in ids if self._unmeasured[key] < UNMEASURED]
        asked = open_ids[: max(self._rerunner.limit - kept - self._calls, 0)]
        answers = self._rerunner.rerun(asked) if asked else {}
        for key, answer in answers.items():
            counts = {None: self._unmeasured, True: self._passed, False: self._failed}[answer.passed]
            counts[key] += 1
            self._same &= answer.same and answer.passed is not None
            if answer.passed is not None:
                self._measured[key].append(answer)
        self._calls += len(answers)
        return list(answers)

    def _ask_while_failing(self, ids: Sequence[str]) -> list[str]:
        """Rerun each question until it passes once. Return those that failed in all reruns."""
        for _ in range(RERUNS):
            ids = [key for key in self._ask(ids) if not self._passed[key]]
        return [key for key in ids if self._failed[key]]

    def _rerun_broken(self) -> dict[str, RerunState]:
        """Return the state of each question that broke. Those that fail consistently are `unclear` at this point.

        Calls are kept for one round of the questions that fail on both sides: these may show that the target is
        deterministic. None are if answers vary already, or if these questions are too many.
        """
        broke, failing = self._questions.broke, self._questions.failing
        level = RECORD_LEVEL / max(len(broke), 1)
        confirmed = {key for key in broke if self._p_of_record(key) < level}
        open_ids = [key for key in broke if key not in confirmed and not self._own[key][0]]
        for _ in range(RERUNS):
            spared = self._same and 2 * len(failing) <= self._rerunner.limit
            asked = self._ask(open_ids, kept=len(failing) if spared else 0)
            confirmed |= {key for key in asked if self._p_of_record(key) < level}
            open_ids = [key for key in open_ids if key not in confirmed and not self._passed[key]]
        return {key: "confirmed" if key in confirmed else self._undecided(key) for key in broke}

    def _undecided(self, key: str) -> RerunState:
        """Return the state of a question that its record does not confirm."""
        explained = self._has_record(key) and self._p_of_record(key) > FLAKY_LEVEL
        if self._passed[key] or self._own[key][0] or explained:
            return "flaky"
        return "unclear" if self._failed[key] else "not rerun"

    def _has_record(self, key: str) -> bool:
        return self._records.get(key, (0, 0))[1] >= LEAST_TRIALS

    def _p_of_record(self, key: str) -> float:
        """Return Fisher's exact p of the record against the candidate's trials and reruns; 1 without a record."""
        if not self._has_record(key):
            return 1.0
        passed, trials = self._records[key]
        own_passed, own_trials = self._own[key]
        failed = own_trials - own_passed + self._failed[key]
        return worse_than_record(failed, failed + own_passed + self._passed[key], trials - passed, trials)

    def _is_another_system(self) -> bool:
        """Return True if most questions that differ give the baseline's answers twice, and these are several.

        Broken questions are chosen for failing, so that those of a flaky system pass again; others are not chosen.
        Flaky questions rarely give the baseline's answer twice. So many may be flaky if the baseline's trials failed as
        often.
        """
        if self._questions.by_chance > EXPECTED_LEVEL or not self._as_before():
            return False
        others = [key for key in (*self._questions.fixed, *self._questions.changed) if key not in self._measured]
        self._ask(list(dict.fromkeys(others))[:PROBES])
        if len(keys := self._as_before()) < MANY_AS_BEFORE:
            return False
        self._ask(keys)
        return sum(bool(self._measured[key][-1].as_before) for key in keys) >= SHARE_TWICE * len(keys)

    def _as_before(self) -> list[str]:
        """Return the questions whose first rerun gave the baseline's answer, if these are most of those that differ."""
        first = {key: answers[0].as_before for key, answers in self._measured.items()}
        differing = [key for key, as_before in first.items() if as_before is not None]
        same = [key for key in differing if first[key]]
        return same if len(same) >= SHARE_AS_BEFORE * len(differing) else []

    def _against_luck(self, consistent: int) -> RerunState:
        """Decide if questions that fail consistently broke, or if the baseline passed them once by luck."""
        questions = self._questions
        lucky, draws, failing = len(self._ask_while_failing(questions.fixed)), 1, list(questions.failing)
        while draws < DRAWS and failing and self._calls + len(failing) <= self._rerunner.limit:
            self._ask(failing)
            draws += 1
        if self._same and draws > 1:
            self._ask(failing)  # the remaining calls may show that answers vary
        if self._same and (draws > 1 or not failing):
            return "confirmed"
        lucky += sum(self._passed[key] == 1 for key in failing)
        p = luck(consistent, lucky, draws if failing else DRAWS)
        if p < LUCK_LEVEL:
            return "confirmed"
        nothing_drawn = failing and draws == 1 and not lucky and self._failing_by_chance() < UNCLEAR_LEVEL
        return "unclear" if p < UNCLEAR_LEVEL or nothing_drawn else "lucky"

    def _failing_by_chance(self) -> float:
        """Return how many flaky questions are expected to fail in all reruns. With hundreds of them, some do."""
        flaky = [key for key in self._questions.broke if self._passed[key]]
        failed = sum(self._failed[key] for key in flaky)
        return len(flaky) * (failed / (failed + len(flaky))) ** RERUNS if flaky else 0.0

    def _rerun(self, key: str, state: RerunState) -> Rerun:
        record, own = self._records.get(key, (0, 0)), self._questions.trials.get(key, (0, 0))
        judge_changed = any(answer.judge_changed for answer in self._measured[key])
        return Rerun(state, self._passed[key], self._failed[key], *record, *own, judge_changed)
