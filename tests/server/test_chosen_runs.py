"""Which runs an address names."""

from __future__ import annotations

import pytest

from evaltrack.records import Signature
from evaltrack.server.contents import ANY_TARGET, Choice
from evaltrack.server.shell import page_templates
from evaltrack.tracking.store import Store, connect


def test_an_address_names_moments_and_a_target() -> None:
    """Two moments in either order; what is no moment is refused."""
    assert Choice.of({}) == Choice()
    assert Choice.of({"from": "9", "to": "3", "target": "t"}) == Choice(None, 3, 9, "t")
    assert [
        each.narrow for each in (Choice(), Choice(5), Choice(first=1), Choice(target="t"), Choice(target=ANY_TARGET))
    ] == [*(False, False, True, True, False)]
    for wrong in ("x", "-1", "1" * 16, "١"):
        assert Choice.of({"before": wrong}) is None


@pytest.fixture
def store(store_uri: str) -> Store:
    store = connect(store_uri)
    for number in range(6):
        signature = Signature(golden="g", golden_digest="0", k=5, target="ab"[number % 2]).model_dump_json()
        tags = {"evaltrack.golden": "g", "evaltrack.signature": signature}
        store.client.create_run("0", start_time=1000 + number, run_name=f"run {number}", tags=tags)
    return store


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (Choice(), "543210"),
        (Choice(before=1002), "10"),
        (Choice(first=1001, last=1003), "321"),
        (Choice(target="a"), "420"),
        (Choice(first=1001, target="b"), "531"),
        (Choice(target=ANY_TARGET), "543210"),
        (Choice(target="c"), ""),
    ],
)
def test_the_runs_that_are_named(store: Store, choice: Choice, names: str) -> None:
    runs = choice.chosen(choice.read(store, "0", "g"))
    assert "".join(run.name.removeprefix("run ") for run in runs) == names


def test_the_badge_of_a_list_is_amber_where_the_page_is() -> None:
    """A regression by the rule alone, whose few words may stand on two lines; a plain one is red."""
    badge = page_templates().get_template("page_parts.html").module.verdict_badge
    by_rule = badge("regression", "No net loss, but a regression by the rule; judge score not compared")
    assert 'class="badge words warn"' in by_rule
    assert ">No net loss, but a regression by the rule</span>" in by_rule
    assert 'class="badge words bad"' in badge("regression", "Regression in retrieval")
    assert 'class="badge muted">Baseline<' in badge("baseline", None)
