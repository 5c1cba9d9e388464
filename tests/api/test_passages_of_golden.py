from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltrack import run_eval
from evaltrack.api.anchor_golden import anchor_golden
from evaltrack.cli import _run
from evaltrack.errors import GoldenError
from tests.conftest import REPO, few_questions

CHUNKINGS = ("heading", "words:200", "words:500:100")


@pytest.fixture
def travel(tmp_path: Path) -> Path:
    """The first 20 questions of the travel set with their ids alone, and its corpus."""
    return few_questions(tmp_path, 20, quoted=False)


def recall(golden: Path, chunk: str, store_uri: str) -> float:
    target = f"bm25:{REPO}/golden/corpus/travel?chunk={chunk}"
    return run_eval(golden, target=target, judge="none", traces="off", tracking_uri=store_uri).metrics["recall_at_k"]


def test_quotations_measure_the_same_and_survive_other_chunks(travel: Path, store_uri: str) -> None:
    by_ids = [recall(travel, chunk, store_uri) for chunk in CHUNKINGS]
    before = travel.read_text(encoding="utf-8")
    anchored = anchor_golden(travel)
    by_quotes = [recall(travel, chunk, store_uri) for chunk in CHUNKINGS]
    assert anchored.left == []
    assert by_ids[1:] == [0, 0]
    assert by_quotes[0] == by_ids[0] > 0.5
    assert all(0.4 < value < 1 for value in by_quotes[1:])
    after = [json.loads(line) for line in travel.read_text(encoding="utf-8").splitlines()]
    assert [{k: v for k, v in line.items() if k != "expected_passages"} for line in after] == [
        json.loads(line) for line in before.splitlines()
    ]
    assert anchor_golden(travel).anchors == []


LINES = (
    '{"id": 1, "question": "How long may I stay?", "expected_chunks": ["visa"], "expected_answer": "90 days"}\n'
    '{"id": 2, "question": "What is the fee?", "expected_chunks": ["visa", "fees"]}\n'
    '{"id": 3, "question": "Who answers?", "expected_chunks": []}\n'
    '{"id": 4, "question": "Which page?", "expected_sources": ["Fees"]}\n'
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/visa.md").write_text("# V\n\nStays of up to 90 days need no visa at all.")
    (tmp_path / "old/fees.md").write_text("# F\n\nIt costs 80 euros.")
    path = tmp_path / "mine.jsonl"
    path.write_text(LINES)
    return path


def test_anchor_marks_what_a_person_should_look_at(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text(LINES + '{"id": 5, "question": "?", "expected_chunks": ["gone"]}\n')
    assert _run(["golden", "anchor", str(mine), "--corpus", f"{mine.parent}/old", "--dry-run"]) == 0
    printed = capsys.readouterr()
    assert "1  visa  Stays of up to 90 days need no visa at all.\n" in printed.out
    assert "2  fees  It costs 80 euros.  ? it has few words of the answer and the question\n" in printed.out
    assert "question 5 is left as it is: `gone` is not in" in printed.err
    assert "2 questions would get 3 quotations, 2 of them in doubt" in printed.err
    assert _run(["golden", "anchor", str(mine), "--corpus", f"{mine.parent}/old", "--output", "json"]) == 0
    assert [each["chunk"] for each in json.loads(capsys.readouterr().out)["anchors"]] == ["visa", "visa", "fees"]


def test_what_cannot_be_done_is_said(mine: Path, tmp_path: Path) -> None:
    left = anchor_golden(mine).left
    assert dict(left) == dict.fromkeys(["1", "2"], "no corpus has its expected chunks")
    mine.write_text('{"id": 1, "question": "?", "expected_chunks": ["visa"], "expected_chunks": ["visa"]}\n')
    with pytest.raises(GoldenError, match="is given twice"):
        anchor_golden(mine, tmp_path / "old")
