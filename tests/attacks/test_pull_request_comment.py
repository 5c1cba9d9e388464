"""A pull request, and people who comment on it, against the composite action: its steps are run as they stand."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import pytest

from tests.conftest import evaltrack
from tests.files import put
from tests.workflow import ACTION, BOT, Job, commit, job, repository

MARKER = "<!-- evaltrack:small -->"
PAGE = f"{MARKER}\nall is well\n"
QUESTION = '{"id": 1, "question": "q?", "expected_chunks": ["a"]}\n'
GOOD, BAD = (f'{{"id": 1, "sources": ["{chunk}"]}}\n' for chunk in "ax")
LOOSE = '[compare]\nallow-flips = 9\nmax-drop = ["recall_at_k=off", "mrr=off"]\n'


def with_page(folder: Path) -> Job:
    """A job whose page is there, in its own folder and in the tree."""
    (folder / "tree").mkdir()
    made = job(folder)
    for place in (made.temp / "evaltrack", made.tree):
        put(place / "evaltrack.md", PAGE)
    return made


def saved(folder: Path, answers: str) -> str:
    put(folder / "small.jsonl", QUESTION)
    put(folder / "answers.jsonl", answers)
    ended = evaltrack("run", "small.jsonl", "-t", "recorded:answers.jsonl", "--output", "json", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("own", [((BOT, "of another workflow"), (BOT, f"{MARKER}\nof yesterday")), ()])
def test_a_strangers_comment_stays_and_keeps_nobody_from_writing_ours(
    tmp_path: Path, own: tuple[tuple[str, str], ...]
) -> None:
    made = with_page(tmp_path)
    strangers = (("mallory", f"{MARKER}\nmine"), ("github-actions", f"{MARKER}\nalso mine"))
    made.hub((*strangers, *own))

    assert made.step("Comment").returncode == 0, made.output

    assert made.comments == [*strangers, *own[:1], (BOT, PAGE)]


def test_a_comment_that_is_refused_is_a_warning(tmp_path: Path) -> None:
    made = with_page(tmp_path)
    made.hub((), refuses=True)

    assert made.step("Comment").returncode == 0

    assert "::warning title=evaltrack::the comment was not written: gh: Resource not acc" in made.output
    assert "\n::error" not in made.output


def test_a_page_that_the_pull_request_brings_is_not_ours(tmp_path: Path) -> None:
    base = repository(tmp_path / "tree", {"evaltrack.md": f"{MARKER}\nI pass, says mallory\n"})
    made = job(tmp_path, base)  # there is no golden set

    assert made.run() == 2, made.output

    assert made.summary == ""
    assert made.comments == []


@pytest.mark.parametrize("brought", ["baseline", "settings"])
def test_a_pull_request_brings_neither_baseline_nor_settings(store_uri: str, tmp_path: Path, brought: str) -> None:
    tree = tmp_path / "tree"
    good, bad = saved(tree, GOOD), saved(tree, BAD)
    base = repository(tree, {"baseline.json": good})
    commit(tree, {"baseline.json": bad} if brought == "baseline" else {"evaltrack.toml": LOOSE})
    made = job(tmp_path, base, baseline="baseline.json")

    assert made.run() == 1, made.output

    assert "Regression: 1 question broke" in made.output
    assert made.comments[0][1].startswith(MARKER)


def test_every_line_of_options_counts_and_none_is_executed(store_uri: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    repository(tree, {"small.jsonl": QUESTION, "answers.jsonl": GOOD})
    name = "two $(touch pwned) `touch pwned` words"
    options = f"-k 3 \\\n  --judge none\n--run-name '{name}'\n--require 'recall_at_k>=2'\n"
    made = job(tmp_path, **{"run-options": options})

    ended = made.step("Evaluate")

    assert ended.returncode == 0, ended.stderr
    assert made.outputs["evaluate"] == {"code": "1"}, ended.stdout + ended.stderr
    run = mlflow.search_runs(output_format="list")[0]
    assert (run.info.run_name, run.data.params["k"]) == (name, "3")
    assert not (tree / "pwned").exists()


def test_another_run_in_the_store_is_not_taken_for_ours(store_uri: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    good = saved(tree, GOOD)
    made = job(tmp_path, repository(tree, {"baseline.json": good, "answers.jsonl": BAD}), baseline="baseline.json")
    for step in ACTION["runs"]["steps"]:
        if step["name"] in ("Base", "Evaluate"):
            assert made.step(step["name"]).returncode == 0, made.output
    saved(tree, GOOD)

    made.step("Compare")

    assert made.outputs["compare"] == {"code": "1"}, made.output


def test_options_with_an_open_quote_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    made = job(tmp_path, **{"run-options": "--run-name 'two words"})

    ended = made.step("Evaluate")

    assert ended.returncode == 2
    assert "::error title=evaltrack::run-options: No closing quotation" in json.dumps(ended.stdout)
