"""The commonest mistakes: each message says what is wrong, where, and how to cure it, and nothing is run."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from evaltrack.cli import _run
from evaltrack.errors import SITE, Guide, UsageError
from evaltrack.golden.reader import open_golden
from tests.conftest import REPO

APP = """
def ask(question, k): return ["a"]
def number(question): return 5
def field(question): return {"anwser": "a"}
def fails(question): raise KeyError("index")
def three(a, b, c): return "a"
value = 3
"""
LINE = {"id": 1, "question": "What if I overstay?", "expected_chunks": ["schengen-visa#overstay"]}
SETS = {
    "good": [LINE],
    "two": [LINE | {"expected_chunks": ["schengen-visa#overstay", "fares#refunds"]}],
    "empty": [],
    "twice": [LINE, LINE],
    "field": [{"id": 1, "question": "Q?", "expected_chunk": ["a"]}],
    "expect": [LINE | {"expect": ["a"]}],
    "letter": [LINE | {"x": ["a"]}],
    "form": [LINE | {"expected_chunks": ["Schengen-Visa#Overstay"]}],
    "absent": [LINE | {"expected_chunks": ["nowhere#at-all"]}],
    "judged": [{"id": 1, "question": "Q?"}],
    "drafts": [LINE | {"draft": True}],
    "others": [{"id": n, "question": f"{n}?", "expected_chunks": ["v2/a"]} for n in range(12)],
}

MISTAKES = [
    # golden sets
    ("run nowhere.txt", 2, "nowhere.txt: no such file"),
    ("run god.jsonl", 2, "god.jsonl: no such file; did you mean good.jsonl?"),
    ("run", 2,
     "no golden set was named, and golden/ holds none; name one: evaltrack run GOLDEN, or begin with: "
     "evaltrack init"),
    ("run empty.jsonl", 2, "empty.jsonl: holds no questions; write one JSON object a line, with `id` and `question`"),
    ("run drafts.jsonl", 2, "drafts.jsonl: holds drafts alone (1); take `draft` from those that are right"),
    ("run twice.jsonl", 2, "twice.jsonl:2: id `1` is already on line 1; ids must be unique: give it another"),
    ("run field.jsonl", 2, "field.jsonl:1: unknown field `expected_chunk`; did you mean `expected_chunks`?"),
    ("run torn.jsonl", 2, "torn.jsonl:1: is not JSON: it ends before a value at column 9; write one on the same line"),
    ("run latin.jsonl", 2, "latin.jsonl:1: is not valid UTF-8 at byte 23; save the file as UTF-8"),
    ("run pretty.jsonl", 2,
     "pretty.jsonl:1: holds an object over several lines; write each question on one line, as `jq -c .` does"),
    ("run array.jsonl", 2, "array.jsonl:1: is an array; write one question a line, or name the file .json"),
    ("run lines.jsonl", 2,
     "lines.jsonl:1: holds an array over several lines; write one question a line, or name the file .json"),
    ("run wide.jsonl", 2, "wide.jsonl: is UTF-16; save it as UTF-8"),
    ("run good.jsonl.gz", 2, "good.jsonl.gz: is compressed (gzip); unpack it"),
    ("run expect.jsonl", 2,
     "expect.jsonl:1: unknown field `expect`; did you mean `expected_chunks`, `expected_sources`, `expected_passages`, "
     "`expected_answer`, `expected_tools` or `expected_arguments`?"),
    ("run letter.jsonl", 2, "letter.jsonl:1: unknown field `x`; known fields: id, question, history, "),
    ("golden lint form.jsonl", 2,
     "`Schengen-Visa#Overstay` is not in corpus/form, `schengen-visa#overstay` is; write "
     "`schengen-visa#overstay`"),
    ("golden lint absent.jsonl", 2,
     "`nowhere#at-all` is not in corpus/absent; add the page, or correct the question"),
    ("run others.jsonl -t python:app:ask", 0,
     "no expected source of 12 questions ever came back: expected v2/a, returned e.g. a; are the ids "
     "those of the target?"),
    ("run two.jsonl -k 1 -t bm25:corpus/form", 0,
     "1 question expects more than k = 1 sources, so that recall cannot reach 1; `k=2` would do"),
    # targets
    ("run good.jsonl", 2,
     "no target was named and there is no corpus at corpus/good; name one with -t, e.g. -t bm25:DIR"),
    ("run good.jsonl -t bm25:nowhere", 2, "corpus nowhere: no such directory; name a folder of pages"),
    ("run good.jsonl -t bm52:corpus", 2, "unknown target `bm52:corpus`; did you mean `bm25:`?"),
    ("run good.jsonl -t python:nope:ask", 2,
     "No module named 'nope'; call evaltrack in the folder that holds nope, or install it"),
    ("run good.jsonl -t python:needs:ask", 2,
     "No module named 'no_such_library'; install what it imports into the environment of evaltrack"),
    ("run good.jsonl -t python:broken:ask", 2, "correct it; `python -c 'import broken'` shows where"),
    ("run good.jsonl -t python:app:nope", 2,
     "module 'app' has no attribute 'nope'; it has ask, number, field, fails, three"),
    ("run good.jsonl -t python:app", 2, "python target `app`: write package.module:function"),
    ("run good.jsonl -t python:app:value", 2,
     "python target `app:value`: is not a function but int; name a function"),
    ("run good.jsonl -t python:app:three", 2,
     "must take (question, k), (question) or (messages); write def three(question, k)"),
    ("run good.jsonl -t python:app:number", 3,
     "nothing could be measured: 1 of 1 question ended in errors; most often: target_invalid: what the "
     "target returned is int; return an answer, a list of sources, a mapping or a Response"),
    ("run good.jsonl -t python:app:field", 3, "anwser"),
    ("run good.jsonl -t python:app:fails", 3, "most often: target_error: KeyError: 'index'"),
    ("run good.jsonl -t http://127.0.0.1:9/ask", 3,
     "cannot connect to http://127.0.0.1:9: Connection refused; is the server running?"),
    ("run good.jsonl -t recorded:none.jsonl", 2,
     "recorded target none.jsonl: cannot be read: No such file or directory; name a file of responses"),
    ("run good.jsonl -t command:no-such-program-here", 2,
     "holds no {{question}}, so that every question would be the same"),
    ("run good.jsonl -t openai:gpt-4o-mini", 2,
     "openai target `gpt-4o-mini`: set OPENAI_API_KEY or OPENAI_BASE_URL first"),
    # judges, settings, and what there is nothing of
    ("run good.jsonl -t python:app:ask --judge openai:gpt-4o", 2,
     "judge openai:gpt-4o: set OPENAI_API_KEY or OPENAI_BASE_URL first"),
    ("run good.jsonl -t python:app:ask --judge gpt-4o", 2,
     "unknown judge `gpt-4o`; write none, openai, openai:MODEL, recorded:FILE or package.module:function"),
    ("run good.jsonl -t python:app:ask --judge app:nope", 2,
     "module 'app' has no attribute 'nope'; it has ask, number"),
    ("run judged.jsonl -t python:app:ask", 2, "could be measured; add one, or name a judge with --judge"),
    ("run good.jsonl -k 0", 2, "k is 0; write a whole number from 1 to 1000"),
    ("run good.jsonl --require recal>=1", 2, "--require: no metric `recal`; did you mean"),
    ("rnu", 2, "there is no command `rnu`; did you mean `run`?"),
    ("compare good.jsonl", 2,
     "no finished run of golden set `good` in experiment `Default` to compare; evaluate first: evaltrack run GOLDEN"),
    ("baseline set", 2, "no finished run to promote; evaluate first: evaltrack run GOLDEN"),
    ("compare --baseline base.json", 2,
     "base.json: cannot be read: No such file or directory; save one with: evaltrack run GOLDEN > "
     "base.json"),
    ("compare --baseline good.jsonl", 2,
     "good.jsonl: is no saved run (evaltrack.run/1); save one with: evaltrack run GOLDEN > baseline.json"),
    ("golden review good.jsonl --corpus corpus/form --no-open --port {port}", 2,
     "nothing can listen on 127.0.0.1:{port}; choose another port (--port)"),
]  # fmt: skip

GUIDES = {
    "run nowhere.txt": Guide.GOLDEN_FILE,
    "run": Guide.GOLDEN_FILE,
    "run empty.jsonl": Guide.GOLDEN_LINES,
    "run drafts.jsonl": Guide.REVIEW,
    "run twice.jsonl": Guide.GOLDEN_LINES,
    "run field.jsonl": Guide.GOLDEN_LINES,
    "run torn.jsonl": Guide.GOLDEN_LINES,
    "run latin.jsonl": Guide.GOLDEN_LINES,
    **dict.fromkeys(("run pretty.jsonl", "run array.jsonl", "run lines.jsonl"), Guide.GOLDEN_LINES),
    **dict.fromkeys(("run expect.jsonl", "run letter.jsonl"), Guide.GOLDEN_LINES),
    "golden lint form.jsonl": Guide.LINT,
    "golden lint absent.jsonl": Guide.LINT,
    "run others.jsonl -t python:app:ask": Guide.IDS,
    "run two.jsonl -k 1 -t bm25:corpus/form": Guide.RECALL,
    "run good.jsonl": Guide.TARGETS,
    "run good.jsonl -t bm25:nowhere": Guide.PAGES,
    "run good.jsonl -t python:nope:ask": Guide.FUNCTION,
    "run good.jsonl -t python:needs:ask": Guide.FUNCTION,
    "run good.jsonl -t python:broken:ask": Guide.FUNCTION,
    "run good.jsonl -t python:app:nope": Guide.FUNCTION,
    "run good.jsonl -t python:app": Guide.FUNCTION,
    "run good.jsonl -t python:app:value": Guide.FUNCTION,
    "run good.jsonl -t python:app:three": Guide.FUNCTION,
    "run good.jsonl -t python:app:number": Guide.ALL_FAILED,
    "run good.jsonl -t python:app:field": Guide.ALL_FAILED,
    "run good.jsonl -t python:app:fails": Guide.ALL_FAILED,
    "run good.jsonl -t http://127.0.0.1:9/ask": Guide.ALL_FAILED,
    "run good.jsonl -t recorded:none.jsonl": Guide.RECORDED,
    "run good.jsonl -t openai:gpt-4o-mini": Guide.MODEL,
    "run good.jsonl -t command:no-such-program-here": Guide.PROGRAM,
    "run good.jsonl -t python:app:ask --judge openai:gpt-4o": Guide.MODEL,
    "run good.jsonl -t python:app:ask --judge gpt-4o": Guide.JUDGES,
    "run good.jsonl -t python:app:ask --judge app:nope": Guide.JUDGE_FUNCTION,
    "run judged.jsonl -t python:app:ask": Guide.JUDGES,
    "compare good.jsonl": Guide.BASELINE,
    "baseline set": Guide.BASELINE,
    "compare --baseline base.json": Guide.BASELINE,
    "compare --baseline good.jsonl": Guide.BASELINE,
    "golden review good.jsonl --corpus corpus/form --no-open --port {port}": Guide.REVIEW,
}
"""The section of the site that each message ends with; of the others, typing errors, the message is the whole cure."""


@pytest.fixture
def project(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with golden sets, an app and a corpus; no key, and a fresh store."""
    for name, lines in SETS.items():
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Path("torn.jsonl").write_text('{"id": 1,')
    Path("wide.jsonl").write_text(json.dumps(LINE), "utf-16")
    Path("good.jsonl.gz").write_bytes(gzip.compress(json.dumps(LINE).encode()))
    Path("array.jsonl").write_text(json.dumps([LINE, LINE]))
    for name, value in (("pretty", LINE), ("lines", [LINE])):
        Path(f"{name}.jsonl").write_text(json.dumps(value, indent=2))
    Path("latin.jsonl").write_bytes(b'{"id": 1, "question": \xe9}')
    Path("app.py").write_text(APP)
    Path("needs.py").write_text("import no_such_library\n")
    Path("broken.py").write_text("def ask(:\n")
    for name in ("form", "absent"):
        shutil.copytree(REPO / "golden/corpus/travel", Path("corpus") / name)
    monkeypatch.setattr("sys.path", [str(Path.cwd()), *sys.path])
    for module in ("app", "needs", "broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return Path.cwd()


@pytest.fixture
def busy_port() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize(("command", "code", "message"), MISTAKES, ids=[command for command, _, _ in MISTAKES])
def test_a_mistake_is_explained(
    project: Path, busy_port: int, capfd: pytest.CaptureFixture[str], command: str, code: int, message: str
) -> None:
    """What, where and how to cure it."""
    words = command.format(port=busy_port).split()
    ended = _run(words)
    shown = capfd.readouterr()
    said = " ".join((shown.err + shown.out).split())
    assert message.format(port=busy_port) in said
    assert ended == code
    assert "Traceback" not in shown.err
    _check_guide(GUIDES.get(command), shown.err.splitlines(), said)


def _check_guide(guide: Guide | None, lines: list[str], said: str) -> None:
    """Its address is named once, at the end, and is not longer than the message."""
    if guide is None:
        assert SITE not in said
        return
    if guide in (Guide.IDS, Guide.RECALL):  # of notes, which stdout holds too
        assert guide.reference in said
        return
    assert said.count(SITE) == 1
    assert lines[-1] == guide.reference
    assert len(lines[-1]) <= len(lines[-2])


@pytest.mark.parametrize(
    "words",
    [["compare", ""], ["compare", "a", ""], ["report", "", "-o", "report.html"], ["run", ""], ["baseline", "set", ""]],
)
def test_a_variable_that_is_not_set_names_no_run(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """An empty name is none that was left out, which stands for the newest run: that may be another one."""
    assert _run(words) == 2
    said = "Error: an argument is empty (a variable that is not set?); write a name, or leave it out\n"
    assert capsys.readouterr().err == said


def test_a_file_on_stderr_gets_every_bad_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a recorded file; elsewhere the first 20, and how to see the others."""
    Path("bad.jsonl").write_text('{"id": 1}\n' * 30)
    words = ["run", "good.jsonl", "-t", "recorded:bad.jsonl"]
    with Path("problems.txt").open("w") as file, redirect_stderr(file):
        assert _run(words) == 2
    every = Path("problems.txt").read_text().splitlines()
    places = [line.removeprefix("Error: ").partition(": ")[0] for line in every]
    assert places[:-1] == [f"bad.jsonl:{number}" for number in range(1, 31)]
    assert _run(words) == 2
    assert capsys.readouterr().err.splitlines()[19:-1] == [
        every[19],
        "... and 10 more problems; `2> FILE` saves all of them",
    ]


def test_most_mistakes_have_a_page() -> None:
    """All of them are in the table."""
    assert len(GUIDES) > 30
    assert GUIDES.keys() <= {command for command, _, _ in MISTAKES}


@pytest.mark.parametrize("command", ["run good.jsonl -t python:app:fails", "golden lint absent.jsonl"])
def test_what_machines_read_names_no_page(project: Path, capfd: pytest.CaptureFixture[str], command: str) -> None:
    """JSON on stdout stays JSON; the page is named on stderr, if at all."""
    _run([*command.split(), "--output", "json"])
    printed = capfd.readouterr().out
    json.loads(printed)
    assert SITE not in printed


def test_an_error_holds_its_page_apart_from_its_message(project: Path) -> None:
    """For who calls the package."""
    with pytest.raises(UsageError) as caught:
        open_golden("empty.jsonl")
    assert caught.value.guide is Guide.GOLDEN_LINES
    assert SITE not in str(caught.value)


def test_errors_of_several_sets_name_a_page(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That of the first."""
    assert _run(["run", "good.jsonl", "twice.jsonl", "-t", "python:app:ask"]) == 2
    assert capsys.readouterr().err.endswith(f"{Guide.GOLDEN_LINES.reference}\n")


def test_a_comparison_without_a_baseline_says_how_to_set_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After the first run."""
    assert _run(["run", "good.jsonl", "-t", "bm25:corpus/form"]) == 0
    assert _run(["compare"]) == 2
    cure = "set one (evaltrack baseline set RUN), or name one with --baseline-run or --baseline"
    said = capsys.readouterr().err
    assert f"golden set `good` has no baseline in this experiment; {cure}" in said
    assert said.endswith(f"{Guide.BASELINE.reference}\n")


def test_a_server_of_mlflow_that_is_down_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the variable that names it."""
    import mlflow

    mlflow.set_tracking_uri(None)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert _run(["run", "good.jsonl", "-t", "bm25:corpus/form"]) == 3
    said = capsys.readouterr().err
    assert "MLflow store http://127.0.0.1:9 does not answer" in said
    assert "check MLFLOW_TRACKING_URI, and that the server runs" in said
    assert said.endswith(f"{Guide.STORE.reference}\n")
