from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import get_args

import mlflow
import pytest
from annotated_types import Ge, Le

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.metrics.measure import Rules
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Usage, Weights
from tests.conftest import REPO, few_questions
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
    params = {"a/b": "1", "": "2", "long": "x" * 6000, "nul": "\0"} | {f"p{n}": "" for n in range(100)}
    with pytest.raises(UsageError) as caught:
        EvaluationConfig.of(param=params, tag={"mlflow.user": "me", "evaltrack.x": ""}, note="\ud800" * 4000)
    problems = str(caught.value).splitlines()
    assert [line.partition("; ")[0] for line in problems] == [
        "`param=`: there are 104",
        "`param=`: `a/b` is no name",
        "`param=`: `` is no name",
        "`param=`: `long` has 6,000 characters",
        "`param=`: `nul` holds a NUL character",
        "`tag=`: `mlflow.user` begins as a tag of mlflow does",
        "`tag=`: `evaltrack.x` begins as a tag of evaltrack does",
        "`note=`: has 4,000 characters",
        "`note=`: holds half of a surrogate pair, which is not text",
    ]


def test_labels_and_names_in_mlflow(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = few_questions(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
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
    assert run.data.tags["team"] == "search"
    assert run.data.tags["mlflow.note.content"].startswith("Smaller chunks.\n\n### travel: ")
    start, _, end = run.info.run_name.partition("…")
    assert (start, end[-34:]) == ("travel bm25:", "/corpus/travel k=5 k=mine size=600")
    assert made.settings["param.size"] == "600"
    commit = run.data.tags["mlflow.source.git.commit"]
    assert made.settings["commit"] == f"{commit[:12]} (main)"
