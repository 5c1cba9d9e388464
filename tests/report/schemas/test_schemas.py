"""The published JSON Schemas are those of the code, and hold for real files and real outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from evaltrack.cli import _run
from evaltrack.errors import UsageError
from evaltrack.judges.recorded import RecordedJudge
from evaltrack.report.comparison_files import json_text
from evaltrack.report.run_text import run_json
from evaltrack.report.schemas import made_schemas
from evaltrack.targets.recorded import open_recorded
from tests.conftest import REPO, few_questions
from tests.files import data
from tests.judging import recordings
from tests.report.test_run import rich
from tests.report.whole_pages import every_change

CASES = data("report.json")

GOLDEN = REPO / "golden"
SCHEMAS = made_schemas()


def valid(name: str, value: object) -> bool:
    return bool(Draft202012Validator(SCHEMAS[name]).is_valid(value))


def closed(schema: Any) -> Any:
    """The schema with no room for fields that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: closed(each) for name, each in schema.items()}
    return {"additionalProperties": False} | strict if isinstance(schema.get("properties"), dict) else strict


def problems(name: str, value: object) -> list[str]:
    """What is wrong with an output, of which each field must be described."""
    errors = Draft202012Validator(closed(SCHEMAS[name])).iter_errors(value)
    return [f"{each.json_path}: {each.message[:200]}" for each in errors]


def lines(path: Path) -> list[Any]:
    return list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])


def test_golden_sets_of_the_project_are_valid() -> None:
    sets = {path.name: lines(path) for path in GOLDEN.glob("*.jsonl")}
    sets["wikipedia.json"] = json.loads((GOLDEN / "wikipedia.json").read_text(encoding="utf-8"))
    assert len(sets) > 8
    assert {name: [each for each in found if not valid("golden", each)] for name, found in sets.items()} == {
        name: [] for name in sets
    }


@pytest.mark.parametrize(("line", "right"), CASES["a_golden_line_is_valid_where_the_reader_takes_it"])
def test_a_golden_line_is_valid_where_the_reader_takes_it(tmp_path: Path, line: dict[str, Any], right: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line))
    assert (valid("golden", line), _run(["golden", "lint", str(path)]) == 0) == (right, right)


@pytest.mark.parametrize("kind", ["response", "verdict"])
def test_recorded_files_of_the_project_are_valid(kind: str) -> None:
    ending = ".verdicts.jsonl" if kind == "verdict" else ".jsonl"
    paths = [
        path
        for path in (GOLDEN / "reasoning_responses").glob(f"*{ending}")
        if path.name.count(".") == ending.count(".") and "second" not in path.name
    ]
    assert len(paths) == 4
    assert [each for path in paths for each in lines(path) if not valid(kind, each)] == []


@pytest.mark.parametrize(("kind", "line", "right"), CASES["recorded_lines_are_valid_where_the_readers_take_them"])
def test_recorded_lines_are_valid_where_the_readers_take_them(
    kind: str, line: dict[str, Any], right: bool, tmp_path: Path
) -> None:
    (path := tmp_path / "line.jsonl").write_text(json.dumps(line))
    try:
        RecordedJudge(path) if kind == "verdict" else open_recorded(str(path), {})
        taken = True
    except UsageError:
        taken = False
    assert (valid(kind, line), taken) == (right, right)


