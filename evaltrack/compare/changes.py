"""The questions that flipped, dropped or got lost, each with its cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evaltrack.compare.causes import causes_of
from evaltrack.compare.comparison import Cause, Change, Outcome
from evaltrack.compare.pairing import Paired, flipped
from evaltrack.table import FlatRow, without_texts

if TYPE_CHECKING:
    import pandas as pd

WHOLE_ROWS = 200
"""Changes that carry the rows of both sides with the texts of their sources."""

CARRIED_ROWS = 2000
"""Changes that carry rows at all."""

MAX_CAUSES = 20_000
"""Changed questions whose causes are looked for; past that the rules have long decided."""

SHOWN_DROPS = 100

MAX_UNCHANGED = 10_000
"""Questions that did not change and are still listed; a file with more test cases is read by nobody."""

SAMPLED = 2000
"""Questions that did not change and are still shown, where there are more than `MAX_UNCHANGED`."""


class Changes:
    """The questions that flipped, dropped or got lost, each with its cause."""

    def __init__(self, paired: Paired, k: int, *, count_flips: bool = True) -> None:
        self._k, self.counted = k, count_flips
        frame = paired.frame
        lost = frame["passed_b"].notna() & frame["passed_c"].isna()
        lost |= frame["recall_at_k_b"].notna() & frame["recall_at_k_c"].isna()  # it may pass by its judge alone
        none = lost & False
        flips = flipped(frame, was=True) if count_flips else none
        fixes = flipped(frame, was=False) if count_flips else none
        dropped = self._dropped(frame) & ~flips & ~lost
        gained = self._gained(frame) & ~flips & ~fixes & ~lost & ~dropped
        self.num_drops, self.num_gains = int(dropped.sum()), int(gained.sum())
        fell = (frame["recall_at_k_b"] - frame["recall_at_k_c"])[dropped].fillna(0)
        worst = fell.sort_values(ascending=False, kind="stable")
        parts = {
            "flips": list(frame.loc[flips, "id"]),
            "lost": list(frame.loc[lost, "id"]),
            "drops": list(frame.loc[worst.index[:SHOWN_DROPS], "id"]),
            "fixes": list(frame.loc[fixes, "id"]),
            "gains": list(frame.loc[gained, "id"][:SHOWN_DROPS]),
        }
        wanted = [key for ids in parts.values() for key in ids][:MAX_CAUSES]
        before, after = paired.baseline.rows(set(wanted)), paired.candidate.rows(set(wanted))
        carried = {key: place < WHOLE_ROWS for place, key in enumerate(wanted[:CARRIED_ROWS])}
        self.unchanged = _unchanged(frame[~(flips | fixes | lost | dropped)])
        same = frame[~(flips | fixes | lost | dropped | gained)]
        self.num_same = len(same)
        sample = same["id"] if len(same) <= MAX_UNCHANGED else same["id"][:SAMPLED]
        self.same = tuple(paired.candidate.brief(set(sample)))
        light = frame.set_index("id")
        self.flips, self.lost, self.drops, self.fixes, self.gains = (
            tuple(self._change(key, light.loc[key], before.get(key), after.get(key), carried.get(key)) for key in ids)
            for ids in parts.values()
        )

    def _dropped(self, frame: pd.DataFrame) -> Any:
        lower = [frame[f"{name}_c"] < frame[f"{name}_b"] for name in ("recall_at_k", "reciprocal_rank")]
        return lower[0].fillna(False) | lower[1].fillna(False)

    def _gained(self, frame: pd.DataFrame) -> Any:
        higher = [frame[f"{name}_c"] > frame[f"{name}_b"] for name in ("recall_at_k", "reciprocal_rank")]
        return higher[0].fillna(False) | higher[1].fillna(False)

    def _change(
        self, key: str, light: Any, before: FlatRow | None, after: FlatRow | None, whole: bool | None
    ) -> Change:
        """The change; it carries both rows whole, without the texts of sources, or (`whole` is None) not at all."""
        if before is None or after is None:
            causes = [Cause("unknown", f"its rows were not read: more than {MAX_CAUSES} questions changed")]
        else:
            causes = causes_of(before, after, self._k)
        return Change(
            id=key,
            question=after["question"] if after else "",
            domain=str(light["domain_c"]),
            difficulty=_label(light["difficulty_c"]),
            category=_label(light["category_c"]),
            was=_outcome(light["passed_b"], light["error_b"]),
            now=_outcome(light["passed_c"], light["error_c"]),
            cause=causes[0],
            also=tuple(causes[1:]),
            dropped=tuple(_lower(light)),
            before=_carried(before, whole),
            after=_carried(after, whole),
            by_judge=_by_judge(before, after),
        )


def _carried(row: FlatRow | None, whole: bool | None) -> FlatRow | None:
    if row is None or whole or whole is None:
        return row if whole else None
    return without_texts(row)


def _unchanged(frame: pd.DataFrame) -> tuple[tuple[str, str, Outcome], ...]:
    """Id, domain and outcome of the questions that neither changed nor dropped; none where they are very many."""
    if len(frame) > MAX_UNCHANGED:
        return ()
    columns = (frame[name] for name in ("id", "domain_c", "passed_c", "error_c"))
    return tuple(
        (str(key), str(domain), _outcome(passed, error)) for key, domain, passed, error in zip(*columns, strict=True)
    )


def _lower(light: Any) -> Iterator[tuple[str, float, float]]:
    for name in ("recall_at_k", "reciprocal_rank", "overall_score", "reasoning_score"):
        was, now = light.get(f"{name}_b"), light.get(f"{name}_c")
        if was is not None and now is not None and now < was:
            yield name, float(was), float(now)


def _by_judge(before: FlatRow | None, after: FlatRow | None) -> bool:
    """Whether the candidate's row would pass but for its judge (SPEC section 6)."""
    if before is None or after is None:
        return False
    if after["reasoning_score"] is not None:
        return True
    if after["negative_pass"] is not None:  # unless the target itself declined before, only the judge saw it
        return not (before["abstained"] or before["sources"] == [])
    if after["overall_score"] is None or (after["hit"] is None and after["false_abstention"] == 1):
        return False
    return after["hit"] in (None, 1) and after["tools_called"] in (None, 1)


def _label(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _outcome(passed: Any, error: Any) -> Outcome:
    import pandas as pd

    if isinstance(error, str):
        return "error"
    if passed is None or passed is pd.NA or passed != passed:  # noqa: PLR0124 - NaN
        return "not measured"
    return "pass" if passed else "fail"
