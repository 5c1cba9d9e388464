"""Ten comparisons that are hard to tell right, each out of two runs that are scored for real."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import compare
from evaltrack.compare.pairing import Side
from evaltrack.metrics.measure import Rules
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.records import Failure, Question, Response, Verdict
from evaltrack.records.row import Row

from .compared import K, found, measured, patched, question, row, rows_of, side
from .metrics.test_reasoning import seen

TIMED_OUT = Failure(kind="target_timeout", message="no response within 60 s")
ASKED = [question(f"q{place}", domain="ab"[place % 2], difficulty="easy") for place in range(40)]


def compared(was: list[Row], now: list[Row], *, ignore: tuple[str, ...] = (), **signature: Any) -> Comparison:
    sides = [
        _counted(side(rows, name, **{part: pair[place] for part, pair in signature.items()}))
        for place, (name, rows) in enumerate((("before", was), ("after", now)))
    ]
    return compare(*sides, ignore=ignore, resamples=50)


def _counted(made: Side) -> Side:
    errors = int(made.frame["error"].notna().sum())
    return replace(made, info=replace(made.info, num_questions=len(made.frame), num_errors=errors))


def _judged(scores: Callable[[int], float], given: Callable[[int], Response | Failure] | None = None) -> list[Row]:
    made = []
    for place, asked in enumerate(ASKED):
        response = given(place) if given else found(f"{asked.id}!", "other")
        made.append(row(asked, response, place, None if isinstance(response, Failure) else scores(place)))
    return made


def errors_on_one_side() -> Comparison:
    """Twelve of forty end in errors of two messages; of the rest two are fixed, which lifts every mean."""
    was = _judged(lambda _: 0.9, lambda place: found("x") if place in (*range(10), 12, 13) else found(f"q{place}!"))
    odd = Failure(kind="target_error", message="503 from host 7")
    now = _judged(
        lambda _: 0.9, lambda place: found(f"q{place}!") if place > 11 else (odd if place == 3 else TIMED_OUT)
    )
    return compared(was, now)


def another_judge() -> Comparison:
    return compared(_judged(lambda _: 0.9), _judged(lambda _: 0.1), ignore=("judge",), judge=("kind", "strict"))


def another_k() -> Comparison:
    return compared(_judged(lambda _: 0.9), _judged(lambda _: 0.85), ignore=("k",), k=(5, 3))


def ids_changed() -> Comparison:
    texts = {f"v2/q{place}!": f"text of q{place}!" for place in range(40)}
    return compared(_judged(lambda _: 0.9), _judged(lambda _: 0.9, lambda place: found(f"v2/q{place}!", texts=texts)))


def all_flips() -> Comparison:
    return compared(_judged(lambda _: 0.9), _judged(lambda _: 0.9, lambda _: found("x", answer="No.")))


def no_flips() -> Comparison:
    """Scores move both ways, answers and texts are others, and none flips."""
    scores = {0: 0.76, 1: 0.8, 2: 0.99}
    texts = {"other": "new"}
    return compared(
        _judged(lambda _: 0.9),
        _judged(
            lambda place: scores.get(place, 0.9),
            lambda place: found(f"q{place}!", "other", answer="So." if place < 9 else "It is so.", texts=texts),
        ),
    )


def one_question() -> Comparison:
    return compared(rows_of(ASKED[:1], {}, 0.9), rows_of(ASKED[:1], {"q0": found("x")}, 0.9))


def ten_thousand() -> Comparison:
    """And more than are listed: 276 broke, 500 rank lower, 2 were lost, 10,500 answer otherwise, one was edited."""
    good = rows_of(ASKED[:1], {}, 0.9)[0]
    broke = rows_of(ASKED[:1], {"q0": found("x")}, 0.9)[0]
    lower = rows_of(ASKED[:1], {"q0": found("x", "q0!")}, 0.9)[0]
    other = rows_of(ASKED[:1], {"q0": found("q0!", "other", answer="Indeed.")}, 0.9)[0]
    lost = rows_of(ASKED[:1], {"q0": TIMED_OUT}, 0.9)[0]
    parts = [*[broke] * 276, *[lower] * 500, *[other] * 10_500, *[lost] * 2]
    now = [*parts, *[good] * (11_999 - len(parts))]
    numbered = [
        [patched(each, id=f"q{n}", position=n) for n, each in enumerate(rows)] for rows in ([good] * 12_000, now)
    ]
    numbered[1][-1] = patched(numbered[1][-1], digest="edited")
    return compared(*numbered)


def a_panel() -> Comparison:
    def rows(scores: tuple[float, ...]) -> list[Row]:
        return [_panel(asked, place, scores if place < 5 else (0.9, 0.9, 0.9)) for place, asked in enumerate(ASKED)]

    return compared(rows((0.8, 0.8, 1.0)), rows((0.6, 0.7, 0.8)), judge=("a,b,c", "a,b,c"))


def _panel(asked: Question, place: int, scores: tuple[float, ...]) -> Row:
    verdicts = tuple(Verdict(judge=name, reasoning="r", overall_score=s) for name, s in zip("abc", scores, strict=True))
    return measured(asked, found(f"{asked.id}!"), verdicts, position=place)


def reasoning() -> Comparison:
    """By the rubric: five responses claim more than their process earned."""
    rules = Rules(K, reasoning=RubricWeights())

    def rows(flawed: int) -> list[Row]:
        made = []
        for place, asked in enumerate(ASKED[:12]):
            observed = seen(confidence=99, hypotheses=1) if place < flawed else seen()
            verdicts = (Verdict(judge="j", reasoning="r", observed=observed),)
            given = Response(answer="Pursue hybrid." if place >= flawed else "Surely hybrid.")
            plain = asked.model_copy(update={"expected_chunks": None})
            made.append(measured(plain, given, verdicts, rules, position=place))
        return made

    return compared(rows(0), rows(5), rubric=("reasoning", "reasoning"), judge=("j", "j"))


HARD: dict[str, Callable[[], Comparison]] = {
    made.__name__: made
    for made in (
        *(errors_on_one_side, another_judge, another_k, ids_changed, all_flips, no_flips, one_question, ten_thousand),
        *(a_panel, reasoning),
    )
}
