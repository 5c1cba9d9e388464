from __future__ import annotations

from pathlib import Path

import mlflow
import pytest

from evaltrack.api.report_html import WORST, write_reports
from evaltrack.api.run_several import run_sets
from evaltrack.cli import _run
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.result import SetResults
from evaltrack.tracking.parents import KIND_TAG
from tests.api.test_run_several import write
from tests.report.test_html import ATTRIBUTES, TAGS, Page

EVIL = "<i>a b&"


def target(question: str) -> list[str]:
    if question == f"{EVIL} 2":
        raise ValueError("<b>down</b>")
    return (
        ["x"]
        if question.startswith("two") and question != "two 9"
        else [question.replace(" ", "", question.count(" "))]
    )


@pytest.fixture
def sets(store_uri: str, tmp_path: Path) -> SetResults:
    assert store_uri
    paths = [write(tmp_path, name, questions=10) for name in (EVIL, "two")]
    return run_sets(paths, target=target, judge="none", traces="off")


def test_a_parent_is_one_page_and_a_page_of_each(sets: SetResults, tmp_path: Path) -> None:
    overview, *pages = write_reports([sets.run_id], tmp_path / "out" / "all.html")
    assert [path.relative_to(tmp_path / "out").as_posix() for path in pages] == ["all/i-a-b.html", "all/two.html"]
    page = Page(overview.read_text(encoding="utf-8"))
    assert {tag for tag, _ in page.elements} <= TAGS
    assert {
        name for _, attributes in page.elements for name in attributes if not name.startswith("aria-")
    } <= ATTRIBUTES
    assert page.every("script") == []
    words = " ".join(page.text.split())
    assert "of 19 questions passed in 2 golden sets" in words
    assert f"two target {sets.results[1].signature.target}, k = 5 10 1 9 0 0.100 n 10" in words
    assert EVIL in page.text
    links = [each["href"] for each in page.every("a")]
    assert links[:2] == ["all/i-a-b.html", "all/two.html"]
    assert "all/i-a-b.html#q-2" in links  # the error stands first
    assert links[-WORST:] == [f"all/two.html#q-{number}" for number in range(WORST)]
    for each in pages:
        page = Page(each.read_text(encoding="utf-8"))
        assert {tag for tag, _ in page.elements} <= TAGS
        assert page.every("a")[1]["href"] == "../all.html"


def test_runs_may_be_named_one_by_one(sets: SetResults, tmp_path: Path) -> None:
    again = run_sets([tmp_path / "two.jsonl"], target=target, judge="none", traces="off")
    runs = [sets.results[1].run_id, again.run_id, sets.results[1].run_id[:12]]
    _, *pages = write_reports(runs, tmp_path / "all.html")
    assert [path.name for path in pages] == [f"two-{run_id}.html" for run_id in (runs[0], again.results[0].run_id)]


def test_the_command_writes_what_there_is(sets: SetResults, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "page.html"
    assert _run(["report", sets.run_id, "-o", str(output)]) == 0
    assert f"{output} and 2 pages in {tmp_path}/page/ (0." in capsys.readouterr().err
    assert _run(["report", sets.results[0].run_id, "-o", str(output)]) == 0
    assert capsys.readouterr().err.startswith(f"{output} (0.")
    assert _run(["report", "-o", str(output)]) == 2
    assert f"parent run {sets.run_id}" in capsys.readouterr().err
    for options, words in (
        (["-o", "-"], "is the parent of several evaluations"),
        (["other", "-o", "-"], "the pages of several runs are several files"),
        (["-o", "folder"], "is not an .html file"),
    ):
        assert _run(["report", sets.run_id, *options]) == 2
        assert words in capsys.readouterr().err


def test_what_cannot_be_shown_is_an_error(sets: SetResults, tmp_path: Path) -> None:
    client = mlflow.MlflowClient()
    with pytest.raises(UsageError, match="no run was named"):
        write_reports([], tmp_path / "all.html")
    empty = client.create_run("0", tags={KIND_TAG: "golden sets"})
    with pytest.raises(UsageError, match="has no finished evaluation"):
        write_reports([empty.info.run_id], tmp_path / "all.html")
    (tmp_path / "all").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_reports([sets.run_id], tmp_path / "all.html")
    client.update_run(sets.results[0].run_id, status="RUNNING")
    with pytest.raises(InconclusiveError, match="is still RUNNING"):
        write_reports([sets.run_id], tmp_path / "all.html")


def test_sets_of_which_nothing_was_measured(store_uri: str, tmp_path: Path) -> None:
    assert store_uri

    def down(question: str) -> list[str]:
        raise ValueError(question)

    made = run_sets([write(tmp_path, name) for name in ("one", "two")], target=down, judge="none", traces="off")
    overview, *_ = write_reports([made.run_id], tmp_path / "all.html")
    words = " ".join(Page(overview.read_text(encoding="utf-8")).text.split())
    assert "Nothing could be measured in 2 golden sets" in words
    assert "one FAILED" in words
