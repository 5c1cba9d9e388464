from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import get_args

from evaltrack import errors
from evaltrack.compare.change import CauseKind
from evaltrack.golden.reader import open_golden
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records import Question
from evaltrack.targets import KINDS

from .conftest import REPO

README = (REPO / "README.md").read_text()


def table(page: str, header: str) -> list[list[str]]:
    lines = (REPO / "docs" / page).read_text(encoding="utf-8").partition(f"| {header} |")[2].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def test_every_metric_is_defined() -> None:
    page = (REPO / "docs" / "definitions.md").read_text(encoding="utf-8")
    named = {score.metric for score in SCORES} | {"combined_score_best"}
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []


def test_the_exit_codes_are_those_in_the_code() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert {int(row[0]) for row in table("reference/exit-codes.md", "exit code")} == {0, *codes}


def test_every_field_of_a_question_is_documented() -> None:
    named = {name for row in table("reference/formats.md", "field") for name in re.findall(r"`(\w+)`", row[0])}
    assert named == set(Question.model_fields)


def test_every_kind_of_target_is_documented() -> None:
    assert {kind for row in table("how-to/targets.md", "`-t`") for kind in re.findall(r"`(\w+):", row[0])} == set(KINDS)


def test_every_cause_is_documented() -> None:
    assert {row[0].strip("`") for row in table("concepts/causes.md", "cause")} == set(get_args(CauseKind))


def test_ci_runs_the_readmes_test_command() -> None:
    assert README.count("python -m pytest") == 1
    assert "grep -m1 -F 'python -m pytest' README.md" in (REPO / ".ci/run").read_text()


def test_the_readme_is_one_screen_and_a_half() -> None:
    assert len(README.splitlines()) <= 120


def test_the_pictures_are_small() -> None:
    pages = README + "".join(path.read_text(encoding="utf-8") for path in (REPO / "docs").rglob("*.md"))
    for path in (REPO / "docs/assets").glob("*.png"):
        assert path.stat().st_size <= 150_000
        assert f"assets/{path.name}" in pages


def test_the_golden_sets_are_what_their_readme_counts() -> None:
    page = (REPO / "golden/README.md").read_text()
    told = re.findall(r"(?m)^\| `([\w.]+)` \| (\d+) \| (\d+|none) \|", page)
    sets = {path.name: open_golden(path) for path in (REPO / "golden").glob("*.json*")}
    assert {name: (int(questions), int(negatives.replace("none", "0"))) for name, questions, negatives in told} == {
        name: (each.stats.questions, each.stats.negatives) for name, each in sets.items()
    }
    for name in ("travel", "food", "cdc", "construction", "business"):
        golden = sets[f"{name}.jsonl"]
        answers = sum(question.expected_answer is not None for question in golden)
        assert golden.stats.questions - golden.stats.negatives == answers >= 57
        assert 2 <= golden.stats.negatives <= 3
    assert 10 <= sets["wikipedia.json"].stats.questions <= 20


def test_no_file_names_a_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True).stdout.split("\n")
    named = re.compile(r"/(?:home|root|Users)/\w")
    for name in filter(None, tracked):
        path = REPO / name
        if (
            path.suffix in {".md", ".py", ".toml", ".jsonl", ".json", ""}
            and path.is_file()
            and "tests" not in Path(name).parts
        ):
            assert not named.search(path.read_text(encoding="utf-8")), name
