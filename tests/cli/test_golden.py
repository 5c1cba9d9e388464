"""`evaltrack golden` on the command line: what is printed where, and exit codes."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evaltrack import open_golden
from evaltrack.api.golden_sets import add_question
from evaltrack.cli import _run
from evaltrack.cli.golden import FINDINGS_SHOWN
from evaltrack.errors import GoldenError, UsageError
from tests.conftest import REPO
from tests.files import data

MANY = {"question": "How long may a guest stay?", "expected_chunks": ["visa"]}
OVERSTAY = "What happens if I overstay my 90 days in the Schengen area?"
TRAVEL = f"{REPO}/golden/corpus/travel"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    code = _run(["golden", *arguments])
    return code, *capsys.readouterr()


def written(*questions: dict[str, Any]) -> str:
    """A golden set of these questions, with a corpus of one page in `docs`."""
    Path("mine.jsonl").write_text("".join(json.dumps({"id": n, **each}) + "\n" for n, each in enumerate(questions)))
    Path("docs").mkdir()
    Path("docs/visa.md").write_text("# Visa\n\nGuests stay.\n")
    return "mine.jsonl"


# lint


def test_findings_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """One list on stdout, all of every file; the exit code is that of the worst."""
    path = written({"question": "a?", "expected_chunks": ["Visa", "no such page"]}, *[MANY] * 30)
    code, out, _ = called(capsys, "lint", path, "--corpus", "docs", "--output", "json")
    findings = json.loads(out)
    assert code == 2
    assert findings[0] == {
        "file": path,
        "line": 1,
        "id": "0",
        "code": "other-form-id",
        "message": "`Visa` is not in docs, `visa` is",
        "cure": "write `visa`",
        "severity": "error",
    }
    assert sum(finding["code"] == "near-duplicate" for finding in findings) == 29


def test_a_set_without_a_corpus_is_held_against_that_of_the_settings_file(capsys: pytest.CaptureFixture[str]) -> None:
    path = written({"question": "a?", "expected_chunks": ["rail"]}, *[MANY] * 30)
    codes = {}
    for target in ("bm25:docs", "python:app:ask"):
        Path("evaltrack.toml").write_text(f"[run]\ntarget = '{target}'\n")
        codes[target] = {each["code"] for each in json.loads(called(capsys, "lint", path, "--output", "json")[1])}
    assert "missing-id" in codes["bm25:docs"] - codes["python:app:ask"]
    assert "no-corpus" in codes["python:app:ask"] - codes["bm25:docs"]
    Path("evaltrack.toml").write_text("[golden.lint]\ncorpus = 'nowhere'\n")
    assert "missing-id" in called(capsys, "lint", path, "--corpus", "bm25:docs")[2]


def test_what_an_error_leaves_out_is_listed_by_the_command_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    path = written(*[{"questoin": "a"}] * 31)
    assert _run(["run", path]) == 2
    command = f"golden lint {path} --output json"
    last = capsys.readouterr().err.splitlines()[-2]
    assert last == f"... and 42 more problems; `evaltrack {command}` lists all"
    code, out, _ = called(capsys, *command.split()[1:])
    assert (code, len(json.loads(out))) == (2, 62)


def test_findings_for_people_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    path = written(*[MANY] * 30)
    code, out, err = called(capsys, "lint", path)
    assert (code, out) == (0, "1 golden set checked, all lines are valid\n")
    assert err.count("[near-duplicate]") == FINDINGS_SHOWN + 1
    assert f"{path}: ... and 9 more [near-duplicate]; --output json lists all" in err
    assert "domain mine has 30 questions, of which 0 negatives" in err
    assert f"{path}: note: there is no corpus next to the file" in err
    assert "name the folder of its pages (--corpus) [no-corpus]" in err
    assert called(capsys, "lint", path, "--strict")[0] == 1
    ignored = ("--ignore", "near-duplicate", "--ignore", "thin-domain")
    assert called(capsys, "lint", path, "--strict", *ignored)[0] == 0
    code, _, err = called(capsys, "lint", path, "--ignore", "near-dup")
    assert (code, err) == (2, "Error: --ignore near-dup: no such code to ignore; did you mean `near-duplicate`?\n")
    _, _, err = called(capsys, "lint", path, "--ignore", "bad-line")
    assert "no such code to ignore; there are answer-not-in-chunks" in err


def test_hostile_texts_reach_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    path = written({"question": "a?\x1b[2J ", "expected_chunks": ["\x1b]0;x\x07", "http://me:pw@host/a"]})
    _, _, err = called(capsys, "lint", path, "--corpus", "docs")
    assert ("\x1b" in err, "pw@" in err, "http://host/a" in err) == (False, False, True)


def test_each_domain_is_looked_up_in_its_own_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for domain in ("food", "travel"):
        Path("corpus", domain).mkdir(parents=True)
        Path(f"corpus/{domain}/{domain}.md").write_text(f"# {domain}\n\nText.\n")
    lines = [{"id": d, "question": "a?", "domain": d, "expected_chunks": ["food"]} for d in ("food", "travel")]
    Path("all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, _, err = called(capsys, "lint", "all.jsonl")
    assert (code, err.count(" is not in ")) == (2, 1)
    assert "all.jsonl:2: question travel: `food` is not in corpus/travel; add the page" in err


def test_our_own_golden_sets_pass_our_own_lint(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(map(str, (REPO / "golden").glob("*.json*")))
    assert (called(capsys, "lint", "--strict", *files)[0], len(files)) == (0, 9)


# add


def test_the_steps_of_making_a_set(capsys: pytest.CaptureFixture[str]) -> None:
    """Index, ask, add, lint: the ids of one are those of the next."""
    assert _run(["index", TRAVEL, "--project", "trips", "--output", "json"]) == 0
    index = json.loads(capsys.readouterr().out)
    ids = {chunk["chunk_id"] for page in index["documents"] for chunk in page["chunks"]}
    assert (index["project"], len(ids)) == ("trips", index["num_chunks"])
    assert _run(["ask", OVERSTAY, "-t", f"bm25:{TRAVEL}", "--output", "json"]) == 0
    first = json.loads(capsys.readouterr().out)["sources"][0]["chunk_id"]
    assert first in ids
    options = ["--answer", "No.", "--difficulty", "easy", "--category", "usage", "--notes", "n", "--domain", "travel"]
    add = ["golden", "add", "new/mine.jsonl", "--question"]
    assert _run([*add, OVERSTAY, "--expect", first, *options]) == 0
    assert _run([*add, "Who won in 1954?", "--negative", "--draft"]) == 0
    assert _run([*add, "And?", "--quote", "90 days", "--source", "Visas"]) == 0
    one, two, three = open_golden("new/mine.jsonl", drafts=True)
    assert (one.id, one.expected, one.expected_answer, one.domain) == ("1", (first,), "No.", "travel")
    assert (two.id, two.negative, two.draft, three.expected_sources) == ("2", True, True, ("Visas",))
    assert len(open_golden("new/mine.jsonl")) == 2
    assert called(capsys, "add", "mine.jsonl", "--question", "a?", "--negative", "--expect", "b")[0] == 2
    assert "Missing option '--question'" in called(capsys, "add", "mine.jsonl")[2]
    code, _, err = called(capsys, "add", "mine.jsonl", "--question", "Who?")
    assert (code, "the question expects nothing; give --expect" in err) == (2, True)
    assert not Path("mine.jsonl").exists()
    assert called(capsys, "add", "mine.jsonl", "--question", "Who?", "--answer", "You.")[0] == 0
    assert called(capsys, "add", "mine.jsonl", "--question", "Why?", "--draft")[0] == 0


def test_the_index_is_shown_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["index", TRAVEL]) == 0
    out = capsys.readouterr().out
    assert "schengen-visa.md  Schengen visas\n  schengen-visa  (" in out
    assert "travel: 19 pages, 85 chunks; ask with -t 'bm25:" in out
    assert _run(["index", TRAVEL, "--chunk", "words:200:40"]) == 0
    assert "?chunk=words:200:40'" in capsys.readouterr().out
    assert _run(["index", "nowhere"]) == _run(["index", TRAVEL, "--chunk", "letters"]) == 2


@pytest.mark.parametrize(("expectation", "message"), data("cli.json")["what_the_corpus_does_not_hold_is_not_added"])
@pytest.mark.parametrize("settings", ["[golden.lint]\ncorpus = 'docs'", "[run]\ntarget = 'bm25:docs'", ""])
def test_what_the_corpus_does_not_hold_is_not_added(
    expectation: list[str], message: str, settings: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, before = written(MANY), Path("mine.jsonl").read_text()
    Path("evaltrack.toml").write_text(settings)
    add = ["add", path, "--question", "b?", *([] if settings else ["--corpus", "docs"])]
    code, _, err = called(capsys, *add, *expectation)
    assert (code, message.replace("docs", "bm25:docs") in err if "bm25" in settings else message in err) == (2, True)
    assert Path(path).read_text() == before
    assert called(capsys, *add, "--expect", "visa", "--quote", "guests stay")[0] == 0
    assert called(capsys, *add[:3], "c?", *add[4:], *expectation, "--draft")[0] == 0


def test_anchor_reads_the_corpus_of_the_settings_file(capsys: pytest.CaptureFixture[str]) -> None:
    path = written(MANY)
    Path("evaltrack.toml").write_text("[golden.lint]\ncorpus = 'docs'\n")
    assert "1 question would get 1 quotation" in called(capsys, "anchor", path, "--dry-run")[2]


@pytest.mark.parametrize(("fields", "message"), data("cli.json")["what_is_wrong_is_said_and_nothing_is_written"])
def test_what_is_wrong_is_said_and_nothing_is_written(fields: dict[str, str], message: str) -> None:
    Path("mine.jsonl").write_text('{"id": 1, "question": "First?"}')
    with pytest.raises(UsageError, match=message):
        add_question("mine.jsonl", **fields)
    assert Path("mine.jsonl").read_text() == '{"id": 1, "question": "First?"}'


def test_a_set_with_bad_lines_is_left_alone() -> None:
    Path("mine.jsonl").write_text("nope\n")
    with pytest.raises(GoldenError, match="invalid JSON"):
        add_question("mine.jsonl", question="a?")
    with pytest.raises(UsageError, match="a golden set is a"):
        add_question("mine.txt", question="a?")
    Path("file").touch()
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        add_question("file/mine.jsonl", question="a?")


def test_two_who_add_at_once_lose_nothing() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda number: add_question("mine.jsonl", question=f"Question {number}?"), range(24)))
    assert sorted(int(each.id) for each in made) == list(range(1, 25))
    assert {each.question for each in open_golden("mine.jsonl")} == {f"Question {number}?" for number in range(24)}


@pytest.mark.parametrize("content", ["", "[]", "\n"])
def test_an_empty_file_becomes_a_set(content: str) -> None:
    Path("mine.json").write_text(content)
    add_question("mine.json", question="a?")
    add_question("mine.json", question="b?")
    assert [(each.id, each.question) for each in open_golden("mine.json")] == [("1", "a?"), ("2", "b?")]


# import


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_is_no_wrong_use(there: bool, small_disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3; nothing half-written is left, and an older file is as it was."""
    texts = [random.Random(place).randbytes(600).hex() for place in range(600)]
    rows = "".join(f"{place},{text}?,{text}\n" for place, text in enumerate(texts))
    Path("large.csv").write_text("id,question,expected_chunks\n" + rows)
    output = small_disk / "mine.jsonl"
    if there:
        output.write_text("precious")
    code, _, err = called(capsys, "import", "large.csv", "-o", str(output), *["--force"] * there)
    assert code == 3, err
    assert "cannot be written: No space left on device; name another file" in " ".join(err.split())
    assert [path.read_text() for path in small_disk.rglob("*") if path.is_file()] == ["precious"] * there


def test_a_table_becomes_a_golden_set(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.csv").write_text("Query,doc_ids,tags\na?,x|y,t\n")
    fields = ["--map", "question=Query", "--map", "expected-chunks=doc_ids", "--separator", "|"]
    code, out, err = called(capsys, "import", "mine.csv", "-o", "out.jsonl", *fields)
    assert (code, out) == (0, "out.jsonl (table): 1 question, 0 negatives, 0 without expected sources\n")
    assert err == "  `tags` is not a golden field: kept in `metadata`: 1 (mine.csv:2)\n"
    assert called(capsys, "lint", "out.jsonl")[0] == 0


@pytest.mark.parametrize(("words", "message"), data("cli.json")["a_wrong_import_exits_2"])
def test_a_wrong_import_exits_2(words: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("there.jsonl").write_text("precious\n")
    Path("a.csv").write_text("q\nx\n")
    code, _, err = called(capsys, "import", *words.split())
    assert (code, message in err) == (2, True)
    assert sorted(path.name for path in folder.iterdir()) == ["a.csv", "there.jsonl"]
