"""The questions of which anything differs, by what became of them, each with its cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from evaltrack.compare.causes import NOTHING_DIFFERS, causes_of
from evaltrack.compare.change import BY_URGENCY, WORSE, Cause, Change, Fate, ListedByFate, Outcome
from evaltrack.compare.differences import AllSources
from evaltrack.compare.errors_by_message import error_counts
from evaltrack.compare.pairing import MAIN_SCORES, Paired, flipped, numbers
from evaltrack.compare.trial_causes import explain_by_trials, trials_of
from evaltrack.records.stored_row import JUDGE_ERROR, PRINTS, StoredRow

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

ORDER: tuple[Fate, ...] = get_args(Fate)
BETTER: tuple[Fate, ...] = ("fixed", "higher score")
ALWAYS_LISTED: tuple[Fate, ...] = ("broke", "lost", "fixed")

WHOLE_ROWS = 200
"""Changes that carry the rows of both sides with the texts of their sources."""

LISTED = 10_000
"""Questions listed besides those that broke, were lost or fixed, and changes that carry rows at all."""

MAX_CAUSES = 20_000
"""Changed questions whose causes are looked for; past that the rules have long decided."""


class Fates:
    """Exactly one fate for each common question, so that their counts add up.

    With `pass_rate` among the metrics that are left out no question breaks or is fixed; with `judge_score` among them
    the words of the judge are no difference.
    """

    def __init__(self, paired: Paired) -> None:
        self.frame, self._left_out = paired.frame, paired.left_out
        scores = [
            score
            for score in paired.table.scores
            if score.compared
            and score.tells_result
            and score.metric not in self._left_out
            and f"{score.name}_b" in self.frame
        ]
        self.scores = sorted(scores, key=lambda score: score.name not in MAIN_SCORES)
        self.unmeasured = self.only_measured_in("b")
        self._fates = self._first_of_each()

    def _first_of_each(self) -> NDArray[np.int8]:
        """The place of each question's fate in `ORDER`: where several hold it is the first."""
        import numpy as np

        lower, higher = self._moved()
        flips = "pass_rate" not in self._left_out
        masks: dict[Fate, Any] = {
            "broke": flipped(self.frame, was=True) & flips,
            "lost": self.unmeasured,
            "fixed": flipped(self.frame, was=False) & flips,
            "lower score": lower,
            "newly measured": self.only_measured_in("c"),
            "higher score": higher & ~lower,
            "changed": ~self._same_content(),
        }
        fates = np.full(len(self.frame), ORDER.index("identical"), np.int8)
        for fate, mask in reversed(masks.items()):
            fates[np.asarray(mask, dtype=bool)] = ORDER.index(fate)
        return fates

    def failed(self, end: str) -> int:
        """How many questions ended in errors on one side, and are not lost; those of a judge only if it is compared."""
        failed = self.frame[f"error_{end}"].notna()
        if "pass_rate" in self._left_out:
            failed &= ~self._failed_by_judge(end)
        return int((failed & ~self.unmeasured).sum())

    def count(self, fate: Fate) -> int:
        """How many questions have it."""
        return int((self._fates == ORDER.index(fate)).sum())

    def part(self, fate: Fate, most: int | None = None) -> pd.DataFrame:
        """The columns of the questions that have it, or of the first of them, in the order of the golden set."""
        import numpy as np

        return self.frame.take(np.flatnonzero(self._fates == ORDER.index(fate))[:most])

    def worst_first(self, fate: Fate) -> list[str]:
        """Their ids by loss: of the judge's score, then of recall, then of the rank; of gains the largest first."""
        import numpy as np

        part = self.part(fate)
        sign = 1 if fate in ("fixed", "newly measured", "higher score") else -1
        keys: list[Any] = [sign * loss for loss in self._losses(part)]
        if fate == "newly measured":
            keys.insert(0, (part["passed_c"] != False).fillna(True).to_numpy(dtype=bool))  # noqa: E712 - those that fail
        return list(part["id"].to_numpy()[np.lexsort(keys[::-1])]) if len(part) else []

    def only_measured_in(self, end: str) -> Any:
        """Which questions only this side measured: their outcome, their retrieval, or the score of their judge."""
        other = "b" if end == "c" else "c"
        mask = self.frame[f"passed_{end}"].notna() & self.frame[f"passed_{other}"].isna()
        if "pass_rate" in self._left_out:  # that a judge failed that is not compared says nothing
            mask &= ~self._failed_by_judge(other)
        for name in ("recall_at_k",) if "judge_score" in self._left_out else ("recall_at_k", "overall_score"):
            if f"{name}_{end}" in self.frame:
                mask |= self.frame[f"{name}_{end}"].notna() & self.frame[f"{name}_{other}"].isna()
        return mask

    def _failed_by_judge(self, end: str) -> Any:
        return self.frame[f"error_{end}"].str.startswith(JUDGE_ERROR).fillna(True).astype(bool)

    def _moved(self) -> tuple[Any, Any]:
        """Which questions have a lower, and which a higher score; of the lesser scores where no main one moved."""
        lower = higher = settled = self.frame["id"].isna()
        for main in (True, False):
            for score in self.scores:
                if (score.name in MAIN_SCORES) == main:
                    was, now = (numbers(self.frame[f"{score.name}_{end}"]) for end in "bc")
                    worse, better = (now < was, now > was) if score.higher_is_better else (now > was, now < was)
                    lower, higher = lower | (worse & ~settled), higher | (better & ~settled)
            settled = lower | higher
        return lower, higher

    def _same_content(self) -> Any:
        same = self.frame["id"].notna()
        for name in PRINTS:
            if name in self.frame and (name != "verdict_print" or "judge_score" not in self._left_out):
                same &= self.frame[name]
        return same

    def _losses(self, part: pd.DataFrame) -> Iterator[NDArray[np.float64]]:
        """The loss of each question of the judge's score, of recall and of the rank; 0 for what is not measured."""
        import numpy as np

        names = {score.name for score in self.scores}
        for kinds in (("overall_score", "reasoning_score"), ("recall_at_k",), ("reciprocal_rank",)):
            loss = np.zeros(len(part))
            for name in names.intersection(kinds):
                was, now = (np.nan_to_num(numbers(part[f"{name}_{end}"])) for end in "bc")
                loss += was - now  # a run has one rubric, so that scales never mix
            yield np.round(loss, 9)


