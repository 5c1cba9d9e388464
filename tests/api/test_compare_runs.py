from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import mlflow
import pytest

from evaltrack import Comparison, RunResult, compare_runs, report_html, run_eval, set_baseline
from evaltrack.api.compare_runs import compare_sets
from evaltrack.api.run_several import run_sets
from evaltrack.cli import _run
from evaltrack.compare.comparison import ComparedSet, SetComparisons
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.report.comparison_words import reasons
from evaltrack.report.sets import sets_markdown
from tests.files import data, put
from tests.judging import store_in
from tests.stores import copy_store

NAMES = ("one", "two", "three")


def write(folder: Path, name: str) -> Path:
    return put(
        folder / f"{name}.jsonl",
        [{"id": n, "question": f"{name} {n}", "expected_chunks": [f"{name}{n}"]} for n in range(3)],
    )


def evaluated(path: Path, *wrong: str, **settings: Any) -> RunResult:
    def target(question: str) -> list[str]:
        if "down" in wrong:
            raise ValueError("down")
        return ["x"] if question in wrong else [question.replace(" ", "")]

    return run_eval(path, target=target, traces="off", **settings)


@pytest.fixture(scope="module")
def stored(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs of each golden set, of which the first is the baseline."""
    folder = tmp_path_factory.mktemp("stored")
    with store_in(folder, empty_database) as uri:
        for path in (write(folder, name) for name in NAMES):
            set_baseline(evaluated(path, tracking_uri=uri).run_id, tracking_uri=uri)
            evaluated(path, tracking_uri=uri)
    return folder


@pytest.fixture
def paths(stored: Path, store_uri: str) -> list[Path]:
    copy_store(stored, Path.cwd())
    return [stored / f"{name}.jsonl" for name in NAMES]


def verdicts(made: SetComparisons) -> list[str]:
    return [each.verdict for each in made.sets]


def compared_alone(path: Path) -> Comparison:
    return compare_runs(golden=path, log=False, max_reruns=0)


def test_sets_that_were_evaluated_together_are_compared_by_name(paths: list[Path]) -> None:
    together = run_sets(paths[:2], target=lambda question: ["x"], traces="off")
    assert verdicts(compare_sets(paths[:2], log=False, max_reruns=0)) == ["regression", "regression"]
    with pytest.raises(UsageError, match=r"3 golden sets have runs newer than their baselines \(.*\); name one"):
        compare_runs()
    for choose in (report_html, set_baseline):
        with pytest.raises(UsageError, match=f"of several golden sets .parent run {together.run_id}.; name a set"):
            choose()
    newest = [each.candidate.run_id for each in map(compared_alone, paths[:2])]
    assert [set_baseline(name).run_id for name in (str(paths[0]), "two")] == newest
    with pytest.raises(UsageError, match="no finished run of golden set `never` to promote"):
        set_baseline("never.jsonl")
    with pytest.raises(UsageError, match="there is no MLflow run `never`"):
        set_baseline("never")


def test_a_regression_beats_what_could_not_be_told(paths: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 beats 3, and 3 beats 0; every set is compared all the same, and the reasons stand below the table."""
    evaluated(paths[2], "down")
    unknown = compare_sets(paths, log=False)
    assert (unknown.exit_code, verdicts(unknown)) == (3, ["ok", "ok", "unknown"])
    assert " failed; run it again" in unknown.sets[2].problem
    evaluated(paths[0], "one 1")
    assert sets_markdown(compare_sets(paths, log=False)).startswith("### evaltrack: Regression in 1 of 3 golden sets\n")
    assert _run(["compare", *map(str, paths), "--output", "table", "--no-log", "--github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("::error") for line in lines)
    assert " ".join(lines[0].split()) == "golden set verdict common broke fixed lost Recall@5 MRR run"
    assert lines[1].split()[:6] == ["one", "Regression", "3", "1", "0", "0"]
    assert "0.667 (−0.333)" in lines[1]
    assert lines[2].split()[:4] == ["two", "No", "regression", "3"]
    assert lines[3].split()[:4] == ["three", "Unknown", "–", "–"]
    assert any(line.startswith("one: 1 question broke") for line in lines)
    assert any(line.startswith("three: the newest run ") and " failed; " in line for line in lines)


def test_files_hold_all_sets(paths: list[Path], tmp_path: Path) -> None:
    evaluated(paths[0], "one 1")
    evaluated(paths[2], "down")
    files = [tmp_path / f"all.{form}" for form in ("html", "md", "xml", "json", "txt")]
    assert _run(["compare", *map(str, paths), "--no-log", *(part for file in files for part in ("-o", str(file)))]) == 1
    html, *texts = (file.read_text() for file in files)
    assert all("one" in text and "two" in text and "three" in text for text in (html, *texts))
    assert "broke" in texts[0]
    assert ET.fromstring(texts[1]).get("errors") == "1"
    for page, question in re.findall(r'href="(all/[^"#]+)#q-([^"]+)"', html):
        assert f'"id":"{question}"' in (tmp_path / page).read_text()
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["1-one.html", "2-two.html"]


def test_markdown_is_inert() -> None:
    page = sets_markdown(SetComparisons((ComparedSet("a|b<img>", problem="run `x` <script> is gone\n# title"),)))
    assert page.startswith("### evaltrack: Unknown in 1 golden set\n")
    assert not any(text in page for text in ("<img>", "<script>", "\n#"))
    assert all(line.count("|") - line.count("\\|") == 8 for line in page.splitlines() if line.startswith("|"))


def test_a_run_of_a_part_is_named(paths: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    evaluated(paths[1], sample=2)
    assert _run(["compare", *map(str, paths[:2]), "--output", "table", "--allow-partial"]) == 0
    printed = capsys.readouterr().out
    assert "2 of 3" in printed
    assert "two: No regression in a selection of 2 of 3 questions" in printed
    assert "one: No" not in printed


def test_a_rule_for_a_domain_is_of_the_sets_that_have_it(paths: list[Path]) -> None:
    evaluated(paths[0], "one 0")
    made = compare_sets(paths, log=False, max_drop=["two:mrr=1%", "mrr=off", "recall_at_k=off"], allow_flips=1)
    assert verdicts(made) == ["unknown", "ok", "unknown"] or verdicts(made) == ["ok", "ok", "ok"]
    rules = [each.comparison.gate.domain_drops for each in made.sets if each.comparison and each.comparison.gate]
    assert [list(each) for each in rules] == [[], ["two"], []]
    with pytest.raises(UsageError, match="no golden set has a question of domain `tow`"):
        compare_sets(paths, max_drop=["tow:mrr=1%"])


def test_a_set_without_a_baseline_or_a_run_is_unknown(
    paths: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(bare := write(tmp_path, "bare"))
    made = compare_sets([bare, paths[0], "never"], log=False)
    assert (made.exit_code, verdicts(made)) == (3, ["unknown", "ok", "unknown"])
    assert verdicts(compare_sets([paths[0], paths[0].stem], log=False)) == ["ok"]
    assert made.sets[0].problem.startswith("golden set `bare` has no baseline in this experiment")
    assert made.sets[2].problem.startswith("there is no finished run of golden set `never` in experiment `Default`")
    with pytest.raises(UsageError, match="golden set `bare` has no baseline"):
        compare_sets([bare])
    assert _run(["compare", str(bare), str(paths[0]), "--output", "markdown", "--no-log"]) == 3
    assert "or name one with --baseline-run or --baseline\n" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "message"), data("api.json")["options_of_one_comparison_are_refused"])
def test_options_of_one_comparison_are_refused(
    store_uri: str, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert _run(["compare", "one.jsonl", "two.jsonl", *words]) == 2
    assert message in capsys.readouterr().err
    with pytest.raises(UsageError, match="no golden set was named"):
        compare_sets([])


def test_the_newest_run_is_of_the_experiment_that_is_chosen(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "one")
    first, second = evaluated(path), evaluated(path)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "pull request")
    broken = evaluated(path, "one 0")
    by_variable = compare_runs(baseline=first.run_id, max_reruns=0)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME")
    by_name = compare_runs(baseline=first.run_id, experiment="pull request", max_reruns=0)
    by_baseline = compare_runs(baseline=first.run_id, max_reruns=0)
    candidates = [made.candidate.run_id for made in (by_variable, by_name, by_baseline)]
    assert candidates == [broken.run_id, broken.run_id, second.run_id]
    assert (by_name.verdict, by_baseline.verdict) == ("regression", "ok")
    with pytest.raises(InconclusiveError, match=f"run {second.run_id} would be compared with itself"):
        compare_runs(baseline=second.run_id)
    mlflow.MlflowClient(store_uri).create_experiment("empty")
    with pytest.raises(UsageError, match="no finished run of golden set `one` in experiment `empty`"):
        compare_runs(baseline=first.run_id, experiment="empty")


def test_a_gate_without_a_rule_is_no_pass(store_uri: str, tmp_path: Path) -> None:
    good, other = (evaluated(write(tmp_path, "one"), k=k) for k in (5, 3))
    made = compare_runs(other.run_id, good.run_id, ignore=["k"])
    assert made.verdict == "unknown"
    assert reasons(made) == [
        "no rule on retrieval or answers could be applied: their metrics were left out, or not measured on both sides"
    ]
    tags = mlflow.MlflowClient(store_uri).get_run(other.run_id).data.tags
    assert tags["evaltrack.compare.verdict"] == "unknown"
    result = {"baseline": good.run_id, "broke": None, "fixed": None, "change": None, "cause": ""}
    assert json.loads(tags["evaltrack.compare.result"]) == result
