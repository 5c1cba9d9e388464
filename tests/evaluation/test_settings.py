from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, get_args

import mlflow
import pytest
from annotated_types import Ge, Le

from evaltrack import run_eval
from evaltrack.api.ask_target import ask_target
from evaltrack.compare.gate import ComparisonConfig
from evaltrack.errors import UsageError
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.settings_sources import read_settings, settings_of
from evaltrack.metrics.measure import Rules
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Response, Usage, Weights
from tests.conftest import REPO, few_questions
from tests.files import data
from tests.tracking.test_tags import git


def test_every_setting_is_logged() -> None:
    given = json.loads((REPO / "tests/data/every_setting.json").read_text("utf-8"))
    made = EvaluationConfig.of(**given["settings"])
    default = EvaluationConfig()
    assert all(getattr(made, name) != getattr(default, name) for name in EvaluationConfig.model_fields)
    assert made.params() == given["params"]


@pytest.mark.parametrize("number", [0.1, 0.123456789, 1 / 3, 1e-7, 0.9999999])
def test_numbers_are_logged_as_they_are_used(number: float) -> None:
    params = EvaluationConfig(alpha=number, pass_threshold=number, timeout=number * 1e7).params()
    assert float(params["alpha"]) == pytest.approx(number, rel=1e-14)
    assert float(params["pass_threshold"]) == pytest.approx(number, rel=1e-14)
    assert float(params["timeout"]) == pytest.approx(number * 1e7, rel=1e-14)


def test_the_rules_of_a_run_and_the_weights_in_its_signature() -> None:
    assert EvaluationConfig().rules == Rules()
    assert EvaluationConfig(k=3, alpha=1, pass_threshold=0.5).rules == Rules(3, Weights(alpha=1), 0.5)
    assert EvaluationConfig(alpha=1 / 3).weights_text == "alpha=0.333333333333333,beta=0.5,gamma=1.5"
    weights, of_rubric = "h_count=0.3,oscillation=0.1", RubricWeights(h_count=0.3, oscillation=0.1)
    assert EvaluationConfig(rubric_weights=weights).rules == Rules()
    made = EvaluationConfig(rubric="reasoning", rubric_weights=weights)
    assert (made.rules, made.weights_text) == (Rules(reasoning=of_rubric), str(of_rubric))
    with pytest.raises(UsageError, match=r"^rubric weights: the sum is 1.1, not 1; change others too: h_count=0.3,"):
        EvaluationConfig.of(rubric_weights="h_count=0.3")