def test_a_schema_is_printed_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["schema", "golden"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(SCHEMAS["golden"]))
    assert _run(["schema"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(SCHEMAS)
    assert _run(["schema", "goldne"]) == 2
    assert "no schema is called `goldne`; did you mean `golden`?" in capsys.readouterr().err
    assert _run(["schema", "../../records/base"]) == 2
    assert "there are agreement, " in capsys.readouterr().err


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert _run([*arguments, "--output", "json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_comparison_and_a_run_of_which_each_part_is_filled_are_valid() -> None:
    assert problems("comparison", json.loads(json_text(every_change()))) == []
    assert problems("run", json.loads("".join(run_json(rich())))) == []


def test_outputs_of_runs_and_comparisons_are_valid(
    store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = str(few_questions(tmp_path, 12))
    own = ("--score", "words=regex:\\w+ \\w+")
    first = printed(capsys, "run", golden, "--require", "recall_at_k>=0.1", *own)
    assert "words" in first["rows"][0]
    assert first["signature"]["scores"]
    assert problems("run", first) == []
    worse = printed(capsys, "run", golden, "-t", f"bm25:{GOLDEN}/corpus/travel?chunk=words:30", "--trials", "2", *own)
    assert problems("run", worse) == []
    assert printed(capsys, "baseline", "show") == []
    assert _run(["baseline", "set", first["run_id"]]) == 0
    assert problems("baselines", printed(capsys, "baseline", "show")) == []
    compared = printed(capsys, "compare", worse["run_id"], "--max-drop", "travel:mrr=5%", code=1)
    assert compared["flips"]
    assert problems("comparison", compared) == []
    other = tmp_path / "other.jsonl"
    other.write_bytes(Path(golden).read_bytes())
    target = f"bm25:{GOLDEN}/corpus/travel"
    sets = printed(capsys, "run", golden, str(other), "-t", target, "--sample", "4")
    assert problems("runs", sets) == []
    assert _run(["baseline", "set", sets["sets"][1]["run_id"]]) == 0
    capsys.readouterr()
    assert _run(["compare", golden, str(other), "--output", "json"]) in (0, 3)
    assert problems("comparisons", json.loads(capsys.readouterr().out)) == []


JUDGE = """
def judge(question, response):
    score = 0.5 + len(question.id) / 10
    return {"accuracy": 1.0, "completeness": score, "relevance": 1.0, "overall_score": score, "reasoning": "so"}
"""


def test_outputs_about_judges_are_valid(store_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("own_judge_of_test.py").write_text(JUDGE)
    golden = few_questions(tmp_path, 8)
    answers = [{"id": each, "answer": "So.", "sources": ["fares#refunds"]} for each in range(1, 9)]
    Path("answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in answers))
    run = printed(capsys, "run", str(golden), "-t", "recorded:answers.jsonl", "--judge", "own_judge_of_test:judge")
    assert run["metrics"]["judge_score"]
    assert problems("run", run) == []
    replay = printed(capsys, "judge", "replay", run["run_id"], "--judge", "own_judge_of_test:judge")
    assert problems("replay", replay) == []
    fields = {"accuracy": 1, "completeness": 0.2, "relevance": 1, "overall_score": 0.3}
    Path("people.jsonl").write_text("".join(json.dumps({"id": each, **fields}) + "\n" for each in range(1, 9)))
    agreement = printed(capsys, "judge", "agree", run["run_id"], "--labels", "people.jsonl")
    assert agreement["disagreements"]
    assert problems("agreement", agreement) == []
    recorded = [f"--{option}={name}" for option, name in recordings("strong").items()]
    reasoned = printed(capsys, "run", f"{GOLDEN}/reasoning.jsonl", *recorded, "--rubric", "reasoning", "--sample", "12")
    assert reasoned["aims"]
    assert problems("run", reasoned) == []


def test_findings_are_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    golden = str(few_questions(tmp_path, 12, quoted=False))
    Path("bad.jsonl").write_text('{"id": 1}\n{"id": 1, "question": "Q?", "expected_chunks": ["a"]}\n')
    assert problems("findings", printed(capsys, "golden", "lint", "bad.jsonl", golden, code=2)) == []


def test_an_output_that_lacks_a_field_or_holds_another_is_found() -> None:
    plan = {"schema": "evaltrack.sweep-plan/1", "name": "a", "golden": "b", "questions": 1}
    plan |= {"target_calls": 1, "judge_calls": 0, "configurations": []}
    assert problems("sweep-plan", plan) == []
    assert problems("sweep-plan", {**plan, "colour": "red"}) != []
    assert problems("sweep-plan", {"name": "a"}) != []
    assert valid("sweep-plan", {**plan, "of_a_later_version": 1})
