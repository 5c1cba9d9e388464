"""Assigns each common question its fate, and finds the causes of those that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from evaltrack.compare.causes import NOTHING_DIFFERS, ORDER, causes_of
from evaltrack.compare.change import BY_URGENCY, WORSE, Cause, Change, ChangedQuestions, Fate, Outcome
from evaltrack.compare.differences import AllSources
from evaltrack.compare.pairing import MAIN_SCORES, Paired, error_counts, flipped, numbers
from evaltrack.records import Reasoned
from evaltrack.records.stored_row import JUDGE_ERROR, PRINTS, StoredRow

if TYPE_CHECKING:
    import pandas as pd

    from evaltrack.metrics.metric import Score

FATES: tuple[Fate, ...] = get_args(Fate)
BETTER: tuple[Fate, ...] = ("fixed", "higher score")
ALWAYS_LISTED: tuple[Fate, ...] = ("broke", "lost", "fixed")

WHOLE_ROWS = 200
"""Changes that hold the rows of both sides with the texts of their sources."""

LISTED = 10_000
"""Questions listed in addition to broken, lost and fixed ones, and changes that hold rows."""

SAMPLED = 2000
"""Identical questions that are shown if there are more than `LISTED` leaves room for."""

MAX_CAUSES = 20_000
"""Changed questions whose causes are searched. With more, the rules have long decided."""

Trials = Mapping[str, Sequence[StoredRow]]
"""The rows of single trials, by question."""

Moved = Sequence[tuple[str, float, float]]
"""Scores that moved: name, before, now."""

Explained = tuple[StoredRow, StoredRow, list[Cause]]
"""The rows of both sides, showing the trials that have the causes, and the causes."""


# Fates


def add_fates(paired: Paired) -> None:
    """Add the columns `fate`, and `lost`: True if only the baseline measured the question.

    If `pass_rate` is left out, no question breaks or is fixed. If `judge_score` is left out, the judge's words are no
    difference. The candidate's outcome of a lost question that did not break is removed: parts of it were not measured,
    and no mean may rise by it.
    """
    import numpy as np
    import pandas as pd

    frame = paired.frame
    lower, higher = _moved(paired)
    broke, fixed = (flipped(frame, was=was) for was in (True, False))
    lost = _only_measured_in(paired, "b").to_numpy(dtype=bool)
    masks: dict[Fate, Any] = {
        "broke": broke & paired.passing_compared,
        "lost": lost,
        "fixed": fixed & paired.passing_compared,
        "lower score": lower,
        "newly measured": _only_measured_in(paired, "c"),
        "higher score": higher,
        "changed": ~_same_content(paired),
    }
    places = [FATES.index(fate) for fate in masks]
    codes: Any = np.select([np.asarray(mask, dtype=bool) for mask in masks.values()], places, FATES.index("identical"))
    columns: dict[str, Any] = {"fate": pd.Categorical.from_codes(codes, pd.Index(FATES)), "lost": lost}
    blank = lost & ~broke.to_numpy(dtype=bool)
    for name, empty in (("passed_c", None), ("pass_c", float("nan"))):
        if name in frame and blank.any():
            columns[name] = frame[name].array.copy()
            columns[name][blank] = empty
    paired.frame = frame.assign(**columns)


def _only_measured_in(paired: Paired, end: str) -> Any:
    """Return a mask of the questions of which only this side measured the outcome, retrieval, or judge's score."""
    frame, other = paired.frame, "b" if end == "c" else "c"
    mask = frame[f"passed_{end}"].notna() & frame[f"passed_{other}"].isna()
    if not paired.passing_compared:  # errors of a judge that is not compared do not count
        mask &= ~_failed_by_judge(frame, other)
    for name in ("recall_at_k",) if "judge_score" in paired.left_out else ("recall_at_k", "overall_score"):
        if f"{name}_{end}" in frame:
            mask |= frame[f"{name}_{end}"].notna() & frame[f"{name}_{other}"].isna()
    return mask


def _failed_by_judge(frame: pd.DataFrame, end: str) -> Any:
    return frame[f"error_{end}"].str.startswith(JUDGE_ERROR).fillna(True).astype(bool)


def _num_failed(paired: Paired, end: str) -> int:
    """Return the number of errors of one side without lost questions. A judge's errors count if it is compared."""
    failed = paired.frame[f"error_{end}"].notna() & ~paired.frame["lost"]
    if not paired.passing_compared:
        failed &= ~_failed_by_judge(paired.frame, end)
    return int(failed.sum())


