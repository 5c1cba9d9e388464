"""Models that MLflow holds, each as its own documentation has one logged, called as its signature says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.models import ModelSignature
from mlflow.types.schema import ColSpec, Schema

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.records import Response
from evaltrack.targets import open_target
from evaltrack.targets.models import response_of
from evaltrack.tracking.registry import plain_output, signature_form
from tests.actors import asked
from tests.conftest import REPO
from tests.files import put

pytestmark = pytest.mark.filterwarnings("ignore")
"""MLflow logs models with warnings of its own."""

CODE = REPO / "tests/data/models"
COLUMNS = ModelSignature(Schema([ColSpec("string", "question"), ColSpec("long", "k")]))


def log(folder: Path, name: str, signature: ModelSignature | None = None, **settings: Any) -> Any:
    """A model of `CODE` in MLflow's store."""
    script = folder / f"{name}.py"
    script.write_text((CODE / f"{name}.txt").read_text())
    with mlflow.start_run():
        return mlflow.pyfunc.log_model(
            name="model", python_model=str(script), signature=signature, pip_requirements=[], **settings
        )


def ask(name: str, settings: dict[str, str] | None = None) -> tuple[Response, str | None]:
    """What a model gives for a question, and what it is called."""
    target = open_target(name, settings)
    return asked(target, "why?", 2, close=True), target.model


def test_a_registered_model_is_evaluated(store_uri: str, tmp_path: Path) -> None:
    logged = log(tmp_path, "columns", COLUMNS, registered_model_name="qa")
    client = mlflow.MlflowClient(store_uri)
    client.set_registered_model_alias("qa", "champion", "1")
    golden = put(tmp_path / "mine.jsonl", [{"id": "1", "question": "why?", "expected_chunks": ["cats"]}])

    made = run_eval(golden, k=2, target="models:/qa@champion", tracking_uri=store_uri)

    (row,) = made.rows
    assert (row["answer"], row["recall_at_k"], row["error"]) == ("WHY?", 1, None)
    run = client.get_run(made.run_id)
    assert run.data.params["model"] == made.signature.model == "qa version 1"
    assert [each.model_id for each in run.inputs.model_inputs] == [logged.model_id]


@pytest.mark.parametrize(
    ("name", "sources", "tools", "tokens"),
    [("responses", ["cats"], ["search"], None), ("chat", None, [], 7), ("agent", ["cats"], [], None)],
)
def test_agents_and_chat_models(
    store_uri: str, tmp_path: Path, name: str, sources: list[str] | None, tools: list[str], tokens: int | None
) -> None:
    response, _ = ask(log(tmp_path, name).model_uri)
    assert response.answer == "WHY?"
    assert (response.sources and [each.chunk_id for each in response.sources]) == sources
    assert [call.name for call in response.tool_calls] == tools
    assert (response.usage and response.usage.total_tokens) == tokens


TWO = ModelSignature(Schema([ColSpec("string", "a"), ColSpec("string", "b")]))


@pytest.mark.parametrize(
    ("signature", "column", "message"),
    [
        (None, "", "has no signature; log it with one, or name its column of the question: `input=`"),
        (TWO, "", "takes a, b, and only a question and k are passed; name that of the question with `input=`"),
        (TWO, "a", "takes a, b, and only a question and k are passed; log the others as optional (required=False)"),
        (COLUMNS, "x", "`input=` is x; its columns are question, k"),
    ],
)
def test_a_signature_is_checked(signature: ModelSignature | None, column: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        signature_form(signature, column, "model")
    assert message in str(caught.value)


def test_signatures_of_a_question() -> None:
    alone, other = (ModelSignature(Schema([ColSpec("string", name)])) for name in (None, "whatever"))
    optional = ModelSignature(Schema([ColSpec("string", "a"), ColSpec("string", "b", required=False)]))
    assert signature_form(alone, "", "model") == ("text", "", "")
    assert signature_form(other, "", "model") == ("columns", "whatever", "")
    assert signature_form(optional, "a", "model") == ("columns", "a", "")
    assert signature_form(COLUMNS, "", "model") == ("columns", "question", "k")
    assert signature_form(None, "a", "model") == ("columns", "a", "")


def test_models_that_are_not_there(store_uri: str) -> None:
    for name in ("models:qa", "models:/nothing@champion", "models:/nothing/1", f"runs:/{'0' * 32}/model"):
        with pytest.raises(UsageError, match="models:/NAME@ALIAS"):
            open_target(name)


def test_what_models_return() -> None:
    """An object in no form of a chat is read as any target's."""
    assert response_of("90.").answer == "90."
    assert response_of(["a", "b"]).sources is not None
    message = {"content": "x", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    assert [call.name for call in response_of({"choices": [{"message": message}]}).tool_calls] == ["f"]
    for one in ([{"answer": "a"}], pd.DataFrame([{"answer": "a"}])):
        assert plain_output(one) == {"answer": "a"}
    assert plain_output(np.array(["a"])) == "a"
