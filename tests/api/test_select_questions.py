from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Comparison, RunResult, compare_runs, run_eval
from evaltrack.cli import _run
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.report.comparison_files import comparison_junit
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import reasons
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.schemas.comparison import comparison_json
from tests.files import put

QUESTIONS: list[dict[str, Any]] = [
    {"id": n, "question": f"q {n}", "expected_chunks": [f"c{n}"], "domain": "rail" if n < 8 else "air"}
    for n in range(12)
]
"""Twelve questions, eight of domain rail and four of domain air."""


def write(folder: Path, questions: list[dict[str, Any]] = QUESTIONS, name: str = "twelve.jsonl") -> Path:
    return put(folder / name, questions)


class Target:
    """Finds what a question expects, but for those it fails at; remembers what it was asked."""

    def __init__(self, *wrong: int, broken: int = -1, stop_at: int = -1) -> None:
        self.wrong, self.broken, self.stop_at = wrong, broken, stop_at
        self.asked: list[int] = []

    def __call__(self, question: str) -> list[str]:
        number = int(question.removeprefix("q "))
        self.asked.append(number)
        if len(self.asked) == self.stop_at:
            os.kill(os.getpid(), signal.SIGINT)
        if number == self.broken:
            raise ValueError("down")
        return ["x"] if number in self.wrong else [f"c{number}"]


def evaluated(folder: Path, target: Target, **settings: Any) -> RunResult:
    return run_eval(write(folder), target=target, traces="off", **settings)


@pytest.fixture
def whole(store_uri: str, tmp_path: Path) -> RunResult:
    """A run of all questions, of which 1 and 9 do not pass and 10 ends in an error."""
    return evaluated(tmp_path, Target(1, 9, broken=10))