def without_lost(paired: Paired, lost: Any) -> pd.DataFrame:
    """The pairs, of which the candidate has neither outcome nor scores of those that are lost and did not break.

    Such a question may pass or score high for what is not measured any more: no mean may rise by it.
    """
    frame = paired.frame
    blank = (lost & ~flipped(frame, was=True)).to_numpy(dtype=bool)
    if not blank.any():
        return frame
    columns = {}
    for name in ("passed_c", "pass_c"):
        if name in frame:
            columns[name] = frame[name].array.copy()
            columns[name][blank] = None if name == "passed_c" else float("nan")
    return frame.assign(**columns)


class Changes(ListedByFate):
    """The questions by what became of them: `by_fate` lists them, of very many the first; `counts` counts them."""

    by_fate: dict[Fate, tuple[Change, ...]]

    def __init__(self, paired: Paired, fates: Fates, k: int) -> None:
        self._paired, self._k, self._scores = paired, k, fates.scores
        self.counted = "pass_rate" not in paired.left_out
        self.errors = error_counts(paired.frame)
        self.counts = {fate: fates.count(fate) for fate in ORDER}
        self.num_lost = int(fates.unmeasured.sum())
        self.failed_again, self.failed_before = fates.failed("c"), fates.failed("b")
        ids, room = self._ids_by_fate(fates)
        self._all_sources = AllSources()
        self.by_fate = self._with_causes(ids)
        all_fit = self.counts["identical"] <= room
        same = fates.part("identical", None if all_fit else SAMPLED)
        self.same = tuple(paired.candidate.rows(list(same["id"]), False).values())
        self.unchanged = self._outcomes(same) if all_fit else ()

    def _ids_by_fate(self, fates: Fates) -> tuple[dict[Fate, list[str]], int]:
        """The ids that are listed, the worst first, and for how many identical ones there is room."""
        room, ids = LISTED, dict[Fate, list[str]]()
        for fate in BY_URGENCY:
            ids[fate] = fates.worst_first(fate)
            if fate not in ALWAYS_LISTED:
                ids[fate] = ids[fate][:room]
                room -= len(ids[fate])
        return ids, room

    def _with_causes(self, ids: Mapping[Fate, list[str]]) -> dict[Fate, tuple[Change, ...]]:
        all_ids = [key for ids_of_fate in ids.values() for key in ids_of_fate]
        explained = all_ids[:MAX_CAUSES]
        sides = (self._paired.baseline, self._paired.candidate)
        before, after = (
            {**side.rows(explained[:WHOLE_ROWS], True), **side.rows(explained[WHOLE_ROWS:], False)} for side in sides
        )
        self._all_sources = AllSources.of(before, after)
        moved = [key for fate in (*WORSE, *BETTER) for key in ids[fate] if key in before and key in after]
        trials = tuple(trials_of(rows, moved, side.trials) for rows, side in zip((before, after), sides, strict=True))
        frame = self._paired.frame
        light: dict[Any, Any] = frame[frame["id"].isin(all_ids)].set_index("id").to_dict("index")
        carried = set(explained[:LISTED])
        made = dict[Fate, tuple[Change, ...]]()
        for fate, ids_of_fate in ids.items():
            changes = []
            for key in ids_of_fate:
                pair, own = (before.get(key), after.get(key)), tuple(each.get(key, ()) for each in trials)
                changes.append(self._change(key, fate, light[key], pair, own, carried=key in carried))
            made[fate] = tuple(changes)
        return made

    def _change(
        self, key: str, fate: Fate, light: Mapping[str, Any], pair: Any, trials: Any, *, carried: bool
    ) -> Change:
        before, after = pair
        if before is None or after is None:
            causes = [Cause("unknown", f"its rows were not read: more than {MAX_CAUSES} questions changed")]
        else:
            before, after, causes = self._explained(fate, light, before, after, trials)
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
            fate=fate,
        )

    def _explained(
        self, fate: Fate, light: Mapping[str, Any], before: StoredRow, after: StoredRow, trials: Any
    ) -> tuple[StoredRow, StoredRow, list[Cause]]:
        """The rows as they are shown, and why the question changed; of several trials, what those that failed show."""
        worse, k, everywhere = fate in WORSE, self._k, self._all_sources
        if any(trials) and not after.error and not (fate in BETTER and before.error):
            moved = tuple(self._moved(light, worse=worse))
            made = explain_by_trials(before, after, trials, moved, k, worse=worse, everywhere=everywhere)
            if made and (worse or made.causes[0].kind != "unknown"):
                return made.before, made.after, made.causes
        causes = causes_of(before, after, k, worse=worse, everywhere=everywhere)
        if not worse and causes[0].kind == "unknown":
            causes = causes[1:] or [Cause("unknown", _unseen(causes[0].detail, before, after, k))]
        return before, after, causes

    def _moved(self, light: Mapping[str, Any], *, worse: bool) -> Iterator[tuple[str, float, float]]:
        """The scores that fell, or rose: the main ones, and where none of them did the others."""
        moves = []
        for score in self._scores:
            was, now = float(light[f"{score.name}_b"]), float(light[f"{score.name}_c"])
            if now < was if score.higher_is_better == worse else now > was:  # false where one is not a number
                moves.append((score.name, was, now))
        main = [each for each in moves if each[0] in MAIN_SCORES]
        yield from main or moves

    def _outcomes(self, frame: pd.DataFrame) -> tuple[tuple[str, str, Outcome], ...]:
        columns = (frame[name] for name in ("id", "domain_c", "passed_c", "error_c"))
        return tuple(
            (str(key), str(domain), self._outcome(passed, error))
            for key, domain, passed, error in zip(*columns, strict=True)
        )

    def _outcome(self, passed: Any, error: Any) -> Outcome:
        import pandas as pd

        if isinstance(error, str) and (self.counted or not error.startswith(JUDGE_ERROR)):
            return "error"
        if not self.counted:
            return "not compared"
        return "not measured" if pd.isna(passed) else "pass" if passed else "fail"


SAMPLED = 2000
"""Identical questions that are still shown, where all of them would be more than `LISTED` leaves room for."""


def _unseen(detail: str, before: StoredRow, after: StoredRow, k: int) -> str:
    """Where the first k are the same, where what differs may be."""
    if detail != NOTHING_DIFFERS:
        return detail
    judged = ", or in the judge's words" if before.verdicts or after.verdicts else ""
    return f"what differs comes after the first {k} sources{judged}"


def _label(value: Any) -> str | None:
    return value if isinstance(value, str) else None
