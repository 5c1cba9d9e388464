from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaltrack import Question, open_golden, run_eval, write_golden
from evaltrack.api.golden_sets import anchor_golden, lint_golden
from evaltrack.api.write_golden import STORED_DAYS, golden_file
from evaltrack.cli import _run
from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.lint import CODES
from evaltrack.golden.selection import Selection
from tests.conftest import REPO, few_questions
from tests.files import put

OFF = ("thin-domain", "too-small", "no-corpus")


def written(folder: Path, *questions: dict[str, Any], name: str = "mine.jsonl") -> Path:
    return put(folder / name, questions)


def pages(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def test_every_code_is_documented_as_it_is() -> None:
    page = (REPO / "docs/lint.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [row.split(" | ")[:2] for row in rows] == [[f"| `{code}`", severity] for code, severity in CODES.items()]


def test_bad_lines_are_findings_and_nothing_else_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": 1, "question": "a?"}\n{"id": 1, "question": " "}\nnonsense\n')
    bad = [finding for finding in lint_golden(path) if finding.severity == "error"]
    assert [(finding.code, finding.line) for finding in bad] == [("bad-line", 2), ("bad-line", 2), ("bad-line", 3)]
    assert (bad[0].message, bad[0].cure) == ("`question` is empty", "write some text")
    (missing,) = lint_golden(tmp_path / "nothing.jsonl")
    assert (missing.line, missing.message) == (None, "no such file")


def test_findings_come_in_the_order_of_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"id": 1, "question": "How long may a guest stay?", "expected_chunks": ["x", "visa"]},
        {"id": 2, "question": "how long may a guest stay", "expected_chunks": ["visa"], "expected_answer": "TODO"},
        {"id": 3, "question": "Which avocado oil smokes first?", "expected_chunks": []},
    )
    corpus = pages(tmp_path / "docs", visa="# Visa\n\nGuests stay.", oil="# Oil\n\nAvocado oil smokes first.")
    assert [(finding.line, finding.code) for finding in lint_golden(path, corpus=f"bm25:{corpus}?floor=0")] == [
        (1, "missing-id"),
        (2, "contradiction"),
        (2, "empty-answer"),
        (3, "answered-negative"),
        (None, "thin-domain"),
        (None, "too-small"),
    ]
    codes = {finding.code for finding in lint_golden(path, corpus=f"bm25:{corpus}?floor=99")}
    assert "answered-negative" not in codes  # the target says that it does not know


def test_a_target_says_what_is_in_its_index(tmp_path: Path) -> None:
    pages(tmp_path / "c/food", soup="# Soup\n\nHot.")
    pages(tmp_path / "c/travel", rail="# Rail\n\nFast trains.")
    asked = {"question": "a?", "expected_chunks": ["rail"]}
    path = written(tmp_path, {"id": 1, "domain": "food", **asked}, {"id": 2, "domain": "travel", **asked})
    (finding,) = lint_golden(path, corpus=f"bm25:{tmp_path}/c?by=domain", ignore=OFF)
    assert (finding.line, finding.code) == (1, "missing-id")
    assert f"is not in bm25:{tmp_path}/c?by=*** (food)".replace("***", "domain") in finding.message
    assert [each.line for each in lint_golden(path, corpus=f"bm25:{tmp_path}/c/food", ignore=OFF)] == [1]
    other = written(tmp_path, {"id": 1, "question": "a?", "domain": "law"}, name="other.jsonl")
    with pytest.raises(UsageError, match="has no folder for the domain law; add it"):
        lint_golden(other, corpus=f"bm25:{tmp_path}/c?by=domain")


def test_a_corpus_without_words_answers_nothing(tmp_path: Path) -> None:
    corpus = pages(tmp_path / "docs", a="# the\n\nand of")
    path = written(tmp_path, {"id": 1, "question": "What is the price of avocado oil?", "expected_chunks": []})
    assert lint_golden(path, corpus, ignore=OFF) == []


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


QUESTIONS: list[dict[str, Any]] = [
    {"id": "1", "question": "first?", "expected_chunks": ["a"], "difficulty": "hard"},
    {"id": "2", "question": "second?", "expected_chunks": []},
]