def _telling_scores(paired: Paired) -> list[Score]:
    """Return the scores that determine a question's result, the main ones first."""
    there = (score for score in paired.table.scores if f"{score.name}_b" in paired.frame)
    compared = (score for score in there if score.compared and score.tells_result)
    kept = [score for score in compared if score.metric not in paired.left_out]
    return sorted(kept, key=lambda score: score.name not in MAIN_SCORES)


def _moved(paired: Paired) -> tuple[Any, Any]:
    """Return masks of the questions with a lower, and a higher score. If no main score moved, others count."""
    lower = higher = settled = paired.frame["id"].isna()
    for main in (True, False):
        for score in _telling_scores(paired):
            if (score.name in MAIN_SCORES) == main:
                was, now = (numbers(paired.frame[f"{score.name}_{end}"]) for end in "bc")
                worse, better = (now < was, now > was) if score.higher_is_better else (now > was, now < was)
                lower, higher = lower | (worse & ~settled), higher | (better & ~settled)
        settled = lower | higher
    return lower, higher


def _same_content(paired: Paired) -> Any:
    same = paired.frame["id"].notna()
    for name in PRINTS:
        if name in paired.frame and (name != "verdict_print" or "judge_score" not in paired.left_out):
            same &= paired.frame[name]
    return same


def _worst_first(paired: Paired, fate: Fate) -> list[str]:
    """Return the ids of questions by loss: of the judge's score, then of recall, then of rank. Large gains are first.

    A value that was not measured is no loss.
    """
    import numpy as np

    part, there = paired.frame[paired.frame["fate"] == fate], {score.name for score in _telling_scores(paired)}
    sign = 1 if fate in ("fixed", "newly measured", "higher score") else -1
    keys: list[Any] = []
    if fate == "newly measured":  # failing questions are first
        keys.append((part["passed_c"] != False).fillna(True).to_numpy(dtype=bool))  # noqa: E712
    for names in (("overall_score", "reasoning_score"), ("recall_at_k",), ("reciprocal_rank",)):
        loss = np.zeros(len(part))  # a run has one rubric: scales never mix
        for name in there.intersection(names):
            was, now = (np.nan_to_num(numbers(part[f"{name}_{end}"])) for end in "bc")
            loss += was - now
        keys.append(sign * np.round(loss, 9))
    return list(part["id"].to_numpy()[np.lexsort(keys[::-1])])


# The questions that changed


def changed_questions(paired: Paired, k: int) -> ChangedQuestions:
    """Return the questions by the fates of `add_fates`, each with its cause."""
    frame, by_fate = paired.frame, dict[Fate, list[str]]()
    room = LISTED
    for fate in BY_URGENCY:
        by_fate[fate] = _worst_first(paired, fate)
        if fate not in ALWAYS_LISTED:
            by_fate[fate] = by_fate[fate][:room]
            room -= len(by_fate[fate])
    same = frame[frame["fate"] == "identical"]
    all_fit = len(same) <= room
    same = same if all_fit else same.head(SAMPLED)
    columns = (same[name] for name in ("id", "domain_c", "passed_c", "error_c"))
    outcomes = ((key, str(domain), _outcome(paired, *ended)) for key, domain, *ended in zip(*columns, strict=True))
    return ChangedQuestions(
        by_fate=_Explainer(paired, k, by_fate).changes(),
        fates={fate: int((frame["fate"] == fate).sum()) for fate in FATES},
        unchanged=tuple(outcomes) if all_fit else (),
        same=tuple(paired.candidate.rows(list(same["id"]), False).values()),
        errors=error_counts(frame),
        num_lost=int(frame["lost"].sum()),
        failed_before=_num_failed(paired, "b"),
        failed_again=_num_failed(paired, "c"),
    )


def _outcome(paired: Paired, passed: Any, error: Any) -> Outcome:
    import pandas as pd

    if isinstance(error, str) and (paired.passing_compared or not error.startswith(JUDGE_ERROR)):
        return "error"
    if not paired.passing_compared:
        return "not compared"
    return "not measured" if pd.isna(passed) else "pass" if passed else "fail"


