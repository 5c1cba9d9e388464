"""The questions of which anything differs, by what became of them, each with its cause."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Any

from evaltrack.compare.causes import NOTHING_DIFFERS, causes_of
from evaltrack.compare.change import BY_URGENCY, WORSE, Borderline, Cause, Change, Fate, Outcome
from evaltrack.compare.errors_by_message import ErrorCount, error_counts
from evaltrack.compare.fates import Fates, result_scores
from evaltrack.compare.pairing import MAIN_SCORES, Paired, Side
from evaltrack.compare.partly_measured import times_asked, why_in_part
from evaltrack.compare.trial_causes import Trials, explain_by_trials, trials_of
from evaltrack.metrics.rubric import PASS_SCORE
from evaltrack.records import Signature
from evaltrack.rows.stored_row import JUDGE_ERROR, StoredRow
from evaltrack.system.limits import give_back

if TYPE_CHECKING:
    import pandas as pd

WHOLE_ROWS = 200
"""Changes that carry the rows of both sides with the texts of their sources."""

CARRIED_ROWS = 10_000
"""Changes that carry rows at all."""

MAX_CAUSES = 20_000
"""Changed questions whose causes are looked for; past that the rules have long decided."""

LISTED = 10_000
"""Questions listed besides those that broke, were lost or fixed; no one reads a page or file with more."""

SAMPLED = 2000
"""Identical questions that are still shown, where all of them would be more than `LISTED` leaves room for."""

ALWAYS_LISTED: tuple[Fate, ...] = ("broke", "lost", "fixed")
BETTER: tuple[Fate, ...] = ("fixed", "higher score")
"""What became of questions whose trials say why they got better."""


class Changes:
    """The questions by what became of them; `counts` holds how many, the lists may hold fewer."""

    def __init__(
        self, paired: Paired, signature: Signature, left_out: Collection[str], noise: Mapping[str, float]
    ) -> None:
        self._signature, self._left_out = signature, left_out
        self._in_part, self._times = paired.in_part, times_asked(paired.candidate.info)
        self.counted = "pass_rate" not in left_out
        self.errors: tuple[ErrorCount, ...] = error_counts(paired.frame)
        fates = Fates(paired.frame, left_out, paired.table)
        self.counts = {fate: fates.count(fate) for fate in (*BY_URGENCY, "identical")}
        self.num_lost = int(fates.unmeasured.sum())
        self.failed_again, self.failed_before = fates.failed_again, fates.failed_before
        self._noise = _noise_of_one(paired.frame, signature, noise) if self.counted else None
        self._scores = result_scores(paired.frame, left_out, paired.table)
        ids, room = self._ids_by_fate(fates)
        self._trials: tuple[Trials, Trials] = ({}, {})
        self._changes = self._with_causes(ids, paired)
        all_fit = self.counts["identical"] <= room
        same = fates.part("identical", None if all_fit else SAMPLED)
        give_back()
        self.same = tuple(paired.candidate.brief(set(same.id)))
        give_back()
        self.unchanged = self._outcomes(same) if all_fit else ()
        self.flips, self.lost, self.drops, self.fixes, self.newly, self.gains, self.others = (
            tuple(self._changes[fate]) for fate in BY_URGENCY
        )

    def _ids_by_fate(self, fates: Fates) -> tuple[dict[Fate, list[str]], int]:
        """The ids that are listed, the worst first, and for how many identical ones there is room."""
        room, ids = LISTED, dict[Fate, list[str]]()
        for fate in BY_URGENCY:
            ids[fate] = fates.worst_first(fate)
            if fate not in ALWAYS_LISTED:
                ids[fate] = ids[fate][:room]
                room -= len(ids[fate])
        return ids, room

    def _with_causes(self, ids: dict[Fate, list[str]], paired: Paired) -> dict[Fate, list[Change]]:
        explained_ids = [key for ids_of_fate in ids.values() for key in ids_of_fate][:MAX_CAUSES]
        whole, slim = set(explained_ids[:WHOLE_ROWS]), set(explained_ids[WHOLE_ROWS:])
        before, after = (_rows(side, whole, slim) for side in (paired.baseline, paired.candidate))
        worse = {key for fate in WORSE for key in ids[fate]}
        better = {key for fate in BETTER for key in ids[fate]}
        read_ids = [key for keys in (worse, better) for key in explained_ids if key in keys]
        self._trials = (
            trials_of(before, read_ids, paired.baseline.trials),
            trials_of(after, read_ids, paired.candidate.trials),
        )
        carried = set(explained_ids[:CARRIED_ROWS])
        all_ids = {key for ids_of_fate in ids.values() for key in ids_of_fate}
        light = paired.frame[paired.frame["id"].isin(all_ids)].set_index("id").to_dict("index")
        return {
            fate: [
                self._change(key, fate, light[key], before.get(key), after.get(key), key in carried)
                for key in ids_of_fate
            ]
            for fate, ids_of_fate in ids.items()
        }

    def _change(
        self, key: str, fate: Fate, light: Any, before: StoredRow | None, after: StoredRow | None, carried: bool
    ) -> Change:
        if before is None or after is None:
            causes = [Cause("unknown", f"its rows were not read: more than {MAX_CAUSES} questions changed")]
        else:
            before, after, causes = self._explained(key, fate, light, before, after)
        by_judge = _by_judge(before, after)
        return Change(
            id=key,
            question=after.question if after else "",
            domain=str(light["domain_c"]),
            difficulty=_label(light["difficulty_c"]),
            category=_label(light["category_c"]),
            was=self._outcome(light["passed_b"], light["error_b"]),
            now=self._outcome(light["passed_c"], light["error_c"]),
            cause=causes[0],
            also=tuple(causes[1:]),
            dropped=tuple(self._moved(light, worse=True)),
            raised=tuple(self._moved(light, worse=False)),
            before=before if carried else None,
            after=after if carried else None,
            by_judge=by_judge,
            borderline=self._borderline(light) if by_judge or fate != "broke" else None,
            fate=fate,
        )

    def _explained(
        self, key: str, fate: Fate, light: Any, before: StoredRow, after: StoredRow
    ) -> tuple[StoredRow, StoredRow, list[Cause]]:
        """The rows as they are shown, and why the question changed; of several trials, what those that failed show."""
        worse, k = fate in WORSE, self._signature.k
        was, now = (trials.get(key, ()) for trials in self._trials)
        if fate == "lost" and key in self._in_part:
            return before, after, [why_in_part(after, now, self._times)]
        if (was or now) and not after.error and not (fate in BETTER and before.error):
            moved = tuple(self._moved(light, worse=worse))
            made = explain_by_trials(before, after, (was, now), moved, k, worse=worse)
            if made and (worse or made.causes[0].kind != "unknown"):
                return made.before, made.after, made.causes
        causes = causes_of(before, after, k, worse=worse)
        return before, after, causes if worse else _differences(causes, before, after, k)

    def _moved(self, light: Any, *, worse: bool) -> Iterator[tuple[str, float, float]]:
        """The scores that fell, or rose: the main ones, and where none of them did the others."""
        moves = []
        for score in self._scores:
            was, now = float(light[f"{score.name}_b"]), float(light[f"{score.name}_c"])
            if now < was if score.higher_is_better == worse else now > was:  # false where one is not a number
                moves.append((score.name, was, now))
        main = [each for each in moves if each[0] in MAIN_SCORES]
        yield from main or moves

    def _borderline(self, light: Any) -> Borderline | None:
        """Whether the score by which the candidate passes or fails grazes the threshold."""
        if self._noise is None:
            return None
        name, threshold, noise = self._noise
        score = float(light[f"{name}_c"])
        return Borderline(score, threshold, noise) if abs(score - threshold) <= noise else None

    def _outcomes(self, frame: pd.DataFrame) -> tuple[tuple[str, str, Outcome], ...]:
        columns = (frame[name] for name in ("id", "domain_c", "passed_c", "error_c"))
        return tuple(
            (str(key), str(domain), self._outcome(passed, error))
            for key, domain, passed, error in zip(*columns, strict=True)
        )

    def _outcome(self, passed: Any, error: Any) -> Outcome:
        if isinstance(error, str) and (self.counted or not error.startswith(JUDGE_ERROR)):
            return "error"
        if not self.counted:
            return "not compared"
        if not _measured(passed):
            return "not measured"
        return "pass" if passed else "fail"


def _rows(side: Side, whole: Collection[str], slim: Collection[str]) -> dict[str, StoredRow]:
    """The rows of a side by id, of some with the texts of their sources."""
    give_back()  # reading takes the most of all, and stands beside what was freed
    rows = dict(side.rows(whole))
    give_back()
    rows |= side.slim(slim)
    give_back()
    return rows


def _noise_of_one(
    frame: pd.DataFrame, signature: Signature, noise: Mapping[str, float]
) -> tuple[str, float, float] | None:
    """Score, threshold, and how far one verdict lies from the judge's mean verdict by scatter alone (95 %).

    What is known is the noise of the difference of two runs' means, which is smaller by the square root of the number
    of questions over two. None where it is not known.
    """
    reasoning = signature.rubric == "reasoning"
    name, metric = ("reasoning_score", "reasoning_score") if reasoning else ("overall_score", "judge_score")
    if metric not in noise or f"{name}_b" not in frame:
        return None
    judged = int(frame[f"{name}_c"].notna().sum())
    threshold = float(PASS_SCORE) if reasoning else signature.pass_threshold
    return name, threshold, noise[metric] * sqrt(judged / 2)


def _differences(causes: list[Cause], before: StoredRow, after: StoredRow, k: int) -> list[Cause]:
    """What differs, where nothing got worse that has to be explained."""
    first, *others = causes
    if first.kind == "unknown":
        return others or [replace(first, detail=_unseen(first.detail, before, after, k))]
    if max(before.trials or 0, after.trials or 0) > 1 and first.kind not in ("golden_edited", "target_failed"):
        first = replace(first, detail=f"{first.detail}, in the trials that are shown")  # others may differ
    return [first, *others]


def _unseen(detail: str, before: StoredRow, after: StoredRow, k: int) -> str:
    """Of several trials how far the rank rose; where the first k are the same, where what differs may be."""
    was, now = before.scores.get("reciprocal_rank"), after.scores.get("reciprocal_rank")
    if was is not None and now is not None and now > was and (before.trials or after.trials):
        return f"the mean reciprocal rank of its trials rose from {was:.3f} to {now:.3f}"
    if detail != NOTHING_DIFFERS:
        return detail
    judged = ", or in the judge's words" if before.verdicts or after.verdicts else ""
    return f"what differs stands behind the first {k} sources{judged}"


def _by_judge(before: StoredRow | None, after: StoredRow | None) -> bool:
    """Whether the candidate's row would pass but for its judge."""
    if before is None or after is None:
        return False
    scores = after.scores
    if "reasoning_score" in scores:
        return True
    if "negative_pass" in scores:  # unless the target itself declined before, only the judge saw it
        return not before.declined
    if "overall_score" not in scores or ("hit" not in scores and scores.get("false_abstention") == 1):
        return False
    return scores.get("hit", 1) == 1 and scores.get("tools_called", 1) == 1


def _measured(passed: Any) -> bool:
    import pandas as pd

    return not pd.isna(passed)


def _label(value: Any) -> str | None:
    return value if isinstance(value, str) else None