def test_a_run_says_which_part_it_asked(store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = Target()
    part = evaluated(tmp_path, target, filter="domain=rail", sample=3, sample_seed=5)
    assert (len(target.asked), part.totals["num_questions"]) == (3, 3)
    words = "3 of 12 questions (domain=rail; sample 3, seed 5)"
    run = mlflow.get_run(part.run_id)
    logged = {name: run.data.params[name] for name in ("filter", "sample", "sample_seed")}
    assert logged == {"filter": "domain=rail", "sample": "3", "sample_seed": "5"}
    assert part.signature.selection is not None
    assert json.loads(run.data.tags["evaltrack.signature"])["selection"]["total"] == 12
    assert part.signature.selection.words == words
    assert "on 3 questions (0 negatives), selected: 3 of 12 questions" in run.data.tags["mlflow.note.content"]
    assert (
        words in Path(mlflow.artifacts.download_artifacts(run_id=part.run_id, artifact_path="report.html")).read_text()
    )
    assert run.inputs.dataset_inputs[0].dataset.digest == part.signature.golden_digest[:36]
    capsys.readouterr()
    assert _run(["report", part.run_id, "-o", "report.html"]) == 0
    assert words in Path("report.html").read_text()


def test_questions_that_failed_may_miss_all_that_they_expect(
    store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, answers = write(tmp_path), tmp_path / "answers.jsonl"
    chunks = ["x" if n < 11 else f"c{n}" for n in range(12)]
    answers.write_text("".join(json.dumps({"id": n, "sources": [chunk]}) + "\n" for n, chunk in enumerate(chunks)))
    whole = run_eval(path, target=f"recorded:{answers}", judge="none", traces="off")
    capsys.readouterr()
    words = ["run", str(path), "-t", f"recorded:{answers}", "--judge", "none", "--traces", "off", "--output", "table"]
    assert _run([*words, "--only-failed", whole.run_id]) == 0
    printed = capsys.readouterr()
    assert "11 of 12 questions" in printed.out
    assert "was ever returned" not in printed.out + printed.err
    assert _run([*words, "--filter", "id!=11"]) == 0
    assert "no expected source of 11 questions was ever returned" in " ".join(capsys.readouterr().out.split())


def test_only_the_questions_that_did_not_pass_are_asked(whole: RunResult, tmp_path: Path) -> None:
    target = Target()
    again = evaluated(tmp_path, target, only_failed=whole.run_id[:12])
    assert sorted(target.asked) == [1, 9, 10]
    assert mlflow.get_run(again.run_id).data.params["only_failed"] == whole.run_id
    assert again.signature.selection is not None
    assert again.signature.selection.words == f"3 of 12 questions (not passed in run {whole.run_id[:8]})"
    with pytest.raises(UsageError, match="every question of the set passed in that run"):
        evaluated(tmp_path, Target(), only_failed=again.run_id)


def test_a_run_that_cannot_say_what_failed_is_refused(whole: RunResult, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a run of golden set `twelve`; name one of `other`"):
        run_eval(write(tmp_path, name="other.jsonl"), target=Target(), only_failed=whole.run_id)
    mlflow.MlflowClient().update_run(whole.run_id, status="RUNNING")
    with pytest.raises(InconclusiveError, match=f"still RUNNING; wait .*evaltrack resume {whole.run_id}"):
        evaluated(tmp_path, Target(), only_failed=whole.run_id)
    with pytest.raises(UsageError, match="nosuchrun"):
        evaluated(tmp_path, Target(), only_failed="nosuchrun")


def test_a_resumed_run_asks_the_same_questions(whole: RunResult, tmp_path: Path) -> None:
    broken_off = Target(stop_at=2)
    settings = {"filter": "id!=0", "sample": 6, "concurrency": 1}
    with pytest.raises(KeyboardInterrupt) as stopped:
        evaluated(tmp_path, broken_off, **settings)
    run_id = str(stopped.value).split()[-1]
    with pytest.raises(UsageError, match="sample is 6, not 7"):
        evaluated(tmp_path, Target(), **(settings | {"sample": 7}), resume=run_id)
    rest = Target()
    result = evaluated(tmp_path, rest, **settings, resume=run_id)
    in_one_go = Target()
    evaluated(tmp_path, in_one_go, **settings)
    assert sorted(broken_off.asked + rest.asked) == sorted(in_one_go.asked)
    assert (result.run_id, result.totals["num_questions"]) == (run_id, 6)


def compared(one: RunResult, other: RunResult, **options: Any) -> Comparison:
    made: Comparison = compare_runs(other.run_id, one.run_id, log=False, **options)
    return made


def test_a_part_is_compared_with_the_whole_on_its_questions(store_uri: str, tmp_path: Path) -> None:
    before = evaluated(tmp_path, Target())
    made = compared(before, evaluated(tmp_path, Target(), filter="domain=air"), min_coverage=0.95, allow_partial=True)
    assert (made.verdict, made.num_common) == ("ok", 4)
    assert (made.removed, made.added, made.not_selected) == ((), (), tuple(map(str, range(8))))
    headline = "No regression in a selection of 4 of 12 questions"
    assert reasons(made) == ["no question broke"]
    whole_json = comparison_json(made)
    assert (whole_json["headline"], whole_json["not_selected"]) == (headline, [str(n) for n in range(8)])
    assert whole_json["candidate"]["signature"]["selection"]["questions"] == 4
    for text in (comparison_text(made, 400), comparison_html(made)):
        assert headline in text
        assert "candidate: 4 of 12 questions (domain=air)" in text
        assert "8 not selected (0, 1, 2" in text
    assert headline in comparison_markdown(made)
    assert 'name="0"' in comparison_junit(made)
    assert "not selected: not compared" in comparison_junit(made)
    worse = compared(before, evaluated(tmp_path, Target(9), filter="domain=air"))
    assert (worse.verdict, [flip.id for flip in worse.flips]) == ("regression", ["9"])
    assert comparison_text(worse).startswith("Regression in a selection of 4 of 12 questions")
