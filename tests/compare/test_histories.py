"""How questions went over the last runs: strips, the run that broke them, flaky questions and bad runs."""

from __future__ import annotations

import pytest

from evaltrack.compare.histories import AskedQuestion, Histories, HistoryRun, histories, letter_of, matrix, switches


def runs(count: int) -> tuple[HistoryRun, ...]:
    return tuple(HistoryRun(f"r{n}", f"run {n}", n, "") for n in range(count))


def of(**strips: str) -> Histories:
    return Histories(runs(len(next(iter(strips.values())))), strips)


@pytest.mark.parametrize(
    ("letters", "since"),
    [
        ("ppff", 2),
        ("pfpf", 3),
        ("ffff", None),
        ("ppfp", None),
        ("pfef", 1),
        ("pfe-", 1),
        ("pnff", 2),
        ("eeff", None),
        ("pppe", None),
        ("pddf", 3),
        ("", None),
    ],
)
def test_the_run_since_which_a_question_fails(letters: str, since: int | None) -> None:
    """Errors and gaps neither end nor begin a streak; where no pass is known before, none broke it."""
    made = Histories(runs(max(len(letters), 1)), {"q": letters} if letters else {})
    first = made.first_broke("q")
    assert first == (None if since is None else made.runs[since])


@pytest.mark.parametrize(
    ("letters", "times"), [("pppp", 0), ("ppff", 1), ("pfpf", 3), ("pefnp", 2), ("pep", 0), ("", 0)]
)
def test_switches_leave_out_what_was_not_measured(letters: str, times: int) -> None:
    assert switches(letters) == times


def asked(*each: tuple[str, str, bool | None, str | None]) -> list[AskedQuestion]:
    return [AskedQuestion(*one[:2], letter_of(*one[2:])) for one in each]


def test_histories_are_of_the_questions_of_the_last_run() -> None:
    """What was another question then is told apart, as is what was not asked, not measured or an error."""
    one, two, three = runs(3)
    made = histories(
        [
            (one, asked(("a", "1", True, None), ("b", "0", True, None), ("gone", "1", True, None))),
            (two, asked(("a", "1", None, "target_timeout: no response"), ("b", "1", None, None))),
            (three, asked(("a", "1", False, None), ("b", "1", True, None), ("c", "1", False, None))),
        ]
    )
    assert made.runs == (one, two, three)
    assert dict(made.outcomes) == {"a": "pef", "b": "dnp", "c": "--f"}
    assert made.strip("gone") == ""
    assert histories([]) == Histories()


def test_a_run_in_which_many_fail_alone_is_bad() -> None:
    """Three questions that pass before and after; two are not many, nor are those that stay broken."""
    alone = {f"q{n}": "pfp" for n in range(3)}
    assert of(**alone, steady="ppp").bad_runs == {"r1"}
    assert of(q0="pfp", q1="pep", steady="ppp").bad_runs == frozenset()
    assert of(**{f"q{n}": "pff" for n in range(9)}).bad_runs == frozenset()
    many = {f"s{n}": "ppp" for n in range(97)}
    assert of(**alone, **many).bad_runs == frozenset()
    assert of(**{f"q{n}": "ppf" for n in range(9)}).bad_runs == frozenset()


def test_the_matrix_shows_flaky_questions_first_then_what_fails() -> None:
    """What passed in every run is counted; what does not fit is counted too."""
    made = matrix(of(steady="pppp", fixed="ffpp", broke="ppff", flaky="pfpf", worse="fpfp", always="ffff"), 4)
    assert [row.id for row in made.rows] == ["flaky", "worse", "always", "broke"]
    assert [row.is_flaky for row in made.rows] == [True, True, False, False]
    assert (made.more, made.steady, made.flaky) == (1, 1, 2)


def test_a_bad_run_makes_no_question_flaky() -> None:
    made = matrix(of(**{f"q{n}": "ppfp" for n in range(9)}, flaky="pfpp"), 10)
    assert made.bad_runs == {"r2"}
    assert [(row.id, row.switches) for row in made.rows if row.is_flaky] == [("flaky", 2)]


def test_what_is_concluded_is_of_one_target() -> None:
    """Runs of other targets stand beside; since when a question fails and how often it switched leaves them out."""
    columns = tuple(HistoryRun(f"r{n}", f"run {n}", n, "", "ab"[n == 1]) for n in range(4))
    made = Histories(columns, {"q": "pfpf", "w": "fpff"})
    assert made.own == (0, 2, 3)
    assert made.first_broke("q") == columns[3]
    assert made.first_broke("w") is None
    assert [row.switches for row in matrix(made, 5).rows] == [0, 1]
