from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from evaltrack import __version__, open_golden
from evaltrack.api.init_project import CI, OWN_FUNCTION, init_project
from evaltrack.cli import _run
from evaltrack.errors import UsageError
from tests.files import data

PAGE = "# Bicycles\n\n## Renting one\n\n" + "A bicycle is rented at the desk for a day, with a lock and a lamp. " * 3


@pytest.fixture
def project(store_uri: str) -> Path:
    folder = Path.cwd()
    (folder / "docs").mkdir()
    (folder / "docs/bicycles.md").write_text(PAGE)
    (folder / "docs/boats.md").write_text(PAGE.replace("bicycle", "boat").replace("Bicycles", "Boats"))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_project_runs_once_its_examples_are_edited(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["init", "--ci", "gitlab"]) == 0
    assert "golden/docs.jsonl holds drafts, which runs leave out" in capsys.readouterr().err
    path = Path("golden/docs.jsonl")
    questions = list(open_golden(path, drafts=True))
    quoted = [[passage.quote for passage in each.expected_passages or ()] for each in questions]
    words = "is rented at the desk for a day, with a"
    assert quoted == [[f"A bicycle {words}"], [f"A boat {words}"], []]
    assert _run(["golden", "lint", str(path)]) == 0
    assert _run(["run"]) == 2
    assert "holds only drafts (3)" in capsys.readouterr().err
    path.write_text(path.read_text().replace(', "draft": true', "", 2))
    capsys.readouterr()
    assert _run(["run"]) == 0
    assert "docs: 2 questions" in capsys.readouterr().out
    assert _run(["run", "-t", OWN_FUNCTION, "--set", "in_process=true"]) == 0
    assert "Recall@5                                  1.000" in capsys.readouterr().out


def test_without_pages_the_set_is_a_sample_that_runs(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = init_project(tmp_path / "new")
    assert plan.notes == ["no pages were named: the set is a sample about a library"]
    monkeypatch.chdir(tmp_path / "new")
    assert _run(["run", "--output", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    measured = data["totals"]["num_questions"], data["metrics"]["recall_at_k"], data["metrics"]["negative_pass_rate"]
    assert measured == (4, 1, 1)


def test_existing_files_are_kept_unless_told_otherwise(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "evaltrack.toml").write_text("[run]\nk = 3\n")
    (project / "evaltrack_target.py").symlink_to("nowhere.py")
    given = ["--corpus", "docs", "--golden", ""]
    assert _run(["init", *given]) == 0
    said = capsys.readouterr()
    assert said.out == "golden/docs.jsonl\n.gitignore\n"
    assert said.err.startswith("kept: evaltrack.toml\nkept: evaltrack_target.py\n")
    assert (project / "evaltrack.toml").read_text() == "[run]\nk = 3\n"
    assert not (project / "nowhere.py").exists()
    assert _run(["init", *given, "--force"]) == 0
    assert tomllib.loads((project / "evaltrack.toml").read_text())["run"]["target"] == "bm25:docs"


def test_a_ci_file_that_is_added_later_runs_what_the_settings_name(project: Path) -> None:
    init_project(project, target="python:app.rag:ask")
    (project / "golden/other.jsonl").write_text("")
    plan = init_project(project, ci="github")
    (text,) = plan.files.values()
    given = yaml.safe_load(text)["jobs"]["gate"]["steps"][3]["with"]
    assert (given["golden"], given["target"]) == ("golden/docs.jsonl", "python:app.rag:ask")
    assert plan.existing == ["evaltrack.toml"]
    (project / "docs").rename(project / "pages")
    assert "golden/pages.jsonl" in init_project(project, golden="", corpus="pages").files, (
        "the one that the settings name was not wanted"
    )


def test_each_ci_has_its_file(project: Path) -> None:
    assert _run(["init", "--ci", "github"]) == 0
    job = yaml.safe_load((project / ".github/workflows/evaltrack.yml").read_text())["jobs"]["gate"]
    package = f"mlflow-evaltrack @ git+https://github.com/OWNER/evaltrack@v{__version__}"
    assert job["steps"][2]["run"] == f'pip install "{package}"'
    assert job["steps"][3]["uses"] == f"OWNER/evaltrack/scripts/github@v{__version__}"
    assert job["steps"][3]["with"]["golden"] == "golden/docs.jsonl"
    plan = init_project(project, golden="golden/docs.jsonl", corpus="docs", ci="jenkins")
    assert f'.venv/bin/pip install "{package}"\n' in plan.files["Jenkinsfile.evaltrack"]
    assert any("replace OWNER" in note for note in plan.notes)
    text = init_project(project / "other", ci="gitlab").files[".gitlab/evaltrack.yml"]
    assert yaml.safe_load(text)["evaltrack"]["script"][1] == "evaltrack run"


@pytest.mark.parametrize("ci", ["github", "gitlab", "jenkins"])
@pytest.mark.parametrize(("target", "varies"), [("http://127.0.0.1:9/ask", True), ("bm25:docs", False)])
def test_the_baseline_of_a_target_that_may_vary_has_trials(project: Path, ci: CI, target: str, varies: bool) -> None:
    plan = init_project(project, corpus="docs", target=target, ci=ci)
    made = "evaltrack run --trials 3 > baseline.json, so that compare can tell flaky questions from broken"
    assert [made in text for text in (*plan.files.values(), *plan.notes)].count(True) == 2 * varies


def test_what_is_there_is_taken(project: Path) -> None:
    (project / "golden").mkdir()
    (project / "golden/mine.jsonl").write_text('{"id": 1, "question": "Q?", "expected_sources": ["Boats"]}\n')
    assert _run(["init", "-t", "http://127.0.0.1:9/ask"]) == 0
    made = tomllib.loads((project / "evaltrack.toml").read_text())
    assert made["run"] == {"golden": "golden/mine.jsonl", "target": "http://127.0.0.1:9/ask", "k": 5}
    assert not (project / "evaltrack_target.py").exists()


@pytest.mark.parametrize(("choices", "message"), data("api.json")["a_wrong_choice_writes_nothing"])
def test_a_wrong_choice_writes_nothing(tmp_path: Path, choices: dict[str, str], message: str) -> None:
    (tmp_path / "set.jsonl").write_text('{"id": 1, "question": "Q?", "expected_chunks": ["a"]}\n')
    with pytest.raises(UsageError, match=message):
        init_project(tmp_path, **choices)  # type: ignore[arg-type]
    assert list(contents(tmp_path)) == ["set.jsonl"]


def test_pages_without_headings_are_asked_about_too(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/note.txt").write_text("The key hangs beside the door of the shed.")
    plan = init_project(tmp_path, corpus="docs")
    asked, negative = open_golden(tmp_path / plan.examples, drafts=True)
    assert [each.quote for each in asked.expected_passages or ()] == ["The key hangs beside the door of the shed."]
    assert negative.negative
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/a.md").write_text("…")
    with pytest.raises(UsageError, match="no words"):
        init_project(tmp_path / "other", corpus=str(tmp_path / "empty"))