class _Explainer:
    """Reads the rows of the changed questions, and finds their causes."""

    def __init__(self, paired: Paired, k: int, by_fate: Mapping[Fate, Sequence[str]]) -> None:
        self._paired, self._k, self._by_fate = paired, k, by_fate
        self._scores = _telling_scores(paired)
        ids = [key for listed in by_fate.values() for key in listed]
        self._explained, self._carried = ids[:MAX_CAUSES], set(ids[:LISTED])
        sides = (paired.baseline, paired.candidate)
        whole, rest = self._explained[:WHOLE_ROWS], self._explained[WHOLE_ROWS:]
        self._rows = [{**side.rows(whole, True), **side.rows(rest, False)} for side in sides]
        self._all_sources = AllSources.of(*self._rows)
        moved = [key for fate in (*WORSE, *BETTER) for key in by_fate[fate] if all(key in rows for rows in self._rows)]
        self._trials = [trials_of(rows, moved, side.trials) for rows, side in zip(self._rows, sides, strict=True)]
        frame = paired.frame
        self._light: dict[Any, Any] = frame[frame["id"].isin(ids)].set_index("id").to_dict("index")

    def changes(self) -> dict[Fate, tuple[Change, ...]]:
        """Return all questions that are listed."""
        return {fate: tuple(self._change(key, fate) for key in ids) for fate, ids in self._by_fate.items()}

    def _change(self, key: str, fate: Fate) -> Change:
        light, pair = self._light[key], [rows.get(key) for rows in self._rows]
        before, after = pair
        if before is None or after is None:
            causes = [Cause("unknown", f"its rows were not read: more than {MAX_CAUSES} questions changed")]
        else:
            before, after, causes = self._explain(key, fate, before, after)
        labels = (light[f"{name}_c"] for name in ("difficulty", "category"))
        difficulty, category = (each if isinstance(each, str) else None for each in labels)
        return Change(
            id=key,
            question=after.question if after else "",
            domain=str(light["domain_c"]),
            difficulty=difficulty,
            category=category,
            was=_outcome(self._paired, light["passed_b"], light["error_b"]),
            now=_outcome(self._paired, light["passed_c"], light["error_c"]),
            cause=causes[0],
            also=tuple(causes[1:]),
            dropped=self._moved(key, worse=True),
            raised=self._moved(key, worse=False),
            before=before if key in self._carried else None,
            after=after if key in self._carried else None,
            fate=fate,
        )

    def _explain(self, key: str, fate: Fate, before: StoredRow, after: StoredRow) -> Explained:
        """Return the rows to show, and the causes. With several trials, the failed ones are explained."""
        worse, trials = fate in WORSE, [each.get(key, ()) for each in self._trials]

        def causes_between(was: StoredRow, now: StoredRow) -> list[Cause]:
            return causes_of(was, now, self._k, worse=worse, everywhere=self._all_sources)

        if any(trials) and not after.error and not (fate in BETTER and before.error):
            sides = [rows or [row] for rows, row in zip(trials, (before, after), strict=True)]
            made = explain_by_trials(before, after, sides, self._moved(key, worse=worse), causes_between, worse=worse)
            if made and (worse or made[2][0].kind != "unknown"):
                return made
        causes = causes_between(before, after)
        if not worse and causes[0].kind == "unknown":
            causes = causes[1:] or [Cause("unknown", _unseen(causes[0].detail, before, after, self._k))]
        return before, after, causes

    def _moved(self, key: str, *, worse: bool) -> tuple[tuple[str, float, float], ...]:
        """Return the main scores that fell, or rose; the other scores if no main score did."""
        moves, light = [], self._light[key]
        for score in self._scores:
            was, now = float(light[f"{score.name}_b"]), float(light[f"{score.name}_c"])
            if now < was if score.higher_is_better == worse else now > was:  # False if either is NaN
                moves.append((score.name, was, now))
        return tuple([each for each in moves if each[0] in MAIN_SCORES] or moves)


def _unseen(detail: str, before: StoredRow, after: StoredRow, k: int) -> str:
    """Return the likely place of a difference that the first k do not show."""
    if detail != NOTHING_DIFFERS:
        return detail
    judged = ", or in the judge's reasoning" if before.verdicts or after.verdicts else ""
    return f"what differs comes after the first {k} sources{judged}"


# Several trials
#
# The row of such a question holds means and shows one of its trials. Trials vary, so that two of them may differ in
# ways that explain nothing: what a passing trial shares with a failing one is not the reason.

MAX_DISTINCT = 20
"""Distinct trials of one question that are read, the most frequent first."""

MAX_ROWS = 20_000
"""Rows of trials that are read of one side."""

SHOWN_OF_TRIAL = (
    *("answer", "abstained", "error", "retrieval_digest", "sources", "tool_calls", "verdicts"),
    *Reasoned.model_fields,
)
"""The columns of a row that show one of its trials."""


def trials_of(rows: Mapping[str, StoredRow], ids: Collection[str], read: Callable[[Collection[str]], Trials]) -> Trials:
    """Read the trials of the questions that have several, as many as `MAX_ROWS` allows."""
    ids_to_read, room = [], MAX_ROWS
    for key in ids:
        number = rows[key].trials or 0
        if 0 < number <= room:
            ids_to_read.append(key)
            room -= number
    return read(ids_to_read) if ids_to_read else {}


