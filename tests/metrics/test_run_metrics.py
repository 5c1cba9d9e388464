"""The metrics of a run: ours, and those that it declares."""

from __future__ import annotations

from evaltrack.metrics.aggregate import Summary
from evaltrack.metrics.catalogue import BY_METRIC, SCORES, MetricTable, metric_table
from evaltrack.records import OwnScore, Question, Row

SHORT = OwnScore(name="short", computed_by="m:short", digest="1", binary=True, span=1.0)
LENGTH = OwnScore(name="length", computed_by="m:length", digest="2", higher_is_better=False, gates=False)


def test_a_run_without_any_has_ours() -> None:
    """Nothing is added."""
    assert metric_table() == metric_table(()) == MetricTable()
    assert MetricTable().scores == SCORES
    assert MetricTable().metrics == frozenset(BY_METRIC)


def test_declarations_become_records_of_the_table() -> None:
    """With their direction, whether they gate, and by group; score and mean have one name."""
    table = metric_table((SHORT, LENGTH))
    assert table.own_names == ("short", "length")
    short, length = table.by_metric["short"], table.by_name["length"]
    assert (short.binary, short.span, short.higher_is_better, short.tells_result, short.by_group) == (
        *(True, 1.0, True, True, True),
    )
    assert (length.higher_is_better, length.gates, length.tells_result, length.span) == (False, False, False, None)
    assert (table.is_share("short"), table.is_share("length"), table.is_share("none")) == (True, False, False)


def test_a_declaration_never_replaces_one_of_ours() -> None:
    """A signature from a store that others write to may declare anything."""
    evil = OwnScore(name="recall_at_k", computed_by="x:y", digest="", higher_is_better=False)
    mean = OwnScore(name="mrr", computed_by="x:y", digest="", gates=False)
    assert metric_table((evil, mean)) == MetricTable()


def test_of_two_runs_the_first_decides() -> None:
    """Where both declare one name."""
    other = LENGTH.model_copy(update={"higher_is_better": True})
    table = metric_table((LENGTH,), (SHORT, other))
    assert (table.own_names, table.by_name["length"].higher_is_better) == (("length", "short"), False)


def test_means_counts_and_groups() -> None:
    """They stand behind ours, over the questions that have a value, for each domain too."""
    summary = Summary(5, metric_table((SHORT, LENGTH)))
    for place, (domain, scores) in enumerate(
        [("a", {"short": 1.0, "length": -2.0}), ("a", {"short": 0.0}), ("b", {"hit": 1.0})]
    ):
        question = Question(id=str(place), question="?", domain=domain)
        summary.add(Row(position=place, question=question, scores=scores, started_at=0, seconds=0))
    assert summary.metrics == {"hit_rate": 1.0, "short": 0.5, "length": -2.0}
    assert summary.counts == {"hit_rate": 1, "short": 2, "length": 1}
    assert summary.groups == {"a": {"short": (0.5, 2), "length": (-2.0, 1)}, "b": {}}
    assert (summary.num_measured, summary.measures_anything) == (0, True)
    assert not Summary(5).measures_anything
