"""What can happen to a question between two runs: to its sources, its answer and its verdict, one function each."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Failure, FailureKind, Question, Response, Row, Source, ToolCall, Verdict
from evaltrack.rows.stored_row import StoredRow, stored_row

K = 5
DEPTH = 12
"""Sources that are returned; some expected ones stand behind k."""


@dataclass(frozen=True)
class Given:
    """What came of one question on one side: what the target gave, and what the judge said."""

    asked: Question
    chunks: tuple[tuple[str, str], ...] | None
    answer: str | None = "It is so."
    score: float | None = None
    says_declined: bool | None = None
    abstained: bool = False
    tools: tuple[str, ...] = ("search",)
    failure: FailureKind | None = None

    def row(self) -> StoredRow:
        """As a run would keep it."""
        timing = {"position": 0, "question": self.asked, "started_at": 0.0, "seconds": 0.1}
        if self.failure and self.failure != "judge_error":
            failure = Failure(kind=self.failure, message="RuntimeError: down")
            return stored_row(Row.model_validate({**timing, "failure": failure}), K)
        sources = None if self.chunks is None else tuple(Source(chunk_id=key, text=text) for key, text in self.chunks)
        calls = tuple(ToolCall(name=name) for name in self.tools)
        response = Response(answer=self.answer, sources=sources, abstained=self.abstained, tool_calls=calls)
        made = measure(self.asked, response, Rules(K), self._verdicts(), judge_failed=self.failure == "judge_error")
        judge_failure = Failure(kind="judge_error", message="empty") if self.failure else None
        scored = {"scores": made.scores, "unmeasured": made.unmeasured, "passed": made.passed}
        told = {
            "response": response,
            "verdicts": self._verdicts(),
            "failure": judge_failure,
            "duplicates": made.duplicates,
        }
        return stored_row(Row.model_validate({**timing, **told, **scored}), K)

    def _verdicts(self) -> tuple[Verdict, ...]:
        if self.failure:
            return ()
        if self.says_declined is not None and self.asked.negative:
            return (Verdict(judge="j", reasoning="because", declined=self.says_declined),)
        return () if self.score is None else (Verdict(judge="j", reasoning="because", overall_score=self.score),)

    def places(self) -> list[int]:
        """Where expected sources stand among the first k, from 0."""
        wanted = set(self.asked.expected or ())
        return [place for place, (key, _) in enumerate((self.chunks or ())[:K]) if key in wanted]

    def others(self) -> list[int]:
        """Where unexpected sources stand, from 0."""
        wanted = set(self.asked.expected or ())
        return [place for place, (key, _) in enumerate(self.chunks or ()) if key not in wanted]


Change = Callable[[Given, random.Random], Given | None]
"""A change of the candidate; None where this question has no room for it."""


# What happens to the sources


def moved(given: Given, order: Sequence[tuple[str, str]]) -> Given:
    return replace(given, chunks=tuple(order))


def lose(given: Given, rng: random.Random) -> Given | None:
    """The index lost a chunk; what stood below it moves up."""
    if not given.places():
        return None
    gone = set(rng.sample(given.places(), rng.randint(1, len(given.places()))))
    return moved(given, [chunk for place, chunk in enumerate(given.chunks or ()) if place not in gone])


def demote(given: Given, rng: random.Random) -> Given | None:
    """Unexpected chunks that stood below an expected one stand above it."""
    chunks = list(given.chunks or ())
    place = next((place for place in given.places() if any(other > place for other in given.others())), None)
    if place is None:
        return None
    to = rng.choice([other for other in given.others() if other > place])
    chunks.insert(to, chunks.pop(place))
    return moved(given, chunks)


def outrank(given: Given, rng: random.Random) -> Given | None:
    """A chunk that nobody knew is now the best."""
    return moved(given, [("new!", "a new page"), *(given.chunks or ())][:DEPTH]) if given.places() else None


def rename(given: Given, rng: random.Random) -> Given | None:
    """The index was built anew with other ids."""
    return moved(given, [(f"v2:{key}", text) for key, text in given.chunks or ()]) if given.places() else None


def rename_others(given: Given, rng: random.Random) -> Given | None:
    """Sources that are not expected have other ids."""
    others = set(given.others())
    chunks = list(enumerate(given.chunks or ()))
    return moved(given, [(f"v2:{key}" if place in others else key, text) for place, (key, text) in chunks])


def renumber(given: Given, rng: random.Random) -> Given | None:
    """A page got a new first chunk: each chunk of it has the number of the next one now."""
    places = given.places()
    if len(places) != 1 or places[0] + 1 >= len(given.chunks or ()):
        return None
    place, chunks = places[0], list(given.chunks or ())
    following = chunks[place + 1]
    chunks[place], chunks[place + 1] = (following[0], chunks[place][1]), (f"{following[0]}+1", following[1])
    return moved(given, chunks)


def edit_expected(given: Given, rng: random.Random) -> Given | None:
    """The text of an expected chunk was edited."""
    return edited(given, rng.choice(given.places())) if given.places() else None


def edit_other(given: Given, rng: random.Random) -> Given | None:
    """The text of an unexpected chunk was edited that stays where it is, or at least below the first expected."""
    first = min(given.places(), default=0)
    room = [place for place in given.others() if first < place < K]
    return edited(given, rng.choice(room)) if room else None


def edit_and_outrank(given: Given, rng: random.Random) -> Given | None:
    """An unexpected chunk was edited, and now stands above an expected one."""
    below = [place for place in given.others() if given.places() and place > given.places()[0]]
    if not below:
        return None
    chunks = list((edited(given, chosen := rng.choice(below))).chunks or ())
    chunks.insert(given.places()[0], chunks.pop(chosen))
    return moved(given, chunks)


def lose_one_edit_another(given: Given, rng: random.Random) -> Given | None:
    """One expected chunk is gone, another one that stood above it stays where it is with another text."""
    if len(given.places()) < 2:
        return None
    stays, *_, goes = given.places()
    chunks = list(edited(given, stays).chunks or ())
    del chunks[goes]
    return moved(given, chunks)


def report_nothing(given: Given, rng: random.Random) -> Given:
    """The target no longer says what it returned."""
    return replace(given, chunks=None)


def edited(given: Given, place: int) -> Given:
    chunks = list(given.chunks or ())
    chunks[place] = (chunks[place][0], chunks[place][1] + " Edited.")
    return moved(given, chunks)


def swap_context(given: Given, rng: random.Random) -> Given | None:
    """Another unexpected chunk stands in the place of one."""
    room = [place for place in given.others() if place < K]
    if not room:
        return None
    chunks = list(given.chunks or ())
    chunks[rng.choice(room)] = ("other!", "another page")
    return moved(given, chunks)


def shuffle_context(given: Given, rng: random.Random) -> Given | None:
    """Two unexpected chunks changed places; no expected one stands between them."""
    chunks = list(given.chunks or ())
    pairs = [place for place in given.others() if place + 1 in given.others() and place + 1 < K]
    if not pairs:
        return None
    place = rng.choice(pairs)
    chunks[place], chunks[place + 1] = chunks[place + 1], chunks[place]
    return moved(given, chunks)


def promote(given: Given, rng: random.Random) -> Given | None:
    """An expected chunk stands higher."""
    places = [place for place in given.places() if place - 1 in given.others()]
    if not places:
        return None
    chunks = list(given.chunks or ())
    place = places[-1]
    chunks[place - 1], chunks[place] = chunks[place], chunks[place - 1]
    return moved(given, chunks)


# What happens behind retrieval


def answer(given: Given, rng: random.Random) -> Given:
    """The model says something else, and the judge likes it less."""
    return replace(given, answer="It is not so.", score=None if given.score is None else 0.2)


def say_nothing(given: Given, rng: random.Random) -> Given:
    """The target gives no answer, which nobody judges, or an empty one."""
    text, score = rng.choice([(None, None), ("", 0.0)])
    return replace(given, answer=text, score=score)


def skip_tool(given: Given, rng: random.Random) -> Given:
    """The agent calls another tool and says the same; the judge likes it less."""
    return replace(given, tools=("read",), score=None if given.score is None else 0.2)


def answer_alike(given: Given, rng: random.Random) -> Given:
    """The model words it otherwise; the judge does not mind."""
    return replace(given, answer="So it is.")


def verdict(given: Given, rng: random.Random) -> Given:
    """The judge changes its mind; of a negative it says that the same words do not decline."""
    if given.asked.negative:
        return replace(given, says_declined=False)
    return replace(given, score=0.3)


def decline(given: Given, rng: random.Random) -> Given:
    """The target gives up, with an empty list of sources, none, or those that it had."""
    chunks = rng.choice([(), None, given.chunks] if given.score is not None else [(), None])
    return replace(given, chunks=chunks, abstained=True, answer="I do not know.", score=given.score and 0.1)


def retrieve_nothing(given: Given, rng: random.Random) -> Given:
    """The target returns no sources, and does not flag it."""
    return replace(given, chunks=(), answer="I found nothing.", score=given.score and 0.1)


def make_up(given: Given, rng: random.Random) -> Given:
    """The target answers what nobody can know, and the judge sees it."""
    chunks = given.chunks or (("x", "a page"),)
    return replace(given, abstained=False, answer="It was in 1911.", says_declined=False, chunks=chunks)


def fail(given: Given, rng: random.Random) -> Given:
    """The target fails."""
    return replace(given, failure=rng.choice(["target_error", "target_timeout"]))


def judge_fails(given: Given, rng: random.Random) -> Given:
    """The judge gives nothing that can be read."""
    return replace(given, failure="judge_error", score=None)


def edit_golden(given: Given, rng: random.Random) -> Given:
    """The golden line was edited."""
    return replace(given, asked=given.asked.model_copy(update={"question": "What else?"}))
