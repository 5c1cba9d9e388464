from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack.api.ask_target import ask_target
from evaltrack.api.run_eval import run_eval
from evaltrack.compare.gate import ComparisonConfig
from evaltrack.errors import UsageError
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.settings_sources import read_settings, settings_of
from tests.conftest import few_questions
from tests.files import data


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
    monkeypatch.setenv("EVALTRACK_RUN_SCORE", "exact_match token_f1")
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
    assert asked.response is not None
    assert asked.response.sources
    verdicts = {"id": "x", "accuracy": 1, "completeness": 1, "relevance": 1, "overall_score": 1, "reasoning": "So."}
    Path("verdicts.jsonl").write_text(json.dumps(verdicts))
    made(text.replace('"none"', '"recorded:verdicts.jsonl"'))
    assert run_eval(target=lambda question: "a", tracking_uri=store_uri).signature.judge.startswith("recorded")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("evaltrack.toml", "a = " + "[" * 100_000, "cannot be read as TOML: it is nested too deeply"),
        ("evaltrack.toml", b"[run]\nk = '\xff'", "is not TOML: 'utf-8' codec can't decode"),
        (
            "evaltrack.toml",
            "a." * 100_000,
            "is longer than 131,072 bytes; write the settings to a short evaltrack.toml",
        ),
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