NUMBERS = {
    name: {type(each): each for each in field.metadata}
    for name, field in EvaluationConfig.model_fields.items()
    if {int, float} & {field.annotation, *get_args(field.annotation)}
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_has_bounds(name: str) -> None:
    bounds = NUMBERS[name]
    least, most = bounds[Ge].ge if Ge in bounds else 1e-9, bounds[Le].le if Le in bounds else 10**12
    for value in () if "price" in name else (least, most):  # prices come in pairs
        assert getattr(EvaluationConfig.of(**{name: value}), name) == value
    beyond = [least - 1, -1e-9, *([most + 1] if Le in bounds else [])]
    for wrong in (*beyond, math.inf, math.nan, "5", True):
        with pytest.raises(UsageError, match=f"^{name} must be a (whole )?number .*, not `{re.escape(str(wrong))}`"):
            EvaluationConfig.of(**{name: wrong})


def test_there_is_no_such_setting() -> None:
    with pytest.raises(TypeError, match=r"^there is no setting `trails`; did you mean `trials`\?$"):
        EvaluationConfig.of(trails=3)
    with pytest.raises(TypeError, match=r"`trails`"):
        run_eval("golden.jsonl", trails=3)  # type: ignore[call-arg]


def test_prices_come_in_pairs() -> None:
    assert EvaluationConfig().prices is None
    prices = EvaluationConfig(price_in=0.15, price_out=0.6).prices
    assert prices == Prices(0.15, 0.6)
    assert prices.cost(Usage(prompt_tokens=1_000_000, completion_tokens=500_000)) == pytest.approx(0.45)
    assert EvaluationConfig(judge_price_in=0, judge_price_out=0).judge_prices == Prices(0, 0)
    for values, whose in (({"price_in": 0.15}, "target"), ({"judge_price_out": 0.6}, "judge")):
        said = f"^prices of the {whose}: give the price of input and of output, or neither$"
        with pytest.raises(UsageError, match=said):
            EvaluationConfig.of(**values)


def test_all_that_is_wrong_is_in_one_error() -> None:
    with pytest.raises(UsageError) as caught:
        EvaluationConfig.of(param={"a/b": "1", "": "2"}, tag={"mlflow.user": "me", "evaltrack.x": ""})
    problems = str(caught.value).splitlines()
    assert [line.partition("; ")[0] for line in problems] == [
        "`param=`: `a/b` is no name",
        "`param=`: `` is no name",
        "`tag=`: `mlflow.user` begins as a tag of mlflow does",
        "`tag=`: `evaltrack.x` begins as a tag of evaltrack does",
    ]


def test_labels_and_names_in_mlflow(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = few_questions(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "ada")
    for command in (["init", "-q"], ["add", "travel.jsonl"], ["commit", "-qm", "one"]):
        git(tmp_path, *command)
    made = run_eval(
        golden,
        target=f"bm25:{tmp_path / 'corpus' / 'travel'}",
        tracking_uri=store_uri,
        param={"k": "mine", "size": 600},
        tag={"team": "search"},
        note="Smaller chunks.",
    )
    run = mlflow.MlflowClient(store_uri).get_run(made.run_id)
    assert (run.data.params["k"], run.data.params["param.k"], run.data.params["param.size"]) == ("5", "mine", "600")
    assert (run.data.tags["team"], run.data.tags["mlflow.user"]) == ("search", "ada")
    assert run.data.tags["mlflow.note.content"].startswith("Smaller chunks.\n\n### travel: ")
    start, _, end = run.info.run_name.partition("…")
    assert (start, end[-34:]) == ("travel bm25:", "/corpus/travel k=5 k=mine size=600")
    assert made.settings["param.size"] == "600"
    commit = run.data.tags["mlflow.source.git.commit"]
    assert made.settings["commit"] == f"{commit[:12]} (main)"


# Where they come from


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(text: str, **given: Any) -> EvaluationConfig:
    Path("evaltrack.toml").write_text(text)
    return settings_of(EvaluationConfig, given)


def test_the_call_is_before_the_environment_and_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALTRACK_RUN_K", "3")
    monkeypatch.setenv("EVALTRACK_RUN_TRIALS", "")
    monkeypatch.setenv("EVALTRACK_RUN_JUDGE", "openai:a openai:b")
    monkeypatch.setenv("EVALTRACK_RUN_SCORES", "exact_match token_f1")
    monkeypatch.setenv("EVALTRACK_RUN_VERDICT_CACHE", "false")
    text = '[run]\nk = 2\ntrials = 4\njudge = "none"\ntarget-options = {floor = 0}\noutput = "json"\n'
    settings = made(text, sample=7)
    assert (settings.k, settings.trials, settings.sample, settings.verdict_cache) == (3, 4, 7, False)
    assert (settings.judge, settings.target_options) == (("openai:a", "openai:b"), {"floor": "0"})
    assert settings.scores == ("exact_match", "token_f1")
    assert settings_of(EvaluationConfig, {"k": 5}).k == 5


def test_a_comparison_reads_its_own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("evaltrack.toml").write_text('[compare]\nmax_drop = "mrr=5%"\nallow-flips = 2\n[run]\nk = 3\n')
    monkeypatch.setenv("EVALTRACK_COMPARE_MIN_COVERAGE", "0.5")
    settings = settings_of(ComparisonConfig, {"gate": "seed"})
    assert (settings.max_drop, settings.allow_flips, settings.min_coverage) == (("mrr=5%",), 2, 0.5)
    assert settings.gate == "seed"


def test_another_target_has_no_options_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    file = '[run]\ntarget = "bm25:docs"\ntarget_options = {floor = 2}\nmodel = "m"\nk = 3\n'
    of_file, named = made(file), made(file, target="bm25:docs")
    assert (of_file.target, of_file.target_options, of_file.model) == ("bm25:docs", {"floor": "2"}, "m")
    assert (named.target_options, named.model, named.k) == ({}, "", 3)
    assert made(file, target="http://x", target_options={"a": "b"}).target_options == {"a": "b"}
    monkeypatch.setenv("EVALTRACK_RUN_TARGET", "http://y")
    assert (made(file).target, made(file).target_options) == ("http://y", {})


@pytest.mark.parametrize(
    ("line", "message"),
    data("settings.json")["a_value_of_another_kind_is_refused"],
)
def test_a_value_of_another_kind_is_refused(line: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        made(f"[run]\n{line}\n")
    assert str(refused.value) == message


def test_a_bad_value_of_a_project_names_its_table() -> None:
    Path("pyproject.toml").write_text("[tool.evaltrack.compare]\ngate = 5\n")
    with pytest.raises(UsageError, match=r"^pyproject.toml: \[tool.evaltrack.compare\] gate must be auto, "):
        settings_of(ComparisonConfig, {})


def test_a_variable_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALTRACK_RUN_TRIALS", "2.5")
    with pytest.raises(
        UsageError, match=r"^EVALTRACK_RUN_TRIALS: trials must be a whole number from 1 to 1000, not `2\.5`"
    ):
        settings_of(EvaluationConfig, {})
    monkeypatch.setenv("EVALTRACK_RUN_TRAILS", "3")
    with pytest.raises(UsageError, match=r"^EVALTRACK_RUN_TRAILS: there is no such setting; did you mean `trials`\?$"):
        settings_of(EvaluationConfig, {})


def test_functions_read_the_same_settings_as_commands(store_uri: str) -> None:
    golden = few_questions(Path.cwd(), 2)
    text = f'[run]\ngolden = "{golden.name}"\ntarget = "bm25:corpus/travel"\nk = 2\ntraces = "off"\njudge = "none"\n'
    made(text)
    assert run_eval(tracking_uri=store_uri).signature.k == 2
    asked = ask_target("How long may I stay in the Schengen area?")
    assert isinstance(asked, Response)
    assert asked.sources
    verdicts = {"id": "x", "accuracy": 1, "completeness": 1, "relevance": 1, "overall_score": 1, "reasoning": "So."}
    Path("verdicts.jsonl").write_text(json.dumps(verdicts))
    made(text.replace('"none"', '"recorded:verdicts.jsonl"'))
    assert run_eval(target=lambda question: "a", tracking_uri=store_uri).signature.judge.startswith("recorded")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("evaltrack.toml", b"[run]\nk = '\xff'", "is not TOML: 'utf-8' codec can't decode"),
        ("pyproject.toml", "[tool]\nevaltrack = 5 # [tool.evaltrack]", "`evaltrack` is not a table; write"),
        ("pyproject.toml", "[tool]\nevaltrack = [1] # [tool.evaltrack]", "`evaltrack` is not a table; write"),
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as caught:
        read_settings(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name}: {message}")


@pytest.mark.parametrize(
    ("name", "text", "settings"),
    [
        ("evaltrack.toml", b"\xef\xbb\xbf[run]\nk = 3\n", {"run": {"k": 3}}),
        (
            "evaltrack.toml",
            b"[run]\nrun-name = 1\nparam = {a-b = 1}\n",
            {"run": {"run_name": 1, "param": {"a-b": 1}}},
        ),
        ("pyproject.toml", b"[tool.evaltrack.run]\nk = 5\n", {"run": {"k": 5}}),
        ("pyproject.toml", b"tool = 1 # [tool.evaltrack]\n[x]", {}),
    ],
)
def test_files_that_are_read(tmp_path: Path, name: str, text: bytes, settings: dict[str, Any]) -> None:
    (tmp_path / name).write_bytes(text)
    assert read_settings(tmp_path) == settings


def test_a_file_that_is_named_is_read_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("evaltrack.toml").write_text("[run]\nk = 3\n")
    Path("gate.toml").write_text("[run]\nk = 4\n")
    Path("other").mkdir()
    Path("other/pyproject.toml").write_text("[tool.evaltrack.run]\nk = 5\n")
    for name, k in (("gate.toml", 4), ("other/pyproject.toml", 5), ("", 3)):
        monkeypatch.setenv("EVALTRACK_CONFIG", name)
        assert read_settings() == {"run": {"k": k}}
