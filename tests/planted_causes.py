"""Changes planted in the rows of two runs, each with the cause that it must get.

What is planted is what the world does to a question: an index loses a chunk, a page is edited, a model answers
otherwise, a judge changes its mind. The rows come from the real scoring, so what is measured is what a run would hold.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaltrack.compare.causes import causes_of
from evaltrack.compare.change import CauseKind
from evaltrack.records import Question
from evaltrack.rows.stored_row import StoredRow

from . import planted_changes
from .files import data
from .metrics.test_collections import DATA, judgements, queries, text_of
from .planted_changes import DEPTH, Change, Given, K


@dataclass(frozen=True)
class Plant:
    """A kind of change: what is done, and the cause that it must get.

    `judged`: it shows only in the judge's score; `negative`: it happens to a question that should be declined, and was:
    in the words of its answer alone, or (`flagged`) by the target itself. `mended`: it had happened to the baseline.
    """

    name: str
    cause: CauseKind
    changes: tuple[Change, ...]
    judged: bool = False
    negative: bool = False
    flagged: bool = False
    mended: bool = False


@dataclass
class Outcome:
    """How often each plant got each cause, and the first examples of a wrong one."""

    table: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def planted(self) -> int:
        """How many changes."""
        return sum(self.table.values())

    @property
    def right(self) -> float:
        """The share that got the right cause."""
        good = sum(times for (_, wanted, got), times in self.table.items() if wanted == got)
        return good / max(self.planted, 1)

    def lines(self) -> Iterator[str]:
        """The confusion table, a line a plant."""
        width = max(len(name) for name, _, _ in self.table)
        for (name, wanted, got), times in sorted(self.table.items()):
            yield f"{name:{width}}  {wanted:20} {'=' if wanted == got else '≠'} {got:20} {times:5}"


LOSSES = tuple(
    Plant(name, cause, tuple(getattr(planted_changes, change) for change in changes), **where)
    for name, cause, changes, where in data("planted_causes.json")
)
"""What is done to the candidate, and the cause that it must get."""

OPPOSITES: dict[CauseKind, CauseKind] = {
    "no_longer_reports_sources": "now_reports_sources",
    "source_lost": "source_gained",
    "source_demoted": "source_promoted",
    "answer_missing": "answer_gained",
    "now_declines": "no_longer_declines",
    "no_longer_declines": "now_declines",
}
MENDED = (
    replace(plant, name=f"{plant.name}, mended", cause=OPPOSITES.get(plant.cause, plant.cause), mended=True)
    for plant in LOSSES
)
PLANTS = (*LOSSES, *MENDED)
"""Each change, and the same one undone: what explains a loss explains the gain the other way round."""


# Where it happens


def built(rng: random.Random, plant: Plant) -> Given:
    """A question that was answered well: one to three expected chunks among others; or a negative that was declined."""
    pages = [(f"p{place}", f"page {place}, line {rng.random():.6f}") for place in range(DEPTH)]
    wanted = () if plant.negative else tuple(rng.sample(range(K), rng.randint(1, 3)))
    asked = Question(
        id="q", question="What is it?", domain="d", expected_chunks=tuple(pages[each][0] for each in wanted)
    )
    return answered(Given(asked, tuple(pages)), plant, rng)


def answered(given: Given, plant: Plant, rng: random.Random) -> Given:
    """The baseline: answered well, or of a negative declined."""
    if not plant.negative:
        return replace(given, score=0.9 if plant.judged else None)
    asked = given.asked.model_copy(update={"expected_chunks": ()})
    declining = replace(given, asked=asked, answer="I do not know.", says_declined=True)
    return replace(declining, **rng.choice([{"abstained": True}, {"chunks": ()}])) if plant.flagged else declining


def collection(name: str) -> list[Given]:
    """The questions of a real collection whose BM25 run finds something relevant, with the texts of its documents."""
    folder = DATA / "collections" / name
    packed = gzip.decompress((folder / "corpus.jsonl.gz").read_bytes()).decode().splitlines()
    texts = {line["_id"]: line["text"] for line in map(json.loads, packed)}
    grades, asked = judgements(folder / "qrels.trec"), queries(name)
    ranked: dict[str, list[str]] = {}
    for line in text_of(folder / "bm25_porter.run").splitlines():
        query, _, document, *_ = line.split()
        ranked.setdefault(query, []).append(document)
    found = []
    for query, documents in ranked.items():
        wanted = tuple(document for document, grade in grades.get(query, {}).items() if grade >= 1)
        if not set(wanted) & set(documents[:K]):
            continue
        question = Question(id=query, question=asked[query], domain=name, expected_chunks=wanted)
        found.append(Given(question, tuple((key, texts[key] or "-") for key in documents[:DEPTH])))
    return found


def plant_all(times: int, seed: int, real: Mapping[str, Sequence[Given]]) -> Outcome:
    """Every kind in turn until so many are planted, on built rows and on the real ones in turn."""
    rng, outcome = random.Random(seed), Outcome()
    pools = [None, *real.values()]
    attempt = 0
    while outcome.planted < times:
        plant, pool = PLANTS[attempt % len(PLANTS)], pools[attempt // len(PLANTS) % len(pools)]
        attempt += 1
        before = built(rng, plant) if pool is None else answered(rng.choice(pool), plant, rng)
        after = _changed(before, plant, rng)
        if after is not None:
            _told(outcome, plant, before.row(), after.row())
    return outcome


def _changed(before: Given, plant: Plant, rng: random.Random) -> Given | None:
    after: Given | None = before
    for change in plant.changes:
        after = change(after, rng) if after is not None else None
    return after


def _told(outcome: Outcome, plant: Plant, before: StoredRow, after: StoredRow) -> None:
    sides = (after, before) if plant.mended else (before, after)
    cause, *also = causes_of(*sides, K, worse=not plant.mended)
    outcome.table[plant.name, plant.cause, cause.kind] += 1
    if cause.kind != plant.cause:
        others = ", ".join(other.kind for other in also)
        outcome.wrong.append(f"{plant.name}: {cause.kind}, {cause.detail} (also: {others})")


def real_collections(names: Sequence[str] = ("adi", "cranfield")) -> dict[str, list[Given]]:
    """The collections that there are; none without `EVALTRACK_TEST_DATA`."""
    return {name: collection(name) for name in names if (DATA / "collections" / name).is_dir()}
