"""Stdout and stderr that are closed or full: a verdict stays, and a result that is cut is no success."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.cli import main
from evaltrack.errors import UsageError
from tests import warm
from tests.api.test_evaluate import golden
from tests.files import put
from tests.small_targets import good, worse

NUMBERS = {"stdout": 1, "stderr": 2}
CLOSED = "os.close({number}); sys.{name} = None\n"
FULL = "os.dup2(os.open('/dev/full', os.O_WRONLY), {number})\n"
UNREAD = "ends = os.pipe(); os.close(ends[0]); sys.{name} = os.fdopen(ends[1], 'w')\n"
MAIN = "from evaltrack.cli import main\nmain({words!r})\n"
SAID = "stdout could not be written: "

full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


def code(*arguments: str | Path) -> int:
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    found = ended.value.code
    assert isinstance(found, int)
    return found


def ended(folder: Path, around: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    program = "import os, sys\n" + around + MAIN.format(words=list(map(str, words)))
    return warm.run(("-c", program), folder, os.environ)


def recorded(folder: Path, *sources: str) -> str:
    lines = ({"id": each, "sources": sources} for each in ("007", "b", "c", *range(200)))
    return f"recorded:{put(folder / 'responses.jsonl', lines)}"


def became(how: str, *names: str) -> str:
    return "".join(how.format(number=NUMBERS[name], name=name) for name in names)


@full
@pytest.mark.parametrize("how", [CLOSED, FULL], ids=["closed", "full"])
@pytest.mark.parametrize("names", [("stdout",), ("stderr",), ("stdout", "stderr")], ids="+".join)
def test_a_run_exits_by_its_verdict_whatever_becomes_of_its_output(
    store_uri: str, tmp_path: Path, how: str, names: tuple[str, ...]
) -> None:
    required = ("--require", "recall_at_k>=0.9", "--traces", "off")
    target = recorded(tmp_path, "x")
    process = ended(Path.cwd(), became(how, *names), "run", golden(tmp_path), "-t", target, *required)

    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert (process.returncode, run.info.status) == (1, "FINISHED")
    if names == ("stdout",) and how == FULL:
        assert SAID in process.stderr


@full
def test_wrong_usage_is_2_though_nobody_can_be_told(tmp_path: Path) -> None:
    """Output that cannot be written is no success."""
    assert ended(tmp_path, became(FULL, "stderr"), "run", "nothing.jsonl").returncode == 2
    assert ended(tmp_path, became(FULL, "stdout", "stderr"), "run", "--unknown").returncode == 2
    lost = ended(tmp_path, became(FULL, "stdout"), "rubric")
    assert (lost.returncode, lost.stderr) == (3, f"{SAID}No space left on device; the output is incomplete\n")


@full
@pytest.mark.parametrize("output", ["table", "json", "markdown"])
def test_a_verdict_holds_on_a_full_disk(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], output: str
) -> None:
    path = golden(tmp_path)
    was, now = (run_eval(path, target=ask, tracking_uri=store_uri, traces="off").run_id for ask in (good, worse))
    compared = ("compare", now, "--baseline-run", was, "--gate", "seed", "--output", output)
    for words, exit_code in ((compared, 1), (("golden", "lint", path), 3)):
        with Path("/dev/full").open("w") as disk:
            monkeypatch.setattr(sys, "stdout", disk)
            assert code(*words) == exit_code
            assert capfd.readouterr().err.endswith(f"{SAID}No space left on device; the output is incomplete\n")


CUT = {"full": (FULL, "stdout", 3), "no reader": (UNREAD, "stdout", 0)}
CUT["full stderr"] = (FULL, "stderr", 0)


@full
@pytest.mark.parametrize(("how", "name", "expected"), CUT.values(), ids=CUT)
def test_a_result_that_is_cut_is_no_success(store_uri: str, tmp_path: Path, how: str, name: str, expected: int) -> None:
    around = became(how, name)
    words = ("run", golden(tmp_path), "-t", recorded(tmp_path, "a"), "--traces", "off", "--output", "json")
    process = ended(Path.cwd(), around, *words)
    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert (process.returncode, run.info.status) == (expected, "FINISHED")
    assert (SAID in process.stderr) == bool(expected)

    again = run_eval(words[1], target=words[3], tracking_uri=store_uri, traces="off").run_id
    same = ("compare", again, "--baseline-run", run.info.run_id, "--gate", "seed", "--no-log")
    assert ended(Path.cwd(), around, *same).returncode == expected


@pytest.mark.parametrize("read", ["gold.jsonl", "answers.jsonl", "verdicts.jsonl", "schema.json"])
def test_no_file_that_a_run_reads_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    monkeypatch.chdir(tmp_path)
    held = {
        **{"schema.json": {}, "verdicts.jsonl": [{"id": 1, "overall_score": 1}]},
        "gold.jsonl": [{"id": 1, "question": "a?", "expected_chunks": ["a"], "expected_answer": "a"}],
        "answers.jsonl": [{"id": 1, "answer": "a", "sources": ["a"]}],
    }
    before = {name: put(Path(name), content).read_text() for name, content in held.items()}
    Path("link.json").symlink_to(read)
    named = {"judge": "recorded:verdicts.jsonl", "scores": "json_schema:schema.json"}
    for name in (read, "link.json", f"missing/../{read}"):
        with pytest.raises(UsageError, match=r"is read here, and would be written over; name another file"):
            run_eval("gold.jsonl", target="recorded:answers.jsonl", evaluation_json=name, progress=False, **named)
    assert {name: Path(name).read_text() for name in held} == before


@pytest.mark.parametrize("name", ["app.py", "mlflow.db"])
def test_no_code_and_no_database_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path("gold.jsonl"), [{"id": 1, "question": "a?", "expected_chunks": ["a"]}])
    Path(name).write_text("kept")
    with pytest.raises(UsageError, match=rf"`evaluation_json={name}`: exists and is not a .json file; name another"):
        run_eval("gold.jsonl", target=lambda _question: ["a"], evaluation_json=name, progress=False)
    assert Path(name).read_text() == "kept"