def explain_by_trials(
    before: StoredRow,
    after: StoredRow,
    sides: Sequence[Sequence[StoredRow]],
    moved: Moved,
    causes_between: Callable[[StoredRow, StoredRow], list[Cause]],
    *,
    worse: bool,
) -> Explained | None:
    """Return the cause of most of the worse trials, each compared with the most similar passing trial.

    If several are equally frequent, it is the earliest in the flow. None if no trial of the candidate is worse than the
    baseline; of a gain, if none of the baseline is.

    Args:
        before: The baseline's row of the question.
        after: The candidate's row.
        sides: The trials of both sides, or the row itself if it has one.
        moved: Scores of the question that fell; of a gain those that rose.
        causes_between: Returns the causes of a pair of trials.
        worse: True to explain a loss; False for a gain, which is a loss with the sides exchanged.
    """
    good, bad = sides if worse else sides[::-1]
    failed, what = _worse_trials(good, bad, moved if worse else [(name, high, low) for name, low, high in moved])
    if not failed:
        return None
    passing = _distinct([each for each in good if each.passed] or good)

    def departure(row: StoredRow) -> Explained:
        """Return the other side's trial from which this one differs latest in the flow, and the causes."""
        pairs = [(other, row) if worse else (row, other) for other, _ in passing]
        read = [(*pair, causes_between(*pair)) for pair in pairs]
        return max(read, key=lambda each: (ORDER.index(each[2][0].kind), -len(each[2])))

    departures = [(departure(row), times) for row, times in _distinct(failed)]
    votes = Counter[tuple[str, str | None]]()
    for (*_, causes), times in departures:
        votes[causes[0].kind, causes[0].source] += times
    winner = max(votes, key=lambda vote: (votes[vote], -ORDER.index(vote[0])))
    was, now, causes = next(made for made, _ in departures if (made[2][0].kind, made[2][0].source) == winner)
    if len(bad) > 1:
        share = f"{_share(votes[winner], len(failed))} {what}{'' if worse else ' before'}"
        causes = [replace(causes[0], detail=f"{causes[0].detail}, in {share}"), *causes[1:]]
    return _showing(before, was), _showing(after, now), causes


def _worse_trials(good: Sequence[StoredRow], bad: Sequence[StoredRow], drops: Moved) -> tuple[list[StoredRow], str]:
    """Return the failed trials if their share is larger than on the good side; else the trials with a lower score."""
    if _failing(bad) > _failing(good):
        return [row for row in bad if row.passed is False], "that failed"

    def fell(row: StoredRow, name: str, was: float, now: float) -> bool:
        value = row.scores.get(name)
        return value is not None and (value < was if now < was else value > was)

    return [row for row in bad if any(fell(row, *score) for score in drops)], "with a lower score"


def _failing(trials: Sequence[StoredRow]) -> float:
    measured = [row.passed for row in trials if row.passed is not None]
    return measured.count(False) / len(measured) if measured else 0.0


def _share(times: int, total: int) -> str:
    if total == 1:
        return "the one trial"
    every = "both trials" if total == 2 else f"all {total} trials"
    return every if times == total else f"{times} of the {total} trials"


def _distinct(trials: Sequence[StoredRow]) -> list[tuple[StoredRow, int]]:
    """Return distinct trials, each with its frequency, the most frequent first.

    Trials are equal if their sources, verdicts and answers are, whatever their other scores and tokens.
    """
    first, counts = dict[str, StoredRow](), Counter[str]()
    for row in trials:
        sources = row.sources and [(each.chunk_id, each.title, each.text_digest) for each in row.sources]
        verdicts = [(each.judge, each.overall_score, each.declined) for each in row.verdicts]
        others = [getattr(row, name) for name in SHOWN_OF_TRIAL if name not in ("sources", "verdicts")]
        key = repr((row.passed, sources, verdicts, others))
        counts[key] += 1
        first.setdefault(key, row)
    return [(first[key], times) for key, times in counts.most_common(MAX_DISTINCT)]


def _showing(row: StoredRow, trial: StoredRow) -> StoredRow:
    """Return the row with the columns of this trial. Known texts of sources are kept."""
    if row is trial:
        return row
    texts = {source.text_digest: source.text for source in row.sources or ()}
    sources = trial.sources and tuple(replace(each, text=texts.get(each.text_digest)) for each in trial.sources)
    return replace(row, **{name: getattr(trial, name) for name in SHOWN_OF_TRIAL} | {"sources": sources})
