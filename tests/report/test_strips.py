"""How each question went over the last runs, on the page of a comparison."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import compare
from evaltrack.compare.histories import Histories, HistoryRun
from evaltrack.report.comparison.history_words import broke_in
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.html.strips import strip_head, with_strip
from tests.compared import found, question, rows_of, side

RUNS = (HistoryRun("r1", "PR 1", 1, "a" * 40), HistoryRun("r2", "<b>PR 2", 2), HistoryRun("r3", "PR 3", 3))


def compared(histories: Histories | None) -> Comparison:
    """Two questions, the second of which broke."""
    asked = [question("1"), question("2")]
    before = rows_of(asked, {"1": found("1!", "a"), "2": found("2!", "a")})
    after = rows_of(asked, {"1": found("1!", "a"), "2": found("x", "a")})
    return replace(compare(side(before), side(after)), question_history=histories)


def test_each_question_has_its_letters_and_since_when_it_fails() -> None:
    """Those that changed and those that did not; the page's table shows them, with names as text."""
    made = compared(Histories(RUNS, {"1": "ppp", "2": "pff"}))
    page = comparison_html(made)
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    strips = {each["id"]: (each["strip"], each.get("since")) for each in data["questions"]}
    assert strips == {"1": ("ppp", None), "2": ("pff", "first broke in <b>PR 2 (r2)")}
    assert data["strip_runs"] == ["PR 1 (aaaaaaa)", "<b>PR 2 (r2)", "PR 3 (r3)"]
    assert data["letters"]["f"] == "failed"
    assert "<b>PR 2" not in unescape(page.partition('id="data"')[0])


def test_too_few_runs_say_nothing() -> None:
    """Neither does a comparison without a history, nor a question that is in none of the runs."""
    for histories in (None, Histories(RUNS[:2], {"1": "pp", "2": "pf"})):
        assert strip_head(compared(histories)) == {}
        assert with_strip(compared(histories), {"id": "1"}, "1") == {"id": "1"}
    assert with_strip(compared(Histories(RUNS, {"1": "ppp"})), {"id": "2"}, "2") == {"id": "2"}


def test_a_question_that_had_failed_before_broke_again() -> None:
    """First broke is said of one that had passed in all runs before."""
    runs = tuple(HistoryRun(f"r{place}", f"PR {place}") for place in range(4))
    made = Histories(runs, {"1": "ppff", "2": "pfpf"})
    assert broke_in(made, "1", None) == "first broke in PR 2 (r2)"
    assert broke_in(made, "2", "r3") == "broke again in this run"
