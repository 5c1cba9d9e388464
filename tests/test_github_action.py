from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from .conftest import REPO
from .workflow import ACTION, BOT, COMMENT, Job, commit, git, job, repository

PAGES = "".join(path.read_text() for path in (REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))))
QUESTION = '{"id": 1, "question": "q?", "expected_chunks": ["a"]}\n'
COMMENTING = (["OWNER/evaltrack/scripts/github/comment"], ["COMMENT"])


@pytest.mark.parametrize(("chunk", "code"), [("a", 0), ("x", 1)])
def test_the_action_ends_with_the_gates_exit_code(store_uri: str, tmp_path: Path, chunk: str, code: int) -> None:
    tree = tmp_path / "tree"
    repository(tree, {"small.jsonl": QUESTION, "answers.jsonl": '{"id": 1, "sources": ["a"]}\n'})
    saved = job(tmp_path, **{"run-options": "--output json"}).step("Evaluate")
    (tree / "baseline.json").write_text(saved.stdout)
    (tree / "answers.jsonl").write_text(f'{{"id": 1, "sources": ["{chunk}"]}}\n')
    made = job(tmp_path, baseline="baseline.json", **{"compare-options": "--allow-flips 0"})

    assert made.run() == code, made.output

    assert made.outputs["evaluate"] == {"code": "0"}
    assert made.outputs["compare"] == {"code": str(code)}
    assert made.summary.startswith("<!-- evaltrack:small -->")
    assert made.comments == [(BOT, made.summary)]
    assert ("\n::error title=Regression" in made.output) == (code == 1)
    assert {path.suffix for path in made.temp.glob("evaltrack/evaltrack.*")} == {".html", ".md", ".json", ".xml"}
    assert made.step("Gate", RUN="1", CODE="0").returncode == 1


def test_the_work_tree_stays_as_it_is(empty_database: Path, tmp_path: Path) -> None:
    repository(tmp_path / "tree", {"small.jsonl": QUESTION, "answers.jsonl": '{"id": 1, "sources": ["a"]}\n'})
    made = job(tmp_path)
    (made.temp / "evaltrack").mkdir()
    shutil.copy(empty_database, made.temp / "evaltrack/mlflow.db")

    made.step("Evaluate")

    assert made.outputs["evaluate"] == {"code": "0"}, made.output
    assert git(made.tree, "status", "--porcelain") == ""


def base_of(made: Job) -> dict[str, str]:
    assert made.step("Base").returncode == 0, made.output
    return {name: (made.tree / path).read_text() for name, path in made.outputs["base"].items()}


@pytest.mark.parametrize("name", ["evaltrack.toml", "pyproject.toml", "named.toml", ""])
def test_baseline_and_settings_are_those_of_the_base(tmp_path: Path, name: str) -> None:
    base = repository(tmp_path / "tree", {"b.json": "old", "other": "", **({name: "old"} if name else {})})
    commit(tmp_path / "tree", dict.fromkeys(("b.json", "evaltrack.toml", "pyproject.toml", "named.toml"), "new"))
    made = job(tmp_path, base, baseline="b.json")
    if name == "named.toml":
        made.env["EVALTRACK_CONFIG"] = str(tmp_path / "tree" / name)

    assert base_of(made) == {"baseline": "old", "config": "old" if name else ""}
    assert Path(made.outputs["base"]["config"]).name == (name or "evaltrack.toml")


def test_without_a_base_the_work_tree_decides(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for made in (job(tmp_path, baseline="b.json"), job(tmp_path, "1" * 40, baseline="b.json", **{"baseline-ref": ""})):
        assert made.step("Base").returncode == 0, made.output
        assert made.outputs["base"] == {"baseline": "b.json", "config": ""}


def test_a_baseline_outside_of_the_work_tree_is_taken_as_it_is(tmp_path: Path) -> None:
    base = repository(tmp_path / "tree", {"other": ""})
    (tmp_path / "downloaded.json").write_text("as it is")
    for path in ("../downloaded.json", str(tmp_path / "downloaded.json")):
        assert base_of(job(tmp_path, base, baseline=path))["baseline"] == "as it is"


def test_a_base_that_was_not_fetched_is_fetched(tmp_path: Path) -> None:
    base = repository(tmp_path / "origin", {"b.json": "old"})
    commit(tmp_path / "origin", {"b.json": "new"})
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{tmp_path}/origin", "tree")
    git(tmp_path / "origin", "branch", "stable", base)

    assert base_of(job(tmp_path, base, baseline="b.json"))["baseline"] == "old"
    assert base_of(job(tmp_path, baseline="b.json", **{"baseline-ref": "stable"}))["baseline"] == "old"


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (
            "0" * 40,
            "baseline-ref: `0000000000000000000000000000000000000000` is not in the checkout and cannot be fetched",
        ),
        ("--upload-pack=touch pwned", "baseline-ref: `--upload-pack=touch pwned` is no commit or branch"),
        ("", "`none.json` is not in main ("),
    ],
)
def test_a_base_that_does_not_decide_is_an_error(tmp_path: Path, base: str, message: str) -> None:
    repository(tmp_path / "tree", {"other": ""})
    (tmp_path / "tree" / "none.json").write_text("brought along")
    made = job(tmp_path, base or "main", baseline="none.json")

    assert made.run() == 2
    assert made.output.splitlines()[-1].startswith(f"::error title=evaltrack::{message}")
    assert "evaluate" not in made.outputs


def test_without_a_repository_the_message_says_so(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    made = job(tmp_path, "main", baseline="b.json")
    made.env["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
    assert made.step("Base").returncode == 2
    assert "::error title=evaltrack::baseline-ref: " in made.output


def test_other_actions_are_pinned() -> None:
    text = "".join(path.read_text() for path in (REPO / "scripts/github").rglob("action.yml")) + PAGES
    used = [line for line in re.findall(r"\buses: *(.*)", text) if not line.startswith("OWNER/evaltrack/")]
    assert len(used) == 4
    assert [line for line in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_the_documents_install_what_is_ours() -> None:
    from evaltrack import __version__

    assert not re.search(r"pip install (-\S+ )*['\"]?evaltrack\b", PAGES)
    assert set(re.findall(r"OWNER/evaltrack(?:/scripts/[\w/]+)?@(\S+?)[\"\s]", PAGES)) == {f"v{__version__}"}


def test_every_input_reaches_a_step() -> None:
    for action in (ACTION, COMMENT):
        steps = json.dumps(action["runs"]["steps"])
        assert all(f"inputs.{name} " in steps for name in action["inputs"])
        assert not any("${{" in step.get("run", "") for step in action["runs"]["steps"])


@pytest.mark.parametrize("page", ["docs/how-to/ci.md", "evaltrack/api/project/github.yml"])
def test_no_job_that_runs_the_pull_request_can_write(page: str) -> None:
    text = (REPO / page).read_text()
    workflow = re.search(r"(?ms)^on: pull_request$.*?(?=^```|\Z)", text)
    assert workflow
    jobs = yaml.safe_load(re.sub(r"@([A-Z_]+)@", r"\1", workflow[0]))
    assert jobs["permissions"] == {"contents": "read"}
    for each in jobs["jobs"].values():
        writes = "write" in each.get("permissions", {}).values()
        assert writes == ([step["uses"].partition("@")[0] for step in each["steps"] if "uses" in step] in COMMENTING)
        assert not writes or not any("run" in step for step in each["steps"])
    assert "token" not in json.dumps(ACTION)