@pytest.fixture
def own_state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_dicts_records_and_frames_are_the_same_set() -> None:
    records = [Question(domain="questions", **line) for line in QUESTIONS]
    frame = pd.DataFrame(QUESTIONS).assign(id=np.array([1, 2]))
    paths = [golden_file(each) for each in (QUESTIONS, records, iter(QUESTIONS), frame, tuple(QUESTIONS))]

    path = paths[0]
    golden = open_golden(path)
    assert {open_golden(each).digest for each in paths} == {golden.digest}
    assert paths[0] == paths[2] == paths[4]
    assert (golden.name, len(golden), golden.stats.negatives) == ("questions", 2, 1)
    assert [question.expected for question in golden] == [("a",), ()]
    assert Path(path).stat().st_mode & 0o077 == 0


def test_what_is_missing_in_a_frame_is_left_out() -> None:
    frame = pd.DataFrame(
        {
            "question": ["a?", "b?", "c?", "d?"],
            "expected_chunks": [np.array(["x", "y"]), None, np.nan, ["z"]],
            "expected_answer": [pd.NA, pd.NaT, "yes", np.nan],
            "category": pd.array(["p", None, None, None], dtype="string"),
        }
    )
    questions = list(open_golden(golden_file(frame)))
    assert [question.id for question in questions] == ["1", "2", "3", "4"]
    assert [question.expected for question in questions] == [("x", "y"), None, None, ("z",)]
    assert [question.expected_answer for question in questions] == [None, None, "yes", None]
    assert questions[0].category == "p"


def test_all_bad_entries_stand_in_one_error(own_state: Path) -> None:
    entries = [
        5,
        {"question": ""},
        {"question": "x", "id": "q", "expected_chunk": []},
        *2 * [{"id": 7, "question": "y"}],
    ]
    with pytest.raises(GoldenError) as raised:
        golden_file(entries)  # type: ignore[arg-type]
    assert raised.value.problems == (
        "entry 1: is a number; a question is a JSON object",
        "entry 2: `question` is empty; write some text",
        "entry 3: unknown field `expected_chunk`; did you mean `expected_chunks`?",
        "entry 5: id `7` is already used on line 4; use another id",
    )
    assert [path for path in own_state.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("value", [5, QUESTIONS[0], b"x", Question(id="1", question="q", domain="d"), object()])
def test_what_holds_no_questions_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=f"golden_path is {type(value).__name__}; give a path, a list of dicts"):
        golden_file(value)
    with pytest.raises(GoldenError, match="holds no questions"):
        golden_file([])


def test_an_opened_set_is_its_file(tmp_path: Path) -> None:
    golden = write_golden(QUESTIONS, tmp_path / "mine.jsonl")
    assert (golden.name, next(iter(golden)).domain) == ("mine", "mine")
    assert golden_file(golden) == str(golden.path)
    with pytest.raises(UsageError, match="is a part of a golden set"):
        golden_file(open_golden(golden.path, Selection(sample=1)))


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    write_golden(QUESTIONS, path)
    before = path.read_bytes()
    with pytest.raises(GoldenError):
        write_golden([*QUESTIONS, {}], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(GoldenError, match="entry 1"):
        write_golden([{"question": "\ud800"}], path)
    with pytest.raises(UsageError, match=r"\.jsonl"):
        write_golden(QUESTIONS, tmp_path / "mine.txt")
    with pytest.raises(UsageError, match="cannot be written: "):
        write_golden(QUESTIONS, path / "mine.jsonl")


def test_sets_that_nobody_reads_are_removed(own_state: Path) -> None:
    old, young = golden_file(QUESTIONS[:1]), golden_file(QUESTIONS[1:])
    past = time.time() - (STORED_DAYS + 1) * 86_400
    os.utime(old, (past, past))
    golden_file(QUESTIONS)
    assert not Path(old).exists()
    assert Path(young).exists()
    shutil.rmtree(own_state)
    own_state.write_text("a file")
    with pytest.raises(UsageError, match=r"cannot be stored in .*set EVALTRACK_STATE_DIR"):
        golden_file(QUESTIONS)
